"""What the command line tells of sweeps and simulations: how long repairs take, and a page."""

import pytest

import evenkeel as ek
from evenkeel.cli import main


@pytest.fixture
def file(tmp_path):
    """A cluster of four partitions on two of three nodes."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4, domains={"zone": [*"abc"]}
    )
    ek.write(cluster, tmp_path / "c.npz")
    return str(tmp_path / "c.npz")


def test_a_sweep_tells_how_long_repairs_take(file, capsys):
    assert main(["sweep", file, "--throttle", "node-in=1"]) == 0
    heads = capsys.readouterr().out.splitlines()[1].split("  ")
    assert heads[-2:] == ["seconds", "short for"]
    assert main(["sweep", file]) == 0
    assert "seconds" not in capsys.readouterr().out


def test_a_simulation_has_a_page(file, tmp_path, capsys):
    page = tmp_path / "run.html"
    asked = ["simulate", file, "--down", "n0@60", "--until", "600"]
    assert main([*asked, "--report", str(page)]) == 0
    assert f"wrote {page}" in capsys.readouterr().out
    assert "n0 down" in page.read_text()
    assert main([*asked, "--report", "run.txt"]) == 2
