# SPDX-License-Identifier: MIT
"""Candidates for RCU in a running program (the thesis' 9.2.7): its locks, counted by a preloaded library, and the model."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy

from . import advice, errors, mechanisms

WORTH = 0.01  # of the threads' time: the least that a change should save
UPDATES_UNKNOWN = (0.0, 0.01, 0.1)  # a mutex does not distinguish reads and updates: the shares that are tried


@dataclass
class Use:
    count: int = 0
    contended: int = 0
    waited: int = 0
    held: int = 0

    def add(self, other):
        self.count += other.count
        self.contended += other.contended
        self.waited += other.waited
        self.held += other.held


@dataclass
class Site:
    """Locks that were first used at one place of the program."""

    kind: str
    file: str
    offset: str
    symbol: str
    locks: int
    threads: int
    read: Use
    write: Use

    @property
    def count(self):
        return self.read.count + self.write.count

    @property
    def waited(self):
        return self.read.waited + self.write.waited

    @property
    def held(self):
        return self.read.held + self.write.held


def parse(text):
    """The sites of one process, how long it ran (ns), and how many acquisitions were not counted."""
    sites, elapsed, missed = [], 0, 0
    for line in text.splitlines():
        parts = line.split("\t")
        if parts[0] == "elapsed":
            elapsed = int(parts[1])
        elif parts[0] == "missed":
            missed = int(parts[1])
        elif len(parts) == 14:
            numbers = [int(part) for part in parts[4:]]
            sites.append(Site(*parts[:4], numbers[0], numbers[1], Use(*numbers[2:6]), Use(*numbers[6:10])))
    return sites, elapsed, missed


def merge(files):
    """All processes of the run together: the longest one's time, and each place once."""
    found, elapsed, missed, processes = {}, 0, 0, 0
    for file in files:
        sites, took, lost = parse(file.read_text())
        elapsed, missed, processes = max(elapsed, took), missed + lost, processes + 1
        for site in sites:
            key = (site.kind, site.file, site.offset)
            if key not in found:
                found[key] = site
                continue
            found[key].locks += site.locks
            found[key].threads += site.threads
            found[key].read.add(site.read)
            found[key].write.add(site.write)
    return list(found.values()), elapsed, missed, processes


def place_of(site):
    """The source line, where addr2line and debug information have it; else symbol and offset."""
    name = site.symbol if site.symbol != "?" else ""
    if shutil.which("addr2line") and Path(site.file).is_file():
        # The place is a return address: one byte before is within the call.
        done = subprocess.run(["addr2line", "-Cfs", "-e", site.file, hex(int(site.offset, 16) - 1)], text=True,
                              capture_output=True, check=False)
        lines = done.stdout.splitlines()
        if done.returncode == 0 and len(lines) == 2 and not lines[1].startswith("??"):
            return f"{lines[0]} ({lines[1].split(' (')[0]})"
    return f"{name or Path(site.file).name}+{site.offset}"


def load_of(site, updates, elapsed, size):
    """The load of the model: sections as long as they were held, and as far apart as in the threads."""
    held = site.held / site.count
    of_thread = elapsed * site.threads / site.count
    between = max(0.0, of_thread - held - site.waited / site.count)
    return mechanisms.Load(threads=site.threads, updates=updates, lookup=max(held, 1.0), update=0.0, between=between,
                           size=size, buckets=max(1, site.locks))


def saved(site, machine, load):
    """Nanoseconds of a section that RCU saves: the wait, the lock and its line; less the cost of RCU.

    Updates still lock, so of theirs only the waits for readers are saved: their share of the waits is not counted.
    """
    active = mechanisms.active_cpus(machine, load)
    f = load.updates
    round_trip = machine["mutex"] if site.kind == "mutex" else machine["read_lock"]
    line = machine.line(active) if site.locks < 2 * active else 0.0
    _, _, ours = mechanisms.evaluate(mechanisms.BY_NAME["rcu"], machine, load)
    reader = machine["reader_fenced" if ours.details["fenced"] else "reader_free"]
    waited = site.read.waited / site.count if site.kind == "rwlock" else (1 - f) * site.waited / site.count
    return waited + (1 - f) * (round_trip + line - reader) - f * ours.details["deferral_ns"], ours


def judge(site, machine, elapsed, size):
    """Applies the model to one site."""
    known = site.kind == "rwlock"
    shares = (site.write.count / site.count,) if known else UPDATES_UNKNOWN
    outcomes = []
    for updates in shares:
        load = load_of(site, updates, elapsed, size)
        nanoseconds, ours = saved(site, machine, load)
        share = advice.interval(numpy.clip(nanoseconds * site.count / (elapsed * site.threads), -1, 1))
        outcomes.append({"updates": updates, "saved_share": share, "memory_bytes": advice.value(ours.memory)})
    load = load_of(site, shares[0], elapsed, size)
    candidates = [mechanisms.BY_NAME[name] for name in ("rcu", "rwlock" if known else "mutex")]
    limit = advice.breakevens(machine, load, candidates, errors.Errors(machine.document, load.threads, machine.cpus))["all"]
    return {"place": place_of(site), "kind": site.kind, "locks": site.locks, "threads": site.threads,
            "acquisitions": site.count, "updates": shares[0] if known else None,
            "contended": (site.read.contended + site.write.contended) / site.count,
            "waited_ns": site.waited / site.count, "held_ns": site.held / site.count,
            "breakeven_updates": limit, "outcomes": outcomes,
            "candidate": outcomes[0]["saved_share"]["median"] >= WORTH and site.threads > 1}


def answer_of(files, machine, size, most, command):
    sites, elapsed, missed, processes = merge(files)
    judged = [judge(site, machine, elapsed, size) for site in sites if site.count and elapsed]
    judged.sort(key=lambda row: -row["outcomes"][0]["saved_share"]["median"])
    return {"program": "prudence-advise record", "format": 1, "command": command, "elapsed_ns": elapsed,
            "processes": processes, "not_counted": missed, "places": len(judged), "assumed": list(machine.assumed),
            "locks": judged[:most]}


def time_text(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def text(answer):
    candidates = [row for row in answer["locks"] if row["candidate"]]
    lines = [f"{' '.join(answer['command'])}: {time_text(answer['elapsed_ns'])}, {answer['places']} places that lock, "
             f"{len(candidates) or 'no'} {'candidate' if len(candidates) == 1 else 'candidates'} for RCU"]
    if answer["not_counted"]:
        lines.append(f"{answer['not_counted']} acquisitions were not counted: too many locks")
    for row in answer["locks"]:
        many = f", {row['locks']} locks" if row["locks"] > 1 else ""
        lines += ["", f"{'* ' if row['candidate'] else '  '}{row['place']}: {row['kind']}{many}",
                  f"    {row['acquisitions']} acquisitions by {row['threads']} "
                  f"{'thread' if row['threads'] == 1 else 'threads'}"
                  + (f", {advice.share_text(row['updates'])} of them updates" if row["updates"] is not None else "")
                  + f"; {advice.share_text(row['contended'])} contended, waited {time_text(row['waited_ns'])}, held "
                  f"{time_text(row['held_ns'])}"]
        for outcome in row["outcomes"]:
            share = outcome["saved_share"]
            known = "" if row["updates"] is not None else f" if {advice.share_text(outcome['updates'])} are updates"
            lines.append(f"    RCU saves {advice.share_text(share['median'])} of its threads' time "
                         f"({advice.share_text(share['low'])} to {advice.share_text(share['high'])}){known}, for "
                         f"{advice.bytes_text(outcome['memory_bytes'])}")
        limit = row["breakeven_updates"]
        lines.append(f"    RCU is faster up to {advice.share_text(limit['median'])} updates "
                     f"({advice.share_text(limit['low'])} to {advice.share_text(limit['high'])})")
    lines += ["", "You have to decide whether readers may see replaced data; prudence-advise(1) has the limits."]
    return "\n".join(lines)


def preloadable(library, folder):
    """LD_PRELOAD separates paths by spaces and colons, so a link in the folder stands for a path that has one. None: that is in such a path, too."""
    link = Path(folder, library.name)
    if not re.search("[ :]", str(library)):
        return library
    if re.search("[ :]", str(link)):
        return None
    link.symlink_to(library)
    return link


def run(command, request, machine, programs):
    """Runs the command with the library preloaded; its exit status is this program's."""
    library = programs / "libprudence-record.so"
    if not library.is_file():
        print(f"prudence-advise: {library} is missing", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="prudence-record-") as folder:
        shim = preloadable(library, folder)
        if not shim:
            print(f"prudence-advise: LD_PRELOAD takes no path with a space or a colon: set TMPDIR to a folder without, not {folder}", file=sys.stderr)
            return 1
        preload = ":".join([str(shim), *filter(None, [os.environ.get("LD_PRELOAD")])])
        environment = os.environ | {"LD_PRELOAD": preload, "PRUDENCE_RECORD": f"{folder}/locks"}
        try:
            program = subprocess.Popen(command, env=environment)
        except OSError as error:
            print(f"prudence-advise: {command[0]}: {error.strerror}", file=sys.stderr)
            return 127
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program decides what an interrupt means
        status = program.wait()
        signal.signal(signal.SIGINT, before)
        files = sorted(Path(folder).glob("locks.*"))
        if not files:
            print(f"prudence-advise: {command[0]} wrote no record: it is static, was killed, or ended by _exit",
                  file=sys.stderr)
            return 1
        answer = answer_of(files, machine, request.size, request.most, command)
    shown = json.dumps(answer, indent=1) if request.json else text(answer)
    if request.output:
        request.output.write_text(shown + "\n")
    else:
        print(shown, file=sys.stderr)
    return status if status >= 0 else 128 - status
