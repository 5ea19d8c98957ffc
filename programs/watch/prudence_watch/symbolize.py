# SPDX-License-Identifier: MIT
"""prudence-symbolize: a filter that adds functions, files and lines to the calls in reports and dumps.

A call is a line as the library and the sanitizers write it, "#2 0x7f12 in function+0x4 (/a/program+0x12f)", wherever it begins in the line: a log
puts the time and the program before it. The place in the file identifies the call also on another machine, and after the process's end.
"""

import os
import re
import shutil
import sys

from . import pipe, text, version
from .command_line import Parser
from .errors import WatchError
from .modules import Modules
from .source import set_encoding, write
from .symbols import is_trusted

CALL = re.compile(r"(?P<head>.*?#\d+ +0x[0-9a-f]+)(?: in .*?)? \((?P<file>[^()\0]+)\+0x(?P<place>[0-9a-f]{1,16})\)(?P<rest>.*)", re.S)

EXAMPLE = """\
examples:
  journalctl -u routerd | prudence-symbolize
  prudence-symbolize --binaries /srv/builds/routerd-4.2 <report
"""


class Files:
    """The files that reports name."""

    def __init__(self, folder):
        self.folder, self.known, self.modules = folder, {}, Modules()

    def local(self, path):
        """The file to read for one that a report names."""
        if not self.folder:
            return path
        whole = os.path.join(self.folder, path.lstrip("/"))
        return whole if os.path.exists(whole) else os.path.join(self.folder, os.path.basename(path))

    def module(self, path):
        if path not in self.known:
            self.known[path] = self.modules.module(self.local(path))
            why = why_no_lines(self.known[path])
            if why:
                print(text.printable(f"prudence-symbolize: {self.local(path)}: {why}"), file=sys.stderr, flush=True)
        return self.known[path]

    def frames(self, path, place):
        module = self.module(path)
        return module.frames(place + module.elf.lowest) if module.elf else []


def why_no_lines(module):
    """None: there may be some."""
    if not module.elf:
        return "this is no ELF file that can be read"
    if not shutil.which("addr2line"):
        return "there is no addr2line (Debian: binutils), so only functions have names"
    if not is_trusted(module.path):
        return "another user may write this file or its folder, so addr2line is not run on it, and only functions have names"
    return None


def symbolized(line, files):
    """The lines in its place: one for each function that the compiler inlined there, and one for the function that has the code."""
    call = CALL.fullmatch(line)
    frames = files.frames(call["file"], int(call["place"], 16)) if call else []
    named = [f"{call['head']} in {text.printable(str(frame))}" for frame in frames]
    if not named:
        return [line]
    return [*(f"{one} (inlined)" for one in named[:-1]), f"{named[-1]} ({call['file']}+0x{call['place']}){call['rest']}"]


def parser():
    made = Parser(
        prog="prudence-symbolize", epilog=EXAMPLE,
        description="Copies standard input, and names function, file and line of each call in it: reports and dumps of Prudence, "
        "and of the sanitizers. Functions that the compiler inlined get a line of their own.")
    version.add_option(made)
    made.add_argument("--binaries", metavar="FOLDER", help="folder with the programs and libraries of a report from another machine: by their "
                      "whole path, or all in this folder")
    return made


def run(words):
    """The program. Returns its exit status."""
    options = parser().parse_args(words)
    set_encoding(False)
    sys.stdin.reconfigure(errors="surrogateescape")
    sys.stdout.reconfigure(errors="surrogateescape")
    files = Files(options.binaries)
    try:
        if options.binaries and not os.path.isdir(options.binaries):
            raise WatchError(f"{options.binaries} is no folder")
        for line in sys.stdin:
            for shown in symbolized(line.removesuffix("\n"), files):
                write(shown)
    except WatchError as error:
        print(text.printable(f"prudence-symbolize: {error}"), file=sys.stderr)
        return 1
    except BrokenPipeError:
        pipe.end()
    except KeyboardInterrupt:
        return 130
    return 0
