"""Certificates checked the plain way: one replica per zone, loops, and nothing of the library."""

import itertools
import math

import numpy as np


def proven_moves(before, alive, zone, voter, leader, target, load_price, loss_price, covers):
    """What prices and covers prove where nothing binds but the zones; the nodes must be alive."""
    # ``before`` is a list of node lists, ``covers`` pairs (node, count), already checked
    count = np.zeros(len(alive))
    for node, least in covers:
        count[node] = least
    total = loss_price @ count - np.where(load_price > 0, load_price * target, 0.0).sum()
    zones = [np.flatnonzero((zone == z) & alive) for z in sorted(set(zone[alive]))]
    for p, row in enumerate(before):
        stood = [n for n in row if n >= 0 and alive[n]]
        plain = np.ones(len(alive)) + load_price @ voter[p]
        plain[stood] += loss_price[stood] - 1.0
        lead = plain + load_price @ (leader[p] - voter[p])
        each, led = ([x[nodes].min() for nodes in zones] for x in (plain, lead))
        ways = [
            led[z] + sum(sorted(each[:z] + each[z + 1 :])[: len(row) - 1])
            for z in range(len(zones))
        ]
        total += min(ways) - loss_price[stood].sum()
    return math.ceil(total - 1e-6)


def must_lose(weight, excess, count):
    """Whether no ``count`` - 1 of the replicas take the excess away: all of them are tried."""
    few = max(count - 1, 0)
    return not any(
        (sum((weight[i] for i in some), np.zeros(len(excess))) >= excess).all()
        for some in itertools.combinations(range(len(weight)), min(few, len(weight)))
    )
