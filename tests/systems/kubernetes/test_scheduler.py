"""Pods go where a plain scheduler of Kubernetes would let them go, and wait only where it would."""

import random
from functools import partial
from itertools import permutations

import pytest

from evenkeel.solving import solve
from evenkeel.systems import registry
from tests.support.systems.kubernetes import HOST, ZONE, claim, listed, node, pod, uses, volume

HARD = "requiredDuringSchedulingIgnoredDuringExecution"
MINE, OTHER = {"app": "p"}, {"app": "q"}


def drawn(draw):
    """Return nodes, what the pods of a workload ask for, and what those of others do."""
    nodes = []
    for i in range(draw.randint(3, 6)):
        labels = {ZONE: draw.choice("abc")} if draw.random() < 0.85 else {}
        taints = [{"key": "k", "effect": "NoSchedule"}] if draw.random() < 0.3 else []
        nodes.append(node(f"n{i}", labels=labels, taints=taints))
    spread = {
        "maxSkew": draw.randint(1, 2), "topologyKey": draw.choice([ZONE, HOST]),
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": MINE},
    }  # fmt: skip
    if draw.random() < 0.3:
        spread["nodeTaintsPolicy"] = "Honor"
    mine = {"topologySpreadConstraints": [spread] if draw.random() < 0.8 else []}
    return nodes, mine | apart(draw), apart(draw)


def apart(draw):
    wanted = draw.choice([MINE, OTHER])
    term = {"topologyKey": draw.choice([ZONE, HOST]), "labelSelector": {"matchLabels": wanted}}
    terms = [term] if draw.random() < 0.5 else []
    return {"affinity": {"podAntiAffinity": {HARD: terms}}}


def admits(nodes, spec, at, mine, others, other_spec):
    """Whether a pod may come to a node where pods of its own and of others stand on nodes."""
    own = nodes[at]["metadata"]["labels"]
    if nodes[at]["spec"]["taints"]:
        return False
    for one in spec["topologySpreadConstraints"]:
        key = one["topologyKey"]
        if key not in own:
            return False
        count = {
            each["metadata"]["labels"][key]: 0
            for each in nodes
            if key in each["metadata"]["labels"]
            and not ("nodeTaintsPolicy" in one and each["spec"]["taints"])
        }
        for n in mine:
            count[nodes[n]["metadata"]["labels"][key]] += 1
        if count[own[key]] + 1 - min(count.values()) > one["maxSkew"]:
            return False
    for labels, asking, where in ((MINE, spec, mine), (OTHER, other_spec, others)):
        terms = [*terms_of(spec, labels), *terms_of(asking, MINE)]
        beside = [nodes[n]["metadata"]["labels"] for n in where]
        for key in terms:
            if any(key in own and one.get(key) == own[key] for one in beside):
                return False
    return True


def terms_of(spec, labels):
    """Return the keys of the terms that select pods with such labels."""
    terms = spec["affinity"]["podAntiAffinity"][HARD]
    return [one["topologyKey"] for one in terms if one["labelSelector"]["matchLabels"] == labels]


@pytest.mark.parametrize("seed", range(60))
def test_pods_go_where_a_scheduler_lets_them(seed):
    draw = random.Random(seed)
    nodes, spec, other_spec = drawn(draw)
    others = [draw.randrange(len(nodes)) for _ in range(draw.randint(0, 2))]
    before, pods = [], []
    for i, at in enumerate(others):
        pods.append(pod(f"q-{i}", f"n{at}", labels=OTHER, **other_spec))
        del pods[-1]["metadata"]["ownerReferences"]
    for i in range(draw.randint(1, 5)):
        free = [
            n for n in range(len(nodes)) if admits(nodes, spec, n, before, others, other_spec)
        ]  # fmt: skip
        at = draw.choice(free) if free and draw.random() < 0.6 else -1
        before += [at] * (at >= 0)
        pods.append(pod(f"p-{i}", f"n{at}" if at >= 0 else "", labels=MINE, **spec))
    result = solve(registry.read(listed(*nodes, *pods), format="kubernetes"))
    after = result.placement.node[result.placement.node >= 0].tolist()
    assert {one.kind for one in result.violations if one.hard} <= {"unassigned"}
    for n in set(after):
        rest = after.copy()
        rest.remove(n)
        if after.count(n) > before.count(n):
            assert admits(nodes, spec, n, rest, others, other_spec)
    if len(after) < len(result.placement.node):
        open_to = [admits(nodes, spec, n, after, others, other_spec) for n in range(len(nodes))]
        assert not any(open_to)


def reaches(nodes, at, zone):
    """Whether a node reaches a volume of a zone; all reach none."""
    return zone is None or nodes[at]["metadata"]["labels"].get(ZONE) == zone


@pytest.mark.parametrize("seed", range(60))
def test_pods_with_volumes_of_a_zone_go_where_a_scheduler_lets_them(seed):
    """Some were there before the spread was asked for, so that it may be broken."""
    draw = random.Random(seed)
    nodes, spec, _ = drawn(draw)
    alone = {"affinity": {"podAntiAffinity": {HARD: []}}}
    late, zonal = draw.random() < 0.5, draw.choice(["ab", "abc"])
    before, objects, zones = [], [], []
    for i in range(draw.randint(2, 5)):
        zone = draw.choice(zonal) if late or draw.random() < 0.7 else None
        free = [
            n for n in range(len(nodes))
            if reaches(nodes, n, zone) and not nodes[n]["spec"]["taints"]
            and (late or admits(nodes, spec, n, before, [], alone))
        ]  # fmt: skip
        at = draw.choice(free) if free and draw.random() < (0.9 if late else 0.6) else -1
        before += [at] * (at >= 0)
        zones.append(zone)
        has = {"volumes": uses(f"c{i}")} if zone else {}
        objects.append(pod(f"p-{i}", f"n{at}" if at >= 0 else "", labels=MINE, **spec, **has))
        objects += [volume(f"v{i}", ZONE, zone), claim(f"c{i}", f"v{i}")] if zone else []
    cluster = registry.read(listed(*nodes, *objects), format="kubernetes")
    result = solve(cluster)
    pods = [own.metadata.name for one in cluster.native.workloads for _, own in one.pods]
    at = dict(zip(pods, result.placement.node.tolist(), strict=True))
    after = [n for n in at.values() if n >= 0]
    broken = {one.kind for one in result.violations if one.hard} - {"unassigned"}
    assert late or not broken
    for name, n in at.items():
        zone = zones[int(name[2:])]
        if n < 0:
            lawful = [admits(nodes, spec, m, after, [], alone) for m in range(len(nodes))]
            assert not any(lawful[m] and reaches(nodes, m, zone) for m in range(len(nodes)))
            continue
        rest = after.copy()
        rest.remove(n)
        if broken or after.count(n) <= before.count(n):
            continue
        assert admits(nodes, spec, n, rest, [], alone)
    assert broken or is_spread(nodes, spec, after)
    ordered = [zones[int(name[2:])] for name, n in at.items() if n >= 0]
    fits = (map(partial(reaches, nodes), own, ordered) for own in permutations(after))
    assert any(map(all, fits))


def is_spread(nodes, spec, after):
    """Whether spreads hold of pods that stand on nodes without taints."""
    for one in spec["topologySpreadConstraints"]:
        labels = [each["metadata"]["labels"].get(one["topologyKey"]) for each in nodes]
        looked_at = {
            own for own, each in zip(labels, nodes, strict=True)
            if own and not ("nodeTaintsPolicy" in one and each["spec"]["taints"])
        }  # fmt: skip
        held = [[labels[n] for n in after].count(own) for own in looked_at]
        if held and all(labels[n] for n in after) and max(held) - min(held) > one["maxSkew"]:
            return False
    return True
