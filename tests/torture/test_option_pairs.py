#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 8
"""Options that search for bugs, in pairs: programs that allocate in several threads, and fork, run to their end with each."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", Path(__file__).resolve().parents[2] / "build"))
PROGRAM = BUILD / "bin/torture_malloc"
OPTIONS = ("hardened=1", "check=1", "guard=20", "quarantine=256K", "rseq=0")
PATTERNS = (("larson", 4), ("phases", 4), ("fork", 1))
SCALE = "0.001"


def run(options, pattern, threads):
    names = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "PRUDENCE_"))}
    done = subprocess.run([PROGRAM, pattern, "--threads", str(threads), "--scale", SCALE], timeout=300,
                          env=names | {"PRUDENCE_OPTIONS": options}, capture_output=True, text=True)
    if done.returncode:
        print(f"{options}, {pattern}: ends with {done.returncode}\n{done.stderr}")
    return done.returncode == 0


def main():
    pairs = itertools.combinations(OPTIONS, 2)
    results = [run(",".join(pair), *PATTERNS[number % len(PATTERNS)]) for number, pair in enumerate(pairs)]
    print(f"{sum(results)} of {len(results)} pairs")
    return 0 if all(results) else 1


sys.exit(main())
