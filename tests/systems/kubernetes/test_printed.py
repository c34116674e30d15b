"""Tables of kubectl: their rows, and the pods and nodes that these are."""

import json

import pytest

import evenkeel as ek
from evenkeel.view.results import report, result_page

WIDE = """\
NAME                   READY   STATUS        RESTARTS     AGE   IP         NODE
web-5f98b7746c-x7k2d   1/1     Running       2 (3m ago)   4m    10.0.0.1   n1
web-5f98b7746c-k2j9q   0/1     Pending       0            4m    <none>     <none>
db-0                   1/1     Terminating   0            9d    10.0.0.2   n2
db-1                   1/1     Running       0            9d    10.0.0.3   n3
etcd-n1                1/1     Running       0            9d    10.0.0.4   n1
proxy-abcde            1/1     Running       0            9d    10.0.0.5   n1
ei-b907910b-7wq4s      1/1     Running       0            9d    10.0.0.7   n1
init-28c5q             0/1     Completed     0            9d    10.0.0.6   n2
"""
ALL = "NAMESPACE   " + WIDE.replace("\n", "\ndefault     ").removesuffix("default     ")
TITLES, *BARE = WIDE.splitlines()
GATES = f"{TITLES:<70}   NOMINATED NODE   READINESS GATES\n" + "".join(
    f"{line:<70}   <none>           <none>\n" for line in BARE
)
NODES = """\
NAME   STATUS                     ROLES           AGE   VERSION   ZONE
n1     Ready                      control-plane   9d    v1.30.1   a
n2     Ready,SchedulingDisabled   <none>          9d    v1.30.1   b
n3     NotReady                   <none>          9d    v1.30.1   c
"""


def read(*texts):
    return ek.read([text.encode() for text in texts])


def placed(cluster):
    """Return the nodes of the pods of each workload, "" for those that wait."""
    names = [*cluster.nodes.names, ""]
    rows = zip(cluster.placement.owner.tolist(), cluster.placement.node.tolist(), strict=True)
    found = {}
    for owner, node in rows:
        found.setdefault(cluster.partitions.names[owner], []).append(names[node])
    return found


@pytest.mark.parametrize("leaving", ["Terminating", "Unknown    "])
def test_names_tell_what_made_a_pod(leaving):
    cluster = read(WIDE.replace("Terminating", leaving), NODES)
    assert placed(cluster) == {
        "default/ReplicaSet/web-5f98b7746c": ["", "n1"], "default/StatefulSet/db": ["n3"],
    }  # fmt: skip
    notes = " ".join(cluster.native.notes)
    assert "the pods proxy-abcde, ei-b907910b-7wq4s: they stay" in notes
    assert "preferred anti-affinity" not in notes


def test_a_revision_makes_a_pod_only_beside_another():
    rows = [f"{name}-{part}   1/1   Running   0   4m   10.0.0.1   n1" for name, part in (
        ("app-3", "0r7re"), ("app-3", "5drmx"), ("job-0", "9cloj"), ("job-1", "ftfqs"),
        ("only-letters-ddbbcbbdb", "4x4jh"),
    )]  # fmt: skip
    assert placed(read("\n".join([TITLES, *rows]))) == {
        "default/ReplicationController/app-3": ["n1", "n1"],
        "default/ReplicaSet/only-letters-ddbbcbbdb": ["n1"],
    }


def test_nodes_come_before_names():
    chosen = "NODE   NAMESPACE   NAME\nn1     a           db-0\nn2     b           db-0\n"
    assert placed(read(chosen)) == {"a/StatefulSet/db": ["n1"], "b/StatefulSet/db": ["n2"]}


@pytest.mark.parametrize(
    "text",
    [
        "POD    STATUS    NODE\ndb-0   Running   n1\ndb-1   Running   n2\n",
        "NODE   POD\nn1     db-0\nn2     db-1\n",
        "POD    PHASE       NODE\ndb-0   Running     n1\ndb-1   Running     n2\n"
        "db-2   Succeeded   n1\n",
        "EVENT      NAME   READY   STATUS    RESTARTS   AGE   IP         NODE\n"
        "ADDED      db-0   1/1     Running   0          4m    10.0.0.1   n1\n"
        "ADDED      db-2   1/1     Running   0          4m    10.0.0.3   n1\n"
        "ADDED      db-1   1/1     Running   0          4m    10.0.0.2   n2\n"
        "DELETED    db-2   0/1     Error     0          5m    10.0.0.3   n1\n",
    ],
    ids=["pods", "nodes first", "phases", "events"],
)
def test_columns_that_were_chosen_and_events_are_read(text):
    assert placed(read(text)) == {"default/StatefulSet/db": ["n1", "n2"]}


def test_evictions_that_are_no_moves_are_reported():
    rows = "".join(
        f"db-{i}   1/1     Running   0          9d    10.0.0.{i}   n{i}\n" for i in (1, 2)
    )
    cluster = read(f"{TITLES}\n{rows}").drain("n2")
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert (result.comparison.moves, result.comparison.forced) == (0, 1)
    assert "moves 0, 1 moved beside another of their partition, 1 forced" in str(result)
    assert "moved beside    1" in report(result)
    assert "moved beside" in result_page(result) and "No replica moves." not in result_page(result)
    unmoved = ek.solve(read(f"{TITLES}\n{rows}"))
    assert "moved beside" not in str(unmoved) + report(unmoved)


def test_nodes_have_their_state_and_their_zone():
    cluster = read(WIDE, NODES)
    assert cluster.nodes.alive.tolist() == [True, True, False]
    assert cluster.nodes.accepts.tolist() == [True, False, False]
    assert [*read(WIDE).nodes.names] == ["n1", "n2", "n3"]


@pytest.mark.parametrize(
    "text",
    [
        f"$ kubectl get po -owide -n default\n{WIDE}\nroot@a:~# ",
        f"[root@a k8s]# \n[root@a k8s]# k get po -owide\n{WIDE}[root@a k8s]# \n",
        WIDE.replace("\n", "\r\n"),
        "\n".join(BARE),
        "\n".join(f"default   {line}" for line in BARE),
        "\n".join(" ".join(line.split()) for line in BARE),
        GATES,
        ALL,
        "\n".join(" ".join(line.split()) for line in WIDE.splitlines()),
        "\n".join(" ".join(line.split()) for line in GATES.splitlines()),
        WIDE.replace("init-28c5q", "oc-28c5q  ").replace("etcd-n1", "oc-n1  "),
        WIDE.replace(" n3", " n4") + f"\n$ kubectl get pods -o wide\n{WIDE}",
        f"$ oc get po -owide\n{WIDE.replace('db-1', 'db-7')}\n$ oc get po -owide\n{WIDE}",
        ALL.replace(" n3", " n4") + f"\n$ oc get po db-1 -owide\n{TITLES}\n{BARE[3]}\n",
        ALL.replace(" n3", " n4") + f"\n$ oc get po -owide -A | grep db-1\ndefault   {BARE[3]}\n",
    ],
    ids=[
        "session", "prompts", "crlf", "grep", "grep -A", "blanks", "gates", "namespaces",
        "blanks in titles", "blanks in titles with gates", "names like commands", "twice",
        "the same command", "one pod again", "one row again",
    ],
)  # fmt: skip
def test_forms_of_a_listing(text):
    cluster = read(text, NODES)
    assert placed(cluster) == placed(read(WIDE, NODES))
    assert not any("do not fit" in note for note in cluster.native.notes)


def test_rows_that_do_not_fit_are_noted():
    cluster = read(WIDE + "cut-0 1/1\n", NODES)
    assert any("cut-0" in note for note in cluster.native.notes)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ([WIDE, NODES], "control plane take pods, as tables have no taints: n1; keep"),
        ([WIDE, NODES], "known by the names of pods only"),
        ([WIDE, NODES], "unknown capacity has room for 110 pods"),
        ([f"{ALL}\n{TITLES}\n{BARE[3]}\n", NODES], "1 rows of tables come again: the last state"),
        ([f"$ oc get po -A -owide\n{ALL}" * 2, NODES], "more than one state of get po -A -owide"),
    ],
)
def test_what_is_assumed_is_noted(texts, says):
    assert any(says in note for note in read(*texts).native.notes)


def test_nodes_without_a_state_are_ready():
    nodes = "NAME   ROLES    AGE\nn1     <none>   9d\nn2     <none>   9d\nn3     <none>   9d\n"
    cluster = read(f"{WIDE}\n{nodes}")
    assert cluster.nodes.accepts.all()
    assert "no states of nodes n1, n2, n3: they count as ready" in [*cluster.native.notes]


def test_requests_of_objects_beside_tables_are_kept():
    owner = {"kind": "ReplicaSet", "name": "api-1", "controller": True, "apiVersion": "apps/v1"}
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "api-1-a", "ownerReferences": [owner]},
        "spec": {"nodeName": "n3", "containers": [{"resources": {"requests": {"cpu": "2"}}}]},
    }
    answer = json.dumps(pod, indent=1)
    for texts in (WIDE, NODES, answer), (f"{NODES}\n{answer}\n{WIDE}",), (f"{answer}\n{NODES}",):
        cluster = read(*texts)
        assert [*cluster.dimensions] == ["cpu", "pods"]
        assert placed(cluster)["default/ReplicaSet/api-1"] == ["n3"]
        assert not any("do not fit" in note for note in cluster.native.notes)


@pytest.mark.parametrize(
    "text", ["a (" * 20_000, "# NAME READY STATUS x" * 3_000, f"{TITLES}\n" * 8_000]
)
def test_long_lines_below_a_table_change_nothing(text):
    assert placed(read(f"{WIDE}\n{text}", NODES)) == placed(read(WIDE, NODES))


@pytest.mark.parametrize("tool", ["k", "oc", "sudo k3s kubectl", "microk8s.kubectl"])
def test_a_command_ends_a_table_and_names_a_namespace(tool):
    session = f"$ {tool} get no\n{NODES}$ {tool} get po -n shop -owide\n{WIDE}"
    assert {*placed(read(session))} == {
        "shop/ReplicaSet/web-5f98b7746c", "shop/StatefulSet/db",
    }  # fmt: skip
