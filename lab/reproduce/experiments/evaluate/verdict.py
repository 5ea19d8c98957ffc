# SPDX-License-Identifier: MIT
"""The findings of the paper's section 5 and of others about deferred frees, and whether they hold in runs of ours. Each verdict has a reason.

The paper's SLUB is `classic` here: the same slabs as Prudence's, with a queue of callbacks in place of the paper's additions. In a mix,
`classic` calls
all callbacks of a grace period when it ends and `throttled-N` 10 of them every N steps; Prudence is compared with the one that misses least."""

import statistics

from measure.verdict import COUNTS_OF_THE_PAPER, MISSING, SAME, all_rounds, as_cells, at_least, change, judge, most_at, percent, ran_out, spread
from . import figures

RARE = 0.0001  # of an allocation: rates below count as none, as in Linux
OURS, CLASSIC = "prudence", "classic"
FLAT_MB = 1    # resident memory that rises by less is flat
COUNTS = [(*one, figure, allowed, none) for (*one, allowed), (figure, none) in zip(
    COUNTS_OF_THE_PAPER, (("misses", RARE), ("churns", RARE), ("slab_churns", RARE), ("slabs", 0), ("f_t", 0)))]
PAPER_PAIRS = (3.9, 28.6)
PAPER_THROUGHPUT = (0.042, 0.18)
# How often a peer's figure is ours: by the name that a reader calls it.
AGAINST_PEERS = {"ns": "time", "mb": "memory", "bytes_per_object": "memory", "cpu_ns": "CPU time", "us_p50": "latency, median", "us_p99": "latency, 99 %",
                 "us_p99_updating": "latency during updates, 99 %",
                 "us_update": "time of an update", "rss_mb": "memory"}


def callbacks_of(rows, load):
    """The queue of callbacks that Prudence is compared with: in a mix, the one of which most allocations hit."""
    queues = [row for row in rows if row.load == load and is_callbacks(row) and row.values("misses")]
    return min(queues, key=lambda row: row.median("misses")).subject if queues else CLASSIC


def changes(rows, load, figure, none=0.0, theirs=None):
    return [change(*pair, none) for pair in figures.of_both(rows, load, theirs or callbacks_of(rows, load), OURS, figure)]


def row_changes(rows, figure, none=0.0, theirs=None, kind=""):
    """[(load, changes of each round)] of the loads that have that figure."""
    found = [(load, changes(rows, load, figure, none, theirs)) for load in figures.loads_of(rows) if load.startswith(kind)]
    return [(load, some) for load, some in found if some]


def times_by_round(rows, load, theirs=CLASSIC):
    """{round: how many times as fast ours is}"""
    return {turn: other / ours for turn, (other, ours) in figures.rounds_of_both(rows, load, theirs, OURS, "ns").items()}


def times(rows, load, theirs=CLASSIC):
    return list(times_by_round(rows, load, theirs).values())


def is_mix(row):
    return row.part == "mix"


def has_default_cache(row):
    """Says whether the caches grow by demand, as they do in a program that sets nothing."""
    return row.load.endswith(figures.BY_DEMAND)


def as_times(value):
    return f"{value:.1f}×"


# ------------------------------------------------------------------------------------------------------- Figure 3

def memory(row):
    return f"peak {spread(row.values('peak_mb'), lambda one: f'{one:.0f} MB')}"


def grows(row):
    """Says of each round whether memory grows. One whose memory ran out has grown, however its halves compare."""
    return [out or growth > max(FLAT_MB, SAME * peak) for out, growth, peak in
            zip(row.values("out_of_memory"), row.values("growth_mb"), row.values("peak_mb"))]


def figure_3(rows):
    ours, theirs = (figures.find(rows, "lists, 512 B", name) for name in (OURS, CLASSIC))
    claims = ["with callbacks memory grows until it runs out (at the 196th second of 252 GB)",
              "with callbacks memory grows although what is live does not",
              "Prudence's memory stays the same after the start"]
    if not ours or not theirs or not ours.rounds or not theirs.rounds:
        return [("Figure 3", claim, (MISSING, "", 0)) for claim in claims]
    rounds, gone, grown = len(theirs.rounds), sum(theirs.values("out_of_memory")), sum(grows(theirs))
    peers = [row for row in rows if row.load == ours.load and row.subject.startswith("urcu+") and any(row.values("out_of_memory"))]
    peaks = "".join(f"; {row.subject}: in {sum(row.values('out_of_memory'))} of {len(row.rounds)}" for row in peers)
    rise, our_rise = (f"second half above the first by {spread(row.values('growth_mb'), form)}" for row, form in
                      ((theirs, lambda one: f"{one:.0f} MB"), (ours, lambda one: f"{one:.1f} MB")))
    return [("Figure 3", claims[0], (ran_out(gone, rounds - grown, grown - gone),
                                     f"memory ran out in {gone} of {rounds} rounds, still grew at the end of {grown - gone}; {memory(theirs)}{peaks}", rounds)),
            ("Figure 3", claims[1], (all_rounds(grows(theirs)), f"{rise}, {memory(theirs)}", rounds)),
            ("Figure 3", claims[2], (all_rounds(not one for one in grows(ours)), f"{our_rise}, {memory(ours)}", len(ours.rounds)))]


# ------------------------------------------------------------------------------------------------------- Figure 6

def figure_6(rows):
    by_load = {load: times_by_round(rows, load) for load in figures.loads_of(rows) if load.startswith("pairs, ")}
    by_load = {load: found for load, found in by_load.items() if found}
    least, most = PAPER_PAIRS
    claims = ["pairs are faster at every size", f"by {least} times at least", "most for objects of 4,096 bytes"]
    if not by_load:
        return [("Figure 6", claim, (MISSING, "", 0)) for claim in claims]
    middle = {load: statistics.median(found.values()) for load, found in by_load.items()}
    text = f"{as_times(min(middle.values()))} to {as_times(max(middle.values()))} (the paper: {least} to {most})"
    slow = [f"{load} ({spread(found.values(), as_times)})" for load, found in by_load.items() if min(found.values()) < least]
    verdict, rounds = most_at("pairs, 4096 B", by_load)
    best = max(middle, key=middle.get)
    return [("Figure 6", claims[0], judge(row_changes(rows, "ns", kind="pairs, "), 0, "")),
            ("Figure 6", claims[1], (at_least(least, [list(found.values()) for found in by_load.values()]),
                                     text + (f"; less: {', '.join(slow)}" if slow else ""), min(map(len, by_load.values())))),
            ("Figure 6", claims[2], (verdict, f"most in the median: {best} ({as_times(middle[best])}); 4,096 bytes: {as_times(middle['pairs, 4096 B'])}" if rounds else "",
                                     rounds))]


# ----------------------------------------------------------------------------------------------- Figures 7 to 11, 13

def counts(rows):
    for place, claim, figure, allowed, none in COUNTS:
        yield place, claim, judge(row_changes(rows, figure, none), allowed, f"no cache has {figures.FEW:,} allocations")


def figure_13(rows):
    """The loads that are no loop of allocations alone."""
    loads = [load for load in figures.loads_of(rows) if load.startswith(("tree", "hand over")) and times(rows, load)]
    claim = f"applications are faster (the paper: by {100 * PAPER_THROUGHPUT[0]:.1f} to {100 * PAPER_THROUGHPUT[1]:.0f} %)"
    if not loads:
        return [("Figure 13", claim, (MISSING, "", 0))]
    text = "; ".join(f"{load}: {spread([one - 1 for one in times(rows, load)], percent)}" for load in loads)
    verdict, _, rounds = judge([(load, changes(rows, load, "ns")) for load in loads], 0, "")
    return [("Figure 13", claim, (verdict, text, rounds))]


# ------------------------------------------------------------------------------------------------ findings of others

EPOCHS = "ck-epoch+"


def batches(rows):
    """Brown and others: updates with epochs are slow because memory is freed in batches. Then they lose the more, the more updates there are, over
    each allocator."""
    claims = ["updates of a tree are faster than with epochs over jemalloc", "batches are the cause: the factor rises with updates, over each allocator"]
    loads = [load for load in figures.loads_of(rows) if load.startswith("tree, ")]
    found = {peer: {load: some for load in loads if (some := times_by_round(rows, load, peer))} for peer in peers_of(rows) if peer.startswith(EPOCHS)}
    over_jemalloc = found.get(f"{EPOCHS}jemalloc")
    if not over_jemalloc:
        return [("Too Epic", claim, (MISSING, "", 0)) for claim in claims]
    text = "; ".join(f"{load.removeprefix('tree, ')}: {spread(some.values(), lambda one: f'{one:.2f}×')}" for load, some in over_jemalloc.items())
    verdict, _, rounds = judge(row_changes(rows, "ns", theirs=f"{EPOCHS}jemalloc", kind="tree, "), 0, "")
    ends = {peer.removeprefix(EPOCHS): (next(iter(some.values())), list(some.values())[-1]) for peer, some in found.items() if len(some) > 1}
    cause, _, turns = judge([(name, [change(last[turn], first[turn]) for turn in first.keys() & last.keys()]) for name, (first, last) in ends.items()],
                            0, "")
    cause_text = ", ".join(f"{name} {' → '.join(f'{statistics.median(side.values()):.2f}×' for side in both)}" for name, both in ends.items())
    return [("Too Epic", claims[0], (verdict, text, rounds)), ("Too Epic", claims[1], (cause, f"from the fewest updates to the most: {cause_text}" if ends else "", turns))]


def check(rows):
    """Checks all loads except mixes, whose time is counted in steps."""
    rows = [row for row in rows if not is_mix(row)]
    return as_cells([*figure_3(rows), *figure_6(rows), *counts(rows), *figure_13(rows), *batches(rows)])


def check_mixes(rows, default):
    """Checks mixes with caches by demand, or with caches of a fixed size."""
    return as_cells(counts([row for row in rows if is_mix(row) and has_default_cache(row) == default]))


# ------------------------------------------------------------------------------------------------------ against peers

def is_callbacks(row):
    return row.subject == CLASSIC or row.subject.startswith("throttled-")


def is_peer(row):
    return not is_callbacks(row) and not row.subject.startswith(OURS)


def peers_of(rows):
    return list(dict.fromkeys(row.subject for row in rows if is_peer(row)))


def ratios(rows, load, peer, figure):
    """Returns the ratio of the peer's figure to ours, round by round; above 1 we are better. A figure that we do not have gives no ratio."""
    return [theirs / ours for theirs, ours in figures.of_both(rows, load, peer, OURS, figure) if ours > 0 and theirs > 0]


def losses(rows):
    """Returns [(load, figure, the peer by which we lose most, ratios)]: in all rounds a peer is better by more than counts as the same."""
    for load in figures.loads_of(rows):
        for figure, name in AGAINST_PEERS.items():
            found = {row.subject: ratios(rows, load, row.subject, figure) for row in rows
                     if row.load == load and (is_peer(row) or row.subject == CLASSIC)}
            lost = {peer: some for peer, some in found.items() if some and max(some) < 1 - SAME}
            if lost:
                worst = min(lost, key=lambda peer: statistics.median(lost[peer]))
                on_cpus = ratios(rows, load, worst, "cpu_ns")
                if figure == "ns" and on_cpus and statistics.median(on_cpus) >= 1:
                    name += ", but not CPU time"
                yield load, name, worst, lost[worst], len(lost), len([some for some in found.values() if some])
