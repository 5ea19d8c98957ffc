# SPDX-License-Identifier: MIT
"""Tables of the results of tools/kernel/rfc, as Markdown, and FILE/TABLE.csv."""

import statistics

from .page import markdown_table
from .verdict import spread

SIDES = {"plain": "plain", "1": "1 patch", "2": "2 patches", "3": "3 patches", "patched": "patched"}
LOADS = {"epoll": "epoll: add, delete", "open_close": "open, close", "create": "create, unlink, close"}


def number(values, digits=0):
    return spread(values, lambda one: f"{one:,.{digits}f}", "{} ({} to {})")


def columns(rows, key):
    return list(dict.fromkeys(row[key] for row in rows))


def table(head, rows):
    return [dict(zip([head[0] or "subject", *head[1:]], row)) for row in rows]


def grid(rows, across, figure, words, scale=1, digits=0):
    """A row for each kernel and subject, a column for each value of `across`."""
    tops = columns(rows, across)
    lines = []
    for subject in columns(rows, "subject"):
        for side in columns(rows, "side"):
            cells = [[row[figure] / scale for row in rows if (row["subject"], row["side"], row[across]) == (subject, side, top)] for top in tops]
            if any(cells):
                lines.append([SIDES[side], subject, *(number(cell, digits) if cell else "" for cell in cells)])
    return table(["kernel", words, *(str(top) for top in tops)], lines)


def pairs(rows):
    return grid(rows, "size", "ns_per_pair", "subject, size:")


def memory(rows):
    for row in rows:
        row["what"] = f"{row['size']} B" if row["size"] else LOADS[row["subject"]]
        row["subject"] = row["subject"] if row["size"] else "load"
    return grid(rows, "what", "kb", "of")


def work(rows):
    lines = []
    for name in columns(rows, "work"):
        cells = {side: [row["ns"] for row in rows if (row["work"], row["side"]) == (name, side)] for side in SIDES}
        middles = [statistics.median(cell) for cell in cells.values() if cell]
        change = f"{100 * (middles[1] / middles[0] - 1):+.1f} %" if len(middles) == 2 else ""
        lines.append([LOADS[name], *(number(cell) if cell else "" for cell in cells.values()), change])
    return table(["", *SIDES.values(), "change"], lines)


def counts(rows):
    figures = [key for key in rows[0] if key not in ("side", "run", "cache")]
    return table(["", *(f"{row['cache']}, {SIDES[row['side']]}" for row in rows)],
                 [[figure, *(f"{row[figure]:,}" for row in rows)] for figure in figures])


def endurance(rows):
    lines = []
    for reader in columns(rows, "reader_ms"):
        for side, subject in dict.fromkeys((row["side"], row["subject"]) for row in rows):
            runs = [row for row in rows if (row["side"], row["subject"], row["reader_ms"]) == (side, subject, reader)]
            if runs:
                lines.append([f"{reader} ms" if reader else "none", SIDES[side], subject, *(
                    number([run[key] / scale for run in runs], digits)
                    for key, scale, digits in (("updates", 1e6, 2), ("before_kb", 1024, 0), ("mean_kb", 1024, 0), ("peak_kb", 1024, 0),
                                               ("after_kb", 1024, 0), ("failures", 1, 0), ("longest_ms", 1000, 1)))])
    return table(["reader", "kernel", "subject", "updates, M", "before, MB", "mean, MB", "peak, MB", "after, MB", "failed", "longest, s"], lines)


RUNS = [("pairs", "Instructions a pair, in the loop", pairs), ("work", "Instructions an operation, rounds after the first", work),
        ("memory", "Memory two seconds after, KB more than before", memory), ("counts", "Counters of SLUB", counts),
        ("endurance", "Updates and memory", endurance)]


def report(found, made):
    said, tables = [], {}
    for run, title, cells_of in RUNS:
        rows = [row for row in found if row["run"] == run]
        if run == "pairs":  # of a fresh boot; later ones were made for the memory after them
            rows = list({(row["side"], row["subject"], row["size"]): row for row in reversed(rows)}.values())[::-1]
        if rows:
            tables[run] = cells_of(rows)
            first = next(iter(tables[run][0]))
            said.append(f"\n{title}:\n\n" + markdown_table(tables[run], "" if first == "subject" else first))
    made.tables(tables)
    return "".join(said).rstrip("\n")
