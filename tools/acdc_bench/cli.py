# SPDX-License-Identifier: MIT
"""The command line of bench-acdc, and the document that it makes."""

import argparse
import datetime
import fnmatch
import json
import os
import sys
from pathlib import Path

from malloc_bench import allocators, programs
from malloc_bench.cli import SETTINGS, number, skip

from . import experiments, findings, results, statistics, subjects
from .measuring import Measuring
from .points import Point
from .runner import Runner

INTERRUPTED = 130  # the exit status, as of a program that Control-C ended


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="bench-acdc", allow_abbrev=False,
        description="The experiments of chapter 6 of \"Short-term Memory for C\", under Prudence and "
                    "under other allocators. NAME may contain * and ?.")
    parser.add_argument("--short", action="store_true",
                        help="fewer points and shorter runs: some minutes instead of half an hour")
    parser.add_argument("--experiment", metavar="NAME,...", default="*",
                        help="see --list")
    parser.add_argument("--subject", metavar="NAME,...", default="*",
                        help="see --list")
    parser.add_argument("--least", metavar="N", type=number(2, 1000, int, "a number from 2 to 1000"),
                        help="repeats of each point at least (5; short: 2)")
    parser.add_argument("--most", metavar="N", type=number(2, 1000, int, "a number from 2 to 1000"),
                        help="repeats at most, whatever the interval (50; short: 4)")
    parser.add_argument("--replications", metavar="N",
                        type=number(1, 1000, int, "a number from 1 to 1000"),
                        help="of each point of a factorial design (5; short: 2)")
    parser.add_argument("--precision", metavar="X", default=0.1,
                        type=number(0.001, 1, float, "a number from 0.001 to 1"),
                        help="half of the 95 %% interval, relative to the mean (0.1)")
    parser.add_argument("--timeout", metavar="SECONDS", default=600.0,
                        type=number(1, 86400, float, "a number from 1 to 86400"),
                        help="a run that takes longer has failed (600)")
    parser.add_argument("--minutes", metavar="N",
                        type=number(0.01, 1e6, float, "a number from 0.01 to 1000000"),
                        help="end after N minutes; what is furthest from its aim is repeated first")
    parser.add_argument("--json", metavar="FILE",
                        help="write all results to FILE, after each round and twice a minute")
    parser.add_argument("--resume", action="store_true",
                        help="go on with what FILE has of the same settings, machine, and libraries")
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


def choose(parser, what, patterns, known):
    for pattern in patterns.split(","):
        if not any(fnmatch.fnmatchcase(one.name, pattern) for one in known):
            parser.error(f"unknown {what} '{pattern}' (see --list)")
    return [one for one in known
            if any(fnmatch.fnmatchcase(one.name, pattern) for pattern in patterns.split(","))]


def is_for(experiment, subject):
    return subject.kind in experiment.kinds or subject.name in experiment.kinds


def variation_of(labels, rows):
    """subject -> response -> effect -> share, of the rows of a factorial design. Of each point as many
    replications as the point with the fewest has: the last round may have been interrupted."""
    labels, found = list(labels), {}
    order = ["".join(label + "-+"[level[label]] for label in labels)
             for level in statistics.levels(labels)]
    for subject in dict.fromkeys(row["subject"] for row in rows):
        by_point = {row["point"]: row["repeats"] for row in rows if row["subject"] == subject}
        fewest = min(map(len, by_point.values()))
        if fewest == 0 or any("failed" in row for row in rows if row["subject"] == subject):
            continue
        for name in experiments.REFRESH + experiments.MALLOC:
            table = [[repeat.get(name) for repeat in by_point[point][:fewest]] for point in order]
            if not any(value is None for row in table for value in row):
                found.setdefault(subject, {})[name] = statistics.allocation_of_variation(
                    labels, table)
    return found


def new_document(request, tools, host, chosen, known, skipped):
    now = datetime.datetime.now(datetime.timezone.utc)
    used = {one.allocator.name: one.allocator for one in known if one.allocator}
    return {"program": "acdc", "scenario": "acdc",
            "prudence": programs.first_line([tools.bench, "--version"]).split()[-1],
            "date": f"{now:%Y-%m-%dT%H:%M:%SZ}", "host": host, "short": request.short,
            "least": request.least, "most": request.most, "replications": request.replications,
            "precision": request.precision, "skipped": skipped,
            "environment": environment_now(),
            "allocators": [{"name": one.name, "version": one.version, "file": one.path.name}
                           for one in used.values()],
            "experiments": [{"name": one.name, "title": one.title, "figures": one.figures,
                             "axis": one.axis, "log": one.log, "labels": one.labels,
                             "options": one.options} for one in chosen]}


def environment_now():
    return {name: value for name, value in os.environ.items() if name.startswith(SETTINGS)}


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
    document["findings"] = findings.check_all(document)


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
            print(f'{finding["figure"]:>5}  {finding["verdict"]:<14} {finding["thesis"]}\n'
                  f'{"":22}{finding["measured"]}')


def main(arguments, build):
    parser, request = parse_arguments(arguments)
    tools, acdc = programs.Tools(build, request.timeout), build / "bin/acdc"
    for program in (tools.bench, tools.load, acdc):
        if not program.exists():
            parser.error(f"{program} is missing: run `make build`")
    found = list(allocators.ALLOCATORS)
    skipped = skip(found, lambda one: allocators.prepare(one, build, tools.load), "subject")
    host = allocators.probe(found[0], tools.load)["host"]
    all_experiments = list(experiments.experiments(request.short, host["cpus"]))
    known = subjects.subjects(found)
    if request.list:
        show_list(all_experiments, known)
        return 0
    chosen = choose(parser, "experiment", request.experiment, all_experiments)
    wanted = choose(parser, "subject", request.subject, known)
    if request.json and not Path(request.json).resolve().parent.is_dir():
        parser.error(f"--json: '{request.json}' cannot be written: there is no such folder")
    skipped += skip(wanted, lambda one: one.missing(acdc), "subject")
    document = new_document(request, tools, host, chosen, wanted, skipped)
    files = [acdc, build / "libprudence.so", *(one.allocator.path for one in wanted if one.allocator)]
    document["settings"] = results.settings(request.short, host, document["environment"],
                                            dict.fromkeys(files), chosen, wanted)
    points = [Point(experiment, subject, at, request) for experiment in chosen
              for at in experiment.points for subject in wanted if is_for(experiment, subject)]
    try:
        begin(request, document, points)
    except results.Refused as reason:
        parser.error(f"--json: {reason}")
    return measure(request, document, points, Runner(acdc, request.timeout))


def begin(request, document, points):
    """Looks at the file that there is: it is gone on with, or must not be lost."""
    found = results.read(request.json) if request.json and Path(request.json).exists() else None
    if not found:
        return
    if request.resume:
        results.go_on(request.json, found, document["settings"], points)
        document["date"] = found["date"]
    elif found.get("points_open"):
        raise results.Refused(
            f"{request.json} has a run that is not finished ({found['points_open']} of "
            f"{found['points']} points are open): go on with it (--resume), remove it, or name "
            "another file")


def measure(request, document, points, runner):
    def save(ended="it goes on"):
        fill(document, points, ended)
        if request.json:
            results.write(request.json, document)

    measuring = Measuring(points, runner.run, save, runner.say, request.minutes)
    try:
        ended = measuring.measure()
    except KeyboardInterrupt:
        ended = "interrupted"
    save(ended)
    runner.say(f"{ended}: {document['points_within_aim']} of {len(points)} points within their aim, "
               f"{document['points_open']} open")
    if document["points_open"] and request.json:
        runner.say(f"go on with --resume --json {request.json}")
    print_findings(document)
    if ended == "interrupted":
        return INTERRUPTED
    return 1 if any("failed" in row for row in document["rows"]) else 0
