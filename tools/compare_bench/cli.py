# SPDX-License-Identifier: MIT
"""The command line of tools/bench-compare."""

import argparse
import collections
import fnmatch
import json
import sys
from pathlib import Path

from malloc_bench.cli import number

from . import parts, trees, verdicts


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="bench-compare",
        description="Run pairs, malloc, rcu and scm of two revisions in turn, and say what changed. "
                    "Ends with 1 when something got worse.")
    parser.add_argument("base", metavar="BASE", nargs="?", help="the revision to compare with")
    parser.add_argument("--base-build", metavar="DIR", type=Path,
                        help="its build directory, if it is built already")
    parser.add_argument("--part", metavar="NAME,...", default="*",
                        help="only these of: pairs, 'pairs in order', malloc, rcu, scm; * and ? match")
    parser.add_argument("--repeat", metavar="N", default=10,
                        type=number(1, 1000, int, "a number from 1 to 1000"),
                        help="rounds of both revisions (10; fewer than 8 decide nothing)")
    parser.add_argument("--least", metavar="PART", default=0.03,
                        type=number(0, 1, float, "a number from 0 to 1"),
                        help="changes up to this part do not count (0.03)")
    parser.add_argument("--confidence", metavar="PART", default=0.99,
                        type=number(0.5, 0.9999, float, "a number from 0.5 to 0.9999"),
                        help="of the intervals (0.99: one in a hundred figures errs)")
    parser.add_argument("--quick", action="store_true", help="short runs of few figures, for tests")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all results to FILE")
    request = parser.parse_args(arguments)
    if not request.base and not request.base_build:
        parser.error("BASE is missing: the revision to compare with (make bench-compare BASE=main)")
    if request.json and not request.json.resolve().parent.is_dir():
        parser.error(f"--json: '{request.json}' cannot be written: there is no such folder")
    return parser, request


def choose(parser, request, builds):
    """The parts that are asked for and that both revisions know."""
    known = parts.parts(request.quick)
    patterns = request.part.split(",")
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(one.name, pattern) for one in known):
            parser.error(f"--part: '{pattern}' is none of " + ", ".join(one.name for one in known))
    chosen = [one for one in known if any(fnmatch.fnmatchcase(one.name, pattern)
                                          for pattern in patterns)]
    for one in chosen:
        if not all(parts.knows(build, one) for build in builds):
            say(f"'{one.name}' is left out: one of the revisions has no {one.needs}")
    return [one for one in chosen if all(parts.knows(build, one) for build in builds)]


def say(text):
    print(f"bench-compare: {text}", file=sys.stderr, flush=True)


def progress(done, total, text):
    if sys.stderr.isatty():
        print(f"\r\033[K{done} of {total} runs: {text}", end="", file=sys.stderr, flush=True)
    elif done % 10 == 0:
        say(f"{done} of {total} runs")


def run_rounds(chosen, builds, repeat):
    """For each revision a list of rounds, each {key: value}. In every second round the new one begins."""
    rounds = tuple([{} for _ in range(repeat)] for _ in builds)
    total, done = repeat * len(chosen) * 2, 0
    for round_ in range(repeat):
        for part in chosen:
            for side in (0, 1) if round_ % 2 == 0 else (1, 0):
                progress(done, total, f"{part.name} of {('base', 'new')[side]}")
                rounds[side][round_] |= part.run(builds[side])
                done += 1
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return rounds


def line(row):
    interval = f'[{row["low"]:.3f}, {row["high"]:.3f}]' if row["low"] is not None else "[–]"
    return (f'  {row["part"]:<15}{row["row"]:<44}{row["figure"]:<18}{row["base"]:>12.4g}'
            f'{row["new"]:>12.4g}{row["ratio"]:>8.3f} {interval}')


def show(rows, request):
    counts = collections.Counter(row["verdict"] for row in rows)
    for kind in (verdicts.WORSE, verdicts.BETTER):
        some = sorted((row for row in rows if row["verdict"] == kind),
                      key=lambda row: abs(row["ratio"] - 1), reverse=True)
        if some:
            print(f'\n{kind.upper()} by more than {request.least:.0%}: base, new, ratio, '
                  f'{request.confidence:.0%} interval')
            print("\n".join(map(line, some)))
    wide = [row for row in rows if row["verdict"] == verdicts.UNDECIDED]
    print(f'\n{len(rows)} figures: ' + ", ".join(f"{counts[kind]} {kind}" for kind in (
        verdicts.WORSE, verdicts.BETTER, verdicts.SAME, verdicts.UNDECIDED)))
    if wide:
        print("Undecided figures have intervals that reach beyond the "
              f"{request.least:.0%} on one side: more rounds (--repeat) or a quieter machine decide.")


def main(arguments, root, build):
    parser, request = parse_arguments(arguments)
    try:
        if request.base_build:
            base_build, commit = request.base_build.resolve(), None
        else:
            commit = trees.commit_of(root, request.base)
            base_build = trees.build(root, commit, build / "compare", say)
        for one in (base_build, build):
            if not (one / "bin/prudence-bench").exists():
                parser.error(f"{one}/bin/prudence-bench is missing: run `make build`")
        chosen = choose(parser, request, (base_build, build))
        base, new = run_rounds(chosen, (base_build, build), request.repeat)
    except (trees.Failed, parts.Failed) as failure:
        sys.exit(f"bench-compare: {failure}")
    rows = verdicts.compare(base, new, request.confidence, request.least)
    show(rows, request)
    if request.json:
        request.json.write_text(json.dumps({
            "program": "bench-compare", "scenario": "compare", "base": commit,
            "repeat": request.repeat, "confidence": request.confidence, "least": request.least,
            "rows": rows}, indent=1) + "\n")
    return 1 if any(row["verdict"] == verdicts.WORSE for row in rows) else 0
