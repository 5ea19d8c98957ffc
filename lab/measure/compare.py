# SPDX-License-Identifier: MIT
"""Measures two revisions in turn, and shows the changes from one to the other.

Each revision is measured by its own programs, built from its own sources in a tree of its own; less is better in all figures. A feature that one
of the two does
not have (an option, a row) is not compared. Both run in each round, one after the other, so a round gives one ratio (new by old), from which a slow
minute of the machine has gone; the interval is that of the median of the ratios."""

import collections
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy

from .arguments import Parser
from .command import ROOT, Progress
from .keep import write
from .statistics import median_interval

NOT_FIGURES = {"collection", "threads", "objects", "size", "extension", "rounds"}
WORSE, BETTER, SAME, UNDECIDED = "worse", "better", "same", "undecided"


class Failed(Exception):
    """A revision that cannot be had, or a run that failed; the text says why."""


def parse_arguments(arguments):
    parser = Parser("bench-compare", "Run pairs, malloc, rcu and scm of two revisions in turn, and show the changes. Ends with 1 when something got worse.")
    parser.add_argument("base", metavar="BASE", nargs="?", help="the revision to compare with")
    parser.add_argument("--base-build", metavar="DIR", type=Path, help="its build directory, if it is built already")
    parser.add_argument("--part", metavar="NAME,...", default="*", help="only these of: pairs, 'pairs in order', malloc, rcu, scm; * and ? match")
    parser.add_number("--repeat", 1, 1000, "rounds of both revisions (10; fewer than 8 decide nothing)", default=10)
    parser.add_number("--least", 0, 1, "changes up to this part do not count (0.03)", float, 0.03, metavar="PART")
    parser.add_number("--confidence", 0.5, 0.9999, "of the intervals (0.99: one in a hundred figures errs)", float, 0.99, metavar="PART")
    parser.add_argument("--quick", action="store_true", help="short runs of few figures, for tests")
    parser.add_json()
    request = parser.parse_args(arguments)
    if not request.base and not request.base_build:
        parser.error("BASE is missing: the revision to compare with (lab/run/compare main)")
    return parser, request


# ----------------------------------------------------------------------------------------------------------- revisions

def call(*arguments, **more):
    done = subprocess.run(arguments, text=True, capture_output=True, check=False, **more)
    if done.returncode:
        raise Failed(f"`{' '.join(map(str, arguments))}` failed:\n" + (done.stdout + done.stderr).strip()[-2000:])
    return done.stdout


def commit_of(root, revision):
    """Its full name. Raises Failed: there is no such revision."""
    try:
        return call("git", "-C", root, "rev-parse", "--verify", "--quiet", revision + "^{commit}").strip()
    except Failed:
        raise Failed(f"BASE: '{revision}' is not a revision of this repository") from None


def build_of(root, commit, folder, say):
    """The build directory of that commit below `folder`; one that is there already is used again."""
    tree = folder / commit[:12]
    build_folder = tree / "build"
    if (tree / "complete").exists():
        return build_folder
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    archive = subprocess.run(["git", "-C", root, "archive", commit], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as sources:
        sources.extractall(tree)
    say(f"building {commit[:12]} in {tree}")
    call("cmake", "--preset", "release", "-DPRUDENCE_BUILD_TESTS=OFF", cwd=tree)
    call("cmake", "--build", "--preset", "release", cwd=tree)
    (tree / "complete").touch()
    return build_folder


# ---------------------------------------------------------------------------------------------------------------- plan

class Part:
    """A call of prudence-bench."""

    def __init__(self, name, arguments, keys, figures, needs=None):
        self.name = name
        self.arguments = arguments
        self.keys = keys  # the keys that identify a row
        self.figures = figures  # None: every number that is not a key
        self.needs = needs  # an option that old revisions do not have

    def figures_of(self, row):
        names = self.figures or [name for name, value in row.items() if isinstance(value, (int, float)) and name not in NOT_FIGURES]
        return {name: row[name] for name in names if row.get(name)}

    def run(self, build):
        """{(part, row, figure): value} of one run."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "results.json"
            done = subprocess.run([build / "bin/prudence-bench", *self.arguments, "--json", file],
                                  text=True, capture_output=True, check=False,
                                  env=dict(os.environ, PRUDENCE_BUILD_DIR=str(build)))
            if not file.exists():
                raise Failed(f"{self.name}: {done.stderr.strip() or done.returncode}")
            rows = json.loads(file.read_text())["rows"]
        found = {}
        for row in rows:
            label = " ".join(str(row[key]) + SUFFIXES.get(key, "") for key in self.keys if row.get(key) not in (None, ""))
            found |= {(self.name, label, figure): value for figure, value in self.figures_of(row).items()}
        return found


SUFFIXES = {"size": " B", "threads": "w", "readers": "r", "workers": "w", "live": " live", "objects": " objects"}


def parts(quick):
    seconds = "0.01" if quick else "0.05"
    sizes = "64" if quick else "64,512,4096"
    crew = "1" if quick else "1,2"
    ours = "prudence" if quick else "prudence,prudence-heap,plain+prudence"
    pair_keys = ("subject", "size", "threads", "readers", "order", "live")
    pair_figures = ("ns_per_pair_wall", "peak_rss_bytes")
    return [
        Part("pairs", ["pairs", "--seconds", seconds, "--size", sizes, "--threads", crew, "--readers", "0,1", "--subject", ours],
             ("subject", "size", "threads", "readers"), pair_figures),
        Part("pairs in order", ["pairs", "--seconds", seconds, "--size", sizes, "--threads", "1",
                                "--readers", "0", "--order", "in-order,random", "--live", "1024",
                                "--subject", ours], pair_keys, pair_figures, needs="--order"),
        Part("malloc", ["malloc", "--subject", "prudence", "--repeat", "1", "--pause", "0",
                        "--scale", "0.02" if quick else "0.2",
                        *(["--program", "larson,mix"] if quick else [])],
             ("program",), ("wall_seconds", "cpu_seconds", "peak_rss_bytes")),
        # --flavour, and the key of that name: older revisions say so for --variant
        Part("rcu", ["rcu", "--flavour", "memb,qsbr", "--seconds", seconds, "--workers", "1", "--readers", "0,1"],
             ("load", "variant", "flavour", "workers", "readers", "batch"), ("ns", "peak_rss_bytes")),
        Part("scm", ["scm", "--rounds", "20" if quick else "300", "--threads", crew, "--objects", "100" if quick else "100,1000"],
             ("collection", "threads", "objects"), None),
    ]


def knows(build, part):
    if not part.needs:
        return True
    page = subprocess.run([build / "bin/prudence-bench", part.arguments[0], "--help"], text=True, capture_output=True, check=False).stdout
    return part.needs in page


# ------------------------------------------------------------------------------------------------------------- rounds

def choose(parser, request, builds, say):
    """The parts that are asked for and that both revisions know."""
    known = parts(request.quick)
    chosen = parser.choose(request.part, known, "--part: '{}' is none of " + ", ".join(one.name for one in known))
    shared = [one for one in chosen if all(knows(build, one) for build in builds)]
    for one in chosen:
        if one not in shared:
            say(f"'{one.name}' is skipped: one of the revisions has no {one.needs}")
    return shared


def run_rounds(chosen, builds, repeat, progress):
    """For each revision a list of rounds, each {key: value}. In every second round the new one begins."""
    rounds = tuple([{} for _ in range(repeat)] for _ in builds)
    progress.total = repeat * len(chosen) * 2
    for round_ in range(repeat):
        for part in chosen:
            for side in (0, 1) if round_ % 2 == 0 else (1, 0):
                progress.step(f"{part.name} of {('base', 'new')[side]}")
                rounds[side][round_] |= part.run(builds[side])
    progress.end()
    return rounds


# ------------------------------------------------------------------------------------------------------------ verdicts

def verdict(low, high, least):
    """A change counts when the whole interval lies beyond `least` (0.03: 3 %) of no change."""
    if low is None:
        return UNDECIDED
    if low > 1 + least:
        return WORSE
    if high < 1 - least:
        return BETTER
    return SAME if low >= 1 - least and high <= 1 + least else UNDECIDED


def compare(base, new, confidence, least):
    """`base`, `new`: of each round {key: value}. A row for each key that both have in all rounds."""
    rows = []
    for key in base[0]:
        if not all(key in round_ for round_ in [*base, *new]):
            continue
        ratios = [b[key] / a[key] for a, b in zip(base, new)]
        median, low, high = median_interval(ratios, confidence)
        part, row, figure = key
        rows.append({"part": part, "row": row, "figure": figure, "ratio": median, "low": low,
                     "high": high, "verdict": verdict(low, high, least),
                     "base": float(numpy.median([a[key] for a in base])),
                     "new": float(numpy.median([b[key] for b in new])), "ratios": ratios})
    return rows


def line(row):
    interval = f'[{row["low"]:.3f}, {row["high"]:.3f}]' if row["low"] is not None else "[–]"
    return (f'  {row["part"]:<15}{row["row"]:<44}{row["figure"]:<18}{row["base"]:>12.4g}' f'{row["new"]:>12.4g}{row["ratio"]:>8.3f} {interval}')


def show(rows, request):
    counts = collections.Counter(row["verdict"] for row in rows)
    for kind in (WORSE, BETTER):
        some = sorted((row for row in rows if row["verdict"] == kind), key=lambda row: abs(row["ratio"] - 1), reverse=True)
        if some:
            print(f'\n{kind.upper()} by more than {request.least:.0%}: base, new, ratio, ' f'{request.confidence:.0%} interval')
            print("\n".join(map(line, some)))
    wide = [row for row in rows if row["verdict"] == UNDECIDED]
    print(f'\n{len(rows)} figures: ' + ", ".join(f"{counts[kind]} {kind}" for kind in (WORSE, BETTER, SAME, UNDECIDED)))
    if wide:
        print("Undecided figures have intervals that reach beyond the "
              f"{request.least:.0%} on one side: more rounds (--repeat) or a quieter machine decide.")


def main(arguments, build):
    parser, request = parse_arguments(arguments)
    progress, commit = Progress("bench-compare"), None
    try:
        if request.base_build:
            base_build = request.base_build.resolve()
        else:
            commit = commit_of(ROOT, request.base)
            base_build = build_of(ROOT, commit, build / "compare", progress.say)
        parser.need(base_build / "bin/prudence-bench", build / "bin/prudence-bench")
        chosen = choose(parser, request, (base_build, build), progress.say)
        base, new = run_rounds(chosen, (base_build, build), request.repeat, progress)
    except Failed as failure:
        sys.exit(f"bench-compare: {failure}")
    rows = compare(base, new, request.confidence, request.least)
    show(rows, request)
    if request.json:
        write(request.json, {"program": "bench-compare", "scenario": "compare", "base": commit, "repeat": request.repeat,
                             "confidence": request.confidence, "least": request.least, "rows": rows}, 1)
    return 1 if any(row["verdict"] == WORSE for row in rows) else 0
