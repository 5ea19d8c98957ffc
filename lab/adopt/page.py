# SPDX-License-Identifier: MIT
"""One report of all programs: before and after of the same run, medians with least and most, and losses shown as plainly as gains."""

import csv
import re
import statistics

from adopt.memory import growth
from measure.page import busy_warning, count, grouped, write_results
from measure.pictures import OURS, THEIRS, plt
from measure.verdict import ROUNDS, SAME, spread

TITLE = "Where Prudence loses"
ARROWS = {"less": "↓", "more": "↑"}
BUSY = 0.5           # CPUs that other programs took; above it, CPU times do not show differences of some per cent
WATCHED = "What waited before"
ENDURED = "Over a longer time"
NOTES = [
    "Both sides are built from the same source of Debian with the same flags; after has lab/adopt/patches/NAME.patch as well, and libprudence. Rounds take turns: "
    "before, after, before, after. A figure is the median of the rounds, with the least and the most in brackets.",
    "The last column compares round by round: the median of after ÷ before, with the least and the most. Better or worse is said where all rounds, "
    f"{ROUNDS} at least, agree by more than {SAME:.0%}.",
    "↓: less is better; ↑: more is. A program's own tests are the same on both sides.",
]


def rounds_of(document, program, side):
    """{round: values}"""
    return {run["round"]: run["values"] for run in document["runs"]
            if (run["kind"], run["program"], run.get("side")) == ("round", program.name, side)}


def both_of(document, program):
    """[(before, after)] of the rounds that both sides have."""
    before, after = (rounds_of(document, program, side) for side in ("before", "after"))
    return [(before[number], after[number]) for number in sorted(before.keys() & after.keys())]


def ratios(pairs, key):
    return [theirs[1][key] / theirs[0][key] for theirs in pairs if theirs[0][key]]


def verdict(measure, found, rounds):
    """Judges ratios of after ÷ before. A round whose before is 0 has no ratio, and agrees with no other."""
    if not found:
        return "–"
    if len(found) < max(rounds, ROUNDS):
        return "unclear"
    if measure.better == "more":
        found = [1 / one if one else float("inf") for one in found]
    if all(one < 1 - SAME for one in found):
        return "better"
    if all(one > 1 + SAME for one in found):
        return "worse"
    return "the same" if all(abs(one - 1) <= SAME for one in found) else "unclear"


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:,.3g}"


def measure_cells(document, program):
    """A line for each measure."""
    pairs = both_of(document, program)
    lines = []
    for one in program.measures if pairs else ():
        found = ratios(pairs, one.key)
        lines.append({"subject": program.title, "what": f"{one.title}, {one.unit} {ARROWS[one.better]}",
                      "before": spread([before[one.key] for before, _ in pairs], number), "after": spread([after[one.key] for _, after in pairs], number),
                      "after ÷ before": spread(found, lambda value: f"{value:.2f}") if found else "–", "verdict": verdict(one, found, len(pairs))})
    return lines


def tests_cells(document, program):
    found = {run["side"]: run for run in document["runs"] if (run["kind"], run["program"]) == ("tests", program.name)}
    if len(found) < 2:
        return []
    said = {side: f"{run['passed']} passed" + (f", {len(run['failing'])} failed ({', '.join(run['failing'])})" if run["failing"] else "")
            + (f", {run['skipped']} skipped" if run["skipped"] else "") for side, run in found.items()}
    return [{"subject": program.title, "what": "its own tests", "before": said["before"], "after": said["after"], "after ÷ before": "–", "verdict": "–"}]


# -------------------------------------------------------------------------------------------------- prudence-latent

def watched_figures(run):
    """Sums one round over its processes. Waits are those of the process that queued most."""
    every = run["processes"]
    calls = max((one["callbacks"] for one in every), key=lambda calls: calls["queued"], default={})
    waits = calls.get("waits") or {"median_ns": 0, "p99_ns": 0, "most_ns": 0}
    seconds = sum(one["seconds"] for one in every) or 1
    return {"callbacks, per s": sum(one["callbacks"]["queued"] for one in every) / seconds,
            "of them waited at once, most": max((one["callbacks"]["most_waiting"] for one in every), default=0),
            "half waited, ms": waits["median_ns"] / 1e6, "p99, ms": waits["p99_ns"] / 1e6,
            "memory behind them, most, KB": max((one["bytes"]["most"] for one in every), default=0) / 1e3,
            "updaters' waits, per s": sum(one["sleeps"]["calls"] for one in every) / seconds,
            "time in them, %": 100 * sum(one["sleeps"]["ns"] for one in every) / 1e9 / seconds,
            "counted deferrals, per s": sum(one["deferred"] for one in every) / seconds,
            "refused, per s": sum(one["refused"] for one in every) / seconds}


def watched_cells(document, known):
    """Returns a line for each program with observations: medians of the rounds, and the cost of watching."""
    lines = []
    for program in known.values():
        runs = {how: {run["round"]: run for run in document["runs"] if (run["kind"], run["program"], run.get("watched")) == ("watched", program.name, how)}
                for how in (False, True)}
        rounds = sorted(runs[False].keys() & runs[True].keys())
        if not any(runs[True][one]["processes"] for one in rounds):
            continue
        found = [watched_figures(runs[True][one]) for one in rounds]
        costs = [runs[True][one]["cost"] / runs[False][one]["cost"] for one in rounds if runs[False][one]["cost"]]
        busy = any(runs[how][one]["others_cpus"] > BUSY for how in runs for one in rounds)
        cost = "busy" if busy or not costs else spread(costs, lambda value: f"{value:.3f}")
        lines.append({"subject": program.title} | {key: number(statistics.median(one[key] for one in found)) for key in found[0]} |
                     {"CPU time with it ÷ without": cost})
    return lines


# ------------------------------------------------------------------------------------------------------ a longer time

def endured_of(document, program):
    """{side: run}"""
    return {run["side"]: run for run in document["runs"] if (run["kind"], run["program"]) == ("endured", program.name)}


def endured_cells(document, known):
    """A line for each side."""
    return [{"subject": program.title, "side": side, "minutes": number(run["seconds_asked"] / 60), "done": number(run["done"]),
             "most memory, MB": number(max(run["bytes"]) / 1e6), "at the end, MB": number(run["bytes"][-1] / 1e6),
             "growth of the second half, %": number(growth(run["bytes"]))}
            for program in known.values() for side, run in sorted(endured_of(document, program).items(), reverse=True)]


# ------------------------------------------------------------------------------------------------------------ pictures

def endured_picture(document, program):
    figure, axes = plt.subplots(figsize=(8, 3), constrained_layout=True)
    for side, run in endured_of(document, program).items():
        step = run["seconds_asked"] / 60 / len(run["bytes"])
        axes.plot([i * step for i in range(len(run["bytes"]))], [one / 1e6 for one in run["bytes"]], color=OURS if side == "after" else THEIRS[0], label=side)
    axes.set(xlabel="minutes", ylabel="memory, MB", ylim=(0, None), title=f"{program.title}: {program.long_load}")
    axes.legend()
    return figure


def picture(document, program):
    """Draws after ÷ before of each measure, one dot a round. Smaller is better for each measure."""
    pairs = both_of(document, program)
    lines = [(one, [ratio if one.better == "less" else 1 / ratio for ratio in ratios(pairs, one.key) if ratio]) for one in program.measures]
    lines = [(one, found) for one, found in lines if found]
    if not lines:
        return None
    figure, axes = plt.subplots(figsize=(8, 0.9 + 0.42 * len(lines)), constrained_layout=True)
    for place, (_, found) in enumerate(reversed(lines)):
        axes.plot(found, [place] * len(found), "o", color=OURS, alpha=0.45, markersize=5)
        axes.plot([statistics.median(found)] * 2, [place - 0.3, place + 0.3], color=OURS, linewidth=2.4)
    axes.axvline(1, color="#555555", linewidth=1)
    axes.set_yticks(range(len(lines)), [one.title for one, _ in reversed(lines)])
    axes.set(xscale="log", xlabel="after by before, as a cost: below 1 is better")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    return figure


# -------------------------------------------------------------------------------------------------------------- report

def part_of(document, program, made):
    drawn = picture(document, program)
    return {"name": program.name, "title": program.title, "figures": "", "pictures": [made.picture(drawn, f"-{program.name}")] if drawn else [],
            "text": [f"Before: {program.before}", f"After: {program.after}"], "findings": [], "open": True,
            "cells": tests_cells(document, program) + measure_cells(document, program)}


def watched_part(cells):
    return {"name": "latent", "title": WATCHED, "figures": "", "pictures": [], "findings": [], "open": True, "cells": cells,
            "text": ["The programs as they are, run by prudence-latent and without it in turns. 0: nothing was seen."]}


def endured_part(document, known, cells, made):
    drawn = [made.picture(endured_picture(document, one), f"-{one.name}-endured") for one in known.values() if endured_of(document, one)]
    return {"name": "endured", "title": ENDURED, "figures": "", "pictures": drawn, "findings": [], "open": True, "cells": cells,
            "text": ["Both sides run at the same time, under the same load."]}


def headline(cells):
    said = {word: sum(line["verdict"] == word for line in cells) for word in ("better", "worse", "the same", "unclear")}
    return ", ".join([*(f"{number} {word}" for word, number in said.items() if number), f"of {count(sum(said.values()), 'figure')}."])


def with_kept_rows(table, cells, known):
    """`cells` in the place of the same programs' rows of `table`; rows of programs without a measurement here stay. In the order of `known`."""
    measured, order = {line["subject"] for line in cells}, [one.title for one in known.values()]
    kept = [line for line in csv.DictReader(table.read_text().splitlines()) if line["subject"] not in measured] if table.is_file() else []
    return sorted(kept + cells, key=lambda line: order.index(line["subject"]) if line["subject"] in order else len(order))


def losses(cells):
    """The figures that became worse, without ranges. The CSV file has all."""
    kept = [row for row in cells if row["verdict"] == "worse"]
    return grouped([{title: re.sub(r" \[.*\]$", "", cell) for title, cell in row.items() if title not in ("after ÷ before", "verdict")} for row in kept])


def write_rows(docs, name, table, cells, known, title, arrange=list):
    """Into TABLE of results-NAME.md, as write_results; the rows of others are kept."""
    rows = with_kept_rows(docs / f"results/data/{name}/{table}.csv", cells, known)
    write_results(docs, name, {table: rows}, title, table, arrange)


def report(document, made, known):
    """`known`: {name: program}, of all."""
    chosen = [one for one in known.values() if any(run["program"] == one.name for run in document["runs"])]
    cells = [line for one in chosen for line in tests_cells(document, one) + measure_cells(document, one)]
    watched, endured = watched_cells(document, known), endured_cells(document, known)
    made.parts(document, NOTES, title="Programs moved to Prudence", subtitle=f"make adopt · {document['commit']} · {document['date']}",
               warnings=busy_warning(document), headline=headline(cells), source="", versions=[],
               parts=[part_of(document, one, made) for one in chosen] + ([watched_part(watched)] if watched else [])
               + ([endured_part(document, known, endured, made)] if endured else []))
    tables = (("adopt", "adopt", cells, TITLE, losses), ("latent", "latent", watched, WATCHED, list), ("hours", "endured", endured, ENDURED, grouped))
    tables = [one for one in tables if one[2]]
    made.tables({table: rows for _, table, rows, _, _ in tables})
    for name, table, rows, title, arrange in tables if made.into else ():
        write_rows(made.into, name, table, rows, known, title, arrange)
    return headline(cells)
