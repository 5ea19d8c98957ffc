#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""lab/run/count-misses without a boot: the counts of hits, refills and grows, the refusals, and the page that it writes."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
TOOL = ROOT / "lab/run/count-misses"


def line(word, hit, refill, grow, **more):
    kinds = {name: {"count": count, "median": median} for name, (count, median) in zip(("hit", "refill", "grow"), (hit, refill, grow))}
    return f"[    1.0] {word} {json.dumps(more | {'empty': 2} | kinds)}\n"


class Program(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.program = Path(cls.folder.name, "misses")
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", ROOT / "lab/bench/misses/main.c", BUILD / "libprudence.a",
                        "-lpthread", "-o", cls.program], check=True)

    def run_it(self, *arguments):
        return subprocess.run([self.program, *arguments], capture_output=True, text=True, check=False,
                              env={**os.environ, "PRUDENCE_OPTIONS": "background=0"})

    def test_kinds_add_up(self):
        """All objects of the first round, seven of eight in the second; each grow made a slab, and slabs were refilled from."""
        for size in (64, 4096):
            done = self.run_it(str(size), "4000")
            found = json.loads(re.fullmatch(r"MISSES (\{.*\})\n", done.stdout)[1])
            hits, refills, grows = (found[kind]["count"] for kind in ("hit", "refill", "grow"))
            self.assertEqual((found["size"], hits + refills + grows), (size, 4000 + 4000 // 8 * 7))
            self.assertGreater(min(refills, grows), 5)
            self.assertGreater(hits, 5 * (refills + grows))
            self.assertTrue(refills <= found["refilled"] <= 4000)

    def test_refuses(self):
        for arguments in ((), ("64",), ("0", "10"), ("64", "0"), ("64", "1000001"), ("x", "10"), ("64", "10", "1")):
            done = self.run_it(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("usage: ", done.stderr)


class Table(unittest.TestCase):
    def write(self, lines, *more):
        with tempfile.TemporaryDirectory() as folder:
            printed, table = Path(folder, "lines"), Path(folder, "table.csv")
            printed.write_text(lines)
            done = subprocess.run([TOOL, "--lines", printed, "--table", table, *more], capture_output=True, text=True, check=False)
            return done, table.read_text() if table.exists() else ""

    def test_table(self):
        lines = line("BENCH", (900, 42), (10, 402), (9, 1202), run="misses", subject="slub", size=64) + "noise\n" + \
            line("BENCH", (900, 22), (10, 1002), (0, 0), run="misses", subject="prudence", size=4096)
        done, table = self.write("BENCH and more\n" + lines)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn('\nSLUB,64,40,400,10.0,"1,200",30.0,55,900,10,9,"20', table)
        self.assertIn('\nprudence.ko,"4,096",20,"1,000",50.0,–,–,31,900,10,0,"20', table)
        self.assertIn("–,4,–,14,–", table)  # next to the paper's

    def test_refuses(self):
        good = line("BENCH", (900, 42), (10, 402), (9, 1202), run="misses", subject="slub", size=64)
        for lines, why in (("nothing", "no figures"),
                           (line("BENCH", (9, 2), (1, 402), (1, 402), run="misses", subject="slub", size=64), "a hit of slub, 64 bytes, costs 0")):
            done, table = self.write(lines)
            self.assertEqual((done.returncode, table), (1, ""))
            self.assertIn(why, done.stderr)
        done, _ = self.write(good, "--objects", "10")
        self.assertIn("--objects: 10 is not from 1000", done.stderr)


if __name__ == "__main__":
    unittest.main()
