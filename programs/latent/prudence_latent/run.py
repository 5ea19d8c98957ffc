# SPDX-License-Identifier: MIT
"""prudence-latent: starts a program with the shim, and reports what waited in it."""

import argparse
import dataclasses
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from prudence_watch import pipe, version
from prudence_watch.command_line import Parser
from . import figures, record, report, unseen

EXAMPLE = """\
examples:
  prudence-latent --html waits.html knotd -c /etc/knot/knot.conf
  prudence-latent --every 1 --json waits.json -- ./server --port 5300
"""
NOTHING_SEEN = 3
PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
PT_INTERP = 3


class Refused(Exception):
    """The program cannot be watched; the text says why."""


@dataclasses.dataclass(frozen=True)
class Places:
    shim: Path
    style: Path


def parser():
    made = Parser(
        prog="prudence-latent", epilog=EXAMPLE,
        description="Runs PROGRAM and shows its waits for grace periods: callbacks of liburcu (call_rcu), how long they wait and how much memory "
        "hangs behind them; how long its threads sleep in synchronize_rcu; by calling place. PROGRAM is not changed. The report goes to standard error.")
    version.add_option(made)
    made.add_argument("--json", metavar="FILE", help="also as JSON")
    made.add_argument("--html", metavar="FILE", help="also as a page with a picture over time (needs python3-matplotlib)")
    made.add_argument("--every", metavar="SECONDS", type=float, help="report the pending callbacks every N seconds")
    made.add_argument("--top", metavar="N", type=int, default=figures.TOP, help=f"calling places that are shown ({figures.TOP})")
    made.add_argument("program", metavar="PROGRAM", help="the program to run: a path, or a name that is searched in PATH")
    made.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER)
    return made


def parse(words):
    made = parser()
    if "--" in words:  # the rest is the program's, also its own "--"
        at = words.index("--")
        options = made.parse_args([*words[:at], *words[at + 1:at + 2]])
        options.arguments = words[at + 2:]
    else:
        options = made.parse_args(words)
    if options.every is not None and not options.every > 0:
        made.error(f"--every {options.every}: a number of seconds above 0 is needed")
    if options.top < 1:
        made.error(f"--top {options.top}: at least 1 is needed")
    for option, name in (("--json", options.json), ("--html", options.html)):
        if name and not Path(name).resolve().parent.is_dir():
            made.error(f"{option} {name}: there is no such folder")
    return options


# ------------------------------------------------------------------------------------------------------ the program

def find(name):
    path = shutil.which(name)
    if not path:
        raise Refused(f"there is no program '{name}'")
    mode = os.stat(path).st_mode
    if mode & (stat.S_ISUID | stat.S_ISGID) and os.geteuid() != 0:
        raise Refused(f"{path} is set-uid or set-gid, so the system preloads nothing into it; run this as root")
    if is_static(path):
        raise Refused(f"{path} is linked statically, so nothing can be preloaded into it")
    return path


def is_static(path):
    """Says whether an ELF file of 64 bits has no program header that names a loader. A script is run by a program that is not static."""
    with open(path, "rb") as file:
        head = file.read(1 << 16)
    if head[:5] != b"\x7fELF\x02":
        return False
    start, size, count = (int.from_bytes(head[at:at + length], "little") for at, length in ((32, 8), (54, 2), (56, 2)))
    return not any(int.from_bytes(head[at:at + 4], "little") == PT_INTERP for at in range(start, start + size * count, size))


def preloadable(library, folder):
    """LD_PRELOAD separates paths by spaces and colons, so a link in the folder stands for a path that has one."""
    link = Path(folder, library.name)
    if not re.search("[ :]", str(library)):
        return library
    if re.search("[ :]", str(link)):
        raise Refused(f"LD_PRELOAD takes no path with a space or a colon: set TMPDIR to a folder without, not {folder}")
    link.symlink_to(library)
    return link


def environment(places, prefix):
    if not places.shim.is_file():
        raise Refused(f"{places.shim} is not there: this program is not installed as a whole")
    shim = preloadable(places.shim, Path(prefix).parent)
    preload = ":".join(filter(None, [str(shim), os.environ.get("LD_PRELOAD", "")]))
    return os.environ | {"LD_PRELOAD": preload, "PRUDENCE_LATENT": prefix}


def records(prefix):
    """Reads the records of all processes. The one that queued most comes first."""
    found = []
    for path in sorted(Path(prefix).parent.glob(Path(prefix).name + ".*")):
        try:
            found.append(record.read(path))
        except (OSError, record.BadRecord):
            pass  # the program ended while the shim made the file
    return sorted(found, key=lambda one: -sum(site.calls for site in one.sites) if one.seen else 1)


def say_now(prefix, began):
    for one in records(prefix):
        if one.seen:
            print(f"prudence-latent: {time.monotonic() - began:.1f} s: process {one.process}: {one.waiting:,} callbacks wait", file=sys.stderr, flush=True)


def wait(child, every, prefix, began):
    while True:
        try:
            return child.wait(every)
        except subprocess.TimeoutExpired:
            say_now(prefix, began)


def pass_signals_on():
    """Returns a function to call with the program once it runs; that restores the handlers of before. exec gives the program its own handling of
    signals."""
    early, running = [], []

    def pass_on(number, _):
        running[0].send_signal(number) if running else early.append(number)

    def begin(child):
        running.append(child)
        for number in early:
            child.send_signal(number)

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    signal.signal(signal.SIGINT, lambda *_: None)
    return begin


def run_program(options, places, prefix):
    """(status, seconds, when it began). Control-C reaches the program from the terminal; other signals are passed on, as a server that reads its
    configuration again needs them."""
    path, began = find(options.program), time.monotonic()
    begin = pass_signals_on()
    with subprocess.Popen([options.program, *options.arguments], executable=path, env=environment(places, prefix)) as child:
        begin(child)
        status = wait(child, options.every, prefix, began)
    return status, time.monotonic() - began, began


# ------------------------------------------------------------------------------------------------------- the report

def write(path, text):
    Path(path).write_text(text, encoding="utf-8", errors="surrogateescape")


def tell(options, places, found, seconds, began):
    """Returns False if there is nothing to report."""
    seen = [one for one in found if one.seen]
    shown = [figures.of(one, max(0.001, seconds - max(0, one.began / 1e9 - began))) for one in seen]
    command = " ".join([options.program, *options.arguments])
    for one in shown:
        print("\n".join(report.lines(one, command, options.top)), file=sys.stderr)
    if options.json:
        write(options.json, json.dumps({"command": command, "version": record.VERSION, "processes": shown}, indent=1) + "\n")
    if options.html:
        from . import picture
        write(options.html, picture.page(shown, command, places.style.read_text(), options.top))
    return bool(shown)


def why_nothing(found):
    if not found:
        return "the program never loaded the shim: it ended at once, or another program clears LD_PRELOAD"
    return "\n".join(unseen.lines(list(dict.fromkeys(one.program for one in found if one.program))))


def run(words, places):
    """The program. Returns its exit status, which is that of the program it ran."""
    options = parse(words)
    try:
        return run_and_tell(options, places)
    except BrokenPipeError: # of standard error, where the report goes
        return pipe.end()


def run_and_tell(options, places):
    folder = tempfile.mkdtemp(prefix="prudence-latent-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    try:
        if options.html:
            import matplotlib  # noqa: F401 (before the program runs: without it there would be no page)
        prefix = f"{folder}/waits"
        status, seconds, began = run_program(options, places, prefix)
        found = records(prefix)
        if not tell(options, places, found, seconds, began):
            print(f"prudence-latent: {why_nothing(found)}", file=sys.stderr)
            return status or NOTHING_SEEN
        return 128 - status if status < 0 else status
    except Refused as error:
        print(f"prudence-latent: {error}", file=sys.stderr)
        return 2
    except ImportError as error:
        print(f"prudence-latent: --html: {error} (Debian: python3-matplotlib)", file=sys.stderr)
        return 2
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"prudence-latent: {error}", file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(folder, ignore_errors=True)
