# SPDX-License-Identifier: MIT
"""The thesis' hash-table benchmark (2.2.4 to 2.2.11, 8.1, appendix D): its model, and its measurement.

The thesis' model has the costs of locks alone; access to the data is future work there (L6345). Here it is in: `Table` has the cost of an
operation of one thread without any synchronization, measured ("ideal"), and `Lines` the additional cost, because other CPUs
have changed the lines of the bucket and of the element, by the thesis' own count (L979 to 1006): a search reads both; a removal
fetches both and keeps them; the addition after it finds all lines there. All is per operation: a search, a removal, or an addition;
a share of `updates` (f) are removals and additions, in pairs.
"""

import datetime
import json
import os
import subprocess
from dataclasses import dataclass

import numpy

from . import mechanisms, ours
from .machine import BadCalibration
from .mechanisms import Cost, Load, Station

FORMAT = 1
ELEMENT = 64  # bytes
BUCKETS = (32, 16384)
SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.85, 1.0)
LAMBDAS = (10, 100)
ENOUGH = 0.9  # of their CPUs' time that the threads of a run have: less, and it was disturbed
TRIES = 5
LOCKS = ("brlock", "bkt", "bktcl", "bktrw", "globalrw", "global")
TITLES = {"ideal": "ideal: one thread without synchronization, times the threads", "rcu": "rcu: grace periods as the library decides",
          "rcu10": "rcu, \u03bb = 10", "rcu100": "rcu, \u03bb = 100", "prudence": "<prudence/hash.h>",
          "hazard": "hazard: hazard pointers of <prudence/hazard.h>",
          "brlock": "brlock: a lock for each CPU", "bkt": "bkt: a spinlock for each bucket",
          "bktcl": "bktcl: the same, in the bucket's line", "bktrw": "bktrw: a reader-writer lock for each bucket",
          "globalrw": "globalrw: one reader-writer lock", "global": "global: one spinlock"}


# ----------------------------------------------------------------------------------------- the model

@dataclass(frozen=True)
class Table:
    """ns of an operation of one thread, without synchronization."""

    buckets: int
    search: float
    update: float


@dataclass(frozen=True)
class Lines:
    """ns that an operation waits for one line of the table, on average; the element's and the bucket's cost the same."""

    searched: float  # by a search: another CPU may have changed it since this CPU had it, as in 7.5
    updated: float  # by a removal or an addition: half of the cost of a removal if another CPU had it last
    lock: float  # of a lock of the bucket's own, which any CPU had last: a pair pays once


def lines_of(machine, table, shares, active):
    pairs = shares / (2 - shares)  # of the visits of a bucket
    changed = (active - 1) * pairs / (1 + (active - 1) * pairs)
    other = machine.other(active)
    read_first = machine.get("read_transfer", "transfer")
    taken = other if read_first is None else other * numpy.maximum(1.0, read_first / machine.near)
    load = Load(threads=active, updates=shares, buckets=table.buckets)
    lock = mechanisms.lock_line(machine, load, active) if active > 1 else 0.0 * machine.near
    return Lines(changed * other, (active - 1) / active * taken / 2, lock * ((1 - shares) + shares / 2))


def load_of(table, shares, threads, lines, fetched=2):
    """The load without its locks; an operation fetches this many lines of the table."""
    search = table.search + fetched * lines.searched
    return Load(threads=threads, updates=shares, lookup=search, update=table.update + fetched * lines.updated - search,
                between=0.0, live=float(table.buckets), size=ELEMENT, buckets=table.buckets)


def own_lock(machine, table, shares, active, lines, round_trip, fetched):
    """A lock for each bucket."""
    load = load_of(table, shares, active, lines, fetched)
    hold = (1 - shares) * load.reading + shares * load.updating
    return Cost(0.0 * shares, [Station(round_trip + lines.lock + hold, table.buckets)], memory=mechanisms.LOCK * table.buckets)


def word_trips(machine):
    """The reader-writer spinlock of the benchmark: a compare-and-swap, and an atomic subtraction."""
    trip = machine.get("cmpxchg_increment", "atomic_increment") + machine["atomic_increment"]
    return trip, trip


def ideal(machine, table, shares, active, lines):
    return Cost((1 - shares) * table.search + shares * table.update + 0.0 * machine["instruction"])


def bkt(machine, table, shares, active, lines):
    return own_lock(machine, table, shares, active, lines, machine["spinlock"], 2)


def bktcl(machine, table, shares, active, lines):
    """The bucket's line comes with its lock, which takes no memory of its own."""
    cost = own_lock(machine, table, shares, active, lines, machine["spinlock"], 1)
    cost.memory = 0.0
    return cost


def bktrw(machine, table, shares, active, lines):
    return own_lock(machine, table, shares, active, lines, word_trips(machine)[0], 2)


def brlock(machine, table, shares, active, lines):
    return mechanisms.brlock(machine, load_of(table, shares, active, lines), active)


ROUNDS = 30  # until the share of lost releases and the time of a section, which depend on each other, agree


def apart(lost, active, buckets):
    """How often a line of the table was with another CPU last, relative to CPUs that take turns at random.

    Of its releases of the lock a holder loses the share `lost`. The lines that the lock protects do not move with it: an operation goes to one
    of B buckets, which was visited last k operations ago with the chance (1 - 1/B)^(k-1) / B. The holder of then is the one of now with
    the chance 1/n + (1 - 1/n) same^k, where `same` = 1 - lost n / (n - 1). This is the sum over k.
    """
    same = 1 - numpy.minimum(1.0, lost * active / (active - 1))
    return (1 - same) / (1 - same * (1 - 1 / buckets))


def kept(machine, table, active, lost, lines):
    """The lines of the table and of one lock for all, which each CPU takes again at once."""
    share = apart(lost, active, table.buckets)
    return Lines(share * lines.searched, share * lines.updated, lost * machine.line(active))


def contended(machine, table, shares, active, lines, gap, closed):
    """Returns the share of `lines` that is kept where waiters check whether a lock is free, and then swap its word.

    The holder is back after `gap`. So a waiter, whose check takes a transfer, sees the lock free after gap / transfer of the releases. Its swap
    takes another transfer, and succeeds if the lock is free then, too: it is `closed` for so long in between, and that depends on the lines that the
    holder has to wait for.
    """
    if active == 1:
        return lines
    seen = numpy.minimum(1.0, gap / machine.other(active)) + 0.0 * shares
    lost = seen
    for _ in range(ROUNDS):
        hold = closed(load_of(table, shares, active, kept(machine, table, active, lost, lines)))
        lost = (lost + seen * gap / (gap + hold)) / 2
    return kept(machine, table, active, lost, lines)


def global_lock(machine, table, shares, active, lines):
    def hold(load):
        return (1 - shares) * load.reading + shares * load.updating

    trip = machine["spinlock"]
    lines = contended(machine, table, shares, active, lines, trip, hold)
    section = hold(load_of(table, shares, active, lines))
    return Cost(0.0 * shares, [Station(trip + lines.lock + section)], memory=mechanisms.LOCK)


def globalrw(machine, table, shares, active, lines):
    """Readers do not keep each other out, but each writes the lock's word."""
    trip = word_trips(machine)[0]
    lines = contended(machine, table, shares, active, lines, trip + table.search, lambda load: shares * load.updating)
    load = load_of(table, shares, active, lines)
    drain = load.reading * (1 - shares) * (active > 1)
    return Cost((1 - shares) * load.reading, [Station(trip + lines.lock)], exclusive=load.updating + drain, memory=mechanisms.LOCK)


def rcu_of_mode(machine, table, shares, active, lines, rate_of_gp, fenced):
    """Updates take the lock in the bucket's line. `rate_of_gp`: operations of a CPU in a grace period (the thesis' lambda in
    chapter 8); None: as the library decides."""
    load = load_of(table, shares, active, lines)
    costs = mechanisms.rcu_costs(machine, active, fenced)
    reading = load.reading + machine["reader_fenced" if fenced else "reader_free"]
    deferrals = shares / 2
    cost = Cost((1 - shares) * reading + deferrals * costs.pair,
                [Station(shares * (machine["spinlock"] + load.updating), table.buckets)])
    rate, _ = mechanisms.solve(cost, shares, active, 0.0)
    extra, cost.memory, cost.details = mechanisms.deferral(machine, load, active, fenced, rate, deferrals, 1 - shares, reading)
    if rate_of_gp:
        readers = active if active > 1 else 0
        count = numpy.maximum(1.0, rate_of_gp * active * deferrals)  # none is driven without an update before it
        each = ours.deferral_of_count(count, active, readers, ELEMENT, costs, fenced)
        cost.details["objects_per_grace_period"] = count
        extra = deferrals * (each - costs.pair)
    cost.alone = cost.alone + extra
    return cost


def rcu_of(rate_of_gp):
    return lambda *case: [rcu_of_mode(*case, rate_of_gp, fenced) for fenced in (False, True)]


COSTS = {"ideal": ideal, "brlock": brlock, "bkt": bkt, "bktcl": bktcl, "bktrw": bktrw,
         "globalrw": globalrw, "global": global_lock, "rcu": rcu_of(None)}
COSTS |= {f"rcu{count}": rcu_of(count) for count in LAMBDAS}


def predict(name, machine, table, shares, cpus):
    """Operations a second, a row for each share (the median's column first), and the cost.

    `name`: of COSTS, or such a function.
    """
    shares = numpy.asarray(shares, dtype=float).reshape(-1, 1)
    lines = lines_of(machine, table, shares, cpus)
    costs = (name if callable(name) else COSTS[name])(machine, table, shares, cpus, lines)
    rate, _, cost = mechanisms.fastest(costs, load_of(table, shares, cpus, lines), cpus)
    return rate * 1e9, cost


def crossing(shares, rates, others):
    """Up to which of the ascending shares `rates` is at least as large as each row of `others`.

    0: not even at the first; 1: at all. Between two shares, where straight lines of the logarithms meet.
    """
    lead = numpy.log(numpy.asarray(rates)) - numpy.log(numpy.max(numpy.asarray(others), axis=0))
    lost = numpy.nonzero(lead < 0)[0]
    if not len(lost):
        return 1.0
    if lost[0] == 0:
        return 0.0
    before, after = lost[0] - 1, lost[0]
    return float(shares[before] + (shares[after] - shares[before]) * lead[before] / (lead[before] - lead[after]))


# ---------------------------------------------------------------------------------------- measuring

def plan(cpus):
    """(mechanism, buckets, threads, share): read-only by threads, and all shares with two and with four threads."""
    names = ("rcu", "prudence", "hazard", *LOCKS)
    found = []
    for buckets in BUCKETS:
        found += [("ideal", buckets, 1, share) for share in SHARES]
        found += [(name, buckets, threads, 0.0) for name in names for threads in range(1, min(4, cpus) + 1)]
        mixed = [threads for threads in (2, 4) if threads <= cpus]
        found += [(name, buckets, threads, share) for threads in mixed for share in SHARES[1:]
                  for name in (*names, *(f"rcu{count}" for count in LAMBDAS))]
    return found


def command(program, case, seconds):
    name, buckets, threads, share = case
    mechanism, pinned = ("rcu", name[3:]) if name[:3] == "rcu" and name[3:] else (name, "0")
    return [program, mechanism, f"--lambda={pinned}", f"--buckets={buckets}", f"--threads={threads}", f"--updates={share}",
            f"--seconds={seconds}"]


def run(program, case, seconds):
    try:
        done = subprocess.run(command(program, case, seconds), text=True, capture_output=True, check=False)
    except OSError as error:
        raise BadCalibration(f"{program}: {error.strerror}") from error
    if done.returncode:
        raise BadCalibration(f"prudence-hash-trial {case[0]}: {done.stderr.strip()}")
    return [float(word) for word in done.stdout.split()]


def undisturbed(program, case, seconds):
    """A run whose threads had their CPUs to themselves; of those that did not, the least disturbed one."""
    best = run(program, case, seconds)
    for _ in range(TRIES - 1):
        if best[3] >= ENOUGH:
            break
        best = max(best, run(program, case, seconds), key=lambda one: one[3])
    return best


def measure(programs, machine, repeats, seconds, tell=lambda done, all_of_it: None):
    """The document: each case `repeats` times, all in turn."""
    cases, found = plan(machine.cpus), {}
    before = os.getloadavg()[0]
    for number in range(repeats):
        for place, case in enumerate(cases):
            found.setdefault(case, []).append(undisturbed(programs / "prudence-hash-trial", case, seconds))
            tell(number * len(cases) + place + 1, repeats * len(cases))
    rows = [{"mechanism": name, "buckets": buckets, "threads": threads, "updates": share,
             "rates": [one[0] for one in samples], "waiting": [one[1] for one in samples],
             "grace_periods": [one[2] for one in samples], "cpu_shares": [one[3] for one in samples]}
            for (name, buckets, threads, share), samples in found.items()]
    return {"program": "prudence-advise hash", "format": FORMAT, "date":
            f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}", "repeats": repeats, "seconds": seconds,
            "load_before": before, "load_after": os.getloadavg()[0], "calibration": machine.document, "rows": rows}


def load(path):
    """A document of measure() that was saved."""
    try:
        document = json.loads(path.read_text())
    except OSError as error:
        raise BadCalibration(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise BadCalibration(f"{path}: it is not JSON ({error})") from error
    if not isinstance(document, dict) or document.get("program") != "prudence-advise hash":
        raise BadCalibration(f"{path}: it was not saved by prudence-advise hash")
    if document.get("format") != FORMAT:
        raise BadCalibration(f"{path}: its format is {document.get('format')}, and this program reads {FORMAT}")
    return document


class Measured:
    """Measured rates by case, one for each repeat. Repeats belong together: they took turns."""

    def __init__(self, document):
        self.document = document
        self.rows = {(row["mechanism"], row["buckets"], row["threads"], row["updates"]): row for row in document["rows"]}
        self.repeats = document["repeats"]
        self.threads_most = max(row["threads"] for row in document["rows"])

    def disturbed(self):
        """Which share of the runs had to do without its CPUs for some time."""
        shares = numpy.concatenate([row["cpu_shares"] for row in self.document["rows"]])
        return float(numpy.mean(shares < ENOUGH))

    def has(self, name, buckets, threads, share):
        if name == "ideal":
            threads = 1
        if share == 0 and name.startswith("rcu"):
            name = "rcu"  # without updates no grace period is driven
        return (name, buckets, threads, share) in self.rows

    def rates(self, name, buckets, threads, share):
        """Operations a second of all threads, one for each repeat."""
        if name == "ideal":
            return threads * numpy.array(self.rows[name, buckets, 1, share]["rates"])
        if share == 0 and name.startswith("rcu"):
            name = "rcu"
        return numpy.array(self.rows[name, buckets, threads, share]["rates"])

    def curve(self, name, buckets, threads, shares=SHARES):
        """Shares that were measured, and the rates: a row for each share, a column for each repeat."""
        there = [share for share in shares if self.has(name, buckets, threads, share)]
        return numpy.array(there), numpy.array([self.rates(name, buckets, threads, share) for share in there])

    def breakevens(self, name, buckets, threads):
        """Up to which share `name` is ahead of all locks; one for each repeat."""
        shares, rates = self.curve(name, buckets, threads)
        others = [self.curve(lock, buckets, threads)[1] for lock in LOCKS]
        return numpy.array([crossing(shares, rates[:, one], [other[:, one] for other in others])
                            for one in range(self.repeats)])

    def table(self, buckets):
        search, update = (float(1e9 / numpy.median(self.rates("ideal", buckets, 1, share))) for share in (0.0, 1.0))
        return Table(buckets, search, update)


def predicted_breakeven(name, machine, table, cpus, shares=None):
    """The model's; the median."""
    shares = numpy.linspace(0, 1, 201) if shares is None else shares
    ours, *locks = (numpy.broadcast_to(predict(one, machine, table, shares, cpus)[0][:, 0], shares.shape) for one in (name, *LOCKS))
    return crossing(shares, ours, locks)
