#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""lab/run/compare: the verdict about rounds, a short run of a build with itself, refusals."""

import contextlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
KEY = ("pairs", "prudence 64 B", "ns_per_pair_wall")

sys.path.insert(0, str(ROOT / "lab"))
from measure import compare  # noqa: E402 (the path comes first)


def rounds(of_base, of_new, count=10, noise=0.01, drift=3.0):
    """Rounds of a machine that is up to `drift` times slower in some rounds, for both alike."""
    draw = random.Random(1)
    base, new = [], []
    for _ in range(count):
        slow = draw.uniform(1, drift)
        base.append({KEY: of_base * slow * draw.uniform(1 - noise, 1 + noise)})
        new.append({KEY: of_new * slow * draw.uniform(1 - noise, 1 + noise)})
    return base, new


def verdict_of(*arguments, **more):
    return compare.compare(*rounds(*arguments, **more), 0.99, 0.03)[0]["verdict"]


class Verdicts(unittest.TestCase):
    def test_a_slower_revision_is_noticed_though_the_machine_drifts(self):
        self.assertEqual(verdict_of(5.0, 5.5), compare.WORSE)

    def test_a_faster_one_too(self):
        self.assertEqual(verdict_of(5.0, 4.5), compare.BETTER)

    def test_the_same(self):
        self.assertEqual(verdict_of(5.0, 5.0), compare.SAME)

    def test_noise_decides_nothing(self):
        self.assertEqual(verdict_of(5.0, 5.2, noise=0.3), compare.UNDECIDED)

    def test_few_rounds_decide_nothing(self):
        self.assertEqual(verdict_of(5.0, 9.0, count=7), compare.UNDECIDED)
        self.assertEqual(verdict_of(5.0, 9.0, count=8), compare.WORSE)

    def test_a_revision_is_seldom_worse_than_itself(self):
        draw = random.Random(2)
        base = [{(n,) + KEY[1:]: draw.gauss(5, 1) for n in range(60)} for _ in range(10)]
        new = [{(n,) + KEY[1:]: draw.gauss(5, 1) for n in range(60)} for _ in range(10)]
        found = [row["verdict"] for row in compare.compare(base, new, 0.99, 0.0)]
        self.assertLessEqual(found.count(compare.WORSE), 60 * 0.05)

    def test_the_interval_holds_the_change(self):
        row = compare.compare(*rounds(5.0, 5.5), 0.99, 0.03)[0]
        self.assertLess(row["low"], 1.1)
        self.assertGreater(row["high"], 1.1)

    def test_figures_of_one_revision_only_are_left_out(self):
        base, new = rounds(5.0, 5.0)
        del new[3][KEY]
        self.assertEqual(compare.compare(base, new, 0.99, 0.03), [])


def run(*arguments):
    return subprocess.run([ROOT / "lab/run/compare", *arguments], text=True, timeout=100,
                          capture_output=True, env=dict(os.environ, PRUDENCE_BUILD_DIR=str(BUILD)))


class Command(unittest.TestCase):
    def test_a_build_with_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "compare.json"
            done = run("--base-build", str(BUILD), "--quick", "--repeat", "1", "--part", "pairs*",
                       "--json", str(file))
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = json.loads(file.read_text())["rows"]
        self.assertEqual({row["part"] for row in rows}, {"pairs", "pairs in order"})
        self.assertEqual({row["verdict"] for row in rows}, {compare.UNDECIDED})  # of one round
        self.assertIn(f"{len(rows)} figures", done.stdout)

    def refused(self, text, *arguments):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as end:
            compare.main(arguments, BUILD)
        self.assertNotEqual(end.exception.code, 0)
        self.assertIn(text, said.getvalue())

    def test_refuses(self):
        self.refused("BASE is missing")
        self.refused("'nobody' is none of pairs", "--base-build", str(BUILD), "--part", "nobody")
        self.refused("'0' is not a number from 1", "HEAD", "--repeat", "0")
        self.refused("'2' is not a number from 0 to 1", "HEAD", "--least", "2")
        self.refused("run `make build`", "--base-build", "/nowhere")

    def test_refuses_an_unknown_revision(self):
        if not (ROOT / ".git").exists():
            self.skipTest("not a repository")
        with self.assertRaisesRegex(compare.Failed, "'no-such-thing' is not a revision"):
            compare.commit_of(ROOT, "no-such-thing")


if __name__ == "__main__":
    unittest.main()
