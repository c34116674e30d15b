"""What is usual for a system, where neither a method nor a goal is named."""

import pytest

import evenkeel as ek
from tests.public.case import PUBLIC, Case

KAFKA = ("described.txt",)
CEPH = ("osd_dump.json", "crush.json", "pg_dump.json")


def clusters(name, files):
    return ek.read(*(PUBLIC / name / one for one in files))


@pytest.mark.parametrize(
    ("name", "files", "words", "printed"),
    [
        ("kafka/preferred-leaders", KAFKA, (), "--level 0.05 --leaders 0.1"),
        ("kafka/preferred-leaders", KAFKA, ("--level", "10%"), ""),
        ("kafka/preferred-leaders", KAFKA, ("--floor", "20%"), "--level 0.05 --leaders 0.1;"),
        ("kafka/preferred-leaders", KAFKA, ("--level", "none"), ""),
        ("kafka/preferred-leaders", KAFKA, ("--method", "balance"), ""),
        ("kafka/preferred-leaders", KAFKA, ("--leaders", "0"), "named: --level 0.05;"),
        ("kafka/preferred-leaders", KAFKA, ("--leaders", "none"), "named: --level 0.05"),
        ("kafka/preferred-leaders", KAFKA, ("--groups", "20%"), "--level 0.05 --leaders 0.1;"),
        ("kafka/preferred-leaders", KAFKA, ("--worth", "2%"), "--level 0.05 --leaders 0.1;"),
        ("ceph/four-hosts-three-each", CEPH, (), "--method ceph_upmap"),
        ("ceph/four-hosts-three-each", CEPH, ("--moves", "3"), ""),
        ("ceph/four-hosts-three-each", CEPH, ("--drain", "osd.1"), ""),
        ("ceph/four-hosts-three-each", CEPH, ("--method", "balance"), ""),
    ],
)
def test_what_is_named_replaces_it(name, files, words, printed, tmp_path, capsys):
    told = Case(name, tmp_path, capsys).run("solve", *files, *words)
    assert ("as usual for" in told.err) == bool(printed)
    assert printed in " ".join(told.err.split())


def test_what_is_dropped_is_printed_and_check_tests_what_is_named(tmp_path, capsys):
    case = Case("kafka/preferred-leaders", tmp_path, capsys)
    told = case.run("solve", *KAFKA, "--level", "10%")
    assert "--leaders 0.1 balances leaders" in " ".join(told.err.split())
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 6, placement=[[0, 1, 2]] * 2 + [[0, 1]] * 4,
        leader=[0, 1, 0, 1, 0, 1], group=[0] * 6,
    )  # fmt: skip
    ek.write(cluster, tmp_path / "a.npz")
    for words, code in ((("--group-leaders", "100%"), 0), (("--level", "5%"), 1)):
        assert case.run("check", str(tmp_path / "a.npz"), *words).code == code


def test_it_is_what_python_returns():
    kafka = clusters("kafka/preferred-leaders", KAFKA)
    assert ek.usual(kafka) == {"goals": ek.Goals(level=0.05, leaders=0.1)}
    ceph = clusters("ceph/four-hosts-three-each", CEPH)
    assert ek.usual(ceph) == {"method": "ceph_upmap"}
    assert ek.solve(ceph, **ek.usual(ceph)).method == "ceph_upmap"
    assert ek.usual(ceph.drain(0)) == ek.usual(ceph.pin(0)) == {}
