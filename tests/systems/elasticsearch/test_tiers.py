"""What nodes are for: tiers of Elasticsearch, roles of OpenSearch, indices on every node."""

import json

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.audit import audit
from evenkeel.systems import registry
from evenkeel.systems.elasticsearch.exchanges import Exchange, orders
from evenkeel.systems.elasticsearch.format import FORMAT
from evenkeel.systems.folders.carrier import Change
from tests.systems.elasticsearch.test_format import settings, shard, text


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


ZONES = settings(cluster__routing__allocation__awareness__attributes="zone")


def too_close(cluster):
    """How often copies are closer together than they may be."""
    return audit(cluster, cluster.placement).counts["spread"]


def solved(cluster):
    """Where the copies of the first shard are once it is solved, and what is broken then."""
    result = ek.solve(cluster)
    nodes = [cluster.nodes.names[n] if n >= 0 else None for n in result.placement.nodes[0]]
    return nodes, [one.kind for one in result.violations]


class TestRolesOfOpenSearch:
    ROLES = {"d1": "data", "d2": "data ingest", "d3": "data", "s1": "search", "s2": "search",
             "w1": "warm"}  # fmt: skip

    def test_search_replicas_are_on_nodes_that_search(self):
        cluster = registry.read(copies_on(["d1", "s1", "d2"], "psr"), nodes_with(**self.ROLES))
        assert may_hold(cluster, self.ROLES) == "111000"
        assert solved(cluster) == (["d1", "d2", "s1"], [])
        wrong = registry.read(copies_on(["d1", "s1", "d2"], "prs"), nodes_with(**self.ROLES))
        nodes, broken = solved(wrong)
        assert not broken
        assert {*nodes[:2]} < {"d1", "d2", "d3"}
        assert nodes[2] in ("s1", "s2")

    def test_search_replicas_that_fit_nowhere_are_not_put_elsewhere(self):
        given = settings(cluster__routing__allocation__exclude___name="s1,s2")
        nodes = nodes_with(**self.ROLES)
        cluster = registry.read(copies_on(["d1", "s1", "d2"], "psr"), nodes, given)
        assert solved(cluster)[0][2] in ("s1", None)

    def test_without_roles_those_that_only_hold_search_replicas_are_for_them(self):
        cluster = registry.read(copies_on(["a", "b", "c"], "prs"))
        assert may_hold(cluster, "abc") == "110"
        assert solved(cluster) == (["a", "b", "c"], [])

    @pytest.mark.parametrize(
        ("own", "on", "allowed"),
        [
            ({"store__type": "remote_snapshot"}, "w1", "000001"),
            ({"warm": "true"}, "w1", "000001"), ({}, "w1", "000001"), ({}, "d1", "111000"),
            ({"codec": "x"}, "w1", "111000"),
        ],
    )  # fmt: skip
    def test_what_is_stored_remotely_is_on_warm_nodes(self, own, on, allowed):
        cluster = registry.read(copies_on([on]), nodes_with(**self.ROLES), settings_of(**own))
        assert may_hold(cluster, self.ROLES) == allowed

    def test_before_there_were_warm_nodes_it_was_on_those_that_search(self):
        own = settings_of(store__type="remote_snapshot")
        nodes = nodes_with(a="data", b="search", c="data search")
        assert may_hold(registry.read(copies_on(["b"]), nodes, own), "abc") == "011"

    def test_awareness_counts_search_replicas_on_their_own(self):
        roles = {"a": "data", "b": "data", "c": "data", "s": "search", "t": "search"}
        nodes = nodes_with("xyyxy", **roles)
        good = registry.read(copies_on(["a", "b", "s", "t"], "prss"), nodes, ZONES)
        assert solved(good) == (["a", "b", "s", "t"], [])
        cluster = registry.read(copies_on(["b", "c", "t"], "prs"), nodes, ZONES)
        assert too_close(cluster)
        moved, broken = solved(cluster)
        assert not broken
        assert "a" in moved

    def test_commands_do_not_move_copies_between_roles(self, tmp_path):
        rows = copies_on(["d1", None, "s1"], "prs")
        cluster = registry.read(rows, nodes_with(**self.ROLES))
        names = cluster.nodes.names
        node = np.array([names.index(name) for name in ("d1", "d2", "s2")], np.int32)
        placement = cluster.placement.replaced(node, cluster.placement.leader)
        file = registry.write(cluster, tmp_path / "p.json", placement=placement)[0]
        told = json.loads(file.read_text())["commands"]
        moved = {"index": "i", "shard": 0, "from_node": "s1", "to_node": "s2"}
        made = {"index": "i", "shard": 0, "node": "d2"}
        assert told == [{"move": moved}, {"allocate_replica": made}]
        change = Change(0, "i/0", (*cluster.placement.node.tolist(),), (*node.tolist(),),
                        0, 0, False, (int(node[1]), int(node[2])))  # fmt: skip
        (wave,) = FORMAT.carrier.orders(cluster, [[change]])
        words = wave.commands[0].run
        assert json.loads(words[words.index("-d") + 1])["commands"] == told


class TestEverywhere:
    @pytest.mark.parametrize("expand", ["0-all", "1-all", "0-3", "false"])
    def test_nothing_keeps_an_index_apart_that_is_on_each_node(self, expand):
        nodes = nodes_with(["x", "x", "x", "y", ""], **dict.fromkeys("abcde", "data"))
        given = settings(
            cluster__routing__allocation__awareness__attributes="zone",
            **{"cluster.routing.allocation.same_shard.host": "true"},
        )
        own = settings_of(auto_expand_replicas=expand)
        cluster = registry.read(copies_on("abcde"), nodes, given, own)
        broken = too_close(cluster)
        assert bool(broken) is ("all" not in expand)


def test_a_primary_is_cancelled_after_the_other_copies():
    """Elasticsearch promotes one of those that are left, which may not be cancelled next."""
    given = ({"index": "i", "shard": 0}, [Exchange([0, 1], [])], ["a", "b", "c"], {})
    cancels, moves, copies = orders(*given, primary=0)
    assert [one["cancel"]["node"] for one in cancels] == ["b", "a"]
    assert [one["cancel"]["allow_primary"] for one in cancels] == [False, True]
    assert moves == copies == []
