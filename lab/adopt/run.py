# SPDX-License-Identifier: MIT
"""Fetches, builds, tests and measures programs on both sides. Finished parts are kept in build/adopt until something that it depends on changes."""

import argparse
import dataclasses
import importlib
import json
import shutil
import sys
from pathlib import Path

from measure import allocators, keep
from measure.command import ROOT, Progress, commit, now
from measure.page import Refused, Report

from . import page, sides
from .program import Failed, Missing

STEPS = ("patch", "build", "test", "measure")
WATCH, ENDURE = "watch", "endure"  # no steps of every run
ROUNDS, SECONDS = 5, 10
SKIPPED = 77
WATCHED = ("seconds", "callbacks", "bytes", "sleeps", "deferred", "refused", "reclaimed")  # the fields kept of a report of prudence-latent


def programs():
    """{name: program}, in the order of the report."""
    names = sorted(path.stem for path in (ROOT / "lab/adopt/programs").glob("[a-z]*.py"))
    found = [importlib.import_module(f"adopt.programs.{name}").PROGRAM for name in names]
    return {one.name: one for one in sorted(found, key=lambda one: (not one.counted, one.title.lower()))}


def parse_arguments(arguments, known):
    parser = argparse.ArgumentParser(
        prog="adopt", formatter_class=argparse.RawDescriptionHelpFormatter, description="""\
Move programs that defer to Prudence: fetch Debian's source, build it as it is and with lab/adopt/patches/NAME.patch, run the program's own tests on
both sides, then measure both in rounds in which they take turns. Finished steps are kept in build/adopt. After an interruption, call again.""",
        epilog="A program whose packages or source are not there is skipped, and named. Status 77 means that none remained.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these of: " + ", ".join(known))
    parser.add_argument("--only", choices=(*STEPS, WATCH, ENDURE), action="append",
                        help="only this step (again: more of them): patch fetches and patches; test and measure build missing parts; "
                        "watch: the program as it is, with and without prudence-latent in turns; endure: memory under a load that is the same on both "
                        "sides, which run at the same time (--seconds 3600)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds of the measurement ({ROUNDS})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"seconds of a round and side ({SECONDS})")
    parser.add_argument("--again", action="store_true", help="forget the kept results of the chosen steps, not the builds")
    parser.add_argument("--report", action="store_true", help="run nothing: report the kept results, build/report/adopt.html")
    parser.add_argument("--into", type=Path, metavar="DOCS", help="update the rows of these programs in the table and data below the folder DOCS")
    given = parser.parse_args(arguments)
    for name in given.names:
        if name not in known:
            parser.error(f"no program '{name}' is known here; known are: {', '.join(known)}")
    for option, value, least in (("--rounds", given.rounds, 1), ("--seconds", given.seconds, 0.1)):
        if value < least:
            parser.error(f"{option} {value}: at least {least} is needed")
    if given.into and not given.report:
        parser.error("--into needs --report")
    return given


# --------------------------------------------------------------------------------------------------------------- tasks

def tests_of(side):
    found = side.program.tests(side)
    return {"kind": "tests", "program": side.program.name, "side": side.name, "passed": found["passed"], "failing": sorted(found["failed"]),
            "skipped": found["skipped"]}


def round_of(side, number, seconds):
    found = side.program.measure(side, seconds)
    missing = [one.key for one in side.program.measures if one.key not in found]
    if missing:
        raise Failed(f"a round has no {', '.join(missing)}")
    return {"kind": "round", "program": side.program.name, "side": side.name, "round": number, "seconds_asked": seconds,
            "values": {one.key: float(found[one.key]) for one in side.program.measures}}


def watched_round_of(side, number, seconds):
    """The costs of watching the program, and, if it is watched, the report of prudence-latent about each process, without the curve."""
    if side.reports:
        shutil.rmtree(side.reports, ignore_errors=True)
        side.reports.mkdir(parents=True)
    found = side.program.measure(side, seconds)
    reports = [json.loads(path.read_text()) for path in sorted(side.reports.iterdir())] if side.reports else []
    return {"kind": "watched", "program": side.program.name, "watched": bool(reports), "round": number, "cost": float(found[side.program.watched_cost]),
            "processes": [{key: one[key] for key in WATCHED} for report in reports for one in report["processes"]]}


def watch_tasks(plain, rounds, seconds):
    title, tool = plain.program.title, {"tool": sides.digest(plain.build_folder / "bin/libprudence-latent.so")}
    for number in range(1, rounds + 1):
        for how, side in (("without", plain), ("with", dataclasses.replace(plain, reports=plain.folder / "reports"))):
            yield keep.Task(f"watched-{how}-{number}", f"{title}, {how} prudence-latent, round {number}", "watched",
                            side.identity() | tool | {"round": number, "seconds": seconds},
                            lambda side=side, number=number: or_why(watched_round_of, side, number, seconds), seconds)


def endured_of(side, seconds):
    memory, done = side.program.endure(side, seconds)
    return {"kind": "endured", "program": side.program.name, "side": side.name, "seconds_asked": seconds, "bytes": memory, "done": done}


def endure_tasks(both, seconds):
    for side in both:
        yield keep.Task(f"endured-{side.name}", f"{side.program.title}, {side.name}: {side.program.long_load}", "endured",
                        side.identity() | {"seconds": seconds}, lambda side=side: or_why(endured_of, side, seconds), seconds)


def broken_by_the_patch(program, runs):
    """[(title, why)] if tests fail that pass as the program is."""
    failing = {run["side"]: set(run["failing"]) for run in runs}
    broken = sorted(failing.get("after", set()) - failing.get("before", set()))
    return [(f"{program.title}, after: its own tests", f"these pass before: {', '.join(broken)}")] if broken and "before" in failing else []


def or_why(work, *arguments):
    try:
        return work(*arguments)
    except (Failed, OSError) as error:
        return {"failed": str(error)}


def tasks_of(both, steps, rounds, seconds):
    """Rounds are outermost and sides innermost, so that both sides see the same machine."""
    title = both[0].program.title
    if WATCH in steps:
        yield from watch_tasks(both[0], rounds, seconds)
    if "test" in steps:
        for side in both:
            yield keep.Task(f"tests-{side.name}", f"{title}, {side.name}: its own tests", "tests", side.identity(), lambda side=side: or_why(tests_of, side))
    if "measure" in steps:
        for number in range(1, rounds + 1):
            for side in both:
                yield keep.Task(f"round-{side.name}-{number}", f"{title}, {side.name}, round {number}", "round",
                                side.identity() | {"round": number, "seconds": seconds},
                                lambda side=side, number=number: or_why(round_of, side, number, seconds), seconds)


def forget(runs, steps):
    """Removes the results that these steps kept."""
    for step, names in (("test", "tests-*.json"), ("measure", "round-*.json"), (WATCH, "watched-*.json"),
                        (ENDURE, "endured-*.json")):
        for one in sorted(runs.glob(names)) if step in steps else ():
            one.unlink()


def run_program(program, build, given, say):
    """Returns the failures: [(title, why)]. Raises Missing."""
    steps = given.only or STEPS
    missing = sides.missing_packages(program)
    if missing:
        raise Missing(f"packages are not installed: {' '.join(missing)} (tools/setup --adopt)")
    both = [sides.Side(program, patched, build) for patched in (False, True)]
    runs = build / "adopt" / program.name / "runs"
    if given.again:
        forget(runs, steps)
    for side in both[:1] if steps == [WATCH] else both:
        say(f"{program.title}: {'patches' if steps == ['patch'] else 'builds'} {side.name}")
        try:
            side.prepare() if steps == ["patch"] else side.make()
        except Failed as error:
            return [(f"{program.title}, {side.name}: build", str(error))]
    done, failed = keep.run_all("adopt", list(tasks_of(both, steps, given.rounds, given.seconds)), runs)
    if ENDURE in steps:
        if not program.long_load:
            raise Missing("it has no load for a longer time")
        failed += keep.run_all("adopt", list(endure_tasks(both, given.seconds)), runs, jobs=2)[1]
    return failed + broken_by_the_patch(program, [run for run in done if run["kind"] == "tests"])


# -------------------------------------------------------------------------------------------------------------- report

def document_of(chosen, build):
    """All that is kept of them."""
    runs = [json.loads(path.read_text()) for name in chosen for path in sorted((build / "adopt" / name / "runs").glob("*.json"))]
    glibc = next(one for one in allocators.ALLOCATORS if one.name == "glibc")
    load = build / "bin/prudence-malloc-load"
    allocators.prepare(glibc, build, load)
    return {"program": "adopt", "date": now(), "commit": commit(), "host": allocators.probe(glibc, load)["host"], "runs": runs, "skipped": [],
            "others_cpus": max((run["others_cpus"] for run in runs), default=0)}


def make_report(known, chosen, build, into):
    document = document_of(chosen, build)
    if not document["runs"]:
        print("adopt: nothing has been measured yet (make adopt)", file=sys.stderr)
        return 1
    place = build / "report/adopt.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    keep.write(place, document, 1)
    made = Report(place, into=into)
    try:
        print(page.report(document, made, known))
    except Refused as error:
        print(f"adopt: {error}", file=sys.stderr)
        return 1
    print("\n".join(f"wrote {one}" for one in made.written))
    return 0


def main(arguments, build):
    known = programs()
    given = parse_arguments(arguments, known)
    chosen = {name: known[name] for name in given.names or known}
    if given.report:
        return make_report(known, chosen, build, given.into)
    say, failed, left_out = Progress("adopt").say, [], []
    for program in chosen.values():
        try:
            failed += run_program(program, build, given, say)
        except Missing as error:
            left_out.append(program.title)
            say(f"{program.title} is skipped: {error}")
    for title, why in failed:
        say(f"FAILED: {title}\n{why}")
    if failed:
        return 1
    return SKIPPED if len(left_out) == len(chosen) else 0
