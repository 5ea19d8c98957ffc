# SPDX-License-Identifier: MIT
"""The command line of lab/run/structures: parts one after the other, into one document."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from ..arguments import Parser
from ..command import Progress
from ..keep import write
from . import plan


def parse_arguments(arguments):
    parser = Parser("bench-structures", "Compare our hash table, map and routes with those of other libraries. The machine should do nothing else.")
    parser.add_argument("--quick", action="store_true", help="few loads and short runs: five minutes instead of a night")
    parser.add_names("--family", plan.FAMILIES, "only these of " + ", ".join(plan.FAMILIES))
    parser.add_number("--repeat", 1, 100, f"rounds; medians count ({plan.FULL_REPEAT}; quick: {plan.QUICK_REPEAT})")
    parser.add_number("--seconds", 0.001, 3600, f"length of a run ({plan.FULL_SECONDS}; quick: {plan.QUICK_SECONDS})", float, metavar="S")
    parser.add_json()
    request = parser.parse_args(arguments)
    request.seconds = request.seconds or (plan.QUICK_SECONDS if request.quick else plan.FULL_SECONDS)
    request.repeat = request.repeat or (plan.QUICK_REPEAT if request.quick else plan.FULL_REPEAT)
    return parser, request


def measure(program, part, request, folder):
    """The document of one part; it has `failed` if one of its runs failed."""
    file = Path(folder) / "part.json"
    file.unlink(missing_ok=True)
    done = subprocess.run([program, *part.arguments(request.seconds, request.repeat), "--json", file], stdout=subprocess.DEVNULL, check=False)
    if not file.exists():
        sys.exit(f"bench-structures: {part.family}, {part.name}: nothing was written")
    return {**json.loads(file.read_text()), "failed": done.returncode != 0}


def merge(documents, request):
    """Returns one document of all. A long measurement was as busy as it says."""
    first = documents[0]
    return {**{key: first[key] for key in ("date", "host", "prudence", "versions", "skipped")},
            "program": "bench-structures", "quick": request.quick, "repeat": request.repeat, "seconds": request.seconds,
            "others_cpus": max(document["others_cpus"] for document in documents),
            "rows": [{**row, "part": document["part"]} for document in documents for row in document["rows"]]}


def main(arguments, build):
    parser, request = parse_arguments(arguments)
    program, documents = build / "bin/prudence-structures", []
    parser.need(program)
    parts = plan.parts(request.quick, request.family)
    progress = Progress("bench-structures", len(parts), "parts", 1)
    with tempfile.TemporaryDirectory() as folder:
        for part in parts:
            progress.step(f"{part.family}, {part.name}")
            documents.append({**measure(program, part, request, folder), "part": part.name})
            if request.json:  # finished results stay, whatever happens
                write(request.json, merge(documents, request), 1)
    progress.end()
    failed = [document["part"] for document in documents if document["failed"]]
    for name in failed:
        print(f"bench-structures: runs failed in: {name}", file=sys.stderr)
    return 1 if failed else 0
