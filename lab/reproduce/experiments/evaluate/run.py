# SPDX-License-Identifier: MIT
"""The command line of lab/reproduce/evaluate: rounds over all parts, one document of all runs."""

import functools
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path

from measure import allocators, keep, report
from measure.arguments import Parser
from measure.command import ROOT, commit, now
from preload import ld_preload
from . import plan, servers


def parse_arguments(arguments):
    parser = Parser("evaluate", "The paper's evaluation in a process, and applications that defer: classic and every peer compared with Prudence. Hours; the machine "
                    "should do nothing else. Finished runs are kept, and the next call continues from there.")
    parser.add_argument("--quick", action="store_true", help="short runs, few rounds: ten minutes on two CPUs")
    parser.add_names("--part", [part.name for part in plan.parts(False)], "only these (see --list)")
    parser.add_number("--rounds", 1, 100, f"rounds over all parts ({plan.FULL_ROUNDS}; quick: {plan.QUICK_ROUNDS})")
    parser.add_argument("--folder", metavar="FOLDER", type=Path,
                        help="for runs (build/report/evaluate; quick: build/report/evaluate-quick); all of them together in FOLDER.json")
    parser.add_argument("--build-servers", action="store_true",
                        help="build Knot DNS and BIND from Debian's sources if they are not (some ten minutes; without --quick they are in any case)")
    parser.add_argument("--list", action="store_true", help="list parts, and end")
    request = parser.parse_args(arguments)
    request.folder = request.folder or ROOT / "build/report" / ("evaluate-quick" if request.quick else "evaluate")
    request.rounds = request.rounds or (plan.QUICK_ROUNDS if request.quick else plan.FULL_ROUNDS)
    return parser, request


def digest(*files):
    found = hashlib.sha256()
    for file in files:
        found.update(Path(file).read_bytes())
    return found.hexdigest()[:16]


# ------------------------------------------------------------------------------------------------ runs

class Programs:
    """The programs of a part, on which the result depends."""

    def __init__(self, build, output):
        self.build, self.servers = build, servers.Servers(ROOT, build, output)
        self.allocators = {one.name: one for one in allocators.ALLOCATORS if one.name in plan.STORE_ALLOCATORS}
        load = build / "bin/prudence-malloc-load"
        self.missing = {name: allocators.prepare(one, build, load) for name, one in self.allocators.items()}

    def is_server(self, part):
        return part.program in servers.NAMES

    def why_not(self, part):
        """Why this part cannot be measured here, or None."""
        if self.is_server(part):
            return self.servers.why_not(part.program, *part.words)
        return self.missing.get(part.allocator)

    def identity(self, part):
        if self.is_server(part):
            files = self.servers.files(part.program, *part.words)
        else:
            files = [self.build / "bin" / part.program, self.build / "libprudence.so"]
        allocator = self.allocators.get(part.allocator)
        return {"program": digest(*files), "arguments": part.arguments(), "allocator": f"{part.allocator} {allocator.version}" if allocator else ""}

    def run(self, part, folder):
        """The document of one run of that part; with "failed" the reason for which there is none."""
        if self.is_server(part):
            return self.servers.measure(part.program, *part.words, part.options["seconds"])
        place = Path(folder) / f"{part.name}.json"
        place.unlink(missing_ok=True)
        environment = dict(os.environ)
        if part.allocator:
            environment["LD_PRELOAD"] = ld_preload(self.allocators[part.allocator].path)
        status, said = keep.run_session([self.build / "bin" / part.program, *part.arguments(), f"--json={place}"], environment, ROOT,
                                             20 * part.seconds + 120)
        if not place.exists():
            last = "\n".join(said.strip().splitlines()[-5:])
            return {"failed": f"it took more than {20 * part.seconds + 120:.0f} s" if status is None else f"status {status}: {last}"}
        return json.loads(place.read_text())


def run_part(programs, part, turn, folder):
    try:
        document = programs.run(part, folder)
    except (OSError, servers.Failed, json.JSONDecodeError) as error:
        return {"failed": str(error)}
    if "failed" in document:
        return document
    return {"part": part.name, "round": turn, "allocator": part.allocator, "document": document}


def make_tasks(request, programs, folder):
    """(tasks, [skipped runs, and why])"""
    tasks, skipped = [], {}
    for turn, part in plan.rounds(request.quick, request.part, request.rounds):
        why = programs.why_not(part)
        if why:
            skipped[part.name] = why
            continue
        tasks.append(keep.Task(f"{part.name}-{turn}", f"{part.name}, round {turn + 1}", part.name, programs.identity(part) | {"round": turn},
                                    functools.partial(run_part, programs, part, turn, folder), part.seconds))
    return tasks, [{"subject": name, "why": why} for name, why in skipped.items()]


# ------------------------------------------------------------------------------------------------------ the document

def versions_of(runs):
    """Returns the versions of all measured software."""
    found = set()
    for run in runs:
        document = run["document"]
        for row in document["rows"]:
            if "versions" in row:
                said, allocator = row["versions"], row["versions"]["allocator"]
                found |= {f"{one} {version}" for one, version in ((said["library"], said["library_version"]), (allocator["name"], allocator["version"]))
                          if version}
        found |= {f"{name} {version}" for name, version in document.get("versions", {}).items()}
    return sorted(found, key=str.lower)


def document_of(request, programs, runs, failed, skipped):
    host = allocators.probe(programs.allocators["glibc"], programs.build / "bin/prudence-malloc-load")["host"]  # the same in all runs; servers do not report it
    return {"program": "evaluate", "date": now(), "prudence": commit(),
            "quick": request.quick, "rounds": request.rounds, "host": host, "versions": versions_of(runs),
            "parts": [{"name": part.name, "title": part.title, "command": " ".join([part.program, *part.arguments()]) + (f" ({part.allocator} preloaded)" if part.allocator else "")}
                      for part in plan.parts(request.quick) if part.name in request.part],
            "others_cpus": max((run["others_cpus"] for run in runs), default=0),
            "load_average": max((run["load_average"] for run in runs), default=0),
            "skipped": skipped + [{"subject": title, "why": why} for title, why in failed], "runs": runs}


def main(arguments, build):
    parser, request = parse_arguments(arguments)
    if request.list:
        for part in plan.parts(request.quick):
            print(f"{part.name:18} {part.title}")
        return 0
    parser.need(*(build / "bin" / program for program in ("prudence-bench", "prudence-mix", "prudence-structures", "prudence-malloc-load")))
    request.folder.mkdir(parents=True, exist_ok=True)
    programs = Programs(build, build / "evaluate")
    if request.build_servers or not request.quick:
        programs.servers.build([name for name in servers.NAMES if any(part.startswith(f"{name}-") for part in request.part)])
    with tempfile.TemporaryDirectory() as folder:
        tasks, skipped = make_tasks(request, programs, folder)
        runs, failed = keep.run_all("evaluate", tasks, request.folder / "runs")
    for one in skipped:
        print(f"evaluate: skipped: {one['subject']}: {one['why']}", file=sys.stderr)
    if not runs:
        sys.exit("evaluate: no run succeeded")
    target = request.folder.with_suffix(".json")
    keep.write(target, document_of(request, programs, runs, failed, skipped))
    print(f"evaluate: {len(runs)} runs in {target}", file=sys.stderr)
    report.main([str(target)])
    return 1 if failed else 0
