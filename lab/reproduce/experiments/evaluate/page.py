# SPDX-License-Identifier: MIT
"""The page and tables of lab/reproduce/evaluate: the paper's section 5, and applications that defer.

With --into, DOCS/results/data/evaluate/TABLE.csv are replaced, for each part that FILE has every subject of; if FILE has all parts, also tables about
several parts and the table of DOCS/results-evaluate.md. Text is not changed."""

import statistics

from measure.bench import draw_endurance, draw_pairs
from measure.page import busy_warning, count, verdicts, waiting_warning, write_results
from measure.pictures import OURS, THEIRS, bar_with_range, legend_below, plt, subject_style, svg_of
from measure.verdict import FAILS, HOLDS, MISSING, UNDECIDED, percent, spread
from . import figures, plan, verdict

NOTES = [
    "classic is the paper's SLUB here: the same slabs as Prudence's, with a queue of callbacks for each CPU in place of the paper's additions. urcu+A is liburcu's call_rcu over "
    "malloc of A, ck-epoch+A Concurrency Kit's epochs. Peers cannot be asked for hits, churns and slabs, so these are compared with classic alone; time and memory with all.",
    "A verdict compares round by round. A finding about all loads holds if no load is worse than the worst exception that the paper itself names, and one is better; rounds that "
    "disagree make it undecided, and fewer than three decide nothing. Figures that differ by 2 % or less are the same, as in the paper.",
    "Each round runs every part once, all its subjects one after the other, each run in a process of its own. Figures are medians of rounds, with the least and the most where they differ.",
    "Time is wall time of a thread for an operation. CPU time is of all threads, those that call callbacks among them. Memory is the peak of resident memory beyond what the process "
    "had before the load; of servers, all of it; of the store, by object.",
    "Threads that hand objects over yield while they wait for each other, so with other programs their wall time says who yielded more often; their CPU time does not.",
    "Counts of mixes (prudence-mix) are made without a clock, so other programs hardly change them: a sequence that is interrupted gives up (ADR 1), which changed misses by up to 4 % with pre-flush, and by 1 % otherwise. A seed is a round. Each allocation and each release is a step, and a grace period takes 500 or 5,000. classic frees all objects of a grace period the moment it ends; "
    "throttled-N calls 10 callbacks every N steps. The verdicts compare Prudence with the queue of that row that misses least. prudence is the default, which has no helper; with pre-flush the CPU is idle every 100 steps. A cache by demand is the "
    "default; 64 and 256 are the objects that a fixed one holds (object_cache_bytes). Rates that differ by 100 misses or churns in a million allocations, or fewer, are the same.",
    "The paper's machine had 64 CPUs and ran each load for minutes. Figure 12, the share of deferred frees in Linux, has no meaning in a process: "
    "docs/results-kernel-evaluate.md has it, and the figures of the paper's own programs.",
]
TITLE = "Findings of the paper"
GROUPS = [  # name, title, beginning of the names of its loads
    ("endurance", "Lists that are updated all the time (Figure 3)", "lists"),
    ("pairs", "Pairs (Figure 6)", "pairs"),
    ("tree", "A search tree that all threads update (Are Your Epochs Too Epic?)", "tree"),
    ("store", "A store: a hash table under a mixed load", "store"),
    ("recycle", "Allocated in one thread, retired in another (chimera's recycling)", "hand over"),
    ("knot", "Knot DNS: queries while its zone is updated", "Knot DNS"),
    ("bind", "BIND 9: queries while its zone is updated", "BIND"),
]
MIXES = [(True, "default", "caches by demand, the default"), (False, "fixed", "caches of a fixed size")]
SHOWN = {"ns": ("ns", lambda one: f"{one:,.1f}"), "cpu_ns": ("CPU ns", lambda one: f"{one:,.1f}"), "us_p50": ("median, µs", lambda one: f"{one:,.0f}"),
         "us_p99": ("99 %, µs", lambda one: f"{one:,.0f}"), "us_p99_updating": ("99 % during updates, µs", lambda one: f"{one:,.0f}"),
         "us_update": ("an update, µs", lambda one: f"{one:,.0f}"), "mb": ("memory, MB", lambda one: f"{one:,.1f}"),
         "latent_mb": ("waiting, MB", lambda one: f"{one:,.2f}"), "growth_mb": ("growth in the second half, MB", lambda one: f"{one:,.1f}"),
         "bytes_per_object": ("bytes an object", lambda one: f"{one:,.1f}"), "rss_mb": ("peak, MB", lambda one: f"{one:,.1f}"),
         "lost": ("queries lost", lambda one: f"{one:,.0f}")}
COUNTED = {"hits": ("hits", lambda one: f"{100 * one:.2f} %"), "churns": ("object-cache churns, of a million", lambda one: f"{1e6 * one:,.0f}"),
           "slab_churns": ("slab churns, of a million", lambda one: f"{1e6 * one:,.0f}"), "slabs": ("peak slabs", lambda one: f"{one:,.1f}".removesuffix(".0")),
           "f_t": ("f_t", lambda one: f"{one:.2f}")}


def of_kind(rows, beginning):
    return [row for row in rows if row.load.startswith(beginning)]


# --------------------------------------------------------------------------------------------------------- tables

def cells_of(rows):
    """A line for each subject under each load. A failed run shows the reason."""
    shown = {key: one for key, one in SHOWN.items() if any(row.values(key) for row in rows)}
    ran_out = any(any(row.values("out_of_memory")) for row in rows)
    lines = []
    for row in rows:
        line = {"subject": row.subject, "load": row.load}
        line |= {title: spread(row.values(key), show) if row.values(key) else "–" for key, (title, show) in shown.items()}
        if ran_out:
            line["memory ran out"] = f"{sum(row.values('out_of_memory'))} of {len(row.rounds)}" if row.rounds else "–"
        if row.failed:
            line["load"] += f" (failed: {row.failed[0]})"
        lines.append(line)
    return lines


def mix_cells(rows, default):
    """A line for each subject under each mix. Callbacks that Prudence is compared with are marked."""
    shown = {key: one for key, one in COUNTED.items() if key != "hits"}
    return [{"subject": row.subject + (" (compared)" if row.subject == verdict.callbacks_of(rows, row.load) else ""), "load": row.load} |
            {"misses, of a million": f"{1e6 * row.median('misses'):,.0f}" if row.rounds else f"failed: {row.failed[0]}"} |
            {title: show(row.median(key)) if row.rounds else "–" for key, (title, show) in shown.items()}
            for row in rows if verdict.is_mix(row) and verdict.has_default_cache(row) == default]


def count_cells(rows):
    """classic → prudence, of the loads that both were counted under."""
    lines = []
    for load in figures.loads_of([row for row in rows if not verdict.is_mix(row)]):
        theirs, ours = (figures.find(rows, load, name) for name in (verdict.CLASSIC, verdict.OURS))
        if not theirs or not ours or not theirs.values("hits") or not ours.values("hits"):
            continue
        lines.append({"subject": load} | {title: f"{spread(theirs.values(key), show)} → {spread(ours.values(key), show)}"
                                          if theirs.values(key) and ours.values(key) else "–" for key, (title, show) in COUNTED.items()})
    return lines


def ratio_cells(rows, figure):
    """How often each peer's figure is ours; a table for each set of peers, with the kinds of its loads."""
    lines = {}
    for load in figures.loads_of(rows):
        peers = [peer for peer in verdict.peers_of(of_kind(rows, load)) if verdict.ratios(rows, load, peer, figure)]
        if peers:
            lines.setdefault(tuple(peers), []).append({"subject": load} | {
                peer: spread(verdict.ratios(rows, load, peer, figure), lambda one: f"{one:.2f}") for peer in peers})
    return [(", ".join(dict.fromkeys(line["subject"].partition(",")[0] for line in cells)), cells) for cells in lines.values()]


def loss_cells(rows):
    return [{"subject": load, "what": name, "most behind": peer, "the peer's by ours": spread(found, lambda one: f"{one:.2f}"),
             "better than ours": f"{lost} of {measured}"} for load, name, peer, found, lost, measured in verdict.losses(rows)]


# ------------------------------------------------------------------------------------------------------- pictures

def last_rows(document, part):
    """Returns the rows of prudence-bench with a result in the last run of that part."""
    runs = [run for run in document["runs"] if run["part"] == part]
    return [row for row in runs[-1]["document"]["rows"] if "versions" in row] if runs else []


def endurance_picture(document, _):
    found = [row for row in last_rows(document, "endurance") if any(run.get("samples") for run in row["repeats"])]
    return draw_endurance(found) if found else None


def pairs_picture(document, _):
    found = last_rows(document, "pairs")
    return draw_pairs(found) if found else None


def bars(rows, keys):
    """A panel for each figure, a group for each load, a bar for each subject."""
    subjects, loads = list(dict.fromkeys(row.subject for row in rows)), figures.loads_of(rows)
    keys = [key for key in keys if any(row.values(key) for row in rows)]
    if not keys:
        return None
    figure, grid = plt.subplots(1, len(keys), figsize=(12, 5), squeeze=False, constrained_layout=True)
    width, used = 0.8 / len(subjects), {}
    style = {name: subject_style(name, used) for name in subjects}
    for axes, key in zip(grid[0], keys):
        for i, subject in enumerate(subjects):
            places = [(j, row.median(key)) for j, load in enumerate(loads) if (row := figures.find(rows, load, subject)) and row.values(key)]
            if places:
                axes.bar([j + (i + 0.5) * width - 0.4 for j, _ in places], [value for _, value in places], width, label=subject, color=style[subject]["color"],
                         alpha=0.6 if subject == "prudence-heap" else 1, hatch="" if style[subject]["linestyle"] == "-" else "///", edgecolor="white")
        axes.set_title(SHOWN[key][0])
        axes.set_xticks(range(len(loads)), [load.partition(", ")[2] or load for load in loads], fontsize=9)
    legend_below(figure, grid[0], 5)
    return figure


def tree_picture(rows):
    """Throughput by the share of updates, and memory."""
    subjects = list(dict.fromkeys(row.subject for row in rows))
    used = {}
    figure, (speed, memory) = plt.subplots(1, 2, figsize=(12, 5.4), constrained_layout=True)
    for subject in subjects:
        style = {"marker": "o", "markersize": 4, "label": subject} | subject_style(subject, used)
        found = sorted((int(row.load.split()[1]), row) for row in rows if row.subject == subject and row.values("ns"))
        speed.plot([share for share, _ in found], [1e3 / row.median("ns") for _, row in found], **style)
        memory.plot([share for share, _ in found], [row.median("mb") for _, row in found], **style)
    speed.set(xlabel="% updates", ylabel="million operations a second, of a thread", title="Throughput", ylim=(0, None))
    memory.set(xlabel="% updates", ylabel="MB beyond the tree", title="Memory", ylim=(0, None))
    legend_below(figure, [speed], 5)
    return figure


def counts_picture(rows):
    """Draws the change from callbacks to prudence for each counted load, as the paper's Figures 7 to 11."""
    loads = [load for load in figures.loads_of(rows) if verdict.changes(rows, load, "misses")]
    if not loads:
        return None
    figure, grid = plt.subplots(1, len(verdict.COUNTS), figsize=(12, 1.5 + 0.28 * len(loads)), sharey=True, constrained_layout=True)
    for axes, (place, claim, key, allowed, none) in zip(grid, verdict.COUNTS):
        for i, load in enumerate(loads):
            changes = verdict.changes(rows, load, key, none)
            if changes:
                middle = statistics.median(changes)
                shown = min(middle, 1.0)
                axes.barh(i, 100 * shown, 0.7, color=OURS if middle <= max(allowed, 0.02) else THEIRS[0])
                if middle > 1:
                    axes.annotate(percent(middle).removesuffix(" %"), (100, i), xytext=(-3, 0), textcoords="offset points", ha="right", va="center", fontsize=7, color="white")
        axes.axvspan(100 * allowed, 100, color="#f3e5e2", zorder=0)
        axes.axvline(0, color="#444444", linewidth=1)
        axes.set(xlim=(-100, 100), ylim=(-0.6, len(loads) - 0.4), xlabel="change, %")
        axes.set_title(f"{place}\n{'misses' if key == 'misses' else claim.partition(':')[0]}", fontsize=9)
        axes.set_yticks(range(len(loads)), loads, fontsize=8)
    grid[0].invert_yaxis()
    return figure


def throughput_picture(rows):
    """Figure 13: against classic, with the paper's range."""
    loads = [load for load in figures.loads_of(rows) if load.startswith(("tree", "hand over")) and verdict.times(rows, load)]
    if not loads:
        return None
    figure, axes = plt.subplots(figsize=(10, 4.2), constrained_layout=True)
    for i, load in enumerate(loads):
        bar_with_range(axes, i, 0.5, [100 * (one - 1) for one in verdict.times(rows, load)], color=OURS, label=None if i else "here")
    low, high = (100 * one for one in verdict.PAPER_THROUGHPUT)
    axes.axhspan(low, high, color=THEIRS[1], alpha=0.25, label="the paper: PostgreSQL, Apache, Netperf to Postmark")
    axes.axhline(0, color="#444444", linewidth=1)
    axes.set(title="Throughput of Prudence against classic", ylabel="%")
    axes.set_xticks(range(len(loads)), loads)
    legend_below(figure, [axes], 2)
    return figure


SERVER_KEYS = ("ns", "cpu_ns", "us_p99", "us_update", "rss_mb")
PICTURES = {"endurance": endurance_picture, "pairs": pairs_picture, "tree": lambda _, rows: tree_picture(rows),
            "store": lambda _, rows: bars(rows, ("ns", "cpu_ns", "bytes_per_object")), "recycle": lambda _, rows: bars(rows, ("ns", "cpu_ns", "mb")),
            "knot": lambda _, rows: bars(rows, SERVER_KEYS), "bind": lambda _, rows: bars(rows, SERVER_KEYS)}


# ----------------------------------------------------------------------------------------------------------- parts

def part(name, title, cells=(), pictures=(), found=(), text=(), is_open=False):
    return {"name": name, "title": title, "figures": "", "cells": list(cells), "pictures": list(pictures), "findings": list(found), "text": list(text),
            "open": is_open}


def found_of(checked):
    return [{"place": line["subject"], "claim": line["the paper"], "verdict": line["verdict"], "rounds": line["rounds"], "here": line["here"], "reason": None} for line in checked]


def parts_of(document, rows):
    yield part("findings", TITLE, text=["Figures are the paper's; Too Epic is Brown and others, “Are Your Epochs Too Epic?” (2024)."],
               found=found_of(verdict.check(rows)))
    losses = loss_cells(rows)
    yield part("losses", "Where Prudence loses", losses, is_open=True,
               text=["In all rounds a peer, or classic, is better by more than 2 %. “The peer's by ours” is the ratio of their figures: 0.50 is half of ours."]
               if losses else ["Nowhere in all rounds by more than 2 %."])
    for name, title, beginning in GROUPS:
        some = of_kind(rows, beginning)
        commands = [one["command"] for one in document["parts"] if one["name"].startswith(name)]
        yield part(name, title, cells_of(some), svg_of(PICTURES[name](document, some)) if some else [], text=commands)
    counted = count_cells(rows)
    yield part("counts", "Hits, churns, slabs, fragmentation: classic → prudence (Figures 7 to 11)", counted)
    for default, name, title in MIXES:
        yield part(f"mixes-{name}", f"Counts under mixes: {title} (Figures 7 to 11)", mix_cells(rows, default), found=found_of(verdict.check_mixes(rows, default)),
                   is_open=default)
    yield part("changes", "Callbacks → prudence (Figures 7 to 11)", pictures=svg_of(counts_picture(rows)),
               text=["Red: worse than the worst exception that the paper names."])
    yield part("throughput", "Throughput against classic (Figure 13)", pictures=svg_of(throughput_picture(rows)))
    for figure in ("ns", "mb", "bytes_per_object", "rss_mb"):
        for kinds, cells in ratio_cells(rows, figure):
            what = verdict.AGAINST_PEERS[figure]
            yield part(f"peers-{what}-{kinds.partition(',')[0]}".lower().replace(" ", "-"), f"Against every peer: {what} ({kinds})", cells, is_open=True,
                       text=["The peer's figure divided by ours: above 1, ours is better."])


def headline(rows):
    checked, losses = verdict.check(rows), list(verdict.losses(rows))
    measured = [line for line in checked if line["verdict"] != MISSING]
    holds, fails, undecided = ([line["verdict"] for line in measured].count(word) for word in (HOLDS, FAILS, UNDECIDED))
    return (f"Of {len(checked)} findings {len(measured)} were measured: {holds} hold here, {fails} do not, {undecided} are undecided. "
            f"In {len(losses)} figures Prudence loses to a peer or to classic in all rounds.")


def warnings_of(document):
    bench = [row for run in document["runs"] for row in run["document"]["rows"] if "ns_per_pair_wall" in row]
    found = busy_warning(document) + waiting_warning(bench, document["host"].get("cpus", 0))
    if document["quick"]:
        found.append(f"The quick form: short runs, {count(document['rounds'], 'round')}. It shows where a full run is worth it, and decides little.")
    return found


# ------------------------------------------------------------------------------------------- tables of a page of ours

def tables_of(rows, parts):
    """{name: lines}"""
    found = {"findings": verdict.check(rows)} | {f"findings-mixes-{name}": verdict.check_mixes(rows, default) for default, name, _ in MIXES}
    return found | {one["name"]: one["cells"] for one in parts if one["cells"]}


def tables_measured(document, tables):
    """Returns the tables that only this document may replace."""
    measured, wanted = {run["part"] for run in document["runs"]}, {part.name for part in plan.parts(document["quick"])}
    if measured >= wanted:
        return tables
    whole = {name for name, *_ in GROUPS if {part for part in wanted if part.startswith(name)} <= measured}
    return {name: cells for name, cells in tables.items() if name in whole or ("mixes-" in name and "mix" in measured)}


def report(documents, made):
    document, = documents
    rows = figures.rows_of(document["runs"])
    parts = list(parts_of(document, rows))
    tables = tables_of(rows, parts)
    made.parts(document, NOTES, title="The paper's evaluation, in a process", source="the paper", headline=headline(rows),
               subtitle=f"evaluate {document['prudence']} · {document['date']} · {count(document['rounds'], 'round')}" + (" · quick" if document["quick"] else ""),
               warnings=warnings_of(document), parts=parts, versions=document["versions"])
    made.tables(tables)
    if made.into:
        write_results(made.into, "evaluate", tables_measured(document, tables), TITLE, "findings", verdicts)
    return headline(rows)
