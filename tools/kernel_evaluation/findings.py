# SPDX-License-Identifier: MIT
"""What the paper found in 5.4 and 3.4, and whether it holds in runs of ours.

A row is one load and one cache, as paper_findings judges them."""

import dataclasses
import statistics

from paper_findings import FAILS, HOLDS, MISSING, SAME, UNDECIDED, all_rounds, change, judge as judge_rows, percent

from . import figures, loads

PAIRS = 5000      # a cache with fewer allocate/free pairs in a run is left out, with a scale of 1; the paper's threshold is a million
RARE = 0.0001     # churns per allocation that count as none


@dataclasses.dataclass
class Row:
    """One cache under one load: figures of each round, of both sides."""
    load: str
    cache: str
    slub: list
    ours: list

    def values(self, metric):
        return [(metric(slub), metric(ours)) for slub, ours in zip(self.slub, self.ours)]


def by_round(runs, mode, cpus, load, pair=loads.PAIR):
    """[(SLUB's run, Prudence's run)], or of another pair of sides, of the rounds that have both."""
    found = {}
    for run in runs:
        if (run["mode"], run["cpus"], run["load"]) == (mode, cpus, load):
            found.setdefault(run["round"], {})[run["side"]] = run
    return [tuple(sides[side] for side in pair) for _, sides in sorted(found.items()) if all(side in sides for side in pair)]


def cpus_of(runs):
    return sorted({run["cpus"] for run in runs if run["mode"] == "counts"})


def rows(runs, cpus, scale):
    found = []
    for load in loads.LOADS:
        rounds = by_round(runs, "counts", cpus, load)
        names = sorted(set.intersection(*(ours["caches"].keys() & figures.watched(slub) for slub, ours in rounds))) if rounds else []
        for name in names:
            row = Row(load, name, [figures.of_slub(slub, name) for slub, _ in rounds], [figures.of_prudence(ours, name) for _, ours in rounds])
            if min(min(one["allocations"], one["frees"]) for one in row.ours + row.slub) >= PAIRS * scale:
                found.append(row)
    return found


# ------------------------------------------------------------------------------------------- metrics, less is better

def misses(one):
    return 1 - one["hits"] / one["allocations"]


def churns(one):
    return one["object_cache_churns"] / one["allocations"]


def slab_churns(one):
    return one["slab_churns"] / one["allocations"]


def peak(one):
    return one["peak_kb"]


def left(one):
    """Memory of its slabs after the load. What is live then is the same on both sides, so these are to each other as total fragmentation, f_t. (Of SLUB's
    live objects some may wait for their callbacks; it cannot tell.)"""
    return one["kb"]


RATES = (misses, churns, slab_churns)


def judge(found, metric, allowed):
    """(verdict, what was found). `allowed`: the worst exception that the paper names."""
    none = RARE if metric in RATES else 0
    return judge_rows([(f"{row.load} {row.cache}", [change(*pair, none) for pair in row.values(metric)]) for row in found], allowed,
                      "no cache has enough pairs")


# ---------------------------------------------------------------------------------------------------- findings

def improvement(runs, load, side="prudence"):
    """Of throughput by instructions, against SLUB's: [share of each round]."""
    return [slub["busy_ns"] / ours["busy_ns"] - 1 for slub, ours in by_round(runs, "instructions", 1, load, ("slub", side))]


def faster(runs, load, paper):
    """Two findings: that it is faster, and that it is by so much."""
    found = improvement(runs, load)
    if not found:
        return [(MISSING, "")] * 2
    text = f"{percent(statistics.median(found))} [{percent(min(found))}, {percent(max(found))}] by instructions"
    return [(HOLDS if min(found) > 0 else FAILS if max(found) <= 0 else UNDECIDED, text),
            (HOLDS if min(found) >= paper else FAILS if max(found) < paper else UNDECIDED, text)]


def shares(runs, cpus, load):
    return [figures.deferred_share(ours) for _, ours in by_round(runs, "counts", cpus, load)]


def share_finding(runs, cpus, load, paper):
    """Holds within a quarter of it, more or less."""
    found = shares(runs, cpus, load)
    if not found:
        return MISSING, ""
    return all_rounds(abs(one / paper - 1) <= 0.25 for one in found), f"{100 * statistics.median(found):.1f} %"


def attack(runs, cpus):
    """3.4: SLUB's memory, and ours. A run in which memory ran out is none, so both sides have come to the end."""
    rounds = by_round(runs, "counts", cpus, "open_close")
    if not rounds:
        return [(MISSING, "")] * 2
    theirs, ours = ([run["peak_kb"] for run in side] for side in zip(*rounds))
    text = f"peaks of all slabs: {kb(theirs)} (SLUB), {kb(ours)} (Prudence); {rounds[0][0]['transactions']:,} operations, nobody ran out of memory"
    less = [one < other * (1 - SAME) for one, other in zip(ours, theirs)]
    more = [one > other * (1 + SAME) for one, other in zip(ours, theirs)]
    return [(FAILS, text), (HOLDS if all(less) else FAILS if all(more) else UNDECIDED, text)]


def kb(values):
    return f"{statistics.median(values) / 1024:.1f} MB"


THROUGHPUT = {"postmark": ("Postmark", 0.18), "tcp_crr": ("Netperf's TCP_CRR", 0.042), "ab": ("Apache", 0.056), "pgbench": ("PostgreSQL", 0.046)}
DEFERRED = {"postmark": ("Postmark", 0.244), "tcp_crr": ("Netperf", 0.14), "ab": ("Apache", 0.18), "pgbench": ("PostgreSQL", 0.044)}


def check(runs, cpus, scale):
    """[{"subject", "the paper", "verdict", "here"}]"""
    found = rows(runs, cpus, scale)
    lines = [
        ("Figure 7", "hits: more for all caches", judge(found, misses, 0)),
        ("Figure 8", "object-cache churns: 26 to 96.5 % fewer; once 6 % more", judge(found, churns, 0.06)),
        ("Figure 9", "slab churns: 3.1 to 98.3 % fewer", judge(found, slab_churns, 0)),
        ("Figure 10", "peak slabs: 2.5 to 30.6 % fewer, or the same; once 5 % more", judge(found, peak, 0.05)),
        ("Figure 11", "total fragmentation: 7 to 33 % less, or the same; once 8.7 % more", judge(found, left, 0.087)),
    ]
    for load, (name, paper) in DEFERRED.items():
        lines.append(("Figure 12", f"{name}: {100 * paper:.1f} % of frees are deferred (here: within a quarter of that)",
                      share_finding(runs, cpus, load, paper)))
    for load, (name, paper) in THROUGHPUT.items():
        direction, size = faster(runs, load, paper)
        lines += [("Figure 13", f"{name} is faster", direction), ("Figure 13", f"{name} is faster by {100 * paper:.1f} %", size)]
    exhausts, less = attack(runs, cpus)
    lines += [("3.4", "opening and closing files exhausts memory beside SLUB", exhausts),
              ("3.4", "Prudence needs less memory under this attack", less)]
    return [{"subject": place, "the paper": claim, "verdict": verdict, "here": text} for place, claim, (verdict, text) in lines]
