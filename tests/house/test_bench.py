"""What compares and writes down benchmarks: no timing, only what is made of timings."""

import json

import numpy as np
import pytest

from bench import compare, growth, table
from bench.peers import table as peers
from bench.peers.table import Row
from bench.support.ceph_maps import as_text, regular
from bench.support.contest import Contender, least_seconds, twice


def stored(**seconds):
    """A stored run, benchmarks by name."""
    return {
        "datetime": "2026-01-02T03:04:05",
        "machine_info": {
            "cpu": {"brand_raw": "a processor"},
            "processor": "",
            "processors": 2,
            "python_version": "3.11.7",
            "load_average": [0.5, 0.0, 0.0],
        },
        "benchmarks": [
            {"fullname": name, "stats": {"min": least}, "extra_info": {}}
            for name, least in seconds.items()
        ],
    }


def test_changes_are_ordered_by_how_much_slower():
    found = compare.changes(stored(a=1.0, b=2.0, gone=1.0), stored(a=1.5, b=8.0, new=1.0))
    assert [(change.name, change.ratio) for change in found] == [("b", 4.0), ("a", 1.5)]


def test_comparison_takes_out_what_slows_everything(tmp_path, capsys):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(stored(a=1.0, b=1.0, c=1.0)))
    new.write_text(json.dumps(stored(a=2.0, b=2.0, c=3.0)))
    assert compare.main([str(old), str(new)]) == 0
    assert "3.000     1.500" in capsys.readouterr().out
    assert compare.main(["--worst", "1.6", str(old), str(new)]) == 0
    assert compare.main(["--worst", "1.4", str(old), str(new)]) == 1
    assert "median of 3 ratios: 2.000" in capsys.readouterr().out


def test_figures_stand_under_their_headings():
    run = stored(**{
        "bench/speed/test_speed_start.py::test_import": 0.1,
        "bench/speed/test_speed_balance.py::test_whole_call[x]": 0.0213,
        "bench/speed/test_speed_crush.py::test_mappings[y]": 2e-5,
        "bench/test_speed_other.py::test_z": 3.0,
        "bench/test_speed_other.py::test_untold": 3.0,
    })  # fmt: skip
    infos = [
        {"title": "import"},
        {"title": "whole", "moves": 1234, "bound": 1200, "max_over_mean": 1.04},
        {"title": "maps", "items": 100, "unit": "mappings"},
        {"title": "other"},
    ]
    for benchmark, info in zip(run["benchmarks"], infos, strict=False):
        benchmark["extra_info"] = info
    told = table.table(run)
    assert "| whole | 21.3 ms | 1,234 | 1,200 | 1.0400 |" in told
    assert "| maps | 20 us | 5.00 M mappings |" in told
    headings = ["| Solving |", "| Helix's CRUSH", "| Starting |", "| other |"]
    places = [told.index(heading) for heading in headings]
    assert places == sorted(places)
    assert "untold" not in told
    assert "load average of 0.5" in told


def test_peers_are_written_and_kept_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "STORED", tmp_path / "peers.json")
    us = Row(input="map", who="us", cpu=0.002, wall=2.0, broken=0, moves=1200, max_over_mean=1.04)
    peers.store("one", [Row(input="map", who="them", cpu=1.5, wall=2.0, note="a note"), us])
    peers.store("two", [us])
    peers.store("two", [us])
    told = table.beside(json.loads((tmp_path / "peers.json").read_text())).splitlines()
    assert told[2] == "| map | them | 1.5 s |  |  |  |  | a note |"
    assert told[3] == told[4] == "| map | us | 2 ms | 0 | 1,200 |  | 1.0400 |  |"
    assert len(told) == 7


def test_what_stands_between_marks_is_replaced():
    text = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n"
    assert table.put(text, "x", "new\n") == text.replace("old", "new")
    with pytest.raises(SystemExit, match="no place for y"):
        table.put(text, "y", "new\n")


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_exponent_is_the_power(power):
    sizes = [100, 200, 400, 800]
    assert growth.exponent(sizes, [3.0 * n**power for n in sizes]) == pytest.approx(power)


def test_a_curve_may_not_be_steeper_than_stated():
    steep = growth.Curve("call", "P", [1, 2], [1.0, 4.0], 2.0, 1.0)
    assert not steep.ok
    assert "GROWS FASTER" in growth.line(steep)
    assert growth.Curve("call", "P", [1, 2], [1.0, 4.0], 2.0, None).ok
    assert growth.Curve("call", "P", [1, 2], [1.0, 2.0], 1.0 + growth.MARGIN, 1.0).ok


def test_axes_pass_through_sizes_that_calls_know():
    for call in growth.CALLS.values():
        assert call.stated.keys() <= growth.AXES.keys() == growth.MIDDLE.keys()


def test_twice_does_everything_twice():
    done = []
    numbers = iter(range(100))
    contender = Contender(done.append, lambda: (next(numbers),))
    least_seconds(twice(contender), rounds=6)
    assert done == list(range(14))


def test_maps_have_no_gaps_among_ids_and_name_items_before_they_are_used():
    crush = regular(3, 2, 2, "host", 4)
    assert sorted(bucket.id for bucket in crush.buckets) == list(range(-10, 0))
    assert crush.map(0, np.arange(50), 3).length.min() == 3
    lines = as_text(crush).splitlines()
    named = {line.split()[1] for line in lines if line.endswith("{")} | {"osd.0"}
    seen = {line.split()[2] for line in lines if line.startswith("device ")}
    for line in lines:
        words = line.split()
        if words[0] == "item":
            assert words[1] in seen
        elif line.endswith("{"):
            seen.add(words[1])
    assert named <= seen


def test_a_row_is_written_with_what_makes_sense_for_it():
    bare = str(Row(input="map", who="tool", cpu=1.0, wall=2.0, note="a note"))
    full = str(Row(input="map", who="us", cpu=1.0, wall=2.0, broken=0, moves=12, bound=11,
                   max_over_mean=1.04))  # fmt: skip
    assert bare.endswith("a note")
    assert full.split()[-4:] == ["0", "12", "11", "1.0400"]
