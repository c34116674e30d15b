"""What clusters, placements, plans and histories do by floors above them: show, and read frames."""

from typing import TYPE_CHECKING, Any

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.runtime.frames import read_frames_by
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


def read_frames() -> None:
    """Let clusters be made of frames as the tables of the formats are read."""
    read_frames_by(_from_frames)


def _from_frames(*frames: Any, **more: Any) -> Cluster:
    from evenkeel.formats.tables.frames import read_frames

    return read_frames(*frames, **more)


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
