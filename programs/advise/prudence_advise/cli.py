# SPDX-License-Identifier: MIT
"""The command line of prudence-advise."""

import argparse
import datetime
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from prudence_watch import command_line, pipe
from prudence_watch.command_line import Parser
from . import advice, errors, machine, mechanisms, ours
from .inputs import count, seconds, share, time

COMMANDS = ("advise", "calibrate", "check", "figures", "hash", "record")
EXAMPLE = """\
examples:
  prudence-advise --threads 64 --updates 2% --ops-per-section 3 --live 1e6
  prudence-advise calibrate --picture costs.svg
  prudence-advise figures --output figures.html
  prudence-advise hash --output hash.html
  prudence-advise record ./server --port 8080

`prudence-advise COMMAND --help` has the options of the
other commands: calibrate, check, figures, hash, record.
"""


@dataclass(frozen=True)
class Places:
    """Folders of the programs and of the style of reports, and the version of all."""

    programs: Path
    style: Path
    version: str = "unknown"


def add_machine_options(parser):
    group = parser.add_argument_group("the machine")
    group.add_argument("--calibration", metavar="FILE", type=Path,
                       help="costs of operations (default: those of this machine, measured at first use)")
    group.add_argument("--cpus", metavar="N", type=count(1, 4096), help="CPUs (default: as measured)")
    group.add_argument("--nodes", metavar="N", type=count(1, 256), help="NUMA nodes (default: as measured)")
    group.add_argument("--far", metavar="TIME", type=time(1, 1e6),
                       help="time to fetch a cache line from another node (default: measured, or an estimate)")


def advise_parser(version):
    parser = Parser(
        prog="prudence-advise",
        description="Which way to synchronize a load is the fastest on this machine, and whether RCU pays.",
        epilog=EXAMPLE)
    parser.add_argument("--version", action="version", version=f"%(prog)s {version}", help="print the version and end")
    load = parser.add_argument_group("the load")
    load.add_argument("--threads", metavar="N", type=count(1, 1e5), required=True, help="threads that use the data")
    load.add_argument("--updates", metavar="SHARE", type=share, required=True,
                      help="share of the sections that change something, as 2%% or 0.02")
    load.add_argument("--ops-per-section", metavar="N", type=count(1, 1e6), default=1,
                      help="lookups in a critical section (1)")
    load.add_argument("--lookup", metavar="TIME", type=time(0, 1e9), default=100.0,
                      help="a lookup without synchronization (100ns)")
    load.add_argument("--update", metavar="TIME", type=time(0, 1e9), default=50.0,
                      help="additional time of an update (50ns)")
    load.add_argument("--between", metavar="TIME", type=time(0, 1e12), default=1000.0,
                      help="from a thread's section to its next one (1us)")
    load.add_argument("--live", metavar="N", type=count(1, 1e15), default=1000, help="objects that are live (1000)")
    load.add_argument("--size", metavar="BYTES", type=count(1, 1 << 30), default=64, help="size of an object (64)")
    load.add_argument("--buckets", metavar="N", type=count(1, 1e12), default=1,
                      help="parts that can be locked one by one, as the buckets of a hash table (1)")
    load.add_argument("--data", choices=("linked", "plain"), default="linked",
                      help="linked: readers follow pointers to objects that updates free (default); plain: they do not")
    load.add_argument("--blocking", action="store_true", help="readers block inside sections")
    load.add_argument("--stays", metavar="TIME", type=time(0, 1e12), default=0.0,
                      help="the time for which one reader may keep an object, in addition to all other readers (0)")
    load.add_argument("--fresh", action="store_true", help="readers must not see an object that was replaced")
    load.add_argument("--latent-limit", metavar="BYTES", type=count(0, 1 << 50), default=ours.LATENT_LIMIT,
                      help="the library's option: bytes that may wait for a grace period (32M; 0: any)")
    load.add_argument("--current", choices=[one.name for one in mechanisms.MECHANISMS], default="rwlock", metavar="MECHANISM",
                      help=f"the mechanism that the program uses now, one of {', '.join(one.name for one in mechanisms.MECHANISMS)} (rwlock)")
    add_machine_options(parser)
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    return parser


def parse_load(parser, arguments):
    request = parser.parse_args(arguments)
    if request.nodes and request.cpus and request.nodes > request.cpus:
        parser.error(f"--nodes {request.nodes} is more than --cpus {request.cpus}")
    if request.buckets > 1 and request.current == "seqlock":
        parser.error("--buckets: a seqlock has one counter for all")
    if request.current == "buckets" and request.buckets <= 1:
        parser.error("--current buckets needs --buckets N")
    load = mechanisms.Load(threads=request.threads, updates=request.updates, operations=request.ops_per_section,
                           lookup=request.lookup, update=request.update, between=request.between, live=request.live,
                           size=request.size, buckets=request.buckets, latent_limit=request.latent_limit)
    if load.reading + load.between == 0:
        parser.error("--lookup 0 and --between 0: then a section takes no time")
    needs = advice.Needs(linked=request.data == "linked", blocking=request.blocking, fresh=request.fresh,
                         stays=request.stays)
    return request, load, needs


# ---------------------------------------------------------------------------------------- the machine

def now():
    return f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


def checks_kept(path):
    """Returns the earlier measurements of `check` on this machine. They outlive a calibration."""
    try:
        document = machine.load(path)
        return document.get("checks", []) if machine.is_of_this_machine(document) else []
    except machine.BadCalibration:
        return []


def measure_and_save(places, path, repeats=21, seconds=0.001):
    document = machine.measure(places.programs, repeats, seconds)
    document |= {"date": now(), "checks": checks_kept(path)}
    try:
        machine.save(document, path)
    except OSError as error:
        print(f"prudence-advise: the calibration is not kept: {path}: {error.strerror}", file=sys.stderr)
    if max(document["load"]) > document["host"]["cpus"]:
        print(f"prudence-advise: the machine was busy (load {max(document['load']):.1f} on {document['host']['cpus']} "
              "CPUs), so costs are too high; calibrate again when it is quiet", file=sys.stderr)
    return document


def calibration(request, places):
    """Reads the named file, or else the calibration of this machine. Measures if none fits."""
    if request.calibration:
        return machine.load(request.calibration)
    path = machine.default_path()
    if path.exists():
        try:
            document = machine.load(path)
            if machine.is_of_this_machine(document):
                return document
            print(f"prudence-advise: {path} is of another machine", file=sys.stderr)
        except machine.BadCalibration as error:
            print(f"prudence-advise: {error}", file=sys.stderr)
    print(f"prudence-advise: measuring this machine, some seconds; kept in {path}", file=sys.stderr)
    return measure_and_save(places, path)


def machine_of(request, places, draws=advice.DRAWS):
    document = calibration(request, places)
    return machine.Machine(document, request.cpus, request.nodes, request.far, draws)


# -------------------------------------------------------------------------------------------- commands

def run_advise(arguments, places):
    parser = advise_parser(places.version)
    request, load, needs = parse_load(parser, arguments)
    answer = advice.advise(machine_of(request, places), load, needs, request.current)
    print(json.dumps(answer, indent=1) if request.json else advice.text(answer))
    return 0


def run_calibrate(arguments, places):
    from . import table
    parser = Parser(prog="prudence-advise calibrate",
                                     description="Measure the costs of operations on this machine, and keep them.")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--show", action="store_true", help="show the kept measurement instead of measuring")
    parser.add_argument("--file", metavar="FILE", type=Path, default=None,
                        help="the file that keeps the costs (default: calibration.json in $XDG_CACHE_HOME/prudence)")
    parser.add_argument("--picture", metavar="FILE", type=Path, help="draw it, as .svg, .png or .pdf")
    parser.add_argument("--repeats", metavar="N", type=count(3, 1001), default=21,
                        help="samples of each measurement, which take turns (21)")
    parser.add_argument("--seconds", metavar="S", type=seconds, default=0.001, help="length of a sample (0.001)")
    request = parser.parse_args(arguments)
    if request.picture and request.picture.suffix not in (".svg", ".png", ".pdf"):
        parser.error(f"--picture: '{request.picture}' does not end in .svg, .png or .pdf")
    path = request.file or machine.default_path()
    document = machine.load(path) if request.show else measure_and_save(places, path, request.repeats, request.seconds)
    print(json.dumps(document, indent=1) if request.json else table.text(document))
    if request.picture:
        from . import pictures
        pictures.save(pictures.costs(document), request.picture)
        print(f"written: {request.picture}", file=sys.stderr)
    return 0


def keep_check(request, load, answer):
    """Keeps the check in the calibration of this machine, if that was asked and other programs did not use the CPUs."""
    from . import check
    if request.calibration or request.cpus or request.nodes or request.far:
        print("prudence-advise: the check is not kept: the costs are not those of this machine's own calibration", file=sys.stderr)
        return
    if answer["others"] > check.DISTURBED:
        print(f"prudence-advise: the check is not kept: other programs had {100 * answer['others']:.0f} % of the CPUs' time; check again "
              "when the machine is quiet", file=sys.stderr)
        return
    path = machine.default_path()
    rates = {row["name"]: row["measured"] for row in answer["rows"]}
    document = machine.load(path)
    try:
        machine.save(errors.with_check(document, load, answer["cpus"], rates, now()), path)
    except OSError as error:
        print(f"prudence-advise: the check is not kept: {path}: {error.strerror}", file=sys.stderr)


def run_check(arguments, places):
    from . import check
    parser = advise_parser(places.version)
    parser.prog, parser.epilog = "prudence-advise check", None
    parser.description = ("Run the load under each mechanism, and compare the rates with those of the model. The error is kept, and "
                          "later answers hold the model's error.")
    parser.add_argument("--repeats", metavar="N", type=count(1, 1000), default=5,
                        help="runs of each mechanism, which take turns (5)")
    parser.add_argument("--seconds", metavar="S", type=seconds, default=0.2, help="length of a run (0.2)")
    request, load, _ = parse_load(parser, arguments)
    if load.threads > 1024 or load.live > 1 << 28 or load.buckets > 1 << 24 or load.operations > 1e6:
        parser.error("a trial has at most 1024 threads, 268435456 objects and 16777216 buckets")
    here = machine_of(request, places)
    answer = check.compare(places.programs, here, load, request.repeats, request.seconds)
    keep_check(request, load, answer)
    print(json.dumps(answer, indent=1) if request.json else check.text(answer))
    return 0


def require_writable(*files):
    """Checks the output before work that takes minutes, or runs the user's program: an answer that cannot be written would be lost."""
    for file in filter(None, files):
        is_new = not file.exists()
        file.open("a").close()
        if is_new:
            file.unlink()


def run_figures(arguments, places):
    parser = Parser(prog="prudence-advise figures",
                                     description="Draw the regions in which each mechanism is the fastest, on one page.")
    parser.add_argument("--output", metavar="FILE", type=Path, default=Path("prudence-advise.html"),
                        help="the page (prudence-advise.html)")
    add_machine_options(parser)
    request = parser.parse_args(arguments)
    require_writable(request.output)
    from . import report
    report.write(request.output, machine_of(request, places, draws=0), places.style)
    print(f"written: {request.output}")
    return 0


def progress(done, of):
    if sys.stderr.isatty():
        print(f"\rprudence-advise: run {done} of {of}", end="\n" if done == of else "", file=sys.stderr, flush=True)


def hash_document(request, places):
    """Returns the saved measurement, or measures now."""
    from . import hashes
    if request.read:
        return hashes.load(request.read)
    here = machine_of(request, places, draws=0)
    if here.cpus != len(os.sched_getaffinity(0)):
        raise machine.BadCalibration(f"the calibration is of {here.cpus} CPUs, and {len(os.sched_getaffinity(0))} can be measured")
    return hashes.measure(places.programs, here, request.repeats, request.seconds, progress)


def run_hash(arguments, places):
    parser = Parser(
        prog="prudence-advise hash",
        description="Measure the hash table of the thesis under each of its mechanisms, some minutes, and say which findings of 2004 "
                    "hold today.")
    parser.add_argument("--output", metavar="FILE", type=Path, help="a page with Figures 2.3 to 2.13, 8.1 to 8.6 and D.1 to D.3")
    parser.add_argument("--save", metavar="FILE", type=Path, help="write the measurement to this file, as JSON")
    parser.add_argument("--read", metavar="FILE", type=Path, help="use a kept measurement instead of measuring")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument("--repeats", metavar="N", type=count(1, 1000), default=5, help="runs of each case, which take turns (5)")
    parser.add_argument("--seconds", metavar="S", type=seconds, default=0.1, help="length of a run (0.1)")
    parser.add_argument("--calibration", metavar="FILE", type=Path,
                        help="costs of operations (default: those of this machine, measured at first use)")
    parser.set_defaults(cpus=None, nodes=None, far=None)
    request = parser.parse_args(arguments)
    require_writable(request.save, request.output)
    from . import findings, hashes
    document = hash_document(request, places)
    if request.save:
        request.save.write_text(json.dumps(document, indent=1) + "\n")
    measured, here = hashes.Measured(document), machine.Machine(document["calibration"])
    found = findings.outcomes(measured, here)
    print(json.dumps(found, indent=1) if request.json else findings.text(found, measured))
    if request.output:
        from . import hash_report
        hash_report.write(request.output, measured, here, places.style)
        print(f"written: {request.output}", file=sys.stderr)
    return 0


def run_record(arguments, places):
    from . import record
    parser = Parser(
        prog="prudence-advise record", usage="prudence-advise record [OPTION...] PROGRAM [ARGUMENT...]",
        description="Run a program, count how it uses its pthread mutexes and rwlocks, and say which would gain from RCU.")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON, on standard error")
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the answer to FILE instead")
    parser.add_argument("--most", metavar="N", type=count(1, 1e6), default=10, help="locks that are shown (10)")
    parser.add_argument("--size", metavar="BYTES", type=count(1, 1 << 30), default=64,
                        help="size of an object that an update replaces (64)")
    add_machine_options(parser)
    parser.add_argument("program", metavar="PROGRAM", nargs=argparse.REMAINDER)
    request = parser.parse_args(arguments)
    command = request.program[1:] if request.program[:1] == ["--"] else request.program
    if not command:
        parser.error("PROGRAM is missing")
    require_writable(request.output)
    return record.run(command, request, machine_of(request, places), places.programs)


RUN = {"advise": run_advise, "calibrate": run_calibrate, "check": run_check,
       "figures": run_figures, "hash": run_hash, "record": run_record}


def words_to_complete(places):
    """The command whose parser answers a shell, if the line has one; else the shell is told the commands and the options, here."""
    words = command_line.words_to_complete()[:1]
    if words and words[0] in RUN:
        command_line.skip_word()
        return words
    parser = advise_parser(places.version)
    parser.add_argument("command", nargs="?", choices=COMMANDS)
    return parser.parse_args([])


def run(arguments, places):
    command, rest = "advise", arguments
    if command_line.is_to_complete():
        arguments = words_to_complete(places)
    if arguments and not arguments[0].startswith("-"):
        command, rest = arguments[0], arguments[1:]
    elif arguments and arguments[0] == "--record":
        command, rest = "record", arguments[1:]
    if command not in RUN:
        print(f"prudence-advise: unknown command '{command}': {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    try:
        status = RUN[command](rest, places)
        sys.stdout.flush()
        return status
    except machine.BadCalibration as error:
        print(f"prudence-advise: {error}", file=sys.stderr)
    except BrokenPipeError:
        pipe.end()
    except OSError as error:
        print(f"prudence-advise: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
    except KeyboardInterrupt:
        print("prudence-advise: interrupted", file=sys.stderr)
        return 130
    return 1
