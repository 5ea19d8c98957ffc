# SPDX-License-Identifier: MIT
"""The page and tables of lab/reproduce/kernel-evaluate: the paper's Figures 7 to 13."""

import re
import statistics

from measure.page import Refused
from measure.pictures import OURS, THEIRS, bar_with_range, plt
from measure.verdict import FAILS, HOLDS, MISSING, UNDECIDED, percent, spread
from . import figures, plan, verdict

NOTES = [
    "Both sides are one kernel: prudence_tree=all on its command line is the difference. Each run is the same number of transactions on a fresh "
    "boot. Runs of the two sides alternate.",
    "Instructions: one emulated CPU that counts them (QEMU -icount), with a kernel whose SLUB does not count. All that the CPU does is in it, "
    "except idling: the programs, the kernel, the work that was deferred until two seconds later. Throughput is the reciprocal.",
    "Counts: a kernel whose SLUB counts (SLUB_STATS), on emulated CPUs that run in turn; a nanosecond is an instruction, of whichever CPU. A hit is an allocation that goes neither to the node nor to the page "
    "allocator; of SLUB's, those of the fast path alone stand in brackets. An object-cache churn is a pair of a refill from the node and a flush to it; "
    "SLUB's flushes are drains of a CPU's partial slabs. Slab churns are pairs of slabs made and given back.",
    "Peaks are samples of both sides during the load, one in 2 ms. Those of Prudence, and what it has two seconds after the load, include what SLUB keeps of that cache from before "
    "it changed.",
    "Latency: one emulated CPU that counts instructions, one thread that reads the clock before and after each operation. An interruption of an "
    "operation is in it: callbacks, grace periods, the timer, Prudence's helper.",
    "Locks: a kernel that counts how often each is taken (LOCK_STAT), and by another CPU than the time before. With Prudence, the nodes' are those of both allocators. CPUs are emulated in turn, so "
    "a lock is hardly ever found taken.",
    "Wall time: CPUs are emulated at once, each by a thread of this machine, and the clock is its own. So translated code and a busy machine are in "
    "it; the cost of a processor's caches and contended locks there is unknown.",
    "Figures are medians of rounds, with the least and the most where they differ. A round that is repeated says the same to the instruction; "
    "rounds differ in the guest's random numbers.",
]


def whole(value):
    return f"{value:,.0f}"


def share(value):
    return f"{100 * value:.2f} %"


def tenths(value):
    return f"{value:,.1f}"


def rough_share(value):
    return f"{100 * value:.1f} %"


def both(rounds, of, show=whole):
    """Returns the values of the first side, then of the second. `rounds`: [(one, other)]"""
    return " → ".join(spread([of(one) for one in side], show) for side in zip(*rounds))


def row_pairs(row):
    return list(zip(row.slub, row.ours))


def hit_share(one):
    return one["hits"] / one["allocations"]


def peak_mb(run):
    return run["peak_kb"] / 1024


CACHE = {"object-cache churns": lambda one: one["object_cache_churns"], "slab churns": lambda one: one["slab_churns"], "peak, KB": verdict.peak,
         "KB two seconds after it": verdict.left}


def of_cache(rounds):
    return {title: both(rounds, metric) for title, metric in CACHE.items()}


def measured(runs, mode, machines=None, pair=plan.PAIR, known=None):
    """(load, machine, rounds that both sides have), of the paper's loads."""
    for name, load in (known or plan.PAPER).items():
        for machine in machines or verdict.machines_of(runs, mode):
            if rounds := verdict.by_round(runs, mode, machine, name, pair):
                yield load, machine, rounds


def throughput(runs):
    return [{"subject": load.title, "instructions a transaction": both(rounds, lambda run: run["busy_ns"] / run["transactions"]),
             "throughput": spread(verdict.improvement(runs, load.name), percent), "rounds": str(len(rounds))}
            for load, _, rounds in measured(runs, "instructions", [verdict.ONE])]


def cells_of_row(row, machine):
    fast = statistics.median(one["fast_hits"] / one["allocations"] for one in row.slub)
    return {"subject": f"{row.load}: {row.cache}", "on": str(machine),
            "allocations": whole(statistics.median(one["allocations"] for one in row.ours)),
            "hits": both(row_pairs(row), hit_share, share).replace(" →", f" ({100 * fast:.1f} %) →"),
            **of_cache(row_pairs(row)), "deferred": spread([one["deferred"] / max(one["frees"], 1) for one in row.ours], rough_share)}


def caches(runs, scale):
    """Returns a load's caches, and for each the machines next to each other."""
    cells, machines = [], verdict.machines_of(runs)
    for load in plan.PAPER:
        found = [(row.cache, i, row) for i, machine in enumerate(machines) for row in verdict.rows_of(runs, machine, load, scale)]
        cells += [cells_of_row(row, machines[i]) for _, i, row in sorted(found, key=lambda one: one[:2])]
    return cells


def whole_runs(runs):
    return [{"subject": load.title, "on": str(machine), "deferred, of all frees": spread(verdict.shares(runs, machine, load.name), rough_share),
             "peak of all slabs, MB": both(rounds, peak_mb, lambda one: f"{one:.1f}"), "rounds": str(len(rounds))}
            for load, machine, rounds in measured(runs, "counts")]


def locks(runs, pair=plan.PAIR):
    """Returns locks of nodes, of both allocators, and of the page allocator, for 1,000 transactions of the two sides."""
    def rate(what, *names):
        return lambda run: 1000 * sum(run["locks"].get(name, {}).get(what, 0) for name in names) / run["transactions"]

    *nodes, pages = plan.LOCKS
    return [{"subject": load.title, "on": str(machine), "nodes' locks are taken": both(rounds, rate("taken", *nodes), tenths),
             "by another CPU than before": both(rounds, rate("moved", *nodes), tenths), "not at once": both(rounds, rate("contended", *nodes), tenths),
             "the page allocator's are taken": both(rounds, rate("taken", pages), tenths), "rounds": str(len(rounds))}
            for load, machine, rounds in measured(runs, "locks", pair=pair)]


def slub_sum(run, figure):
    """Sums a figure over all watched caches."""
    return sum(figures.of_slub(run, name)[figure] for name in figures.watched(run))


def slub_hits(run):
    return slub_sum(run, "hits") / slub_sum(run, "allocations")


def slub_churns(rounds, figure, counter):
    """Nothing if the kernel of some run did not count their parts."""
    if any(counter not in run["slub"][name]["after"] for some in rounds for run in some for name in figures.watched(run)):
        return ""
    return both(rounds, lambda run: slub_sum(run, figure))


def by_clock(runs):
    """Throughput by wall time of the emulator: its CPUs run at once, and caches of processors are the host's."""
    return [{"subject": load.title, "on": str(machine), "seconds": both(rounds, lambda run: run["wall_ns"] / 1e9, lambda one: f"{one:.2f}"),
             "throughput": spread(verdict.improvement_by_clock(runs, machine, load.name), percent), "rounds": str(len(rounds))}
            for load, machine, rounds in measured(runs, "wall")]


LATENCIES = {"half are faster than": "p50_ns", "99 %": "p99_ns", "99.9 %": "p999_ns", "99.99 %": "p9999_ns", "slowest": "most_ns"}


def latency(runs, pair=plan.PAIR, mode="latency"):
    """How long an operation of one thread takes, and the interruptions."""
    return [{"subject": load.name, **({"on": str(machine)} if mode != "latency" else {}),
             **{title: both(rounds, lambda run, figure=figure: run["latency"][figure]) for title, figure in LATENCIES.items()}, "rounds": str(len(rounds))}
            for load, machine, rounds in measured(runs, mode, pair=pair, known=plan.LOADS)]


def latency_sections(runs):
    """Compares with each peer, and with Prudence that does not hasten."""
    for pair in (*plan.PEERS, plan.HASTENED):
        name = "latency" + f"-{pair[0]}".replace("_", "-") * (pair != plan.PAIR)
        sides = " → ".join("SLUB" if side == "slub" else side.capitalize() if side == "prudence" else side for side in pair)
        yield name, f"Latency of one operation, one thread, one emulated CPU, instructions, {sides}", latency(runs, pair)
        yield f"{name}-wall", f"Latency of one operation, one thread of several CPUs, ns of the emulator's wall time, {sides}", latency(runs, pair, "latency_wall")


# Prudence without a part of it.
WITHOUT = {"no_preflush": "Prudence without pre-flush → with it", "no_hasten": "Prudence that waits for ticks → that hastens grace periods"}


def instructions_row(runs, name, pair, subject, blank):
    """[the row of one emulated CPU], with nothing in columns that only counts have."""
    found = verdict.improvement(runs, name, pair)
    return [{"subject": f"{name}: {subject}", "on": f"{verdict.ONE}, instructions", "throughput": spread(found, percent)} | dict.fromkeys(blank, "")] if found else []


def without(side, runs, scale):
    """Prudence alone, without that → with it."""
    cells = []
    for name in plan.LOADS:
        cells += instructions_row(runs, name, (side, "prudence"), "all", ("misses", *CACHE))
        cells += [{"subject": f"{name}: {row.cache}", "on": str(machine), "throughput": "",
                   "misses": both(row_pairs(row), lambda one: one["allocations"] - one["hits"]), **of_cache(row_pairs(row))}
                  for machine in verdict.machines_of(runs) for row in verdict.rows_of(runs, machine, name, scale, side)]
    return cells


def checked_loads(runs):
    """Returns the loads that ended without a message of the kernel. No document has the others."""
    found = {}
    for run in runs:
        if run["mode"] == "checked":
            found.setdefault((run["side"], verdict.Machine(run["cpus"], run["nodes"])), set()).add(run["load"])
    return [{"subject": side, "on": str(machine), "no complaint": ", ".join(name for name in plan.LOADS if name in names)}
            for (side, machine), names in found.items()]


def other_side(runs, name, side):
    """A load with another side: a row of instructions, and one of each machine of counts."""
    pair, columns = ("slub", side), ("hits", "object-cache churns", "slab churns", "peak of all slabs, MB")
    return instructions_row(runs, name, pair, side, columns) + [
        {"subject": f"{name}: {side}", "on": str(machine), "throughput": "", "hits": both(rounds, slub_hits, share),
         "object-cache churns": slub_churns(rounds, "object_cache_churns", "cpu_partial_drain"),
         "slab churns": slub_churns(rounds, "slab_churns", "free_slab"), "peak of all slabs, MB": both(rounds, peak_mb, lambda mb: f"{mb:.1f}")}
        for machine in verdict.machines_of(runs) if (rounds := verdict.by_round(runs, "counts", machine, name, pair))]


def other_sides(runs):
    """Returns the other sides with which SLUB can be compared."""
    return [cell for name in plan.LOADS for side in plan.SIDES if side not in (*plan.PAIR, *WITHOUT) and not side.startswith("prudence") for cell in other_side(runs, name, side)]


def verdicts(checked):
    """Writes the verdicts of all machines next to each other, with the number of rounds. `checked`: {machine: findings}."""
    return [{"subject": lines[0]["subject"], "the paper": lines[0]["the paper"], **{str(machine): f'{line["verdict"]} ({line["rounds"]})' for machine, line in zip(checked, lines)}}
            for lines in zip(*checked.values())]


def disturbance(runs, scale):
    """Compares a load alone → the same load during a storm in another cache."""
    cells = [{"subject": f"{name}: {side}", "on": str(machine), "allocations": both(rounds, lambda one: one["allocations"]),
              "hits": both(rounds, hit_share, share), **of_cache(rounds)}
             for machine in verdict.machines_of(runs) for side in plan.PAIR
             for name, rounds in verdict.disturbed_caches(runs, machine, side, scale).items()]
    return sorted(cells, key=lambda cell: cell["subject"].split(":")[0])


def sections_of(runs, scale):
    """[(name of the CSV, title, rows)]"""
    checked = {machine: verdict.of_counts(runs, machine, scale) for machine in verdict.machines_of(runs)}
    found = [("findings", "Findings of the paper, on each machine", verdicts(checked) if len(checked) > 1 else [])]
    found += [(re.sub(r"\W+", "-", f"findings {machine}".lower()), f"Findings of the paper ({machine})", lines) for machine, lines in checked.items()]
    return [section for section in (*found, ("findings-instructions", "Findings of the paper (instructions)", verdict.of_instructions(runs)),
                                    ("findings-latency", "Findings of the paper (latency)", verdict.of_latency(runs)),
                                    ("caches", "Caches, SLUB → Prudence", caches(runs, scale)),
                                    ("disturbance", "Disturbance: a load alone → during a storm in another cache", disturbance(runs, scale)),
                                    ("memory", "Deferred frees (Figure 12) and memory, SLUB → Prudence", whole_runs(runs)),
                                    ("throughput", "Throughput (Figure 13), SLUB → Prudence", throughput(runs)),
                                    *latency_sections(runs),
                                    ("wall", "Throughput by the emulator's wall time, SLUB → Prudence", by_clock(runs)),
                                    ("locks", "Locks (3.1), of 1,000 transactions, SLUB → Prudence", locks(runs)),
                                    *((side.replace("_", "-"), title, without(side, runs, scale)) for side, title in WITHOUT.items()),
                                    *((f"locks-{side}".replace("_", "-"), f"Locks (4.2), of 1,000 transactions, {title}", locks(runs, (side, "prudence")))
                                      for side, title in WITHOUT.items()),
                                    ("checked", "Loads under lockdep and KASAN", checked_loads(runs)),
                                    ("other-sides", "Other sides, SLUB → the other", other_sides(runs))) if section[2]]


def draw(runs):
    """Figure 13: with the paper's where it has one."""
    names = [name for name in plan.PAPER if verdict.improvement(runs, name)]
    figure, axes = plt.subplots(figsize=(10, 4.5), constrained_layout=True)
    for i, name in enumerate(names):
        bar_with_range(axes, i - 0.2, 0.4, [100 * one for one in verdict.improvement(runs, name)], color=OURS,
                       label="here, by instructions" if not i else None)
    paper = [(i + 0.2, 100 * verdict.THROUGHPUT[name][1]) for i, name in enumerate(names) if name in verdict.THROUGHPUT]
    if paper:
        axes.bar(*zip(*paper), 0.4, color=THEIRS[1], label="the paper, by time")
    axes.axhline(0, color="#444444", linewidth=1)
    axes.set(title="Throughput of Prudence against SLUB", ylabel="%")
    axes.set_xticks(range(len(names)), names)
    if names:
        axes.legend(frameon=False)
    return figure


def headline(sections):
    """Verdicts of each machine, counted."""
    parts = []
    for _, title, lines in sections:
        if title.startswith("Findings of the paper ("):
            found = [line["verdict"] for line in lines]
            words = ", ".join(f"{found.count(word)} {word}" for word in (HOLDS, FAILS, UNDECIDED, MISSING) if word in found)
            parts.append(f"{title.partition('(')[2][:-1]}: {words}")
    return "Findings of the paper. " + "; ".join(parts) + "."


def report(documents, made):
    document = documents[0]
    if len({one["scale"] for one in documents}) > 1:
        raise Refused("files of different scales")
    runs = [run for one in documents for run in one["runs"]]
    sections = sections_of(runs, document["scale"])
    made.page(document, "The paper's evaluation, in Linux 6.1", made.picture(draw(runs)), [section[1:] for section in sections], NOTES,
              [f'prudence {document["prudence"]}', f'scale {document["scale"]:g}'], headline(sections))
    made.tables({name: cells for name, _, cells in sections})
    return headline(sections)
