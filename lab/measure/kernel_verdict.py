# SPDX-License-Identifier: MIT
"""Decides whether the paper's Figures 3 and 6, and its statement about spikes (3.2), hold in a kernel, from the rows of tools/kernel/bench of
one kernel and one boot. Each verdict has a reason.

The paper's SLUB frees by call_rcu; kfree_rcu is judged likewise, because Linux has had it since."""

import statistics

from .verdict import SAME, all_rounds, as_cells, at_least, change, judge, most_at, ran_out, spread

OURS, PEERS = "prudence", ("call_rcu", "kfree_rcu")
LEAST, MOST = 3.9, 28.6  # times as fast, of the paper's Figure 6; most at 4,096 bytes
LARGEST = 4096
FLAT_MB = 1              # memory that rises by less is flat
STARTED = 0.1            # of a run, in which memory rises to the need of the load


def as_times(value):
    return f"{value:.1f}×"


# ------------------------------------------------------------------------------------------------------- Figure 6

def times_by_round(rows, peer):
    """{size: {round: how many times as fast ours is, in the loop}}"""
    found = {}
    for row in rows:
        found.setdefault(row["size"], {}).setdefault(row["round"], {})[row["subject"]] = row["ns_per_pair"]
    times = {size: {turn: sides[peer] / sides[OURS] for turn, sides in turns.items() if peer in sides and OURS in sides} for size, turns in found.items()}
    return {size: turns for size, turns in sorted(times.items()) if turns}


def figure_6(rows, peer):
    times = times_by_round(rows, peer)
    middles = {size: statistics.median(turns.values()) for size, turns in times.items()}
    largest = list(times.get(LARGEST, {}).values())
    fewest = min(map(len, times.values()), default=0)
    text = f"{as_times(min(middles.values()))} to {as_times(max(middles.values()))}" if middles else ""
    verdict, rounds = most_at(LARGEST, times)
    best = max(middles, key=middles.get, default=0)
    most = f"most in the median: {best:,} B ({as_times(middles[best])}); {LARGEST:,} B: {as_times(middles[LARGEST])}" if rounds else ""
    return [(f"pairs are faster than with {peer} at every size",
             judge([(f"{size} B", [1 / one - 1 for one in turns.values()]) for size, turns in times.items()], 0, "")),
            (f"by {LEAST} times at least", (at_least(LEAST, [list(turns.values()) for turns in times.values()]), text, fewest)),
            (f"most for objects of {LARGEST:,} bytes", (verdict, most, rounds)),
            (f"by {MOST} times there", (all_rounds(one >= MOST for one in largest), spread(largest, as_times) if largest else "", len(largest)))]


# ------------------------------------------------------------------------------------------------------- Figure 3

def runs_of(rows):
    """{subject: its runs of endurance}, each with its samples; rows stand as the kernel printed them, a run after its samples."""
    found, samples = {}, []
    for row in rows:
        if row["run"] == "sample":
            samples.append(row)
        elif row["run"] == "endurance":
            found.setdefault(row["subject"], []).append(row | {"samples": [one for one in samples if one["subject"] == row["subject"]]})
            samples = []
    return found


def out_of_memory(run):
    return bool(run["failures"] or run["kills"])


def growth_mb(run):
    """The mean of the second half after the start, less that of the first; None if there are too few samples."""
    used = [one["used_kb"] for one in run["samples"] if one["ms"] >= STARTED * run["ms"]]
    half = len(used) // 2
    return (statistics.mean(used[half:]) - statistics.mean(used[:half])) / 1024 if half else None


def grows(run):
    """Says whether memory rises though the live objects do not grow. A run whose memory ran out has grown, however its halves compare."""
    growth = growth_mb(run)
    return out_of_memory(run) or growth is not None and growth > max(FLAT_MB, SAME * run["peak_kb"] / 1024)


def memory_of(runs):
    rises = [growth for run in runs if (growth := growth_mb(run)) is not None]
    rise = f"second half above the first by {spread(rises, lambda one: f'{one:.1f} MB')}, " if rises else ""
    return f"{rise}peak {spread([run['peak_kb'] / 1024 for run in runs], lambda one: f'{one:.0f} MB')} of {runs[0]['total_kb'] / 1024:.0f}"


def figure_3(rows, peer):
    found = runs_of(rows)
    theirs, ours = ([run for run in found.get(name, []) if run["samples"] or out_of_memory(run)] for name in (peer, OURS))
    gone, growing = sum(map(out_of_memory, theirs)), sum(grows(run) and not out_of_memory(run) for run in theirs)
    text = f"in {gone} of {len(theirs)} runs; {memory_of(theirs)}" if theirs else ""
    return [(f"with {peer} memory grows until it runs out",
             (ran_out(gone, len(theirs) - gone - growing, growing), f"{text}; still grew at the end of {growing}" if growing else text, len(theirs))),
            (f"with {peer} memory grows although what is live does not",
             (all_rounds(grows(run) for run in theirs), memory_of(theirs) if theirs else "", len(theirs))),
            ("Prudence's memory stays the same after the start",
             (all_rounds(not grows(run) for run in ours), memory_of(ours) if ours else "", len(ours)))]


# ------------------------------------------------------------------------------------------------------------ 3.2

LATENCIES = {"one pair in a thousand": "p999_ns", "the slowest pair": "most_ns"}


def latency(rows, peer):
    """Claims on pairs with each of them timed, of all sizes."""
    found = {}
    for row in rows:
        found.setdefault(row["size"], {}).setdefault(row["round"], {})[row["subject"]] = row
    sides = {size: [(turn[peer], turn[OURS]) for turn in turns.values() if peer in turn and OURS in turn] for size, turns in sorted(found.items())}
    return [(f"{what} is faster than with {peer}",
             judge([(f"{size} B", [change(one[figure], ours[figure]) for one, ours in both]) for size, both in sides.items() if both], 0, ""))
            for what, figure in LATENCIES.items()]


FIGURES = {"pairs": ("Figure 6", figure_6), "endurance": ("Figure 3", figure_3), "latency": ("3.2", latency)}


def findings(rows, run):
    """[{"subject", "the paper", "verdict", "here"}] of rows of one kernel and boot, which may include samples; none if no row of another
    allocator is there to compare."""
    figure, claims_of = FIGURES[run]
    claims = {claim: verdict for peer in PEERS if any(row["subject"] == peer for row in rows) for claim, verdict in named(claims_of(rows, peer), peer)}
    return as_cells([(figure, claim, verdict) for claim, verdict in claims.items()]) if any(row["subject"] == OURS for row in rows) else []


def named(claims, peer):
    """Claims that name the peer of the comparison; the one about Prudence alone is the same whoever the peer."""
    return [(claim if peer in claim or "Prudence" in claim else f"{claim}, compared with {peer}", verdict) for claim, verdict in claims]
