#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tables from what tools/kernel-rfc measured, as Markdown on standard output.

    tools/report_kernel_rfc.py FILE.lines    and FILE/TABLE.csv
"""

import csv
import json
import statistics
import sys
from pathlib import Path

SIDES = {"plain": "7.2", "patched": "7.2, patched"}
LOADS = {"epoll": "epoll: add, delete", "open_close": "open, close", "create": "create, unlink, close"}


def number(values, digits=0):
    """The median; with least and most, where runs differ."""
    text = f"{statistics.median(values):,.{digits}f}"
    return text if max(values) == min(values) else f"{text} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def columns(rows, key):
    return list(dict.fromkeys(row[key] for row in rows))


def table(name, head, rows):
    print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    folder = Path(sys.argv[1]).with_suffix("")
    folder.mkdir(exist_ok=True)
    with (folder / f"{name}.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([[head[0] or "subject", *head[1:]], *rows])


def grid(name, rows, across, figure, words, scale=1, digits=0):
    """A row for each kernel and subject, a column for each value of `across`."""
    tops = columns(rows, across)
    lines = []
    for subject in columns(rows, "subject"):
        for side in columns(rows, "side"):
            cells = [[row[figure] / scale for row in rows if (row["subject"], row["side"], row[across]) == (subject, side, top)]
                     for top in tops]
            if any(cells):
                lines.append([SIDES[side], subject, *(number(cell, digits) if cell else "" for cell in cells)])
    table(name, ["kernel", words, *(str(top) for top in tops)], lines)


def pairs(rows):
    print("\nInstructions a pair, in the loop:", end="\n")
    grid("pairs", rows, "size", "ns_per_pair", "subject, size:")


def memory(rows):
    for row in rows:
        row["what"] = f"{row['size']} B" if row["size"] else LOADS[row["subject"]]
        row["subject"] = row["subject"] if row["size"] else "load"
    print("\nMemory two seconds after, KB more than before:")
    grid("memory", rows, "what", "kb", "of")


def work(rows):
    print("\nInstructions an operation, rounds after the first:")
    lines = []
    for name in columns(rows, "work"):
        cells = {side: [row["ns"] for row in rows if (row["work"], row["side"]) == (name, side)] for side in SIDES}
        middles = [statistics.median(cell) for cell in cells.values() if cell]
        change = f"{100 * (middles[1] / middles[0] - 1):+.1f} %" if len(middles) == 2 else ""
        lines.append([LOADS[name], *(number(cell) if cell else "" for cell in cells.values()), change])
    table("work", ["", *SIDES.values(), "change"], lines)


def counts(rows):
    print("\nWhat SLUB counted:")
    figures = [key for key in rows[0] if key not in ("side", "run", "cache")]
    table("counts", ["", *(f"{row['cache']}, {SIDES[row['side']]}" for row in rows)],
          [[figure, *(f"{row[figure]:,}" for row in rows)] for figure in figures])


def endurance(rows):
    print("\nUpdates and memory:")
    lines = []
    for reader in columns(rows, "reader_ms"):
        for side, subject in dict.fromkeys((row["side"], row["subject"]) for row in rows):
            runs = [row for row in rows if (row["side"], row["subject"], row["reader_ms"]) == (side, subject, reader)]
            if runs:
                lines.append([f"{reader} ms" if reader else "none", SIDES[side], subject, *(
                    number([run[key] / scale for run in runs], digits)
                    for key, scale, digits in (("updates", 1e6, 2), ("before_kb", 1024, 0), ("mean_kb", 1024, 0), ("peak_kb", 1024, 0),
                                               ("after_kb", 1024, 0), ("failures", 1, 0), ("longest_ms", 1000, 1)))])
    table("endurance", ["reader", "kernel", "subject", "updates, M", "before, MB", "mean, MB", "peak, MB", "after, MB", "failed", "longest, s"], lines)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    if not found:
        print(f"report_kernel_rfc: nothing was measured ({sys.argv[1]})", file=sys.stderr)
        return 1
    for run, printed in (("pairs", pairs), ("work", work), ("memory", memory), ("counts", counts), ("endurance", endurance)):
        rows = [row for row in found if row["run"] == run]
        if run == "pairs":  # of a fresh boot; later ones were made for the memory after them
            rows = list({(row["side"], row["subject"], row["size"]): row for row in reversed(rows)}.values())[::-1]
        if rows:
            printed(rows)
    return 0


sys.exit(main())
