"""Order of benefit in plain Python: the best of a list, looked at again before it goes."""

EXCESS = 1000.0
SLACK = 0.05


def order_by_benefit(changes, used, mean):
    """Return the changes in order; each is a dict."""
    # ``urgency``, ``size``, ``previous`` (or None) and ``shifts``, a list of (node, amounts).
    # ``used`` is a list of rows, and changes with what goes.

    def lost(c):
        worse = 0.0
        for n, amounts in changes[c]["shifts"]:
            for before, amount, most in zip(used[n], amounts, mean, strict=True):
                after = before + amount
                worse += max(after - most, 0.0) - max(before - most, 0.0)
                worse += EXCESS * (max(after - 1.0, 0.0) - max(before - 1.0, 0.0))
        return worse / changes[c]["size"]

    def rank(c):
        return changes[c]["urgency"], key[c], c

    key = {c: lost(c) for c, one in enumerate(changes) if one["previous"] is None}
    order = []
    while key:
        c = min(key, key=rank)
        fresh = lost(c)
        if fresh - key[c] > SLACK * abs(key[c]):
            key[c] = fresh
            if min(key, key=rank) != c:
                continue
        del key[c]
        order.append(c)
        for n, amounts in changes[c]["shifts"]:
            used[n] = [one + amount for one, amount in zip(used[n], amounts, strict=True)]
        for later, one in enumerate(changes):
            if one["previous"] == c:
                key[later] = lost(later)
    return order
