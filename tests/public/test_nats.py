"""What operators of NATS JetStream reported, and what is right for each."""

import json
from collections import Counter

import evenkeel as ek

MOVE, LEAD = "$JS.API.ACCOUNT.STREAM.MOVE", "$JS.API.STREAM.LEADER.STEPDOWN"


def solved(case, *files_and_words, code=0):
    """The answer of the command line, the requests that it wrote, and the peers after them."""
    answer = case.run("solve", *files_and_words, "-o", "plan.json")
    assert answer.code == code, answer.text
    requests = json.loads(case.written("plan.json"))
    files = [one for one in files_and_words if case.path(one).is_file()]
    return answer, requests, held_after(ek.read(*(case.path(one) for one in files)), requests)


def held_after(cluster, requests):
    """Who holds each stream once requests are carried out, and who leads it."""
    names, placed = cluster.nodes.names, cluster.placement
    held = {
        name: {names[n] for n in placed.node[placed.first[p] : placed.first[p + 1]]}
        for p, name in enumerate(cluster.partitions.names)
    }
    leads = {
        name: names[n] if n >= 0 else ""
        for name, n in zip(cluster.partitions.names, placed.leader_node.tolist(), strict=True)
    }
    servers = cluster.native["servers"]
    for one in requests:
        own, request = held[one["stream"]], one["request"]
        if one["subject"].startswith(MOVE):
            fit = [
                name for name, server in servers.items()
                if name not in own and {*request.get("tags", ())} <= {*server["tags"]}
            ]  # fmt: skip
            assert len(fit) == 1, (one, fit)
            own.remove(request["server"])
            own.add(fit[0])
        else:
            leads[one["stream"]] = request["placement"]["preferred"]
            assert leads[one["stream"]] in own
    return held, leads


def count_of(held):
    return Counter(server for own in held.values() for server in own)


def test_a_server_that_leads_least_is_no_peer_of_the_stream(public):
    case = public("nats/available-server-is-no-peer")
    words = ("--level", "none", "--leaders", "10%")
    _, requests, (_, leads) = solved(case, "jsz.jsonl", *words)
    assert requests and all(one["subject"].startswith(LEAD) for one in requests)
    assert max(Counter(leads.values()).values()) == 2


def test_the_list_of_a_trace_has_no_tags(public):
    case = public("nats/list-of-the-trace")
    answer, requests, (held, leads) = solved(case, "list.json")
    assert requests == [] and leads == {"test": "nats-server-4-0"}
    assert len(held["test"]) == 3
    assert "tags of 3 servers" in answer.text


def test_a_follower_lists_all_but_itself(public):
    case = public("nats/one-follower-answers")
    answer, requests, (held, leads) = solved(case, "jsz.json")
    assert requests == []
    assert all(own == {"nats-0", "nats-1", "nats-2"} for own in held.values())
    assert leads == {"competitions": "nats-1", "markets": "nats-2", "prices": "nats-0"}
    assert "older than 2.11" in answer.text


def test_no_stream_is_twice_in_a_zone(public):
    _, requests, (held, _) = solved(public("nats/never-twice-in-a-zone"), "jsz.jsonl")
    moves = [one["request"] for one in requests if one["subject"].startswith(MOVE)]
    assert moves == [{"server": "s1", "tags": ["az:1"]}] * 3
    assert not any({"s1", "s4"} <= own for own in held.values())
    assert count_of(held)["s1"] == count_of(held)["s4"] == 3


def test_streams_that_lack_a_peer_stay(public):
    answer, requests, (held, _) = solved(public("nats/two-peers-after-a-removal"), "jsz.jsonl")
    assert "ORDERS_1, ORDERS_4" in answer.text
    assert {one["stream"] for one in requests} == {f"ORDERS_{i}" for i in (2, 3, 5, 6)}
    assert all("n1-nyc" in held[f"ORDERS_{i}"] for i in (2, 3, 5, 6))


def test_a_peer_without_a_name_is_left_to_nats(public):
    case = public("nats/server-without-a-name")
    answer, requests, (held, leads) = solved(case, "jsz.jsonl", code=3)
    assert "(bills, orders)" in answer.text and "jZ6RvVRH" in answer.text
    assert {one["stream"] for one in requests} <= {f"mail{i}" for i in range(5)}
    assert count_of(held)["E"] == 2 and "E" in leads.values()


def test_the_followers_of_three_nodes_know_little(public):
    case = public("nats/jsz-of-three-nodes")
    answer, requests, (held, leads) = solved(case, "n1.json", "n2.json", "n3.json")
    assert requests == []
    assert held == {"s1": {"n1", "n2", "n3"}, "logs": {"n1", "n2", "n3"}}
    assert leads == {"s1": "n1", "logs": "n2"}
    assert "known by their identifier alone" in answer.text


def test_servers_without_tags_cannot_be_chosen(public):
    case = public("nats/five-servers-three-used")
    refused = case.run("solve", "jsz.jsonl", "-o", "plan.json")
    assert refused.code == 2
    assert 'server_tags: ["server:n4-c1"]' in refused.text and not case.path("plan.json").exists()
    _, _, (held, leads) = solved(case, "tagged.jsonl")
    assert {*count_of(held).values()} == {12}
    assert max(Counter(leads.values()).values()) <= 5


def test_a_replica_that_lags_leads_nothing_more(public):
    words = ("--level", "none", "--leaders", "10%")
    case = public("nats/outdated-replica")
    _, requests, (_, leads) = solved(case, "jsz.jsonl", *words)
    steps = [one["request"] for one in requests if ".STEPDOWN." in one["subject"]]
    preferred = {one["placement"]["preferred"] for one in steps}
    assert "nats-dev-4" in preferred and "nats-dev-1" not in preferred
    assert "nats-dev-1" not in {leads[name] for name in leads if name != "c"}


def test_a_cloud_that_streams_may_not_be_on(public):
    case = public("nats/not-on-one-cloud")
    _, _, (held, _) = solved(case, "jsz.jsonl")
    kept = {server for i in range(3) for server in held[f"temporary{i}"]}
    assert not any(server.startswith("azure") for server in kept)
    assert count_of(held)["azure-1"] > 0


def test_a_server_that_was_removed_while_it_runs_takes_no_stream(public):
    case = public("nats/server-removed-while-it-runs")
    answer = case.run("solve", "jsz.json", "-o", "plan.json", "--table", "moves.csv", "--json")
    assert (answer.code, answer.json["moves"]) == (0, 2)
    assert "n4" not in case.written("moves.csv")


def test_no_request_is_written_for_servers_that_take_none(public):
    case = public("nats/two-of-five-down")
    answer, requests, (held, _) = solved(case, "jsz.json", code=4)
    assert requests == [] and held["jobs"] == {"n1", "n3", "n4"}
    assert "older than 2.9, which no request moves" in answer.text
    later = case.path("jsz.json").read_text().replace('"2.8.4"', '"2.9.16"')
    (case.folder / "later.json").write_text(later)
    assert case.run("solve", str(case.folder / "later.json"), "--json").json["moves"] == 1


def test_leaders_leave_the_one_that_leads_all_by_as_many_calls_as_are_allowed(public):
    case = public("nats/one-server-leads-all")
    words = ("jsz.jsonl", "--level", "none", "--leaders", "0", "--no-lead", "nats-0")
    answer, requests, (_, leads) = solved(case, *words, "--leader-changes", "10", "--force", code=3)
    assert len(requests) == 10 and Counter(leads.values())["nats-1"] == 21
    assert "limits.leader_changes=10 used up" in answer.text
    _, requests, (_, leads) = solved(case, *words, "--force")
    assert len(requests) == 23 and sorted(Counter(leads.values()).values()) == [7, 8, 8, 8]
    assert "nats-0" not in leads.values()


def test_a_stream_of_one_replica_gets_more_by_an_edit(public):
    case = public("nats/stream-of-one-replica")
    refused = case.run("solve", "jsz.jsonl", "--replicas", "$G=3", "-o", "plan.json")
    assert refused.code == 2 and "nats stream edit --replicas" in refused.text
    assert "DECOPILOT_STREAMS" in refused.text and not case.path("plan.json").exists()
    answer = case.run("solve", "jsz.jsonl", "--table", "moves.csv")
    assert "the proven floor of 0.0057% (" in answer.text
    assert answer.code == 0


def test_a_server_that_answers_without_its_name_is_a_peer_of_its_streams(public):
    case = public("nats/follower-known-by-its-identifier")
    answer, requests, (held, _) = solved(case, "jsz.json")
    assert requests == [] and "2 nodes, 2 alive" in answer.text
    assert {name[:12] for name in held["my-stream-replicated"]} == {"NCVIDODSZ45C", "server_5500"}
    assert "stays as it is" in answer.text


def test_a_stream_stays_in_its_cluster_as_printed(public):
    case = public("nats/two-clusters-as-printed")
    answer = case.run("solve", "report.txt", "streams.txt", "--table", "moves.json")
    assert answer.code == 4 and "3 require cluster=c1" in answer.text
    assert "6 nodes, 5 alive" in answer.text and json.loads(case.written("moves.json")) == []


def test_a_stream_of_which_a_report_names_no_server_is_noted(public):
    case = public("nats/report-without-servers-of-one-replica")
    answer = case.run("check", "report.txt")
    assert answer.code == 0 and "streams without peers, which are left alone (test3)" in answer.text
    assert "3 nodes, 3 alive · 3 partitions · 6 replicas wanted" in answer.text
    assert case.run("solve", "report.txt", "--json").json["moves"] == 0


def test_a_stream_in_json_is_read_beside_a_report(public):
    answer = public("nats/stream-in-json-beside-a-report").run("check", "session.txt")
    assert answer.code == 0 and "4 nodes, 4 alive · 1 partition · 3 replicas" in answer.text
