#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""prudence-bench steps, without the clock: that each step is there, how often it happens and how many objects it brings, and refusals."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = Path(os.environ["PRUDENCE_BUILD_DIR"]).resolve() / "bin/prudence-bench"
ROUNDS, FULL, RUN = 3, 8, 8  # object caches full of objects in a round; hits that are measured together


def run(*arguments):
    return subprocess.run([BENCH, "steps", *arguments], capture_output=True, text=True, check=False, timeout=100)


def measure(size, cached):
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "steps.json")
        done = run(f"--size={size}", f"--cache={cached}", f"--rounds={ROUNDS}", f"--json={place}")
        if done.returncode:
            raise AssertionError(done.stderr)
        return done.stdout, {row["step"]: row for row in json.loads(place.read_text())["rows"]}


class Steps(unittest.TestCase):
    def test_each_step_is_measured(self):
        for size in (64, 4096):
            for cached in (16, 64):
                with self.subTest(size=size, cached=cached):
                    self.check(cached, *measure(size, cached))

    def check(self, cached, text, rows):
        self.assertEqual(list(rows), ["hit", "merge", "refill", "grow"])
        self.assertEqual({name: row.get("paper") for name, row in rows.items()}, {"hit": 1, "merge": None, "refill": 4, "grow": 14})
        for name, row in rows.items():
            self.assertGreaterEqual(row["count"], ROUNDS, name)
            self.assertTrue(row["ns_low"] <= row["ns"] <= row["ns_high"], name)
        # A round merges a batch, at most two; the other steps of a merge come with its second batch, which is not safe yet.
        self.assertLessEqual(rows["merge"]["count"], 2 * ROUNDS)
        for name in ("merge", "refill", "grow"):
            self.assertTrue(1 < rows[name]["objects"] <= cached, name)
        # All objects but the last few, once new, and seven of eight once more, were brought by refills and grows.
        brought = sum(rows[name]["count"] * rows[name]["objects"] for name in ("refill", "grow"))
        self.assertGreaterEqual(brought, ROUNDS * FULL * cached)
        self.assertLessEqual(RUN * rows["hit"]["count"], ROUNDS * 2 * FULL * cached)
        self.assertEqual([line.split()[-1] for line in text.splitlines()], ["paper", "1", "-", "4", "14"])

    def test_refuses(self):
        for arguments, why in ((["--size=0"], "--size: '0' is not"), (["--size=64,x"], "--size: '64,x' is not"), (["--cache=15"], "--cache: '15' is not"),
                               (["--rounds=0"], "--rounds: '0' is not"), (["more"], "unexpected 'more'")):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (64, ""))
            self.assertIn(why, done.stderr)

    def test_a_result_that_cannot_be_written_is_an_error(self):
        done = run("--size=64", "--rounds=1", "--json=/nowhere/steps.json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/steps.json", done.stderr)


if __name__ == "__main__":
    if not BENCH.exists():
        sys.exit(77)
    unittest.main()
