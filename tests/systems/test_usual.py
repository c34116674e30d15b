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
        ("kafka/preferred-leaders", KAFKA, ("--method", "balance"), ""),
        ("kafka/preferred-leaders", KAFKA, ("--leaders", "0"), ""),
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


def test_it_is_what_python_returns():
    kafka = clusters("kafka/preferred-leaders", KAFKA)
    assert ek.usual(kafka) == {"goals": ek.Goals(level=0.05, leaders=0.1)}
    ceph = clusters("ceph/four-hosts-three-each", CEPH)
    assert ek.usual(ceph) == {"method": "ceph_upmap"}
    assert ek.solve(ceph, **ek.usual(ceph)).method == "ceph_upmap"
    assert ek.usual(ceph.drain(0)) == ek.usual(ceph.pin(0)) == {}
