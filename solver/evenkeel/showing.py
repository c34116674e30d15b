"""What notebooks show of clusters, placements, plans and histories, written by the view."""

from typing import TYPE_CHECKING

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.runtime.shown import show_as

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan
    from evenkeel.simulate.engine.history import History


def show_snapshots() -> None:
    """Let clusters, placements, plans and histories be shown as the view writes them."""
    show_as(Cluster, _cluster)
    show_as(Placement, _placement)
    show_as("evenkeel.planning.plan.Plan", _plan)
    show_as("evenkeel.simulate.engine.history.History", _history)


def _cluster(cluster: Cluster) -> str:
    from evenkeel.view.notebook import cluster_html

    return cluster_html(cluster)


def _placement(placement: Placement) -> str:
    from evenkeel.view.notebook import placement_html

    return placement_html(placement)


def _plan(plan: "Plan") -> str:
    from evenkeel.view.plan_html import plan_html

    return plan_html(plan)


def _history(history: "History") -> str:
    from evenkeel.view.history import history_html

    return history_html(history)
