"""Register the displays of objects and the readers of data frames with the model."""

import os
from functools import partial
from pathlib import Path
from typing import Any

from evenkeel.model.cluster import Cluster, read_frames_by
from evenkeel.model.runtime.later import imported
from evenkeel.model.runtime.shown import report_as, show_as

# what a notebook shows of objects, by their class
HTML = {
    "evenkeel.model.cluster.Cluster": "evenkeel.view.clusters:cluster_html",
    "evenkeel.model.placement.Placement": "evenkeel.view.clusters:placement_html",
    "evenkeel.result.Result": "evenkeel.view.results:result_html",
    "evenkeel.planning.plan.Plan": "evenkeel.view.plans:plan_html",
    "evenkeel.studies.sweep.Sweep": "evenkeel.view.studies:sweep_html",
    "evenkeel.studies.frontier.Frontier": "evenkeel.view.studies:frontier_html",
    "evenkeel.simulate.engine.history.History": "evenkeel.view.histories:history_html",
}

# what a page about objects holds, by their class
PAGES = {
    "evenkeel.result.Result": "evenkeel.view.results:result_page",
    "evenkeel.planning.plan.Plan": "evenkeel.view.plans:plan_page",
    "evenkeel.studies.sweep.Sweep": "evenkeel.view.studies:sweep_page",
    "evenkeel.studies.frontier.Frontier": "evenkeel.view.studies:frontier_page",
    "evenkeel.simulate.engine.history.History": "evenkeel.view.histories:history_page",
}


def show_snapshots() -> None:
    """Let objects be shown, and written as pages, as the view does it."""
    for kind, where in HTML.items():
        show_as(kind, partial(_called, where))
    for kind, where in PAGES.items():
        report_as(kind, partial(_page, where))


def read_frames() -> None:
    """Let clusters be made of frames as the tables of the formats are read."""
    read_frames_by(_from_frames)


def _called(where: str, shown: Any) -> str:
    """Call what a table names as ``"module:name"``."""
    written: str = imported(where)(shown)
    return written


def _page(where: str, shown: Any, path: str | os.PathLike[str]) -> Path:
    from evenkeel.view.html import check_page, write_page

    check_page(path)
    return write_page(_called(where, shown), path)


def _from_frames(*frames: Any, **more: Any) -> Cluster:
    from evenkeel.systems.tables.frames import read_frames

    return read_frames(*frames, **more)
