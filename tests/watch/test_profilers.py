#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 20
"""Profilers of others see the function that keeps memory (kept.c), whose bytes are known, when malloc is ours: preloaded, linked as a shared library,
linked into the program, and in a program without shared libraries.

    test_profilers.py         says whether the tools that are here see what the page says. PRUDENCE_MODELS=deep (make test-long) asks all of them
    test_profilers.py page    asks all tools, and writes the table of docs/reference/tools.md

heaptrack is asked where it can load its library and where malloc is another library's: otherwise it waits for ever (tools.md).
"""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from watching import BUILD, PATIENCE, ROOT
from preload import ld_preload
from tools_page import Table, debian

DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"
MEMRAY = "memray==1.20.0"
KEPT, BLOCK = 64, 16384
BYTES = KEPT * BLOCK
SHARED, ARCHIVE = BUILD / "libprudence-malloc.so", BUILD / "libprudence-malloc.a"
# What the program is linked with; the first is preloaded instead.
LINKS = {"preloaded": (), "shared": (SHARED, f"-Wl,-rpath,{BUILD}"), "in the program": (ARCHIVE,), "static program": (ARCHIVE, "-static")}
COLUMNS = ("glibc's", *LINKS)
PYTHON = f"kept = []\ndef keeps():\n    for _ in range({KEPT}):\n        kept.append(bytearray({BLOCK}))\nkeeps()\n"
SUM = ("import sys, memray\n"
       "found = memray.FileReader(sys.argv[1]).get_high_watermark_allocation_records(merge_threads=True)\n"
       "print(sum(one.size for one in found if any(call[0] == 'keeps' for call in one.stack_trace())))\n")
YES, PART, NO, NONE, WAITS = "yes", "in part", "no", "–", "not asked: it waits for ever"


class NotHere(Exception):
    """A tool that is not installed, or that this machine does not allow."""


class Trial:
    """The program with each malloc, and a folder."""

    def __init__(self, folder):
        self.folder = Path(folder)
        for name, words in {"glibc's": (), **LINKS}.items():
            subprocess.run(["cc", "-g", "-O1", "-fno-omit-frame-pointer", ROOT / "tests/watch/kept.c", "-o", self.program(name), *words, "-pthread"],
                           check=True)
        (self.folder / "kept.py").write_text(PYTHON)

    def program(self, name):
        return self.folder / name.replace(" ", "-").replace("'", "")

    def run(self, name, *words, **more):
        """Returns what a profiler prints. It is in a session of its own, which ends with it."""
        environment = os.environ | {"PYTHONMALLOC": "malloc", **more} | ({"LD_PRELOAD": ld_preload(SHARED)} if name == "preloaded" else {})
        process = subprocess.Popen(words, cwd=self.folder, env=environment, text=True, errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            said, _ = process.communicate(timeout=5 * PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            raise
        if process.returncode:
            raise NotHere(f"{words[0]}: {said[-300:]}")
        return said

    def read(self, *words):
        done = subprocess.run(words, cwd=self.folder, text=True, errors="replace", capture_output=True, timeout=5 * PATIENCE, check=False)
        if done.returncode:
            raise NotHere(f"{words[0]}: {done.stderr[-300:]}")
        return done.stdout

    def out(self, name):
        path = self.folder / f"{self.program(name).name}.out"
        path.unlink(missing_ok=True)
        return path


# ------------------------------------------------------------------------- what each says of keeps(), as bytes

def heaptrack(trial, name):
    """The largest leak of keeps(), in millions."""
    if name in ("in the program", "static program"):
        return None
    out = trial.folder / f"heaptrack.{trial.program(name).name}"
    trial.run(name, "heaptrack", "-o", out, trial.program(name))
    shown = trial.read("heaptrack_print", "-l", "1", "-p", "0", "-a", "0", "-T", "0", "-f", next(trial.folder.glob(f"{out.name}.*")))
    return sum(float(size) * 1e6 for size in re.findall(r"(?m)^([0-9.]+)M leaked over \d+ calls from\nkeeps$", shown))


def valgrind(trial, name, *words):
    return trial.run(name, "valgrind", *words, trial.program(name))


def memcheck(trial, name):
    """The blocks are still reachable."""
    shown = valgrind(trial, name, "--leak-check=full", "--show-leak-kinds=all")
    return sum(int(size.replace(",", "")) for size in re.findall(r"(?m)^==\d+== +([0-9,]+) bytes in \d+ blocks are [a-z ]+ in loss record .*\n"
                                                                  r"(?:==\d+== +(?:at|by) .*\n)*?==\d+== +(?:at|by) \w+: keeps ", shown))


def massif(trial, name):
    """The most in one snapshot."""
    out = trial.out(name)
    valgrind(trial, name, "--tool=massif", f"--massif-out-file={out}")
    snapshots = out.read_text().split("snapshot=")
    return max(sum(map(int, re.findall(r"(?m)^ *n\d+: (\d+) 0x\w+: keeps ", one))) for one in snapshots)


def dhat(trial, name):
    out = trial.out(name)
    valgrind(trial, name, "--tool=dhat", f"--dhat-out-file={out}")
    found = json.loads(out.read_text())
    ours = {at for at, frame in enumerate(found["ftbl"]) if ": keeps " in frame}
    return sum(point["eb"] for point in found["pps"] if ours & set(point["fs"]))


def page_faults(trial, name):
    """All or nothing, because the system decides how many faults there are."""
    out = trial.out(name)
    before = ["env", f"LD_PRELOAD={ld_preload(SHARED)}"] if name == "preloaded" else []
    trial.run("perf", "perf", "record", "-q", "-e", "page-faults:u", "-c", "1", "-g", "-o", out, "--", *before, trial.program(name))
    return BYTES if " keeps+" in trial.read("perf", "script", "-i", out) else 0


def memray(trial, name):
    """Of a program of Python, into which no malloc can be linked."""
    if name not in ("glibc's", "preloaded"):
        return None
    python, out = BUILD / "memray/bin/python", trial.out(name)
    if not python.exists():
        made = subprocess.run([sys.executable, "-m", "venv", BUILD / "memray"], text=True, capture_output=True, check=False)
        made = made if made.returncode else subprocess.run([python, "-m", "pip", "install", "-q", MEMRAY], text=True, capture_output=True, check=False)
        if made.returncode:
            shutil.rmtree(BUILD / "memray", ignore_errors=True)
            raise NotHere(f"memray cannot be installed: {made.stderr[-300:]}")
    trial.run(name, python, "-m", "memray", "run", "-q", "-o", out, "kept.py")
    return int(trial.read(python, "-c", SUM, out))


def ours(trial, name):
    if name == "glibc's":
        return None
    profile, out = trial.out(name), trial.folder / "folded"
    trial.run(name, trial.program(name), PRUDENCE_OPTIONS=f"profile=4K,trace=32,profile_file={profile}")
    trial.read(BUILD / "bin/prudence-profile", "--format", "folded", "-o", out, profile)
    return sum(int(row.rpartition(" ")[2]) for row in out.read_text().splitlines() if ";keeps" in row)


@dataclasses.dataclass(frozen=True)
class Profiler:
    name: str
    version: object  # a function
    sees: object  # a function that returns bytes, or None where it is not asked
    always: bool = False  # `make test` asks it, too

    def cell(self, trial, column):
        seen = self.sees(trial, column)
        if seen is None:
            return WAITS if self.sees is heaptrack else NONE
        return NO if not seen else YES if abs(seen - BYTES) < 0.1 * BYTES else PART


PROFILERS = (
    Profiler("heaptrack", debian("heaptrack"), heaptrack),
    Profiler("Valgrind's memcheck", debian("valgrind"), memcheck, always=True),
    Profiler("Valgrind's massif", debian("valgrind"), massif),
    Profiler("Valgrind's DHAT", debian("valgrind"), dhat),
    Profiler("perf, page faults", debian("linux-perf"), page_faults),
    Profiler("memray", lambda: MEMRAY.replace("==", " "), memray),
    Profiler("`prudence-profile`", lambda: NONE, ours, always=True),
)
TABLE = Table("profilers", ("profiler", "version", *COLUMNS))


def write_page():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(folder)
        for profiler in PROFILERS:
            rows.append((profiler.name, profiler.version(), *(profiler.cell(trial, column) for column in COLUMNS)))
            print(*rows[-1], sep=", ")
    TABLE.write(rows)
    return 0


class Profilers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.trial = Trial(folder.name)

    def test_the_page_says_what_is_seen(self):
        head, *rows = TABLE.cells()
        self.assertEqual(tuple(head), TABLE.head)
        self.assertEqual([row[0] for row in rows], [profiler.name for profiler in PROFILERS])
        for profiler, (_, _, *cells) in zip(PROFILERS, rows):
            for column, cell in zip(COLUMNS, cells, strict=True):
                if DEEP or profiler.always:
                    with self.subTest(profiler.name, malloc=column):
                        try:
                            self.assertEqual(profiler.cell(self.trial, column), cell, "write it anew: tests/watch/test_profilers.py page")
                        except (FileNotFoundError, NotHere) as reason:
                            self.skipTest(f"{profiler.name} cannot be asked here: {reason}")


if __name__ == "__main__":
    if sys.argv[1:] == ["page"]:
        sys.exit(write_page())
    unittest.main()
