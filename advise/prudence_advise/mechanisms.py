# SPDX-License-Identifier: MIT
"""What a load costs under each way to synchronize it: the thesis' latencies, waiting, and Prudence's grace periods.

The thesis compares a spinlock, a distributed reader-writer lock and RCU at low contention. Here each mechanism is a list of
what a section pays by itself and of what all sections take turns for. Turns make a closed queueing network, whose exact mean
values (Reiser and Lavenberg, 1980) say how long sections wait when `active` CPUs are at it: the high-contention case
that the thesis leaves open (L6344). Times are ns, arrays over draws of the machine's costs or over shares of updates.

What all mechanisms pay alike is left out: cache misses for the data itself, and the line that an update takes from readers.
Where an update replaces an object instead of changing it, it writes the pointer as well: that line is counted.
"""

import math
from dataclasses import dataclass, field

import numpy

from . import ours

RETRIES_MOST = 1000.0  # of a seqlock's reader
LINE = 64
COPY_BYTES_PER_NS = 16.0
LEAD = 1e-6
LOCK = LINE


@dataclass
class Load:
    """What a program does. A section is a critical section: a share of `updates` of them change something."""

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
    again: float = 0.0  # more ns if another section came meanwhile: the line has to be fetched once more
    refused: float = 0.0  # ns, outside of it, of a section that finds it taken: system calls


@dataclass
class Cost:
    """What a section pays."""

    alone: float  # ns that nobody waits for
    stations: list = field(default_factory=list)
    exclusive: float = 0.0  # ns for which an update keeps everybody out; a share of `updates` of the sections
    retried: float = 0.0  # ns of a reader's section that an update in between makes vain
    window: float = 0.0  # ns of a writer that make it so
    memory: float = 0.0  # bytes beyond the data
    details: dict = field(default_factory=dict)


def chance_of_refusal(station, queue, cycle):
    """That a section finds the station taken, if that costs it so much that all come less often because of it.

    `queue` is what it would find at once. If a fraction p is refused, a cycle takes `refused` * p longer, so p = queue * cycle
    / (cycle + refused * p): a quadratic equation.
    """
    longer = station.refused / cycle
    return 2 * numpy.minimum(1.0, queue / station.servers) / (1 + numpy.sqrt(1 + 4 * longer * queue / station.servers))


def solve(cost, updates, active, between):
    """Mean value analysis: sections per ns of all `active` CPUs, and the share of a cycle that is spent waiting."""
    queues = [0.0] * len(cost.stations)
    writers = rate = 0.0
    for customers in range(1, active + 1):
        waits, demands, refused = 0.0, 0.0, 0.0
        times = []
        for station, queue in zip(cost.stations, queues):
            if customers > 1 and numpy.any(station.refused):
                queue = chance_of_refusal(station, queue, (customers - 1) / rate)
                refused = refused + station.refused * numpy.minimum(1.0, queue / station.servers)
            demand = station.demand + station.again * numpy.minimum(1.0, queue / station.servers)
            times.append(demand * (1 + queue / station.servers))
            demands = demands + demand
            waits = waits + times[-1] - demand
        # A section finds an update as often as there is one; but each update of another CPU holds it up once.
        held = cost.exclusive * numpy.minimum(writers, updates * (customers - 1))
        # The rate of one section less says how often a reader is disturbed.
        spoiled = numpy.minimum(RETRIES_MOST, numpy.exp(numpy.minimum(20.0, rate * updates * cost.window)))
        again = (1 - updates) * cost.retried * (spoiled - 1)
        cycle = between + cost.alone + demands + updates * cost.exclusive + waits + held + again + refused
        rate = customers / cycle
        queues = [rate * time for time in times]
        writers = rate * updates * (cost.exclusive + held)
    return rate, (waits + held + again + refused) / cycle


# ------------------------------------------------------------------------------------------ locks

def lock(machine, load, active, round_trip, refused=0.0):
    """One lock for all sections (7.1 and 7.2, and the section that others wait for)."""
    f = load.updates
    hold = (1 - f) * load.reading + f * load.updating
    return Cost(0.0 * f, [Station(round_trip + machine.line(active) + hold, refused=refused)], memory=LOCK)


def spinlock(machine, load, active):
    return lock(machine, load, active, machine["spinlock"])


def mutex(machine, load, active):
    """Short sections are over before their waiter sleeps, but not before it has asked the kernel to: one wait that is refused, the
    holder's wake, and the waiter's own, because it cannot know that nobody else waits."""
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
    """A lock for each CPU: readers take their own (7.6), an update takes all (7.9)."""
    f = load.updates
    weight = 1 + (active - 1) * f
    own = machine["spinlock"] + (active - 1) * f / weight * machine.other(active)
    others = (active - 1) * (machine["spinlock"] + (1 - f / weight) * machine.other(active))
    gate = machine["spinlock"] + machine.line(active)
    drain = load.reading * (1 - f) * (active > 1)
    return Cost((1 - f) * (own + load.reading), exclusive=gate + own + others + load.updating + drain,
                memory=LOCK * (machine.cpus + 1))


def lock_line(machine, load, active):
    """The line of one of many locks: from another CPU, or from where so many lines fit."""
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
    return Cost(0.0 * f, [Station(load.operations * of_each + load.reading + f * load.update, load.buckets)],
                memory=LOCK * load.buckets)


def updaters(machine, load, active):
    """Where only updates lock: their turns, on as many locks as there are buckets."""
    return Station(load.updates * (machine["spinlock"] + lock_line(machine, load, active) + load.updating), load.buckets)


# -------------------------------------------------------------------------------- readers that do not lock

def seqlock(machine, load, active):
    """Readers read a counter twice, and again what an update has come into."""
    f = load.updates
    weight = 1 + (active - 1) * f
    reading = machine["sequence_read"] + (active - 1) * f / weight * machine.other(active) + load.reading
    return Cost((1 - f) * reading, [Station(f * (machine["spinlock"] + machine.line(active) + load.updating))],
                retried=reading, window=reading + load.updating, memory=2 * LOCK)


def moved(machine, load, active):
    """What readers of replaced objects pay: the pointer's line, if another CPU has written it since they read it."""
    weight = 1 + (active - 1) * load.updates
    return load.operations * (active - 1) * load.updates / weight * machine.other(active)


def hazard_pointers(machine, load, active):
    """Readers publish each object and fence; an updater that has retired 2 TK objects looks at all TK pointers (L1356)."""
    f = load.updates
    pointers = load.threads * load.operations
    waiting = 2 * pointers
    scan = (machine.other(active) * load.threads + pointers * machine["instruction"] * 4) / waiting
    retire = machine["malloc_pair"] + scan + load.size / COPY_BYTES_PER_NS
    reading = load.reading + moved(machine, load, active) + load.operations * machine["hazard_pointer"]
    return Cost((1 - f) * reading + f * retire,
                [updaters(machine, load, active)],
                memory=load.threads * (LINE + waiting * load.size),
                details={"objects_in_flight": float(load.threads * waiting)})


def rcu_costs(machine, active, fenced):
    return ours.Costs(pair=machine["pair_fenced" if fenced else "pair_free"], transfer=machine.other(active),
                      membarrier=machine.membarrier(active), fence=machine["fence"])


def deferral(machine, load, active, fenced, rate, deferrals, entries, reading):
    """What a section pays for grace periods, the memory, and the details.

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
    # Where no section reads, a closed batch is over at once (ADR 37).
    unread = numpy.asarray(entries) <= 0
    due = numpy.where(unread, batch, due)
    defer = numpy.where(unread, ours.deferral_of_count(due, active, 0, load.size, costs, fenced), defer)
    flight = numpy.where(unread, ours.objects_in_flight(rate * deferrals, length, active, 0, load.size, costs, fenced,
                                                        load.latent_limit), flight)
    missing = ours.footprint_cost(load.size, flight / active * load.size, machine.document["caches"].get("l2", 0) or 1 << 20,
                                  machine.get("load_l3", "load_memory", "load_l1"))
    details = {"fenced": fenced, "objects_in_flight": flight * (deferrals > 0), "grace_period_ns": length,
               "objects_per_grace_period": due, "deferral_ns": defer + missing}
    memory = flight * load.size * (deferrals > 0) + LINE * load.threads
    return deferrals * (defer - costs.pair + missing) + questions, memory, details


def rcu_of_mode(machine, load, active, fenced):
    f = load.updates
    costs = rcu_costs(machine, active, fenced)
    reader = machine["reader_fenced" if fenced else "reader_free"]
    reading = load.reading + moved(machine, load, active) + reader
    cost = Cost((1 - f) * reading + f * (costs.pair + load.size / COPY_BYTES_PER_NS), [updaters(machine, load, active)])
    rate, _ = solve(cost, f, active, load.between)
    # What grace periods add is little, so the rates without them say how many objects share one.
    extra, cost.memory, cost.details = deferral(machine, load, active, fenced, rate, f, 1 - f, reading)
    cost.alone = cost.alone + extra
    return cost


def rcu(machine, load, active):
    """Prudence. The library fences readers or sends membarriers, whichever costs less at the rates that it finds."""
    return [rcu_of_mode(machine, load, active, fenced) for fenced in (False, True)]


def none(machine, load, active):
    """No synchronization at all: what no mechanism can surpass."""
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
    Mechanism("hazard", "hazard pointers", hazard_pointers, 6),
)
BY_NAME = {mechanism.name: mechanism for mechanism in MECHANISMS}


def active_cpus(machine, load):
    return max(1, min(load.threads, machine.cpus))


def evaluate(mechanism, machine, load):
    """Sections per ns, the share of time spent waiting, and the cost that led to them; of alternatives the fastest."""
    active = active_cpus(machine, load)
    return fastest(mechanism.cost(machine, load, active), load, active)


def fastest(costs, load, active):
    """As evaluate(), of one cost or of alternatives."""
    if not isinstance(costs, list):
        costs = [costs]
    solved = [solve(cost, load.updates, active, load.between) for cost in costs]
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
