# SPDX-License-Identifier: MIT
"""How a pair or another operation, a grace period, prudence_stats and resident memory grow along each axis of prudence-growth: its points in rounds,
their medians, the curve that they lie on (flat, logarithmic or linear), the sentence that says so, and the slope on log axes.

Curves are fitted by least squares of relative errors (SciPy), since costs differ by orders of magnitude from one end to the other. The simplest curve
wins whose error is near that of the best one. A knee is the point at which two lines on log axes fit best, if they fit much better than one."""

import json
import statistics
import subprocess
import sys

import numpy
import scipy.optimize

from .arguments import Parser
from .command import Progress, now
from .keep import write
from .pictures import OURS, plt
from .statistics import slope
from .verdict import quantity


def decades(first, last, steps=(1,)):
    return tuple(step * 10 ** power for power in range(first, last + 1) for step in steps)


# Name, the counted things, the values, those of a quick run, further arguments; and the operation, if that is no pair.
AXES = [
    ("idle-readers", "idle readers", (1, 10, 100, 1000, 10000), (1, 10, 100), ()),
    ("busy-readers", "busy readers", (1, 10, 100, 1000, 10000), (1, 10, 100), ()),
    ("caches", "caches", (1, 2, 5, 10, 20, 50, 100, 200), (1, 5, 20), ()),
    ("live", "live objects", tuple(10 ** n for n in range(3, 9)), (10 ** 3, 10 ** 4, 10 ** 5), ("--size", "16")),
    ("writers", "writers", (1, 2, 4, 8, 16, 32, 64), (1, 2, 4), ()),
    ("block-size", "bytes of a block", tuple(1 << power for power in range(4, 31, 2)), (16, 4096, 1 << 20), (), "malloc and free"),
    ("domains", "domains", decades(0, 3, (1, 3)) + (10000,), (1, 10, 30), ()),
    ("hazard-slots", "hazard slots in use", decades(0, 5), (1, 10, 100), ()),
    ("callbacks", "callbacks waiting", decades(0, 6), (1, 10, 100), (), "A callback"),
    ("hash", "entries of a hash table", decades(1, 7), (10, 100, 1000), (), "A lookup, an erase and an add"),
    ("map", "entries of a map", decades(1, 7), (10, 100, 1000), (), "A lookup, an erase and an add"),
    ("routes", "routes", decades(1, 6), (10, 100, 1000), (), "A lookup, an erase and an add"),
    ("threads", "threads", tuple(1 << power for power in range(11)), (1, 2, 4), (), "malloc and free"),
]
FIGURES = [("pair_cpu_ns", "A pair", "ns"), ("grace_period_ns", "A grace period", "ns"),
           ("stats_ns", "prudence_stats", "ns"), ("rss_bytes", "Resident memory", "bytes")]


def parse_arguments(arguments):
    parser = Parser("bench-growth", "How a pair or another operation, a grace period, prudence_stats and resident memory grow along each axis.")
    parser.add_names("--axis", [name for name, *_ in AXES], "only these of: " + ", ".join(name for name, *_ in AXES))
    parser.add_number("--repeat", 1, 1000, "rounds; medians count (5)", default=5)
    parser.add_argument("--quick", action="store_true", help="few points and short runs, for tests")
    parser.add_json()
    return parser, parser.parse_args(arguments)


# ------------------------------------------------------------------------------------------------------------- curves

IRREGULAR = 0.3  # mean relative error beyond which no curve is claimed
FLAT_WITHIN = 1.15  # largest by smallest: that is flat, whatever the curve
NEAR = 1.25  # a simpler curve may have an error this many times that of the best
CLOSE_ENOUGH = 0.05  # mean relative error that no curve needs to be better than

CURVES = {
    "flat": lambda x, a: a + 0 * x,
    "log": lambda x, a, b: a + b * numpy.log10(x),
    "linear": lambda x, a, b: a + b * x,
}


def fit_one(curve, xs, ys):
    """(parameters, mean relative error)"""
    count = curve.__code__.co_argcount - 1
    start = [float(ys[0])] + [0.0] * (count - 1)
    try:
        found, _ = scipy.optimize.curve_fit(curve, xs, ys, p0=start, sigma=ys)
    except RuntimeError:
        return start, float("inf")
    errors = (curve(xs, *found) - ys) / ys
    return [float(one) for one in found], float(numpy.sqrt(numpy.mean(errors ** 2)))


def fit(xs, ys):
    """{"curve", "a", "b", "error"} of two points or more."""
    xs, ys = numpy.asarray(xs, dtype=float), numpy.asarray(ys, dtype=float)
    found = {name: fit_one(curve, xs, ys) for name, curve in CURVES.items()}
    best = min(error for _, error in found.values())
    if ys.max() <= FLAT_WITHIN * ys.min() or len(xs) < 3:
        name = "flat" if ys.max() <= FLAT_WITHIN * ys.min() else "linear"
    else:
        name = next(name for name, (_, error) in found.items() if error <= max(NEAR * best, CLOSE_ENOUGH))
    parameters, error = found[name]
    if error > IRREGULAR:
        name = "irregular"
    return {"curve": name, "a": parameters[0], "b": parameters[1] if len(parameters) > 1 else 0.0, "error": error}


KNEE_POINTS = 3  # that each of two lines needs
KNEE_ERROR = 0.25  # squared error of two lines by that of one, at most
KNEE_TURN = 0.25  # difference of their slopes, at least
ABOVE_LINEAR = 1.1  # the least slope that is said to be


def line_error(xs, ys):
    return float(numpy.polyfit(numpy.log2(xs), numpy.log2(ys), 1, full=True)[1].sum())


def shape(xs, ys):
    """{"slope", "knee", "before", "after", "above_linear"}: slopes on log axes, 1 is proportional; the last three only where there is a knee."""
    found = {"slope": slope(xs, ys), "knee": None, "before": None, "after": None}
    places = range(KNEE_POINTS - 1, len(xs) - KNEE_POINTS + 1)
    if max(ys) > FLAT_WITHIN * min(ys) and len(places):
        errors = {place: line_error(xs[:place + 1], ys[:place + 1]) + line_error(xs[place:], ys[place:]) for place in places}
        place = min(errors, key=errors.get)
        before, after = slope(xs[:place + 1], ys[:place + 1]), slope(xs[place:], ys[place:])
        if errors[place] < KNEE_ERROR * line_error(xs, ys) and abs(after - before) > KNEE_TURN:
            found |= {"knee": xs[place], "before": before, "after": after}
    return found | {"above_linear": max(found["slope"], found["after"] or 0) > ABOVE_LINEAR}


def sentence(what, axis, unit, xs, ys, found):
    ends = (f"{quantity(ys[0], unit)} at {xs[0]:,} {axis}, {quantity(ys[-1], unit)} at {xs[-1]:,}")
    if found["curve"] == "irregular":
        return f"{what} follows none of these curves: {ends}."
    if found["curve"] == "flat" or found["b"] < 0:
        return f"{what} does not grow: {ends}."
    more = quantity(found["b"], unit)
    if found["curve"] == "log":
        return f"{what} grows with the logarithm, {more} with each tenfold: {ends}."
    return f"{what} grows linearly, {more} for each: {ends}."


# -------------------------------------------------------------------------------------------------------------- points

def run(program, axis, value, more):
    """Runs one process. Returns its point, or the reason why there is none."""
    done = subprocess.run([program, axis, str(value), *more], text=True, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"bench-growth: {axis} {value}: {done.stderr.strip() or done.returncode}")
    if done.stdout.startswith("skipped: "):
        return done.stdout.strip()
    return json.loads(done.stdout)


def measure(program, chosen, request):
    """({(axis, value): [point]}, the reasons of those that were skipped)"""
    points, skipped = {}, {}
    plan = [(name, value, more) for name, _, values, quick, more, *_ in chosen for value in (quick if request.quick else values)]
    seconds = ["--seconds", "0.02" if request.quick else "0.1"]
    progress = Progress("bench-growth", request.repeat * len(plan), "points", 20)
    for axis, value, more in plan * request.repeat:
        progress.step(f"{axis} {value:,}")
        if (axis, value) in skipped:
            continue
        found = run(program, axis, value, [*more, *seconds])
        if isinstance(found, str):
            skipped[axis, value] = found
        else:
            points.setdefault((axis, value), []).append(found)
    progress.end()
    return points, skipped


def curve(axis, text, figure, what, unit, points):
    """Returns the points of a figure along an axis, the fit and the sentence, or None if there are too few points."""
    taken = sorted((value, [one[figure] for one in found]) for (name, value), found in points.items() if name == axis)
    xs = [value for value, _ in taken]
    ys = [statistics.median(values) for _, values in taken]
    if len(xs) < 2:
        return None
    found = fit(xs, ys)
    return {"axis": axis, "axis_text": text, "figure": figure, "what": what, "unit": unit, "x": xs,
            "y": ys, "min": [min(values) for _, values in taken],
            "max": [max(values) for _, values in taken], "rounds": min(len(values) for _, values in taken), **found, **shape(xs, ys),
            "sentence": sentence(what, text, unit, xs, ys, found)}


def main(arguments, build):
    parser, request = parse_arguments(arguments)
    program = build / "bin/prudence-growth"
    parser.need(program)
    chosen = [one for one in AXES if one[0] in request.axis]
    points, skipped = measure(program, chosen, request)
    curves = [one for axis, text, _, _, _, *operation in chosen for figure, what, unit in FIGURES
              if (one := curve(axis, text, figure, *operation if operation and figure == FIGURES[0][0] else (what,), unit, points))]
    for (axis, value), why in skipped.items():
        print(f"{axis} {value:,}: {why}")
    for one in curves:
        print(f'{one["axis"]:<14}{one["curve"]:<10}{one["sentence"]}')
    if request.json and points:
        any_point = next(iter(points.values()))[0]
        write(request.json, {
            "program": "bench-growth", "scenario": "growth", "date": now(), "host": any_point["host"], "prudence": any_point["prudence"],
            "repeat": request.repeat, "skipped": [{"program": f"{axis} {value:,}", "why": why} for (axis, value), why in skipped.items()],
            "rows": curves}, 1)
    return 0


# ---------------------------------------------------------------------------------------------------------------- page

NOTES = [
    "A pair: an object allocated and deferred by each writer in a tight loop, CPU time. Grace periods and "
    "prudence_stats: medians of calls timed one by one, after the writers have ended. Other operations likewise: CPU time.",
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
    if row["curve"] in CURVES:
        axes.plot(fine, CURVES[row["curve"]](fine, *parameters) / scale, color="#999999", linewidth=1.2, zorder=0)
    axes.set(xscale="log", ylabel=unit, xlabel=row["axis_text"])
    axes.set_title(f'{row["what"]}: {row["curve"]}', fontsize=10)
    if ys.max() > 20 * ys.min():
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.25 * max(row["max"]) / scale)


def draw(rows):
    along = list(dict.fromkeys(row["axis"] for row in rows))
    kinds = list(dict.fromkeys(row["figure"] for row in rows))
    figure, grid = plt.subplots(len(along), len(kinds), figsize=(3.6 * len(kinds), 2.9 * len(along)), squeeze=False, constrained_layout=True)
    for axes in grid.flat:
        axes.set_visible(False)
    for row in rows:
        axes = grid[along.index(row["axis"])][kinds.index(row["figure"])]
        axes.set_visible(True)
        draw_one(axes, row)
    return figure


def report(documents, made):
    document, = documents
    cells = [{"subject": row["what"], "along": row["axis_text"], "fit": row["curve"], "in a sentence": row["sentence"]} for row in document["rows"]]
    made.page(document, "Growth", made.picture(draw(document["rows"])), [("In words", cells)], NOTES, [f'prudence {document["prudence"]}'])
