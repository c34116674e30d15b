"""Tuning parameters of the levelling search, measured on the benchmarks' instances."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Parameters:
    """Schedule and thresholds of the levelling search.

    *Redistribution*

    ``sweeps``: most sweeps over all partitions that hand leadership on. ``ceiling``: target ratio
    up to which replicas that were given away may be put down. ``sweep_threshold`` and
    ``walk_threshold``: part of the slack that the threshold of the penalty lies below 1 while
    leaders spread, and in walks.

    *Walks*

    A long walk has ``walk_steps`` steps, or ``walk_per_replica`` for each replica if that is less;
    ``first_steps`` bound the first walks, which find out whether too few replicas have moved.
    ``threshold`` is the rise of the penalty that they begin with, in units of the mean square of
    what leading adds. ``open_walks`` walks have a move penalty that falls by the factor
    ``move_penalty_falls``, and ``free_walks`` next to none. The caller may stop after each
    ``chunk`` of steps. With up to ``brief_replicas``, ``brief_walk`` stands for
    ``walk_per_replica``, unless the caller says how long it may take.

    *Relief*

    Where a short walk leaves more than the part ``stuck`` of the penalty, too few replicas have
    moved: at most ``reliefs`` rounds of relief, until ``fruitless_reliefs`` in a row have relieved
    nothing. At most one node in ``few_overfull`` too full is few:
    ``reliefs_at_once`` rounds before any walk; ``many_reliefs`` late ones on large clusters.

    *Sizes*

    ``few_replicas`` are walked to the end; with more than ``many_replicas`` there are no open
    walks.

    *End*

    Walks end once the penalty has not fallen to the part ``falls`` for ``patience`` long walks,
    unless the level is about as near as a replica is large. All that level ends after
    ``most_steps`` steps and looks of a solve, or ``steps_per_partition`` for each partition if that
    is more, unless the caller says how long it may take.

    *Strategy*

    Moves are made for a goal out of reach only if they leave no more than the part ``worth_moving``
    of the excess. On large clusters replicas may move for leader preferences if more than the part
    ``leader_preference_violations`` of the partitions is led from a worse choice. Pairs look at
    ``pair_looks`` nodes at most, ``pair_stretch`` replicas between two looks at the clock.
    """

    sweeps: int = 12
    ceiling: float = 1.03
    sweep_threshold: float = 0.1
    walk_threshold: float = 0.5
    walk_steps: int = 4_000_000
    walk_per_replica: int = 400
    first_steps: int = 2_000_000
    threshold: float = 0.1
    open_walks: int = 6
    move_penalty_falls: float = 0.3
    free_walks: int = 8
    chunk: int = 250_000
    brief_replicas: int = 1_000
    brief_walk: int = 120
    stuck: float = 0.5
    reliefs: int = 12
    fruitless_reliefs: int = 2
    few_overfull: int = 32
    reliefs_at_once: int = 4
    many_reliefs: int = 8
    few_replicas: int = 2_000
    many_replicas: int = 20_000
    falls: float = 0.9
    patience: float = 2.0
    most_steps: int = 20_000_000
    steps_per_partition: int = 800
    worth_moving: float = 0.9
    leader_preference_violations: float = 0.1
    pair_looks: int = 4_000_000
    pair_stretch: int = 64


DEFAULT = Parameters()
