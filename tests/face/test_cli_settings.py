"""What several commands share: changes to the cluster, a file of options, examples, completion."""

import json
import os
import shlex

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.cli import command_parser, main
from evenkeel.cli.reading import too_few_domains
from evenkeel.model.newcomers import more_alike
from evenkeel.systems import registry
from evenkeel.systems.tables.reading import read_newcomers

COMMANDS = command_parser()[1]


def cluster():
    """Twelve partitions on four nodes of two zones, all of them on the first two."""
    return ek.Cluster.from_arrays(
        capacity=[[9.0, 90.0]] * 4, load=[[1.0, 1.0]] * 12, dimensions=["cpu", "disk"],
        placement=[[0], [1]] * 6, domains={"zone": ["a", "a", "b", "b"]},
        node_names=["n1", "n2", "n3", "n4"], group=["orders"] * 8 + ["audit"] * 4,
    )  # fmt: skip


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The cluster as a file, in a working folder of its own."""
    monkeypatch.chdir(tmp_path)
    ek.write(cluster(), "cluster.npz")
    return "cluster.npz"


def placed(*asked):
    """Where a solve with these arguments puts everything, by node."""
    assert main(["solve", "cluster.npz", "-o", "placed.npz", "-q", *asked]) == 0
    found = ek.read("placed.npz")
    held = np.bincount(found.placement.node, minlength=len(found.nodes))
    return dict(zip(found.nodes.names, held.tolist(), strict=True))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_parser_of_a_command_is_made_without_the_others(name):
    parser, commands = command_parser(name)
    assert [*commands] == [name]
    assert commands[name].format_help() == COMMANDS[name].format_help()
    assert parser.format_usage() == command_parser()[0].format_usage()


class TestChanges:
    def test_a_drained_node_gives_all_away_and_an_excluded_one_takes_nothing(self, file):
        held = placed("--drain", "n1", "--exclude", "n3")
        assert held["n1"] == held["n3"] == 0
        assert sum(held.values()) == 12

    def test_nodes_are_chosen_by_expression_too(self, file):
        held = placed("--drain", "zone=a")
        assert (held["n1"], held["n2"]) == (0, 0)

    def test_pinned_partitions_stay(self, file):
        placed("--pin", "group=audit", "--level", "0")
        before, after = cluster().placement, ek.read("placed.npz").placement
        assert after.node[8:].tolist() == before.node[8:].tolist()

    def test_other_numbers_of_replicas_are_wanted(self, file, capsys):
        placed("--replicas", "audit=2")
        group = ek.read("placed.npz").partitions
        audit = group.group == group.group_names.index("audit")
        assert set(group.replicas[audit]) == {2} and set(group.replicas[~audit]) == {1}
        asked = ["--replicas", "audit=0", "--replicas", "nobody=1", "--pin", "p99"]
        assert main(["check", file, *asked]) == 2
        told = capsys.readouterr().err
        assert "--replicas: must be GROUP=N" in told and "--pin: is neither" in told
        assert "names no group" in told

    def test_so_many_nodes_more_go_where_domains_have_fewest(self, file):
        held = placed("--add-nodes", "2")
        assert [*held] == ["n1", "n2", "n3", "n4", "new0", "new1"]
        assert ek.read("placed.npz").topology.label[0].tolist() == [0, 0, 1, 1, 0, 1]
        assert min(held.values()) > 0

    @pytest.mark.parametrize(
        ("given", "names", "noted"),
        [
            ("1", ["new0"], "adds new0 (zone a)"),
            ("n7,n8", ["n7", "n8"], "adds n7 (zone a), n8 (zone b)"),
            ("7,", ["7"], "adds 7 (zone a)"),
            ("6", [*(f"new{i}" for i in range(6))], "new4 (zone a) and 1 more"),
        ],
    )
    def test_added_nodes_may_be_named(self, file, capsys, given, names, noted):
        assert [*placed("--add-nodes", given)][4:] == names
        assert main(["check", file, "--add-nodes", given]) == 0
        assert f"{noted}\n" in capsys.readouterr().err

    @pytest.mark.parametrize(
        "given", ["n7", "missing.csv", "n7,n7", "n1,n9", ",", "-1", f"{'n' * 300},n1"]
    )
    def test_nodes_that_cannot_be_added_are_refused(self, file, capsys, given):
        assert main(["check", file, f"--add-nodes={given}"]) == 2
        assert "--add-nodes" in capsys.readouterr().err

    def test_nodes_of_a_table_may_be_chosen_at_once(self, file, tmp_path):
        (tmp_path / "more.csv").write_text("node,zone,cap_cpu,cap_disk\nbig,c,90,900\n")
        held = placed("--add-nodes", "more.csv", "--exclude", "zone=b", "--exclude", "big")
        assert held["n3"] == held["big"] == 0

    def test_new_nodes_have_the_capacity_of_all_where_none_is_told(self, file, tmp_path, capsys):
        (tmp_path / "more.csv").write_text("node,zone,cap_cpu\nbig,a,90\n")
        assert main(["solve", file, "--add-nodes", "more.csv", "-o", "placed.npz"]) == 0
        found = ek.read("placed.npz").nodes
        assert found.capacity[-1].tolist() == [90.0, found.capacity[0, 1]]
        told = capsys.readouterr().err
        assert "more.csv gives no capacity for these: new nodes have what all have" in told
        assert main(["check", file, "--add-nodes", "more.csv", "-q"]) == 0
        assert capsys.readouterr().err == ""

    def test_but_not_where_those_there_are_differ(self, file, tmp_path, capsys):
        (tmp_path / "more.csv").write_text("node,zone\nbig,a\n")
        unlike = cluster()
        capacity = unlike.nodes.capacity.copy()
        capacity[0, 0] *= 2.0
        ek.write(unlike.replace(capacity=capacity), "unlike.npz")
        assert main(["check", "unlike.npz", "--add-nodes", "more.csv"]) == 2
        told = capsys.readouterr().err
        assert "cap_cpu: is missing, and nodes differ: they have" in told
        assert "cap_disk" not in told

    def test_a_rule_yields_where_too_few_domains_are_left(self, file, tmp_path, capsys):
        three = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 6, load=[[1.0]] * 6, placement=[[0, 2, 4], [1, 3, 5]] * 3,
            domains={"rack": [*"aabbcc"]}, spread={"rack": 1},
        )  # fmt: skip
        ek.write(three, "three.npz")
        assert main(["solve", "three.npz", "--drain", "rack=c"]) == 4
        told = capsys.readouterr()
        note = "at most 1 of 3 replicas in one rack, and nodes that take any are left in 2 only"
        assert note in told.err
        assert "--soft rack lets the rule yield" in told.err
        assert "in too few places, by spread" in " ".join(told.out.split())
        asked = ["--drain", "rack=c", "--soft", "rack", "-o", "placed.npz"]
        assert main(["solve", "three.npz", *asked]) == 0
        assert "--soft" not in capsys.readouterr().err
        placement = ek.read("placed.npz").placement
        assert placement.node.max() < 4
        assert all(len({*row}) == 3 for row in placement.nodes.tolist())

    @pytest.mark.parametrize("system", ["", *registry.ROOMS])
    def test_no_rule_yields_that_its_system_enforces(self, system):
        two = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 4, load=[[1.0]], placement=[[0, 1, 2]],
            domains={"rack": [*"aabb"]}, spread={"rack": 1}, native_format=system,
        )  # fmt: skip
        (note,) = too_few_domains(two)
        enforced = ("elasticsearch", "kubernetes", "longhorn", "ceph", "cockroach", "nats")
        assert ("--soft" in note) == (system not in enforced)

    @pytest.mark.parametrize(("spread", "notes"), [({}, 1), ({"node": 2}, 0), ({"rack": 1}, 1)])
    def test_fewer_nodes_than_replicas_are_noted_once(self, spread, notes):
        two = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 2, load=[[1.0]], placement=[[0, 1, -1]],
            domains={"rack": [*"ab"]}, spread=spread,
        )  # fmt: skip
        assert len([*too_few_domains(two)]) == notes

    def test_only_a_rule_that_there_is_yields(self, file, capsys):
        assert main(["check", file, "--soft", "rack"]) == 2
        assert "--soft: no hard rule is about it" in capsys.readouterr().err

    def test_everything_wrong_is_told_at_once(self, file, capsys):
        asked = ["--drain", "n9", "--pin", "orders", "--exclude", "row=1", "--add-nodes", "0"]
        assert main(["check", file, *asked]) == 2
        told = capsys.readouterr().err
        assert [line.split()[1] for line in told.splitlines()] == [
            "--add-nodes:", "--drain:", "--exclude:", "--pin:"
        ]  # fmt: skip

    @pytest.mark.parametrize("command", ["solve", "plan", "check", "sweep", "frontier", "simulate"])
    def test_every_command_about_a_cluster_takes_them(self, file, command, capsys):
        main([command, file, "--drain", "n1", "--json"])
        assert json.loads(capsys.readouterr().out)

    def test_a_plan_is_of_its_cluster(self, file, capsys):
        assert main(["plan", file, "-o", "plan.json", "-q"]) == 0
        assert main(["check", "plan.json", "--drain", "n1"]) == 2
        assert main(["check", "plan.json", "--throttle", "copies=1"]) in (0, 1)
        assert main(["check", file, "--throttle", "copies=1", "--moves", "1"]) == 2
        assert capsys.readouterr().err.count("goes with a plan") == 2


class TestLimits:
    def test_a_plan_is_held_to_them(self, file, capsys):
        asked = ["--level", "0", "-o", "plan.json", "-q"]
        assert main(["plan", file, *asked]) == 0
        plan = ek.read_plan("plan.json")
        moved = plan.copies
        assert main(["check", "plan.json", "--moves", str(moved), "--node-in", "12"]) == 0
        assert main(["check", "plan.json", "--moves", str(moved - 1), "-q"]) == 1
        assert f"moves {moved} above {moved - 1}" in capsys.readouterr().err
        limits = ["--domain-in", "zone=1", "--domain-out", "zone=99", "--partition-moves", "0"]
        assert main(["check", "plan.json", *limits, "--json"]) == 1
        told = json.loads(capsys.readouterr().out)["exceeded"]
        assert [one.rpartition(" above")[0].rpartition(" ")[0] for one in told] == [
            "partition_moves", "domain_in zone"
        ]  # fmt: skip


class TestNewcomers:
    def test_they_join_racks_and_come_on_hosts_of_their_own(self):
        hosts = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 2, load=[], domains={"rack": ["a", "b"], "host": ["h0", "h1"]},
            node_names=["3", "7"], tags={"ssd": [True, False]}, weight=[1.0, 2.0],
        )  # fmt: skip
        more = more_alike(hosts, 3)
        assert more.nodes.names[2:] == ("8", "9", "10")
        assert more.topology.label[0].tolist() == [0, 1, 0, 1, 0]
        assert len(set(more.topology.label[1].tolist())) == 5

    def test_the_dead_and_the_closed_are_no_example(self):
        half = ek.Cluster.from_arrays(
            capacity=[[1.0], [2.0]], load=[], alive=[False, True], domains={"zone": ["a", "a"]}
        )
        assert more_alike(half, 2).nodes.capacity[2:].tolist() == [[2.0]] * 2
        with pytest.raises(ek.InvalidInput, match="no node accepts"):
            more_alike(half.cordon(1), 1)

    def test_what_is_wrong_with_a_table_of_them(self):
        there = cluster()
        unlike = there.nodes.capacity * np.arange(1, len(there.nodes) + 1)[:, None]
        with pytest.raises(ek.InvalidInput) as caught:
            read_newcomers(b"zone,cap_cpu,row,state\nc,9,1,up\n", there.replace(capacity=unlike))
        assert [fault.path for fault in caught.value.faults] == [
            "<bytes>: row", "<bytes>: state", "<bytes>", "<bytes>: cap_disk"
        ]  # fmt: skip

    @pytest.mark.parametrize("table", [b"node\n7\n8\n", b"node,rack\n7,\n8,\n"])
    def test_newcomers_say_where_they_are_if_rules_ask(self, table):
        spread = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 2, load=[[1.0]], placement=[[0, 1]], domains={"rack": ["a", "b"]},
            rules=[ek.Rule(spread={"rack": 1})], rule=[0],
        )  # fmt: skip
        with pytest.raises(ek.InvalidInput, match="have none, and rules count replicas by rack"):
            read_newcomers(table, spread)
        assert len(read_newcomers(b"node,rack\n7,c\n", spread)[0].nodes) == 3
        free = spread.replace(rules=[ek.Rule()])
        assert len(read_newcomers(table, free)[0].nodes) == 4


class TestConfig:
    @pytest.fixture
    def said(self, file, tmp_path, capsys):
        """Write a file of options; return what a command makes of it."""

        def told(text, *asked, name="evenkeel.toml"):
            (tmp_path / name).write_text(text)
            code = main([asked[0], file, *asked[1:]])
            return code, capsys.readouterr()

        return told

    def test_options_hold_without_being_given(self, said):
        _, told = said("level = 'none'\njson = true\n", "solve")
        assert json.loads(told.out)["moves"] == 0

    def test_the_command_line_wins(self, said):
        _, told = said("level = 'none'\njson = true\n", "solve", "--level", "0")
        assert json.loads(told.out)["moves"] > 0

    def test_tables_of_a_command_win_over_the_top(self, said):
        text = "json = true\nlevel = { cpu = 0.0 }\n[solve]\nlevel = 'none'\n"
        assert json.loads(said(text, "solve")[1].out)["moves"] == 0
        assert json.loads(said(text, "plan")[1].out)["copies"] > 0

    def test_lists_and_tables_stand_for_options_given_several_times(self, said):
        text = (
            "json = true\ndrain = ['n1']\n"
            "[plan]\nthrottle = { copies = 1, domain-in = { zone = 4 } }\n"
        )
        assert json.loads(said(text, "plan")[1].out)["waves"] > 2
        wide = json.loads(said(text, "plan", "--throttle", "copies=9")[1].out)
        assert wide["waves"] < json.loads(said(text, "plan")[1].out)["waves"]
        open_ = json.loads(said(text, "solve", "--drain", "n2", "--level", "none")[1].out)
        assert open_["moves"] == 6

    def test_another_file_may_be_named(self, said, tmp_path):
        text = "json = true\nlevel = 'none'\n"
        _, told = said(text, "solve", "--config", "mine.toml", name="mine.toml")
        assert json.loads(told.out)["moves"] == 0

    def test_a_method_of_ones_own_choice_does_not_get_the_options_of_another(self, said):
        text = "method = 'exact'\noption = { first-fit = 1 }\n"
        assert said(text, "solve", "--method", "balance")[0] == 0

    def test_everything_wrong_is_told_with_its_place_and_the_closest(self, said):
        text = (
            "leval = 0.1\nmoves = 'few'\nquiet = 1\n[solve]\nsed = 3\nmoves = [1, 2]\n"
            "[slove]\nseed = 1\n[check]\nseed = 1\n[plan]\nlevel = -1\n"
        )
        code, told = said(text, "versions")
        assert code == 2
        assert [line.split(": ")[2] for line in told.err.splitlines()] == [
            "leval", "moves", "quiet", "solve.sed", "solve.moves", "slove", "check.seed",
            "plan.level",
        ]  # fmt: skip
        assert "did you mean 'level'?" in told.err
        assert "did you mean 'solve'?" in told.err
        assert "did you mean 'seed'?" in told.err

    @pytest.mark.parametrize("text", ["level = ", "\udcff", "a = 1\na = 2"])
    def test_what_is_no_toml(self, said, text, tmp_path):
        (tmp_path / "bad.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
        code, told = said("", "check", "--config", "bad.toml")
        assert code == 2
        assert "bad.toml" in told.err
        assert "is not valid TOML" in told.err

    def test_a_file_that_is_not_there(self, said):
        code, told = said("", "check", "--config", "none.toml")
        assert code == 2
        assert "none.toml" in told.err

    @pytest.mark.parametrize("mark", ["", "\ufeff"])
    def test_what_is_for_others_is_passed_over(self, file, tmp_path, capsys, mark):
        """What stands at the top is for every command that has a use for it."""
        main(["plan", file, "-o", "plan.json", "-q"])
        top = (
            "level = { cpu = 0.05, disk = none }", 'exclude = ["n4"]', "moves = 500",
            'throttle = { node-in = 9 }', 'protocol = "kafka"', 'output = "out.npz"',
        )  # fmt: skip
        commands = (
            ["check", file], ["check", "plan.json"], ["frontier", file, "--points", "2"],
            ["size", file], ["simulate", file, "--until", "60"],
        )  # fmt: skip
        usual = [main([*one, "-q"]) for one in commands]
        text = mark + "\n".join(top).replace("none", '"none"') + "\n"
        (tmp_path / "evenkeel.toml").write_text(text)
        assert [main([*one, "-q"]) for one in commands] == usual
        assert not (tmp_path / "out.npz").exists()
        capsys.readouterr()
        # what the command line says, or the command's own table, is meant
        assert main(["check", file, "--moves", "3"]) == 2
        assert main(["check", file, "--moves", "500"]) == 2
        (tmp_path / "evenkeel.toml").write_text("[check]\nmoves = 500\n")
        assert main(["check", file]) == 2


class TestHelp:
    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command_has_examples_that_it_understands(self, name):
        parser, commands = command_parser()
        assert commands[name].examples
        assert commands[name].examples[0] in commands[name].format_help()
        for line in commands[name].examples:
            words = shlex.split(line.partition(" > ")[0])
            assert words[0] == "evenkeel"
            parser.parse_args(words[1:])

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command_can_speak_to_machines(self, name):
        names = {one for action in COMMANDS[name]._actions for one in action.option_strings}
        assert {"--json", "--quiet", "--config"} <= names


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_knows_commands_options_and_names(shell, capsys):
    assert main(["completion", shell]) == 0
    told = capsys.readouterr().out
    for word in ("frontier", "add-nodes", "helix_waged", "roadef"):
        assert word in told


class TestDiff:
    def test_tells_moves_and_leaders(self, file, capsys):
        placed("--level", "0")
        capsys.readouterr()
        assert main(["diff", file, "placed.npz", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["moves"] == len(told["moved"]) > 0
        assert {one["source"] for one in told["moved"]} <= {"n1", "n2"}
        assert main(["diff", file, "placed.npz"]) == 0
        assert f"{told['moves']} moves" in capsys.readouterr().out

    def test_nothing_between_a_cluster_and_itself(self, file, capsys):
        assert main(["diff", file, file]) == 0
        assert "0 moves" in capsys.readouterr().out

    def test_a_cluster_in_several_files_is_one_before_its_target(self, file, capsys):
        placed("--level", "0")
        assert main(["convert", file, "-o", "now.csv", "-q"]) == 0
        assert main(["diff", file, "placed.npz", "--json"]) == 0
        told = capsys.readouterr().out
        several = ["now.csv", "now.nodes.csv"]
        assert main(["diff", *several, "--target", "placed.npz", "--json"]) == 0
        assert capsys.readouterr().out == told
        assert main(["diff", file, "--target", "placed.npz", "--json"]) == 0
        assert capsys.readouterr().out == told

    def test_one_cluster_alone_has_nothing_to_differ_from(self, file, capsys):
        assert main(["diff", file]) == 2
        assert "AFTER: names no file" in capsys.readouterr().err

    def test_another_cluster_is_refused(self, file, capsys):
        ek.write(ek.Cluster.from_arrays(capacity=[[1.0]], load=[[1.0]], placement=[[0]]), "b.npz")
        assert main(["diff", file, "b.npz"]) == 2


class TestConvert:
    def test_there_and_back(self, file):
        assert main(["convert", file, "-o", "c.csv", "-q"]) == 0
        assert main(["convert", "c.csv", "c.nodes.csv", "-o", "back.npz", "-q"]) == 0
        back = ek.read("back.npz")
        assert back.placement.node.tolist() == cluster().placement.node.tolist()

    def test_what_was_read_is_kept(self, file, capsys):
        assert main(["convert", file, "-o", file]) == 2
        assert main(["convert", file, "-o", file, "--force", "--drain", "n1"]) == 0
        assert not ek.read(file).nodes.keeps[0]

    def test_what_a_format_does_not_hold_is_noted(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        ek.write(
            ek.Cluster.from_arrays(
                capacity=[[9.0]] * 4, load=[[2.0]] * 2, node_names=["1", "2", "3", "4"],
                partition_names=["t-0", "t-1"], placement=[[0, 1], [1, 2]],
                domains={"rack": [*"abcd"]}, alive=[True, True, False, True], spread={"rack": 1},
            ),
            "c.npz",
        )  # fmt: skip
        assert main(["convert", "c.npz", "--to", "kafka", "-o", "k.json", "--pin", "t-0"]) == 0
        told = capsys.readouterr().err
        for what in ("nodes on which nothing stands (1)", "states of nodes", "loads and capacities",
                     "tiers", "pins", "rules"):  # fmt: skip
            assert what in told
        for out in ("d.npz", "c.rows.json", "d.csv"):
            assert main(["convert", "c.npz", "-o", out, "--json"]) == 0
            told = capsys.readouterr()
            assert json.loads(told.out)["lost"] == [] and "does not hold" not in told.err


class TestOutputs:
    """Two outputs in one file, or on a stream, would lose one of them."""

    @pytest.mark.parametrize(
        "words",
        [
            ["solve", "cluster.npz", "-o", "a.csv", "--table", "a.csv"],
            ["solve", "cluster.npz", "-o", "a.csv", "--table", "./b/../a.csv"],
            ["solve", "cluster.npz", "--report", "a.html", "-o", "a.html"],
            ["plan", "cluster.npz", "-o", "p.json", "--table", "p.json"],
            ["solve", "cluster.npz", "-o", "-"],
            ["plan", "cluster.npz", "-o", "-"],
            ["convert", "cluster.npz", "-o", "-"],
        ],
    )
    def test_nothing_is_written(self, words, file, tmp_path, capsys):
        (tmp_path / "b").mkdir()
        assert main(words) == 2
        assert "OUT: " in capsys.readouterr().err
        assert sorted(one.name for one in tmp_path.iterdir()) == ["b", "cluster.npz"]

    @pytest.mark.parametrize("command", ["solve", "convert", "plan"])
    @pytest.mark.parametrize("out", ["loop", "loop/x.json", "fifo.json"])
    def test_what_is_no_file_is_not_replaced(self, command, out, file, tmp_path, capsys):
        (tmp_path / "loop").symlink_to("loop")
        os.mkfifo(tmp_path / "fifo.json")
        assert main([command, file, "-o", out, "--force"]) == 2
        assert (tmp_path / "fifo.json").is_fifo()
        assert (tmp_path / "loop").is_symlink()

    def test_what_stands_beside_an_output_is_kept(self, file, tmp_path, capsys):
        words = ["solve", file, "-o", "a.csv", "--table", "a.nodes.csv"]
        assert main(words) == 2
        assert "a.nodes.csv" in capsys.readouterr().err
        placed = ek.read("a.csv", "a.nodes.csv")
        assert placed.nodes.names[:4] == ("n1", "n2", "n3", "n4")


class TestStudies:
    def test_sweep_loses_each_in_turn(self, file, capsys):
        code = main(["sweep", file, "--lose", "zone", "--json"])
        rows = json.loads(capsys.readouterr().out)["scenarios"]
        assert len(rows) == 2
        assert code == (0 if all(row["fits"] for row in rows) else 1)
        assert main(["sweep", file, "--lose", "row"]) == 2

    def test_frontier_trades_moves_for_level(self, file, capsys):
        assert main(["frontier", file, "--points", "4", "--json"]) == 0
        plans = json.loads(capsys.readouterr().out)["plans"]
        moves = [one["moves"] for one in plans]
        assert moves == sorted(moves)
        assert plans[0]["level"] >= plans[-1]["level"]

    def test_simulate_plays_events(self, file, capsys):
        asked = ["--down", "n1@60", "--back", "n1@4000", "--until", "7200"]
        assert main(["simulate", file, *asked, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["events"][0]["seconds"] == 60.0
        assert told["moves"] > 0
        assert main(["simulate", file, *asked]) == 0
        assert "n1 down" in capsys.readouterr().out

    @pytest.mark.parametrize("event", ["n1", "n1@", "@5", "n1@-1", "n1@nan", "n1@inf"])
    def test_an_event_needs_nodes_and_a_time(self, file, event, capsys):
        assert main(["simulate", file, "--down", event]) == 2
        assert "NODE@SECONDS" in capsys.readouterr().err
