#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 8
"""lab/run/count-cache-misses: misses go to whoever's code has them; two counts of the same are nearly equal;
work that a process does once is not counted; and uncounted parts are named."""

import collections
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
TOOL = ROOT / "lab/run/count-cache-misses"
loader = importlib.machinery.SourceFileLoader("count_cache_misses", str(TOOL))
sys.dont_write_bytecode = True
count = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(count)

FILE = """desc: D1 cache: 32768 B
cmd: acdc
events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw
fl=/home/prudence/src/shortterm/expire.c
fn=expired_take
10 100 0 0 9 3 1 8 2 1
fl=/home/prudence/src/core/slab/node.c
fn=refill
20 100 0 0 9 5 0 8 4 3
fl=/home/prudence/lab/acdc/mutator.c
30 100 0 0 9 7 7 8 0 0
fl=./string/memset.S
fn=memset
40 100 0 0 0 0 0 9 6 5
41 100 0 0 0 0 0 9 1 0
summary: 500 0 0 27 15 8 42 13 9
"""


class Counting(unittest.TestCase):
    def test_misses_have_owners(self):
        self.assertEqual(count.misses_of(FILE), {"dates": 5, "allocator": 9, "ACDC": 7, "C library": 7})

    @unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
    def test_counts_repeat(self):
        if "asan" in BUILD.parts or "tsan" in BUILD.parts or not (BUILD / "bin/acdc").exists():
            self.skipTest("needs acdc without a sanitizer")
        with tempfile.TemporaryDirectory() as folder:
            once, again = (count.run(BUILD, count.SUBJECTS["lazy"], 12, 5, Path(folder)) for _ in range(2))
        self.assertEqual(once[1], again[1])
        self.assertGreater(once[1], 100)
        one, other = (sum(found.values()) for found, _ in (once, again))
        self.assertLess(abs(one - other), 0.05 * one, (once, again))
        self.assertGreater(once[0]["dates"], 0)

    def test_what_a_process_does_once_is_left_out(self):
        runs = iter([(collections.Counter(dates=110, ACDC=40), 10), (collections.Counter(dates=210, ACDC=39), 20)])
        with unittest.mock.patch.object(count, "run", lambda *_: next(runs)):
            found = count.each_object(BUILD, [], 12, None)
        self.assertEqual(found, {"dates": 10, "allocator": 0, "ACDC": 0, "C library": 0})

    def test_refusals(self):
        for arguments, what in ((["9"], "10 to 24"), (["--build", "/nowhere"], "valgrind is not installed" if not shutil.which("valgrind")
                                                       else "/nowhere/bin/acdc is not there")):
            done = subprocess.run([TOOL, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(what, done.stdout)


if __name__ == "__main__":
    unittest.main()
