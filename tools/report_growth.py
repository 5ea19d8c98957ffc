#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The curves of tools/bench-growth: FILE.html, .svg and .png beside FILE.json.

    tools/report_growth.py FILE.json
"""

import json
import sys
from pathlib import Path

import numpy

from growth_bench import fits
from report import OURS, plt, say_written, write_page, write_pictures

NOTES = [
    "A pair: an object allocated and deferred by each writer in a tight loop, CPU time. Grace periods and "
    "prudence_stats: medians of calls timed one by one, after the writers have ended.",
    "Points are medians of the rounds, the bars reach from the smallest to the largest; the line is the "
    "curve that was fitted: flat, logarithmic or linear.",
    "Busy readers make 20,000 sections a second together, however many they are.",
]
SCALES = {"ns": (1, "ns"), "bytes": (1e6, "MB")}


def draw_one(axes, row):
    scale, unit = SCALES[row["unit"]]
    xs, ys = numpy.array(row["x"], dtype=float), numpy.array(row["y"]) / scale
    low, high = ys - numpy.array(row["min"]) / scale, numpy.array(row["max"]) / scale - ys
    axes.errorbar(xs, ys, yerr=[low, high], fmt="o", color=OURS, markersize=4, capsize=2, linewidth=1)
    fine = numpy.geomspace(xs[0], xs[-1], 200)
    parameters = [row["a"], row["b"]] if row["curve"] != "flat" else [row["a"]]
    if row["curve"] in fits.CURVES:
        axes.plot(fine, fits.CURVES[row["curve"]](fine, *parameters) / scale, color="#999999",
                  linewidth=1.2, zorder=0)
    axes.set(xscale="log", ylabel=unit, xlabel=row["axis_text"])
    axes.set_title(f'{row["what"]}: {row["curve"]}', fontsize=10)
    if ys.max() > 20 * ys.min():
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.25 * max(row["max"]) / scale)


def draw(rows):
    along = list(dict.fromkeys(row["axis"] for row in rows))
    kinds = list(dict.fromkeys(row["figure"] for row in rows))
    figure, grid = plt.subplots(len(along), len(kinds), figsize=(3.6 * len(kinds), 2.9 * len(along)),
                                squeeze=False, constrained_layout=True)
    for axes in grid.flat:
        axes.set_visible(False)
    for row in rows:
        axes = grid[along.index(row["axis"])][kinds.index(row["figure"])]
        axes.set_visible(True)
        draw_one(axes, row)
    return figure


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    source = Path(sys.argv[1])
    document = json.loads(source.read_text())
    if document.get("scenario") != "growth" or not document["rows"]:
        sys.exit(f"report_growth: {source} has no curves in it")
    cells = [{"subject": row["what"], "along": row["axis_text"], "fit": row["curve"],
              "in a sentence": row["sentence"]} for row in document["rows"]]
    svg = write_pictures(source, draw(document["rows"]))
    write_page(source.with_suffix(".html"), document, "Growth", "", svg, [("In words", cells)], NOTES,
               [f'prudence {document["prudence"]}'])
    say_written(source, document)


main()
