"""What notebooks show of a cluster and of a placement, written by the view when it is asked for."""

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.shown import show_as


def show_snapshots() -> None:
    """Let clusters and placements be shown as the view writes them."""
    show_as(Cluster, _cluster)
    show_as(Placement, _placement)


def _cluster(cluster: Cluster) -> str:
    from evenkeel.view.notebook import cluster_html

    return cluster_html(cluster)


def _placement(placement: Placement) -> str:
    from evenkeel.view.notebook import placement_html

    return placement_html(placement)
