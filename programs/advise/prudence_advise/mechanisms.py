# SPDX-License-Identifier: MIT
"""The cost of a load under each way to synchronize it: the thesis' latencies, waiting, and Prudence's grace periods.

The thesis compares a spinlock, a distributed reader-writer lock and RCU at low contention. Here each mechanism is a list of
the costs of a section by itself and of the stations that all sections take turns for. Turns make a closed queueing network, whose exact mean
values (Reiser and Lavenberg, 1980) say how long sections wait when `active` CPUs are at it: the high-contention case
that the thesis leaves open (L6344). Times are ns, arrays over draws of the machine's costs or over shares of updates.

No rate exceeds the capacity of its mechanism: a station serves one section at a time, an update that keeps all others out leaves
them the rest of the time, and a reader that an update disturbs needs a time without one (tests/advise/test_capacity.py).
With more threads than CPUs, a thread loses its CPU while it holds a lock, and those that spin for the lock wait for its next turn.

Costs that all mechanisms share are not counted: cache misses for the data itself, and the line that an update takes from readers.
Where an update replaces an object instead of changing it, it writes the pointer as well: that line is counted.
"""

import dataclasses
import math
from dataclasses import dataclass, field

import numpy

from . import ours

EXPONENT_MOST = 600.0  # beyond, a double overflows
STEPS = 60  # of the search for a rate: at most
LINE = 64
COPY_BYTES_PER_NS = 16.0
LEAD = 1e-6
LOCK = LINE


@dataclass
class Load:
    """The load of a program. A section is a critical section: a share of `updates` of them change something."""

    threads: int
    updates: float
    operations: int = 1  # lookups in a section
    lookup: float = 100.0  # ns, without synchronization
    update: float = 50.0  # ns that an update's section takes beyond that of a reader
    between: float = 1000.0  # ns from a thread's section to its next
    live: float = 1000.0  # objects
    size: int = 64  # bytes of an object
    buckets: int = 1  # locks that updates, or all, can be spread over
    latent_limit: int = ours.LATENT_LIMIT

    @property
    def reading(self):
        return self.operations * self.lookup

    @property
    def updating(self):
        return self.reading + self.update


@dataclass
class Station:
    """Something that sections take turns for: `demand` ns of each, spread over `servers` that are alike."""

    demand: float
    servers: int = 1
    again: float = 0.0  # more ns if another section came in between: the line has to be fetched once more
    refused: float = 0.0  # ns, outside of it, of a section that finds it taken: system calls


@dataclass
class Cost:
    """The costs of a section."""

    alone: float  # ns that no thread waits for
    stations: list = field(default_factory=list)
    exclusive: float = 0.0  # ns for which an update keeps everybody out; a share of `updates` of the sections
    retried: float = 0.0  # ns of a reader's section that an update makes vain
    open: float = 0.0  # ns of an update in which no such section can begin
    holding: float = 0.0  # ns of a section in which others would only spin if its thread had no CPU
    needed: float = 1.0  # how often a section needs a lock that such a thread may hold, one of `parts`
    parts: int = 1
    most: float = math.inf  # sections per ns that something else allows
    memory: float = 0.0  # bytes beyond the data
    details: dict = field(default_factory=dict)


def chance_of_refusal(refused, found, cycle):
    """Returns the probability that a section finds a station taken, if that costs so much that all come less often.

    `found` is the chance if it cost nothing. If a share p is refused, a cycle takes `refused` * p longer, so p = found * cycle
    / (cycle + refused * p): a quadratic equation.
    """
    return numpy.minimum(1.0, 2 * found / (1 + numpy.sqrt(1 + 4 * found * refused / cycle)))


class Refusals:
    """The cost of sections that find a station taken. It never falls as sections become more, so the station's limit holds."""

    def __init__(self, station):
        self.station = station
        self.chance = 0.0
        self.cost = 0.0

    def meet(self, used, cycle):
        """`used`: the share of the time in which the station is taken if one section less is there, whose cycle is `cycle`."""
        at_once = cycle - self.cost
        chance = chance_of_refusal(self.station.refused, used * cycle / at_once, at_once)
        self.chance = numpy.maximum(self.chance, chance)
        self.cost = self.station.refused * self.chance


def undisturbed_rate(customers, cycle, cost, updates, guess):
    """Returns sections per ns where readers begin again until no update meets them; `cycle` is the time of a section without that.

    Of the time that a thread does not update itself, the share 1 - free has an update of another one in it. A reader begins in the rest, and it
    succeeds if no update begins during its section: those of others come at the rate `meets` / free. So it needs exp(...) / free trials,
    and rate * cycle(rate) = customers. The left side grows with the rate: one solution, found by Newton's steps between bounds.
    """
    others = (customers - 1) / customers
    reader, all_open = (1 - updates) * cost.retried, updates * cost.open
    meets = others * updates * cost.retried
    own = all_open / customers
    low = 0.0 * (cycle + reader + all_open)
    high = numpy.minimum(customers / cycle, (1 - 1e-12) / numpy.maximum(all_open, 1e-300)) + low
    rate = numpy.where((guess > low) & (guess < high), guess, high / 2)
    for _ in range(STEPS):
        closed, idle = 1 - all_open * rate, 1 - own * rate
        trials = numpy.exp(numpy.minimum(EXPONENT_MOST, meets * rate / closed)) * idle / closed
        took = cycle + reader * (trials - 1)
        excess = numpy.log(rate * took / customers)
        slope = 1 + reader * trials * rate * (meets / closed ** 2 + all_open / closed - own / idle) / took
        low, high = numpy.where(excess < 0, rate, low), numpy.where(excess < 0, high, rate)
        step = rate * numpy.exp(-excess / slope)
        before, rate = rate, numpy.where((step > low) & (step < high), step, (low + high) / 2)
        if numpy.all(numpy.abs(rate - before) <= 1e-12 * rate):
            break
    return rate


def solve(cost, updates, active, between):
    """Mean value analysis: sections per ns of all `active` CPUs, and the share of a cycle that is spent waiting."""
    queues = [0.0] * len(cost.stations)
    used = list(queues)
    refusals = [Refusals(station) if numpy.any(station.refused) else None for station in cost.stations]
    writers = rate = 0.0
    for customers in range(1, active + 1):
        waits, demands, refused = 0.0, 0.0, 0.0
        times, needs = [], []
        for station, queue, share, refusal in zip(cost.stations, queues, used, refusals):
            if customers > 1 and refusal:
                refusal.meet(share, (customers - 1) / rate)
                refused = refused + refusal.cost
            demand = station.demand + station.again * numpy.minimum(1.0, queue / station.servers)
            needs.append(demand / station.servers)
            times.append(demand * (1 + queue / station.servers))
            demands = demands + demand
            waits = waits + times[-1] - demand
        # A section finds an update as often as there is one; but each update of another CPU holds it up once.
        held = cost.exclusive * numpy.minimum(writers, updates * (customers - 1))
        work = between + cost.alone + demands + updates * cost.exclusive
        cycle = work + waits + held + refused
        if customers > 1 and numpy.any(cost.retried):
            rate = undisturbed_rate(customers, cycle, cost, updates, rate)
            cycle = customers / rate
        else:
            rate = customers / cycle
        queues = [rate * time for time in times]
        used = [rate * need for need in needs]
        writers = rate * updates * (cost.exclusive + held)
    return rate, numpy.maximum(0.0, 1 - work / cycle)


def share_with_cpus(cost, load, active, rate):
    """Returns the remaining share of `rate` with more threads than CPUs, where threads lose their CPU while others spin for their locks.

    Each CPU takes its thread away once in a slice. Of the threads that run, rate * holding are then such that others wait for them, and their
    next turn comes after those of the CPU's other threads. Until then all CPUs spin, as soon as each has met the held lock.
    """
    if load.threads <= active:
        return 1.0
    turns = load.threads / active - 1
    meetings = turns * ours.SLICE * rate / active * cost.needed / cost.parts
    seldom = meetings < 1e-6  # there the other term would cancel
    stopped = numpy.where(seldom, meetings / 2, 1 + numpy.expm1(-meetings) / numpy.where(seldom, 1.0, meetings))
    return 1 / (1 + rate * cost.holding * turns * stopped)


def rate_of(cost, load, active):
    """Sections per ns of all CPUs, with all that limits them, and the share of the time that is spent waiting."""
    rate, waiting = solve(cost, load.updates, active, load.between)
    limited = numpy.minimum(rate * share_with_cpus(cost, load, active, rate), cost.most)
    return limited, 1 - (1 - waiting) * limited / rate


# ------------------------------------------------------------------------------------------ locks

def lock(machine, load, active, round_trip, refused=0.0):
    """A single lock for all sections (7.1 and 7.2, and the section that others wait for)."""
    f = load.updates
    hold = (1 - f) * load.reading + f * load.updating
    return Cost(0.0 * f, [Station(round_trip + machine.line(active) + hold, refused=refused)], memory=LOCK)


def spinlock(machine, load, active):
    cost = lock(machine, load, active, machine["spinlock"])
    cost.holding = cost.stations[0].demand
    return cost


def mutex(machine, load, active):
    """Short sections are over before their waiter sleeps, but not before it has asked the kernel to: one wait that is refused, the
    holder's wake, and the waiter's own, because it cannot know that no other thread waits. Those that wait for a holder without a CPU do
    sleep, so the holder has its CPU back soon."""
    refused = 0.0 * machine["mutex"]
    if machine.get("futex_wait") is not None:
        refused = machine["futex_wait"] + 2 * machine["futex_wake"]
    return lock(machine, load, active, machine["mutex"], refused)


def rwlock(machine, load, active):
    """Readers write the lock's word twice, so its line moves to each of them; an update keeps all others out."""
    f = load.updates
    word = machine.line(active) + (1 - f) * machine["read_lock"] + f * machine["write_lock"]
    drain = load.reading * (1 - f) * (active > 1)
    return Cost((1 - f) * load.reading, [Station(word, again=machine.line(active))],
                exclusive=load.updating + drain, memory=LOCK)


def brlock(machine, load, active):
    """A lock for each CPU, or for each thread if there are more: readers take their own (7.6), an update takes all (7.9)."""
    f = load.updates
    locks = max(active, load.threads)
    weight = 1 + (active - 1) * f
    own = machine["spinlock"] + (active - 1) * f / weight * machine.other(active)
    others = (locks - 1) * (machine["spinlock"] + (1 - f / weight) * machine.other(active))
    gate = machine["spinlock"] + machine.line(active)
    drain = load.reading * (1 - f) * (active > 1)
    exclusive = gate + own + others + load.updating + drain
    # An update waits for each thread that has its own lock, and all that update wait for that one.
    return Cost((1 - f) * (own + load.reading), exclusive=exclusive, holding=(1 - f) * (own + load.reading) + f * exclusive,
                needed=f, memory=LOCK * (max(machine.cpus, load.threads) + 1))


def lock_line(machine, load, active):
    """Returns the cost of the line of one of many locks: from another CPU, or from a cache where this many lines fit."""
    line = machine.line(active)
    caches = machine.document.get("caches", {})
    bytes_of_locks = load.buckets * LOCK
    if caches.get("l3") and bytes_of_locks > caches["l3"]:
        cold = machine.get("load_memory")
    elif caches.get("l2") and bytes_of_locks > caches["l2"]:
        cold = machine.get("load_l3", "load_memory")
    else:
        cold = None
    return line if cold is None else numpy.maximum(line, cold)


def bucket_locks(machine, load, active):
    """A lock for each bucket: one for each operation, and a section waits for those in the same buckets only."""
    f = load.updates
    of_each = machine["spinlock"] + lock_line(machine, load, active)
    holding = load.operations * of_each + load.reading + f * load.update
    return Cost(0.0 * f, [Station(holding, load.buckets)], holding=holding, needed=load.operations, parts=load.buckets,
                memory=LOCK * load.buckets)


def updaters(machine, load, active):
    """Returns the rate where only updates lock: their turns, on as many locks as there are buckets."""
    return Station(load.updates * (machine["spinlock"] + lock_line(machine, load, active) + load.updating), load.buckets)


# -------------------------------------------------------------------------------- readers that do not lock

def seqlock(machine, load, active):
    """Readers read a counter twice, and again a section that met an update. While an update has no CPU, all wait."""
    f = load.updates
    weight = 1 + (active - 1) * f
    reading = machine["sequence_read"] + (active - 1) * f / weight * machine.other(active) + load.reading
    update = f * (machine["spinlock"] + machine.line(active) + load.updating)
    return Cost((1 - f) * reading, [Station(update)], retried=reading, open=load.updating, holding=update, memory=2 * LOCK)


def moved(machine, load, active):
    """The cost of readers of replaced objects: the pointer's line, if another CPU has written it since they read it."""
    weight = 1 + (active - 1) * load.updates
    return load.operations * (active - 1) * load.updates / weight * machine.other(active)


def protection(machine):
    """A hazard pointer of the library, fence-free. The calibration of ADR 68's machine is older, and has one that fences."""
    return machine.get("hazard_free", "hazard_pointer")


def hazard_pointers(machine, load, active):
    """Hazard pointers of the library: readers name each object; a grace period costs as much as RCU's and waits for no section.

    The driver's check of the slots takes the lines that RCU's takes from the readers, and no thread is asked to fence (ADR 152). The
    library does not weigh the membarrier of such a domain, so DUE_CHEAP_BYTES are worth a grace period.
    """
    f = load.updates
    costs = dataclasses.replace(rcu_costs(machine, active, False), pair=machine.get("hazard_pair", "pair_free"))
    readers = active if active > 1 else 0
    turns = updaters(machine, load, active)
    reading = load.reading + moved(machine, load, active) + load.operations * protection(machine)
    cost = Cost((1 - f) * reading + f * (costs.pair + load.size / COPY_BYTES_PER_NS), [turns], holding=turns.demand, needed=f,
                parts=load.buckets)
    rate, _ = rate_of(cost, load, active)
    unweighed = dataclasses.replace(costs, membarrier=0 * costs.membarrier)
    due = ours.objects_due(readers, load.size, unweighed)
    flight = ours.objects_in_flight(rate * f, ours.grace_period(readers, costs), active, readers, load.size, unweighed, False,
                                    load.latent_limit)
    defer = ours.deferral_of_count(due, active, readers, load.size, costs) + missing_lines(machine, load, active, flight)
    cost.alone = cost.alone + f * (defer - costs.pair)
    cost.memory = flight * load.size * (f > 0) + 2 * LINE * load.threads
    cost.details = {"objects_in_flight": flight * (f > 0), "deferral_ns": defer, "objects_per_grace_period": due}
    return cost


def missing_lines(machine, load, active, flight):
    """The cost of cache misses of a deferral, for this number of objects that are deferred and not yet reusable."""
    return ours.footprint_cost(load.size, flight / active * load.size, machine.document["caches"].get("l2", 0) or 1 << 20,
                               machine.get("load_l3", "load_memory", "load_l1"))


def rcu_costs(machine, active, fenced):
    return ours.Costs(pair=machine["pair_fenced" if fenced else "pair_free"], transfer=machine.other(active),
                      membarrier=machine.membarrier(active), fence=machine["fence"])


def deferral(machine, load, active, fenced, rate, deferrals, entries, reading):
    """Returns a section's cost of grace periods, the memory, and the details.

    `rate`: sections per ns, of each of which there are `deferrals` deferrals and `entries` reader's sections of `reading` ns.
    """
    costs = rcu_costs(machine, active, fenced)
    readers = active if active > 1 else 0  # a thread does not wait for itself
    asked = ours.are_asked(readers, active / rate / numpy.maximum(1e-9, entries)) & (not fenced)
    interval, batch = ours.ask_interval(readers), ours.objects_of_batch(load.size)
    due = numpy.where(asked, numpy.maximum(batch, rate * deferrals * interval),
                      ours.objects_due(readers, load.size, costs, fenced))
    defer = numpy.where(asked, ours.deferral_of_count(due, active, readers, load.size, costs, True),
                        ours.deferral_of_count(due, active, readers, load.size, costs, fenced))
    questions = numpy.where(asked, numpy.minimum(1 / interval, rate * deferrals / batch), 0.0) * active / rate * ours.ASK_COST
    inside = numpy.clip(rate * entries * reading / active, 0, 1)
    length = ours.grace_period_length(load.threads, machine.cpus, inside, load.reading, costs, fenced)
    flight = ours.objects_in_flight(rate * deferrals, length, active, readers, load.size, costs, fenced, load.latent_limit,
                                    asked)
    # If no section reads, a closed batch is over at once (ADR 37).
    unread = numpy.asarray(entries) <= 0
    due = numpy.where(unread, batch, due)
    defer = numpy.where(unread, ours.deferral_of_count(due, active, 0, load.size, costs, fenced), defer)
    flight = numpy.where(unread, ours.objects_in_flight(rate * deferrals, length, active, 0, load.size, costs, fenced,
                                                        load.latent_limit), flight)
    missing = missing_lines(machine, load, active, flight)
    details = {"fenced": fenced, "objects_in_flight": flight * (deferrals > 0), "grace_period_ns": length,
               "objects_per_grace_period": due, "deferral_ns": defer + missing}
    memory = flight * load.size * (deferrals > 0) + LINE * load.threads
    return deferrals * (defer - costs.pair + missing) + questions, memory, details


def rcu_of_mode(machine, load, active, fenced):
    f = load.updates
    costs = rcu_costs(machine, active, fenced)
    reader = machine["reader_fenced" if fenced else "reader_free"]
    reading = load.reading + moved(machine, load, active) + reader
    turns = updaters(machine, load, active)
    cost = Cost((1 - f) * reading + f * (costs.pair + load.size / COPY_BYTES_PER_NS), [turns], holding=turns.demand, needed=f,
                parts=load.buckets)
    rate, _ = rate_of(cost, load, active)
    # Grace periods add little, so the rates without them say how many objects share one.
    extra, cost.memory, cost.details = deferral(machine, load, active, fenced, rate, f, 1 - f, reading)
    cost.alone = cost.alone + extra
    if load.latent_limit:
        cost.most = throttled(machine, load, active, fenced, rate)
    return cost


def throttled(machine, load, active, fenced, rate):
    """Sections per ns where `latent_limit` is full and deferrals wait: that many objects at most become reusable in a grace period.

    It waits for readers that run, because throttled threads sleep and leave their CPUs to the others.
    """
    inside = numpy.clip(rate * (1 - load.updates) * load.reading / active, 0, 1)
    length = ours.grace_period_length(active, machine.cpus, inside, load.reading, rcu_costs(machine, active, fenced), fenced)
    objects = max(1.0, load.latent_limit / load.size)
    return objects / (length * numpy.maximum(load.updates, 1e-300)) if active > 1 else math.inf


def rcu(machine, load, active):
    """Prudence. The library fences readers or sends membarriers, whichever costs less at the rates that it finds."""
    return [rcu_of_mode(machine, load, active, fenced) for fenced in (False, True)]


def none(machine, load, active):
    """No synchronization at all: the bound of all mechanisms."""
    return Cost((1 - load.updates) * load.reading + load.updates * load.updating + 0.0 * machine["instruction"])


@dataclass(frozen=True)
class Mechanism:
    name: str
    title: str
    cost: object  # a function of machine, load and active CPUs
    effort: int  # of using it right; of two that are equally fast the one with less is advised
    needs_buckets: bool = False


MECHANISMS = (
    Mechanism("mutex", "mutex", mutex, 1),
    Mechanism("spinlock", "spinlock", spinlock, 2),
    Mechanism("rwlock", "reader-writer lock", rwlock, 2),
    Mechanism("buckets", "lock for each bucket", bucket_locks, 3, needs_buckets=True),
    Mechanism("brlock", "reader-writer lock for each CPU (brlock)", brlock, 4),
    Mechanism("seqlock", "seqlock", seqlock, 5),
    Mechanism("rcu", "RCU with Prudence", rcu, 5),
    Mechanism("hazard", "hazard pointers of Prudence", hazard_pointers, 6),
)
BY_NAME = {mechanism.name: mechanism for mechanism in MECHANISMS}


def active_cpus(machine, load):
    return max(1, min(load.threads, machine.cpus))


def evaluate(mechanism, machine, load):
    """Sections per ns, the share of time spent waiting, and the cost that led to them; of alternatives the fastest."""
    active = active_cpus(machine, load)
    return fastest(mechanism.cost(machine, load, active), load, active)


def fastest(costs, load, active):
    """Returns the fastest of the alternatives, in the form of evaluate()."""
    if not isinstance(costs, list):
        costs = [costs]
    solved = [rate_of(cost, load, active) for cost in costs]
    rates = numpy.stack([numpy.broadcast_to(rate, numpy.broadcast(rate, load.updates).shape) for rate, _ in solved])
    best = numpy.argmax(rates, axis=0)
    waiting = numpy.choose(best, [numpy.broadcast_to(share, rates.shape[1:]) for _, share in solved])
    return rates.max(axis=0), waiting, costs[int(best.flat[0])]


def breakeven(shares, first, second):
    """Up to which of the ascending `shares` the rate `first` is the greater; both have a row for each share.

    Of each column: 0 where it is not even at the first share, 1 where it is at the last. Between two shares the point is
    taken where the logarithms of the rates meet. A lead of less than LEAD is none: where both wait for the same thing they
    are equal, up to rounding.
    """
    lead = numpy.log(numpy.asarray(first) / numpy.asarray(second)) - LEAD
    found = numpy.ones(lead.shape[1])
    for column in range(lead.shape[1]):
        lost = numpy.nonzero(lead[:, column] <= 0)[0]
        if not len(lost):
            continue
        row = lost[0]
        if row == 0:
            found[column] = 0.0
            continue
        before, after = lead[row - 1, column], lead[row, column]
        low, high = math.log(shares[row - 1]), math.log(shares[row])
        found[column] = math.exp(low + (high - low) * before / (before - after))
    return found
