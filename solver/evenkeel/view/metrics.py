"""Write the figures of a command as OpenMetrics text, which Prometheus reads."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class Family(NamedTuple):
    """A metric: where its value stands in the figures, and what it is."""

    path: str
    name: str
    meaning: str
    label: str = ""  # of which label a mapping gives one value each


# all metrics; a name may stand for the same figure of several commands
FAMILIES = (
    Family("exit_code", "exit_code", "Exit code of the command"),
    Family(
        "level", "imbalance_ratio",
        "Greatest utilisation of a node divided by the mean; check: as it is, solve: after its "
        "moves", "dimension",
    ),
    Family("leader_level", "leader_imbalance_ratio", "Most leaders of a node divided by its share"),
    Family(
        "disk_level", "disk_imbalance_ratio", "Most that a disk holds divided by its share"
    ),
    Family("goals.met", "goals_met", "1 where all goals asked for are met"),
    Family("goals_reached", "goals_met", ""),
    Family("goals.moves_at_least", "moves_at_least", "Moves that the goals take at least"),
    Family("moves_at_least", "moves_at_least", ""),
    Family("moves", "moves", "Moves of the answer"),
    Family("disk_moves", "disk_moves", "Moves between disks of nodes"),
    Family("rest.disk_moves", "disk_moves", ""),
    Family("bytes_moved", "moved_bytes", "Data that the answer moves"),
    Family("leader_changes", "leader_changes", "Partitions that another node is to lead"),
    Family("hard_violations", "hard_violations", "Hard rules between nodes that are broken"),
    Family("broken_disks", "broken_disks", "Full disks, and replicas to leave disks"),
    Family("disks_broken", "broken_disks", ""),
    Family("disk_replicas_to_leave", "disk_replicas_to_leave", "Replicas to leave disks"),
    Family("soft_violations", "soft_violations", "Soft rules that are not met"),
    Family("broken", "broken_rules", "Broken rules by kind", "kind"),
    Family("unplaced", "unplaced_replicas", "Replicas that find no place"),
    Family("stranded", "stranded_partitions", "Partitions of which nothing lives to copy from"),
    Family("not_alive", "nodes_down", "Nodes that are down and hold replicas"),
    Family("safe", "plan_safe", "1 where every instant of the plan keeps the rules"),
    Family("complete", "plan_complete", "1 where the plan does all that is asked"),
    Family("rest.complete", "plan_complete", ""),
    Family("steps", "plan_steps", "Steps of the plan that are left"),
    Family("rest.steps", "plan_steps", ""),
    Family("copies", "plan_copies", "Copies of the plan that are left"),
    Family("rest.copies", "plan_copies", ""),
    Family("bytes", "plan_bytes", "Data that the plan has left to copy"),
    Family("rest.bytes", "plan_bytes", ""),
    Family("progress.done", "plan_steps_done", "Steps of the plan that are done"),
    Family("progress.under_way", "plan_steps_under_way", "Steps of the plan that are under way"),
    Family("progress.bytes_done", "plan_bytes_done", "Data that the plan has copied"),
    Family("progress.seconds_left", "plan_seconds_left", "Seconds that the plan has left"),
    Family("to_do", "plan_changes_left", "Changes of a plan's folder to be ordered"),
    Family("under_way", "plan_changes_under_way", "Changes of a plan's folder under way"),
    Family("done", "plan_changes_done", "Changes of a plan's folder that are done"),
)  # fmt: skip

PREFIX = "evenkeel_"


def openmetrics(figures: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Write those figures that are metrics, each with some labels."""
    meanings = {one.name: one.meaning for one in reversed(FAMILIES) if one.meaning}
    lines: list[str] = []
    for one in FAMILIES:
        samples = [*_samples(one, figures, labels)]
        if samples:
            name = PREFIX + one.name
            lines += [f"# HELP {name} {meanings[one.name]}", f"# TYPE {name} gauge", *samples]
    return "\n".join([*lines, "# EOF", ""])


def _samples(
    family: Family, figures: Mapping[str, Any], labels: Mapping[str, str]
) -> Iterator[str]:
    """Yield the lines of one metric; none where the figures do not have it."""
    value: Any = figures
    for word in family.path.split("."):
        value = value.get(word) if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping):
        value = {"": value}
    elif not family.label:
        return
    for key, one in value.items():
        if isinstance(one, Sequence) and not isinstance(one, str):
            one = len(one)
        if isinstance(one, bool | int | float):
            named = {**labels, **({family.label: key} if family.label else {})}
            inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in named.items())
            yield f"{PREFIX}{family.name}{{{inside}}} {_number(one)}"


def _number(value: bool | float) -> str:
    """Return a number as Prometheus reads it."""
    named = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}
    text = repr(float(value)) if isinstance(value, float) else str(int(value))
    return named.get(text, text)


def _escaped(text: str) -> str:
    """Return the value of a label with what would end it escaped."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
