"""List scheduling in plain Python: sorted lists for heaps, and a list of tokens per resource."""


def schedule(changes, free, by_rank):
    """Start each change as early as it can be; changes and resources are numbers."""
    # ``changes`` is a list of dicts: ``duration``, ``rank``, ``previous`` (or None), ``claims`` and
    # ``returns`` (lists of pairs of resource and amount). Returns start, finish and wave of each,
    # what each lacked last, the order in which they started, and the arrows (from, to).
    count = len(changes)
    room, pool = list(free), list(free)
    waiting = {r: [] for r in range(len(free))}
    tokens = {r: [] for r in range(len(free))}
    payers = {r: [] for r in range(len(free))}
    start, finish, lacks = [None] * count, [None] * count, [None] * count
    wave, sequence, arrows, running = [0] * count, [], set(), []

    def point(giver, c):
        arrows.add((giver, c))
        wave[c] = max(wave[c], wave[giver] + 1)

    def begin(c, now):
        one = changes[c]
        for r, amount in one["claims"]:
            if amount > room[r]:
                lacks[c] = r
                waiting[r].append((amount, one["rank"], c))
                return r
        if one["previous"] is not None:
            wave[c] = wave[one["previous"]] + 1
        for r, amount in one["claims"]:
            room[r] -= amount
            for giver in payers[r]:
                point(giver, c)
            if pool[r] > 0.0:
                took = min(amount, pool[r])
                pool[r] -= took
                amount -= took
            while amount > 0.0 and tokens[r]:
                giver, left = tokens[r][0]
                point(giver, c)
                if left > amount:
                    tokens[r][0] = giver, left - amount
                    break
                amount -= left
                tokens[r].pop(0)
        start[c], finish[c] = now, now + one["duration"]
        sequence.append(c)
        running.append((finish[c], one["rank"], c))
        return None

    for c in by_rank:
        if changes[c]["previous"] is None:
            begin(c, 0.0)
    while running:
        now = min(running)[0]
        touched, ready = [], []
        while running and min(running)[0] <= now:
            done = min(running)
            running.remove(done)
            for r, amount in changes[done[2]]["returns"]:
                room[r] += amount
                touched += [r] if r not in touched else []
                if pool[r] < 0.0:
                    payers[r].append(done[2])
                    pool[r] += amount
                    if pool[r] <= 0.0:
                        continue
                    amount, pool[r] = pool[r], 0.0
                tokens[r].append((done[2], amount))
            ready += [c for c in range(count) if changes[c]["previous"] == done[2]]
        for c in ready:
            begin(c, now)
        for r in touched:
            while waiting[r] and min(waiting[r])[0] <= room[r]:
                first = min(waiting[r])
                waiting[r].remove(first)
                if begin(first[2], now) == r:
                    break
    return start, finish, wave, lacks, sequence, arrows
