# SPDX-License-Identifier: MIT
"""The page and tables of prudence-variants: latency by load, cost by rate of calls, and each finding of the thesis's 8.3.

With --into, DOCS/results/data/variants/TABLE.csv, the table of DOCS/results-variants.md and the picture DOCS/images/variants.png are replaced. Text is
not changed."""

import shutil

from measure.page import count, write_tables
from measure.pictures import OURS, THEIRS, legend_in, panel, plt
from . import sources, verdict

MICRO = 1e3
DASHES = {"induced": ":", "batch": ":", "taskq": ":", "barrier": "--", "xrcu": "--", "krcud": "--", "preempt": "--"}
NOTES = [
    "A place is a thread that reads, and that says when it switches and when it is idle. Latency by load: one callback after "
    "the other, with places that read and switch without a pause; above two places there are more threads than CPUs.",
    "Cost by rate: a place that works half a microsecond between two switches calls at that rate, compared with one that only works. The cost of "
    "a callback is the time in calls, in switches beyond what they take without calls, and of threads that are no places.",
    "A cost below a thousandth of the time of two places cannot be distinguished from noise, and counts as that.",
    "Dotted lines: quiescent states are induced. Dashed: checked by time. Solid: checked at each switch; ours, and liburcu.",
    f"Medians of {verdict.RUNS} or more interleaved runs, each in a fresh process. A verdict is undecided when one draw from the runs in "
    f"twenty, or more, disagrees with it; and when a run was too short for one of its figures: fewer than {verdict.BEYOND} latencies on either "
    f"side of a quantile, {verdict.CALLS} callbacks or {verdict.GRACE_PERIODS} grace periods in a cost, {verdict.IDLE_SECONDS} s of idle time.",
]


MARKERS = "osD^v"


def styles(names):
    """A colour and a marker of its own for each."""
    colours = {OURS: 0} | dict.fromkeys(THEIRS, 0)
    theirs = iter(THEIRS * len(names))
    found = {}
    for name in names:
        colour = OURS if name in ("memb", "qsbr") else next(theirs)
        found[name] = {"color": colour, "linestyle": DASHES.get(name, "-"), "marker": MARKERS[colours[colour]],
                       "markersize": 4, "linewidth": 2.2 if colour == OURS else 1.3}
        colours[colour] += 1
    return found


def series(rows, load, along, x_of, y_of):
    """variant -> points, in order."""
    found = {}
    for row in sorted((row for row in rows if row["load"] == load), key=lambda row: row[along]):
        if x_of(row) > 0 and y_of(row) > 0:
            found.setdefault(row["variant"], []).append((x_of(row), y_of(row)))
    return found


def drawn_cost(row):
    """Returns the cost, and leaves out 0."""
    return row["cost_ns"] if row["cost_ns"] >= verdict.least_cost(row["rate"]) else 0


def draw(rows):
    style = styles(list(dict.fromkeys(row["variant"] for row in rows)))
    calls = [row for row in rows if row["load"] == "call" and row["workers"] == 1]
    paced = [row for row in rows if row["load"] == "paced" and row["workers"] == 1 and row["readers"] == 1]
    figure = plt.figure(figsize=(13, 11), constrained_layout=True)
    upper, lower = figure.subfigures(2, 1, height_ratios=[10, 1])
    grid = upper.subplots(2, 2)
    for axes, key, name in ((grid[0][0], "p50_ns", "median"), (grid[0][1], "p99_ns", "p99")):
        panel(axes, series(calls, "call", "readers", lambda row: row["readers"] + 1, lambda row: row[key] / MICRO), style,
                   f"Latency by load: {name}", "places", "call to callback, µs", "linear")
    panel(grid[1][0], series(paced, "paced", "rate", lambda row: row["rate"], drawn_cost), style,
               "Cost by rate of calls", "calls a second", "cost of a callback, ns")
    panel(grid[1][1], series(paced, "paced", "rate", lambda row: row["p50_ns"] / MICRO, drawn_cost), style,
               "Latency against cost, from few calls to many", "median latency, µs", "cost of a callback, ns")
    legend_in(lower, grid.flat, 9)
    return figure


# ---------------------------------------------------------------------------------------- tables

def figure_of(function, *arguments, show=verdict.time, **wanted):
    try:
        return show(function(*arguments, **wanted))
    except verdict.NotMeasured:
        return "–"


def names(rows, load):
    return list(dict.fromkeys(row["variant"] for row in rows if row["load"] == load))


def complexity(_):
    return [{"subject": name, "own lines": str(own), "with what it shares": str(whole),
             "patch of 2002, all architectures / one": sources.THESIS.get(name, "–")}
            for name in sources.FILES for own, whole in [sources.lines(name)]]


def idle_overhead(rows):
    results = verdict.Results(rows)
    return [{"subject": name, "a switch refers to": sources.IDLE[name][0], "by time": sources.IDLE[name][1],
             "a switch": figure_of(results.switch, name),
             "a preempted section, two switches": figure_of(results.value, "preempt", name, "ns"),
             "CPU time in an idle second": figure_of(results.value, "idle", name, "cpu_ns", show=lambda ns: verdict.time(ns * 1e3)),
             "sleeps in it": figure_of(results.value, "idle", name, "sleeps_per_second", show=lambda count: f"{count:.0f}")}
            for name in names(rows, "idle") if name in sources.IDLE]


def grace_periods(rows):
    results = verdict.Results(rows)
    return [{"subject": name, **{f"with {count(readers, 'reader')}": figure_of(results.value, "synchronize", name, "ns", readers=readers) for readers in (0, 1)},
             **{f"call to callback with {readers}": figure_of(results.latency, name, readers) for readers in results.loads_of_call()}}
            for name in names(rows, "synchronize")]


def cost(results, name, rate):
    least = verdict.least_cost(rate)
    return figure_of(results.cost, name, rate, show=lambda ns: "≤ " * (ns <= least) + verdict.time(ns))


def costs(rows):
    results = verdict.Results(rows)
    return [{"subject": name, **{f"{rate:,}/s": " / ".join((cost(results, name, rate), figure_of(results.paced_latency, name, rate)))
                                 for rate in results.rates()}}
            for name in names(rows, "paced")]


SECTIONS = [  # name of the table, title, its rows
    ("findings", "Findings of the thesis", verdict.check),
    ("complexity", "Complexity (Table 8.1)", complexity),
    ("idle", "Overhead when idle (Table 8.2)", idle_overhead),
    ("grace-periods", "A grace period: waiting for one, and latency by load (Figures 8.7 and 8.8)", grace_periods),
    ("cost", "Cost and median latency of a callback by rate of calls", costs),
]


def headline(checked):
    verdicts = [line["verdict"] for line in checked]
    return (f'Of {len(verdicts)} findings of 2004, {verdicts.count("holds")} hold here, '
            f'{verdicts.count("does not hold")} do not, {verdicts.count("undecided")} are undecided, '
            f'{verdicts.count("not measured")} were not measured.')


def report(documents, made):
    rows = [row for document in documents for row in document["rows"]]
    sections = [(name, title, cells) for name, title, make in SECTIONS if (cells := make(rows))]
    tables = {name: cells for name, _, cells in sections}
    made.page({"skipped": [], **documents[0]}, "RCU variants", made.picture(draw(rows)), [section[1:] for section in sections], NOTES,
              [f'prudence {documents[0]["prudence"]}', f'liburcu {documents[0]["liburcu"]}'], headline(tables["findings"]))
    made.tables(tables)
    if made.into:
        write_tables(made.into / "results/data/variants", tables)
        shutil.copy(made.source.with_suffix(".png"), made.into / "images/variants.png")
    return headline(tables["findings"])
