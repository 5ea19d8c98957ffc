# SPDX-License-Identifier: MIT
"""How much the tools take from others: from a process that they watch, from a profile, and from the files that it names. Each of
these may have been made by a user who means harm, and the tool may run as root (docs/adr/0089-watching-from-outside.md).

A bound is above what any real process or file is known to have, and so low that a hostile one does not take the tool's memory or time. What
passes it is refused by a message of one line.
"""

import re
import time

from .errors import WatchError

WORD = (1 << 64) - 1  # the largest number that a process or a file may report

# ---------------------------------------------------------------------------------------- a process

COPIES = 16  # of the library in a process: glibc has no more namespaces to load them into
TEXT = 256  # bytes of a text or a name
ROWS, ROW = 4096, 1024  # of the table of its figures, and bytes of one: 190 and 208
SEGMENTS = 128  # of a module
SEARCHED = 1 << 28  # bytes of a segment of a module: browsers have 200 MB
STRUCTURE = 1 << 16  # bytes; the largest has 16,320
CPUS, NODES = 8192, 1024  # the kernel's own bounds
READ = 1 << 22  # bytes at once; 8,192 CPUs' caches are half of that
ADDRESS = (1 << 63) - 1  # above it is the kernel, and pread has no number for it
SECONDS = 5.0  # for a sample: 100 caches take 0.007, and Prometheus gives up after 10
COMMAND_SECONDS = 60.0  # for a command that reads all slabs: 34,000 take 2
PER_SAMPLE = {
    "reads of its memory": 1 << 20,  # a cache takes about 6
    "caches": 1 << 15,  # 10,000 have been measured
    "domains": 1 << 12,
    "threads inside sections": 1 << 14,  # the tool looks up the name of each
}
SLOTS = 1 << 20  # of the arrays of a CPU
BATCH = 255  # objects
RESTS = 1 << 16  # large blocks
REQUESTS, REQUEST = 64, 192  # of options to be set, and bytes of a part of one
NAMED = 8  # processes in a message

# ---------------------------------------------------------------------------------------- a profile

PROFILE = 1 << 28  # bytes; a million mappings are 100 MB
LINE = 1 << 20  # bytes; a program's name may have 128 KB, and six characters stand for one that JSON escapes
SITES = 1 << 20  # the library has room for 700,000 traces
MAPPINGS = 1 << 18  # of files
CALLS, AGES = 32, 48  # OS_TRACE_MAX, SITE_AGES
TIME = (1 << 63) - 1  # the largest time in pprof's format
SHOWN = 80  # characters of a line that a message repeats

# --------------------------------------------------------------------- a file that a profile names

FILE = 1 << 33  # bytes; browsers with debug information have 4 GB
HEADERS = 1 << 16  # of segments, of sections: the most that ELF can count without extensions
NOTES = 1 << 16  # bytes of a segment of notes
CORE_NOTES = 1 << 26  # the same of a core file: 2 KB for each thread, 100 bytes for each mapping
SYMBOLS = 1 << 21  # of all files together; a browser has a million
SYMBOL = 4096  # bytes of a name; the rest is cut
STRINGS = 1 << 28  # bytes of all names of a file

# ------------------------------------------------------------------------------------------ clients

CLIENTS = 32  # that prudence-stat serves at once


class Budget:
    """Limits on the work of one sample, or of one command that reads all slabs."""

    def __init__(self, seconds=None):
        self.seconds = SECONDS if seconds is None else seconds
        self.end, self.left = time.monotonic() + self.seconds, dict(PER_SAMPLE)

    def spend(self, what):
        self.left[what] -= 1
        if self.left[what] < 0:
            raise WatchError(f"it claims more {what} than the limit, {PER_SAMPLE[what]}")
        if time.monotonic() > self.end:
            raise WatchError(f"a sample of it takes more than {self.seconds:g} s")


def whole(text, most=WORD, least=0):
    """A whole number, in decimal digits alone. ValueError: it is none, or beyond its bounds."""
    if not re.fullmatch(r"[0-9]{1,20}", text, re.ASCII) or not least <= int(text) <= most:
        raise ValueError(f"'{text[:SHOWN]}' is no number from {least} to {most}")
    return int(text)


def hexadecimal(text, most=WORD, least=0):
    """Reads a number of lower case hexadecimal digits in the same way."""
    if not re.fullmatch(r"[0-9a-f]{1,16}", text, re.ASCII) or not least <= int(text, 16) <= most:
        raise ValueError(f"'{text[:SHOWN]}' is no number from {least:x} to {most:x} in hexadecimal digits")
    return int(text, 16)
