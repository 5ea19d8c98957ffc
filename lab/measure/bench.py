# SPDX-License-Identifier: MIT
"""Pages of prudence-bench: memory and speed over time (endurance), nanoseconds per pair by object size (pairs)."""

import sys

import matplotlib.ticker

from .page import Refused, busy_warning, count, text_table, waiting_warning
from .pictures import MEGA, legend_below, plt, subject_style


def is_ours(row):
    return row["versions"]["library"] == "prudence"


def label(row):
    """urcu+jemalloc -> call_rcu over jemalloc."""
    name = row["subject"]
    if name.startswith("urcu+"):
        return "call_rcu over " + name.removeprefix("urcu+")
    return {"prudence": "Prudence"}.get(name, name)


def version(row):
    """Plain malloc has no library, and so no version of it."""
    versions, allocator = row["versions"], row["versions"]["allocator"]
    library = f'{versions["library"]} {versions["library_version"]}' if versions["library_version"] else ""
    return library if is_ours(row) else ", ".join(filter(None, [library, f'{allocator["name"]} {allocator["version"]}']))


def measured(document):
    """The rows that have a result, a crash of the subject apart."""
    return [row for row in document["rows"] if "versions" in row]


def warnings_of(document):
    return busy_warning(document) + waiting_warning([row for row in document["rows"] if "ns_per_pair_wall" in row], document["host"].get("cpus", 0))


# ------------------------------------------------------------------------------------- endurance

def samples(row):
    """Seconds, resident megabytes, updates so far."""
    taken = next(run["samples"] for run in row["repeats"] if run.get("samples"))
    return ([ms / 1e3 for ms, *_ in taken], [resident / MEGA for _, resident, *_ in taken], [done for *_, done in taken])


def rates(seconds, done, window=0.25):
    """Millions of updates a second, window by window."""
    points, last = [], 0
    for i, second in enumerate(seconds):
        if second - seconds[last] >= window:
            rate = (done[i] - done[last]) / (second - seconds[last]) / MEGA
            points.append(((second + seconds[last]) / 2, rate))
            last = i
    return zip(*points) if points else ((), ())


def draw_endurance(rows):
    figure, (memory, speed) = plt.subplots(2, 1, figsize=(10, 7.6), sharex=True, height_ratios=[2.2, 1], constrained_layout=True)
    used = {}
    for row in rows:
        seconds, resident, done = samples(row)
        style = subject_style(row["subject"], used)
        memory.plot(seconds, resident, label=label(row), **style)
        speed.plot(*rates(seconds, done), **style)
        if row.get("out_of_memory"):
            memory.plot(seconds[-1], resident[-1], "x", color=style["color"], markersize=10, markeredgewidth=3)
    limit = rows[0]["limit"] / MEGA
    memory.axhline(limit, color="#444444", linewidth=1, linestyle=(0, (4, 3)))
    memory.annotate("memory limit", (0, limit), xytext=(4, 4), textcoords="offset points", color="#444444", fontsize=9)
    memory.set(yscale="log", ylabel="resident memory, MB", title="Memory under an update storm")
    speed.set(yscale="log", ylabel="million updates/s", xlabel="seconds", title="Updates per second")
    for axes in (memory, speed):
        axes.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        axes.margins(x=0.01)
    memory.set_ylim(top=limit * 1.6)
    legend_below(figure, [memory], 3)
    return figure


def share(part, whole):
    return f"{100 * part / whole:.2f} %" if whole else "–"


def endurance_cells(row):
    counters = row.get("counters", {})
    return {
        "subject": label(row),
        "updates/s": f'{row["pairs_per_second"] / MEGA:.1f} M',
        "ns/update": f'{row["ns_per_pair_wall"]:.1f}',
        "CPU ns": f'{row["ns_per_pair_cpu"]:.1f}',
        "peak resident": f'{row["peak_rss_bytes"] / MEGA:.0f} MB',
        "peak latent": f'{row["latent_peak_bytes"] / MEGA:.1f} MB',
        "hits": share(counters.get("hits", 0), counters.get("allocations", 0)),
        "object-cache churns": str(counters.get("object_cache_churns", "–")),
        "slab churns": str(counters.get("slab_churns", "–")),
        "out of memory": f'after {row["measured_seconds"]:.1f} s' if row["out_of_memory"] else "no",
    }


def endurance_headline(rows):
    """Ours against the others, in one sentence; empty when one of them is missing."""
    ours = next((row for row in rows if row["subject"] == "prudence"), None)
    others = [row for row in rows if not is_ours(row)]
    if not ours or not others:
        return ""
    fastest = max(others, key=lambda row: row["pairs_per_second"])
    least = min(row["peak_rss_bytes"] for row in others)
    times = ours["pairs_per_second"] / fastest["pairs_per_second"]
    return (f'Prudence makes {ours["pairs_per_second"] / MEGA:.0f} million updates a second within '
            f'{ours["peak_rss_bytes"] / MEGA:.0f} MB: {times:.0f} times as many as the fastest of '
            f'the others ({label(fastest)}, {fastest["pairs_per_second"] / MEGA:.1f} million), of '
            f'which none stays under {least / MEGA:.0f} MB.')


ENDURANCE_NOTES = [
    "Each writer replaces the entries of its own list of 64 objects, one after the other, without "
    "a pause; readers traverse all lists. Live memory never grows: only garbage grows that "
    "has not found its way back yet. Both vertical axes are logarithmic.",
    "ns/update is wall time of one writer; CPU ns is the CPU time of the writers and of the "
    "threads that free for them (call_rcu has one), per update. It does not include objects that still "
    "wait to be freed at the end.",
    "Peak resident is the whole process, VmHWM. Peak latent counts objects that were retired and not yet free: "
    "for Prudence its own count, for call_rcu the callbacks not called yet.",
    "Hits are allocations served without the node; an object-cache churn is a pair of a refill and "
    "a flush, a slab churn a pair of a grow and a shrink.",
]


# ----------------------------------------------------------------------------------------- pairs

def setting_of(row):
    return (row["threads"], row["readers"], row["batch"], row.get("live", 0), row.get("order", "tight"))


def curves(rows):
    """(subject, and its setting) -> {size: row}, in order of appearance."""
    found = {}
    for row in rows:
        key = (row["subject"], *setting_of(row))
        found.setdefault(key, {})[row["size"]] = row
    return found


def draw_pairs(rows):
    settings = sorted({setting_of(row) for row in rows})
    figure, grid = plt.subplots(len(settings), 1, figsize=(10, 5.2 * len(settings)), squeeze=False, constrained_layout=True)
    used = {}
    for axes, (threads, readers, batch, live, order) in zip(grid[:, 0], settings):
        for (subject, *setting), by_size in curves(rows).items():
            if setting == [threads, readers, batch, live, order]:
                sizes = sorted(by_size)
                axes.plot(sizes, [by_size[size]["ns_per_pair_wall"] for size in sizes], marker="o",
                          markersize=3, label=subject, **subject_style(subject, used))
        axes.set(xscale="log", yscale="log", xlabel="object size, bytes", ylabel="ns per pair",
                 title=f"{count(threads, 'writer')}, {count(readers, 'reader')}, "
                       f"{'one at a time' if batch == 1 else f'batches of {batch}'}"
                       + (f", {order}, {live:,} live" if live else ""))
        axes.set_xticks(sorted({row["size"] for row in rows}))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def by_plain(row, key):
    found = row.get("by_plain", {}).get(key)
    return f'{found["ratio"]:.2f} [{found["min"]:.2f}, {found["max"]:.2f}]' if found else "–"


def pairs_cells(row):
    spread = row["spread"]["ns_per_pair_wall"]
    return {
        "subject": row["subject"], "size": str(row["size"]), "writers": str(row["threads"]),
        "readers": str(row["readers"]), "batch": str(row["batch"]),
        "ns/pair": f'{row["ns_per_pair_wall"]:.2f}',
        "min to max": f'{spread["min"]:.2f} to {spread["max"]:.2f}',
        "CPU ns": f'{row["ns_per_pair_cpu"]:.2f}',
        "÷ plain, one at a time": by_plain(row, "single"), "÷ plain, batches of 1,024": by_plain(row, "batched"),
        "rounds": str(row.get("rounds", "–")) + (", stolen" if row.get("stolen") else ""),
        "peak resident": f'{row["peak_rss_bytes"] / MEGA:.1f} MB',
        "peak latent": f'{row["latent_peak_bytes"] / MEGA:.1f} MB',
        "readers' mode": row.get("reader_mode", "–"),
    }


PAIRS_NOTES = [
    "A pair is one object allocated, touched in one byte, and retired; nanoseconds of one writer. "
    "Plain subjects free at once and have no reader to wait for: they are the floor.",
    "Medians of interleaved runs, each in a fresh process. Rounds in which the host took more than 2 % of the CPUs' time do not count, "
    "unless all are like that.",
    "÷ plain: CPU time by that of the best plain malloc/free pair of the same run, with the range over its rounds. Subjects named floor-* are "
    "no allocators: they show the cost of the loop, of an array of the thread and of restartable sequences alone.",
]

KINDS = {
    "endurance": ("Endurance", draw_endurance, endurance_cells, endurance_headline, ENDURANCE_NOTES),
    "pairs": ("Allocate and retire", draw_pairs, pairs_cells, lambda rows: "", PAIRS_NOTES),
}


def report(documents, made):
    document, = documents
    rows = measured(document)
    kind = next((row["scenario"] for row in rows if row["scenario"] in KINDS), None)
    if not kind:
        raise Refused(f"{made.source} has no rows with a result")
    title, draw, cells_of, headline, notes = KINDS[kind]
    cells, warnings = [cells_of(row) for row in rows], warnings_of(document)
    made.page(document, title, made.picture(draw(rows)), [("In numbers", cells)], notes, sorted({version(row) for row in rows}),
              headline(rows), warnings)
    for warning in warnings:
        print(f"report: {warning}", file=sys.stderr)
    return f"{text_table(cells)}\n\n{headline(rows)}" if kind == "endurance" else ""
