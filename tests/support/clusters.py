"""Small random clusters that use every feature of the model, for hypothesis."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Role
from evenkeel.model.rules import COUNTS, Rule

LEVELS = ("region", "zone", "rack", "feed")
TAGS = ("ssd", "gpu")
DIMENSIONS = ("cpu", "disk", "net")

# what a limit may be: a number, or one that is soft
amounts = st.one_of(
    st.integers(1, 4), st.tuples(st.integers(1, 4), st.sampled_from(["hard", "soft"]))
)


def sizes(infinite: bool = False) -> st.SearchStrategy[float]:
    """Loads or capacities: zeros, ties, small and large ones, and infinite ones on request."""
    ordinary = st.one_of(
        st.sampled_from([0.0, 1.0, 1.0, 2.0, 0.1]), st.floats(0.0, 1e12, allow_subnormal=False)
    )
    return st.one_of(ordinary, st.just(np.inf)) if infinite else ordinary


@st.composite
def clusters(
    draw: st.DrawFn,
    *,
    max_nodes: int = 6,
    max_partitions: int = 7,
    max_replicas: int = 4,
    solvable: bool = False,
) -> Cluster:
    """Draw a small cluster with any feature of the model, and broken placements, too."""
    # 0 nodes, partitions and slots are drawn as well; one that is ``solvable`` has a node that is
    # up with room for everything, a partition, and no rule that names nodes
    return Cluster.from_arrays(
        **draw(
            arguments(
                max_nodes=max_nodes,
                max_partitions=max_partitions,
                max_replicas=max_replicas,
                solvable=solvable,
            )
        )
    )


@st.composite
def arguments(
    draw: st.DrawFn,
    *,
    max_nodes: int = 6,
    max_partitions: int = 7,
    max_replicas: int = 4,
    solvable: bool = False,
) -> dict[str, Any]:
    """Draw the arguments of ``Cluster.from_arrays``; see ``clusters``."""
    n = draw(st.integers(int(solvable), max_nodes))
    p = draw(st.integers(int(solvable), max_partitions))
    d = draw(st.integers(1, 3))
    given: dict[str, Any] = {
        "capacity": table(draw, n, d, sizes(infinite=True)),
        "load": table(draw, p, d, sizes()),
        "dimensions": DIMENSIONS[:d],
    }
    if solvable:
        given["capacity"] = np.full((n, d), 1e14)
    for name in ("leader_load", "non_voter_load"):
        if draw(st.booleans()):
            given[name] = table(draw, p, d, sizes())
    given["transient"] = draw(st.sets(st.sampled_from(DIMENSIONS[:d])).map(sorted))
    given["bytes"] = draw(st.sampled_from([None, *DIMENSIONS[:d]]))
    given |= nodes(draw, n, d, solvable)
    given |= topology(draw, n, d)
    given |= partitions(draw, n, p)
    given |= placement(draw, n, p, max_replicas)
    given |= rules(draw, given, n, p, solvable)
    return given


def table(
    draw: st.DrawFn, rows: int, columns: int, cells: st.SearchStrategy[float]
) -> NDArray[np.float64]:
    """Draw a table of numbers."""
    size = rows * columns
    drawn = draw(st.lists(cells, min_size=size, max_size=size))
    return np.array(drawn, np.float64).reshape(rows, columns)


def column(
    draw: st.DrawFn, length: int, cells: st.SearchStrategy[Any], dtype: type[np.generic]
) -> NDArray[Any]:
    """Draw one value per node or partition."""
    return np.array(draw(st.lists(cells, min_size=length, max_size=length)), dtype)


def names(draw: st.DrawFn, count: int) -> list[str] | None:
    """Draw distinct names of any script, or none."""
    if draw(st.booleans()):
        return None
    text = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=6)
    return draw(st.lists(text, min_size=count, max_size=count, unique=True))


def nodes(draw: st.DrawFn, n: int, d: int, solvable: bool) -> dict[str, Any]:
    """Draw states, weights, tags and attributes."""
    given: dict[str, Any] = {"node_names": names(draw, n)}
    for name in ("alive", "accepts", "keeps", "leads", "gone"):
        if draw(st.booleans()):
            given[name] = column(draw, n, st.booleans(), np.bool_)
            if solvable:
                given[name][0] = name != "gone"
    if draw(st.booleans()):
        given["watermark"] = table(draw, n, d, sizes(infinite=True))
    if draw(st.booleans()):
        times = st.one_of(st.just(np.nan), st.floats(0.0, 2e9))
        given["since"] = column(draw, n, times, np.float64)
    for name in ("weight", "lead_weight"):
        if draw(st.booleans()):
            given[name] = column(draw, n, st.sampled_from([0.0, 0.5, 1.0, 3.0]), np.float64)
            given[name][: int(solvable)] = 1.0
    if draw(st.booleans()):
        given["max_replicas"] = column(draw, n, st.integers(-1, 5), np.int32)
        given["max_replicas"][: int(solvable)] = -1
    if draw(st.booleans()):
        given["stands_for"] = column(draw, n, st.integers(-1, n - 1), np.int32)
    if draw(st.booleans()):
        given["tags"] = {tag: column(draw, n, st.booleans(), np.bool_) for tag in TAGS}
    if draw(st.booleans()):
        given["attributes"] = {"os": labels(draw, n), "slot": labels(draw, n)}
    return given


def labels(draw: st.DrawFn, n: int) -> NDArray[Any]:
    """Draw a label per node: texts or integers, with missing ones."""
    if draw(st.booleans()):
        return column(draw, n, st.integers(-1, 12), np.int64)
    return column(draw, n, st.sampled_from(["", "a", "b", "10", "9", "ö/1"]), np.str_)


def topology(draw: st.DrawFn, n: int, d: int) -> dict[str, Any]:
    """Draw levels that nest or cross, with shared capacities and distances."""
    levels = LEVELS[: draw(st.integers(0, len(LEVELS)))]
    given: dict[str, Any] = {"domains": {level: labels(draw, n) for level in levels}}
    if "feed" in levels and draw(st.booleans()):
        given["crossing"] = ("feed",)
    if levels and draw(st.booleans()):
        plain = Cluster.from_arrays(
            capacity=np.ones((n, d)), load=np.ones((0, d)), replicas=0, **given
        )
        given["tier_capacity"] = {
            level: table(draw, int(plain.topology.domain_count[i]), d, sizes(infinite=True))
            for i, level in enumerate(levels)
            if plain.topology.domain_count[i] and draw(st.booleans())
        }
    kind = draw(st.sampled_from(["plain", "levels", "pairs"]))
    if kind == "levels":
        steps = sorted(
            draw(st.lists(st.integers(0, 9), min_size=len(levels), max_size=len(levels)))
        )
        given["tier_distance"] = np.array([*reversed(steps), 0.0], np.float64)
    elif kind == "pairs":
        half = np.tril(table(draw, n, n, st.integers(0, 9).map(float)), -1)
        given["tier_distance"] = half + half.T
    return given


def partitions(draw: st.DrawFn, n: int, p: int) -> dict[str, Any]:
    """Draw groups, and what is known of partitions."""
    groups = draw(st.integers(1, 3))
    given: dict[str, Any] = {"partition_names": names(draw, p)}
    if draw(st.booleans()):
        given["group"] = column(draw, p, st.integers(0, groups - 1), np.int32)
        given["group_names"] = [f"group {g}" for g in range(groups)]
        if draw(st.booleans()):
            level = st.just("node")
            pair = st.tuples(st.integers(0, groups - 1), st.integers(0, groups - 1), level)
            given["depends"] = draw(st.lists(pair, max_size=2))
    if draw(st.booleans()):
        given["move_cost"] = column(draw, p, st.sampled_from([0.0, 1.0, 7.5]), np.float64)
    if draw(st.booleans()):
        given["attached"] = column(draw, p, st.integers(-1, n - 1), np.int32)
    if draw(st.booleans()):
        given["min_active"] = column(draw, p, st.integers(0, 2), np.int32)
    if n and p and draw(st.booleans()):
        pair = st.tuples(st.integers(0, p - 1), st.integers(0, n - 1))
        pairs = draw(st.lists(pair, max_size=4))
        given["forbidden"] = np.array(pairs, np.int32).reshape(-1, 2)
    return given


def placement(draw: st.DrawFn, n: int, p: int, max_replicas: int) -> dict[str, Any]:
    """Draw where replicas are, broken or not: holes, doubles, short and long rows, any leader."""
    kind = draw(st.sampled_from(["none", "even", "ragged"]))
    given: dict[str, Any] = {}
    widths = np.zeros(p, np.int64)
    if kind == "even":
        widths[:] = draw(st.integers(0, max_replicas))
    elif kind == "ragged":
        widths = column(draw, p, st.integers(0, max_replicas), np.int64)
    total = int(widths.sum())
    if kind != "none":
        given["placement"] = column(draw, total, st.integers(-1, n - 1), np.int32)
        if kind == "even":
            given["placement"] = given["placement"].reshape(p, int(widths.max(initial=0)))
        else:
            given["first"] = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        if draw(st.booleans()):
            choices = [draw(st.integers(-1, max(int(width) - 1, -1))) for width in widths]
            given["leader"] = np.array(choices, np.int16)
        if draw(st.booleans()):
            given["role"] = column(draw, total, st.sampled_from([*Role]).map(int), np.uint8)
        if draw(st.booleans()):
            every = int(sum(Flag))
            given["flags"] = column(draw, total, st.integers(0, every), np.uint16)
    wanted = widths
    if kind == "none" or draw(st.booleans()):
        wanted = column(draw, p, st.integers(0, max_replicas), np.int64)
        given["replicas"] = wanted.astype(np.int32)
    if draw(st.booleans()):
        voters = [draw(st.integers(0, int(count))) for count in wanted]
        given["voters"] = np.array(voters, np.int32)
    return given


def rules(
    draw: st.DrawFn, given: Mapping[str, Any], n: int, p: int, solvable: bool
) -> dict[str, Any]:
    """Draw rules over the levels, tags and labels that the cluster has."""
    count = draw(st.integers(0, 2))
    levels = [*given["domains"], "node"]
    texts = {} if solvable else expressions(given)
    groups = len(given["group_names"]) if "group_names" in given else int(p > 0)
    one = rule(draw, levels, texts) if count == 1 else None
    made = [one] if one else [rule(draw, levels, texts) for _ in range(count)]
    drawn: dict[str, Any] = {"rules": made}
    if made and draw(st.booleans()):
        drawn["rule"] = column(draw, p, st.integers(-1, count - 1), np.int32)
    if made and draw(st.booleans()):
        drawn["group_rule"] = column(draw, groups, st.integers(-1, count - 1), np.int32)
    return drawn


def expressions(given: Mapping[str, Any]) -> dict[str, NDArray[np.bool_]]:
    """Return expressions that the cluster's nodes know, and the nodes that meet each."""
    met = {}
    for tag, tagged in given.get("tags", {}).items():
        met |= {f"+{tag}": tagged, f"-{tag}": ~tagged}
    for key, values in {**given["domains"], **given.get("attributes", {})}.items():
        labels = values.astype(np.str_)
        for label in sorted({*labels.tolist()} - {"", "-1"}):
            met |= {f"{key}={label}": labels == label, f"{key}!={label}": labels != label}
    return met


def rule(draw: st.DrawFn, levels: Sequence[str], texts: Mapping[str, NDArray[np.bool_]]) -> Rule:
    """Draw one rule; it asks for no more than any partition has, and for no node that is none."""

    def one_text(known: Sequence[str] = tuple(texts)) -> list[str]:
        return [draw(st.sampled_from(known))] if known and draw(st.booleans()) else []

    def limit(hard: bool = True) -> dict[str, Any]:
        if draw(st.booleans()):
            return {}
        return {
            draw(st.sampled_from(levels)): draw(amounts)
            if hard
            else (draw(st.integers(1, 3)), "soft")
        }

    spread: dict[str, Any] = limit()
    if draw(st.booleans()):
        spread["node"] = draw(st.sampled_from([None, 2, (1, "soft")]))
    require = one_text()
    beside = [text for text in texts if all((texts[text] & texts[one]).any() for one in require)]
    return Rule(
        require=require,
        voters_require=one_text(beside),
        **{kind: dict.fromkeys(one_text(), 0) for kind in COUNTS},
        lead=one_text(),
        spread=spread,
        min_domains=limit(hard=False),
        max_domains=limit(),
        skew=limit(),
    )


def assert_same(one: Cluster, other: Cluster) -> None:
    """Fail unless two clusters say the same in every part."""
    for owner in ("nodes", "topology", "partitions", "placement"):
        left, right = vars(getattr(one, owner)), vars(getattr(other, owner))
        for name in type(getattr(one, owner)).__dataclass_fields__:
            assert_equal(f"{owner}.{name}", left[name], right[name])
    for name in Cluster.__dataclass_fields__:
        if name not in ("nodes", "topology", "partitions", "placement"):
            assert_equal(name, getattr(one, name), getattr(other, name))


def assert_equal(path: str, one: Any, other: Any) -> None:
    """Fail unless two values are equal, arrays in dtype, shape and every entry."""
    assert type(one) is type(other) or not isinstance(one, np.ndarray), path
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, path
        np.testing.assert_array_equal(one, other, err_msg=path)
    elif isinstance(one, Mapping):
        assert list(one) == list(other), path
        for key in one:
            assert_equal(f"{path}[{key!r}]", one[key], other[key])
    elif hasattr(one, "__dataclass_fields__"):
        for name in one.__dataclass_fields__:
            assert_equal(f"{path}.{name}", getattr(one, name), getattr(other, name))
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), path
        for i, (left, right) in enumerate(zip(one, other, strict=True)):
            assert_equal(f"{path}[{i}]", left, right)
    else:
        assert one == other, path
