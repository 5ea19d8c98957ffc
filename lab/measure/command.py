# SPDX-License-Identifier: MIT
"""How the commands in tools/ start a measurement: signals end the running programs, and programs come from PRUDENCE_BUILD_DIR, or build/."""

import datetime
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INTERRUPTED = "interrupted"
KEPT = "interrupted; finished parts are kept, and the next call continues from there"


def start(name, main, interrupted=INTERRUPTED):
    """Ends with the result of `main` for the command line and the build folder."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the running command, as Control-C does
    try:
        sys.exit(main(sys.argv[1:], Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()))
    except KeyboardInterrupt:
        sys.exit(f"{name}: {interrupted}")
    except OSError as error:  # of the file of results: the disk is full
        sys.exit(f"{name}: {error}")


def now():
    return f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


def commit():
    """Returns the commit of the sources that measure."""
    said = subprocess.run(["git", "log", "-1", "--format=%h"], capture_output=True, text=True, check=False, cwd=ROOT).stdout.strip()
    return said or "unknown"


def processor():
    """Returns the processor's name as Linux has it, or its kind."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), os.uname().machine)


class Progress:
    """Reports progress on standard error: on a terminal one line that the next replaces, elsewhere a line now and then."""

    def __init__(self, program, total=0, noun="runs", each=10):
        self.program, self.total, self.noun, self.each = program, total, noun, each
        self.terminal, self.done, self.began = sys.stderr.isatty(), 0, time.monotonic()

    def say(self, text):
        print(("\r\033[K" if self.terminal else "") + f"{self.program}: {text}", file=sys.stderr, flush=True)

    def passing(self, text):
        """On a terminal, until the next line comes."""
        if self.terminal:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def step(self, text):
        """Before each run."""
        if self.done % self.each == 0 and not self.terminal:
            self.say(f"{self.done} of {self.total} {self.noun}: {text}")
        left = (time.monotonic() - self.began) / max(1, self.done) * (self.total - self.done)
        self.passing(f"{self.done} of {self.total} {self.noun}" + (f", about {left / 60:.0f} min left" if self.done else "") + f": {text}")
        self.done += 1

    def end(self):
        self.passing("")
