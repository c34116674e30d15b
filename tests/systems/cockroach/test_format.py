"""CockroachDB's tools print it, we read it; what we write are its statements."""

import builtins
import csv
import io
import json
import re

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.loads import node_loads
from evenkeel.model.errors import InvalidInput
from evenkeel.model.placement import Role
from evenkeel.systems import registry
from evenkeel.systems.cockroach.format import FORMAT, left_out
from evenkeel.systems.cockroach.zones import parse_flow
from tests.support import places
from tests.support.clusters import assert_same

DATA = places.DATA / "formats" / "cockroach"
RANGES, NODES, SQL, YAML, STORES = (
    DATA / name
    for name in ("ranges.csv", "node_status.csv", "zones.sql", "zones.yaml", "store_status.tsv")
)


def faults_of(*sources):
    with pytest.raises(InvalidInput) as caught:
        registry.read(*sources, format="cockroach")
    return [(fault.path, fault.value) for fault in caught.value.faults]


def as_json(file, lines=False):
    rows = [*csv.DictReader(io.StringIO(file.read_text()))]
    if lines:
        return "\n".join(map(json.dumps, rows)).encode()
    return json.dumps(rows).encode()


def as_tsv(file):
    text = io.StringIO()
    rows = csv.reader(io.StringIO(file.read_text()))
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


@pytest.fixture(scope="module")
def cluster():
    return registry.read(RANGES, NODES, SQL)


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


def rows_of(file):
    with file.open(newline="") as lines:
        return [*csv.reader(lines)]


def as_printed(file, *, frame=False, ends=""):
    """A table for people, framed as before 2.1, or with ``ends`` of cells that go on, as psql."""
    rows = rows_of(file)
    width = [
        max(len(line) for row in rows for line in row[i].split("\n")) for i in range(len(rows[0]))
    ]
    rule = "+".join("-" * (w + 2) for w in width)
    lines = ["root@:26257/> SHOW IT;", *([f"+{rule}+"] if frame else [])]
    for number, row in enumerate(rows):
        cells = [cell.split("\n") for cell in row]
        for turn in range(max(map(len, cells))):
            goes_on = [turn + 1 < len(own) for own in cells]
            shown = [own[turn] if turn < len(own) else "" for own in cells]
            line = "|".join(
                f" {text:<{w}}{ends if more and ends else ' '}"
                for text, w, more in zip(shown, width, goes_on, strict=True)
            )
            lines.append(f"|{line}|" if frame else line)
        lines += [f"+{rule}+" if frame else rule] * (number == 0)
    lines += [f"+{rule}+"] * frame
    return "\n".join([*lines, f"({len(rows) - 1} rows)", "", "Time: 3ms total", ""]).encode()


def as_records(file):
    """Each row as a table of its own, as --format=records prints it."""
    names, *rows = rows_of(file)
    lines = []
    for number, row in enumerate(rows, 1):
        lines.append(f"-[ RECORD {number} ]")
        for name, cell in zip(names, row, strict=True):
            first, *others = cell.split("\n")
            lines += [f"{name:<22}| {first}", *(f"{'':<22}| {other}" for other in others)]
    return "\n".join(lines).encode()


class TestReading:
    @pytest.mark.parametrize(
        ("locality", "tiers"),
        [
            ({"az": "b", "region": "us"}, ("region", "az")),
            ({"rack": "1", "dc": "x", "cloud": "c"}, ("cloud", "dc", "rack")),
            ({"tiers": [{"key": "az", "value": "b"}, {"key": "region", "value": "u"}]},
             ("az", "region")),
            ({"floor": "b", "building": "us"}, ("floor", "building")),
        ],
    )  # fmt: skip
    def test_tiers_that_an_object_names_are_widest_first(self, locality, tiers):
        nodes = [
            {"id": n, "address": f"r{n}", "is_live": True, "locality": json.dumps(locality)}
            for n in (1, 2)
        ]
        rows = b"start_key,end_key,range_id,replicas,lease_holder\na,b,41,{1},1\n"
        cluster = registry.read(rows, json.dumps(nodes).encode(), format="cockroach")
        assert cluster.topology.tiers[: len(tiers)] == tiers
        notes = "; ".join(registry.find("cockroach").left_out(cluster))
        assert ("how wide building, floor is" in notes) == ("floor" in tiers)

    def test_stores_and_their_states(self, cluster):
        assert list(cluster.nodes.names) == ["1", "2", "3", "4", "5", "6", "7"]
        assert cluster.topology.tiers[:2] == ("region", "az")
        assert cluster.nodes.alive.tolist() == [1, 1, 0, 1, 1, 1, 1]
        assert cluster.nodes.keeps.tolist() == [1, 1, 0, 0, 1, 1, 1]

    def test_ranges(self, cluster):
        assert list(cluster.partitions.names) == ["41", "42", "43", "44"]
        assert list(cluster.partitions.group_names) == ["public.users", "public.rides"]
        assert cluster.placement.nodes[:, :3].tolist() == [
            [0, 1, 3],
            [1, 2, 4],
            [0, 3, 5],
            [2, 4, 5],
        ]
        assert cluster.placement.leader_node.tolist() == [0, 2, 3, 4]
        assert cluster.placement.role[cluster.placement.first[2] + 2] == Role.NON_VOTER
        size = cluster.partitions.load.voter[:, cluster.bytes_dimension]
        assert size.tolist() == [120e6, 90e6, 64e6, 70e6]

    def test_replicas_stay_apart_by_locality_without_a_zone_configuration(self):
        """As in CockroachDB, and below what constraints ask."""
        ranges = "range_id,replicas,lease_holder\n" + "".join(
            f'{r},"{{{1 + r % 2},{3 + r % 2},5}}",5\n' for r in range(30)
        )
        status = "id,locality,is_available,is_live\n" + "".join(
            f"{n},region={region},true,true\n"
            for n, region in enumerate(("us", "us", "eu", "eu", "asia", "asia", "us"), 1)
        )
        found = registry.read(ranges.encode(), status.encode())
        assert found.rules[0].spread["region"] == (1, "soft")
        result = ek.solve(found, "balance", goals=ek.Goals(level=0.2, leaders=0.2))
        assert result.comparison.moves > 0
        regions = found.topology.domain[0][result.placement.nodes]
        assert (np.diff(np.sort(regions, axis=1), axis=1) > 0).all()

    def test_zones_are_inherited(self, cluster):
        assert cluster.partitions.rule.tolist() == [0, 0, 1, 1]
        users, rides = cluster.rules
        assert users.place == {"region=us-east1": 2}
        assert users.lead == ["region=us-east1,az=b", "region=us-east1"]
        assert rides.voters_require == ["az!=c"]
        assert cluster.partitions.voters.tolist() == [3, 3, 2, 2]

    @pytest.mark.parametrize(
        "form",
        [
            as_json, lambda f: as_json(f, lines=True), as_tsv, as_printed, as_records,
            lambda f: as_printed(f, frame=True), lambda f: as_printed(f, ends="+"),
        ],
    )  # fmt: skip
    def test_json_and_tabs_are_read_alike(self, cluster, form):
        assert_same(registry.read(form(RANGES), form(NODES), SQL), cluster)

    def test_yaml_says_what_sql_says(self, cluster):
        assert registry.read(RANGES, NODES, YAML).native.configs == cluster.native.configs

    def test_what_the_tool_prints_of_zones_says_what_sql_says(self, cluster):
        _, _, statements = SQL.read_text().partition("\n")  # but for a comment
        rows = [text.strip() for text in statements.split(";") if text.strip()]
        table = io.StringIO()
        csv.writer(table).writerows([["target", "raw_config_sql"], *(["x", one] for one in rows)])
        table.write("RANGE liveness,NULL\n")
        assert_same(registry.read(RANGES, NODES, table.getvalue().encode()), cluster)

    def test_without_a_column_the_database_is_the_one_that_has_zones(self):
        ranges = (
            b"range_id,schema_name,table_name,replicas,voting_replicas\n"
            b'70,public,users,"{1,2,3}","{1,2,3}"\n71,public,rides,"{1,2,3}","{1,2,3}"\n'
        )

        def wanted(*zones):
            statements = [
                f"ALTER {target} CONFIGURE ZONE USING num_replicas = {count};"
                for target, count in zones
            ]
            found = registry.read(ranges, "\n".join(statements).encode(), format="cockroach")
            told = [text for text in FORMAT.left_out(found) if "database" in text]
            return found.partitions.replicas.tolist(), len(told)

        # every cluster has zones of its own tables: they are nobody else's
        own = ("DATABASE system", 5), ("TABLE system.public.tenant_usage", 7)
        assert wanted(*own) == ([3, 3], 0)
        assert wanted(*own, ("DATABASE movr", 5)) == ([5, 5], 1)
        assert wanted(*own, ("TABLE movr.public.users", 5)) == ([5, 3], 1)
        ranges = ranges.replace(b"schema_name,", b"").replace(b"public,", b"")
        assert wanted(*own, ("TABLE movr.public.users", 5)) == ([5, 3], 1)
        assert wanted(("INDEX movr.public.users@x", 5), ("DATABASE movr", 4)) == ([4, 4], 1)
        # a zone of a table that is not among them tells that its database is another
        others = ("DATABASE other", 7), ("TABLE other.public.trips", 9)
        assert wanted(*others, ("TABLE movr.public.users", 5)) == ([5, 3], 1)
        with pytest.raises(InvalidInput, match=r"no database_name \(got \['movr', 'other'\]\)"):
            wanted(*others, ("DATABASE movr", 5))
        with pytest.raises(InvalidInput, match=r"no database_name \(got \['movr', 'other'\]\)"):
            wanted(("TABLE other.public.users", 7), ("TABLE movr.public.users", 5))

    def test_one_zone_alone_is_everybodys(self):
        zone = b"num_replicas: 5\nconstraints: {+region=us-east1: 2}\nrange_max_bytes: 9\n"
        cluster = registry.read(RANGES, NODES, zone)
        assert cluster.partitions.replicas.tolist() == [5] * 4
        assert cluster.rules[0].place == {"region=us-east1": 2}

    def test_stores_of_their_own(self):
        cluster = registry.read(RANGES, NODES, STORES)
        assert cluster.nodes.tags["nvme"].tolist() == [0, 0, 0, 0, 1, 0, 0]
        capacity = cluster.nodes.capacity[:, cluster.bytes_dimension]
        # what these ranges do not use others do, and CockroachDB fills no disk beyond 92.5 %
        held = node_loads(cluster, cluster.placement)[:, cluster.bytes_dimension]
        assert np.allclose(
            capacity - held, 0.925 * np.array([2e12] * 4 + [4e12] + [2e12] * 2) - 5e11
        )
        plain = b"node_id,store_id,capacity\n" + b"".join(
            b"%d,%d,9e12\n" % (i, i) for i in range(1, 8)
        )
        untold = registry.read(RANGES, NODES, plain)
        assert untold.nodes.capacity[:, untold.bytes_dimension].tolist() == [9e12] * 7
        assert any("no used bytes of stores" in one for one in left_out(untold))

    def test_ranges_alone_tell_where_their_replicas_are(self):
        cluster = registry.read(RANGES)
        assert list(cluster.nodes.names) == ["1", "2", "3", "4", "5", "6"]
        assert cluster.topology.domain_name(1, cluster.topology.domain[1, 4]).endswith("b")

    def test_the_internal_table_has_other_columns(self):
        table = b'range_id,start_pretty,replicas,lease_holder\n7,/Min,"{1,2}",2\n8,/Max,{2},NULL\n'
        cluster = registry.read(table)
        assert cluster.placement.nodes.tolist() == [[0, 1], [1, -1]]
        assert cluster.placement.leader_node.tolist() == [1, -1]

    def test_ranges_of_no_table_have_zones_of_their_own(self, tmp_path):
        """As crdb_internal.ranges shows them since 23.1: by their start keys alone."""
        starts = (
            "/Min", "/Meta2/Max", "/System/NodeLiveness", "/System/tsd", "/System/x", "/Table/40",
            "/Table/SystemConfigSpan/Start", "/NamespaceTable/30", "/Table/104",
        )  # fmt: skip
        ranges = "range_id,start_pretty,replicas,lease_holder\n" + "".join(
            f'{i},{start},"{{1,2,3}}",1\n' for i, start in enumerate(starts)
        )
        zones = "".join(
            f"ALTER {target} CONFIGURE ZONE USING num_replicas = {count};\n"
            for count, target in enumerate(
                ("RANGE default", "RANGE meta", "RANGE liveness", "RANGE timeseries",
                 "RANGE system", "DATABASE system", "DATABASE movr"), start=3,
            )
        )  # fmt: skip
        cluster = registry.read(ranges.encode(), zones.encode())
        wanted = [4, 4, 5, 6, 7, 8, 8, 8, 9]
        assert cluster.partitions.replicas.tolist() == wanted
        (file,) = registry.write(cluster, tmp_path / "ranges.csv", "cockroach")
        again = registry.read(file, zones.encode())
        assert again.partitions.replicas.tolist() == wanted
        # where the table is told, it tells the zone, of an older range of system, too
        named = ranges.replace("lease_holder", "lease_holder,database_name,table_name").replace(
            "1\n", "1,system,jobs\n"
        )
        table = zones + "ALTER TABLE system.public.jobs CONFIGURE ZONE USING num_replicas = 5;"
        cluster = registry.read(named.encode(), table.encode())
        assert cluster.partitions.replicas.tolist() == [4, 4, 5, 6, 7, 5, 5, 5, 5]

    def test_a_table_without_rows_is_a_cluster_without_ranges(self):
        cluster = registry.read(b"range_id,replicas,lease_holder\n", NODES)
        assert (len(cluster.partitions), len(cluster.nodes)) == (0, 7)

    def test_tenants_are_ranges_of_the_cluster_or_all_that_there_is(self):
        zones = (
            b"ALTER RANGE default CONFIGURE ZONE USING num_replicas = 3;\n"
            b"ALTER DATABASE system CONFIGURE ZONE USING num_replicas = 5;\n"
            b"ALTER RANGE tenants CONFIGURE ZONE USING num_replicas = 7;\n"
        )

        def wanted(*starts):
            rows = "".join(f'{i},{start},"{{1,2}}"\n' for i, start in enumerate(starts))
            ranges = f"range_id,start_pretty,replicas\n{rows}".encode()
            return registry.read(ranges, zones).partitions.replicas.tolist()

        tenant = "/Tenant/10/Table/4", "/Tenant/10/Table/104", "/Tenant/10"
        assert wanted("/Min", *tenant) == [2, 7, 7, 7]  # RANGE meta is left out
        assert wanted(*tenant[:2]) == [5, 3]

    def test_each_range_is_kept_apart_by_its_own_number_of_replicas(self):
        """Those of the meta ranges are more than those of users."""
        places = [f"region={region}" for region in "abcabc"]
        status = "id,locality,is_live\n" + "".join(
            f"{n},{place},true\n" for n, place in enumerate(places, 1)
        )
        ranges = 'range_id,start_pretty,replicas\n1,/Min,"{1,2,3,4,5}"\n2,/Table/104,"{1,4,2}"\n'
        zones = b"ALTER RANGE meta CONFIGURE ZONE USING num_replicas = 5;"
        cluster = registry.read(ranges.encode(), status.encode(), zones)
        apart = [cluster.rules[r].spread["region"] for r in cluster.partitions.rule.tolist()]
        assert apart == [(2, "soft"), (1, "soft")]

    def test_zones_of_two_regions_are_two_though_their_names_are_one(self):
        places = [f"region={region},zone={zone}" for region in "ab" for zone in "122"]
        status = "id,locality,is_live\n" + "".join(
            f'{n},"{place}",true\n' for n, place in enumerate(places, 1)
        )
        ranges = 'range_id,replicas\n1,"{1,2,5,6}"\n'
        cluster = registry.read(ranges.encode(), status.encode())
        assert cluster.rules[0].spread == {"region": (2, "soft"), "zone": (1, "soft")}
        (moved,) = ek.solve(cluster, goals=ek.Goals(level=None)).moves
        assert (moved.source in ("5", "6"), moved.target) == (True, "4")

    def test_zones_that_no_range_can_be_held_to_are_noted(self):
        zones = (
            b"ALTER TABLE movr.public.users CONFIGURE ZONE USING num_replicas = 5;\n"
            b"ALTER TABLE system.public.jobs CONFIGURE ZONE USING num_replicas = 5;\n"
        )
        ranges = b'range_id,replicas,lease_holder\n7,"{1,2,3}",1\n'
        cluster = registry.read(ranges, zones)
        assert cluster.partitions.replicas.tolist() == [3]
        (told,) = [text for text in FORMAT.left_out(cluster) if "tables" in text]
        assert "zones of movr.public.users hold for none" in told
        named = b'range_id,table_name,replicas,lease_holder\n7,users,"{1,2,3}",1\n'
        assert not [t for t in FORMAT.left_out(registry.read(named, zones)) if "tables" in t]

    def test_a_size_that_is_null_is_none(self):
        ranges = b"range_id,replicas,range_size\n7,{1},NULL\n8,{1},5\n"
        cluster = registry.read(ranges)
        assert cluster.partitions.load.voter[:, cluster.bytes_dimension].tolist() == [0.0, 5.0]

    def test_megabytes_are_of_a_million(self):
        """As SHOW RANGES works them out: range_size / 1000000."""
        cluster = registry.read(b'range_id,replicas,range_size_mb\n7,"{1,2,3}",12.5\n')
        assert cluster.partitions.load.voter[:, cluster.bytes_dimension].tolist() == [12.5e6]


class TestWhatIsWrong:
    def test_all_of_it_is_listed_with_line_and_column(self):
        ranges = b"range_id,replicas,lease_holder,range_size\n7,1;2,1,x\nx,{1},9,1\n8,{1},1,1\n"
        assert faults_of(ranges) == [
            ("<bytes>:3: range_id", "x"),
            ("<bytes>:2: replicas", "1;2"),
            ("<bytes>:2: range_size", "x"),
        ]
        ranges = ranges.replace(b"1;2", b"{1}").replace(b"9", b"n9")
        assert ("<bytes>:3: lease_holder", "n9") in faults_of(ranges)

    def test_stores_that_another_file_should_know(self):
        ranges = b'range_id,replicas\n7,"{8,9}"\n'
        assert faults_of(ranges, NODES) == [("<bytes>: replicas", 8), ("<bytes>: replicas", 9)]
        assert faults_of(ranges, STORES) == [("<bytes>: replicas", 8), ("<bytes>: replicas", 9)]

    def test_rows_of_one_range_agree(self):
        ranges = b"range_id,replicas\n7,{1}\n7,{2}\n"
        assert faults_of(ranges) == [("<bytes>:3: replicas", "{2}")]

    def test_zones_in_sql(self):
        zones = (
            b"ALTER TABLE t CONFIGURE ZONE USING num_replicas = '[', bogus = 3;\n"
            b"ALTER TABLE t CONFIGURE ZONE USING num_replicas 3;\n"
            b"ALTER PARTITION p OF TABLE t CONFIGURE ZONE USING num_replicas = 3;\n"
            b"ALTER TABLE u CONFIGURE ZONE USING constraints = '[+disk=x]', num_replicas = 3;"
        )
        found = faults_of(RANGES, NODES, zones)
        assert [path for path, _ in found] == [
            "<bytes>:1: num_replicas", "<bytes>:1: bogus", "<bytes>:2",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        "text",
        [
            b"num_replicas: [\n", b"num_replicas: 3\nother: 1\n", b"num_replicas: 3\n\tx: 1\n",
            b"a: &a [1]\nconstraints: *a\n", b"num_replicas: !!python/object/apply:os.getcwd []\n",
            b"num_replicas: " + b"[" * 3000, b"- num_replicas: 3\n",
        ],
    )  # fmt: skip
    def test_zones_in_yaml(self, text):
        assert all(path.startswith("<bytes>") for path, _ in faults_of(RANGES, NODES, text))

    @pytest.mark.parametrize("told", ["many", "{a: 1}", "'5'", "true", "[3]"])
    def test_a_number_of_replicas_that_is_none(self, told):
        with pytest.raises(InvalidInput, match="num_replicas: needs a whole number"):
            registry.read(RANGES, NODES, f"num_replicas: {told}\n".encode())

    def test_without_its_package_yaml_is_refused_with_what_to_do(self, monkeypatch):
        plain = builtins.__import__

        def without(name, *args):
            if name == "yaml":
                raise ImportError(name)
            return plain(name, *args)

        monkeypatch.setattr(builtins, "__import__", without)
        with pytest.raises(InvalidInput, match=r"pip install 'evenkeel\[yaml\]'"):
            registry.read(RANGES, NODES, YAML)

    @pytest.mark.parametrize("files", [(NODES,), (SQL, NODES)])
    def test_one_table_of_ranges_is_needed(self, files):
        assert faults_of(*files)

    def test_one_long_row_does_not_widen_all(self):
        long = b"{" + b",".join(b"%d" % i for i in range(5000)) + b"}"
        rows = b"".join(b"%d,{1}\n" % i for i in range(2, 5000))
        assert faults_of(b'range_id,replicas\n1,"' + long + b'"\n' + rows)


@pytest.mark.parametrize("text", ["[", "{a}", "[a: c]", "{a: 1, a: 2}", "[]x", "[[[[[[a]]]]]]", ""])
def test_what_is_no_value_of_a_zone(text):
    with pytest.raises(ValueError, match=r".+"):
        parse_flow(text)


class TestWriting:
    def test_the_table_of_ranges_comes_back(self, cluster, tmp_path):
        registry.write(cluster, tmp_path / "ranges.csv", "cockroach")
        again = registry.read(tmp_path / "ranges.csv", NODES, SQL)
        assert np.array_equal(again.placement.node, cluster.placement.node)
        assert np.array_equal(again.placement.leader, cluster.placement.leader)
        said, written = (
            {
                row["range_id"]: [row[name] for name in (
                    "replicas", "voting_replicas", "non_voting_replicas", "learner_replicas",
                    "lease_holder", "range_size")]
                for row in csv.DictReader(io.StringIO(file.read_text()))
            }
            for file in (RANGES, tmp_path / "ranges.csv")
        )  # fmt: skip
        assert written == said
        assert_same(again, cluster)

    def test_tables_and_places_are_written_as_they_were_read(self, tmp_path):
        cluster = registry.read(RANGES, SQL)
        (file,) = registry.write(cluster, tmp_path / "ranges.csv", "cockroach")
        row = next(csv.DictReader(io.StringIO(file.read_text())))
        assert (row["schema_name"], row["table_name"]) == ("public", "users")
        assert row["replica_localities"].count("region=us-east1") == 2
        assert_same(registry.read(file, SQL), cluster)

    def test_without_node_status_places_are_told_by_store(self):
        rows = b'range_id,replicas,replica_localities\n1,"{7,8}","{""zone=a"",""zone=b""}"\n'
        stores = b"node_id,store_id,attrs,capacity\n1,7,[],9\n2,8,[],9\n"
        cluster = registry.read(rows, stores)
        assert cluster.topology.label_names[cluster.topology.tiers.index("zone")] == ("a", "b")

    def test_leases_that_no_file_has_are_none(self, tmp_path):
        ranges = b'range_id,replicas\n1,"{1,2,3}"\n2,"{1,2,3}"\n3,"{1,2,4}"\n'
        nodes = "id,address,locality\n" + "".join(f"{n},x,region=r{n % 2}\n" for n in range(1, 6))
        zone = b"ALTER RANGE default CONFIGURE ZONE USING lease_preferences = '[[+region=r0]]';"
        cluster = registry.read(ranges, nodes.encode(), zone)
        assert (cluster.placement.leader == -1).all() and not cluster.rules[0].lead
        assert [note for note in left_out(cluster) if note.startswith("no lease_holder")]
        for method in ("balance", "cockroach"):
            result = ek.solve(cluster.drain("1"), method)
            assert result.audit.hard == 0 and result.comparison.leader_changes == 0
            plan, _ = registry.write(cluster, tmp_path / "p.sql", placement=result, overwrite=True)
            assert "FROM 1" in plan.read_text() and "LEASE" not in plan.read_text()

    @pytest.mark.parametrize("named", [False, True])
    def test_the_answer_of_the_endpoint_of_nodes(self, named):
        states = ["LIVE", "DEAD", "DECOMMISSIONING", "DECOMMISSIONED", "DRAINING", "UNAVAILABLE"]
        numbers = [3, 1, 4, 5, 6, 2]
        given = [f"NODE_STATUS_{one}" for one in states] if named else numbers
        nodes = [
            {
                "desc": {
                    "nodeId": n, "address": {"networkField": "tcp", "addressField": f"h{n}:26257"},
                    "attrs": {"attrs": []},
                    "locality": {"tiers": [{"key": "region", "value": f"r{n % 2}"}]},
                },
                "buildInfo": {"tag": "v23.1.4"}, "startedAt": "1", "metrics": {"x": 1.5},
                "storeStatuses": [
                    {
                        "desc": {
                            "storeId": 10 * n, "attrs": {"attrs": ["ssd"]}, "node": {"nodeId": n},
                            "capacity": {"capacity": "1000", "available": "600", "used": "400"},
                        },
                        "metrics": {},
                    }
                ],
            }
            for n in range(1, 7)
        ]  # fmt: skip
        liveness = {str(n): one for n, one in enumerate(given, 1)}
        answer = json.dumps({"nodes": nodes, "livenessByNodeId": liveness}).encode()
        ranges = b'range_id,replicas,lease_holder\n1,"{10,50,60}",10\n'
        cluster = registry.read(ranges, answer)
        assert [*cluster.nodes.names] == ["10", "20", "30", "40", "50", "60"]
        assert cluster.nodes.alive.tolist() == [True, False, True, False, True, True]
        assert cluster.nodes.accepts.tolist() == [True, False, False, False, False, False]
        assert cluster.topology.label_names[cluster.topology.tiers.index("region")] == ("r0", "r1")
        assert cluster.native.disk.tolist() == [1000.0] * 6

    @pytest.mark.parametrize(
        "form",
        [
            lambda region, az: f"region={region},az={az}",
            lambda region, az: {"region": region, "az": az},
            lambda region, az: {
                "tiers": [{"key": "region", "value": region}, {"key": "az", "value": az}]
            },
        ],
    )
    def test_localities_and_attributes_as_objects_of_json(self, form):
        places = [form("us", "a"), form("us", "b"), form("eu", "c")]
        ranges = [{"range_id": 1, "replicas": [1, 2, 3], "lease_holder": 1}]
        attrs = {"attrs": ["ssd", "nvme"]}
        nodes = [
            {"id": n, "address": "x", "is_live": True, "locality": place, "attrs": attrs}
            for n, place in enumerate(places, 1)
        ]
        beside = [{**ranges[0], "replica_localities": places}]
        given = ([ranges, nodes], [beside])
        if not isinstance(places[0], str):
            cells = "".join(f"{n},x,{quoted(json.dumps(one))}\n" for n, one in enumerate(places, 1))
            given += ([ranges, f"id,address,locality\n{cells}"],)
        for files in given:
            texts = [one if isinstance(one, str) else json.dumps(one) for one in files]
            cluster = registry.read(*map(str.encode, texts))
            named = [cluster.topology.tiers.index(tier) for tier in ("region", "az")]
            assert [cluster.topology.label_names[t] for t in named] == [
                ("eu", "us"),
                ("a", "b", "c"),
            ]
            if files[-1] is nodes:
                zone = b"ALTER RANGE default CONFIGURE ZONE USING constraints = '[+ssd, +nvme]';"
                assert ek.solve(registry.read(*map(str.encode, texts), zone)).audit.hard == 0

    def test_what_was_solved_becomes_statements(self, cluster, tmp_path):
        result = ek.solve(cluster, "cockroach")
        files = registry.write(cluster, tmp_path / "plan.sql", placement=result)
        assert [file.name for file in files] == ["plan.sql", "plan.rollback.sql"]
        there, back = (file.read_text().splitlines() for file in files)
        assert there
        assert back
        statement = (
            r"ALTER RANGE \d+ RELOCATE (VOTERS|NONVOTERS) FROM \d+ TO \d+;"
            r"|ALTER RANGE \d+ RELOCATE LEASE TO \d+;"
            r"|-- \d+ ranges?, (VOTERS|NONVOTERS): left to CockroachDB: [-+0-9 (),]+"
            r"|-- range \d+ stays as it is: \d+ is down"
        )
        assert all(re.fullmatch(statement, line) for line in there + back)
        moved = {line.split()[2] for line in there if " FROM " in line}
        names = cluster.partitions.names
        before, after = cluster.placement, result.placement
        changed = [
            names[p] for p in range(len(names)) if sorted(before.nodes[p]) != sorted(after.nodes[p])
        ]
        assert moved <= set(changed)

    def test_on_the_way_back_nothing_goes_to_a_store_that_is_down(self, tmp_path):
        cluster = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 4, load=[[1.0]] * 2, placement=[[0, 1], [1, 2]],
            node_names=["1", "2", "3", "5"], partition_names=["60", "61"], leader=[1, 1],
        )  # fmt: skip
        cluster = cluster.down(["1"])
        moved = np.array([3, 1, 1, 0], np.int32)
        moved = cluster.placement.replaced(moved, cluster.placement.leader)
        there, back = (
            file.read_text().splitlines()
            for file in registry.write(cluster, tmp_path / "p.sql", "cockroach", moved)
        )
        assert there[0] == "ALTER RANGE 60 RELOCATE VOTERS FROM 1 TO 5;"
        assert back[0] == "-- range 60 stays as it is: 1 is down"
        assert "TO 1;" not in "".join(back)
        assert "ALTER RANGE 61 RELOCATE VOTERS FROM 1 TO 3;" in back

    def test_names_that_are_no_numbers_are_refused(self, tmp_path):
        hostile = ek.Cluster.from_arrays(
            capacity=[[1.0]], load=[[1.0]], placement=[[0]], node_names=["1; DROP TABLE t"],
            partition_names=["7 TO 8; --"],
        )  # fmt: skip
        with pytest.raises(InvalidInput) as caught:
            registry.write(hostile, tmp_path / "p.sql", "cockroach", hostile.placement)
        assert [f.path for f in caught.value.faults] == ["partition_names[0]", "node_names[0]"]
        assert not [*tmp_path.iterdir()]


NOW = b'range_id,replicas,lease_holder\n1,"{1,2,3}",2\n7,"{1,3}",3\n'


@pytest.mark.parametrize(
    ("other", "held", "leads"),
    [
        (b'range_id,voting_replicas,non_voting_replicas\n9,"{1,2}",{3}\n', "9: 1 2 3", ""),
        (b'range_id,replicas,lease_holder\n9,"{2,3}",2\n', "9: 2 3", "2 3 2"),
        (b'range_id,voting_replicas,range_size\n7,"{1}",512\n', "7: 1 3", "2"),
    ],
)
def test_ranges_may_come_in_several_tables(other, held, leads):
    cluster = registry.read(NOW, other, format="cockroach")
    names, placement = cluster.nodes.names, cluster.placement
    last = len(placement) - 1
    stores = [names[n] for n in placement.nodes[last].tolist() if n >= 0]
    assert f"{cluster.partitions.names[last]}: {' '.join(stores)}" == held
    assert " ".join(names[n] for n in placement.leader_node.tolist() if n >= 0) == leads


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (b'range_id,replicas\n7,"{1,2}"\n', "differs from"),
        (b'range_id,table_name,replicas\n9,users,"{1,2}"\n', "all or none with table_name"),
    ],
)
def test_tables_of_ranges_that_do_not_fit_are_refused(other, says):
    with pytest.raises(InvalidInput, match=says):
        registry.read(NOW, other, format="cockroach")
