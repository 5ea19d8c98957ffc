# SPDX-License-Identifier: MIT
"""What the paper found in 5.4 and 3.4, and whether it holds in runs of ours.

A row is one load and one cache, as measure.verdict judges them."""

import dataclasses
import statistics
import typing

from measure.verdict import COUNTS_OF_THE_PAPER, FAILS, HOLDS, MISSING, SAME, UNDECIDED, all_rounds, as_cells, change, judge as judge_rows, percent
from . import figures, plan

PAIRS = 5000      # a cache with fewer allocate/free pairs in a run is left out, with a scale of 1; the paper's threshold is a million
RARE = 0.0001     # churns per allocation that count as none


@dataclasses.dataclass
class Row:
    """One cache under one load: figures of each round, of both sides."""
    load: str
    cache: str
    slub: list  # or another side that Prudence is compared with
    ours: list

    def values(self, metric):
        return [(metric(slub), metric(ours)) for slub, ours in zip(self.slub, self.ours)]


class Machine(typing.NamedTuple):
    """That a guest had."""
    cpus: int
    nodes: int

    def __str__(self):
        return f"{self.cpus} CPU{'s' * (self.cpus > 1)}" + (f", {self.nodes} nodes" if self.nodes > 1 else "")


ONE = Machine(1, 1)  # of instructions


def by_round(runs, mode, machine, load, pair=plan.PAIR):
    """[(SLUB's run, Prudence's run)], or of another pair of sides, of the rounds that have both."""
    found = {}
    for run in runs:
        if (run["mode"], run["cpus"], run["nodes"], run["load"]) == (mode, *machine, load):
            found.setdefault(run["round"], {})[run["side"]] = run
    return [tuple(sides[side] for side in pair) for _, sides in sorted(found.items()) if all(side in sides for side in pair)]


def machines_of(runs, mode="counts"):
    """The ones of one node first."""
    found = {Machine(run["cpus"], run["nodes"]) for run in runs if run["mode"] == mode}
    return sorted(found, key=lambda machine: (machine.nodes, machine.cpus))


def rows_of(runs, machine, load, scale, other="slub"):
    rounds = by_round(runs, "counts", machine, load, (other, "prudence"))
    read = figures.of_slub if other == "slub" else figures.of_prudence
    names = sorted(set.intersection(*(ours["caches"].keys() & figures.watched(theirs) for theirs, ours in rounds))) if rounds else []
    found = [Row(load, name, [read(theirs, name) for theirs, _ in rounds], [figures.of_prudence(ours, name) for _, ours in rounds]) for name in names]
    return [row for row in found if min(min(one["allocations"], one["frees"]) for one in row.ours + row.slub) >= PAIRS * scale]


def rows(runs, machine, scale):
    return [row for load in plan.PAPER for row in rows_of(runs, machine, load, scale)]


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


# -------------------------------------------------------------------------------------- disturbance

def disturbed_caches(runs, machine, side, scale):
    """{cache: [(alone, beside the storm)]}, as figures of that side, of caches that the storm does not use."""
    found, read = {}, figures.of_slub if side == "slub" else figures.of_prudence
    for alone, both, storm in zip(*([run for run, in by_round(runs, "counts", machine, load, (side,))] for load in plan.DISTURBANCE)):
        for name in sorted(figures.watched(alone) & (alone["slub"] if side == "slub" else alone["caches"]).keys()):
            if read(alone, name)["allocations"] >= PAIRS * scale > read(storm, name)["allocations"]:
                found.setdefault(name, []).append((read(alone, name), read(both, name)))
    return found


# ---------------------------------------------------------------------------------------------------- findings

def improvement(runs, load, pair=plan.PAIR):
    """Of throughput by instructions, of the second side against the first: [share of each round]."""
    return [one["busy_ns"] / other["busy_ns"] - 1 for one, other in by_round(runs, "instructions", ONE, load, pair)]


def improvement_by_clock(runs, machine, load):
    return [slub["wall_ns"] / ours["wall_ns"] - 1 for slub, ours in by_round(runs, "wall", machine, load)]


def faster(runs, load, paper):
    """Two findings: that it is faster, and that it is by so much."""
    found = improvement(runs, load)
    if not found:
        return [(MISSING, "")] * 2
    text = f"{percent(statistics.median(found))} [{percent(min(found))}, {percent(max(found))}] by instructions"
    return [(HOLDS if min(found) > 0 else FAILS if max(found) <= 0 else UNDECIDED, text),
            (HOLDS if min(found) >= paper else FAILS if max(found) < paper else UNDECIDED, text)]


def shares(runs, machine, load):
    return [figures.deferred_share(ours) for _, ours in by_round(runs, "counts", machine, load)]


def share_finding(runs, machine, load, paper):
    """Holds within a quarter of it, more or less."""
    found = shares(runs, machine, load)
    if not found:
        return MISSING, ""
    return all_rounds(abs(one / paper - 1) <= 0.25 for one in found), f"{100 * statistics.median(found):.1f} %"


def ran_out(skipped, machine, load, side):
    """Rounds of that side's counts that ended because memory ran out. Their figures are none."""
    return {one["round"] for one in skipped if one.get("out_of_memory") and
            (one["mode"], one["cpus"], one["nodes"], one["load"], one["side"]) == ("counts", *machine, load, side)}


def attack(runs, machine, skipped=()):
    """3.4: whether memory runs out beside SLUB, and SLUB's memory and ours in rounds that both sides finished."""
    finished = {run["round"] for run, in by_round(runs, "counts", machine, "open_close", ("slub",))}
    gone = ran_out(skipped, machine, "open_close", "slub")
    exhausts = all_rounds(turn in gone for turn in finished | gone)
    rounds = by_round(runs, "counts", machine, "open_close")
    if not rounds:
        return [(exhausts, f"in {len(gone)} of {len(finished | gone)} rounds" if gone else ""), (MISSING, "")]
    theirs, ours = ([run["peak_kb"] for run in side] for side in zip(*rounds))
    out = f"memory ran out beside SLUB in {len(gone)} of {len(finished | gone)} rounds" if gone else "nobody ran out of memory"
    text = f"peaks of all slabs: {kb(theirs)} (SLUB), {kb(ours)} (Prudence); {rounds[0][0]['transactions']:,} operations, {out}"
    less = [one < other * (1 - SAME) for one, other in zip(ours, theirs)]
    more = [one > other * (1 + SAME) for one, other in zip(ours, theirs)]
    return [(exhausts, text), (HOLDS if all(less) else FAILS if all(more) else UNDECIDED, text)]


def kb(values):
    return f"{statistics.median(values) / 1024:.1f} MB"


THROUGHPUT = {"postmark": ("Postmark", 0.18), "tcp_crr": ("Netperf's TCP_CRR", 0.042), "ab": ("Apache", 0.056), "pgbench": ("PostgreSQL", 0.046)}
DEFERRED = {"postmark": ("Postmark", 0.244), "tcp_crr": ("Netperf", 0.14), "ab": ("Apache", 0.18), "pgbench": ("PostgreSQL", 0.044)}


def of_counts(runs, machine, scale, skipped=()):
    """[{"subject", "the paper", "verdict", "here"}]"""
    found = rows(runs, machine, scale)
    lines = [(place, claim, judge(found, metric, allowed)) for (place, claim, allowed), metric in zip(COUNTS_OF_THE_PAPER, (*RATES, peak, left))]
    for load, (name, paper) in DEFERRED.items():
        lines.append(("Figure 12", f"{name}: {100 * paper:.1f} % of frees are deferred (here: within a quarter of that)",
                      share_finding(runs, machine, load, paper)))
    exhausts, less = attack(runs, machine, skipped)
    lines += [("3.4", "opening and closing files exhausts memory beside SLUB", exhausts),
              ("3.4", "Prudence needs less memory under this attack", less)]
    return as_cells(lines)


def of_instructions(runs):
    """The same of Figure 13."""
    lines = []
    for load, (name, paper) in THROUGHPUT.items():
        direction, size = faster(runs, load, paper)
        lines += [("Figure 13", f"{name} is faster", direction), ("Figure 13", f"{name} is faster by {100 * paper:.1f} %", size)]
    return as_cells(lines)
