"""What notebooks show of clusters, placements and histories, written by the view when asked for."""

from typing import TYPE_CHECKING

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.runtime.shown import show_as

if TYPE_CHECKING:
    from evenkeel.simulate.engine.history import History


def show_snapshots() -> None:
    """Let clusters, placements and histories be shown as the view writes them."""
    show_as(Cluster, _cluster)
    show_as(Placement, _placement)
    show_as("evenkeel.simulate.engine.history.History", _history)


def _cluster(cluster: Cluster) -> str:
    from evenkeel.view.notebook import cluster_html

    return cluster_html(cluster)


def _placement(placement: Placement) -> str:
    from evenkeel.view.notebook import placement_html

    return placement_html(placement)


def _history(history: "History") -> str:
    from evenkeel.view.history import history_html

    return history_html(history)
