# SPDX-License-Identifier: MIT
"""The page and tables of lab/run/structures, with a picture for each family, FILE-FAMILY.svg and .png."""

import statistics

import matplotlib.ticker

from ..page import busy_warning
from ..pictures import MEGA, OURS, THEIRS, legend_in, panel, plt
from . import verdict

TITLES = {"hash": "Hash tables", "map": "Ordered maps", "routes": "Routes (longest-prefix match)", "routes6": "Routes of IPv6"}
NOTES = [
    "Half of the objects stay, the other half come and go. A lookup is a section of its own, finds an object that stays, and reads it. An update "
    "removes an object, or adds it again. Each run is a process of its own, which fills its table first; medians of interleaved runs.",
    "ns: wall time of a thread for an operation, whatever the mixture. CPU: of all threads, those of the library among them.",
    "Lookups and updates by themselves: one lookup in 64 and one update in 16 is timed with the cycle counter, which waits for all instructions before, so these times are "
    "longer than those of operations that overlap. The clock's own time is subtracted. Means leave out the slowest hundredth; a percentile with "
    "less than ten times beyond it is not shown.",
    "Bytes an object: memory that filling added to resident memory, by objects. Peak: the highest resident memory of the run, less the memory before "
    "the table, by objects. Objects that wait for readers are included.",
    "Goals: lookups at least as fast as the best peer, updates at least twice as fast as the best peer of RCU, least memory (peak) of all. Where all operations are of one kind it is their ns, "
    "otherwise the mean of those that were timed. Undecided: the median misses the goal, but the quartiles of the repeats overlap it.",
    "Zipf: keys come by Zipf's law with 0.99, drawn before the run. Strings: 16 to 60 bytes like paths of URLs, made for each operation.",
    "With more threads than CPUs, ns contain the time that a thread waits for its turn.",
]
MARKERS = "osD^vPX"


# ------------------------------------------------------------------------------------------ pictures

def styles(rows):
    theirs = iter(THEIRS * len(rows))
    found = {}
    for i, (name, kind) in enumerate({row["subject"]: row["kind"] for row in rows}.items()):
        ours = kind == "ours"
        found[name] = {"color": OURS if ours else next(theirs), "linewidth": 2.4 if ours else 1.3, "markersize": 4,
                       "marker": MARKERS[i % len(MARKERS)],
                       "linestyle": "--" if kind == "lock" or (ours and name not in verdict.OURS.values()) else "-"}
    return found


def usual(row, **wanted):
    """Says whether the row is of numbers that come uniformly, with these values."""
    wanted = {"keys": "numbers", "draw": "uniform", "walk": 0, "writers": 0, "hits": 100, **wanted}
    return all(row[key] == value for key, value in wanted.items())


def most_measured(rows, key, **wanted):
    """The value of `key` of which there are the most rows; the largest of those."""
    found = [row[key] for row in rows if usual(row, **wanted)]
    return max(sorted(set(found), reverse=True), key=found.count, default=None)


def curves(rows, along, of, **wanted):
    """subject -> points"""
    found = {}
    for row in sorted((row for row in rows if usual(row, **wanted)), key=lambda row: row[along]):
        if (some := of(row)) and statistics.median(some) > 0:
            found.setdefault(row["subject"], []).append((row[along], statistics.median(some)))
    return found


def draw_panel(axes, found, *words):
    axes.set_visible(bool(found))
    panel(axes, found, *words)
    for axis in (axes.yaxis, axes.xaxis) if axes.get_xscale() == "log" else (axes.yaxis,):
        axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:,.15g}"))
    axes.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())


def ns(row):
    return verdict.values(row, "ns")


def draw(rows):
    style = styles(rows)
    figure = plt.figure(figsize=(14, 9.5), constrained_layout=True)
    upper, lower = figure.subfigures(2, 1, height_ratios=[12, 1])
    grid = upper.subplots(2, 3)
    threads = most_measured(rows, "threads", updates=0)
    size = most_measured(rows, "size")
    objects = verdict.number(size or 0) + " objects"
    draw_panel(grid[0][0], curves(rows, "size", ns, updates=0, threads=threads), style, f"Lookups, {threads} threads", "objects", "ns")
    draw_panel(grid[0][1], curves(rows, "size", ns, updates=100, threads=threads), style, f"Updates, {threads} threads", "objects", "ns")
    draw_panel(grid[0][2], curves(rows, "size", verdict.memory, updates=100, threads=threads), style,
          "Memory under updates, at the peak", "objects", "bytes an object")
    draw_panel(grid[1][0], curves(rows, "updates", ns, size=size, threads=threads), style, f"Mixtures, {objects}", "updates, %", "ns", "linear")
    draw_panel(grid[1][1], curves(rows, "updates", lambda row: verdict.values(row, "lookups", "p99_9_ns"), size=size, threads=threads),
          style, f"99.9 % of lookups, {objects}", "updates, %", "ns", "linear")
    draw_panel(grid[1][2], curves(rows, "updates", lambda row: verdict.values(row, "updates", "p99_9_ns"), size=size, threads=threads),
          style, f"99.9 % of updates, {objects}", "updates, %", "ns", "linear")
    legend_in(lower, grid.flat, 10)
    return figure


# -------------------------------------------------------------------------------------------- tables

def load_text(load):
    some = [f'{load["size"]:,} objects', f'{load["threads"]} thread' + "s" * (load["threads"] != 1), f'{load["updates"]} %']
    if load["keys"] != "numbers" or load["draw"] != "uniform":
        some.append(", ".join(name for name in (load["keys"], load["draw"]) if name not in ("numbers", "uniform")))
    if load["walk"]:
        some.append(f'walks of {load["walk"]}')
    if load["hits"] != 100:
        some.append(f'{load["hits"]} % hit')
    if load["writers"]:
        some.append("with a writer")
    return ", ".join(some)


def sort_key(load):
    return (load["keys"], load["draw"], load["walk"], load["hits"], load["writers"], load["threads"], load["size"], load["updates"])


def summary_cells(checked):
    return [{"subject": f'{line["family"]}: {line["goal"]}' + (f', {line["factor"]} times' if line["factor"] != 1 else ""),
             "loads": str(line["loads"]), **{word: str(line[word]) for word in (verdict.REACHED, verdict.UNDECIDED, verdict.MISSED)},
             "worst": f'{load_text(line["worst"][0])}: {line["worst"][1]}' if line["worst"] else "–"}
            for line in verdict.summary(checked)]


def goal_cells(checked, family):
    of_family = sorted((one for one in checked if one[0]["family"] == family), key=lambda one: sort_key(one[0]))
    return [{"subject": load_text(load), **{goal: str(one) if one else "–" for goal, one in verdicts.items()}} for load, verdicts in of_family]


def matrix(rows, of):
    """A line for each load, a column for each subject. Lines without any figure are skipped."""
    names, lines = list(dict.fromkeys(row["subject"] for row in rows)), []
    for load, some in sorted(verdict.loads(rows).items(), key=lambda one: sort_key(dict(zip(verdict.LOAD, one[0])))):
        figures = {row["subject"]: statistics.median(found) for row in some if (found := of(row))}
        if figures:
            lines.append({"subject": load_text(dict(zip(verdict.LOAD, load))),
                          **{name: verdict.number(figures[name]) if name in figures else "–" for name in names}})
    return lines


FIGURES = [  # name of the table, title, column of a row
    ("ns", "ns an operation", ns),
    ("cpu", "CPU time an operation, ns", lambda row: verdict.values(row, "all_cpu_ns")),
    ("lookups-tail", "99.9 % of lookups, ns", lambda row: verdict.values(row, "lookups", "p99_9_ns")),
    ("updates-tail", "99.9 % of updates, ns", lambda row: verdict.values(row, "updates", "p99_9_ns")),
    ("memory", "bytes an object, at the peak", verdict.memory),
]


def spread(row, *path):
    found = verdict.values(row, *path)
    if not found:
        return "–"
    low, high = verdict.quartiles(found)
    return f"{verdict.number(statistics.median(found))} ({verdict.number(low)} to {verdict.number(high)})"


def median(row, *path, scale=1):
    found = verdict.values(row, *path)
    return verdict.number(statistics.median(found) / scale) if found else "–"


def row_cells(row):
    kinds = {f"{kind} p{name}": median(row, kind, key) for kind in ("lookups", "updates")
             for name, key in (("50", "p50_ns"), ("99", "p99_ns"), ("99.9", "p99_9_ns"))}
    return {"subject": row["subject"], "load": load_text(row), "ns": spread(row, "ns"), "CPU": median(row, "all_cpu_ns"), **kinds,
            "bytes an object": median(row, "bytes_per_object"), "at the peak": median(row, "peak_bytes_per_object"),
            "peak RSS, MB": median(row, "peak_rss_bytes", scale=MEGA)}


def family_sections(rows, checked, family):
    of_family = [row for row in rows if row["family"] == family]
    sections = [(f"{family}-goals", f"{TITLES[family]}: goals", goal_cells(checked, family))]
    sections += [(f"{family}-{name}", f"{TITLES[family]}: {title}", matrix(of_family, of)) for name, title, of in FIGURES]
    return [section for section in sections if section[2]]


def headline(checked):
    some = []
    for goal, *_ in verdict.GOALS:
        verdicts = [verdicts[goal] for _, verdicts in checked if verdicts[goal]]
        some.append(f"{goal} in {sum(one.word == verdict.REACHED for one in verdicts)} of {len(verdicts)}")
    return f"Goals reached, by loads: {', '.join(some)}." if checked else ""


# --------------------------------------------------------------------------------------------- pages

def spread_note(rows):
    """How far repeats lie apart."""
    spreads = sorted((high - low) / statistics.median(found) for row in rows if len(found := ns(row)) > 1 for low, high in [verdict.quartiles(found)])
    if not spreads:
        return []
    return [f"Spread: the quartiles of a row's ns lie {100 * statistics.median(spreads):.0f} % of its median apart in half of the rows, "
            f"{100 * spreads[len(spreads) * 9 // 10]:.0f} % or less in nine of ten. Those of each row are in the HTML page."]


def versions(document):
    return ", ".join(f"{name} {version}" for name, version in document["versions"].items())


def refusals(rows):
    """A line for each subject that refused operations."""
    found = {}
    for row in rows:
        for why in sorted({repeat["not_measured"] for repeat in row["repeats"] if "not_measured" in repeat}):
            found.setdefault((row["subject"], why), []).append(load_text(row))
    return [f"Not measured: {subject}: {why} ({'; '.join(loads)})." for (subject, why), loads in found.items()]


def report(documents, made):
    rows = [row for document in documents for row in document["rows"] if row["family"] in TITLES]
    document = documents[0] | {"others_cpus": max(one["others_cpus"] for one in documents)}
    families = [family for family in TITLES if any(row["family"] == family for row in rows)]
    checked = verdict.check(rows)
    summary = [("goals", "Goals", summary_cells(checked))] if checked else []
    sections = summary + [section for family in families for section in family_sections(rows, checked, family)]
    svg = "".join(made.picture(draw([row for row in rows if row["family"] == family]), f"-{family}", 100) for family in families)
    made.note = busy_warning(document) + [f'Skipped: {one["subject"]}: {one["why"]}.' for one in document["skipped"]] + made.note
    made.page(document, "Structures", svg, [*(section[1:] for section in sections), ("All rows", [row_cells(row) for row in rows])],
              NOTES + refusals(rows) + spread_note(rows), [versions(document)], headline(checked))
    made.tables({name: cells for name, _, cells in sections})
    return headline(checked)
