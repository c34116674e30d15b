"""What Ceph itself answered: hashes, mappings, placement groups, and what its balancer made."""

import pytest

from tests.conformance import documents
from tests.conformance.schemas import ceph
from tests.support import places
from tests.support.effort import mostly_long

FILES = sorted((places.DATA / "golden" / "ceph").glob("*.json.gz"))


QUICK = ("a00_hash_straw2", "a01_flat", "a07_weird_weights", "a12_pgs", "upmap_d8host5")
NAMES = [file.name.removesuffix(".json.gz") for file in FILES]


@pytest.mark.parametrize("name", mostly_long(NAMES, QUICK))
def test_every_case_agrees(name):
    file = FILES[NAMES.index(name)]
    document = documents.load(file)
    assert ceph.recognises(file, document)
    cases = ceph.replay(file, document).cases
    assert cases
    assert [case for case in cases if not case.agrees] == []


def test_all_mappings_are_there():
    loaded = [documents.load(file) for file in FILES]
    mappings = [c["mappings"] for d in loaded if d["format"] == ceph.CRUSH for c in d["cases"]]
    assert sum(map(len, mappings)) == 73_728
    assert len(FILES) == 18


def without_answers(document):
    """The document as it is held back: with the input only."""
    kept = {key: value for key, value in document.items() if key not in ("pps", "raw", "ceph")}
    kept.pop("before", None)
    if "cases" in kept:
        gone = ("mappings", "complete")
        kept["cases"] = [{k: v for k, v in c.items() if k not in gone} for c in kept["cases"]]
    if "straw2" in kept:
        kept["straw2"] = [{k: v for k, v in s.items() if k != "chosen"} for s in kept["straw2"]]
        kept["hash"] = {n: [row[: int(n)] for row in rows] for n, rows in kept["hash"].items()}
        kept["ln"] = [row[:1] for row in kept["ln"]]
        del kept["ln_sha256"]
    return kept


@pytest.mark.parametrize("name", ["a00_hash_straw2", "a05_stress_short", "a12_pgs"])
def test_answers_need_no_expected_ones(name):
    file = next(file for file in FILES if file.name.startswith(name))
    whole = documents.load(file)
    replay = ceph.replay(file, without_answers(documents.load(file)))
    assert {case.agrees for case in replay.cases} == {None}
    assert replay.answers == whole


def test_upmap_answers_hold_pairs_without_ceph_outcome():
    file = next(file for file in FILES if "d8host5" in file.name)
    replay = ceph.replay(file, without_answers(documents.load(file)))
    assert all(case.agrees in (None, True) for case in replay.cases)
    assert len(replay.answers["upmap_items"]) > 100


def test_a_wrong_mapping_is_noticed():
    file = next(file for file in FILES if "a01_flat" in file.name)
    document = documents.load(file)
    document["cases"][0]["mappings"][7] = [0, 1, 2]
    assert [case.agrees for case in ceph.replay(file, document).cases].count(False) == 1


def test_pairs_that_break_a_rule_are_noticed():
    file = next(file for file in FILES if "d8host5" in file.name)
    document = documents.load(file)
    domain, _ = ceph.osds(document)
    before = document["before"]
    used = {domain[osd] for osd in before[0][1:]}
    clash = next(osd for osd in domain if domain[osd] in used and osd not in before[0])
    judged = ceph.judge(document, before, {0: [(before[0][0], clash)]}, 1.0)
    assert judged["failure_domain_violations"] == 1
    assert judged["moves"] == 1
