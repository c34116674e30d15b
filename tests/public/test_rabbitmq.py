"""What operators of RabbitMQ brought to its trackers and lists, and what is right there."""

import json
import re
from collections import Counter

import pytest

import evenkeel as ek

CALL = re.compile(r"^(join|lead|leave) (?:/ )?(\S+) (rabbit@\S+)?", re.MULTILINE)


def calls(case, name="out.sh"):
    """Return the calls of a script that was written, as (what, queue, node)."""
    return [
        found
        for found in CALL.findall(case.written(name))
        if found[1].startswith(("q", "orders", "alone"))
    ]


@pytest.mark.parametrize("files", [("queues.json", "status.json"), ("queues.json",)])
def test_members_on_nodes_that_were_forgotten_are_deleted_and_others_join(public, files):
    case = public("rabbitmq/ghost-members")
    answer = case.run("solve", *files, "--leaders", "0", "-o", "out.sh")
    assert answer.code == 3  # of orders.4 nothing can be done
    assert "orders.4 (on rabbit@old, rabbit@old2, rabbit@n4)" in answer.text
    assert ("rabbit@old in 3 queues" in answer.text) == (len(files) == 2)
    assert calls(case) == [
        ("leave", "orders.1", "rabbit@old"), ("join", "orders.1", "rabbit@n4"),
        ("leave", "orders.2", "rabbit@old"), ("join", "orders.2", "rabbit@n1"),
    ]  # fmt: skip


def test_leaders_are_level_again_after_a_rolling_restart(public):
    case = public("rabbitmq/leaders-after-a-rolling-restart")
    files = ("queues.json", "status.json")
    answer = case.run("solve", *files, "--leaders", "0", "-o", "out.sh", "--table", "moves.csv")
    assert answer.code == 0
    assert Counter(what for what, _, _ in calls(case)) == {"lead": 3}


@pytest.mark.parametrize(
    ("name", "told", "placed"),
    [("classic-queues-alone", "4 classic", 0),
     ("mirrored-queues-of-the-api", "3 mirrored classic, 1 stream", 1)],
)  # fmt: skip
def test_what_is_no_quorum_queue_is_noted(public, name, told, placed):
    cases = {
        "classic-queues-alone": "rabbitmq/classic-queues-alone",
        "mirrored-queues-of-the-api": "rabbitmq/mirrored-queues-of-the-api",
    }
    answer = public(cases[name]).run("solve", "queues.json", "status.json")
    assert answer.code == 0
    assert f"no quorum queues ({told})" in answer.text
    assert f"{placed} partition" in answer.text


def test_in_a_partition_of_the_network_its_queues_are_left_alone(public):
    case = public("rabbitmq/partition-of-the-network")
    answer = case.run("solve", "queues.json", "nodes.json", "--leaders", "0", "-o", "out.sh")
    assert "a network partition (rabbit@server-1, rabbit@server-2)" in answer.text
    assert {queue for _, queue, _ in calls(case)} <= {"alone"}  # it has no member there


def test_no_member_comes_to_a_node_with_an_alarm(public):
    case = public("rabbitmq/disk-alarm")
    answer = case.run("solve", "queues.json", "status.json", "-o", "out.sh")
    assert "alarms of memory or disk on rabbit@server-3" in answer.text
    joined = [node for what, _, node in calls(case) if what == "join"]
    assert joined == ["rabbit@server-4"] * 4


def test_no_leader_comes_to_a_node_in_maintenance(public):
    case = public("rabbitmq/node-in-maintenance")
    answer = case.run("solve", "queues.json", "status.json", "--leaders", "0", "-o", "out.sh")
    assert answer.code == 0
    assert calls(case) == []
    assert "unknown" not in answer.text


def test_an_offline_member_gives_way_to_a_fourth_node(public):
    case = public("rabbitmq/fourth-node-beside-an-offline-member")
    assert case.run("solve", "queues.json", "status.json", "-o", "out.sh").code == 0
    assert calls(case) == [
        call
        for queue in ("q0", "q1", "q2", "q3")
        for call in (("leave", queue, "rabbit@server-2"), ("join", queue, "rabbit@server-3"))
    ]


def test_a_queue_with_one_member_grows_where_that_is_asked_for(public):
    case = public("rabbitmq/queue-with-one-member")
    files = ("queues.json", "status.json")
    answer = case.run("solve", *files, "-o", "out.sh")
    assert answer.code == 0
    assert "no leaders of queues" in answer.text
    assert "moves 0" in answer.text
    assert "1 queue with fewer than three members" in case.run("check", "queues.json").text
    assert case.run("solve", *files, "--replicas", "/=3", "-o", "more.sh").code == 0
    joins = re.findall(r"^join / (\S+) (\S+)", case.written("more.sh"), re.MULTILINE)
    assert joins == [("notifications.info", "rabbit@ctrl1"), ("notifications.info", "rabbit@ctrl2")]


def test_leaders_leave_the_node_that_declared_all_queues(public):
    case = public("rabbitmq/all-leaders-on-the-declaring-node")
    files = [case.path(name) for name in ("queues.json", "status.json")]
    cluster = ek.read(files)
    kept = ek.solve(cluster, "leaders")
    assert (kept.comparison.moves, int(kept.levelness.leaders.max())) == (0, 4)
    level = ek.solve(cluster, goals=ek.Goals(level=None, leaders=0.0))
    assert level.comparison.moves <= 1
    assert {*level.levelness.leaders.tolist()} == {3}
    members = ek.solve(cluster).levelness.loads[:, 0]
    assert {*members.tolist()} == {9.0}


def test_a_node_that_is_needed_for_a_majority_keeps_its_members(public):
    case = public("rabbitmq/quorum-critical-node-is-drained")
    files = ("queues.json", "status.json")
    answer = case.run("solve", *files, "--drain", "rabbit@server-1", "-o", "out.sh")
    assert answer.code == 4
    assert {what for what, _, _ in calls(case)} <= {"lead"}


def test_a_queue_that_tells_nothing_is_named_and_the_others_are_read(public):
    case = public("rabbitmq/queue-that-tells-nothing")
    answer = case.run("check", "queues.json", "status.json")
    assert "no members of quorum queues (q0)" in answer.text
    assert "q1: rabbit@server-9" in answer.text
    assert "1 partition ·" in answer.text


def test_a_page_of_the_api_says_what_it_leaves_out():
    queue = {"name": "q", "vhost": "/", "type": "quorum", "leader": "rabbit@a",
             "members": ["rabbit@a", "rabbit@b"], "online": ["rabbit@a", "rabbit@b"]}  # fmt: skip
    page = {"filtered_count": 9, "item_count": 1, "items": [queue], "page": 1, "total_count": 9}
    cluster = ek.read(json.dumps(page).encode())
    assert list(cluster.partitions.names) == ["q"]
    assert any("1 of 9 queues" in one for one in cluster.native["notes"])


def test_pages_with_chosen_columns(public):
    case = public("rabbitmq/pages-of-the-api")
    words = ("--drain", "*server-0*", "-o", "out.sh")
    answer = case.run("solve", "queues.json", "nodes.json", *words)
    assert (answer.code, "3 nodes, 3 alive" in answer.text) == (0, True)
    assert "no quorum queues (1 classic, 1 stream)" in answer.text
    assert "join / jobs rabbit@rabbitmq-server-2" in case.written("out.sh")
    assert "queues: the others" not in answer.text
    missing = "1 of 2 queues: the others are not counted"
    assert missing in case.run("check", "part.json", "nodes.json").text
    part = case.path("part.json").read_bytes()
    second = part.replace(b'"jobs"', b'"more"')
    for given in ((part, second), (part + b"\n" + second,)):
        cluster = ek.read(*given)
        assert [*cluster.partitions.names] == ["jobs", "more"]
        assert not any("others are not counted" in one for one in cluster.native["notes"])


def test_a_member_that_does_not_run_leads_nothing(public):
    case = public("rabbitmq/member-that-does-not-run")
    answer = case.run("solve", "queues.json", "status.json", "--leaders", "0", "-o", "out.json")
    assert answer.code == 0
    assert "not online, on nodes that run (q0: rabbit@rabbit-1, q3: rabbit@rabbit-1" in answer.text
    led = {row["name"]: row["leader"] for row in json.loads(case.written("out.json"))}
    assert sorted(Counter(led.values()).values()) == [3, 3, 3]
    assert not {name for name in ("q0", "q3", "q6") if led[name] == "rabbit@rabbit-1"}
    words = ("--no-lead", "rabbit@rabbit-0", "--no-lead", "rabbit@rabbit-2", "-o", "last.json")
    answer = case.run("solve", "queues.json", "status.json", *words)
    assert answer.code == 3
    assert "no replica elsewhere can lead 3 partitions (q0, q3, q6)" in answer.text
    led = {row["name"]: row["leader"] for row in json.loads(case.written("last.json"))}
    halted = {"q0", "q3", "q6"}
    assert {name for name in led if led[name] == "rabbit@rabbit-1"} == {*led} - halted


def test_a_member_without_a_vote_leads_nothing(public):
    case = public("rabbitmq/member-without-a-vote")
    words = ("--no-lead", "rabbit-0@*", "--no-lead", "rabbit-1@*", "--level", "none")
    answer = case.run("solve", "status.txt", *words, "-o", "out.json")
    assert answer.code == 3
    assert "without a vote, which catch up (input: rabbit-2@3c22fb6527ee)" in answer.text
    led = {row["name"]: row["leader"][:8] for row in json.loads(case.written("out.json"))}
    assert led == {"input": "rabbit-0", "output": "rabbit-2"}


def test_the_command_names_the_virtual_host_of_a_status(public):
    case = public("rabbitmq/quorum-status-of-another-host")
    for file, hosts in (("json.txt", {"fastedge_dev"}), ("table.txt", {"/", "shop"})):
        keys = ek.read(case.path(file)).native["keys"].values()
        assert {host for host, _ in keys} == hosts
    alone = case.path("json.txt").read_bytes().partition(b"\n")[2]
    with pytest.raises(ek.InvalidInput, match="is quorum_status of one queue: list all with"):
        ek.read(alone)


def test_a_member_that_does_not_run_leaves_a_node_that_is_drained(public, tmp_path):
    case = public("rabbitmq/member-that-does-not-run")
    status = json.loads(case.path("status.json").read_text())
    for nodes in ("running_nodes", "disk_nodes"):
        status[nodes].append("rabbit@rabbit-3")
    (tmp_path / "four.json").write_text(json.dumps(status))
    files = ("queues.json", str(tmp_path / "four.json"))
    answer = case.run("solve", *files, "--drain", "rabbit@rabbit-1", "-o", "out.json")
    assert answer.code == 0
    rows = json.loads(case.written("out.json"))
    assert not any("rabbit@rabbit-1" in row["members"] for row in rows)


def test_a_queue_without_a_leader_is_named_and_left_alone(public):
    case = public("rabbitmq/queue-without-a-leader")
    answer = case.run("solve", "queues.json", "status.json", "-o", "out.sh")
    assert answer.code == 3 and "broken-queue (on" in answer.text
    assert "\njoin / good" in case.written("out.sh")
    assert "broken-queue" not in case.written("out.sh")


def test_calls_name_the_virtual_host_of_their_queue(public):
    case = public("rabbitmq/two-virtual-hosts")
    answer = case.run("solve", "queues.json", "status.json", "--leaders", "0", "-o", "out.sh")
    assert answer.code == 0
    found = re.findall(r"^lead (q\d) .*?rabbit_misc:r\(<<(.*?)>>", case.written("out.sh"), re.M)
    assert found
    assert all((host == '"prod"') == (queue in ("q3", "q4", "q5")) for queue, host in found)


def test_members_are_added_where_one_node_was_up(public):
    case = public("rabbitmq/imported-while-one-node-was-up")
    files = ("queues.json", "status.json", "--replicas", "/=3", "-o", "out.sh")
    assert case.run("solve", *files, "--level", "5%").code == 0
    assert Counter(what for what, _, _ in calls(case)) == {"join": 12}
    usual = case.run("solve", *files, "--force")
    assert "as usual for rabbitmq" in usual.err and "--leaders 0.1" in usual.err
    assert Counter(what for what, _, _ in calls(case)) == {"join": 12, "lead": 4}


def test_a_node_that_is_to_leave_is_emptied(public):
    case = public("rabbitmq/node-to-be-removed")
    words = ("--drain", "rabbit@rabbit-0", "--level", "none")
    assert case.run("solve", "queues.json", "status.json", *words, "-o", "out.sh").code == 0
    found = calls(case)
    for queue in {queue for _, queue, _ in found}:
        steps = [(what, node) for what, one, node in found if one == queue]
        assert steps[0] == ("join", "rabbit@rabbit-3")
        assert steps[-1] == ("leave", "rabbit@rabbit-0")


FILES = ("queues.json", "status.json")


def test_members_of_removed_nodes_are_deleted_where_no_other_node_is_left(public):
    case = public("rabbitmq/two-of-five-removed")
    answer = case.run("solve", *FILES, "-o", "out.sh")
    assert answer.code == 0 and "more members than nodes of the cluster (q0" in answer.text
    found = calls(case)
    assert Counter(what for what, _, _ in found) == {"leave": 12}
    assert {node for _, _, node in found} == {"rabbit@rabbit-3", "rabbit@rabbit-4"}


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("rabbitmq/members-decommissioned", "old0 (on rabbit@a"),
        ("rabbitmq/three-of-five-lost", "q0 (on rabbit@"),
    ],
)
def test_queues_that_lost_their_majority_are_named_with_what_can_be_done(public, name, named):
    case = public(name)
    answer = case.run("solve", *FILES, "-o", "out.sh")
    assert answer.code in (3, 4) and named in answer.text
    assert "declare it anew" in answer.text
    assert not re.findall(r"^(?:join|lead|leave) /", case.written("out.sh"), re.MULTILINE)


def test_members_that_are_too_many_leave_but_never_a_leader(public):
    case = public("rabbitmq/five-members-become-three")
    answer = case.run("solve", *FILES, "--replicas", "/=3", "--level", "0", "-o", "out.json")
    assert answer.code == 0
    rows = json.loads(case.written("out.json"))
    assert [row["leader"] for row in rows] == [f"rabbit@rabbit-{i}" for i in range(5)]
    assert {*Counter(name for row in rows for name in row["members"]).values()} == {3}


def test_zones_have_as_many_members_as_their_number_requires(public):
    case = public("rabbitmq/five-nodes-in-three-zones")
    words = (*FILES, "zones.json", "--level", "none")
    assert case.run("solve", *words, "-o", "out.sh").code == 0
    assert re.findall(r"^(join|leave) / (\S+) (\S+)", case.written("out.sh"), re.MULTILINE) in (
        [("join", "s", "rabbit@rabbit-4"), ("leave", "s", f"rabbit@rabbit-{i}")] for i in (0, 1)
    )


def test_a_listing_may_have_many_columns(public):
    case = public("rabbitmq/many-columns")
    assert case.run("solve", *FILES, "--leaders", "0", "-o", "out.json").code == 0
    assert len({row["leader"] for row in json.loads(case.written("out.json"))}) == 3


def test_a_node_under_another_name_takes_the_place_of_the_old_one(public):
    case = public("rabbitmq/node-under-another-name")
    assert case.run("solve", *FILES, "-o", "out.sh").code == 0
    found = calls(case)
    for queue in ("q0", "q1", "q2", "q3"):
        steps = [(what, node) for what, one, node in found if one == queue]
        assert steps[0] == ("leave", "rabbit@rabbit-2") and steps[1][0] == "join"


def test_a_node_in_maintenance_gives_its_leads_away(public):
    case = public("rabbitmq/maintenance-node-still-leads")
    assert case.run("solve", *FILES, "--leaders", "0", "-o", "out.json").code == 0
    led = Counter(row["leader"] for row in json.loads(case.written("out.json")))
    assert led == {"rabbit@rabbit-1": 2, "rabbit@rabbit-2": 2}


def test_a_queue_whose_name_no_command_takes_stays_and_the_others_move(public, tmp_path):
    case = public("rabbitmq/many-columns")
    queues = json.loads(case.path("queues.json").read_text())
    queues[0]["name"] = "$aws/things"
    (tmp_path / "q.json").write_text(json.dumps(queues))
    cluster = ek.read([tmp_path / "q.json", case.path("status.json")])
    assert len(cluster.partitions) == len(queues)
    answer = case.run("solve", str(tmp_path / "q.json"), "status.json", "-o", "p.sh")
    assert answer.code == 0  # others give their leads away in its place
    assert "$aws/things" in answer.err
    script = case.written("p.sh")
    assert "lead q" in script
    assert "$aws" not in script


def test_leaders_of_an_import_are_level_after_six_transfers(public):
    case = public("rabbitmq/balanced-locator-skews")
    words = ("--level", "none", "--leaders", "0")
    answer = case.run("solve", "queues.json", "status.json", *words, "-o", "out.sh")
    assert answer.code == 0
    assert Counter(what for what, _, _ in calls(case)) == {"lead": 6}


def test_a_queue_of_a_forgotten_node_is_named_and_left_alone(public):
    case = public("rabbitmq/queue-of-a-forgotten-node")
    answer = case.run("solve", "queues.json", "status.json", "-o", "out.sh")
    assert answer.code == 3 and "test (on rabbit@rmq3)" in answer.text
    assert "declare it anew" in answer.text
    assert calls(case) == [] and not re.search(
        r"^(join|lead|leave) \S", case.written("out.sh"), re.M
    )


def test_a_queue_is_named_after_its_request(public):
    cluster = ek.read(public("rabbitmq/queue-asked-for-by-name").path("session.txt"))
    assert [*cluster.partitions.names] == ["analytics.clicks"] and len(cluster.nodes) == 3


def test_queues_that_lost_a_member_are_counted_and_get_it_back(public):
    case = public("rabbitmq/members-lost-by-a-forced-stop")
    files = ("queues.json", "status.json")
    note = "7 queues with fewer than three members, which cannot lose any: --replicas /=3"
    assert note in case.run("check", *files).text
    answer = case.run("solve", *files, "--replicas", "/=3", "-o", "out.json")
    assert answer.code == 0
    rows = json.loads(case.written("out.json"))
    assert {len(row["members"]) for row in rows} == {3}
    assert max(Counter(row["leader"] for row in rows).values()) == 4
    assert note not in case.run("check", str(case.folder / "out.json"), "status.json").text


def test_three_nodes_take_over_from_three(public):
    case = public("rabbitmq/three-nodes-take-over-from-three")
    gone = [word for node in "abc" for word in ("--drain", f"rabbit@node-{node}")]
    words = ("session.txt", *gone, "--replicas", "/=3")
    answer = case.run("solve", *words, "-o", "out.sh")
    assert answer.code == 0 and "min.insync" not in answer.text
    found = CALL.findall(case.written("out.sh"))
    assert Counter(what for what, _, _ in found) == {"join": 10, "lead": 5, "leave": 18}
    assert {node for what, _, node in found if what == "leave"} == {*gone[1::2]}
    answer = case.run("plan", *words)
    assert answer.code == 0 and "min_active 3 2 " in answer.text  # a majority of three


def test_queues_that_are_new_do_not_keep_a_plan_from_its_end(public):
    case = public("rabbitmq/three-nodes-take-over-from-three")
    gone = [word for node in "abc" for word in ("--drain", f"rabbit@node-{node}")]
    assert case.run("plan", "session.txt", *gone, "--replicas", "/=3", "-o", "plan.json").code == 0
    plan = str(case.folder / "plan.json")
    answer = case.run("resume", plan, "now.txt", "-o", "rest.json")
    assert answer.code == 0, answer.text
    assert "2 of 10 copies done, 1 under way" in answer.text
    assert "has 1 partition more, left out" in answer.text
    assert "names 5 of 6 partitions" in answer.text


def test_queues_of_one_member_get_two_more(public):
    case = public("rabbitmq/one-member-each-after-an-import")
    words = ("--replicas", "/=3", "--replicas", "prod=3", "-o", "out.sh")
    answer = case.run("solve", "queues.json", "nodes.json", *words)
    assert answer.code == 0 and "min active" not in answer.text
    text = case.written("out.sh")
    assert len(re.findall(r"^join (?:/|prod) ", text, re.MULTILINE)) == 12
    assert len(re.findall("^lead [qp]", text, re.MULTILINE)) == 4 and "\nleave /" not in text


def test_a_session_is_compared_with_the_folder_of_a_plan(public):
    case = public("rabbitmq/three-nodes-take-over-from-three")
    gone = [word for node in "abc" for word in ("--drain", f"rabbit@node-{node}")]
    assert case.run("plan", "session.txt", *gone, "--replicas", "/=3", "-o", "move").code == 0
    look = ("run", str(case.folder / "move"), "--dry-run", "--dump")
    answer = case.run(*look, "session.txt")
    assert answer.code == 0 and "wave 1 of " in answer.text
    answer = case.run(*look, "now.txt")  # a queue of the plan was deleted
    assert answer.code == 3 and "payments: is not there" in answer.text
    assert "partitions outside the plan: 0 not seen, 1 new" in answer.text


def test_members_that_were_added_or_deleted_are_a_difference(public):
    answer = public("rabbitmq/three-nodes-take-over-from-three").run(
        "diff", "session.txt", "now.txt"
    )
    assert answer.code == 0, answer.text
    assert "3 moves, 1 replica given up, 1 partition that another node leads" in answer.text
    assert "invoices[3] nowhere -> rabbit@node-e" in answer.text
    assert "AFTER has 1 partition more, left out: new" in answer.text


def test_running_nodes_in_one_word_are_those_of_the_cluster(public):
    case = public("rabbitmq/running-nodes-in-one-word")
    for files, code in ((("queues.json", "all.json"), 0), (("queues-one.json", "one.json"), 4)):
        answer = case.run("solve", *files, "--leaders", "0", "-o", "out.json", "--force")
        assert answer.code == code
        led = Counter(row["leader"] for row in json.loads(case.written("out.json")))
        assert sorted(led.values()) == ([2, 2, 2] if code == 0 else [3, 3])
    names = ["rabbit@n1", "rabbit@n10", "rabbit@n2"]
    queues = json.dumps([{"name": "q", "type": "quorum", "members": names}]).encode()
    for running, up in (("rabbit@n10rabbit@n2", [False, True, True]), ("", [False] * 3)):
        listed = {"running_nodes": running, "disk_nodes": names, "ram_nodes": ""}
        status = json.dumps(listed).encode()
        assert ek.read(queues, status).nodes.alive.tolist() == up
    with pytest.raises(ek.InvalidInput, match="running_nodes: holds names of no disk_nodes"):
        ek.read(queues, status.replace(b'""', b'"rabbit@n1, rabbit@n3"', 1))


def test_a_status_without_its_banner_is_read(public):
    case = public("rabbitmq/status-without-a-banner")
    answer = case.run("solve", "session.txt", "--replicas", "/=3", "--table", "moves.json")
    assert answer.code == 0 and "no cluster_status" not in answer.text
    moves = json.loads(case.written("moves.json"))
    joins = [(one["partition"], one["to"].split(".")[0]) for one in moves if one["kind"] == "move"]
    assert sorted(joins) == [("mails", "rabbit@rabbitmq-1"), ("orders", "rabbit@rabbitmq-1")]


@pytest.mark.parametrize(
    "name", ["rabbitmq/json-beside-a-status", "rabbitmq/commands-in-a-container"]
)
def test_a_session_of_two_forms_is_read_as_a_whole(public, name, tmp_path):
    case = public(name)
    list_, status = re.split(
        r"(?=^\$ .*cluster_status)", case.path("session.txt").read_text(), flags=re.M
    )
    (tmp_path / "other.txt").write_text(status + list_)
    for file in ("session.txt", str(tmp_path / "other.txt")):
        answer = case.run("check", file)
        assert answer.code == 0 and "4 nodes, 4 alive · 1 partition · 3 replicas" in answer.text
