"""What nodes are for: tiers of Elasticsearch, roles of OpenSearch, indices on every node."""

import numpy as np
import pytest

from evenkeel.formats import registry
from tests.formats.systems.test_elasticsearch import settings, shard, text


def nodes_with(zones=(), **roles):
    """The answer of ``_nodes``, the roles of each node by its name."""
    nodes = {}
    for i, (name, own) in enumerate(roles.items()):
        zone = {"zone": zones[i]} if zones else {}
        nodes[name] = {"name": name, "transport_address": "x", "host": "h", "attributes": zone}
        nodes[name] |= {} if own is None else {"roles": own.split()}
    return text({"nodes": nodes})


def settings_of(**own):
    return text({"i": {"settings": {f"index.{k.replace('__', '.')}": v for k, v in own.items()}}})


def copies_on(names, kinds=""):
    """Copies of one shard, on nodes by their names."""
    kinds = kinds or "p" + "r" * len(names)
    return text([shard(prirep=k, node=n) for k, n in zip(kinds, names, strict=False)])


def may_hold(cluster, names):
    """Which nodes may hold the copies that may lead, as text of 0 and 1."""
    rule = cluster.rules[0]
    mask = np.ones(len(names), bool)
    for tag in (*rule.require, *rule.voters_require):
        mask &= cluster.nodes.tags[tag[1:]]
    order = [cluster.nodes.names.index(name) for name in names]
    return "".join(str(int(one)) for one in mask[order])


class TestTiers:
    @pytest.mark.parametrize(
        ("kind", "tiers", "allowed"),
        [
            ("include", "data_hot", "1010"), ("include", "data_hot,data_warm", "1110"),
            ("require", "data_hot", "1010"), ("require", "data_hot,data_warm", "0010"),
            ("exclude", "data_hot", "0101"), ("exclude", "data_cold", "1101"),
            ("include", "data_*", "0010"), ("include", "", "1111"),
        ],
    )  # fmt: skip
    def test_filters_of_tiers_look_at_roles(self, kind, tiers, allowed):
        own = {"hot": "data_hot ingest", "warm": "data_warm", "any": "data"}
        nodes = nodes_with(**own, content="data_content")
        own = settings_of(**{f"routing__allocation__{kind}___tier": tiers})
        cluster = registry.read(copies_on(["hot"]), nodes, own)
        assert may_hold(cluster, ["hot", "warm", "any", "content"]) == allowed
        whole = settings(**{f"cluster.routing.allocation.{kind}._tier": tiers})
        cluster = registry.read(copies_on(["hot"]), nodes, whole)
        kept = dict(zip(cluster.nodes.names, cluster.nodes.keeps.tolist(), strict=True))
        held = "".join(str(int(kept[name])) for name in ("hot", "warm", "any", "content"))
        assert held == allowed

    def test_nodes_whose_roles_nobody_told_are_of_any_tier(self):
        for kind in ("include", "require", "exclude"):
            own = settings_of(**{f"routing__allocation__{kind}___tier": "data_hot"})
            assert may_hold(registry.read(copies_on(["a"]), nodes_with(a=None), own), ["a"]) == "1"

    def test_another_filter_does_not_let_another_tier_in(self):
        own = settings_of(
            routing__allocation__include___tier="data_hot", routing__allocation__include__zone="y"
        )
        nodes = nodes_with("xyy", a="data_hot", b="data_hot", c="data_warm")
        assert may_hold(registry.read(copies_on(["b"]), nodes, own), "abc") == "010"
