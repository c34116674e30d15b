"""What clusters, placements, plans and histories do by floors above them: show, and read frames."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.runtime.frames import read_frames_by
from evenkeel.model.runtime.shown import report_as, show_as

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan
    from evenkeel.simulate.engine.history import History


def show_snapshots() -> None:
    """Let clusters, placements, plans and histories be shown as the view writes them."""
    show_as(Cluster, _cluster)
    show_as(Placement, _placement)
    show_as("evenkeel.planning.plan.Plan", _plan)
    show_as("evenkeel.simulate.engine.history.History", _history)
    report_as("evenkeel.planning.plan.Plan", _plan_report)
    report_as("evenkeel.simulate.engine.history.History", _history_report)


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


def _plan_report(plan: "Plan", path: str | os.PathLike[str]) -> Path:
    from evenkeel.view.page.file import check_page, write_page
    from evenkeel.view.page.plan import plan_page

    check_page(path)
    return write_page(plan_page(plan), path)


def _history(history: "History") -> str:
    from evenkeel.view.history import history_html

    return history_html(history)


def _history_report(history: "History", path: str | os.PathLike[str]) -> Path:
    from evenkeel.view.page.file import check_page, write_page
    from evenkeel.view.page.history import history_page

    check_page(path)
    return write_page(history_page(history), path)
