"""Random clusters of CockroachDB: a table of ranges, with or without nodes, stores, zones."""

import csv
import io
import json
import random
from collections.abc import Sequence
from typing import Any

Row = dict[str, str]
REGIONS = ("us", "eu", "asia")
NAMES = ("users", "rides", "a b", 'quo"te', "Vehicles", "x,y", "ü")


def dump(draw: random.Random) -> tuple[list[Row], list[bytes]]:
    """Return rows of ranges, and the files beside them."""
    nodes = draw.sample(range(1, 30), draw.randint(1, 7))
    by_store = draw.random() < 0.4
    stores = draw.sample(range(1, 60), len(nodes) + draw.randint(0, 2)) if by_store else nodes
    columns = draw.sample(
        ["database_name", "schema_name", "table_name", "index_name"], draw.randint(0, 4)
    )
    names = {column: draw.sample(NAMES, draw.randint(1, 3)) for column in columns}
    places = {one: place(draw) for one in [*stores, *range(60, 71)]} if draw.random() < 0.5 else {}
    roles, sized, led = (draw.random() < 0.7 for _ in range(3))
    stale = draw.random() < 0.3
    listed_stores = [*stores, draw.randint(60, 70)] if stale else stores
    rows = [
        range_of(draw, number, listed_stores, roles, places)
        | {column: draw.choice([*names[column], ""]) for column in columns}
        | ({"range_size": draw.choice(["0", "1", "12.5", "900000000"])} if sized else {})
        for number in draw.sample(range(1, 999), draw.randint(1, 8))
    ]
    if not led:
        rows = [{k: v for k, v in row.items() if k != "lease_holder"} for row in rows]
    beside = [zones(draw, names)] if draw.random() < 0.6 else []
    if by_store or draw.random() < 0.7:
        beside.append(table([status(draw, node) for node in nodes], draw))
    if by_store:
        beside.append(table([store(draw, one, draw.choice(nodes)) for one in stores], draw))
    return rows, beside


def range_of(
    draw: random.Random, number: int, stores: Sequence[int], roles: bool, places: dict[int, str]
) -> Row:
    """Return a range with replicas on some of the stores."""
    held = draw.sample(list(stores), draw.randint(1, min(5, len(stores))))
    cut, end = (draw.randint(1, len(held)) for _ in range(2)) if roles else (len(held), len(held))
    voters = held[:cut]
    end = max(cut, end)
    row = {"range_id": str(number), "replicas": listed(held)}
    if roles:
        row |= {
            "voting_replicas": listed(voters),
            "non_voting_replicas": listed(held[cut:end]),
            "learner_replicas": listed(held[end:]),
        }
    if places:
        row["replica_localities"] = "{" + ",".join(f'"{places[one]}"' for one in held) + "}"
    return row | {"lease_holder": str(draw.choice([*voters, ""]))}


def listed(ids: Sequence[int]) -> str:
    """Return an array as CockroachDB prints it."""
    return "{" + ",".join(map(str, ids)) + "}"


def place(draw: random.Random) -> str:
    """Return the locality of a node."""
    return f"region={draw.choice(REGIONS)},az={draw.choice('abc')}"


def status(draw: random.Random, node: int) -> Row:
    """Return a row of ``node status``."""
    return {
        "id": str(node), "locality": place(draw),
        "is_live": draw.choice(["true", "true", "false"]),
        "membership": draw.choice(["active", "active", "decommissioning", "decommissioned"]),
        "is_draining": draw.choice(["false", "false", "true"]),
    }  # fmt: skip


def store(draw: random.Random, number: int, node: int) -> Row:
    """Return a row of ``crdb_internal.kv_store_status``."""
    attributes = draw.choice(["[]", '["ssd"]', '["ssd","nvme"]'])
    return {
        "node_id": str(node), "store_id": str(number), "attrs": attributes,
        "capacity": draw.choice(["1000000000", "2500000000"]),
        "available": draw.choice(["400000000", "30000000"]), "used": "600000000",
    }  # fmt: skip


def zones(draw: random.Random, names: dict[str, list[str]]) -> bytes:
    """Return zone configurations of the default, of a database, and of tables."""
    found = [setting(draw, "RANGE default")]
    if "database_name" in names:
        found.append(setting(draw, f"DATABASE {quoted(draw.choice(names['database_name']))}"))
    if "table_name" in names:
        table = quoted(draw.choice(names["table_name"]))
        found.append(setting(draw, f"TABLE {table}"))
        if "index_name" in names:
            index = quoted(draw.choice(names["index_name"]))
            found.append(setting(draw, f"INDEX {table}@{index}"))
        if draw.random() < 0.3:
            found.append(setting(draw, f'PARTITION "us" OF TABLE {table}'))
    if draw.random() < 0.5:
        return "".join(found).encode()
    printed = [
        {"target": one[6 : one.index(" CONFIGURE")], "raw_config_sql": one[:-2]} for one in found
    ]
    if draw.random() < 0.5:
        odd = draw.choice(["num_replicas = many", "constraints = '[+region=mars]'", "novel = 1"])
        target = draw.choice(["DATABASE gone", *(one["target"] for one in printed)])
        statement = f"ALTER {target} CONFIGURE ZONE USING {odd}"
        printed = [one for one in printed if one["target"] != target]
        printed.append({"target": target, "raw_config_sql": statement})
    return table_of(printed)


def setting(draw: random.Random, target: str) -> str:
    """Return the statement that configures one target."""
    count = draw.choice([1, 3, 3, 5])
    return f"ALTER {target} CONFIGURE ZONE USING num_replicas = {count}, gc.ttlseconds = 90;\n"


def table_of(rows: Sequence[dict[str, Any]]) -> bytes:
    """Return rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def quoted(name: str) -> str:
    """Return a name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def table(rows: Sequence[dict[str, Any]], draw: random.Random) -> bytes:
    """Return rows in one of the forms in which the tools print them."""
    if draw.random() < 0.3:
        return json.dumps(list(rows)).encode()
    text = io.StringIO()
    # tabs within a cell do not come: both forms are told by their headers
    mark = draw.choice([",", "\t"])
    writer = csv.DictWriter(text, list(rows[0]), delimiter=mark, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
