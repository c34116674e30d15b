"""CRUSH as Ceph's C code does it: one input at a time, depth first, in plain integers."""

MASK = 0xFFFFFFFF
NONE = 0x7FFFFFFF
UNDEFINED = 0x7FFFFFFE


def mix(a, b, c):
    for x, y, z in ((13, 8, 13), (12, 16, 5), (3, 10, 15)):
        a = (a - b - c & MASK) ^ c >> x
        b = (b - c - a & MASK) ^ (a << y & MASK)
        c = (c - a - b & MASK) ^ b >> z
    return a, b, c


def hash2(a, b):
    x, y, h = 231232, 1232, 1315423911 ^ a ^ b
    a, b, h = mix(a, b, h)
    x, a, h = mix(x, a, h)
    b, y, h = mix(b, y, h)
    return h


def hash3(a, b, c):
    x, y, h = 231232, 1232, 1315423911 ^ a ^ b ^ c
    a, b, h = mix(a, b, h)
    c, x, h = mix(c, x, h)
    y, a, h = mix(y, a, h)
    b, x, h = mix(b, x, h)
    y, c, h = mix(y, c, h)
    return h


def is_out(x, device, reweight):
    if device >= len(reweight) or reweight[device] == 0:
        return True
    return reweight[device] < 0x10000 and hash2(x, device) & 0xFFFF >= reweight[device]


class Crush:
    """A hierarchy: buckets by id as (type, items, ids to hash, rows of weights by position)."""

    def __init__(self, buckets, logarithm, devices):
        self.buckets = buckets
        self.logarithm = logarithm
        self.devices = devices

    def choose(self, bucket, x, r, position):
        """One item of a bucket by straw2."""
        _, items, ids, rows = self.buckets[bucket]
        weights = rows[min(position, len(rows) - 1)]
        best, winner = None, 0
        for i, (key, weight) in enumerate(zip(ids, weights, strict=True)):
            if weight:
                u = hash3(x, key & MASK, r & MASK) & 0xFFFF
                draw = -((2**48 - self.logarithm[u]) // weight)
            else:
                draw = -(2**63)
            if best is None or draw > best:
                best, winner = draw, i
        return items[winner]

    def kind(self, item):
        return 0 if item >= 0 else self.buckets[item][0]

    def firstn(
        self,
        x,
        bucket,
        replicas,
        wanted,
        out,
        start,
        room,
        tries,
        leaf,
        leaf_tries,
        limits,
        parent_r,
    ):
        """Append to ``out`` (and to ``leaf``, where it is a list); return how many there are."""
        local, vary_r, stable, reweight = limits
        placed = start
        rep = 0 if stable else start
        while rep < replicas and room > 0:
            failed = local_failed = 0
            within = bucket
            while True:
                r = rep + parent_r + failed
                collides = rejected = False
                if not self.buckets[within][1]:
                    rejected = True
                else:
                    item = self.choose(within, x, r, placed)
                    if item >= self.devices or (self.kind(item) != wanted and item >= 0):
                        break
                    if self.kind(item) != wanted:
                        within = item
                        continue
                    collides = item in out[:placed]
                    if not collides and leaf is not None:
                        if item < 0:
                            sub_r = r >> vary_r - 1 if vary_r else 0
                            once = 1 if stable else placed + 1
                            found = self.firstn(
                                x,
                                item,
                                once,
                                0,
                                leaf,
                                placed,
                                1,
                                leaf_tries,
                                None,
                                0,
                                limits,
                                sub_r,
                            )
                            rejected = found <= placed
                        else:
                            leaf[placed:] = [item]
                    if not (rejected or collides) and wanted == 0:
                        rejected = is_out(x, item, reweight)
                if not (rejected or collides):
                    out[placed:] = [item]
                    placed += 1
                    room -= 1
                    break
                failed += 1
                local_failed += 1
                if collides and local_failed <= local:
                    continue
                if failed >= tries:
                    break
                within, local_failed = bucket, 0
            rep += 1
        return placed

    def indep(
        self,
        x,
        bucket,
        left,
        replicas,
        wanted,
        out,
        start,
        tries,
        leaf,
        leaf_tries,
        reweight,
        parent_r,
    ):
        """Fill the slots from ``start`` on of ``out`` and, where it is a list, ``leaf``."""
        slots = range(start, start + left)
        for each in (out, leaf):
            if each is not None:
                each[start : start + left] = [UNDEFINED] * left
        for failed in range(tries):
            for rep in slots:
                if out[rep] != UNDEFINED:
                    continue
                within = bucket
                while self.buckets[within][1]:
                    r = rep + parent_r + replicas * failed
                    item = self.choose(within, x, r, start)
                    if item >= self.devices or (self.kind(item) != wanted and item >= 0):
                        out[rep] = NONE
                        if leaf is not None:
                            leaf[rep] = NONE
                        break
                    if self.kind(item) != wanted:
                        within = item
                        continue
                    if item in [out[i] for i in slots]:
                        break
                    if leaf is not None:
                        if item < 0:
                            self.indep(
                                x, item, 1, replicas, 0, leaf, rep, leaf_tries, None, 0, reweight, r
                            )
                            if leaf[rep] == NONE:
                                leaf[rep] = UNDEFINED
                                break
                        else:
                            leaf[rep] = item
                    if wanted == 0 and is_out(x, item, reweight):
                        break
                    out[rep] = item
                    break
        for each in (out, leaf):
            if each is not None:
                for i in slots:
                    each[i] = NONE if each[i] == UNDEFINED else each[i]

    def run(self, steps, tunables, reweight, x, size):
        """One rule for one input; steps as (operation, number, type)."""
        tries = tunables["choose_total_tries"] + 1
        leaf_tries = 0
        local = tunables["choose_local_tries"]
        vary_r = tunables["chooseleaf_vary_r"]
        stable = tunables["chooseleaf_stable"]
        answer, work = [], []
        for operation, number, wanted in steps:
            if operation == "take":
                work = [number]
            elif operation == "emit":
                answer += work[: size - len(answer)]
                work = []
            elif operation == "set_choose_tries":
                tries = number if number > 0 else tries
            elif operation == "set_chooseleaf_tries":
                leaf_tries = number if number > 0 else leaf_tries
            elif operation == "set_choose_local_tries":
                local = number if number >= 0 else local
            elif operation == "set_chooseleaf_vary_r":
                vary_r = number if number >= 0 else vary_r
            elif operation == "set_chooseleaf_stable":
                stable = number if number >= 0 else stable
            else:
                replicas = number if number > 0 else number + size
                chosen = []
                for bucket in work:
                    if bucket not in self.buckets or replicas <= 0:
                        continue
                    room = size - len(chosen)
                    out = []
                    leaf = [] if operation.startswith("chooseleaf") else None
                    if operation.endswith("firstn"):
                        once = 1 if tunables["chooseleaf_descend_once"] else tries
                        limits = (local, vary_r, stable, reweight)
                        n = self.firstn(
                            x, bucket, replicas, wanted, out, 0, room, tries, leaf,
                            leaf_tries or once, limits, 0,
                        )  # fmt: skip
                    else:
                        n = min(replicas, room)
                        out = [UNDEFINED] * n
                        leaf = None if leaf is None else [UNDEFINED] * n
                        self.indep(
                            x, bucket, n, replicas, wanted, out, 0, tries, leaf, leaf_tries or 1,
                            reweight, 0,
                        )  # fmt: skip
                    chosen += (out if leaf is None else leaf)[:n]
                work = chosen
        return answer
