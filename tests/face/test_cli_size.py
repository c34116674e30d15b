"""The command ``size``: nodes for a forecast, or headroom without one."""

import json
import re

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.cli import main
from evenkeel.measure.audit import audit
from evenkeel.studies.growth.shortages import Shortage
from tests.support import places
from tests.support.systems import kubernetes


@pytest.fixture
def file(tmp_path):
    """A small cluster with three zones, full to three fifths."""
    cluster = ek.Cluster.from_arrays(
        dimensions=("cpu", "disk"), bytes="disk", capacity=np.full((3, 2), 10.0),
        domains={"zone": [*"abc"]}, load=[[1.0, 2.0]] * 3, placement=[[0, 1, 2]] * 3,
        spread={"zone": 1}, group=["orders", "orders", "logs"],
    )  # fmt: skip
    path = tmp_path / "cluster.npz"
    ek.write(cluster, path)
    return str(path)


def test_a_forecast_is_told_with_its_price_and_its_proof(file, capsys):
    code = main(
        ["size", file, "--grow", "disk=+100%", "--type", "n,cpu=9,disk=20B,price=1.5,at=a+b+c"]
    )
    told = capsys.readouterr().out
    assert code == 0
    assert told.startswith("optimal: 3 nodes at a price of 4.5, and no less will do: with one")
    assert "zone b" in told
    assert "\x1b" not in told
    main(["size", file, "--grow", "disk=2", "--json"])
    figures = json.loads(capsys.readouterr().out)
    assert (figures["price"], figures["price_at_least"], figures["status"]) == (3.0, 3.0, "optimal")
    assert {one["place"] for one in figures["nodes"]} == {"zone a", "zone b", "zone c"}


def test_what_remains_is_as_full_as_is_said(tmp_path, capsys):
    cluster = ek.Cluster.from_arrays(
        dimensions=("cpu", "disk"), capacity=[[10.0, 10.0]] * 4, load=[[1.0, 2.0]] * 6,
        placement=[[0], [1], [2], [3], [0], [1]],
    )  # fmt: skip
    ek.write(cluster, tmp_path / "c.npz")
    assert main(["size", str(tmp_path / "c.npz"), "--shrink", "--at-most", "80%"]) == 0
    told = capsys.readouterr().out
    assert "drain" in told
    assert re.search(r"then disk of the fullest node, n\d, is at (80|60).0%, and at 60.0% on", told)
    main(["size", str(tmp_path / "c.npz"), "--shrink", "--at-most", "80%", "--json"])
    fullest = json.loads(capsys.readouterr().out)["fullest"]
    assert fullest["cpu"]["mean"] == pytest.approx(0.3)
    assert fullest["disk"]["share"] <= 0.8


@pytest.mark.parametrize(
    ("grow", "words", "crowded"), [(1.5, [], False), (4.75, [], True), (3.8, ["80%"], False)]
)
def test_nodes_that_are_nearly_full_are_named_with_what_keeps_room(
    grow, words, crowded, tmp_path, capsys
):
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 2, load=[[1.0]] * 4, placement=[[0], [1]] * 2
    )
    ek.write(cluster, tmp_path / "c.npz")
    asked = ["--at-most", *words] if words else []
    assert main(["size", str(tmp_path / "c.npz"), "--grow", str(grow), *asked]) == 0
    printed = capsys.readouterr().out
    assert ("nothing is to stay free of d0: --at-most 80%" in printed) == crowded
    sized = ek.size(cluster, grow, at_most=0.8 if words else 1.0)
    assert ("at_most=0.8 keeps a fifth free" in str(sized)) == crowded
    assert sized.fullest["d0"].share == pytest.approx(grow / 5.0)


def test_without_a_forecast_headroom_is_told(file, capsys):
    assert main(["size", file, "--json"]) == 0
    reaches = {one["grows"]: one for one in json.loads(capsys.readouterr().out)["reaches"]}
    assert reaches["all"]["at_most"] == pytest.approx(10 / 6)
    assert reaches["cpu"]["at_least"] == pytest.approx(10 / 3)
    assert main(["size", file, "--at-most", "50%"]) == 1
    assert "loads do not fit as they are" in capsys.readouterr().out


def test_where_only_a_loss_does_not_fit_the_verdict_says_so(tmp_path, capsys):
    cluster = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[3.0]] * 2, placement=[[0], [1]])
    ek.write(cluster, tmp_path / "c.npz")
    assert main(["size", str(tmp_path / "c.npz"), "--survive", "node"]) == 1
    assert "loads fit as they are, but not after a loss (node)" in capsys.readouterr().out


def test_what_cannot_be_exits_with_four_and_says_why(file, capsys):
    assert main(["size", file, "--grow", "1", "--survive", "zone", "-q"]) == 4
    assert "after the loss of zone a" in capsys.readouterr().err


def test_a_group_grows_by_itself(file, capsys):
    assert main(["size", file, "--grow-group", "logs=4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["price"] == 3.0


@pytest.mark.parametrize(
    ("asked", "named"),
    [(["--type", "n,gpu=3"], "gpu"), (["--type", "n,cpu=3"], "disk"),
     (["--type", "n,price=b"], "price"),
     (["--type", "=3"], "type"), (["--grow", "cpu"], "--grow"), (["--grow", "none"], "--grow"),
     (["--grow", "gpu=2"], "gpu"), (["--grow-group", "other=2"], "other"),
     (["--survive", "row"], "row"), (["--at-most", "120%"], "--at-most:"),
     (["--after-loss", "80%"], "--after-loss: must not be below"),
     (["--shrink", "--price", "z=1"], "--price: is neither a node")],
)  # fmt: skip
def test_what_is_wrong_is_named(file, asked, named, capsys):
    assert main(["size", file, *asked]) == 2
    assert named in capsys.readouterr().err


def test_a_percentage_without_a_sign_is_refused_and_the_factor_is_told(file, capsys):
    for asked in (["--grow", "90%"], ["--grow", "cpu=90%"], ["--grow-group", "logs=90%"]):
        assert main(["size", file, *asked]) == 2
        assert "write +90% or 1.9 for more, 0.9 for a part" in capsys.readouterr().err
    assert main(["size", file, "--grow", "+10%", "--grow-group", "logs=2"]) == 0
    told = capsys.readouterr().out
    assert "load grows: x 1.1" in told
    assert "group logs grows: x 2" in told
    main(["size", file, "--grow", "disk=+10%", "--json"])
    assert json.loads(capsys.readouterr().out)["grow"] == {"load": {"disk": 1.1}}


def test_no_headroom_is_told_of_capacities_that_nobody_told(tmp_path, capsys):
    files = [str(places.DATA / "formats" / name) for name in ("kafka_describe.txt",)]
    assert main(["size", *files]) == 0
    told = capsys.readouterr().out
    assert "unknown" in told
    assert "no capacity of replicas is known" in told
    assert not re.search(r"\d\.\d", told)
    assert main(["size", *files, "--grow", "2"]) == 2
    assert f"{files[0]}: no capacity is known" in capsys.readouterr().err
    assert main(["size", *files, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["capacity_unknown"] == ["replicas"]
    assert figures["reaches"][0]["at_most"] is None


@pytest.mark.parametrize("words", [["--shrink"], ["--unit", "cpu=4", "--moves", "2"]])
def test_what_is_written_brings_pods_where_they_are_packed(tmp_path, words, capsys):
    nodes = [kubernetes.node(name) for name in "abc"]
    pods = [kubernetes.pod(f"p-{at}", at, resources={"requests": {"cpu": "1"}}) for at in "abc"]
    # one of a workload that goes to the node of another is evicted, too
    (tmp_path / "all.json").write_bytes(kubernetes.listed(*nodes, *pods))
    out = tmp_path / "packed.json"
    assert main(["size", str(tmp_path / "all.json"), *words, "-o", str(out)]) == 0
    assert re.search(r"\b2 moves", capsys.readouterr().out)
    assert len(json.loads(out.read_text())["evictions"]) == 2


def test_the_sized_cluster_is_written_and_a_forecast_may_be_a_file(file, tmp_path, capsys):
    cluster = ek.read(file)
    load = cluster.partitions.load
    grown = cluster.replace(load=load.voter * [1.0, 2.0], leader_load=load.leader * [1.0, 2.0])
    ek.write(grown, tmp_path / "next.npz")
    out = str(tmp_path / "sized.npz")
    asked = ["size", file, "--forecast", str(tmp_path / "next.npz"), "-o", out]
    assert main(asked) == 0
    assert capsys.readouterr().out.endswith(f"wrote {out}\n")
    sized = ek.read(out)
    assert len(sized.nodes) == 6
    assert audit(sized, sized.placement).ok
    asked[-1] = str(tmp_path / "again.npz")
    assert main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["written"] == [asked[-1]]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--forecast", "FILE", "--grow", "2"], "so does --grow"),
        (["-o", "out.npz"], "needs --grow, --forecast, --type, --shrink or --unit"),
        (["--grow", "2", "-o", "FILE"], "is one of the files that are read"),
    ],
)
def test_arguments_that_contradict_each_other_are_refused(file, capsys, asked, said):
    assert main(["size", file, *(file if one == "FILE" else one for one in asked)]) == 2
    assert said in capsys.readouterr().err


def test_a_shortage_of_less_than_its_digits_is_told():
    short = Shortage("", "load", "disk", "", needed=1e12, held=1e12 - 2e6)
    assert short.reason == "disk has room for 1 T of the 1 T needed: 2,000,000 too little"
    whole = Shortage("", "whole replicas", "cpu", "", needed=5.0, held=6.0)
    assert "6 large replicas, and for fewer than the 5 needed if loads" in whole.reason


def two_zones(path, cpu):
    """Sixteen partitions in two zones, with room for twice their disk and so much cpu."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[100.0, 64.0]] * 4, load=[[10.0, cpu]] * 16, dimensions=["disk", "cpu"],
        placement=[[i % 4] for i in range(16)], domains={"zone": [*"abab"]},
    )  # fmt: skip
    ek.write(cluster, path)
    return str(path)


def test_what_exactly_fills_a_cluster_fits(tmp_path, capsys):
    file = two_zones(tmp_path / "full.npz", 16.0)
    assert main(["size", file]) == 0
    assert "do not fit" not in capsys.readouterr().out


def test_what_never_fits_names_why_and_at_which_loads(tmp_path, capsys):
    file = two_zones(tmp_path / "full.npz", 16.0)
    assert main(["size", file, "--survive", "zone"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "disk zone none none cpu" in told
    assert "at 0.5000 times the loads, after the loss of zone a, cpu is full: all its room" in told
    assert "at any loads of disk, after the loss of zone a, cpu has room for 128 of the 256" in told


@pytest.mark.parametrize(
    "words",
    [
        ["--shrink", "--unit", "cpu=1,disk=1"],
        ["--unit", "cpu=1,disk=1", "--survive", "node"],
        ["--shrink", "--without-recovery"],
    ],
)
def test_options_that_would_have_no_effect_are_refused(file, words, capsys):
    assert main(["size", file, *words]) == 2
    assert "--" in capsys.readouterr().err
