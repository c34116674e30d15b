"""Stand-in of Kafka's tools for runs of plans: ``kafka.py TOOL ARGUMENT...``."""

# ruff: noqa: T201, PTH123 (its output is its answer; it starts without the site, and in a hurry)

import json
import sys

from stand_in import fails, save, state

TOOL, *ARGUMENTS = sys.argv[1:]
brokers, partitions = state["brokers"], state["partitions"]


def changed(code=0):
    """End a call that changed something; the one that the state names fails after its work."""
    breaks = fails(" ".join([TOOL, *ARGUMENTS]))
    sys.exit(code or int(breaks))


def value(option):
    return ARGUMENTS[ARGUMENTS.index(option) + 1]


def asked():
    with open(value("--reassignment-json-file")) as opened:
        rows = json.load(opened)["partitions"]
    return {f"{row['topic']}-{row['partition']}": row["replicas"] for row in rows}


def asked_dirs():
    """The log directory that is asked for of each replica, by partition and broker."""
    with open(value("--reassignment-json-file")) as opened:
        rows = json.load(opened)["partitions"]
    return [
        (f"{row['topic']}-{row['partition']}", str(broker), folder)
        for row in rows
        for broker, folder in zip(row["replicas"], row.get("log_dirs", ()), strict=False)
        if folder != "any"
    ]


def alive(broker):
    return str(broker) in brokers and brokers[str(broker)]["alive"]


def in_sync(one):
    return [b for b in one["replicas"] if alive(b) and b not in one.get("adding", [])]


def describe():
    topics = {}
    for name, one in sorted(partitions.items()):
        topics.setdefault(name.rpartition("-")[0], []).append((int(name.rpartition("-")[2]), one))
    for topic, rows in topics.items():
        most = len(rows[0][1]["replicas"])
        print(f"Topic: {topic}\tPartitionCount: {len(rows)}\tReplicationFactor: {most}\tConfigs: ")
        for number, one in sorted(rows, key=lambda row: row[0]):
            leader = one["leader"] if alive(one["leader"]) else "none"
            lists = [",".join(map(str, row)) for row in (one["replicas"], in_sync(one))]
            line = f"\tTopic: {topic}\tPartition: {number}\tLeader: {leader}\tReplicas: {lists[0]}"
            line += f"\tIsr: {lists[1]}"
            if one.get("adding"):
                line += "\tAdding Replicas: " + ",".join(map(str, one["adding"]))
                gone = [b for b in one["replicas"] if b not in one["to"]]
                line += "\tRemoving Replicas: " + ",".join(map(str, gone))
            print(line)


def finish(one):
    """End a reassignment; somebody else leads where the leader is gone."""
    one["replicas"] = one.pop("to")
    one.pop("adding")
    one.pop("was")
    if "dirs" in one:
        one["dirs"] = {b: one["dirs"].get(b, "/d1") for b in map(str, one["replicas"])}
    if one["leader"] not in one["replicas"]:
        one["leader"] = in_sync(one)[0]


if TOOL == "kafka-topics.sh":
    describe()
elif TOOL == "kafka-broker-api-versions.sh":
    for broker, one in brokers.items():
        if one["alive"]:
            print(f"localhost:9092 (id: {broker} rack: null isFenced: false) -> (")
elif TOOL == "kafka-reassign-partitions.sh" and "--execute" in ARGUMENTS:
    if any("to" in one for one in partitions.values()):
        print("There is an existing assignment running.", file=sys.stderr)
        sys.exit(1)
    if "--throttle" in ARGUMENTS:
        state["throttle"] = value("--throttle")
        if not all(alive(b) for name in asked() for b in partitions[name]["replicas"]):
            print("Timed out waiting for a node assignment", file=sys.stderr)
            changed(1)
    for name, nodes in asked().items():
        one = partitions[name]
        if not all(alive(b) for b in nodes):
            print("Replica assignment has brokers that are not alive", file=sys.stderr)
            sys.exit(1)
        one |= {"to": nodes, "adding": [b for b in nodes if b not in one["replicas"]],
                "was": one["replicas"]}  # fmt: skip
        one["replicas"] = nodes + [b for b in one["replicas"] if b not in nodes]
        one["looks"] = state["pace"]
        if sorted(nodes) == sorted(one["was"]):  # another order is all there is to it
            finish(one)
    for name, broker, folder in asked_dirs():
        if not alive(broker):
            print("Timed out before log directory moves could be started", file=sys.stderr)
            changed(1)
        partitions[name]["dirs"][broker] = folder
        state["sent"] = [*state.get("sent", []), [name, broker, folder]]
    if "--replica-alter-log-dirs-throttle" in ARGUMENTS:
        state["throttle"] = value("--replica-alter-log-dirs-throttle")
    if "dies" in state:
        brokers[state["dies"]]["alive"] = False
    changed()
elif TOOL == "kafka-reassign-partitions.sh" and "--cancel" in ARGUMENTS:
    for name in asked():
        one = partitions[name]
        if "to" in one:
            one["replicas"] = one.pop("was")
            one.pop("adding")
            one.pop("to")
    changed()
elif TOOL == "kafka-reassign-partitions.sh":
    for name in asked():
        one = partitions[name]
        if "to" in one:
            one["looks"] -= 1
            if one["looks"] < 0:
                finish(one)
        done = "is completed" if "to" not in one else "is still in progress"
        print(f"Reassignment of partition {name} {done}.")
    if not any("to" in partitions[name] for name in asked()):
        state.pop("throttle", None)
    save()
elif TOOL == "kafka-log-dirs.sh":
    rows = []
    for broker, one in brokers.items():
        dirs = [
            {"logDir": folder, "error": None, "partitions": [
                {"partition": name, "size": held["size"], "isFuture": False}
                for name, held in partitions.items() if held["dirs"].get(broker) == folder
            ]}
            for folder in ("/d1", "/d2")
        ]  # fmt: skip
        if one["alive"]:
            rows.append({"broker": int(broker), "logDirs": dirs})
    print(json.dumps({"version": 1, "brokers": rows}))
elif TOOL == "kafka-leader-election.sh":
    with open(value("--path-to-json-file")) as opened:
        for row in json.load(opened)["partitions"]:
            one = partitions[f"{row['topic']}-{row['partition']}"]
            if one["replicas"][0] not in in_sync(one):
                print("preferred leader not available", file=sys.stderr)
                sys.exit(1)
            one["leader"] = one["replicas"][0]
    changed()
else:
    sys.exit(f"unknown: {TOOL} {ARGUMENTS}")
