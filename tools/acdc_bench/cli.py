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

from . import experiments, findings, statistics, subjects
from .runner import Runner


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="bench-acdc", allow_abbrev=False,
        description="The experiments of chapter 6 of \"Short-term Memory for C\", under Prudence and "
                    "under other allocators. NAME may contain * and ?.")
    parser.add_argument("--short", action="store_true",
                        help="fewer points and shorter runs: some minutes instead of hours")
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
    parser.add_argument("--json", metavar="FILE", help="write all results to FILE")
    parser.add_argument("--list", action="store_true", help="list experiments and subjects, and end")
    request = parser.parse_args(arguments)
    for name, long, short in (("least", 5, 2), ("most", 50, 4), ("replications", 5, 2)):
        if getattr(request, name) is None:
            setattr(request, name, short if request.short else long)
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


def variation_of(experiment, rows):
    """subject -> response -> effect -> share, of the rows of a factorial design."""
    labels, found = list(experiment.labels), {}
    order = ["".join(label + "-+"[level[label]] for label in labels)
             for level in statistics.levels(labels)]
    for subject in dict.fromkeys(row["subject"] for row in rows):
        by_point = {row["point"]: row["repeats"] for row in rows if row["subject"] == subject}
        if any("failed" in row for row in rows if row["subject"] == subject):
            continue
        for name in experiments.REFRESH + experiments.MALLOC:
            table = [[repeat.get(name) for repeat in by_point[point]] for point in order]
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
            "environment": {name: value for name, value in os.environ.items()
                            if name.startswith(SETTINGS)},
            "allocators": [{"name": one.name, "version": one.version, "file": one.path.name}
                           for one in used.values()],
            "experiments": [{"name": one.name, "title": one.title, "figures": one.figures,
                             "axis": one.axis, "log": one.log, "labels": one.labels,
                             "options": one.options} for one in chosen],
            "rows": [], "variation": {}}


def show_list(all_experiments, known):
    print("Experiments (--experiment):")
    for one in all_experiments:
        print(f"  {one.name:<22}{one.title} (figures {one.figures})")
    print("\nSubjects (--subject):")
    for one in known:
        library = one.allocator and f", {one.allocator.name} {one.allocator.version}"
        print(f"  {one.name:<28}{one.kind}{library or ''}")


def print_findings(document):
    marks = {True: "holds", False: "does not hold", None: "not measured"}
    for finding in document["findings"]:
        if finding["experiment"] in {one["name"] for one in document["experiments"]}:
            print(f'{finding["figure"]:>5}  {marks[finding["holds"]]:<14} {finding["thesis"]}\n'
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
    runner = Runner(acdc, request)
    for experiment in chosen:
        rows = runner.measure(experiment, [one for one in wanted if is_for(experiment, one)])
        document["rows"] += rows
        if experiment.labels:
            document["variation"][experiment.name] = variation_of(experiment, rows)
    document["findings"] = findings.check_all(document)
    print_findings(document)
    if request.json:
        Path(request.json).write_text(json.dumps(document, indent=1) + "\n")
    return 1 if any("failed" in row for row in document["rows"]) else 0
