# SPDX-License-Identifier: MIT
"""What the thesis found with its hash table in 2004 (chapters 2 and 8, appendix D), and whether a measurement agrees.

A finding is looked at once for each repeat, whose runs took turns. It holds if every repeat says so, it does not if none does, and
it is undecided otherwise, or if it is about more CPUs than there are.
"""

from dataclasses import dataclass

import numpy

from . import hashes
from .hashes import LOCKS

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
EQUAL = 0.02  # a lead of less is none


@dataclass(frozen=True)
class Finding:
    figure: str
    line: str  # of the thesis' text
    claim: str
    look: object  # a function of Measured, the machine and the threads: a truth for each repeat, and what was seen
    holds: str  # why it does, today
    fails: str
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


MISS = ("A transfer of the lock's line takes longer than a search, as in 2004.")
ACUTE = "The curves cross at an acute angle, so a small change of a cost moves the breakeven far (L5940)."
DEFERS = ("An update pays for an allocation and a deferral, and what it takes is memory that was used long ago, while a thread that locks "
          "uses its own element again at once.")
CHEAP = ("A deferral costs some ns, and the library lets thousands of operations share a grace period by itself, where 2004's "
         "paid one for each 10 or 100.")
DRIVEN = ("A grace period every few operations is driven against what the library would do, and each sends barriers to, or reads "
          "the line of, every CPU.")

FINDINGS = (
    # ------------------------------------------------------------------------------------ chapter 2
    Finding("2.3 to 2.8", "L782", "One spinlock scales negatively: more CPUs search less.",
            below(("global", 32, 0, 0.0), ("global", 32, 1, 0.0), 1 - EQUAL, "all threads through one"), MISS,
            "A CPU that has the lock's line takes the lock many times before the line is taken from it: back-to-back loops hide the transfer."),
    Finding("2.3 to 2.8", "L809", "One reader-writer lock scales negatively, although readers do not exclude each other.",
            below(("globalrw", 32, 0, 0.0), ("globalrw", 32, 1, 0.0), 1 - EQUAL, "all threads through one"), MISS,
            "A CPU that has the lock's line takes the lock many times before the line is taken from it."),
    Finding("2.3 to 2.8", "L836", "Locks for buckets scale.",
            scaling("bkt", 32, 1 + EQUAL, "all threads through one"),
            "Transfers of different lines go on at the same time.",
            "A search takes a few ns here, a transfer of the lock's line many times that, so each further CPU costs more than it adds. In "
            "2004 the ratio was 137 to 170 ns."),
    Finding("2.3 to 2.8", "L836", "With four CPUs they are more than six times as fast as one spinlock.",
            ratio(("bkt", 32, 0, 0.0), ("global", 32, 0, 0.0), 6, "bkt through global"), MISS, MISS, threads=4),
    Finding("2.3 to 2.8", "L846", "Reader-writer locks for buckets are slower than spinlocks for buckets.",
            below(("bktrw", 32, 0, 0.0), ("bkt", 32, 0, 0.0), 1 - EQUAL, "bktrw through bkt"),
            "A reader-writer lock needs an atomic operation to unlock as well; a spinlock needs a store.",
            "A spinlock's waiter takes the line away from the holder; a reader goes on."),
    Finding("2.3 to 2.8", "L868", "brlock scales linearly.", linear("brlock", 32),
            "Each thread has its own lock's line.", "Threads share more than their locks' lines, as the CPU time that other programs take."),
    Finding("2.3 to 2.8", "L868", "With four CPUs it is almost twice as fast as locks for buckets.",
            ratio(("brlock", 32, 0, 0.0), ("bkt", 32, 0, 0.0), 1.5, "brlock through bkt"), MISS, MISS, threads=4),
    Finding("2.3 to 2.8", "L960", "On one CPU a lock that no other CPU wants more than doubles the cost of a search.",
            below(("brlock", 32, 1, 0.0), ("ideal", 32, 1, 0.0), 0.5, "brlock through ideal, one thread"),
            "An atomic operation takes longer than a search of this table.",
            "Atomic operations on a line that the CPU has cost a tenth of what they did, and overlap with what comes before."),
    Finding("2.12 and 2.13", "L978", "Where all operations update, brlock is the slowest of all.",
            slowest("brlock", 32, 1.0), "An update takes every CPU's lock.", "Its locks stay with one CPU for long."),
    Finding("2.12 and 2.13", "L1012", "Where all operations update, the lock in the bucket's line beats the lock in its own.",
            ratio(("bktcl", 32, 0, 1.0), ("bkt", 32, 0, 1.0), 1 + EQUAL, "bktcl through bkt"),
            "One line less is moved.", "Waiters take the line away from the holder that works in it."),
    Finding("2.12 and 2.13", "L1014", "Where all search, the lock in the bucket's line is a little slower than the lock in its own.",
            below(("bktcl", 32, 0, 0.0), ("bkt", 32, 0, 0.0), 1.0, "bktcl through bkt"),
            "A CPU that wants the lock takes the bucket away from the search.",
            "With as few CPUs waiters are rare, and one line less is touched: its address is not computed either."),
    # ------------------------------------------------------------------------------------ chapter 8
    Finding("8.1", "L5938", "Two CPUs, \u03bb = 10: RCU is the best up to about f = 0.3.", best_up_to("rcu10", 32, 0.3), CHEAP,
            DRIVEN, threads=2),
    Finding("8.2", "L5943", "Four CPUs, \u03bb = 10: RCU is the best up to a bit less than f = 0.4.", best_up_to("rcu10", 32, 0.4), CHEAP,
            DRIVEN, threads=4),
    Finding("8.3", "L5915", "Two CPUs, \u03bb = 100: searches alone reach the ideal.",
            ratio(("rcu100", 32, 0, 0.0), ("ideal", 32, 0, 0.0), 0.9, "rcu through ideal"),
            "A section costs a search next to nothing.",
            "A section is two stores, and a search of a table that fits the first-level cache takes only some ns; in 2004 it took 137."),
    Finding("8.3", "L5915", "RCU is the best up to about f = 0.4.", best_up_to("rcu100", 32, 0.4), CHEAP, DEFERS, threads=2),
    Finding("8.3", "L5915", "It beats brlock by more than a factor of two throughout.", always_above("rcu100", "brlock", 2, 32),
            "A search writes nothing shared, and an update locks one bucket.",
            "A lock that only its own CPU takes costs a tenth of what it did, and an update defers.", threads=2),
    Finding("8.3", "L5915", "Where all operations update, it has half the rate of the best.",
            ratio(("rcu100", 32, 0, 1.0), (LOCKS, 32, 0, 1.0), 0.5, "rcu through the best lock"),
            "All move the lines of the bucket and of the element, which takes longer than a lock or a deferral.", DEFERS, threads=2),
    Finding("8.4", "L5945", "Four CPUs, \u03bb = 100: RCU is the best up to a bit more than f = 0.4.", best_up_to("rcu100", 32, 0.4), CHEAP,
            DEFERS, threads=4),
    Finding("8.4", "L5917", "The breakeven comes sooner with \u03bb = 10 than with \u03bb = 100.", sooner("rcu10", "rcu100", 32),
            "More updates share the cost of a grace period.", ACUTE, threads=2),
    Finding("8.5", "L5931", "Two CPUs, \u03bb = 10: the model's breakeven is 0.1 from the measured one (0.2 and 0.3).",
            predicted("rcu10", 32, 0.1), "The model has the data's own lines and the cost of a search, which 2004's left out (L5942).",
            ACUTE, threads=2),
    Finding("8.5", "L5938", "Two CPUs, \u03bb = 100: it is 0.2 from it (0.3 and 0.5).", predicted("rcu100", 32, 0.2),
            "The model has the data's own lines and the cost of a search, which 2004's left out (L5942).", ACUTE, threads=2),
    Finding("8.6", "L5945", "Four CPUs: the model agrees reasonably well (0.3 and less than 0.4, 0.4 and more than 0.4).",
            predicted("rcu100", 32, 0.1), "The model has the data's own lines and the cost of a search.", ACUTE, threads=4),
    # ----------------------------------------------------------------------------------- appendix D
    Finding("D.1", "L7503", "Large table, searches alone: RCU beats the next best by more than 30 %.",
            ratio(("rcu", 16384, 0, 0.0), (LOCKS, 16384, 0, 0.0), 1.3, "rcu through the best lock"),
            "It writes no line, and brlock's atomic operation waits for what is being loaded.",
            "The misses of the data itself dominate, and a lock that only its own CPU takes costs little beside them."),
    Finding("D.1", "L7503", "All is about three times slower than with the small table.",
            ratio(("rcu", 32, 0, 0.0), ("rcu", 16384, 0, 0.0), 2, "small table through large, rcu", most=4.5),
            "The table does not fit into the cache that is next to the CPU.",
            "The ratio is that of this machine's caches: the small table is in the first level, and the large one beyond the second."),
    Finding("D.1", "L7503", "Locked searches scale better than with the small table.", scales_better("bkt"),
            "The data's own misses, which all CPUs wait for at the same time, are more of the cost.",
            "The locks themselves no longer fit into the cache."),
    Finding("D.2", "L7505", "\u03bb = 10: RCU is the best below about f = 0.15.", best_up_to("rcu10", 16384, 0.15), CHEAP, DRIVEN),
    Finding("D.3", "L7507", "\u03bb = 100: RCU is the best up to more than f = 0.2.", best_up_to("rcu100", 16384, 0.2), CHEAP, DEFERS),
)


def of_library(measured):
    """Sentences on rcu with grace periods as the library decides, which the thesis does not have."""
    found, threads = [], measured.threads_most
    for buckets in hashes.BUCKETS:
        if measured.has("rcu", buckets, threads, 1.0):
            row = measured.rows["rcu", buckets, threads, 0.5]
            count = numpy.array(row["rates"]) / numpy.maximum(1.0, row["grace_periods"])
            found.append(f"{buckets} buckets, grace periods as the library decides: RCU is ahead of all locks up to f = "
                         f"{spread(measured.breakevens('rcu', buckets, threads))}; at f = 0.5 {spread(count, 0)} operations in a "
                         "grace period.")
    return found


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
    reason = {HOLDS: finding.holds, FAILS: finding.fails,
              UNDECIDED: f"{int(sum(truths))} of {len(truths)} repeats agree with it."}[verdict]
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
