# SPDX-License-Identifier: MIT
"""The command line of tools/bench-structures: parts one after the other, into one document."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from malloc_bench.cli import number

from . import plan


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="bench-structures", allow_abbrev=False,
        description="Our hash table, map and routes beside those of other libraries. The machine should do nothing else.")
    parser.add_argument("--quick", action="store_true", help="few loads and short runs: five minutes instead of a night")
    parser.add_argument("--family", metavar="NAME,...", default=",".join(plan.FAMILIES),
                        help="only these of " + ", ".join(plan.FAMILIES))
    parser.add_argument("--repeat", metavar="N", type=number(1, 100, int, "a number from 1 to 100"),
                        help=f"rounds; medians count ({plan.FULL_REPEAT}; quick: {plan.QUICK_REPEAT})")
    parser.add_argument("--seconds", metavar="S", type=number(0.001, 3600, float, "a number from 0.001 to 3600"),
                        help=f"length of a run ({plan.FULL_SECONDS}; quick: {plan.QUICK_SECONDS})")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all results to FILE")
    request = parser.parse_args(arguments)
    request.family = request.family.split(",")
    for name in request.family:
        if name not in plan.FAMILIES:
            parser.error(f"--family: '{name}' is none of " + ", ".join(plan.FAMILIES))
    if request.json and not request.json.resolve().parent.is_dir():
        parser.error(f"--json: '{request.json}' cannot be written: there is no such folder")
    request.seconds = request.seconds or (plan.QUICK_SECONDS if request.quick else plan.FULL_SECONDS)
    request.repeat = request.repeat or (plan.QUICK_REPEAT if request.quick else plan.FULL_REPEAT)
    return parser, request


def measure(program, part, request, folder):
    """The document of one part; it has `failed` if one of its runs failed."""
    file = Path(folder) / "part.json"
    file.unlink(missing_ok=True)
    done = subprocess.run([program, *part.arguments(request.seconds, request.repeat), "--json", file],
                          stdout=subprocess.DEVNULL, check=False)
    if not file.exists():
        sys.exit(f"bench-structures: {part.family}, {part.name}: nothing was written")
    return {**json.loads(file.read_text()), "failed": done.returncode != 0}


def merge(documents, request):
    """One document of all. What was measured long was as busy as it says."""
    first = documents[0]
    return {**{key: first[key] for key in ("date", "host", "prudence", "versions", "skipped")},
            "program": "bench-structures", "quick": request.quick, "repeat": request.repeat, "seconds": request.seconds,
            "others_cpus": max(document["others_cpus"] for document in documents),
            "rows": [{**row, "part": document["part"]} for document in documents for row in document["rows"]]}


def main(arguments, build):
    parser, request = parse_arguments(arguments)
    program = build / "bin/prudence-structures"
    if not program.exists():
        parser.error(f"{program} is missing: run `make build`")
    parts = plan.parts(request.quick, request.family)
    documents, begun = [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for i, part in enumerate(parts):
            print(f"bench-structures: part {i + 1} of {len(parts)}, {(time.monotonic() - begun) / 60:.1f} minutes passed: "
                  f"{part.family}, {part.name}", file=sys.stderr, flush=True)
            documents.append({**measure(program, part, request, folder), "part": part.name})
            if request.json:  # what there is stays, whatever happens
                request.json.write_text(json.dumps(merge(documents, request), indent=1) + "\n")
    failed = [document["part"] for document in documents if document["failed"]]
    for name in failed:
        print(f"bench-structures: runs failed in: {name}", file=sys.stderr)
    return 1 if failed else 0
