"""The table of methods; each layer adds its own, and a method is imported when it is used."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.reading.keywords import did_you_mean
from evenkeel.model.runtime.later import imported

if TYPE_CHECKING:
    from evenkeel.methods.contract import Holder, RefreshPayload, Strategy
    from evenkeel.methods.options import Options

MethodName = Literal[  # the names of ``METHODS``, for type checkers
    "balance", "exact", "leaders", "helix_crush", "helix_multiround", "helix_crushed",
    "helix_auto", "helix_waged", "ceph_crush", "ceph_upmap", "cockroach", "longhorn",
]  # fmt: skip

BUDGETS = ("moves", "bytes", "node_in", "node_out")
# the fields of ``Limits`` that a search keeps while it looks for moves
ALL_BUDGETS = (*BUDGETS, "partition_moves", "domain_in", "domain_out", "leader_changes")


@dataclass(frozen=True)
class Method:
    """Everything that is known about a method; the table of them is ``METHODS``."""

    name: str  # as ``solve`` takes it
    where: str  # its function, ``"module:name"``
    summary: str  # one line for people
    options: str = ""  # the class of its options, ``"module:name"``; "" if it takes none
    limits: tuple[str, ...] = ()  # the fields of ``Limits`` that it keeps; others are refused
    minimises: bool = False  # whether it can minimise a ``Cost``; else that is refused
    # the fields of ``Goals`` that it works towards; its result is compared with all of them
    goals: tuple[str, ...] = ()
    # whether it can start from another placement than the cluster's; else that is refused
    starts: bool = True
    # whether its result is never worse than what came in, as ``methods.run.answered`` asserts
    never_worse: bool = False
    # what decides partition by partition in a simulation, ``"module:name"``; "" for nothing. It
    # takes a cluster, what to level and a seed, and returns a ``Decider``.
    decider: str = ""
    # what brings the cluster's payload up to date in a simulation, ``"module:name"``
    refresh: str = ""
    # what holds a cluster ready for the loss of nodes, ``"module:name"``, a ``Holder``; "" where
    # sessions and sweeps solve every snapshot
    ready: str = ""
    # seconds per replica that it takes to begin, on a slow day: with less time left it is not
    # begun, and everything stays where the search would have started
    begins: float = 0.0
    # whether that payload knows no nodes and partitions but those that it was read with
    fixed_membership: bool = False
    # the kind of work under which its kernels are recorded, to be compiled ahead; "" for none
    warmup: str = ""

    def load(self) -> "Strategy":
        """Import the strategy."""
        strategy: Strategy = imported(self.where)
        return strategy

    def options_class(self) -> "type[Options] | None":
        """Import the class of its options, if it takes any."""
        return imported(self.options) if self.options else None

    def holder(self) -> "Holder | None":
        """Import what holds a cluster ready."""
        return imported(self.ready) if self.ready else None

    def refresher(self) -> "RefreshPayload | None":
        """Import what brings the payload up to date."""
        return imported(self.refresh) if self.refresh else None


def find(name: str) -> Method:
    """Return a method by name."""
    if not isinstance(name, str) or name not in METHODS:
        known = ", ".join(sorted(METHODS))
        message = f"unknown method; there are: {known}{did_you_mean(str(name), METHODS)}"
        raise InvalidInput([Fault("method", name, message)])
    return METHODS[name]


METHODS: dict[str, Method] = {}  # the methods by name


def register(methods: Iterable[Method]) -> None:
    """Enter methods into the table."""
    METHODS.update((one.name, one) for one in methods)


register(
    (
        Method(
            "balance",
            "evenkeel.methods.balance:balance",
            "repairs, relocates and balances with the fewest moves, to the goals and no further",
            limits=ALL_BUDGETS,
            minimises=True,
            goals=(
                "level",
                "floor",
                "leaders",
                "soft_yield",
                "act_above",
                "worth",
                "groups",
                "move_cost",
                "group_leaders",
                "min_leaders",
            ),
            never_worse=True,
            ready="evenkeel.methods.levelling.losses:standing",
            begins=3e-7,
            warmup="any",
        ),
        Method(
            "exact",
            "evenkeel.methods.exact.method:exact",
            "small clusters by CP-SAT, with a proof: all placed, then level, then the fewest moves",
            "evenkeel.methods.options:Exact",
            limits=ALL_BUDGETS,
            goals=(
                "level",
                "leaders",
                "act_above",
                "worth",
                "groups",
                "group_leaders",
                "min_leaders",
            ),
            never_worse=True,
            warmup="small",
        ),
        Method(
            "leaders",
            "evenkeel.methods.leaders.method:leaders",
            "choose leaders, replicas staying where they are: the proven least on the fullest node",
            "evenkeel.methods.options:Leaders",
            limits=(*BUDGETS, "leader_changes"),
            goals=("group_leaders", "min_leaders"),
            never_worse=True,
            begins=8e-7,
            warmup="placed",
        ),
    )
)
