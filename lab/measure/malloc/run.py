# SPDX-License-Identifier: MIT
"""The command line of prudence-bench malloc, its rounds, and the document that they make."""

import os
import sys

from .. import allocators
from ..arguments import Parser
from ..command import Progress, now
from ..keep import write
from . import programs, verdict
from .watch import Failed

# Tables of their own: programs as in a public set, those of listed.py, and memory that is kept.
OTHER_SETS = ("like-", "tuned/", "apart/", "memory-", "locked/", *(f"{mode}/" for mode in programs.HUGE_PAGE_MODES))
PAUSED_ROUNDS = 3  # resident memory after a pause hardly varies, and pauses take time
SETTINGS = ("PRUDENCE_OPTIONS", "GLIBC_TUNABLES", "MALLOC_CONF", "SCUDO_OPTIONS", "MALLOC_", "MIMALLOC_", "TCMALLOC_", "TBB_MALLOC_")


def environment_now():
    return {name: value for name, value in os.environ.items() if name.startswith(SETTINGS)}


def parse_arguments(arguments):
    parser = Parser("prudence-bench malloc", "Patterns and whole programs under Prudence and under other allocators, preloaded. NAME may contain * and ?.")
    parser.add_argument("--subject", metavar="NAME,...", help="allocators (see --list); the first of them is the baseline")
    parser.add_argument("--program", metavar="NAME,...", help="names of runs (see --list); all but those with a / and those named like-* or memory-* unless given")
    parser.add_number("--repeat", 1, 1000, "interleaved rounds; medians are shown (10)", default=10)
    parser.add_number("--scale", 1e-6, 1000, "how much each does; 1 takes about half a second of glibc's (1)", float, 1.0, "a number above 0, up to 1000", "X")
    parser.add_number("--pause", 0, 60, f"before resident memory is read again, in the first {PAUSED_ROUNDS} rounds; 0: never (1)", float, 1.0,
                      metavar="SECONDS")
    parser.add_number("--timeout", 1, 86400, "a run that takes longer has failed (300)", float, 300.0, metavar="SECONDS")
    parser.add_json()
    parser.add_argument("--list", action="store_true", help="list allocators and programs, and end")
    return parser, parser.parse_args(arguments)


def show_list(all_programs, build, load):
    print("Allocators (--subject):")
    for one in allocators.ALLOCATORS + allocators.VARIANTS:
        why = allocators.prepare(one, build, load)
        print(f"  {one.name:<24}{why or f'{one.version}, {one.path}'}")
    print("\nPrograms (--program):")
    for one in all_programs:
        print(f"  {one.name:<24}{one.summary}")


def run_once(row, program, allocator, pause, progress):
    try:
        row["repeats"].append(program.run(allocator, pause))
    except Failed as failure:
        row["failed"] = str(failure)
        progress.say(f"{program.name} under {allocator.name}: {failure}")


def run_rounds(chosen, subjects, request):
    """All rows. A row that failed once is not tried again: it may have taken its whole timeout."""
    rows = {(program.name, allocator.name): new_row(program, allocator) for program in chosen for allocator in subjects}
    progress = Progress("prudence-bench", len(rows) * request.repeat, each=max(1, len(rows)))
    for round_ in range(request.repeat):
        pause = request.pause if round_ < PAUSED_ROUNDS else 0
        turn = round_ % len(subjects)  # no subject is always the first, or always after the same one
        for program in chosen:
            for allocator in subjects[turn:] + subjects[:turn]:
                row = rows[program.name, allocator.name]
                progress.step(f"{program.name} under {allocator.name}")
                if "failed" not in row:
                    run_once(row, program, allocator, pause, progress)
    progress.end()
    for row in rows.values():
        if "failed" not in row:
            verdict.add_medians(row)
    return list(rows.values())


def new_row(program, allocator):
    return {"program": program.name, "kind": program.kind, "subject": allocator.name, "version": allocator.version, "repeats": []}


def new_document(request, prudence, host, chosen, subjects, skipped):
    return {"program": "prudence-bench", "scenario": "malloc", "prudence": prudence, "date": now(), "host": host,
            "repeat": request.repeat, "scale": request.scale, "pause_seconds": request.pause,
            "environment": environment_now(), "skipped": skipped,
            "allocators": [{"name": one.name, "version": one.version, "file": str(one.path)} for one in subjects],
            "programs": [{"name": one.name, "kind": one.kind, "summary": one.summary, "version": one.version} for one in chosen]}


def print_summary(document):
    lines = document["summary"]["subjects"]
    if not lines:
        print("No program ran under every allocator: there is nothing to compare.")
        return
    print(f'Relative to {document["summary"]["baseline"]}, geometric means of '
          f'{len(document["summary"]["programs"])} programs [95 % confidence]:\n')
    names = [name for name in verdict.FIGURES if name in lines[0]]
    print(f'{"allocator":<16}' + "".join(f"{name:>22}" for name in names) + "  front")
    for line in lines:
        cells = (f'{line[name]["geometric_mean"]:.3f} [{line[name]["low"]:.2f}, ' f'{line[name]["high"]:.2f}]' for name in names)
        print(f'{line["subject"]:<16}' + "".join(f"{cell:>22}" for cell in cells) + ("  yes" if line["on_pareto_front"] else ""))
    if document["summary"]["left_out"]:
        print("Skipped, since not every allocator ran it:", ", ".join(document["summary"]["left_out"]))


def main(arguments, build):
    parser, request = parse_arguments(arguments)
    tools = programs.Tools(build, request.timeout)
    parser.need(tools.bench, tools.load, tools.watch)
    all_programs = programs.programs(tools)
    if request.list:
        show_list(all_programs, build, tools.load)
        return 0
    chosen = (parser.choose(request.program, all_programs, "unknown program '{}' (see --list)") if request.program else
              [one for one in all_programs if not one.name.startswith(OTHER_SETS)])
    subjects = (parser.choose(request.subject, allocators.ALLOCATORS + allocators.VARIANTS, "unknown subject '{}' (see --list)") if request.subject else
                list(allocators.ALLOCATORS))
    skipped = skip(chosen, lambda one: one.missing(), "program")
    skipped += skip(subjects, lambda one: allocators.prepare(one, build, tools.load), "subject")
    if not chosen or not subjects:
        parser.error("nothing remains to measure")
    for program in chosen:
        program.prepare(request.scale)
    host = allocators.probe(subjects[0], tools.load)["host"]
    prudence = programs.first_line([tools.bench, "--version"]).split()[-1]
    document = new_document(request, prudence, host, chosen, subjects, skipped)
    document["rows"] = run_rounds(chosen, subjects, request)
    document["summary"] = verdict.summarize(document["rows"], [one.name for one in subjects])
    print_summary(document)
    if request.json:
        write(request.json, document, 1)
    return 1 if any("failed" in row for row in document["rows"]) else 0


def skip(items, why_not, kind):
    """Removes the items that cannot be measured here from `items`, and prints which, and why."""
    skipped = []
    for one in list(items):
        if why := why_not(one):
            print(f"prudence-bench: {one.name} is skipped: {why}", file=sys.stderr)
            skipped.append({kind: one.name, "why": why})
            items.remove(one)
    return skipped
