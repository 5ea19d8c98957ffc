# SPDX-License-Identifier: MIT
"""The runs that are kept: one line of JSON each, in the order in which they ended.

A line is written in one call, and reaches the disk before the next run begins. So a run is there as a whole or not at all, however
the soak ends: an interrupted run has no line, and its seed is tried again. A last line without its end was never whole, and is taken away. One
soak at a time has the journal (a lock that the system gives back when the process ends).
"""

import fcntl
import json
import os
import uuid
from pathlib import Path


class Broken(Exception):
    """The journal cannot be used; its text says why."""


class Journal:
    """`folder` has `runs`, whose first line names the journal, and the logs of findings."""

    def __init__(self, folder):
        self.folder, self.place = Path(folder), Path(folder) / "runs"
        self.findings = self.folder / "findings"
        self.findings.mkdir(parents=True, exist_ok=True)
        self.file = os.open(self.place, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Broken(f"another soak is under way in {self.folder}") from None
        self.runs = self._read()

    def _read(self):
        text = self.place.read_bytes()
        whole, _, rest = text.rpartition(b"\n")
        if rest:
            os.ftruncate(self.file, len(text) - len(rest))
        lines = whole.split(b"\n") if whole else []
        entries = [self._entry(number, line) for number, line in enumerate(lines, 1)]
        if not entries:
            self.id = uuid.uuid4().hex[:12]
            self._write({"journal": self.id})
            return []
        if "journal" not in entries[0]:
            raise Broken(f"{self.place}:1: this line does not name the journal")
        self.id = entries[0]["journal"]
        return entries[1:]

    def _entry(self, number, line):
        try:
            entry = json.loads(line)
        except ValueError:
            raise Broken(f"{self.place}:{number}: this line is no run; remove it, or the file") from None
        if not isinstance(entry, dict) or (number > 1 and not {"program", "seed", "seconds", "wall", "result"} <= entry.keys()):
            raise Broken(f"{self.place}:{number}: this line is no run; remove it, or the file")
        return entry

    def _write(self, entry):
        line = json.dumps(entry).encode() + b"\n"
        if os.write(self.file, line) != len(line):
            raise Broken(f"{self.place}: the disk is full")
        os.fsync(self.file)

    def add(self, run):
        self._write(run)
        self.runs.append(run)

    def of(self, program):
        return [run for run in self.runs if run["program"] == program]
