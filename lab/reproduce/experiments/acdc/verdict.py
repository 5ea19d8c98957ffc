# SPDX-License-Identifier: MIT
"""The findings of the thesis in chapter 6, and whether they hold in a document of ours.

A finding is (figure, claim of the thesis, a function of the document). The function returns whether it
holds and the measurement; None for both when that was not measured.

A finding is undecided when the runs are too few or differ too much to say. Fewer than measure.verdict.ROUNDS runs of a point are
too few. Whether they differ too much is found by drawing runs again: of each point as many of its runs as it has, with repetition
(bootstrap). If one draw in twenty or more says otherwise than the runs themselves, it is undecided, and the page says so with the
share. In factorial designs it is undecided where more of the variation is between equal runs than all factors explain.
"""

import random
from statistics import fmean

from measure import statistics
from measure.verdict import ROUNDS

LAZY, EAGER, MALLOC = "short-term-lazy", "short-term-eager", "persistent+glibc"
SPEED = "bytes_per_cpu_second"  # by the CPU time of all threads: as throughput, but other programs take no part of it
FLAT = 1.25   # "constant": largest by smallest
EQUAL = 1.25  # "nearly the same"


DRAWS = 100
AGREEMENT = 0.95  # of the draws, for a verdict
CHANCE = 0.5      # share of the variation between equal runs that leaves a factorial design undecided


class NotMeasured(Exception):
    pass


class Undecided(Exception):
    """A factorial design that decides nothing, with the measured values and the reason."""


def series(document, experiment, subject, response):
    """The points of a curve, [x], [mean]."""
    rows = [row for row in document["rows"] if (row["experiment"], row["subject"]) == (experiment, subject) and response in row["responses"]]
    if not rows:
        raise NotMeasured
    return ([row["point"] for row in rows], [row["responses"][response]["mean"] for row in rows])


def variation(document, experiment, subject, response):
    """Effect -> share of the variation."""
    found = document["variation"].get(experiment, {}).get(subject, {}).get(response)
    if not found:
        raise NotMeasured
    return found


def paired(document, experiment, one, other, response):
    """Ratios one/other at the points that both have, over the seeds that both ran: two seeds are two
    workloads, and differ more than most subjects do."""
    sides = [{row["point"]: row for row in document["rows"]
              if (row["experiment"], row["subject"]) == (experiment, subject)
              and response in row["responses"]} for subject in (one, other)]
    common = [point for point in sides[0] if point in sides[1]]
    if not common:
        raise NotMeasured
    return common, [ratio_of(sides[0][point], sides[1][point], response) for point in common]


def ratio_of(row, other, response):
    seeds = min(len(row["repeats"]), len(other["repeats"]))
    return (sum(repeat[response] for repeat in row["repeats"][:seeds]) / sum(repeat[response] for repeat in other["repeats"][:seeds]))


def span(values):
    return max(values) / min(values)


def numbers(values, digits=0):
    return " to ".join(f"{value:,.{digits}f}" for value in (values[0], values[-1]))


def decided(shares, holds, said):
    if shares["error"] > CHANCE:
        raise Undecided(said, f"{shares['error']:.0%} of the variation is between equal runs")
    return holds


def of_arguments(check):
    """check(document, arguments) as a function of the arguments, which returns one of the document."""
    return lambda *arguments, **more: lambda document: check(document, *arguments, **more)


@of_arguments
def strongest(document, response, effect):
    shares = variation(document, "factorial", LAZY, response)
    order = sorted((name for name in shares if name != "error"), key=shares.get, reverse=True)
    said = ", ".join(f"{name} {shares[name]:.0%}" for name in order[:3])
    return (decided(shares, order[0] == effect and shares[effect] >= 0.1, said), f"{said}; error {shares['error']:.0%}")


@of_arguments
def matters(document, response, effects, yes=True):
    """Each of the effects explains a tenth of the variation, or none does."""
    shares = variation(document, "factorial", LAZY, response)
    large = [shares[effect] >= 0.1 for effect in effects]
    said = ", ".join(f"{effect} {shares[effect]:.0%}" for effect in effects)
    return decided(shares, all(large) if yes else not any(large), said), said


@of_arguments
def flat(document, experiment, subject, response):
    _, values = series(document, experiment, subject, response)
    return (span(values) <= FLAT, f"{numbers(values)} cycles, largest by smallest {span(values):.2f}")


@of_arguments
def grows(document, experiment, subject, response, down=False):
    points, values = series(document, experiment, subject, response)
    ratio = values[-1] / values[0]
    return ((ratio < 1 / FLAT if down else ratio > FLAT), f"{numbers(values)} cycles from {points[0]} to {points[-1]}")


@of_arguments
def faster(document, experiment, one, other, response):
    _, ratios = paired(document, experiment, one, other, response)
    return (fmean(ratios) < 1, f"{numbers(sorted(ratios), 2)} times the {response} of {other}")


@of_arguments
def proportional(document, experiment, subject, response, least=0.85):
    points, values = series(document, experiment, subject, response)
    slope = statistics.slope(points, values)
    return (least <= slope <= 1.3, f"grows with the power {slope:.2f} of {experiment} (1: proportional)")


@of_arguments
def largest_first(document, experiment, subject, response):
    """Holds if the first step from one point to the next, by the threads added, is the largest; and it is a step: more than a
    twentieth of the smallest value."""
    points, values = series(document, experiment, subject, response)
    if len(points) < 3:
        raise NotMeasured
    steps = [(values[i + 1] - values[i]) / (points[i + 1] - points[i]) for i in range(len(points) - 1)]
    largest = max(range(len(steps)), key=steps.__getitem__)
    return (largest == 0 and steps[0] > 0.05 * min(values),
            f"{steps[0]:+,.0f} cycles from {points[0]} to {points[1]}; the largest step for each thread added is "
            f"{steps[largest]:+,.0f}, from {points[largest]} to {points[largest + 1]}")


@of_arguments
def flat_until(document, experiment, subject, response, most):
    """Flat up to a point, and higher at the end than there: without that it would be flat, not flat until then."""
    points, values = series(document, experiment, subject, response)
    low = [value for point, value in zip(points, values) if point <= most]
    if len(low) < 3 or len(low) == len(values):
        raise NotMeasured
    return (span(low) <= FLAT and values[-1] > FLAT * low[-1],
            f"{numbers(low)} cycles up to {most:,}, largest by smallest {span(low):.2f}; {values[-1]:,.0f} at {points[-1]:,}")


@of_arguments
def eager_global_refresh(document, few, many):
    """Eager by lazy at the fewest and at the most threads."""
    points, ratios = paired(document, "threads", EAGER, LAZY, "global_refresh")
    wanted = dict(zip(points, ratios))
    if few not in wanted or many not in wanted:
        raise NotMeasured
    return (wanted[few] < 1 < wanted[many], f"{wanted[few]:.2f} and {wanted[many]:.2f} times lazy's cycles at {few} and {many} threads")


@of_arguments
def less_growth(document, experiment, subject, less, more):
    _, one = series(document, experiment, subject, less)
    _, other = series(document, experiment, subject, more)
    return (one[-1] / one[0] < other[-1] / other[0], f"{less} {one[-1] / one[0]:.2f} times, {more} {other[-1] / other[0]:.2f} times")


@of_arguments
def below_from(document, experiment, subject, below, above, least):
    """The first is below the second at every point from `least` on."""
    points, one = series(document, experiment, subject, below)
    _, other = series(document, experiment, subject, above)
    ratios = [a / b for point, a, b in zip(points, one, other) if point >= least]
    if not ratios:
        raise NotMeasured
    return all(ratio < 1 for ratio in ratios), f"{numbers(sorted(ratios), 2)} times {above} from {least:,} on"


def less_heap(document):
    _, ratios = paired(document, "threads", LAZY, EAGER, "held_bytes")
    return all(ratio > 1 for ratio in ratios), f"lazy holds {numbers(sorted(ratios), 2)} times eager"


def grows_more(document):
    """Ticks grow more with the heap than refreshes do."""
    _, refresh = series(document, "quantum", LAZY, "refresh")
    _, tick = series(document, "quantum", LAZY, "tick")
    return (tick[-1] / tick[0] > refresh[-1] / refresh[0], f"tick {tick[-1] / tick[0]:.2f} times, refresh {refresh[-1] / refresh[0]:.2f} times")


def twice_as_fast(document):
    _, ratios = paired(document, "quantum", LAZY, EAGER, "refresh")
    return (fmean(ratios) >= 1.5, f"lazy takes {fmean(ratios):.2f} times as long on average")


@of_arguments
def same_throughput(document, experiment, one, others):
    said, good = [], True
    for other in others:
        _, ratios = paired(document, experiment, other, one, SPEED)
        good &= max(span([ratio, 1]) for ratio in ratios) <= EQUAL
        said.append(f"{other} {numbers(sorted(ratios), 2)}")
    return good, f"relative to {one}: " + "; ".join(said)


def time_grows_with_threads(document):
    points, values = series(document, "throughput-threads", MALLOC, "seconds")
    rest = [(x, y) for x, y in zip(points, values) if x >= document["host"]["cpus"]]
    if len(rest) < 2:
        raise NotMeasured
    slope = statistics.slope(*zip(*rest))
    return 0.7 <= slope <= 1.3, f"with the power {slope:.2f} of the threads, from all CPUs on"


def few_threads(document):
    points, ratios = paired(document, "throughput-threads", MALLOC, LAZY, SPEED)
    few = [ratio for point, ratio in zip(points, ratios) if point < 4]
    return all(ratio > 1 for ratio in few), f"malloc has {numbers(sorted(few), 2)} times lazy's"


def trace(document, subject):
    row = next((row for row in document["rows"] if (row["experiment"], row["subject"]) == ("trace", subject)), {"repeats": []})
    settled = [repeat["settled_held_bytes"] for repeat in row["repeats"] if repeat.get("settled_held_bytes") is not None]
    if not settled:
        raise NotMeasured
    return fmean(settled)


@of_arguments
def approximation(document, one, other, low, high):
    ratio = trace(document, one) / trace(document, other)
    return low <= ratio <= high, f"{ratio:.2f} times"


def allocators_matter(document):
    """The thesis asks; here is how far apart they are in the same throughput experiment."""
    means = {}
    for row in document["rows"]:
        if row["experiment"] == "throughput-quantum" and row["kind"] == "persistent" \
                and SPEED in row["responses"]:
            means.setdefault(row["subject"], []).append(row["responses"][SPEED]["mean"])
    if len(means) < 2:
        raise NotMeasured
    order = sorted(means, key=lambda name: fmean(means[name]))
    ratio = fmean(means[order[-1]]) / fmean(means[order[0]])
    return ratio > 1.1, f"{order[-1]} has {ratio:.2f} times the throughput of {order[0]}"


FINDINGS = {
    "factorial": [
        ("6.1", "The collection strategy (D) matters most to refresh: 65 %.", strongest("refresh", "D")),
        ("6.1", "The size of a descriptor page (B) matters to refresh. Ours is fixed: B is where an "
         "expired object goes instead.", matters("refresh", ["B"])),
        ("6.1", "The number of threads (A) does not: refresh scales.", matters("refresh", ["A"], False)),
        ("6.1", "Nor does the time threshold (E).", matters("refresh", ["E"], False)),
        ("6.2", "Threads (A) explain more than 40 % of global refresh.", matters("global_refresh", ["A"])),
        ("6.3", "The collection strategy (D) matters most to tick.", strongest("tick", "D")),
        ("6.3", "The heap's size (E), alone and with the strategy (DE), matters to tick.", matters("tick", ["E", "DE"])),
        ("6.4", "The collection strategy (D) matters most to global tick.", strongest("global_tick", "D")),
        ("6.4", "Threads (A), alone and with the strategy (AD), matter to global tick.", matters("global_tick", ["A", "AD"])),
    ],
    "threads": [
        ("6.5", "Lazy: refresh takes the same time for any number of threads.", flat("threads", LAZY, "refresh")),
        ("6.5", "Lazy: so does tick, about 300 cycles.", flat("threads", LAZY, "tick")),
        ("6.5", "Lazy: global refresh takes longer with more threads.", grows("threads", LAZY, "global_refresh")),
        ("6.5", "Lazy: so does global tick.", grows("threads", LAZY, "global_tick")),
        ("6.5", "Lazy: the largest step of global tick is from one to two threads.", largest_first("threads", LAZY, "global_tick")),
        ("6.6", "Eager: refresh is faster than lazy.", faster("threads", EAGER, LAZY, "refresh")),
        ("6.6", "Eager: global refresh is faster than lazy with one thread, and slower with twelve.", eager_global_refresh(1, 12)),
        ("6.6", "Lazy: tick is faster than eager.", faster("threads", LAZY, EAGER, "tick")),
        ("6.6", "Eager: tick takes the same time for any number of threads.", flat("threads", EAGER, "tick")),
        ("6.6", "Eager: global tick gets faster with more threads.", grows("threads", EAGER, "global_tick", down=True)),
        ("6.7", "Lazy: the heap is proportional to the threads.", proportional("threads", LAZY, "held_bytes")),
        ("6.7", "Eager: so it is.", proportional("threads", EAGER, "held_bytes")),
        ("6.7", "Eager needs a smaller heap than lazy.", less_heap),
    ],
    "quantum": [
        ("6.8", "Lazy: refresh grows with the heap, from 250 to 500 cycles.", grows("quantum", LAZY, "refresh")),
        ("6.8", "Lazy: refresh takes the same time up to 2^16, and longer after that.", flat_until("quantum", LAZY, "refresh", 1 << 16)),
        ("6.8", "Lazy: global refresh grows less than refresh.", less_growth("quantum", LAZY, "global_refresh", "refresh")),
        ("6.8", "Lazy: tick grows more than refresh.", grows_more),
        ("6.8", "Lazy: global tick is faster than tick with large heaps.", below_from("quantum", LAZY, "global_tick", "tick", 1 << 21)),
        ("6.8", "The heap is proportional to the time threshold.", proportional("quantum", LAZY, "held_bytes")),
        ("6.9", "Eager: refresh is about twice as fast as lazy.", twice_as_fast),
        ("6.9", "Eager: tick is proportional to the heap.", proportional("quantum", EAGER, "tick")),
        ("6.9", "Eager: so is global tick.", proportional("quantum", EAGER, "global_tick")),
    ],
    "throughput-quantum": [
        ("6.10", "Throughput is nearly the same for malloc and short-term memory (within a quarter).",
         same_throughput("throughput-quantum", MALLOC, [LAZY, EAGER])),
        ("6.10", "Lazy and eager have the same throughput.", same_throughput("throughput-quantum", LAZY, [EAGER])),
        ("7.1", "Open there: does the allocator matter? (by more than a tenth)", allocators_matter),
    ],
    "throughput-threads": [
        ("6.11", "Run time is proportional to the threads.", time_grows_with_threads),
        ("6.11", "With fewer than four threads malloc has the higher throughput.", few_threads),
        ("6.11", "Lazy and eager do not differ.", same_throughput("throughput-threads", LAZY, [EAGER])),
    ],
    "trace": [
        ("6.12", "Eager needs slightly more than malloc (up to 1.25 times).", approximation(EAGER, MALLOC, 1.0, 1.25)),
        ("6.12", "Lazy needs about twice as much as eager.", approximation(LAZY, EAGER, 1.6, 2.4)),
        ("6.12", "Our aim instead: lazy within 1.25 times eager.", approximation(LAZY, EAGER, 0, 1.25)),
    ],
}


# Reasons for findings that may not hold (docs/results-acdc.md has more), by the claim of the thesis.
MORE_THREADS = ("the thesis had 24 cores. Where threads are more than CPUs they take turns, and each comes back to objects, "
                "counts and descriptors that the others have driven out of the caches")
FEW_AT_ONCE = ("a lazy call processes four dates, not one, and allocations do, too: most expired objects are freed by them, "
               "before it is seen in the heap")
FAST_BASE = ("malloc and free are several times as fast here as on the thesis' machine, and ACDC does nothing but allocate, "
             "refresh and access; so a refresh at each tick of an object's life is seen")
REASONS = {
    "The collection strategy (D) matters most to refresh: 65 %.": FEW_AT_ONCE,
    "The size of a descriptor page (B) matters to refresh. Ours is fixed: B is where an expired object goes instead.":
        "the size is fixed in ours, and where expired objects go is not the refresh's work",
    "The number of threads (A) does not: refresh scales.": MORE_THREADS,
    "Threads (A) explain more than 40 % of global refresh.": "the levels are 1 and 2 threads here; they were 2 and 8",
    "Threads (A), alone and with the strategy (AD), matter to global tick.":
        "the levels are 1 and 2 threads here; they were 2 and 8",
    "Lazy: refresh takes the same time for any number of threads.": MORE_THREADS,
    "Lazy: so does tick, about 300 cycles.": MORE_THREADS,
    "Lazy: the largest step of global tick is from one to two threads.": MORE_THREADS,
    "Eager: global refresh is faster than lazy with one thread, and slower with twelve.": FEW_AT_ONCE,
    "Lazy: refresh takes the same time up to 2^16, and longer after that.":
        "the caches are not the thesis' machine's, and quanta below what a round allocates hardly change the heap",
    "Lazy: global refresh grows less than refresh.":
        "not looked into; what is shared is a fifth of all objects on both machines",
    "Lazy: global tick is faster than tick with large heaps.":
        "not looked into; a global tick reads and writes what all threads share, and a local tick does not",
    "Eager: tick takes the same time for any number of threads.": MORE_THREADS,
    "Eager: global tick gets faster with more threads.":
        "all threads receive shared objects, so with more threads a global tick ends more dates",
    "Lazy: the heap is proportional to the threads.": "threads drift apart, and global time is the slowest one's",
    "Eager needs a smaller heap than lazy.": FEW_AT_ONCE,
    "Lazy: refresh grows with the heap, from 250 to 500 cycles.":
        "quanta below what a round allocates hardly change the heap",
    "The heap is proportional to the time threshold.":
        "quanta below what a round allocates hardly change the heap, and threads drift apart",
    "Eager: refresh is about twice as fast as lazy.": FEW_AT_ONCE,
    "Throughput is nearly the same for malloc and short-term memory (within a quarter).": FAST_BASE,
    "Lazy needs about twice as much as eager.": FEW_AT_ONCE,
}


def drawn_rows(rows, draw):
    """The rows, with runs drawn again. Runs of one point that several subjects have with the same seed are drawn together,
    because ratios are of pairs."""
    fewest, chosen, found = {}, {}, []
    for row in rows:
        fewest[row["point"]] = min(fewest.get(row["point"], len(row["repeats"])), len(row["repeats"]))
    for row in rows:
        runs, common = row["repeats"], fewest[row["point"]]
        places = chosen.setdefault(row["point"], [])
        while len(places) < len(runs):
            places.append(draw.random())
        repeats = [runs[int(place * (common if i < common else len(runs)))] for i, place in enumerate(places[:len(runs)])]
        responses = {name: {**known, "mean": fmean([repeat[name] for repeat in repeats])}
                     for name, known in row["responses"].items()
                     if repeats and all(repeat.get(name) is not None for repeat in repeats)}
        found.append({**row, "repeats": repeats, "responses": {**row["responses"], **responses}})
    return found


def runs_of(document, experiment):
    """The fewest runs of a point."""
    return min((len(row["repeats"]) for row in document["rows"] if row["experiment"] == experiment and row["repeats"]), default=0)


def draws_of(document, experiment):
    """Documents with the experiment's runs drawn again."""
    rows = [row for row in document["rows"] if row["experiment"] == experiment]
    draw = random.Random(experiment)
    return [{**document, "rows": drawn_rows(rows, draw)} for _ in range(DRAWS)]


def why_undecided(check, holds, draws):
    """None: it is decided."""
    same = sum(bool(check(one)[0]) == bool(holds) for one in draws)
    if same >= AGREEMENT * len(draws):
        return None
    holding = same if holds else len(draws) - same
    return f"the runs are too few or differ too much: it holds in {holding / len(draws):.0%} of draws from them"


def judge(check, document, draws, runs):
    """Returns whether the finding holds (None if not measured or undecided), the measured values, and why the finding is undecided, or None."""
    try:
        holds, measured = check(document)
        why = why_undecided(check, holds, draws) if runs >= ROUNDS else f"too few runs: {runs} of {ROUNDS}"
    except NotMeasured:
        return None, "not measured", None
    except Undecided as undecided:
        return None, *undecided.args
    return (None if why else bool(holds)), measured, why


def check_all(document):
    """Returns the experiment, the figure, the claim of the thesis, the verdict and the measured values for each finding. `holds` is None
    unless the verdict is that it holds or does not."""
    results = []
    for experiment, findings in FINDINGS.items():
        draws, runs = draws_of(document, experiment), runs_of(document, experiment)
        for figure, thesis, check in findings:
            holds, measured, why = judge(check, document, draws, runs)
            verdict = {True: "holds", False: "does not hold", None: "undecided" if why else "not measured"}[holds]
            results.append({"experiment": experiment, "figure": figure, "thesis": thesis, "holds": holds,
                            "verdict": verdict, "rounds": runs, "measured": f"{measured}; {why}" if why else measured,
                            "reason": REASONS.get(thesis, "not known") if holds is False else None})
    return results
