# SPDX-License-Identifier: MIT
"""Functions, files and lines of the code in ELF files, functions that the compiler inlined included: addr2line of binutils reads the debug
information, also where it is separate (/usr/lib/debug, .gnu_debuglink).

addr2line was not written for files that are made to harm. So only files are given to it that root or the user of the tool owns, in folders
that one of them owns and no other user may change. For other files the names that elf.py finds have to do.
"""

import dataclasses
import os
import shutil
import stat
import subprocess
import weakref

from . import bounds
from .text import printable

END = "0xffffffffffffffff"  # asked for after each address, because nothing else marks the end of an answer


@dataclasses.dataclass(frozen=True)
class Frame:
    """A function at an address. The compiler inlined all but the last of those at one address."""
    function: str
    line: str  # "/a/file.c:12"; "": unknown
    named: bool = True  # otherwise `function` is a place in a file, or an address

    def __str__(self):
        return f"{self.function} at {self.line}" if self.line else self.function


def is_trusted(path):
    """Says whether only root and this user can have written the file."""
    def is_ours(status):
        sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX != 0
        return status.st_uid in (0, os.geteuid()) and (sticky or not status.st_mode & stat.S_IWOTH)

    try:
        real = os.path.realpath(path, strict=True)
        status = os.stat(real)
        return stat.S_ISREG(status.st_mode) and is_ours(status) and is_ours(os.stat(os.path.dirname(real)))
    except (OSError, ValueError):
        return False


def frames_in(lines):
    """Reads the output of addr2line for one address, which has two lines for each function. Without debug information
    addr2line may name the function before."""
    frames = []
    for function, line in zip(lines[::2], lines[1::2]):
        line = printable(line.split(" (discriminator")[0])
        frames.append(Frame(printable(function), "" if line.startswith("??") or line.endswith((":?", ":0")) else line))
    return frames if frames and frames[-1].line else []


def end(process):
    process.kill()
    process.communicate()


class Symbols:
    """A file's functions. addr2line is started when the first is asked for, and runs until the tool ends."""

    def __init__(self, path):
        self.path, self.known, self.process = path, {}, None
        if shutil.which("addr2line") and is_trusted(path):
            self.process = subprocess.Popen(["addr2line", "-a", "-f", "-i", "-C", "-e", os.path.realpath(path)], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", errors="replace",
                                            env=os.environ | {"DEBUGINFOD_URLS": ""})
            weakref.finalize(self, end, self.process)

    def frames(self, address):
        """The functions at an address of the file, the innermost first; []: there is no debug information."""
        if address not in self.known:
            self.known[address] = frames_in(self.ask(address)) if self.process else []
        return self.known[address]

    def ask(self, address):
        lines = []
        try:
            self.process.stdin.write(f"{address:#x}\n{END}\n")
            self.process.stdin.flush()
            self.read()
            while (line := self.read()) != END:
                lines.append(line)
            self.read(), self.read()  # the answer for END
        except (EOFError, OSError):
            self.process = None
            return []
        return lines

    def read(self):
        line = self.process.stdout.readline(bounds.LINE)
        if not line.endswith("\n"):
            raise EOFError
        return line[:-1]
