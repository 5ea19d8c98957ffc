# SPDX-License-Identifier: MIT
"""The page and tables of the lines of tools/kernel/bench: also FILE.json, and FILE-mixes.svg and .png."""

import datetime
import os
import platform
import re
import statistics

from . import kernel_verdict
from .keep import write
from .page import text_table
from .pictures import OURS, THEIRS, plt
from .verdict import spread as spread_of

SUBJECTS = ["prudence", "kfree_rcu", "kfree_rcu-headless", "call_rcu", "kmalloc-kfree", "prudence-free"]
COLOURS = dict(zip(SUBJECTS, [OURS, *THEIRS[:4], "#7fb79f"]))
NOTES = [
    "Guests are emulated (no KVM): times are ratios at best. Under icount a guest nanosecond is one "
    "instruction of the one CPU, the same from run to run; caches and contention do not show there.",
    "Pairs: allocate and defer (or free) at once, kmalloc-sized. Deferred work (batches of kfree_rcu, "
    "callbacks of call_rcu, Prudence's merges) is counted apart: all CPUs' time but the idle time, from the first pair "
    "until everything that was deferred is free. 7.2 counts short idle times by ticks, so some milliseconds of a run are "
    "missing there, ten instructions a pair and more: compare the loop's figures. init_on_alloc: the kernel writes "
    "zeros into allocated memory, for each allocator.",
    "kfree_rcu and call_rcu need a head of 16 bytes in the object; at 8 bytes they get 16.",
    "Latency: a clock is read before and after each pair, and an interruption of the pair is in its time. A figure is at most 1/16 too small (but the slowest). "
    "With several CPUs they are emulated at once, each by a thread of a machine that may be busy: ratios of medians of many rounds at best.",
    "A cross in the picture of the update storm: an expedited grace period ended, or grace periods came twice as often as at first.",
    "Memory: used pages of the guest, every 10 ms, while every CPU replaces entries of its own list of "
    "512-byte objects. All allocations may wait and reclaim before they fail, and a failed one is tried again a tick "
    "later, whoever made it. A reader that stays 100 ms in each of its sections makes grace periods as long.",
    "Mixes: the same requests for each subject, as fast as they go or, paced, at the same times. Prudence counts "
    "itself; SLUB's slow paths are counted by probes, which slow it down (Debian's kernels have no SLUB_STATS). "
    "A hit is an allocation that needs no more than its CPU has: object cache, or latent cache after a "
    "merge; the CPU's slab (6.1); the CPU's two sheaves (7.2).",
    "An object-cache churn is a refill and a flush: up to 64 objects of Prudence at a time, a sheaf of SLUB to or "
    "from the barn of its node (7.2); on 6.1 a slab is taken for the CPU, and each free to another slab is a flush "
    "of one object. A slab churn is a grow and a shrink. f_t: bytes of slabs by bytes of live objects when all "
    "requests are made.",
]


def group(rows, *keys):
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def spread(values, form="{:,.0f}"):
    return spread_of(values, form.format, "{} ({} to {})")


def median(rows, key="ns_per_pair"):
    return statistics.median(row[key] for row in rows)


def pair_cells(rows, key):
    middles = {about: median(some, key) for about, some in group(rows, "subject", "size").items()}
    sizes = sorted({size for _, size in middles})

    def line(subject, cell, *needed):
        return {"subject": subject} | {f"{size} B": cell(size) if all((name, size) in middles for name in needed) else "–" for size in sizes}
    return [line(name, lambda size, name=name: f"{middles[name, size]:,.0f}", name) for name in SUBJECTS] + [
        line(f"{other} / prudence", lambda size, other=other: f'{middles[other, size] / middles["prudence", size]:.1f}', other, "prudence")
        for other in ("call_rcu", "kfree_rcu")]


def deviation_cells(rows):
    """Mean and standard deviation of the rounds, as the paper's Figure 6 has them; nothing of a single round."""
    sizes, cells = sorted({row["size"] for row in rows}), {}
    for (subject, size), some in group(rows, "subject", "size").items():
        values = [row["ns_per_pair"] for row in some]
        if len(values) > 1:
            cells.setdefault(subject, {})[f"{size} B"] = f"{statistics.mean(values):,.0f} ± {statistics.stdev(values):,.1f}"
    return [{"subject": subject} | {f"{size} B": found.get(f"{size} B", "–") for size in sizes} for subject, found in cells.items()]


LATENCY_FIGURES = {name: (lambda row, key=key: row[key], "{:,.0f}") for name, key in (
    ("half are faster than", "p50_ns"), ("99 %", "p99_ns"), ("99.9 %", "p999_ns"), ("99.99 %", "p9999_ns"), ("slowest", "most_ns"))}


def latency_cells(rows):
    return [{"subject": f"{size} B, {subject}"} | spreads(some, LATENCY_FIGURES) for (size, subject), some in group(rows, "size", "subject").items()]


ENDURANCE_FIGURES = {  # of a row, and how it is shown
    "updates, M": (lambda row: row["updates"] / 1e6, "{:.2f}"), "before, MB": (lambda row: row["before_kb"] / 1024, "{:,.0f}"),
    "mean, MB": (lambda row: row["mean_kb"] / 1024, "{:,.0f}"), "peak, MB": (lambda row: row["peak_kb"] / 1024, "{:,.0f}"),
    "longest allocation, ms": (lambda row: row["longest_ms"], "{:,.0f}"), "failed allocations": (lambda row: row["failures"], "{:,.0f}"),
    "first at, s": (lambda row: row["failed_ms"] / 1e3, "{:.1f}"), "killed": (lambda row: row["kills"], "{:,.0f}"),
}
MIX_FIGURES = {
    "hits, %": (lambda row: 100 * row["hits"] / row["allocations"], "{:.1f}"),
    "object-cache churns": (lambda row: row["object_cache_churns"], "{:,.0f}"),
    "slab churns, KB": (lambda row: row["slab_churns"] * row["slab_bytes"] / 1024, "{:,.0f}"),
    "peak slabs, KB": (lambda row: row["slabs_peak"] * row["slab_bytes"] / 1024, "{:,.0f}"), "f_t": (lambda row: row["f_t"] / 1000, "{:.1f}"),
}
PEAK_FIGURES = {name: name for name in ("slabs", "live", "latent", "cached", "overflowed", "preflushed", "premoved")} | {
    "objects a CPU may cache": "object_cache"}


def spreads(rows, figures):
    return {name: spread([figure(row) for row in rows], form) for name, (figure, form) in figures.items()}


def endurance_cells(rows):
    return [{"subject": subject, "runs": str(len(some))} | spreads(some, ENDURANCE_FIGURES) for (subject,), some in group(rows, "subject").items()]


def mix_cells(rows):
    cells = [{"subject": f"{subject}, {mix}"} |
             (spreads(some, MIX_FIGURES) if all(row["counted"] for row in some) else dict.fromkeys(MIX_FIGURES, "–")) |
             {name: spread([row[key] for row in some]) for name, key in (("ms", "ms"), ("grace periods", "grace_periods"))}
             for (mix, subject), some in group(rows, "mix", "subject").items()]
    return sorted(cells, key=lambda line: line["subject"].split(", ")[1])


def peak_cells(rows):
    """Returns the states of Prudence's objects when the number of slabs is highest."""
    ours = [row for row in rows if row["subject"] == "prudence"]
    return [{"subject": f"prudence, {mix}"} | {name: spread([row[key] for row in some]) for name, key in PEAK_FIGURES.items()}
            for (mix,), some in group(ours, "mix").items()]


def draw_mixes(rows):
    """Bars side by side; the whiskers are from where to where."""
    boots = group(rows, "kernel", "boot")
    figure, axes = plt.subplots(len(boots), len(MIX_FIGURES), figsize=(16, 3.2 * len(boots)), constrained_layout=True, squeeze=False)
    subjects = [name for name in SUBJECTS if any(row["subject"] == name for row in rows)]
    for line, ((kernel, boot), mine) in zip(axes, boots.items()):
        mixes = list(dict.fromkeys(row["mix"] for row in mine))
        for axis, (name, (value, _)) in zip(line, MIX_FIGURES.items()):
            for i, subject in enumerate(subjects):
                values = [[value(row) for row in mine if row["mix"] == mix and row["subject"] == subject] or [0] for mix in mixes]
                middles = [statistics.median(some) for some in values]
                ends = [[m - min(some) for m, some in zip(middles, values)], [max(some) - m for m, some in zip(middles, values)]]
                axis.bar([place + (i - 1) * 0.27 for place in range(len(mixes))], middles, 0.25, yerr=ends,
                         color=COLOURS[subject], label=subject, error_kw={"linewidth": 0.8})
            axis.set_xticks(range(len(mixes)), mixes)
            axis.set(title=name, ylabel=f"{kernel}\n{boot}" if axis is line[0] else None)
            if name == "object-cache churns":
                axis.set_yscale("symlog", linthresh=10)
        line[0].legend(fontsize=8, loc="lower left")
    return figure


def is_counted(boot):
    return boot.startswith("icount")


def draw_lines(axis, rows, points_of, style, **words):
    for (subject,), some in group(rows, "subject").items():
        axis.plot(*zip(*points_of(some)), color=COLOURS[subject], label=subject, linewidth=2.6 if subject == "prudence" else 1.4, **style)
    axis.set(**words)
    axis.legend(frameon=False, fontsize=8)


HURRY = 2  # times as many grace periods as at first


def hurried(samples):
    """Returns the samples in which RCU hurries: samples since whose forerunner an expedited grace period ended, or grace periods were HURRY times as frequent as in the first
    tenth of the run."""
    def rate(one, other):
        return (other["grace_periods"] + other["expedited"] - one["grace_periods"] - one["expedited"]) / max(other["ms"] - one["ms"], 1)
    if len(samples) < 20 or not all("expedited" in one for one in samples):
        return []
    usual = rate(samples[0], samples[len(samples) // 10])
    return [other for one, other in zip(samples, samples[1:]) if other["expedited"] > one["expedited"] or usual and rate(one, other) >= HURRY * usual]


def mark_hurried(axis, rows):
    for (subject,), some in group(rows, "subject").items():
        if found := hurried(some):
            axis.plot([row["ms"] / 1e3 for row in found], [row["used_kb"] / 1024 for row in found], "x", color=COLOURS[subject], markersize=5,
                      label=f"{subject}: RCU hurries")
    axis.legend(frameon=False, fontsize=8)


def draw(rows):
    kernels = sorted({row["kernel"] for row in rows})
    figure, axes = plt.subplots(len(kernels), 4, figsize=(22, 4.4 * len(kernels)), constrained_layout=True, squeeze=False)
    for line, kernel in zip(axes, kernels):
        mine = [row for row in rows if row["kernel"] == kernel]
        pairs = [row for row in mine if row["run"] == "pairs" and is_counted(row["boot"])]
        for axis, ((boot, count), some) in zip(line[:2], group(pairs, "boot", "pairs").items()):
            draw_lines(axis, some, lambda rows: sorted((size, median(same)) for (size,), same in group(rows, "size").items()), {"marker": "o", "markersize": 4},
                       title=f"{kernel}\n{count:,} pairs, {boot}", xscale="log", yscale="log", xlabel="bytes of an object",
                       ylabel="instructions a pair, in the loop")
        samples = [row for row in mine if row["run"] == "sample"]
        for axis, ((boot,), some) in zip(line[2:], group(samples, "boot").items()):
            draw_lines(axis, some, lambda rows: [(row["ms"] / 1e3, row["used_kb"] / 1024) for row in rows], {},
                       title=f"{kernel}\nupdate storm, {boot}", xlabel="seconds", ylabel="memory used, MB")
            mark_hurried(axis, some)
    return figure


def sections_of(rows):
    """[(title, table)]"""
    for (kernel, run, boot), some in group(rows, "kernel", "run", "boot").items():
        unit = "instructions" if is_counted(boot) else "ns, emulated"
        if run in ("pairs", "remote"):
            yield f"{kernel}, {run}, {boot}: {unit} a pair", pair_cells(some, "ns_per_pair")
        if run == "pairs":
            yield f"{kernel}, {run}, {boot}: {unit} a pair, with all deferred work", pair_cells(some, "busy_ns_per_pair")
            for (count,), same in group(some, "pairs").items():
                yield f"{kernel}, {count:,} pairs, {boot}: {unit} a pair, mean and standard deviation", deviation_cells(same)
                yield f"{kernel}, findings of Figure 6, {count:,} pairs, {boot}", kernel_verdict.findings(same, run)
        if run == "latency":
            yield f"{kernel}, latency, {boot}: {unit} of one pair", latency_cells(some)
            yield f"{kernel}, findings of latency, {boot}", kernel_verdict.findings(some, run)
        if run in ("mix", "mix-peak"):
            cells_of = mix_cells if run == "mix" else peak_cells
            for (pace,), same in group(some, "pace").items():
                what = "mixes" if run == "mix" else "Prudence's objects at the peak of the mixes"
                how = f"a request each {pace / 1000:g} µs" if pace else "as fast as it goes"
                yield f"{kernel}, {what}, {boot}, {how}", cells_of(same)
        elif run == "endurance":
            yield f"{kernel}, endurance, {boot}", endurance_cells(some)
            mine = [row for row in rows if (row["kernel"], row["boot"]) == (kernel, boot) and row["run"] in (run, "sample")]
            yield f"{kernel}, findings of Figure 3, {boot}", kernel_verdict.findings(mine, run)


def report(rows, made):
    document = {
        "prudence": "kernel", "date": datetime.date.today().isoformat(), "rows": rows, "skipped": [],
        "host": {"cpu": "QEMU without KVM on " + platform.machine(), "cpus": os.cpu_count(),
                 "system": platform.system(), "kernel": platform.release(),
                 "libc": platform.libc_ver()[1], "compiler": "of the kernel's suite",
                 "huge_pages": "as the guest has them"},
    }
    write(made.place(".json"), document, 1)
    sections = [(title, cells) for title, cells in sections_of(rows) if cells]
    made.tables({re.sub(r"\W+", "-", title.lower()): cells for title, cells in sections})
    svg = made.picture(draw(rows))
    mixes = [row for row in rows if row["run"] == "mix" and row["pace"] and row["counted"]]
    if mixes:
        svg += made.picture(draw_mixes(mixes), "-mixes")
    made.page(document, "Prudence in Linux", svg, sections, NOTES, sorted({row["kernel"] for row in rows}))
    return "\n".join(f"\n{title}\n{text_table(cells)}" for title, cells in sections)
