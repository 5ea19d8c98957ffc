# SPDX-License-Identifier: MIT
"""Runs a command under an allocator, by prudence-malloc-watch."""

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from preload import ld_preload


class Failed(Exception):
    """The run has no result, and why."""


class Watched:
    """A command that runs. `with` ends it, and all its children, whatever happens."""

    def __init__(self, watch, allocator, command, environment, timeout):
        self.deadline = time.monotonic() + timeout
        self.timeout, self.command = timeout, command
        self.folder = tempfile.TemporaryDirectory(prefix="prudence-bench-")
        self.result = Path(self.folder.name, "result.json")
        self.errors = Path(self.folder.name, "errors").open("w+")
        self.process = subprocess.Popen(
            [watch, self.result, ld_preload(allocator.path), *command], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=self.errors, text=True, start_new_session=True,
            env={**os.environ, **environment, **allocator.environment})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()
        self.folder.cleanup()

    def said(self):
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        return f": {lines[-1][:200]}" if lines else ""

    def finish(self):
        """Waits for its end. Returns the output, and the cost."""
        try:
            output, _ = self.process.communicate(timeout=max(0.1, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Failed(f"not finished after {self.timeout:g} s") from None
        if self.process.returncode or not self.result.exists():
            raise Failed(f"cannot be run{self.said()}")
        cost = json.loads(self.result.read_text())
        if cost["signal"]:
            raise Failed(f"ended by {signal.Signals(cost['signal']).name}{self.said()}")
        if cost["exit_status"]:
            raise Failed(f"exit status {cost['exit_status']}{self.said()}")
        if not cost["mapped"]:
            raise Failed("the allocator was not in its memory map")
        return output, cost


def resident(pid):
    """Resident bytes of a process, counted page by page."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) * 1024
    raise Failed(f"process {pid} has no resident memory")
