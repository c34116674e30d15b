"""Small scenarios, and controllers that follow a script, for the tests of the simulator."""

import math
from dataclasses import replace

import evenkeel as ek
from bench.scenarios.layouts import MIB, ON_DISK, Ranges, Stores, cluster_of
from evenkeel.simulate.engine.scenario import Scenario
from evenkeel.simulate.engine.stage import Controller

ONE_SECOND = MIB * ON_DISK  # bytes per second at which a range of one MiB takes a second
# what a test may say of the environment
AROUND = {"deadline", "lead_gap", "gossip_interval", "gossip_delay"}


def scenario(*ranges, stores=4, rules=None, minutes=2.0, **others):
    """A scenario of few small ranges; a range has 1 MiB unless it says otherwise."""
    kinds = ranges or (Ranges(count=4, on=[([0, 1, 2], 1.0)], mebibytes=1.0),)
    where = stores if isinstance(stores, Stores) else Stores(stores)
    cluster, environment = cluster_of(where, kinds, rules or [ek.Rule(spread={"host": 1})])
    around = {"snapshot": ONE_SECOND, "receive": 1, "gossip_delay": 0.0}
    around |= {name: others.pop(name) for name in AROUND & others.keys()}
    return Scenario(
        name="small",
        cluster=cluster,
        environment=replace(environment, **around),
        minutes=minutes,
        **others,
    )


class Script(Controller):
    """Asks for changes at given seconds, and notes what came of them."""

    def __init__(self, *lines):
        self.lines = sorted(lines, key=lambda line: line[0])
        self.numbers = {}
        self.ends = []
        self.stage = None

    def wake(self, stage):
        self.stage = stage
        while self.lines and self.lines[0][0] <= stage.world.seconds:
            _, change = self.lines.pop(0)
            self.numbers[change] = stage.submit(change)
        return self.lines[0][0] if self.lines else math.inf

    def ended(self, number, change, made):
        self.ends.append((self.stage.now / 1000, change, made))
