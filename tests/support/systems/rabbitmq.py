"""Stand-in of RabbitMQ's tools for runs of plans: ``rabbitmq.py TOOL ARGUMENT...``."""

# ruff: noqa: T201 (its output is its answer; it starts without the site, and in a hurry)

import json
import re
import sys

from stand_in import fails, save, state

TOOL, *ARGUMENTS = sys.argv[1:]
queues = state["queues"]


def changed():
    """End a call that changed something; the one that the state names fails after its work."""
    return int(fails(json.dumps([TOOL, *ARGUMENTS])))


def text_of(found):
    """A text that Erlang writes plainly or as its bytes."""
    plain, numbers = found
    return plain or bytes(map(int, numbers.split(","))).decode()


TEXT = r'<<(?:"([^"]*)"|([0-9,]+))>>'
NODE = r"(?:'([^']*)'|binary_to_atom\(<<([0-9,]+)>>, utf8\))"


def evaluated(expression):
    """Answer one of the three expressions that are asked."""
    if status := re.match(rf"S = rabbit_quorum_queue:status\({TEXT}, {TEXT}\), At = ", expression):
        one = queues[text_of(status.groups()[2:4])]
        node = text_of(re.search(rf"N =:= {NODE}\]", expression).groups())
        one["behind"][node] = one["behind"].get(node, 0) - 1
        save()
        return str(one["behind"][node] < 0).lower()
    found = re.search(rf"rabbit_misc:r\({TEXT}, queue, {TEXT}\)", expression)
    one = queues[text_of(found.groups()[2:4])]
    if member := re.search(rf"lists:keymember\({NODE}, 2, M\)\.$", expression):
        return str(text_of(member.groups()) in one["members"]).lower()
    node = text_of(re.search(rf"transfer_leadership\(Q, {NODE}\)", expression).groups())
    if node not in one["members"]:
        return "non_existent"
    one["leader"] = node
    sys.exit("broken") if changed() else None
    return "ok"


if ARGUMENTS[:2] == ["-q", "eval"]:
    print(evaluated(ARGUMENTS[2]))
elif ARGUMENTS[:2] == ["-q", "list_queues"]:
    assert ARGUMENTS[2:4] == ["--vhost", state["vhost"]]
    rows = [
        {"name": name, "type": "quorum", "leader": one["leader"], "members": one["members"],
         "online": one["members"]}
        for name, one in queues.items()
    ]  # fmt: skip
    print(json.dumps(rows))
elif ARGUMENTS[:2] == ["-q", "cluster_status"]:
    nodes = state["nodes"]
    print(json.dumps({"disk_nodes": nodes, "running_nodes": state.get("running", nodes)}))
elif TOOL == "rabbitmq-queues":
    command, option, vhost, queue, node = ARGUMENTS
    assert (option, vhost) == ("--vhost", state["vhost"])
    members = queues[queue]["members"]
    if command == "add_member" and node in state["nodes"] and node not in members:
        members.append(node)
        queues[queue]["behind"][node] = state["pace"]
    elif command == "delete_member" and node in members:
        members.remove(node)
        if queues[queue]["leader"] == node:
            queues[queue]["leader"] = members[0]
    sys.exit(changed())
else:
    sys.exit(f"unknown: {TOOL} {ARGUMENTS}")
