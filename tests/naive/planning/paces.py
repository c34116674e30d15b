"""Every state that steps go through at whatever pace, and what places carry in it at most."""


def overflows(free, trades, before):
    """Whether a place may carry more than is free there, in some order that the arrows admit."""
    # ``trades`` are steps and what each takes of the place, below 0 what it gives back when it is
    # done; ``before`` are the steps that each waits for
    takes = [max(sum(a for i, a in trades if i == step), 0) for step in range(len(before))]
    gives = [max(-sum(a for i, a in trades if i == step), 0) for step in range(len(before))]
    ahead = [sum(1 << b for b in some) for some in before]
    seen, queue = {0}, [0]
    for done in queue:
        able = [i for i in range(len(before)) if not done >> i & 1 and ahead[i] & ~done == 0]
        held = sum(takes[i] - gives[i] for i in range(len(before)) if done >> i & 1)
        if held + sum(takes[i] for i in able) > free:
            return True
        for i in able:
            then = done | 1 << i
            if then not in seen:
                seen.add(then)
                queue.append(then)
    return False
