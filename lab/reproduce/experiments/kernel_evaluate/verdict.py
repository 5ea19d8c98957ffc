# SPDX-License-Identifier: MIT
"""The findings of the paper in 5.4 and 3.4, and whether they hold in runs of ours.

A row is one load and one cache, as measure.verdict judges them."""

import dataclasses
import statistics
import typing

from measure.verdict import COUNTS_OF_THE_PAPER, FAILS, HOLDS, MISSING, SAME, UNDECIDED, all_rounds, as_cells, change, judge as judge_rows, percent, ran_out
from . import figures, plan

PAIRS = 5000      # a cache with fewer allocate/free pairs in a run is skipped, with a scale of 1; the paper's threshold is a million
RARE = 0.0001     # churns per allocation that count as none


@dataclasses.dataclass
class Row:
    """A cache under a load, with the figures of each round and both sides."""
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
    """[(SLUB's run, Prudence's run)], or of another pair of sides, of the rounds that have figures of both."""
    found = {}
    for run in runs:
        if (run["mode"], run["cpus"], run["nodes"], run["load"]) == (mode, *machine, load) and not run.get("out_of_memory"):
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
    """Returns the memory of its slabs after the load. The live objects are then the same on both sides, so these are to each other as total
    fragmentation, f_t. (Of SLUB's live objects some may wait for their callbacks; SLUB does not count those.)"""
    return one["kb"]


RATES = (misses, churns, slab_churns)


def judge(found, metric, allowed):
    """Returns a finding. `allowed`: the worst exception that the paper names."""
    none = RARE if metric in RATES else 0
    return judge_rows([(f"{row.load} {row.cache}", [change(*pair, none) for pair in row.values(metric)]) for row in found], allowed,
                      "no cache has enough pairs")


# -------------------------------------------------------------------------------------- disturbance

def disturbed_caches(runs, machine, side, scale):
    """Returns {cache: [(alone, during the storm)]}, as figures of that side, of caches that the storm does not use."""
    found, read = {}, figures.of_slub if side == "slub" else figures.of_prudence
    for alone, both, storm in zip(*([run for run, in by_round(runs, "counts", machine, load, (side,))] for load in plan.DISTURBANCE)):
        for name in sorted(figures.watched(alone) & (alone["slub"] if side == "slub" else alone["caches"]).keys()):
            if read(alone, name)["allocations"] >= PAIRS * scale > read(storm, name)["allocations"]:
                found.setdefault(name, []).append((read(alone, name), read(both, name)))
    return found


# ---------------------------------------------------------------------------------------------------- findings

def improvement(runs, load, pair=plan.PAIR):
    """Returns the change of throughput by instructions, of the second side against the first: [share of each round]."""
    return [one["busy_ns"] / other["busy_ns"] - 1 for one, other in by_round(runs, "instructions", ONE, load, pair)]


def improvement_by_clock(runs, machine, load):
    return [slub["wall_ns"] / ours["wall_ns"] - 1 for slub, ours in by_round(runs, "wall", machine, load)]


def faster(runs, load, paper):
    """Two findings: that it is faster, and that it is by so much."""
    found = improvement(runs, load)
    if not found:
        return [(MISSING, "", 0)] * 2
    text = f"{percent(statistics.median(found))} [{percent(min(found))}, {percent(max(found))}] by instructions"
    return [(judge_rows([(load, [1 / (1 + one) - 1 for one in found])], 0, "")[0], text, len(found)), (all_rounds(one >= paper for one in found), text, len(found))]


def shares(runs, machine, load):
    return [figures.deferred_share(ours) for _, ours in by_round(runs, "counts", machine, load)]


def share_finding(runs, machine, load, paper):
    """Holds within a quarter of it, more or less."""
    found = shares(runs, machine, load)
    if not found:
        return MISSING, "", 0
    return all_rounds(abs(one / paper - 1) <= 0.25 for one in found), f"{100 * statistics.median(found):.1f} %", len(found)


def gone_rounds(runs, machine, load, side):
    """Rounds of that side's counts that ended because memory ran out. They have no figures."""
    return {run["round"] for run in runs if run.get("out_of_memory") and
            (run["mode"], run["cpus"], run["nodes"], run["load"], run["side"]) == ("counts", *machine, load, side)}


ATTACKS = ("attack", "open_close")  # the first is as long as the paper's, with its memory


def exhausts(runs, machine):
    """Checks section 3.4: whether memory runs out with SLUB. A round that ran out answers, however short it was; one that ended does if it was
    as long as the paper's."""
    gone = [(load, turn) for load in ATTACKS for turn in gone_rounds(runs, machine, load, "slub")]
    ended = [run for load in ATTACKS for run, in by_round(runs, "counts", machine, load, ("slub",))]
    enough = [run for run in ended if run["load"] == "attack" and run["transactions"] >= plan.LOADS["attack"].transactions]
    text = f"memory ran out with SLUB in {len(gone)} of {len(gone) + len(ended)} rounds" if gone or ended else ""
    if ended and not gone and not enough:
        text += f", of at most {max(run['transactions'] for run in ended):,} operations: shorter than the paper's (--load attack is as long)"
    return ran_out(len(gone), len(enough), len(ended) - len(enough)), text, len(gone) + len(ended)


def less_memory(runs, machine):
    """3.4: SLUB's memory and ours in rounds that both sides ended. A side that ran out of memory needs more than one that ended."""
    rounds = [(load, *pair) for load in ATTACKS for pair in by_round(runs, "counts", machine, load)]
    less = [ours["peak_kb"] < slub["peak_kb"] * (1 - SAME) for _, slub, ours in rounds]
    more = [ours["peak_kb"] > slub["peak_kb"] * (1 + SAME) for _, slub, ours in rounds]
    for load in ATTACKS:
        ended = {side: {run["round"] for run, in by_round(runs, "counts", machine, load, (side,))} for side in plan.PAIR}
        for turn in gone_rounds(runs, machine, load, "slub") & ended["prudence"]:
            less, more = [*less, True], [*more, False]
        for turn in gone_rounds(runs, machine, load, "prudence") & ended["slub"]:
            less, more = [*less, False], [*more, True]
    if not less:
        return MISSING, "", 0
    out = f"; {len(less) - len(rounds)} rounds in which one side ran out of memory" if len(less) > len(rounds) else ""
    text = "; ".join(f"{load}, peaks of all slabs: {kb([slub['peak_kb'] for name, slub, _ in rounds if name == load])} (SLUB), "
                     f"{kb([ours['peak_kb'] for name, _, ours in rounds if name == load])} (Prudence)" for load in dict.fromkeys(load for load, *_ in rounds))
    return HOLDS if all(less) else FAILS if all(more) else UNDECIDED, (text + out).removeprefix("; "), len(less)


def kb(values):
    return f"{statistics.median(values) / 1024:.1f} MB"


THROUGHPUT = {"postmark": ("Postmark", 0.18), "tcp_crr": ("Netperf's TCP_CRR", 0.042), "ab": ("Apache", 0.056), "pgbench": ("PostgreSQL", 0.046)}
DEFERRED = {"postmark": ("Postmark", 0.244), "tcp_crr": ("Netperf", 0.14), "ab": ("Apache", 0.18), "pgbench": ("PostgreSQL", 0.044)}


def of_counts(runs, machine, scale):
    """[{"subject", "the paper", "verdict", "here"}]"""
    found = rows(runs, machine, scale)
    lines = [(place, claim, judge(found, metric, allowed)) for (place, claim, allowed), metric in zip(COUNTS_OF_THE_PAPER, (*RATES, peak, left))]
    for load, (name, paper) in DEFERRED.items():
        lines.append(("Figure 12", f"{name}: {100 * paper:.1f} % of frees are deferred (here: within a quarter of that)",
                      share_finding(runs, machine, load, paper)))
    lines += [("3.4", "opening and closing files exhausts memory with SLUB", exhausts(runs, machine)),
              ("3.4", "Prudence needs less memory under this attack", less_memory(runs, machine))]
    return as_cells(lines)


def latencies(runs, pair, figure, machine=ONE, mode="latency"):
    """[(load, changes of each round)] of the loads of our own"""
    found = [(load, [change(one["latency"][figure], other["latency"][figure]) for one, other in by_round(runs, mode, machine, load, pair)])
             for load in plan.LOADS]
    return [(load, changes) for load, changes in found if changes]


def of_latency(runs):
    """Checks section 3.2: whether spikes are gone, compared with Linux's own ways. One thread, one emulated CPU; and, by the host's clock,
    several CPUs."""
    places = [("one emulated CPU", ONE, "latency")] + [(str(machine), machine, "latency_wall") for machine in machines_of(runs, "latency_wall")]
    return as_cells([("3.2", f"{what} is faster than {pair[0]}, one thread, {where}", judge_rows(found, 0, ""))
                     for where, machine, mode in places for pair in plan.PEERS
                     for what, figure in (("one operation in a thousand", "p999_ns"), ("the slowest operation", "most_ns"))
                     if (found := latencies(runs, pair, figure, machine, mode))])


def of_instructions(runs):
    """Checks Figure 13 in the same way."""
    lines = []
    for load, (name, paper) in THROUGHPUT.items():
        direction, size = faster(runs, load, paper)
        lines += [("Figure 13", f"{name} is faster", direction), ("Figure 13", f"{name} is faster by {100 * paper:.1f} %", size)]
    return as_cells(lines)
