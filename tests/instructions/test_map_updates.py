#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An update of a string in an ordered map follows its key once: nearly every addition takes one round, and a removal seldom another one to tidy
the node (ADR 69). Callgrind counts the calls."""

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
MOST = {("map_add_here", "prudence_map_add"): 1.1, ("tidy_way", "prudence_map_erase_bytes"): 0.25}


def calls_of(profile):
    """The number of calls of each function. Callgrind gives a function's name once, then its number alone."""
    names, calls, callee = {}, {}, None
    for line in profile.splitlines():
        if function := re.match(r"(c?)fn=\((\d+)\)(?: (\S+))?", line):
            if function[3]:
                names[function[2]] = function[3]
            if function[1]:
                callee = names[function[2]]
        elif count := re.match(r"calls=(\d+)", line):
            calls[callee] = calls.get(callee, 0) + int(count[1])
    return calls


def main():
    if not shutil.which("valgrind"):
        print("valgrind is needed")
        return 77
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        program, out = Path(folder, "program"), Path(folder, "out")
        subprocess.run(["cc", "-O2", f"-I{ROOT}/include", HERE / "program_map_updates.c", "-o", program, BUILD / "libprudence.so", f"-Wl,-rpath,{BUILD}"],
                       check=True)
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program], check=True, capture_output=True,
                       env={**os.environ, "PRUDENCE_OPTIONS": "annotate=0,background=0"})
        calls = calls_of(out.read_text())
    for (rounds, updates), most in MOST.items():
        share = calls[rounds] / calls[updates]
        print(f"{rounds}: {calls[rounds]} calls, {share:.2f} for each of {updates}; {most} are the most")
        failures += share > most
    return failures > 0


sys.exit(main())
