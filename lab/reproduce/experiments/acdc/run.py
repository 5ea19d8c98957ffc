# SPDX-License-Identifier: MIT
"""The command line of bench-acdc, a run of acdc, and the document of all."""

import json
import os
import subprocess
import time

from measure import allocators, keep as kept, report, statistics
from measure.arguments import Parser
from measure.command import Progress, now
from measure.malloc import programs
from measure.malloc.run import environment_now, skip
from preload import ld_preload
from . import keep, plan, verdict
from .rounds import Measuring, Point

INTERRUPTED = 130  # the exit status, as of a program that Control-C ended


def parse_arguments(arguments):
    parser = Parser("bench-acdc", "The experiments of chapter 6 of \"Short-term Memory for C\", under Prudence and under other allocators. NAME may contain "
                    "* and ?.")
    parser.add_argument("--short", action="store_true", help="fewer points and shorter runs: some minutes instead of half an hour")
    parser.add_argument("--experiment", metavar="NAME,...", default="*", help="see --list")
    parser.add_argument("--subject", metavar="NAME,...", default="*", help="see --list")
    parser.add_number("--least", 2, 1000, "repeats of each point at least (5; short: 2)")
    parser.add_number("--most", 2, 1000, "repeats at most, whatever the interval (50; short: 4)")
    parser.add_number("--replications", 1, 1000, "of each point of a factorial design (5; short: 2)")
    parser.add_number("--precision", 0.001, 1, "half of the 95 %% interval, relative to the mean (0.1)", float, 0.1, metavar="X")
    parser.add_number("--timeout", 1, 86400, "a run that takes longer has failed (600)", float, 600.0, metavar="SECONDS")
    parser.add_number("--minutes", 0.01, 1000000, "end after N minutes; points furthest from their aim are repeated first", float)
    parser.add_json("write all results to FILE, after each round and twice a minute")
    parser.add_argument("--resume", action="store_true", help="continue the measurement in FILE, if settings, machine and libraries are the same")
    parser.add_argument("--list", action="store_true", help="list experiments and subjects, and end")
    request = parser.parse_args(arguments)
    for name, long, short in (("least", 5, 2), ("most", 50, 4), ("replications", 5, 2)):
        if getattr(request, name) is None:
            setattr(request, name, short if request.short else long)
    if request.resume and not request.json:
        parser.error("--resume needs --json FILE")
    if request.least > request.most:
        parser.error(f"--least {request.least} is more than --most {request.most}")
    return parser, request


class Runner:
    """Runs acdc once for a point."""

    def __init__(self, acdc, timeout, progress):
        self.acdc, self.timeout, self.say = acdc, timeout, progress.say

    def acdc_says(self, point):
        """The JSON of one run; raises RuntimeError with the reason when there is none."""
        experiment, subject = point.experiment, point.subject
        environment = dict(os.environ)
        if options := experiment.prudence_options.get(point.at):
            environment["PRUDENCE_OPTIONS"] = ",".join(filter(None, [environment.get("PRUDENCE_OPTIONS"), options]))
        if subject.allocator:
            environment["LD_PRELOAD"] = ld_preload(subject.allocator.path)
        command = [self.acdc, "--quiet", "--json=-", *subject.options, *experiment.options, *experiment.points[point.at], f"--seed={point.next_seed}"]
        try:
            done = subprocess.run(command, text=True, capture_output=True, env=environment, timeout=self.timeout)
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"not done after {self.timeout:g} s") from error
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise RuntimeError(said[-1] if said else f"exit {done.returncode}")
        run = json.loads(done.stdout)
        if subject.allocator and run["allocator"]["file"] != subject.allocator.path.name:
            raise RuntimeError(f'malloc came from {run["allocator"]["file"]}')
        return run

    def run(self, point):
        """Adds a repeat. A point that failed once is not tried again."""
        began = time.monotonic()
        try:
            run = self.acdc_says(point)
        except RuntimeError as failure:
            point.failed = str(failure)
            self.say(f"{point.experiment.name}: {point.subject.name} at {point.at}: {failure}")
            return
        point.add(plan.responses(run), time.monotonic() - began, run["samples"], {name: run[name] for name in ("sizes", "livenesses")})


def is_for(experiment, subject):
    return subject.kind in experiment.kinds or subject.name in experiment.kinds


def variation_of(labels, rows):
    """subject -> response -> effect -> share, of the rows of a factorial design. Of each point as many
    replications as the point with the fewest has: the last round may have been interrupted."""
    labels, found = list(labels), {}
    order = ["".join(label + "-+"[level[label]] for label in labels) for level in statistics.levels(labels)]
    for subject in dict.fromkeys(row["subject"] for row in rows):
        by_point = {row["point"]: row["repeats"] for row in rows if row["subject"] == subject}
        fewest = min(map(len, by_point.values()))
        if fewest == 0 or any("failed" in row for row in rows if row["subject"] == subject):
            continue
        for name in plan.REFRESH + plan.MALLOC:
            table = [[repeat.get(name) for repeat in by_point[point][:fewest]] for point in order]
            if not any(value is None for row in table for value in row):
                found.setdefault(subject, {})[name] = statistics.allocation_of_variation(labels, table)
    return found


def new_document(request, tools, host, chosen, known, skipped):
    used = {one.allocator.name: one.allocator for one in known if one.allocator}
    return {"program": "acdc", "scenario": "acdc",
            "prudence": programs.first_line([tools.bench, "--version"]).split()[-1],
            "date": now(), "host": host, "short": request.short,
            "least": request.least, "most": request.most, "replications": request.replications,
            "precision": request.precision, "skipped": skipped,
            "environment": environment_now(),
            "allocators": [{"name": one.name, "version": one.version, "file": one.path.name} for one in used.values()],
            "experiments": [{"name": one.name, "title": one.title, "figures": one.figures,
                             "axis": one.axis, "log": one.log, "labels": one.labels,
                             "options": one.options} for one in chosen]}


def fill(document, points, ended):
    """All that follows from the points. `ended`: why, or that it goes on."""
    rows = [one.as_row() for one in points]
    document |= {"ended": ended, "points": len(points),
                 "points_within_aim": sum(one.is_within_aim() for one in points),
                 "points_open": sum(one.is_open() for one in points),
                 "wall_seconds": sum(sum(one.wall_seconds) for one in points), "rows": rows,
                 "variation": {}}
    for experiment in document["experiments"]:
        if experiment["labels"]:
            document["variation"][experiment["name"]] = variation_of(
                experiment["labels"], [row for row in rows if row["experiment"] == experiment["name"]])
    document["findings"] = verdict.check_all(document)


def show_list(all_experiments, known):
    print("Experiments (--experiment):")
    for one in all_experiments:
        print(f"  {one.name:<22}{one.title} (figures {one.figures})")
    print("\nSubjects (--subject):")
    for one in known:
        library = one.allocator and f", {one.allocator.name} {one.allocator.version}"
        print(f"  {one.name:<28}{one.kind}{library or ''}")


def print_findings(document):
    for finding in document["findings"]:
        if finding["experiment"] in {one["name"] for one in document["experiments"]}:
            print(f'{finding["figure"]:>5}  {finding["verdict"]:<14} {finding["thesis"]}\n' f'{"":22}{finding["measured"]}')


def main(arguments, build):
    parser, request = parse_arguments(arguments)
    tools, acdc = programs.Tools(build, request.timeout), build / "bin/acdc"
    parser.need(tools.bench, tools.load, acdc)
    found = list(allocators.ALLOCATORS)
    skipped = skip(found, lambda one: allocators.prepare(one, build, tools.load), "subject")
    host = allocators.probe(found[0], tools.load)["host"]
    all_experiments = list(plan.experiments(request.short, host["cpus"]))
    known = plan.subjects(found)
    if request.list:
        show_list(all_experiments, known)
        return 0
    chosen = parser.choose(request.experiment, all_experiments, "unknown experiment '{}' (see --list)")
    wanted = parser.choose(request.subject, known, "unknown subject '{}' (see --list)")
    skipped += skip(wanted, lambda one: one.missing(acdc), "subject")
    document = new_document(request, tools, host, chosen, wanted, skipped)
    files = [acdc, build / "libprudence.so", *(one.allocator.path for one in wanted if one.allocator)]
    document["settings"] = keep.settings(request.short, host, document["environment"], dict.fromkeys(files), chosen, wanted)
    points = [Point(experiment, subject, at, request) for experiment in chosen
              for at in experiment.points for subject in wanted if is_for(experiment, subject)]
    try:
        begin(request, document, points)
    except keep.Refused as reason:
        parser.error(f"--json: {reason}")
    progress = Progress("bench-acdc")
    status = measure(request, document, points, Runner(acdc, request.timeout, progress), progress)
    if request.json and request.json.suffix:
        report.main([str(request.json)])
    return status


def begin(request, document, points):
    """Checks the existing file: the run continues it, or must not lose it."""
    found = keep.read(request.json) if request.json and request.json.exists() else None
    if not found:
        return
    if request.resume:
        keep.go_on(request.json, found, document["settings"], points)
        document["date"] = found["date"]
    elif found.get("points_open"):
        raise keep.Refused(
            f"{request.json} has a run that is not finished ({found['points_open']} of "
            f"{found['points']} points are open): go on with it (--resume), remove it, or name "
            "another file")


def measure(request, document, points, runner, progress):
    def save(ended="it goes on"):
        fill(document, points, ended)
        if request.json:
            kept.write(request.json, document, 1)

    measuring = Measuring(points, runner.run, save, progress, request.minutes)
    try:
        ended = measuring.measure()
    except KeyboardInterrupt:
        ended = "interrupted"
    save(ended)
    progress.say(f"{ended}: {document['points_within_aim']} of {len(points)} points within their aim, {document['points_open']} open")
    if document["points_open"] and request.json:
        progress.say(f"go on with --resume --json {request.json}")
    print_findings(document)
    if ended == "interrupted":
        return INTERRUPTED
    return 1 if any("failed" in row for row in document["rows"]) else 0
