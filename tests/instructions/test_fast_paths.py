#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A fast path cannot grow unseen: the committed table says how many instructions each has."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools/count-instructions"
TABLE = Path(__file__).with_name("fast_paths.txt")


def run(table):
    library = Path(os.environ["PRUDENCE_BUILD_DIR"], "libprudence.so")
    return subprocess.run([TOOL, library, table]).returncode


def main():
    if os.uname().machine != "x86_64":
        print("the fast paths are x86-64 assembly")
        return 0
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as grown:
        first, *lines = TABLE.read_text().splitlines()
        name, count = lines[0].split()
        grown.write("\n".join([first, f"{name} {int(count) - 1}", *lines[1:]]) + "\n")
        grown.flush()
        print("a path that has grown by one must be noticed:")
        noticed = run(grown.name) == 1
    same_compiler = subprocess.run([TOOL, Path(os.environ["PRUDENCE_BUILD_DIR"], "libprudence.so")],
                                   capture_output=True, text=True, check=True).stdout.startswith(first)
    return run(TABLE) if noticed or not same_compiler else 1


sys.exit(main())
