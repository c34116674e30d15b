"""Tables of kubectl: their rows, and the pods and nodes that these are."""

import pytest

import evenkeel as ek

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


def test_names_tell_what_made_a_pod():
    cluster = read(WIDE, NODES)
    assert placed(cluster) == {
        "default/ReplicaSet/web-5f98b7746c": ["", "n1"], "default/StatefulSet/db": ["n3"],
    }  # fmt: skip
    notes = " ".join(cluster.native.notes)
    assert "the pods proxy-abcde, ei-b907910b-7wq4s: they stay" in notes


def test_nodes_have_their_state_and_their_zone():
    cluster = read(WIDE, NODES)
    assert cluster.nodes.alive.tolist() == [True, True, False]
    assert cluster.nodes.accepts.tolist() == [True, False, False]
    assert [*read(WIDE).nodes.names] == ["n1", "n2", "n3"]


@pytest.mark.parametrize(
    "text",
    [
        f"$ kubectl get po -owide -n default\n{WIDE}\nroot@a:~# ",
        WIDE.replace("\n", "\r\n"),
        "\n".join(BARE),
        "\n".join(f"default   {line}" for line in BARE),
        "\n".join(" ".join(line.split()) for line in BARE),
        GATES,
        ALL,
        WIDE.replace(" n3", " n4") + f"\n$ kubectl get pods -o wide\n{WIDE}",
    ],
    ids=["session", "crlf", "grep", "grep -A", "blanks", "gates", "namespaces", "twice"],
)
def test_forms_of_a_listing(text):
    assert placed(read(text, NODES)) == placed(read(WIDE, NODES))


def test_rows_that_do_not_fit_are_noted():
    cluster = read(WIDE + "cut-0 1/1\n", NODES)
    assert any("cut-0" in note for note in cluster.native.notes)
