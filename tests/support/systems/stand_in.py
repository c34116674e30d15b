"""Base of all stand-ins: state read at the start of a call, and a record of its changes."""

# ruff: noqa: PTH123 (it starts without the site, and in a hurry)

import json
import os

FILE = os.environ["SYSTEM"]
with open(FILE) as opened:
    state = json.load(opened)


def save():
    with open(FILE, "w") as out:
        json.dump(state, out)


def fails(call):
    """Note a call that changed something; whether it is the one that fails after its work."""
    state["calls"] = state.get("calls", 0) + 1
    with open(os.environ["CALLS"], "a") as log:
        log.write(call + "\n")
    save()
    return state["calls"] == state.get("breaks")
