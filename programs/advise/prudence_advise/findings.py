# SPDX-License-Identifier: MIT
"""The findings of the thesis with its hash table in 2004 (chapters 2 and 8, appendix D), and whether a measurement agrees.

A finding is checked once for each repeat, whose runs took turns. It holds if every repeat says so, it does not if none does, and
it is undecided otherwise, or if it is about more CPUs than there are. Its cause is named only if figures bear it (causes.py).
"""

from dataclasses import dataclass

import numpy

from . import causes, hashes
from .hashes import LOCKS

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
EQUAL = 0.02  # a lead of less is none


@dataclass(frozen=True)
class Finding:
    figure: str
    line: str  # of the thesis' text
    claim: str
    look: object  # a function of Measured, the machine and the threads: a truth for each repeat, and the values
    holds: object  # a Cause of today's result; None: none was measured
    fails: object
    threads: int = 0  # that it needs; 0: it is about as many as there are, four at most


def spread(values, digits=2):
    low, middle, high = (f"{float(value):.{digits}f}" for value in (numpy.min(values), numpy.median(values), numpy.max(values)))
    return f"{middle} ({low} to {high})"


def ratio(first, second, least, words, most=None):
    """Rates of one case through those of another. A case: mechanism, or the best of some; buckets; threads (0: all); share."""
    def look(measured, _, threads):
        def rates(case):
            name, buckets, of, share = case
            of = of or threads
            names = [name] if isinstance(name, str) else name
            return numpy.max([measured.rates(one, buckets, of, share) for one in names], axis=0)
        values = rates(first) / rates(second)
        return (values > least) if most is None else (values > least) & (values < most), f"{words}: {spread(values)}"
    return look


def below(first, second, most, words):
    return ratio(first, second, 0.0, words, most)


def slowest(name, buckets, share):
    def look(measured, _, threads):
        others = numpy.min([measured.rates(lock, buckets, threads, share) for lock in LOCKS if lock != name], axis=0)
        values = measured.rates(name, buckets, threads, share) / others
        return values < 1, f"{name} through the slowest of the others: {spread(values)}"
    return look


def scaling(name, buckets, least, words, most=None):
    return ratio((name, buckets, 0, 0.0), (name, buckets, 1, 0.0), least, words, most)


def linear(name, buckets):
    def look(measured, _, threads):
        values = measured.rates(name, buckets, threads, 0.0) / measured.rates(name, buckets, 1, 0.0) / threads
        return values > 0.9, f"a thread's rate through that of one thread alone: {spread(values)}"
    return look


def scales_better(name):
    def look(measured, _, threads):
        small, large = (measured.rates(name, buckets, threads, 0.0) / measured.rates(name, buckets, 1, 0.0)
                        for buckets in hashes.BUCKETS)
        return large > small, f"all threads through one: {spread(large)}, small table {spread(small)}"
    return look


def best_up_to(name, buckets, share):
    """`name` is ahead of all locks up to that share of updates, within 0.05."""
    def look(measured, _, threads):
        found = measured.breakevens(name, buckets, threads)
        return found >= share - 0.05, f"ahead of all locks up to f = {spread(found)}"
    return look


def sooner(first, second, buckets):
    def look(measured, _, threads):
        one, other = (measured.breakevens(name, buckets, threads) for name in (first, second))
        return one < other, f"f = {spread(one)} and {spread(other)}"
    return look


def always_above(name, lock, factor, buckets):
    def look(measured, _, threads):
        _, ours = measured.curve(name, buckets, threads)
        _, theirs = measured.curve(lock, buckets, threads)
        values = (ours / theirs).min(axis=0)
        return values > factor, f"the least of all shares: {spread(values)}"
    return look


def predicted(name, buckets, within):
    """The model's breakeven, with this machine's costs, is near the measured one."""
    def look(measured, machine, threads):
        found = measured.breakevens(name, buckets, threads)
        says = hashes.predicted_breakeven(name, machine, measured.table(buckets), threads)
        return abs(found - says) <= within, f"the model says f = {says:.2f}, measured {spread(found)}"
    return look


FINDINGS = (
    # ------------------------------------------------------------------------------------ chapter 2
    Finding("2.3 to 2.8", "L782", "One spinlock scales negatively: more CPUs search less.",
            below(("global", 32, 0, 0.0), ("global", 32, 1, 0.0), 1 - EQUAL, "all threads through one"), causes.MISS,
            causes.keeps_its_line("global")),
    Finding("2.3 to 2.8", "L809", "One reader-writer lock scales negatively, although readers do not exclude each other.",
            below(("globalrw", 32, 0, 0.0), ("globalrw", 32, 1, 0.0), 1 - EQUAL, "all threads through one"), causes.MISS,
            causes.keeps_its_line("globalrw")),
    Finding("2.3 to 2.8", "L836", "Locks for buckets scale.", scaling("bkt", 32, 1 + EQUAL, "all threads through one"), None, causes.MANY),
    Finding("2.3 to 2.8", "L836", "With four CPUs they are more than six times as fast as one spinlock.",
            ratio(("bkt", 32, 0, 0.0), ("global", 32, 0, 0.0), 6, "bkt through global"), causes.MISS, causes.keeps_its_line("global"),
            threads=4),
    Finding("2.3 to 2.8", "L846", "Reader-writer locks for buckets are slower than spinlocks for buckets.",
            below(("bktrw", 32, 0, 0.0), ("bkt", 32, 0, 0.0), 1 - EQUAL, "bktrw through bkt"), causes.RW_ALONE, None),
    Finding("2.3 to 2.8", "L868", "brlock scales linearly.", linear("brlock", 32), causes.CONTRAST, causes.DISTURBED),
    Finding("2.3 to 2.8", "L868", "With four CPUs it is almost twice as fast as locks for buckets.",
            ratio(("brlock", 32, 0, 0.0), ("bkt", 32, 0, 0.0), 1.5, "brlock through bkt"), causes.MISS, None, threads=4),
    Finding("2.3 to 2.8", "L960", "On one CPU a lock that no other CPU wants more than doubles the cost of a search.",
            below(("brlock", 32, 1, 0.0), ("ideal", 32, 1, 0.0), 0.5, "brlock through ideal, one thread"), causes.COSTS_ALONE,
            causes.OVERLAP),
    Finding("2.12 and 2.13", "L978", "Where all operations update, brlock is the slowest of all.",
            slowest("brlock", 32, 1.0), causes.ALL_LOCKS, None),
    Finding("2.12 and 2.13", "L1012", "Where all operations update, the lock in the bucket's line beats the lock in its own.",
            ratio(("bktcl", 32, 0, 1.0), ("bkt", 32, 0, 1.0), 1 + EQUAL, "bktcl through bkt"), causes.LINE_OF_LOCK, None),
    Finding("2.12 and 2.13", "L1014", "Where all search, the lock in the bucket's line is a little slower than the lock in its own.",
            below(("bktcl", 32, 0, 0.0), ("bkt", 32, 0, 0.0), 1.0, "bktcl through bkt"), None, causes.CL_ALONE),
    # ------------------------------------------------------------------------------------ chapter 8
    Finding("8.1", "L5938", "Two CPUs, \u03bb = 10: RCU is the best up to about f = 0.3.", best_up_to("rcu10", 32, 0.3), causes.CHEAP,
            causes.driven(32, 0.3), threads=2),
    Finding("8.2", "L5943", "Four CPUs, \u03bb = 10: RCU is the best up to a bit less than f = 0.4.", best_up_to("rcu10", 32, 0.4),
            causes.CHEAP, causes.driven(32, 0.4), threads=4),
    Finding("8.3", "L5915", "Two CPUs, \u03bb = 100: searches alone reach the ideal.",
            ratio(("rcu100", 32, 0, 0.0), ("ideal", 32, 0, 0.0), 0.9, "rcu through ideal"), causes.SECTION_SHORT, causes.SECTION_LONG),
    Finding("8.3", "L5915", "RCU is the best up to about f = 0.4.", best_up_to("rcu100", 32, 0.4), causes.CHEAP, causes.defers(32),
            threads=2),
    Finding("8.3", "L5915", "It beats brlock by more than a factor of two throughout.", always_above("rcu100", "brlock", 2, 32),
            causes.COSTS_ALONE, causes.OVERLAP, threads=2),
    Finding("8.3", "L5915", "Where all operations update, it has half the rate of the best.",
            ratio(("rcu100", 32, 0, 1.0), (LOCKS, 32, 0, 1.0), 0.5, "rcu through the best lock"), causes.LINES_OF_DATA,
            causes.defers(32), threads=2),
    Finding("8.4", "L5945", "Four CPUs, \u03bb = 100: RCU is the best up to a bit more than f = 0.4.", best_up_to("rcu100", 32, 0.4),
            causes.CHEAP, causes.defers(32), threads=4),
    Finding("8.4", "L5917", "The breakeven comes sooner with \u03bb = 10 than with \u03bb = 100.", sooner("rcu10", "rcu100", 32),
            causes.shared_by_more(32, 0.5), causes.acute("rcu10"), threads=2),
    Finding("8.5", "L5931", "Two CPUs, \u03bb = 10: the model's breakeven is 0.1 from the measured one (0.2 and 0.3).",
            predicted("rcu10", 32, 0.1), None, causes.acute("rcu10"), threads=2),
    Finding("8.5", "L5938", "Two CPUs, \u03bb = 100: it is 0.2 from it (0.3 and 0.5).", predicted("rcu100", 32, 0.2), None,
            causes.acute("rcu100"), threads=2),
    Finding("8.6", "L5945", "Four CPUs: the model agrees reasonably well (0.3 and less than 0.4, 0.4 and more than 0.4).",
            predicted("rcu100", 32, 0.1), None, causes.acute("rcu100"), threads=4),
    # ----------------------------------------------------------------------------------- appendix D
    Finding("D.1", "L7503", "Large table, searches alone: RCU beats the next best by more than 30 %.",
            ratio(("rcu", 16384, 0, 0.0), (LOCKS, 16384, 0, 0.0), 1.3, "rcu through the best lock"), causes.LOCK_COUNTS,
            causes.LOCK_IS_LITTLE),
    Finding("D.1", "L7503", "All is about three times slower than with the small table.",
            ratio(("rcu", 32, 0, 0.0), ("rcu", 16384, 0, 0.0), 2, "small table through large, rcu", most=4.5), causes.TABLE_IS_LARGE, None),
    Finding("D.1", "L7503", "Locked searches scale better than with the small table.", scales_better("bkt"), causes.MISSES,
            causes.LOCKS_ARE_LARGE),
    Finding("D.2", "L7505", "\u03bb = 10: RCU is the best below about f = 0.15.", best_up_to("rcu10", 16384, 0.15), causes.CHEAP,
            causes.driven(16384, 0.2)),
    Finding("D.3", "L7507", "\u03bb = 100: RCU is the best up to more than f = 0.2.", best_up_to("rcu100", 16384, 0.2), causes.CHEAP,
            causes.defers(16384)),
)


def of_library(measured):
    """Returns sentences about mechanisms that the thesis does not have: rcu with grace periods as the library decides, and hazard pointers."""
    found, threads = [], measured.threads_most
    for buckets in hashes.BUCKETS:
        if measured.has("rcu", buckets, threads, 1.0):
            row = measured.rows["rcu", buckets, threads, 0.5]
            count = numpy.array(row["rates"]) / numpy.maximum(1.0, row["grace_periods"])
            found.append(f"{buckets} buckets, grace periods as the library decides: RCU is ahead of all locks up to f = "
                         f"{spread(measured.breakevens('rcu', buckets, threads))}; at f = 0.5 {spread(count, 0)} operations in a "
                         "grace period.")
        if measured.has("hazard", buckets, threads, 0.5):
            found.append(f"{buckets} buckets: hazard pointers make {of_rcu(measured, buckets, threads, 0.0)} of rcu's rate at f = 0 and "
                         f"{of_rcu(measured, buckets, threads, 0.5)} at f = 0.5, where {waiting(measured, 'hazard', buckets, threads)} "
                         f"elements wait (rcu: {waiting(measured, 'rcu', buckets, threads)}).")
    return found


def of_rcu(measured, buckets, threads, share):
    return spread(measured.rates("hazard", buckets, threads, share) / measured.rates("rcu", buckets, threads, share))


def waiting(measured, name, buckets, threads):
    return f"{numpy.median(measured.rows[name, buckets, threads, 0.5]['waiting']):.0f}"


def judge(truths):
    if all(truths):
        return HOLDS
    return UNDECIDED if any(truths) else FAILS


def outcome(finding, measured, machine):
    """{figure, line, claim, verdict, seen, reason}"""
    found = {"figure": finding.figure, "line": finding.line, "claim": finding.claim}
    if finding.threads > measured.threads_most:
        return found | {"verdict": UNDECIDED, "seen": "", "reason":
                        f"It is about {finding.threads} CPUs; {measured.threads_most} could be measured."}
    threads = finding.threads or measured.threads_most
    truths, seen = finding.look(measured, machine, threads)
    verdict = judge(truths)
    if verdict == UNDECIDED:
        reason = f"{int(sum(truths))} of {len(truths)} repeats agree with it."
    else:
        reason = causes.sentence(finding.holds if verdict == HOLDS else finding.fails, measured, machine, threads)
    return found | {"verdict": verdict, "seen": f"{seen}; {threads} threads", "reason": reason}


def outcomes(measured, machine):
    return [outcome(finding, measured, machine) for finding in FINDINGS]


def text(found, measured):
    document = measured.document
    host = document["calibration"]["host"]
    lines = [f"{host['cpu']}, {host['cpus']} CPUs; {document['repeats']} repeats of {document['seconds']:g} s, load "
             f"{document['load_before']:.1f} before, {100 * measured.disturbed():.0f} % of the runs disturbed by other programs. "
             "Each spread is over the repeats.", ""]
    for one in found:
        lines += [f"Figure {one['figure']} ({one['line']}): {one['claim']}", f"    {one['verdict']}: {one['seen'] or 'not measured'}",
                  f"    {one['reason']}"]
    count = {verdict: sum(one["verdict"] == verdict for one in found) for verdict in (HOLDS, FAILS, UNDECIDED)}
    return "\n".join([*lines, "", *of_library(measured), "Findings of 2004: " + ", ".join(f"{number} {verdict}" for verdict, number in count.items())])
