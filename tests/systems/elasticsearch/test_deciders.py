"""Nothing is ordered that Elasticsearch's deciders refuse, and what they look at is said."""

import json
import random

import pytest

from evenkeel.model.errors import InvalidInput
from evenkeel.model.placement import Flag
from evenkeel.solving import solve
from evenkeel.systems import registry
from evenkeel.systems.elasticsearch.format import FORMAT

GB = 2**30
LOW = "cluster.routing.allocation.disk.watermark.low"


def text(value):
    return json.dumps(value).encode()


def shard(index="i", number=0, prirep="p", node="a", size=GB, **more):
    state = "STARTED" if node else "UNASSIGNED"
    row = {"index": index, "shard": str(number), "prirep": prirep, "state": state, "node": node}
    return row | {"store": str(size) if node else None} | more


def disk(node, used, total=100, own=0):
    told = {"disk.used": used, "disk.total": total, "disk.indices": own}
    return {"node": node} | {name: str(int(size * GB)) for name, size in told.items()}


def nodes(version="8.4.1", **attributes):
    return text(
        {
            "nodes": {
                f"id-{name}": {
                    "name": name, "transport_address": "x", "host": own.get("host", name),
                    "ip": "10.0.0.1", "roles": own.get("roles", ["data"]),
                    "version": own.get("version", version),
                }
                for name, own in attributes.items()
            }
        }
    )  # fmt: skip


def settings(kind="persistent", **named):
    told = {name.replace("__", "."): value for name, value in named.items()}
    return text({"persistent": {}, "transient": {}} | {kind: told})


def notes_of(cluster):
    return " | ".join(FORMAT.left_out(cluster))


def closed(cluster, p=0):
    """Return the nodes that a partition may not come to, by name."""
    banned = cluster.forbidden[cluster.forbidden[:, 0] == p, 1]
    return "".join(cluster.nodes.names[n] for n in sorted(banned))


class TestWatermarks:
    @pytest.mark.parametrize(
        ("low", "shut"),
        [
            ("85%", "cd"), ("0.85", "cd"), ("15gb", "cd"), ("86%", "d"), ("95%", ""), ("5gb", ""),
        ],
    )  # fmt: skip
    def test_who_is_above_takes_nothing(self, low, shut):
        rows = [disk("a", 10), disk("b", 85), disk("c", 86), disk("d", 95)]
        given = settings(cluster__routing__allocation__disk__watermark__low=low)
        cluster = registry.read(text([shard()]), text(rows), given)
        assert closed(cluster) == shut
        assert (f"{LOW} of {low}" in notes_of(cluster)) is bool(shut)

    def test_no_thresholds_no_watermarks(self):
        given = settings(cluster__routing__allocation__disk__threshold_enabled="false")
        cluster = registry.read(text([shard()]), text([disk("a", 10), disk("b", 99)]), given)
        assert closed(cluster) == ""

    @pytest.mark.parametrize(
        ("version", "kind", "told", "room"),
        [
            ("8.4.3", "persistent", {}, 8500), ("8.5.0", "persistent", {}, 9800),
            ("9.1.0", "persistent", {}, 9800), ("2.19.0", "persistent", {}, 8500),
            ("8.5.0", "persistent", {"low": "85%"}, 8500),
            ("8.5.0", "persistent", {"low": "85%", "low.max_headroom": "1000gb"}, 9000),
            ("8.5.0", "defaults", {"low": "85%"}, 9800),
            ("8.5.0", "defaults", {"low": "85%", "low.max_headroom": "-1"}, 8500),
        ],
    )  # fmt: skip
    def test_headroom_bounds_what_usual_watermarks_leave(self, version, kind, told, room):
        named = {f"{LOW[:-3]}{name}": value for name, value in told.items()}
        given = text({"persistent": {}, "transient": {}} | {kind: named})
        rows = text([disk("a", 100, 10000), disk("b", 100, 10000)])
        cluster = registry.read(text([shard()]), rows, nodes(version, a={}, b={}), given)
        assert cluster.nodes.capacity[0, 1] == (room - 100) * GB

    def test_what_comes_counts_and_what_leaves_still_does(self):
        moving = shard(size=10 * GB, state="RELOCATING", node="a -> 10.0.0.2 id-b b")
        rows = [disk("a", 90, own=10), disk("b", 80), disk("c", 10)]
        made = shard("j", prirep="p", node="c", size=GB, state="INITIALIZING")
        cluster = registry.read(text([moving, made]), text(rows))
        assert closed(cluster, 0) == "a"
        assert closed(cluster, 1) == "ab"

    def test_no_copy_makes_a_node_overfull_that_is_not(self):
        # the primary is larger than the replica that stands beside the watermark
        rows = [shard(size=9 * GB), shard(prirep="r", node="b", size=5 * GB)]
        cluster = registry.read(text(rows), text([disk("a", 50, own=9), disk("b", 85, own=5)]))
        assert not solve(cluster).violations

    def test_mounted_snapshots_and_their_nodes_ask_for_no_watermark(self):
        given = text({"i": {"settings": {"index.store.snapshot.partial": "true"}}})
        two = nodes(a={"roles": ["data_frozen"]}, b={"roles": ["data"]})
        rows = text([disk("a", 95), disk("b", 10)])
        cluster = registry.read(text([shard(size=0)]), rows, two, given)
        assert closed(cluster) == ""
        assert "above" not in notes_of(cluster)

    def test_a_flooded_node_is_named(self):
        cluster = registry.read(text([shard()]), text([disk("a", 96), disk("b", 10)]))
        assert "above the flood stage: a (96.0%)" in notes_of(cluster)


class TestNodes:
    def test_disks_that_nobody_tells(self):
        rows = text([{"node": "a", "disk.used": None, "disk.total": None}])
        cluster = registry.read(text([shard()]), rows, nodes(a={}, b={}))
        assert "no room of disks of a, b: they count as large enough" in notes_of(cluster)

    def test_a_node_that_no_table_has_is_like_the_average(self):
        rows = text([disk("a", 50, 100, 20), disk("b", 150, 300, 60)])
        cluster = registry.read(text([shard()]), rows, nodes(a={}, b={}, c={}))
        # 85 % of 200, less the average of what is no shard's
        assert cluster.nodes.capacity[2, 1] == (170 - 60) * GB
        assert "no room of disks of c: they count as the average" in notes_of(cluster)

    @pytest.mark.parametrize(("letters", "held"), [("mi", "a"), ("-", "a"), ("dim", "ab")])
    def test_roles_by_letters(self, letters, held):
        rows = [disk("a", 1) | {"node.role": "d"}, disk("b", 1) | {"node.role": letters}]
        cluster = registry.read(text([shard()]), text(rows))
        assert "".join(cluster.nodes.names) == held

    @pytest.mark.parametrize("told", [{"data": "false"}, {"client": "true"}])
    def test_early_releases_tell_by_attributes_who_holds_no_data(self, told):
        own = {"transport_address": "inet[x]", "version": "1.7.1"}
        both = {"x": own | {"name": "a"}, "y": own | {"name": "b", "attributes": told}}
        cluster = registry.read(text([shard()]), text({"nodes": both}))
        assert list(cluster.nodes.names) == ["a"]

    def test_shards_on_strange_nodes_are_left_alone(self):
        rows = [shard(node="gone"), shard(prirep="r", node="b"), shard("j", node="b")]
        cluster = registry.read(text(rows), nodes(a={}, b={}))
        n = cluster.nodes.names.index("gone")
        assert not cluster.nodes.accepts[n]
        assert cluster.placement.flags[0] & Flag.PINNED
        assert "shards are on gone, which hold no data by _nodes" in notes_of(cluster)
        assert all(one.source != "gone" for one in solve(cluster).moves)

    def test_stale_rows_are_passed_over(self):
        gone = {"node_id": "z", "type": "REMOVE", "shutdown_startedmillis": 1}
        cluster = registry.read(
            text([shard()]),
            nodes(a={}),
            text([disk("a", 1), disk("z", 1)]),
            text({"nodes": [gone]}),
        )
        said = notes_of(cluster)
        assert "room of z, which _nodes does not list" in said
        assert "z is shut down" in said


class TestRules:
    @pytest.mark.parametrize(("same", "shut"), [("true", "b"), ("false", "")])
    def test_no_shard_goes_to_another_node_of_its_host(self, same, shut):
        given = settings(cluster__routing__allocation__same_shard__host=same)
        four = nodes(a={"host": "x"}, b={"host": "x"}, c={"host": "y"}, d={"host": "y"})
        cluster = registry.read(text([shard()]), four, given)
        assert closed(cluster) == shut
        cluster = registry.read(
            text([shard()]), four, given, text([disk(name, 1) for name in "abcd"])
        )
        said = notes_of(cluster)
        assert "report the same disk: a, b, c, d" in said
        assert ("copies of a shard may share it" in said) == (same == "false")

    def test_an_index_for_all_nodes_may_be_twice_on_a_host(self):
        given = settings(cluster__routing__allocation__same_shard__host="true")
        own = text({"i": {"settings": {"index.auto_expand_replicas": "0-all"}}})
        two = nodes(a={"host": "x"}, b={"host": "x"})
        assert closed(registry.read(text([shard()]), two, given, own)) == ""

    def test_no_copy_goes_to_an_older_release_than_its_primary(self):
        three = nodes(a={"version": "8.2.0"}, b={"version": "8.10.1"}, c={"version": "8.10.1"})
        rows = [shard(node="b"), shard("j", node="a")]
        cluster = registry.read(text(rows), three)
        assert (closed(cluster, 0), closed(cluster, 1)) == ("a", "")
        assert "several releases, 8.2.0, 8.10.1" in notes_of(cluster)

    def test_an_attribute_that_no_node_has_holds_everything(self):
        given = settings(cluster__routing__allocation__awareness__attributes="rack")
        cluster = registry.read(text([shard()]), nodes(a={}, b={}), given)
        assert closed(cluster) == "b"
        assert "names rack, which no node has" in notes_of(cluster)

    @pytest.mark.parametrize(
        ("name", "value", "said"),
        [
            ("cluster.routing.allocation.enable", "primaries", "is primaries"),
            ("cluster.routing.rebalance.enable", "none", "is none"),
            ("cluster.routing.allocation.enable", "all", ""),
        ],
    )
    def test_what_holds_shards_is_said(self, name, value, said):
        cluster = registry.read(text([shard()]), settings(**{name: value}))
        assert (f"{name} {said}" in notes_of(cluster)) is bool(said)

    def test_what_holds_shards_of_an_index_is_said(self):
        own = text({"i": {"settings": {"index.routing.allocation.enable": "none"}}})
        said = notes_of(registry.read(text([shard()]), own))
        assert "index.routing.allocation.enable is not all of i" in said

    @pytest.mark.parametrize(("value", "kept"), [("3", False), ("-1", True)])
    def test_rules_that_are_not_kept_are_named(self, value, kept):
        name = "index.routing.allocation.total_primary_shards_per_node"
        said = notes_of(registry.read(text([shard()]), text({"i": {"settings": {name: value}}})))
        assert (f"{name} is set and not kept" in said) is not kept

    def test_allocations_that_failed_are_named(self):
        lost = shard(prirep="r", node=None) | {"unassigned.reason": "ALLOCATION_FAILED"}
        assert "allocation of i/0 failed" in notes_of(registry.read(text([shard(), lost])))


def drawn(seed):
    """Return random rows of shards and disks, and nodes on hosts and of releases."""
    draw = random.Random(seed)
    names = [f"n{i}" for i in range(draw.randint(3, 7))]
    own = {
        name: {"host": f"h{i // 2}", "version": draw.choice(["8.4.1", "8.4.1", "8.9.0"])}
        for i, name in enumerate(names)
    }
    rows = []
    for number in range(draw.randint(4, 14)):
        held = draw.sample(names, 2)
        if own[held[0]]["host"] == own[held[1]]["host"]:
            held[1:] = [None]
        size = draw.randint(1, 6) * GB
        rows += [shard("i", number, "p", held[0], size), shard("i", number, "r", held[1], size)]
    stored = {name: sum(int(r["store"]) / GB for r in rows if r["node"] == name) for name in names}
    disks = {}
    for name in names:
        used = stored[name] + draw.choice([5, 30, 60, 75, 80])
        disks[name] = disk(name, used, draw.choice([100, 110]), stored[name])
    return rows, disks, own


@pytest.mark.parametrize("seed", range(40))
def test_no_command_is_one_that_a_decider_refuses(seed, tmp_path):
    rows, disks, own = drawn(seed)
    given = settings(cluster__routing__allocation__same_shard__host="true")
    cluster = registry.read(text(rows), text([*disks.values()]), nodes(**own), given)
    result = solve(cluster, seed=seed)
    registry.write(cluster, tmp_path / "plan.json", placement=result.placement)
    later = sorted(tmp_path.glob("plan.[0-9].json"))
    rounds = [json.loads(file.read_text())["commands"] for file in (tmp_path / "plan.json", *later)]
    used = {name: int(row["disk.used"]) for name, row in disks.items()}
    at = {}
    for row in rows:
        at.setdefault(row["shard"], {})[row["prirep"]] = row["node"]
    sizes = {row["shard"]: int(row["store"]) for row in rows if row["store"]}
    primary = {number: copies["p"] for number, copies in at.items()}
    for commands in rounds:
        left = []
        for of in [told for command in commands for told in command.values()]:
            number, target = str(of["shard"]), of.get("to_node") or of["node"]
            copies, total = at[number], int(disks[target]["disk.total"])
            assert used[target] <= 0.85 * total, "above the low watermark"
            assert used[target] + sizes[number] <= 0.90 * total, "above the high one"
            hosts = {own[node]["host"] for node in copies.values() if node}
            assert own[target]["host"] not in hosts, "a copy on the host"
            assert own[target]["version"] >= own[primary[number]]["version"], "an older release"
            used[target] += sizes[number]
            source = of.get("from_node")
            left += [(source, sizes[number])] if source else []
            copies[next((k for k, node in copies.items() if node == source), "r")] = target
        for source, size in left:
            used[source] -= size


class TestListings:
    def test_shards_that_no_row_tells_fill_disks(self):
        rows = [disk("a", 60, own=55) | {"shards": "9"}, disk("b", 10, own=1) | {"shards": "1"}]
        told = [shard(size=5 * GB), shard(prirep="r", node="b", size=GB)]
        cluster = registry.read(text(told), text(rows))
        # 85 of which 55 are of shards that are not listed, or of other things
        assert cluster.nodes.capacity[0, 1] == (85 - 55) * GB
        assert "not all shards of nodes" in notes_of(cluster)
        assert "a (1 of 9); the others stay, on a node that is drained as well" in notes_of(cluster)

    @pytest.mark.parametrize(
        "told",
        [
            b"10.0.0.1 8 97 3 0.01 0.02 0.03 dilm * a\n10.0.0.2 8 97 3 0.01 0.02 0.03 m - b\n",
            b"es1 10.0.0.1 8 97 0.01 d * a\nes2 10.0.0.2 8 97 0.01 - m b\n",
            b"10.0.0.1 8 97 3 dim data,ingest,master * a\n10.0.0.2 8 97 3 m master - b\n",
        ],
    )
    def test_nodes_without_a_header(self, told):
        cluster = registry.read(text([shard()]), told)
        assert "no attributes of nodes" in notes_of(cluster)
        assert dict(zip(cluster.nodes.names, cluster.nodes.accepts.tolist(), strict=True)) in (
            {"a": True}, {"a": True, "b": False}
        )  # fmt: skip

    @pytest.mark.parametrize(
        "told",
        [
            b"GET _cat/nodeattrs\na h 10.0.0.1 rack r1\n",
            b"$ curl -s 'es:9200/_cat/nodeattrs?h=node,attr,value'\na rack r1\n",
            b"GET _cat/nodeattrs?v&h=node,attr,value\nnode attr value\na    rack r1\n",
            b"node  host     ip       attr value\na h 10.0.0.1 rack r1\nab i 10.0.0.2 rack r2\n",
        ],
    )
    def test_the_columns_of_a_request(self, told):
        notes = notes_of(registry.read(text([shard()]), told))
        assert "no roles of nodes" in notes

    def test_hidden_indices_have_settings_too(self):
        own = text({"i": {"settings": {"index.number_of_replicas": "0"}}})
        cluster = registry.read(text([shard(), shard(".ds-logs-1")]), own)
        assert "no settings of .ds-logs-1" in notes_of(cluster)

    @pytest.mark.parametrize(
        "told",
        [
            b"ip heap.percent name\n1.1.1.1 5 a\n",
            b'{"index": "i", "shard": 0, "primary": true, "can_allocate": "no"}',
            b'{"cluster_name": "es", "status": "green", "relocating_shards": 0}',
            b'{"stats": {}, "cluster_balance_stats": {}, "routing_table": {"i": {}}}',
            b"health status index uuid pri rep docs.count\ngreen open i x 1 1 5\n",
        ],
    )
    def test_other_answers_are_refused_with_a_hint(self, told):
        with pytest.raises(InvalidInput, match="give _cat/shards, _cat/allocation"):
            registry.read(told)

    def test_settings_without_transient_ones(self):
        given = text({"persistent": {"cluster.routing.allocation.exclude._name": "a"}})
        assert not registry.read(text([shard()]), given).nodes.keeps[0]
