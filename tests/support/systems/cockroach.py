"""Stand-in of ``cockroach`` for runs of plans: ``cockroach.py cockroach ARGUMENT...``."""

# ruff: noqa: T201, PTH123 (its output is its answer; it starts without the site, and in a hurry)

import re
import sys

from stand_in import fails, state

ARGUMENTS = sys.argv[2:]
ranges, stores = state["ranges"], state["stores"]
SETTING = "kv.allocator.load_based_rebalancing"


def changed(statement):
    """Count a statement that changes something; the one that the state names fails afterwards."""
    if fails(statement):
        sys.exit(1)


def array(numbers):
    return '"{' + ",".join(map(str, numbers)) + '}"'


def relocated(statement):
    found = re.fullmatch(r"ALTER RANGE (\d+) RELOCATE (.*);", statement)
    one, way = ranges[found[1]], found[2]
    if lease := re.fullmatch(r"LEASE TO (\d+)", way):
        if int(lease[1]) not in one["voters"]:
            return "not a voter"
        one["lease"] = int(lease[1])
        return "ok"
    kind, source, target = re.fullmatch(r"(VOTERS|NONVOTERS) FROM (\d+) TO (\d+)", way).groups()
    own = one["voters" if kind == "VOTERS" else "nonvoters"]
    held = one["voters"] + one["nonvoters"]
    if int(source) not in own or int(target) in held or int(target) not in stores:
        return "not possible"
    own[own.index(int(source))] = int(target)
    if one["lease"] == int(source):
        one["lease"] = one["voters"][0]
    return "ok"


def execute(statement):
    if statement.startswith("SELECT range_id"):
        asks_beside = "[SHOW CLUSTER RANGES WITH INDEXES]" in statement
        if asks_beside == state.get("old", False):
            sys.exit("syntax error" if asks_beside else 'column "database_name" does not exist')
        print("range_id,replicas,voting_replicas,non_voting_replicas,learner_replicas,lease_holder"
              ",database_name,schema_name,table_name,index_name")  # fmt: skip
        for name, one in ranges.items():
            lists = [one["voters"] + one["nonvoters"], one["voters"], one["nonvoters"], []]
            belongs = ["bank", "public", "accounts", "primary"] if one["table"] else ["NULL"] * 4
            print(",".join([name, *map(array, lists), str(one["lease"]), *belongs]))
    elif "FROM [SHOW ZONE CONFIGURATIONS]" in statement:
        print("target,raw_config_sql")
        for target, text in state["zones"].items():
            print(target, '"' + text.replace('"', '""') + '"', sep=",")
    elif statement.startswith("SELECT node_id"):
        print("node_id,store_id,attrs,capacity")
        for store in stores:
            print(f"{store},{store},[],1000000000000")
    elif statement == f"SHOW CLUSTER SETTING {SETTING}":
        print(f"{SETTING}\n{state['setting']}")
    elif found := re.fullmatch(rf"SET CLUSTER SETTING {SETTING} = '(.*)'", statement):
        state["setting"] = found[1]
        print("SET CLUSTER SETTING")
        changed(statement)
    else:
        assert state["setting"] == "off"
        print(f"range_id,pretty,result\n1,x,{relocated(statement)}")
        changed(statement)


assert ARGUMENTS.pop(1) == "--url"
assert ARGUMENTS.pop(1) == "postgresql://it's here"
if ARGUMENTS == ["node", "status", "--all", "--format=csv"]:
    print("id,address,locality,is_available,is_live,is_decommissioning,membership,is_draining")
    for store in stores:
        live = str(store not in state.get("dead", [])).lower()
        print(f'{store},x,"region=r{store % 2}",{live},{live},false,active,false')
elif ARGUMENTS[:2] == ["sql", "--format=csv"] and ARGUMENTS[2:3] == ["-e"]:
    execute(" ".join(ARGUMENTS[3].split()))
elif ARGUMENTS[:3] == ["sql", "--format=csv", "-f"]:
    with open(ARGUMENTS[3]) as opened:
        for line in opened.read().splitlines():
            execute(line)
else:
    sys.exit(f"unknown: {ARGUMENTS}")
