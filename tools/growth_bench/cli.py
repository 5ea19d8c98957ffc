# SPDX-License-Identifier: MIT
"""The command line of tools/bench-growth: points in rounds, their medians, fits and sentences."""

import argparse
import datetime
import json
import statistics
import subprocess
import sys
from pathlib import Path

from . import fits

# Name, what it counts, the values, those of a quick run, further arguments.
AXES = [
    ("idle-readers", "idle readers", (1, 10, 100, 1000, 10000), (1, 10, 100), ()),
    ("busy-readers", "busy readers", (1, 10, 100, 1000, 10000), (1, 10, 100), ()),
    ("caches", "caches", (1, 2, 5, 10, 20, 50, 100, 200), (1, 5, 20), ()),
    ("live", "live objects", tuple(10 ** n for n in range(3, 9)), (10 ** 3, 10 ** 4, 10 ** 5),
     ("--size", "16")),
    ("writers", "writers", (1, 2, 4, 8, 16, 32, 64), (1, 2, 4), ()),
]
FIGURES = [("pair_cpu_ns", "A pair", "ns"), ("grace_period_ns", "A grace period", "ns"),
           ("stats_ns", "prudence_stats", "ns"), ("rss_bytes", "Resident memory", "bytes")]


def parse_arguments(arguments):
    def repeat(text):
        if not text.isdigit() or not 1 <= int(text) <= 1000:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 to 1000")
        return int(text)

    parser = argparse.ArgumentParser(
        prog="bench-growth", description="How a pair, a grace period, prudence_stats and resident "
        "memory grow with readers, caches, live objects and writers.")
    parser.add_argument("--axis", metavar="NAME,...", help="only these of: "
                        + ", ".join(name for name, *_ in AXES))
    parser.add_argument("--repeat", metavar="N", type=repeat, default=5,
                        help="rounds; medians count (5)")
    parser.add_argument("--quick", action="store_true", help="few points and short runs, for tests")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all results to FILE")
    request = parser.parse_args(arguments)
    known = [name for name, *_ in AXES]
    for name in request.axis.split(",") if request.axis else ():
        if name not in known:
            parser.error(f"--axis: '{name}' is none of " + ", ".join(known))
    if request.json and not request.json.resolve().parent.is_dir():
        parser.error(f"--json: '{request.json}' cannot be written: there is no such folder")
    return parser, request


def run(program, axis, value, more):
    """What one process says: a point, or why there is none."""
    done = subprocess.run([program, axis, str(value), *more], text=True, capture_output=True,
                          check=False)
    if done.returncode:
        sys.exit(f"bench-growth: {axis} {value}: {done.stderr.strip() or done.returncode}")
    if done.stdout.startswith("skipped: "):
        return done.stdout.strip()
    return json.loads(done.stdout)


def progress(done, total, text):
    if sys.stderr.isatty():
        print(f"\r\033[K{done} of {total} points: {text}", end="", file=sys.stderr, flush=True)
    elif done % 20 == 0:
        print(f"bench-growth: {done} of {total} points", file=sys.stderr, flush=True)


def measure(program, chosen, request):
    """({(axis, value): [point]}, the reasons of those that were skipped)"""
    points, skipped = {}, {}
    plan = [(name, value, more) for name, _, values, quick, more in chosen
            for value in (quick if request.quick else values)]
    seconds = ["--seconds", "0.02" if request.quick else "0.1"]
    for round_ in range(request.repeat):
        for i, (axis, value, more) in enumerate(plan):
            progress(round_ * len(plan) + i, request.repeat * len(plan), f"{axis} {value:,}")
            if (axis, value) in skipped:
                continue
            found = run(program, axis, value, [*more, *seconds])
            if isinstance(found, str):
                skipped[axis, value] = found
            else:
                points.setdefault((axis, value), []).append(found)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return points, skipped


def curve(axis, text, figure, what, unit, points):
    """One figure along one axis: its points, the fit and the sentence. None: too few points."""
    taken = sorted((value, [one[figure] for one in found]) for (name, value), found in points.items()
                   if name == axis)
    xs = [value for value, _ in taken]
    ys = [statistics.median(values) for _, values in taken]
    if len(xs) < 2:
        return None
    found = fits.fit(xs, ys)
    return {"axis": axis, "axis_text": text, "figure": figure, "what": what, "unit": unit, "x": xs,
            "y": ys, "min": [min(values) for _, values in taken],
            "max": [max(values) for _, values in taken], **found,
            "sentence": fits.sentence(what, text, unit, xs, ys, found)}


def main(arguments, build):
    parser, request = parse_arguments(arguments)
    program = build / "bin/prudence-growth"
    if not program.exists():
        parser.error(f"{program} is missing: run `make build`")
    chosen = [one for one in AXES if not request.axis or one[0] in request.axis.split(",")]
    points, skipped = measure(program, chosen, request)
    curves = [one for axis, text, *_ in chosen for figure, what, unit in FIGURES
              if (one := curve(axis, text, figure, what, unit, points))]
    for (axis, value), why in skipped.items():
        print(f"{axis} {value:,}: {why}")
    for one in curves:
        print(f'{one["axis"]:<14}{one["curve"]:<8}{one["sentence"]}')
    if request.json and points:
        any_point = next(iter(points.values()))[0]
        now = datetime.datetime.now(datetime.timezone.utc)
        request.json.write_text(json.dumps({
            "program": "bench-growth", "scenario": "growth", "date": f"{now:%Y-%m-%dT%H:%M:%SZ}",
            "host": any_point["host"], "prudence": any_point["prudence"], "repeat": request.repeat,
            "skipped": [{"program": f"{axis} {value:,}", "why": why}
                        for (axis, value), why in skipped.items()],
            "rows": curves}, indent=1) + "\n")
    return 0
