"""Whether a place has room for what comes in every order of the arrows, by the greatest flow."""


def first_without_room(free, trades, ancestors):
    """The first step, by its index, that may find no room; None where there always is some."""
    # ``trades`` are steps and what each takes of the place, below 0 what it gives back; a step may
    # take what is ``free`` at the beginning, and what its ``ancestors`` have given back
    gives = [(i, -amount) for i, amount in trades if amount < 0]
    takes = sorted((i, amount) for i, amount in trades if amount > 0)
    for count in range(1, len(takes) + 1):
        if greatest_flow(free, gives, takes[:count], ancestors) < sum(a for _, a in takes[:count]):
            return takes[count - 1][0]
    return None


def greatest_flow(free, gives, takes, ancestors):
    """What can be handed from those who give to those who take, no giver's share twice."""
    left = [free, *(amount for _, amount in gives)]
    open_to = [[0, *(j + 1 for j, (i, _) in enumerate(gives) if i in ancestors[step])]
               for step, _ in takes]  # fmt: skip
    flow = [[0] * len(left) for _ in takes]
    total = 0

    def handed(taker, most, seen):
        """Hand up to so much to a taker, others turning to other givers; return how much."""
        for giver in open_to[taker]:
            if giver in seen:
                continue
            seen.add(giver)
            amount = min(most, left[giver])
            if amount > 0:
                left[giver] -= amount
                flow[taker][giver] += amount
                return amount
            for other in range(len(takes)):
                if other != taker and flow[other][giver] > 0:
                    amount = handed(other, min(most, flow[other][giver]), seen)
                    if amount > 0:
                        flow[other][giver] -= amount
                        flow[taker][giver] += amount
                        return amount
        return 0

    for taker, (_, amount) in enumerate(takes):
        while amount > 0:
            got = handed(taker, amount, set())
            if got == 0:
                break
            amount -= got
            total += got
    return total
