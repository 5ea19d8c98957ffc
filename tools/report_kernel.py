#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Pictures and a page from the lines of tools/kernel-bench.

    tools/report_kernel.py FILE.lines    .json, .html, .svg and .png beside FILE; the page stands alone
"""

import datetime
import json
import os
import platform
import statistics
import sys
from pathlib import Path

import matplotlib.pyplot as plt

from report import OURS, THEIRS, print_table, say_written, write_page, write_pictures

SUBJECTS = ["prudence", "kfree_rcu", "kfree_rcu-headless", "call_rcu", "kmalloc-kfree", "prudence-free"]
COLOURS = dict(zip(SUBJECTS, [OURS, *THEIRS[:4], "#7fb79f"]))
NOTES = [
    "Guests are emulated (no KVM): times are ratios at best. Under icount a guest nanosecond is one "
    "instruction of the one CPU, the same from run to run; caches and contention do not show there.",
    "Pairs: allocate and defer (or free) at once, kmalloc-sized. The rest of the time, when batches of "
    "kfree_rcu and callbacks of call_rcu are worked off, is not in the figures of those.",
    "kfree_rcu and call_rcu need a head of 16 bytes in the object; at 8 bytes they get 16.",
    "Memory: used pages of the guest, every 10 ms, while every CPU replaces entries of its own list of "
    "512-byte objects. The run ends at the first allocation that fails without the OOM killer.",
    "Debian's kernels have no SLUB_STATS: hits and object-cache churns of SLUB cannot be counted. Its "
    "slabs can, by the objects that its constructor sees.",
]


def median(rows, key="ns_per_pair"):
    return statistics.median(row[key] for row in rows)


def group(rows, *keys):
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def pair_cells(rows):
    cells = []
    sizes = sorted({row["size"] for row in rows})
    for subject in SUBJECTS:
        line = {"subject": subject}
        for size in sizes:
            some = [row for row in rows if row["subject"] == subject and row["size"] == size]
            line[f"{size} B"] = f"{median(some):,.0f}" if some else "–"
        cells.append(line)
    for other in ("call_rcu", "kfree_rcu"):
        line = {"subject": f"{other} / prudence"}
        for size in sizes:
            some, ours = ([row for row in rows if row["subject"] == name and row["size"] == size]
                          for name in (other, "prudence"))
            line[f"{size} B"] = f"{median(some) / median(ours):.1f}" if some and ours else "–"
        cells.append(line)
    return cells


def endurance_cells(rows):
    return [{"subject": row["subject"], "updates": f'{row["updates"] / 1e6:.2f} M',
             "seconds": f'{row["ms"] / 1e3:.1f}', "before, MB": f'{row["before_kb"] / 1024:.0f}',
             "peak, MB": f'{row["peak_kb"] / 1024:.0f}', "after, MB": f'{row["after_kb"] / 1024:.0f}',
             "out of memory": "yes" if row["out_of_memory"] else "no"} for row in rows]


def mix_cells(rows):
    cells = []
    for row in rows:
        ours = row["subject"] == "prudence"
        cells.append({
            "subject": f'{row["subject"]}, {row["mix"]}', "ns per object": f'{row["ns_per_pair"]:,}',
            "memory, KB": f'{row["grown_kb"]:,}',
            "hits": f'{100 * row["hits"] / row["allocations"]:.1f} %' if ours else "–",
            "after a merge": f'{row["hits_after_merge"]:,}' if ours else "–",
            "object-cache churns": f'{row["object_cache_churns"]:,}' if ours else "–",
            "objects' worth of slabs made": f'{row["grows"] * row["slab_bytes"] // row["size"]:,}'
            if ours else f'{row["slub_constructed"]:,}',
            "f_t": f'{row["f_t"] / 1000:.2f}' if ours else "–"})
    return cells


def draw(rows):
    kernels = sorted({row["kernel"] for row in rows})
    figure, axes = plt.subplots(len(kernels), 2, figsize=(12, 4.4 * len(kernels)),
                                constrained_layout=True, squeeze=False)
    for (speed, memory), kernel in zip(axes, kernels):
        mine = [row for row in rows if row["kernel"] == kernel]
        pairs = [row for row in mine if row["run"] == "pairs" and row["boot"] == "icount"]
        for (subject,), some in group(pairs, "subject").items():
            points = sorted((size, median(same)) for (size,), same in group(some, "size").items())
            speed.plot(*zip(*points), marker="o", markersize=4, color=COLOURS[subject], label=subject,
                       linewidth=2.6 if subject == "prudence" else 1.4)
        speed.set(xscale="log", yscale="log", xlabel="bytes of an object", ylabel="instructions a pair",
                  title=kernel)
        speed.legend(frameon=False, fontsize=8)
        for (subject,), some in group([row for row in mine if row["run"] == "sample"], "subject").items():
            memory.plot([row["ms"] / 1e3 for row in some], [row["used_kb"] / 1024 for row in some],
                        color=COLOURS[subject], linewidth=2.6 if subject == "prudence" else 1.4,
                        label=subject)
        memory.set(xlabel="seconds", ylabel="memory used, MB", title="Memory under an update storm")
        memory.legend(frameon=False, fontsize=8)
    return figure


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    source = Path(sys.argv[1])
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    if not rows:
        sys.exit(f"report_kernel: {source} has no results")
    source = source.with_suffix(".json")
    document = {
        "prudence": "kernel", "date": datetime.date.today().isoformat(), "rows": rows, "skipped": [],
        "host": {"cpu": "QEMU without KVM on " + platform.machine(), "cpus": os.cpu_count(),
                 "system": platform.system(), "kernel": platform.release(),
                 "libc": platform.libc_ver()[1], "compiler": "of the kernel's suite",
                 "huge_pages": "as the guest has them"},
    }
    source.write_text(json.dumps(document, indent=1) + "\n")
    sections = []
    for (kernel, run, boot), some in group(rows, "kernel", "run", "boot").items():
        if run in ("pairs", "remote"):
            unit = "instructions" if boot == "icount" else "ns, emulated"
            sections.append((f"{kernel}, {run}, {boot}: {unit} a pair", pair_cells(some)))
        elif run == "mix":
            sections.append((f"{kernel}, mixes, {boot}", mix_cells(some)))
        elif run == "endurance":
            sections.append((f"{kernel}, endurance, {boot}", endurance_cells(some)))
    for title, cells in sections:
        print(f"\n{title}")
        print_table(cells)
    svg = write_pictures(source, draw(rows))
    write_page(source.with_suffix(".html"), document, "Prudence in Linux", "", svg, sections, NOTES,
               sorted({row["kernel"] for row in rows}))
    say_written(source, document)


if __name__ == "__main__":
    main()
