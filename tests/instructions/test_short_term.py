#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Refreshes, ticks and allocations in regions of short-term memory cannot grow unseen: the committed table says how many instructions each
has, with its share of descriptor pages. Counted by callgrind, since these paths have calls and branches; what a
thread's first calls cost is skipped, by counting two numbers of them; and the effect of clocks, by options."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
TABLE = HERE / "short_term.txt"
FEWER, MORE = 1000, 2000
PATHS = {"scm_refresh": ("scm_refresh", 1), "scm_refresh, a further date": ("scm_refresh", 2),
         "scm_tick": ("scm_tick", 1), "scm_region_alloc": ("scm_region_alloc", 0),
         "scm_refresh, after a free by hand": ("scm_refresh", -1), "prudence_free, with dates": ("prudence_free", -1)}


def instructions(program, function, count, dates):
    out = program.with_suffix(".out")
    done = subprocess.run(["valgrind", "--tool=callgrind", f"--toggle-collect={function}",
                           f"--callgrind-out-file={out}", program, str(count), str(dates)],
                          env={**os.environ, "PRUDENCE_OPTIONS": "annotate=0,background=0,decay=3600s"}, capture_output=True, text=True,
                          check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def measure(program):
    found = {}
    for name, (function, dates) in PATHS.items():
        number = (instructions(program, function, MORE, dates) - instructions(program, function, FEWER, dates))
        if dates > 1: # the first date was counted as well
            number -= found["scm_refresh"] * (MORE - FEWER)
        found[name] = number / (MORE - FEWER)
    return found


def cc(*arguments):
    return subprocess.run(["cc", *map(str, arguments)], check=True, capture_output=True, text=True).stdout.strip()


def table(found):
    first = f"# instructions of each call; cc {cc('-dumpfullversion')} {cc('-dumpmachine')}"
    return [first, *(f"{name}: {round(number)}" for name, number in found.items())]


def main():
    if os.uname().machine != "x86_64" or not shutil.which("valgrind"):
        print("valgrind on x86-64 is needed")
        return 77
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}) # on another CPU, caches would be filled again
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program")
        cc("-O2", f"-I{ROOT}/include", HERE / "program_short_term.c", "-o", program, BUILD / "libprudence.so",
           f"-Wl,-rpath,{BUILD}")
        found = table(measure(program))
    if "--update" in sys.argv:
        TABLE.write_text("\n".join(found) + "\n")
        return 0
    wanted = TABLE.read_text().splitlines()
    if wanted[0] != found[0]:
        print("another compiler than the table's, nothing compared:", *found, sep="\n")
        return 0
    for old, new in zip(wanted, found):
        if old != new:
            print(f"was: {old}, is: {new}")
    return wanted != found


sys.exit(main())
