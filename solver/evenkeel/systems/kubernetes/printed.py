"""Nodes and pods of the tables that ``kubectl get`` prints, as objects.

A table names the node of each pod. The name of a pod shows what made it: ``web-0`` is of a
StatefulSet, ``web-5f98b7746c-x7k2d`` of a ReplicaSet. Requests and rules are in no table.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from evenkeel.systems.documents import Document
from evenkeel.systems.kubectl_tables import rows_of
from evenkeel.systems.notes import Notes

# the columns of ``kubectl get pods -o wide``, and a row without its titles
USUAL = ("NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE")
UNTITLED = re.compile(
    r"[ \t]*(?:(\S+)[ \t]+)?\S+[ \t]+\d+/\d+[ \t]+[A-Z][\w:/]*[ \t]+\d+(?: \([^()\n]*\))?"
    r"[ \t]+\S+[ \t]+(?:[\da-f]*[.:][\da-f.:]*|<none>)[ \t]+\S"
)

# the beginning of a table of nodes, or of pods with their nodes
PLACES = re.compile(
    r"^(?:.{0,200}[#$>%] +)?(?:(?:NAMESPACE|EVENT) +)*(?:NODE +(?:NAMESPACE +)?(?:NAME|POD)\b|"
    r"(?:NAME|POD) +(?:READY +STATUS .* NODE\b|STATUS +ROLES\b|(?:(?:STATUS|PHASE|IP) +)*NODE\b|"
    rf"STATUS +AGE\b.*\n[ \t]*\S+ +(?:Not)?Ready\b))|^{UNTITLED.pattern}",
    re.MULTILINE,
)

# the names of pods of ReplicaSets, of ReplicationControllers of OpenShift, and StatefulSets
OF_TEMPLATE = re.compile(
    r"(.+-(?:(?=\d*[a-z])(?=[a-z]*\d)[bcdf-hj-np-tv-xz24-9]{6,10}|[4-9bcdf]{8,10}|\d{9,10}))-"
    r"[a-z0-9]{5}"
)
OF_REVISION = re.compile(r"(.+-\d{1,4})-[a-z0-9]{5}\Z")
ORDINAL = re.compile(r"(.+)-\d+")

STATE = re.compile(r"(?:Not)?Ready\b")  # the state of a node; old releases print no roles

PHASES = {
    "Completed": "Succeeded", "Succeeded": "Succeeded", "Evicted": "Failed", "Failed": "Failed",
    "Pending": "Pending",
}  # fmt: skip
LEAVING = {"Terminating", "Unknown"}  # pods being deleted, the latter on nodes that are lost
HOST = "kubernetes.io/hostname"
ZONES = {"ZONE": "topology.kubernetes.io/zone", "REGION": "topology.kubernetes.io/region"}
NONE = {"", "<none>", "<nil>"}

CONTROL = {"control-plane", "master"}
UNTAINTED = (
    "nodes of the control plane take pods, as tables have no taints: {}; keep pods from one by "
    "--exclude NAME"
)
STATELESS = "no states of nodes {}: they count as ready"
OWNERLESS = "no owner by the names of the pods {}: they stay"
NO_RULES = (
    "no requests, rules, taints, budgets or volumes, which tables of kubectl leave out: each pod "
    "counts as one, those of a workload, known by the names of pods only, are apart where they can "
    "be, as the scheduler has it, a node of unknown capacity has room for 110 pods beside those "
    "that stay, and no eviction is written; ask for -o json"
)


def is_table(document: Document, size: int) -> bool:
    """Return whether a text begins with a table of nodes, or of pods with their nodes."""
    head = document.data[:size].decode("utf-8", "replace")
    return not document.is_json and PLACES.search(head) is not None


def objects_of(notes: Notes, document: Document) -> Iterator[dict[str, Any]]:
    """Yield the nodes and pods of the tables in a text."""
    rows = rows_of(notes, document.data.decode("utf-8", "replace"), UNTITLED, USUAL)
    alike = Counter(_revision_of(row) for row in rows)
    for row in rows:
        if "ROLES" in row or ("READY" not in row and STATE.match(row.get("STATUS", ""))):
            yield node_of(notes, row)
        elif "NODE" in row:
            yield _pod(notes, row, alike[_revision_of(row)] > 1)
    notes.add(NO_RULES)


def node_of(notes: Notes, row: dict[str, str]) -> dict[str, Any]:
    """Return the node of a row as an object."""
    if "STATUS" not in row:
        notes.add(STATELESS, row["NAME"])
    states = row.get("STATUS", "Ready").split(",")
    takes = "Ready" in states and "SchedulingDisabled" not in states
    if takes and CONTROL & {*row.get("ROLES", "").split(",")}:
        notes.add(UNTAINTED, row["NAME"])
    pairs = (pair.partition("=") for pair in row.get("LABELS", "").split(",") if "=" in pair)
    labels = {HOST: row["NAME"]} | {key: value for key, _, value in pairs}
    labels |= {
        label: row[title] for title, label in ZONES.items() if row.get(title, "") not in NONE
    }
    return {
        "kind": "Node",
        "metadata": {"name": row["NAME"], "labels": labels},
        "spec": {"unschedulable": "SchedulingDisabled" in states},
        "status": {
            "allocatable": {"pods": 110},
            "conditions": [{"type": "Ready", "status": str("Ready" in states)}],
        },
    }


def _revision_of(row: dict[str, str]) -> tuple[str, str]:
    """Return the namespace of a pod, and its name without the last part behind a revision."""
    return row["NAMESPACE"], OF_REVISION.sub(r"\1", row["NAME"])


def _pod(notes: Notes, row: dict[str, str], is_revision: bool) -> dict[str, Any]:
    """Return the pod of a row as an object; pods of a revision are of a ReplicationController."""
    name, node = row["NAME"], row["NODE"]
    state = row.get("STATUS") or row.get("PHASE", "Running")
    space = row["NAMESPACE"] or "default"
    node = "" if node in NONE else node
    owner: list[dict[str, Any]] = []
    forms = {"ReplicaSet": OF_TEMPLATE, "StatefulSet": ORDINAL}
    if is_revision:
        forms["ReplicationController"] = OF_REVISION
    for kind, form in forms.items():
        if not owner and (one := form.fullmatch(name)):
            owner = [{"kind": kind, "name": one[1], "controller": True, "apiVersion": "apps/v1"}]
    if node and name.endswith(f"-{node}"):
        owner = []  # a static pod has the name of its node
    elif not owner and state not in PHASES:
        notes.add(OWNERLESS, name)
    leaving = {"deletionTimestamp": "now"} if row.get("STATUS") in LEAVING else {}
    # others of its workload need not be apart from one that goes
    labels = {"owner": owner[0]["name"]} if owner and not leaving else {}
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": labels}}
    apart = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": term}
        ]
    }
    now, _, wanted = row.get("READY", "1/1").partition("/")
    return {
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": space, "labels": labels, "ownerReferences": owner, **leaving,
        },
        "spec": {"nodeName": node, "affinity": {"podAntiAffinity": apart} if owner else {}},
        "status": {
            "phase": PHASES.get(state, "Running"),
            "conditions": [{"type": "Ready", "status": str(now == wanted)}],
        },
    }  # fmt: skip
