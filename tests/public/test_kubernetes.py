"""Kubernetes: situations that operators reported."""

import json

import pytest

FILES = ("nodes.json", "pods.json", "volumes.json")
NEVER = ("--level", "none")


def evicted(case, *words):
    """Return the answer of a solve, and the pods that it evicts, by name: from where to where."""
    given = [name for name in FILES if case.path(name).exists()]
    answer = case.run("solve", *given, *words, "-o", "plan.json")
    found = json.loads(case.written("plan.json"))["evictions"]
    return answer, {one["pod"]: (one["from"], one["to"]) for one in found}


@pytest.mark.parametrize("name", ["kubernetes/two-constraints", "kubernetes/tainted-groups"])
def test_nothing_moves_where_constraints_leave_no_better_place(public, name):
    assert evicted(public(name))[1] == {}


def test_requests_that_differ_break_nothing(public):
    case = public("kubernetes/requests-differ")
    assert case.run("check", "nodes.json", "pods.json").code == 0
    answer, moved = evicted(case, *NEVER)
    assert (answer.code, moved) == (0, {})
    assert "pods of default/StatefulSet/db ask for different amounts" in answer.text


class TestVolumes:
    def test_no_pod_leaves_the_zone_of_its_volume(self, public):
        case = public("kubernetes/zonal-volumes")
        nodes = json.loads(case.path("nodes.json").read_text())["items"]
        labels = {one["metadata"]["name"]: one["metadata"]["labels"] for one in nodes}
        zone = {name: own["topology.kubernetes.io/zone"] for name, own in labels.items()}
        assert evicted(case)[1] == {}
        pods = json.loads(case.path("pods.json").read_text())["items"]
        emptied = pods[0]["spec"]["nodeName"]
        _, moved = evicted(case, "--drain", emptied)
        assert moved
        assert all(zone[before] == zone[after] for before, after in moved.values())

    def test_without_the_volumes_a_note_asks_for_them(self, public):
        answer = public("kubernetes/zonal-volumes").run("check", "nodes.json", "pods.json")
        assert "add kubectl get pv,pvc -A -o json" in answer.text
