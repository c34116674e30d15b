"""Goals: how level is level enough; and costs: what a weighted sum charges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenkeel.model.cost_tables import GroupTable, NodeTable
from evenkeel.model.errors import FaultList


@dataclass(frozen=True)
class Goals:
    """Tolerances, met with the fewest and smallest moves.

    A dimension is level when no node stands above (1 + tolerance) x max(total load / total
    accepting capacity, the proven floor).

    Parameters
    ----------
    level : float or mapping of str to (float or None)
        Tolerance for every dimension, or by dimension name; None: do not level that dimension.
        Dimensions that a mapping leaves out are not levelled.
    leaders : float or None
        Tolerance for the number of leaders per node, rounded up; None: do not level them.

    Raises
    ------
    InvalidInput
        If a tolerance is negative or not a number.

    Examples
    --------
    >>> Goals(level=0.04).tolerance("cpu")
    0.04
    >>> Goals(level={"cpu": 0.1}).tolerance("disk") is None
    True
    """

    level: float | Mapping[str, float | None] | None = 0.05
    leaders: float | None = None

    def __post_init__(self) -> None:
        faults = FaultList()
        given: dict[str, float | None] = {"leaders": self.leaders}
        if isinstance(self.level, Mapping):
            given |= {f"level[{name!r}]": value for name, value in self.level.items()}
        else:
            given["level"] = self.level
        for path, value in given.items():
            if value is not None and not value >= 0.0:
                faults.add(f"goals.{path}", value, "must be 0 or more")
        faults.raise_if_any()

    def tolerance(self, dimension: str) -> float | None:
        """Return the tolerance of one dimension.

        Parameters
        ----------
        dimension : str
            Its name.

        Returns
        -------
        float or None
            None if that dimension need not be level.
        """
        if isinstance(self.level, Mapping):
            return self.level.get(dimension)
        return self.level


@dataclass(frozen=True)
class Proportion:
    """Two dimensions whose free capacity should keep a ratio: charge ratio x free(a) - free(b).

    Parameters
    ----------
    of, to : str
        Dimensions a and b.
    ratio : float
        How much of b should be free for each unit of a.
    weight : float
        Cost of each missing unit of b.
    """

    of: str
    to: str
    ratio: float
    weight: float


@dataclass(frozen=True)
class Cost:
    """A weighted sum to minimise instead of tolerances to meet.

    Parameters
    ----------
    watermark : float or mapping of str to float
        Cost of one unit of load above a node's watermark, for all dimensions or by name.
    proportion : sequence of Proportion
        Pairs of dimensions to keep in proportion on every node.
    moves : float
        Times the move cost of every partition whose replica moved.
    group_moves : float
        Times the largest number of moved replicas of one group.
    distance : float
        Times the distance between each replica's old and new node.
    tables : sequence of NodeTable or GroupTable
        Goals of one's own: what nodes pay for load, and groups for sharing a domain.

    References
    ----------
    ROADEF/EURO challenge 2012, problem statement, objective.

    Examples
    --------
    >>> Cost(watermark=10.0, moves=1.0).watermark_weight("cpu")
    10.0
    """

    watermark: float | Mapping[str, float] = 1.0
    proportion: Sequence[Proportion] = ()
    moves: float = 0.0
    group_moves: float = 0.0
    distance: float = 0.0
    tables: Sequence[NodeTable | GroupTable] = ()

    def watermark_weight(self, dimension: str) -> float:
        """Return the cost of one unit above the watermark in one dimension.

        Parameters
        ----------
        dimension : str
            Its name.

        Returns
        -------
        float
            0 for a dimension that a mapping leaves out.
        """
        if isinstance(self.watermark, Mapping):
            return float(self.watermark.get(dimension, 0.0))
        return float(self.watermark)
