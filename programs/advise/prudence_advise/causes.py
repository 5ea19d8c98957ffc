# SPDX-License-Identifier: MIT
"""Why a finding holds or does not: a cause is printed with the figures that bear it, and only if they do.

A cause compares the costs of the calibration and at measured rates, never at the finding itself. A possible cause that was not
measured has no entry here.
"""

from dataclasses import dataclass

import numpy

from . import hashes

NOT_BORNE = "Why was not measured."
SMALL, LARGE = hashes.BUCKETS
CLEARLY = 1.2  # times: more than repeats differ by


@dataclass(frozen=True)
class Cause:
    words: str
    bears: object  # a function of Measured, the machine and the threads: a truth, and the figures


def sentence(cause, measured, machine, threads):
    """Returns the reason as it is printed."""
    if cause is None:
        return NOT_BORNE
    borne, figures = cause.bears(measured, machine, threads)
    return f"{cause.words} ({figures})." if borne else NOT_BORNE


def cost(machine, *names):
    """ns; of several the least."""
    return min(float(machine[name][0]) for name in names)


def took(measured, name, buckets, threads, share):
    """ns from one operation of all threads to the next."""
    return float(1e9 / numpy.median(measured.rates(name, buckets, threads, share)))


def longer(first, second, of_first, of_second, times=1.0):
    """The first takes longer than `times` the second; both are functions of the same three."""
    def bears(*case):
        one, other = float(of_first(*case)), float(of_second(*case))
        return one > times * other, f"{first} {one:.3g} ns, {second} {other:.3g} ns"
    return bears


def operation(name, buckets, threads=0, share=0.0):
    return lambda measured, _, all_threads: took(measured, name, buckets, threads or all_threads, share)


def search(buckets):
    return lambda measured, *_: measured.table(buckets).search


def update(buckets):
    return lambda measured, *_: measured.table(buckets).update


def transfer(_, machine, __):
    return machine.near[0]


def costs(*names):
    return lambda _, machine, __: cost(machine, *names)


def pair(*case):
    return costs("pair_free", "pair_fenced")(*case)


def section(*case):
    return costs("reader_free", "reader_fenced")(*case)


MISS = Cause("A transfer of the lock's line takes longer than a search", longer("transfer", "search", transfer, search(SMALL)))
MANY = Cause("A transfer takes several searches, so each further CPU costs more than it adds; in 2004 it was 170 ns compared with 137",
             longer("transfer", "search", transfer, search(SMALL), 3))
COSTS_ALONE = Cause("A lock and its release take longer than a search", longer("lock", "search", costs("spinlock"), search(SMALL)))
RW_ALONE = Cause("A reader-writer lock costs more without any contention, too: its release is atomic as well",
                 longer("bktrw", "bkt", operation("bktrw", SMALL, 1), operation("bkt", SMALL, 1)))
CL_ALONE = Cause("Without contention it is faster: one line less is touched",
                 longer("bkt", "bktcl", operation("bkt", SMALL, 1), operation("bktcl", SMALL, 1)))
ALL_LOCKS = Cause("An update takes every CPU's lock", longer("its update", "its search", operation("brlock", SMALL, share=1.0),
                                                            operation("brlock", SMALL), 2))
LINE_OF_LOCK = Cause("The line that is not moved costs more than the lock itself", longer("transfer", "lock", transfer, costs("spinlock")))
CHEAP = Cause("A deferral with its allocation costs less than the transfer of one line", longer("transfer", "pair", transfer, pair))
SECTION_SHORT = Cause("A section costs little compared with a search", longer("search", "section", search(SMALL), section, 10))
SECTION_LONG = Cause("A section takes a good part of a search of a table that fits the first-level cache",
                     longer("ten sections", "search", lambda *case: 10 * section(*case), search(SMALL)))
LINES_OF_DATA = Cause("The lines of bucket and element, which all move, take longer than a deferral with its allocation",
                      longer("two lines", "pair", lambda *case: 2 * transfer(*case), pair))
MISSES = Cause("A search waits for its own misses longer than for the lock's line", longer("search", "transfer", search(LARGE), transfer))
LOCK_COUNTS = Cause("A lock of its own takes a good part of a search", longer("three locks", "search", lambda *case: 3 * costs("spinlock")(*case),
                                                                             search(LARGE)))
LOCK_IS_LITTLE = Cause("A lock of its own costs little compared with a search", longer("search", "three locks", search(LARGE),
                                                                                lambda *case: 3 * costs("spinlock")(*case)))


def defers(buckets):
    return Cause("An update also pays for an allocation and a deferral", longer("pair", "a quarter of an update", pair,
                                                                           lambda *case: update(buckets)(*case) / 4))


def keeps_its_line(name):
    return Cause("The line of the lock does not move for each operation, which would take longer",
                 longer("transfer", "an operation", transfer, operation(name, SMALL)))


def driven(buckets, share):
    """Compares the cost of driven grace periods with that of the library's own."""
    return Cause("Driven grace periods cost it the lead or a part of it: the library's own choice is faster",
                 longer("driven", "not driven", operation("rcu10", buckets, share=share), operation("rcu", buckets, share=share), CLEARLY))


def shared_by_more(buckets, share):
    return Cause("With more updates to a grace period an operation costs less",
                 longer("\u03bb = 10", "\u03bb = 100", operation("rcu10", buckets, share=share), operation("rcu100", buckets, share=share)))


def bears_overlap(measured, machine, _):
    alone, during = cost(machine, "spinlock"), took(measured, "brlock", SMALL, 1, 0.0) - measured.table(SMALL).search
    return during < alone, f"alone {alone:.3g} ns, during a search {during:.3g} ns"


def bears_acute(name):
    def bears(measured, _, threads):
        found = measured.breakevens(name, SMALL, threads)
        return float(numpy.ptp(found)) > 0.1, f"from f = {numpy.min(found):.2f} to {numpy.max(found):.2f}"
    return bears


def bears_contrast(measured, _, threads):
    mine, one = (took(measured, name, SMALL, 1, 0.0) / took(measured, name, SMALL, threads, 0.0) for name in ("brlock", "global"))
    return mine > CLEARLY * one, f"all threads through one: brlock {mine:.2f}, one lock {one:.2f}"


def bears_disturbed(measured, *_):
    share = measured.disturbed()
    return share > 0.05, f"{100 * share:.0f} % of the runs"


def bears_larger_than(bytes_of_it, what):
    def bears(_, machine, __):
        cache = machine.document.get("caches", {}).get("l2") or 0
        return 0 < cache < bytes_of_it, f"{what} {bytes_of_it >> 10} KiB, cache {cache >> 10} KiB"
    return bears


OVERLAP = Cause("A lock during a search costs less than a lock alone: they overlap", bears_overlap)
CONTRAST = Cause("Each thread has a lock of its own, and one lock for all does not scale", bears_contrast)
DISTURBED = Cause("Other programs had the CPUs for a while", bears_disturbed)
TABLE_IS_LARGE = Cause("The table does not fit into the second-level cache", bears_larger_than(LARGE * 2 * hashes.ELEMENT, "table"))
LOCKS_ARE_LARGE = Cause("The locks alone do not fit into the second-level cache", bears_larger_than(LARGE * hashes.ELEMENT, "locks"))


def acute(name):
    return Cause("The curves cross at an acute angle (L5940), so the repeats differ", bears_acute(name))
