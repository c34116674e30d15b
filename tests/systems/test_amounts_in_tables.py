"""Amounts in tables: units only where they make sense, and what an empty cell stands for."""

import pytest

import evenkeel as ek
from evenkeel.cli import main
from evenkeel.model.errors import InvalidInput
from evenkeel.systems import registry
from evenkeel.systems.tables.reading import read_newcomers

pandas = pytest.importorskip("pandas")

INF = float("inf")
REPLICAS = b"partition,node\np,a\n"
DESCRIBED = b"Topic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"


def nodes(dimension, cell):
    return f"node,cap_{dimension}\na,{cell}\n".encode()


def faults_of(*sources):
    with pytest.raises(InvalidInput) as caught:
        registry.read(*sources)
    return [str(fault) for fault in caught.value.faults]


def notes(cluster):
    return [*registry.find(cluster.native_format or "tables").left_out(cluster)]


class TestUnits:
    @pytest.mark.parametrize("cell", ["500m", "500 m", "2.5m"])
    def test_an_m_alone_is_of_bytes_only(self, cell):
        number = cell.strip(" m")
        (fault,) = faults_of(nodes("cpu", cell), REPLICAS)
        thousandths = f"{float(number) / 1e3:g}"
        wanted = f"may be {thousandths}, or {number} million: write {thousandths} or {number}M"
        assert fault == f"<bytes>:2: cap_cpu: {wanted} (got {cell!r})"
        cluster = registry.read(nodes("disk", cell), REPLICAS, b'bytes = "disk"\n[[rule]]\n')
        assert cluster.nodes.capacity.tolist() == [[float(number) * 1e6]]

    @pytest.mark.parametrize(
        ("cell", "amount"),
        [("500M", 5e8), ("2k", 2e3), ("2g", 2e9), ("64GiB", 2.0**36), ("3mb", 3e6), ("1e3", 1e3)],
    )
    def test_others_are_of_anything(self, cell, amount):
        cluster = registry.read(nodes("memory", cell), REPLICAS)
        assert cluster.nodes.capacity.tolist() == [[amount]]

    def test_loads_watermarks_and_frames(self):
        given = b"node,cap_cpu,watermark_cpu\na,9,5m\n"
        replicas = b"partition,node,load_cpu,leader_load_cpu\np,a,5m,7m\n"
        found = [one.partition(": may")[0] for one in faults_of(given, replicas)]
        assert found == [
            "<bytes>:2: watermark_cpu", "<bytes>:2: load_cpu", "<bytes>:2: leader_load_cpu",
        ]  # fmt: skip
        with pytest.raises(InvalidInput, match=r"write 0\.5 or 500M"):
            ek.Cluster.from_frames(
                pandas.DataFrame({"node": ["a"], "cap_cpu": ["500m"]}),
                pandas.DataFrame({"partition": ["p"], "node": ["a"]}),
            )

    def test_a_weight_has_no_unit(self):
        (fault,) = faults_of(b"node,cap_cpu,weight\na,9,2k\n", REPLICAS)
        assert fault.startswith("<bytes>:2: weight: must be a number from 0 on, of weight")

    @pytest.mark.parametrize("cell", ["50m", "1k", "5GB"])
    def test_kafka_counts_cpu_in_percent(self, cell):
        for table in (f"topic,cpu\nt,{cell}\n", f"topic,leader_cpu\nt,{cell}\n",
                      f"broker,cpu\n1,{cell}\n2,9\n"):  # fmt: skip
            (fault,) = faults_of(DESCRIBED, table.encode())
            assert "must be a number from 0 on, of percent" in fault
        cluster = registry.read(DESCRIBED, b"topic,disk,network_in\nt,500m,2k\n")
        assert cluster.partitions.load.voter[0, 1:].tolist() == [5e8, 2e3]

    def test_newcomers(self):
        cluster = registry.read(nodes("cpu", 9), REPLICAS)
        with pytest.raises(InvalidInput, match=r"write 0\.5 or 500M"):
            read_newcomers(b"node,cap_cpu\nb,500m\n", cluster)

    def test_types_of_nodes_to_buy(self, tmp_path, capsys):
        files = [tmp_path / "nodes.csv", tmp_path / "replicas.csv"]
        for file, text in zip(files, (nodes("cpu", 9), REPLICAS), strict=True):
            file.write_bytes(text)
        words = ["size", *map(str, files), "--grow", "2", "--type", "big,cpu=500m,price=3"]
        assert main(words) == 2
        assert "--type big: cpu: may be 0.5" in capsys.readouterr().err


class TestEmptyCells:
    NODES = b"node,cap_cpu,cap_disk\na,9,\nb,,5\nc,inf,5\n"
    REPLICAS = b"partition,node,load_cpu,size_disk\np,a,1,\np,b,1,\nq,c,1,4\n"

    def test_they_are_no_limit_and_no_load_and_noted(self, tmp_path):
        cluster = registry.read(self.NODES, self.REPLICAS)
        assert cluster.nodes.capacity.tolist() == [[9, INF], [INF, 5], [INF, 5]]
        expected = ["no role of replicas", "no capacity of cpu of nodes b",
                "no capacity of disk of nodes a",
                "no load of disk in 2 rows of replicas"]  # fmt: skip
        assert [one.partition(":")[0] for one in notes(cluster)] == expected
        again = registry.read(*registry.write(cluster, tmp_path / "c.csv"))
        assert [one.partition(":")[0] for one in notes(again)] == expected[:1]
        limited = cluster.replace(capacity=[[9.0, 9.0]] * 3)
        assert [one.partition(":")[0] for one in notes(limited)] == [expected[0], expected[3]]

    @pytest.mark.parametrize("none", [float("nan"), None])
    def test_frames_have_nan_or_null_for_it(self, none):
        cluster = ek.Cluster.from_frames(
            pandas.DataFrame({"node": ["a", "b"], "cap_cpu": [9.0, none]}),
            pandas.DataFrame({"partition": ["p"], "node": ["a"], "load_cpu": [none]}),
        )
        same = registry.read(
            b"node,cap_cpu\na,9\nb,\n", b"partition,node,load_cpu\np,a,\n", format="tables"
        )
        assert cluster.nodes.capacity.tolist() == same.nodes.capacity.tolist()
        assert len(notes(cluster)) == 2 and notes(cluster) == notes(same)

    def test_nan_as_a_word_is_none_of_them(self):
        (fault,) = faults_of(nodes("cpu", "nan"), REPLICAS)
        assert fault.startswith("<bytes>:2: cap_cpu: must be a number")

    def test_a_node_that_joins_has_to_tell(self):
        cluster = registry.read(nodes("cpu", 9), REPLICAS)
        with pytest.raises(InvalidInput, match="<bytes>:2: cap_cpu: is empty"):
            read_newcomers(b"node,cap_cpu\nb,\n", cluster)
        assert read_newcomers(b"node,cap_cpu\nb,inf\n", cluster)[0]


class TestMarks:
    """Decimal commas, and marks between thousands: the cells of a column tell which is which."""

    @pytest.mark.parametrize(
        ("cells", "amounts"),
        [
            (["1,5", "2"], [1.5, 2.0]),
            (["1,5", "1.000"], [1.5, 1000.0]),
            (["1.000.000", "1.000"], [1e6, 1e3]),
            (["1,234,567", "1,234"], [1234567.0, 1234.0]),
            (["1,234", "2.5"], [1234.0, 2.5]),
            (["10,5mb", "1.000mb"], [10.5e6, 1e9]),
            (["1.000", "2.5"], [1.0, 2.5]),
            (["1.0001", "1.000"], [1.0001, 1.0]),
            (["1'000", "500"], [1000.0, 500.0]),
            (["0.500", "1.000"], [0.5, 1.0]),
        ],
    )
    @pytest.mark.parametrize("delimiter", [";", "\t"])
    def test_cells_that_tell_are_read(self, cells, amounts, delimiter):
        rows = [f"{name}{delimiter}{cell}" for name, cell in zip("ab", cells, strict=True)]
        table = "\n".join([f"node{delimiter}cap_disk", *rows, ""]).encode()
        cluster = registry.read(table, REPLICAS, b'bytes = "disk"\n[[rule]]\n')
        assert cluster.nodes.capacity[:, 0].tolist() == amounts

    @pytest.mark.parametrize(
        ("delimiter", "cells", "line"),
        [
            (";", ["1.000", "1.500"], 2), (";", ["500", "1.000"], 3), ("\t", ["500", "1.000"], 3),
            ("\t", ["1,000", "2"], 2),
        ],
    )  # fmt: skip
    def test_cells_with_two_readings_are_refused_with_their_line(self, delimiter, cells, line):
        rows = [f"{name}{delimiter}{cell}" for name, cell in zip("ab", cells, strict=True)]
        table = "\n".join([f"node{delimiter}cap_disk", *rows, ""]).encode()
        fault = faults_of(table, REPLICAS)[0]
        assert fault.startswith(f"<bytes>:{line}: cap_disk: may be 1 or 1000: write one of them")

    def test_a_point_before_three_digits_is_decimal_as_programs_write_it(self):
        cluster = registry.read(b"node,cap_cpu\na,1.250\nb,2.125\n", REPLICAS)
        assert cluster.nodes.capacity[:, 0].tolist() == [1.25, 2.125]

    def test_sizes_of_elasticsearch(self):
        row = '[{{"index":"a","shard":"0","prirep":"p","state":"STARTED","store":"{}","node":"n"}}]'
        cluster = registry.read(row.format("10,5mb").encode())
        assert cluster.partitions.load.voter.max() == 10.5 * 2**20
        (fault,) = faults_of(row.format("1,500mb").encode())
        assert "may be 1.5 or 1500" in fault
