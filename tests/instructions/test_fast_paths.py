#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A fast path cannot grow unseen: the committed table says how many instructions each has."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "lab/run/count-instructions"
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build"))
CROSS, CROSS_TABLE = "aarch64-linux-gnu", Path(__file__).with_name("inlined_aarch64.txt")
TABLES = {"libprudence.so": Path(__file__).with_name("fast_paths.txt"),
          "libprudence-malloc.so": Path(__file__).with_name("malloc_fast_paths.txt")}


def run(counted, table):
    return subprocess.run([TOOL, counted, table]).returncode


def count(library):
    return subprocess.run([TOOL, BUILD / library], capture_output=True, text=True,
                          check=True).stdout


def main():
    if os.uname().machine != "x86_64":
        print("the fast paths are x86-64 assembly")
        return 77
    library, table = next(iter(TABLES.items()))
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as grown:
        first, *lines = table.read_text().splitlines()
        name, number = lines[0].split()
        grown.write("\n".join([first, f"{name} {int(number) - 1}", *lines[1:]]) + "\n")
        grown.flush()
        print("a path that has grown by one must be noticed:")
        noticed = run(BUILD / library, grown.name) == 1
    same_compiler = count(library).startswith(first)
    if same_compiler and not noticed:
        return 1
    tables = {BUILD / library: table for library, table in TABLES.items()}
    if shutil.which(f"{CROSS}-gcc"):
        tables[CROSS] = CROSS_TABLE
    found = [run(counted, table) for counted, table in tables.items()]
    return next((status for status in found if status not in (0, 77)), max(found))


sys.exit(main())
