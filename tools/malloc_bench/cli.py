# SPDX-License-Identifier: MIT
"""The command line of prudence-bench malloc, its rounds, and the document that they make."""

import argparse
import datetime
import fnmatch
import json
import os
import sys
import time
from pathlib import Path

from . import allocators, programs, summary
from .watch import Failed

PUBLIC_SET = "like-"  # programs of the kinds that a public set runs: a table of their own
PAUSED_ROUNDS = 3  # resident memory after a pause hardly varies, and pauses take time
SETTINGS = ("PRUDENCE_OPTIONS", "GLIBC_TUNABLES", "MALLOC_CONF", "SCUDO_OPTIONS", "MALLOC_",
            "MIMALLOC_", "TCMALLOC_", "TBB_MALLOC_")


def number(low, high, kind, wanted):
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(f"'{text}' is not {wanted}")
        return value
    return parse


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="prudence-bench malloc", allow_abbrev=False,
        description="Patterns and whole programs under Prudence and under other allocators, "
                    "preloaded. NAME may contain * and ?.")
    parser.add_argument("--subject", metavar="NAME,...", default="*",
                        help="allocators (see --list); the first of them is the baseline")
    parser.add_argument("--program", metavar="NAME,...", default=None,
                        help="what runs (see --list); all but those named like-* unless given")
    parser.add_argument("--repeat", metavar="N", default=10,
                        type=number(1, 1000, int, "a number from 1 to 1000"),
                        help="interleaved rounds; medians are shown (10)")
    parser.add_argument("--scale", metavar="X", default=1.0,
                        type=number(1e-6, 1000, float, "a number above 0, up to 1000"),
                        help="how much each does; 1 takes about half a second of glibc's (1)")
    parser.add_argument("--pause", metavar="SECONDS", default=1.0,
                        type=number(0, 60, float, "a number from 0 to 60"),
                        help="before resident memory is read again, in the first "
                             f"{PAUSED_ROUNDS} rounds; 0: never (1)")
    parser.add_argument("--timeout", metavar="SECONDS", default=300.0,
                        type=number(1, 86400, float, "a number from 1 to 86400"),
                        help="a run that takes longer has failed (300)")
    parser.add_argument("--json", metavar="FILE", help="write all results to FILE")
    parser.add_argument("--list", action="store_true", help="list allocators and programs, and end")
    return parser, parser.parse_args(arguments)


def choose(parser, what, patterns, known):
    """Those whose name matches one of the patterns; each pattern must match something."""
    for pattern in patterns.split(","):
        if not any(fnmatch.fnmatchcase(one.name, pattern) for one in known):
            parser.error(f"unknown {what} '{pattern}' (see --list)")
    return [one for one in known
            if any(fnmatch.fnmatchcase(one.name, pattern) for pattern in patterns.split(","))]


def show_list(all_programs, build, load):
    print("Allocators (--subject):")
    for one in allocators.ALLOCATORS:
        why = allocators.prepare(one, build, load)
        print(f"  {one.name:<14}{why or f'{one.version}, {one.path}'}")
    print("\nPrograms (--program):")
    for one in all_programs:
        print(f"  {one.name:<14}{one.summary}")


class Progress:
    """One line that is overwritten on a terminal; a line a round elsewhere."""

    def __init__(self, runs, rounds):
        self.runs, self.rounds, self.done = runs, rounds, 0
        self.terminal = sys.stderr.isatty()
        self.began = time.monotonic()

    def begin_round(self, round_):
        if not self.terminal:
            print(f"{datetime.datetime.now():%T} round {round_ + 1} of {self.rounds}",
                  file=sys.stderr, flush=True)

    def begin_run(self, program, allocator):
        if self.terminal:
            left = (time.monotonic() - self.began) / max(1, self.done) * (self.runs - self.done)
            about = f", about {left / 60:.0f} min left" if self.done else ""
            print(f"\r\033[K{self.done} of {self.runs} runs{about}: {program.name} under "
                  f"{allocator.name}", end="", file=sys.stderr, flush=True)
        self.done += 1

    def say(self, text):
        print(("\r\033[K" if self.terminal else "") + f"prudence-bench: {text}", file=sys.stderr,
              flush=True)

    def end(self):
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr)


def run_once(row, program, allocator, pause, progress):
    try:
        row["repeats"].append(program.run(allocator, pause))
    except Failed as failure:
        row["failed"] = str(failure)
        progress.say(f"{program.name} under {allocator.name}: {failure}")


def run_rounds(chosen, subjects, request):
    """All rows. A row that failed once is not tried again: it may have taken its whole timeout."""
    rows = {(program.name, allocator.name): new_row(program, allocator)
            for program in chosen for allocator in subjects}
    progress = Progress(len(rows) * request.repeat, request.repeat)
    for round_ in range(request.repeat):
        pause = request.pause if round_ < PAUSED_ROUNDS else 0
        progress.begin_round(round_)
        turn = round_ % len(subjects)  # nobody is always the first, or always behind the same
        for program in chosen:
            for allocator in subjects[turn:] + subjects[:turn]:
                row = rows[program.name, allocator.name]
                progress.begin_run(program, allocator)
                if "failed" not in row:
                    run_once(row, program, allocator, pause, progress)
    progress.end()
    for row in rows.values():
        if "failed" not in row:
            summary.add_medians(row)
    return list(rows.values())


def new_row(program, allocator):
    return {"program": program.name, "kind": program.kind, "subject": allocator.name,
            "version": allocator.version, "repeats": []}


def new_document(request, prudence, host, chosen, subjects, skipped):
    now = datetime.datetime.now(datetime.timezone.utc)
    settings = {name: value for name, value in os.environ.items() if name.startswith(SETTINGS)}
    return {"program": "prudence-bench", "scenario": "malloc", "prudence": prudence, "date": f"{now:%Y-%m-%dT%H:%M:%SZ}", "host": host,
            "repeat": request.repeat, "scale": request.scale, "pause_seconds": request.pause,
            "environment": settings, "skipped": skipped,
            "allocators": [{"name": one.name, "version": one.version, "file": str(one.path)}
                           for one in subjects],
            "programs": [{"name": one.name, "kind": one.kind, "summary": one.summary,
                          "version": one.version} for one in chosen]}


def print_summary(document):
    lines = document["summary"]["subjects"]
    if not lines:
        print("No program ran under every allocator: there is nothing to compare.")
        return
    print(f'Relative to {document["summary"]["baseline"]}, geometric means of '
          f'{len(document["summary"]["programs"])} programs [95 % confidence]:\n')
    names = [name for name in summary.FIGURES if name in lines[0]]
    print(f'{"allocator":<11}' + "".join(f"{name:>22}" for name in names) + "  front")
    for line in lines:
        cells = (f'{line[name]["geometric_mean"]:.3f} [{line[name]["low"]:.2f}, '
                 f'{line[name]["high"]:.2f}]' for name in names)
        print(f'{line["subject"]:<11}' + "".join(f"{cell:>22}" for cell in cells)
              + ("  yes" if line["on_pareto_front"] else ""))
    if document["summary"]["left_out"]:
        print("Left out, since not every allocator ran it:",
              ", ".join(document["summary"]["left_out"]))


def main(arguments, build):
    parser, request = parse_arguments(arguments)
    tools = programs.Tools(build, request.timeout)
    for program in (tools.bench, tools.load, tools.watch):
        if not program.exists():
            parser.error(f"{program} is missing: run `make build`")
    all_programs = programs.programs(tools)
    if request.list:
        show_list(all_programs, build, tools.load)
        return 0
    chosen = (choose(parser, "program", request.program, all_programs) if request.program else
              [one for one in all_programs if not one.name.startswith(PUBLIC_SET)])
    subjects = choose(parser, "subject", request.subject, allocators.ALLOCATORS)
    if request.json and not Path(request.json).resolve().parent.is_dir():
        parser.error(f"--json: '{request.json}' cannot be written: there is no such folder")
    skipped = skip(chosen, lambda one: one.missing(), "program")
    skipped += skip(subjects, lambda one: allocators.prepare(one, build, tools.load), "subject")
    if not chosen or not subjects:
        parser.error("nothing is left to measure")
    for program in chosen:
        program.prepare(request.scale)
    host = allocators.probe(subjects[0], tools.load)["host"]
    prudence = programs.first_line([tools.bench, "--version"]).split()[-1]
    document = new_document(request, prudence, host, chosen, subjects, skipped)
    document["rows"] = run_rounds(chosen, subjects, request)
    document["summary"] = summary.summarize(document["rows"], [one.name for one in subjects])
    print_summary(document)
    if request.json:
        Path(request.json).write_text(json.dumps(document, indent=1) + "\n")
    return 1 if any("failed" in row for row in document["rows"]) else 0


def skip(items, why_not, kind):
    """Takes out of `items` what cannot be measured here; says which, and why."""
    skipped = []
    for one in list(items):
        if why := why_not(one):
            print(f"prudence-bench: {one.name} is skipped: {why}", file=sys.stderr)
            skipped.append({kind: one.name, "why": why})
            items.remove(one)
    return skipped
