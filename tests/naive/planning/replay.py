"""The replay of a plan, event by event, with dictionaries and loops."""

from collections import Counter
from fractions import Fraction
from math import inf, isfinite

from evenkeel.model.placement import Flag, Role
from evenkeel.planning.steps import StepKind
from tests.naive.planning.ends import TransitionTable
from tests.naive.planning.rooms import first_without_room
from tests.support.plans.one_by_one import rows_of

COPY, PROMOTE, LEAD, DEMOTE, REMOVE, SWAP, ORDER = StepKind
READABLE = {"caught up", "promoting", "serving", "demoting"}


def replay(cluster, steps, target=None, throttle=None, joint=False, quorum=True, in_flight=None):
    """What a plan breaks, as a set of (kind, step); steps that break their end state are -1."""
    rows = rows_of(steps)
    broken = structure(cluster, rows)
    if broken:
        return broken
    return Run(cluster, rows, target, throttle, joint, quorum, in_flight).run()


def in_place(row):
    """Whether a step changes the role of a replica where it is."""
    return row.kind in (PROMOTE, DEMOTE) and row.source == row.target >= 0


def structure(cluster, rows):
    """Steps that cannot be replayed at all."""
    first, nodes = cluster.placement.first, len(cluster.nodes)
    broken = set()
    for i, row in enumerate(rows):
        named = 0 <= row.kind <= 6 and 0 <= row.partition < len(first) - 1
        named = named and first[row.partition] <= row.replica < first[row.partition + 1]
        named = named and -1 <= row.source < nodes and -1 <= row.target < nodes
        named = named and not (row.kind in (COPY, PROMOTE, LEAD, ORDER) and row.target < 0)
        named = named and not (row.kind in (DEMOTE, REMOVE) and row.source < 0)
        named = named and not (row.kind == SWAP and row.source < 0 and row.target < 0)
        if not named:
            broken.add(("index", i))
        if not (isfinite(row.start) and isfinite(row.finish) and 0 <= row.start <= row.finish):
            broken.add(("time", i))
        if any(b < 0 or b >= i for b in row.before):
            broken.add(("dependency", i))
    return broken


class Run(TransitionTable):
    """One replay."""

    def __init__(self, cluster, rows, target, throttle, joint, quorum, in_flight=None):
        self.cluster, self.rows, self.target = cluster, rows, target
        self.throttle, self.joint = throttle, joint
        self.quorum = quorum
        self.broken = set()
        start = cluster.placement
        self.seats = {}  # (partition, replica, node) -> state
        self.leader = {}  # partition -> (replica, node)
        self.led = set()  # hand-overs by who does not vote, and roles of who leads
        self.last = {}  # what a step was that last changed a seat
        self.last_lead, self.last_change = {}, {}
        self.role = {}  # replica -> role
        self.fresh = set()  # copies whose learner counts in every dimension
        self.dropped = set()  # removals of such a learner
        self.was_seen = {}
        self.joined = {}  # when a seat began to serve
        self.came = {}  # partition -> replicas that live again, when, and by which step
        self.copied = {}  # copy -> when it began
        self.pending = {}  # partition -> changes that are under way or half done
        self.flying = set()
        self.alive = cluster.nodes.alive & ~cluster.nodes.gone
        for p in range(len(start)):
            for k in range(start.first[p], start.first[p + 1]):
                self.role[k] = int(start.role[k])
                if start.node[k] >= 0:
                    self.seats[p, k, int(start.node[k])] = "serving"
                elif target is not None:
                    self.role[k] = int(target.role[k])
            if start.leader[p] >= 0:
                k = int(start.first[p]) + int(start.leader[p])
                self.leader[p] = k, int(start.node[k])
        self.load = self.loads_of(start)
        self.counts = Counter(n for _, _, n in self.seats)
        node = start.node if in_flight is None else in_flight
        self.begun = {k: int(n) for k, n in enumerate(node) if start.node[k] != n >= 0}
        for k, n in self.begun.items():
            what = "all" if start.node[k] < 0 else "transient"
            self.put(int(start.owner[k]), k, n, 1, what, role=int(start.role[k]))
        self.touched = {row.partition for row in rows}
        self.ancestors = []
        for row in rows:
            self.ancestors.append(set(row.before).union(*(self.ancestors[b] for b in row.before)))
        self.set_limits()
        self.kept_groups = self.groups_kept_by_ends()
        self.shown = [(*seat, state) for seat, state in self.seats.items()]
        self.shown_role = dict(self.role)
        self.groups = self.group_values()
        self.kept = {p: self.kept_by_ends(p) for p in self.touched}
        self.margins = {p: self.measures(p) for p in self.touched}

    # events ----------------------------------------------------------------------------------

    def run(self):
        self.check_steps()
        self.check_begun()
        for i, begins, ends in self.events():
            row = self.rows[i]
            if begins:
                self.begin(i, row)
            else:
                self.last_part(i, row)
            if ends:
                self.end(i, row)
            elif begins:
                self.meanwhile(i, row)
            self.judge(i, row, begins, ends)
        self.finish()
        for key, free in self.free.items():
            short = first_without_room(free, self.trades[key], self.ancestors)
            if short is not None:
                self.fail("room", short)
        if self.throttle is not None and self.throttle.recovery_first:
            self.check_recovery()
        return self.broken

    def events(self):
        keys = []
        for i, row in enumerate(self.rows):
            if row.start == row.finish:
                keys.append((row.start, 1, i, True, True))
            else:
                keys += [(row.start, 1, i, True, False), (row.finish, 0, i, False, True)]
        keys.sort()
        self.seen = []
        for j, key in enumerate(keys):
            rest = [one for one in keys[j + 1 :] if one[0] == key[0]]
            mine = self.rows[key[2]].partition
            hidden = any(
                self.rows[one[2]].kind in (PROMOTE, DEMOTE, SWAP)
                and self.rows[one[2]].partition == mine and one[4] for one in rest
            )  # fmt: skip
            self.seen.append(not (self.joint and hidden))
        self.position = -1
        for key in keys:
            self.position += 1
            yield key[2:]

    def check_begun(self):
        """What is under way goes on, and before other changes of its partition."""
        for k, n in self.begun.items():
            if not any((r.kind, r.replica, r.target) == (COPY, k, n) for r in self.rows):
                self.fail("in_flight", -1)
            joins = [row for row in self.rows
                     if row.kind in (PROMOTE, SWAP) and not in_place(row)]  # fmt: skip
            until = max((r.start for r in joins if (r.replica, r.target) == (k, n)), default=0)
            for i, row in enumerate(self.rows):
                other = row.partition == self.cluster.placement.owner[k]
                other = other and row.replica not in self.begun and row.start < until
                if other and row.kind in (PROMOTE, DEMOTE, SWAP):
                    self.fail("in_flight", i)

    def fail(self, kind, i):
        self.broken.add((kind, i))

    def check_steps(self):
        c = self.cluster
        for i, row in enumerate(self.rows):
            p, k = row.partition, row.replica
            for b in row.before:
                if self.rows[b].finish > row.start:
                    self.fail("dependency", i)
                if self.rows[b].wave > row.wave:
                    self.fail("wave", i)
            if not (isfinite(row.size) and row.size >= 0) or (row.kind != COPY and row.size):
                self.fail("size", i)
            elif row.kind == COPY and not c.placement.flags[k] & Flag.INCOMING:
                load, d = c.partitions.load, c.bytes_dimension
                roles = (load.leader, load.voter, load.non_voter)
                if d >= 0 and row.size < min(by[p, d] for by in roles) * (1.0 - 1e-9):
                    self.fail("size", i)
            if row.kind == ORDER and not self.orders(row):
                self.fail("order", i)
            then = self.target
            aim = [] if then is None else then.node[then.first[p] : then.first[p + 1]].tolist()
            if row.kind == COPY:
                n = row.target
                if not self.alive[n] or (not c.nodes.may_receive[n] and n not in aim):
                    self.fail("not_accepted", i)
                if [p, n] in c.forbidden.tolist() and n not in aim:
                    self.fail("forbidden", i)
            if row.kind in (DEMOTE, SWAP, REMOVE) and row.source >= 0:
                home = c.placement.node[k] == row.source
                pinned = bool(c.placement.flags[k] & Flag.PINNED)
                if (
                    home
                    and pinned
                    and not in_place(row)
                    and (self.target is None or row.source in aim)
                ):
                    self.fail("pinned", i)

    def orders(self, row):
        """Whether a list of live nodes that nothing else changes gets another first replica."""
        start, p = self.cluster.placement, row.partition
        slots = range(start.first[p], start.first[p + 1])
        first = next(
            (int(start.node[k]) for k in slots if start.flags[k] & Flag.PREFERRED),
            int(start.leader_node[p]),
        )
        return (
            all(self.alive[start.node[k]] for k in slots if start.node[k] >= 0)
            and (row.source, row.target) == (first, start.node[row.replica])
            and sum(other.partition == p for other in self.rows) == 1
        )

    def needs(self, i, j):
        """Step i builds on step j."""
        if j is not None and j != i and j not in self.ancestors[i]:
            self.fail("dependency", i)

    def needs_seat(self, i, p, k, n, states):
        state = self.seats.get((p, k, n))
        if state not in states:
            self.fail("precondition", i)
        known = (p, k, n) in self.last
        if known:
            self.needs(i, self.last[p, k, n])
        return state

    def begin(self, i, row):
        p, k = row.partition, row.replica
        kind, source, target = row.kind, row.source, row.target
        if in_place(row):
            self.begin_role(i, row)
            return
        if kind in (PROMOTE, DEMOTE) and self.role[k] != Role.VOTER:
            self.fail("role", i)
        if kind == COPY:
            self.needs_seat(i, p, k, target, {None})
            self.check_source(i, row, True)
            nowhere = not any(q == p and r == k for q, r, _ in self.seats)
            if nowhere:
                self.fresh.add(i)
            if self.begun.get(k) != target:
                self.put(p, k, target, 1, "all" if nowhere else "transient")
            self.flying.add(i)
            self.copied[i] = self.position
            self.check_throttle(i)
        if kind in (PROMOTE, SWAP) and target >= 0:
            state = self.needs_seat(i, p, k, target, {"caught up"})
            if not (state == "caught up" and self.last.get((p, k, target)) in self.fresh):
                self.put(p, k, target, 1, "serving")
        if kind in (PROMOTE, DEMOTE, SWAP):
            self.begin_change(i, row)
        if kind in (DEMOTE, SWAP, REMOVE) and source >= 0:
            wanted = {"left", "caught up"} if kind == REMOVE else {"serving"}
            state = self.needs_seat(i, p, k, source, wanted)
            if state == "caught up" and self.last.get((p, k, source)) in self.fresh:
                self.dropped.add(i)
            self.check_leaving(i, row, state)
        if kind == LEAD:
            if self.role.get(self.leader.get(p, (-1, -1))[0]) == Role.NON_VOTER:
                self.led.add(i)
            self.needs(i, self.last_lead.get(p))
            self.needs(i, self.last.get((p, k, target)))
            self.check_lead(i, row)

    def begin_role(self, i, row):
        p, k = row.partition, row.replica
        wanted = Role.NON_VOTER if row.kind == PROMOTE else Role.VOTER
        if self.role[k] != wanted:
            self.fail("role", i)
        state = self.needs_seat(i, p, k, row.target, {"serving"})
        self.is_alone(i, row)
        self.begin_change(i, row)
        if row.kind == DEMOTE:
            self.check_leaving(i, row, state)
        if self.leader.get(p) == (k, row.target):
            self.led.add(i)
        else:
            self.reweigh(row, 1)

    def is_alone(self, i, row):
        """A role changes where the replica has one seat alone."""
        p, k, n = row.partition, row.replica, row.target
        others = [m for q, r, m in self.seats if (q, r) == (p, k) and m != n]
        if self.ever(p, k, n) and others:
            self.fail("precondition", i)

    def reweigh(self, row, sign):
        """Put on what a role change adds as it starts, take off what it spares as it finishes."""
        load = self.cluster.partitions.load
        for d in range(len(self.cluster.dimensions)):
            voter, other = (Fraction(float(by[row.partition, d]))
                            for by in (load.voter, load.non_voter))  # fmt: skip
            more = (voter - other) * (1 if row.kind == PROMOTE else -1)
            self.load[row.target, d] += sign * max(sign * more, 0)

    def check_leaving(self, i, row, state):
        """A leader that lives hands over before it goes."""
        p, k, source = row.partition, row.replica, row.source
        if state == "serving" and self.leader.get(p) == (k, source) and self.alive[source]:
            self.fail("leader", i)
        lead = self.last_lead.get(p)
        if state == "serving" and lead is not None and self.rows[lead].source == source:
            self.needs(i, lead)

    def check_source(self, i, row, begins):
        p = row.partition
        holders = [n for (q, k, n), s in self.seats.items()
                   if q == p and s in READABLE and self.alive[n]]  # fmt: skip
        if row.source < 0:
            if holders and begins:
                self.fail("source", i)
            return
        if row.source not in holders:
            self.fail("source", i)
        if begins:
            for (q, k, n), s in self.seats.items():
                if q == p and n == row.source and s in READABLE and self.alive[n]:
                    self.needs(i, self.last.get((q, k, n)))

    def begin_change(self, i, row):
        p, k = row.partition, row.replica
        column = row.target if row.kind == PROMOTE else row.source
        twins = [n for (q, r, n), s in self.seats.items()
                 if (q, r) == (p, k) and n != column and s == "serving"]  # fmt: skip
        closes = (
            row.kind == DEMOTE and not in_place(row) and bool(twins) and self.ever(p, k, column)
        )
        if closes:
            self.needs(i, self.last.get((p, k, twins[-1])))
        now = self.pending.get(p, 0) + 1 - closes
        if now > 1:
            self.fail("change", i)
        self.pending[p] = now
        self.needs(i, self.last_change.get(p))
        self.last_change[p] = i

    def check_lead(self, i, row):
        p, k = row.partition, row.replica
        c = self.cluster
        fit = self.seats.get((p, k, row.target)) == "serving"
        fit = fit and self.role[k] == Role.VOTER
        wanted = self.target is not None and self.target.leader_node[p] == row.target
        fit = fit and (c.nodes.may_lead[row.target] or (wanted and self.alive[row.target]))
        leader = self.leader.get(p, (-1, -1))[1]
        led = leader >= 0 and self.alive[leader]
        fit = fit and (row.source == leader or (not led and row.source < 0))
        fit = fit and not (led and leader == row.target)
        if not fit:
            self.fail("leader", i)

    def meanwhile(self, i, row):
        p, k = row.partition, row.replica
        if in_place(row):
            self.set(i, p, k, row.target, "serving")
            return
        made = {COPY: "copying", PROMOTE: "promoting", SWAP: "promoting"}
        if row.kind in made and row.target >= 0:
            self.set(i, p, k, row.target, made[row.kind])
        made = {DEMOTE: "demoting", SWAP: "demoting", REMOVE: "removing"}
        if row.kind in made and row.source >= 0:
            self.set(i, p, k, row.source, made[row.kind])

    def ever(self, p, k, n):
        """Whether a replica ever has a seat on a node."""
        home = n >= 0 and self.cluster.placement.node[k] == n
        return home or any(
            (r.kind, r.partition, r.replica, r.target) == (COPY, p, k, n) for r in self.rows
        )

    def set(self, i, p, k, n, state):
        """Give a seat a state, if the replica ever has that seat."""
        if self.ever(p, k, n):
            self.seats.pop((p, k, n), None)
            if state is not None:
                self.seats[p, k, n] = state
            self.last[p, k, n] = i

    def last_part(self, i, row):
        """A step that takes time finds at its finish what it left at its start."""
        p, k = row.partition, row.replica
        if in_place(row):
            self.finds(i, (p, k, row.target), "serving")
            self.is_alone(i, row)
            return
        made = {COPY: "copying", PROMOTE: "promoting", SWAP: "promoting"}
        if row.kind in made and row.target >= 0:
            self.finds(i, (p, k, row.target), made[row.kind])
        made = {DEMOTE: "demoting", SWAP: "demoting", REMOVE: "removing"}
        if row.kind in made and row.source >= 0:
            self.finds(i, (p, k, row.source), made[row.kind])
        if row.kind == COPY:
            self.check_source(i, row, False)
        if row.kind == LEAD:
            self.check_lead(i, row)

    def finds(self, i, seat, state):
        """A step finds a seat in a state."""
        if self.seats.get(seat) != state:
            self.fail("precondition", i)

    def end(self, i, row):
        p, k = row.partition, row.replica
        kind, source, target = row.kind, row.source, row.target
        if in_place(row):
            self.set(i, p, k, target, "serving")
            if self.ever(p, k, target):
                self.role[k] = Role.VOTER if kind == PROMOTE else Role.NON_VOTER
            if i not in self.led:
                self.reweigh(row, -1)
            self.pending[p] -= 1
            self.last_change[p] = i
            return
        twins = [n for (q, r, n), s in self.seats.items()
                 if (q, r) == (p, k) and n != target and s == "serving"]  # fmt: skip
        if kind == COPY:
            self.set(i, p, k, target, "caught up")
            self.flying.discard(i)
        if kind in (PROMOTE, SWAP) and target >= 0:
            self.set(i, p, k, target, "serving")
            self.joined[p, k, target] = self.position
            if self.alive[target]:
                self.came.setdefault(p, []).append((k, self.position, i))
        if kind in (DEMOTE, SWAP) and source >= 0:
            self.put(p, k, source, -1, "serving")
            self.set(i, p, k, source, "left")
        if kind in (PROMOTE, DEMOTE, SWAP):
            opens = kind == PROMOTE and bool(twins) and self.ever(p, k, target)
            self.pending[p] += -1 + opens
            self.last_change[p] = i
        if kind == REMOVE:
            self.put(p, k, source, -1, "all" if i in self.dropped else "transient")
            self.set(i, p, k, source, None)
        if kind == LEAD:
            for n, sign in ((target, 1), (source, -1)):
                for d in range(len(self.cluster.dimensions)):
                    load = self.cluster.partitions.load
                    alone = load.non_voter if sign < 0 and i in self.led else load.voter
                    extra = Fraction(float(load.leader[p, d])) - Fraction(float(alone[p, d]))
                    if n >= 0:
                        self.load[n, d] += sign * extra
            self.leader[p] = (k, target) if self.ever(p, k, target) else (-1, -1)
            self.last_lead[p] = i

    def put(self, p, k, n, sign, what, role=None):
        for d in range(len(self.cluster.dimensions)):
            transient = bool(self.cluster.transient[d])
            if what == "all" or transient == (what == "transient"):
                self.load[n, d] += sign * self.weight(p, k, d, role=role)
        if what in ("all", "transient"):
            self.counts[n] += sign

    def trade(self, i, key, now):
        """Note what an event takes of a place, or gives back to it."""
        if now != self.held[key]:
            self.trades[key].append((i, now - self.held[key]))
            self.held[key] = now

    # judging ---------------------------------------------------------------------------------

    def judge(self, i, row, begins, ends):
        for one in self.limits:
            key = (*one[:2], one[3])
            exact, before = self.held_by(one), float(self.held[key])
            self.trade(i, key, exact)
            now = float(exact)
            over = now > 0 if one[4] == 0 else now > one[4] * (1 + 1e-11)
            if over and now > before * (1 + 1e-14) and one[4] != inf:
                self.fail(one[0], i)
                self.free.pop(key, None)
        for n in self.most:
            self.trade(i, n, self.counts[n])
        for n, most in self.most.items():
            comes = row.kind == COPY and begins and row.target == n
            if comes and self.counts[n] > most and self.begun.get(row.replica) != n:
                self.fail("max_replicas", i)
                self.free.pop(n, None)
        p = row.partition
        now = self.measures(p)
        if self.seen[self.position]:
            for rule in self.kept[p]:
                value, least = now[rule]
                shown = self.was_seen.get(p, True)
                before = self.margins[p][rule][0] if shown else inf
                if value < least and value < before:
                    self.fail(rule[0], i)
        if self.seen[self.position]:
            # groups see of a partition what it was when it was seen last
            others = [one for one in self.shown if one[0] != p]
            self.shown = others + [(*seat, s) for seat, s in self.seats.items() if seat[0] == p]
            for k in range(self.cluster.placement.first[p], self.cluster.placement.first[p + 1]):
                self.shown_role[k] = self.role[k]
        rules = self.group_rules(self.shown, self.shown_role)
        values = {rule: value for rule, (value, _) in rules.items()}
        for rule, least in self.kept_groups.items():
            was, now_is = self.groups.get(rule, 0), values.get(rule, 0)
            if now_is < least and now_is < was:
                self.fail(rule[0], i)
        self.groups = values
        self.margins[p] = now
        self.was_seen[p] = self.seen[self.position]

    def check_throttle(self, i):
        t, me = self.throttle, self.rows[i]
        if t is None:
            return
        flying = [self.rows[j] for j in self.flying]
        topology = self.cluster.topology

        def over(most, number):
            return most is not None and number > most * (1 + 1e-9)

        def rate(rows):
            return sum(
                inf if r.finish == r.start and r.size else 0 if not r.size
                else r.size / (r.finish - r.start)
                for r in rows
            )  # fmt: skip

        into = [r for r in flying if r.target == me.target]
        out = [r for r in flying if r.source == me.source and r.source >= 0]
        for kind, most, number in (
            ("node_in", t.node_in, len(into)),
            ("node_out", t.node_out, len(out)),
            ("copies", t.copies, len(flying)),
            ("bytes_in", t.node_bandwidth, rate(into)),
            ("bytes_out", t.node_bandwidth, rate(out)),
        ):  # fmt: skip
            if over(most, number):
                self.fail(kind, i)
        for way, limits in (("in", t.domain_in), ("out", t.domain_out)):
            for tier, most in limits.items():
                domain = [*topology.domain_with_nodes[topology.tier_index(tier)].tolist(), -1]
                end = (lambda r: r.target) if way == "in" else (lambda r: r.source)
                here = domain[end(me)]
                crossing = [r for r in flying if domain[r.source] != domain[r.target]]
                crossing = [r for r in crossing if domain[end(r)] == here]
                if here >= 0 and me in crossing and over(most, len(crossing)):
                    self.fail(f"domain_{way}", i)

    def check_recovery(self):
        """No copy begins before what lacks live replicas has those that it gets."""
        c, start = self.cluster, self.cluster.placement
        lives = {k: n >= 0 and bool(self.alive[n]) for k, n in enumerate(start.node.tolist())}
        lack = {}
        for p in range(len(start)):
            wanted = max(int(c.partitions.min_active[p]), int(c.partitions.replicas[p]))
            lack[p] = wanted - sum(lives[k] for k in range(start.first[p], start.first[p + 1]))
        until = -1
        for p, came in self.came.items():
            first = {}
            for k, at, i in came:
                if not lives[k]:
                    first.setdefault(k, (at, i))
            for at, i in [*first.values()][: max(lack[p], 0)]:
                if all(lack[self.rows[b].partition] > 0 for b in self.ancestors[i]):
                    until = max(until, at)
        for i, at in self.copied.items():
            under_way = start.flags[self.rows[i].replica] & Flag.INCOMING
            if lack[self.rows[i].partition] <= 0 and not under_way and at < until:
                self.fail("recovery", i)

    def finish(self):
        start = self.cluster.placement
        for p in self.touched:
            serving = Counter(k for (q, k, _), s in self.seats.items() if q == p and s == "serving")
            other = [n for (q, _, n), s in self.seats.items() if q == p and s != "serving"
                     and not (s == "left" and not self.alive[n])]  # fmt: skip
            if other or any(count > 1 for count in serving.values()):
                self.fail("end", max(i for i, row in enumerate(self.rows) if row.partition == p))
        if self.target is None:
            return
        for p in range(len(start)):
            for k in range(start.first[p], start.first[p + 1]):
                on = {
                    n for (q, r, n), s in self.seats.items() if (q, r) == (p, k) and s == "serving"
                }
                if len(on) < 2 and not (on or {-1}) <= {
                    int(start.node[k]),
                    int(self.target.node[k]),
                }:
                    self.fail("end", -1)
                same = self.role[k] in (start.role[k], self.target.role[k])
                if len(on) == 1 and self.target.node[k] >= 0 and not same:
                    self.fail("end", -1)
