#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (it tests reports of measurements; none of it is in the library)
"""lab/run/growth: which curve, slope and knee it sees in points, a short run, the page, the table, refusals."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()

sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tests/repo")]
from measure import growth, summary  # noqa: E402 (the path comes first)

READERS = [1, 10, 100, 1000, 10000]


class Fits(unittest.TestCase):
    def curve(self, *ys):
        return growth.fit(READERS, ys)["curve"]

    def test_flat(self):
        self.assertEqual(self.curve(5.0, 5.2, 5.1, 5.3, 5.2), "flat")

    def test_log(self):
        self.assertEqual(self.curve(5.0, 7.1, 8.9, 11.0, 13.1), "log")

    def test_linear(self):
        self.assertEqual(self.curve(100, 110, 205, 1090, 10100), "linear")

    def test_one_bad_end_is_not_flat(self):
        self.assertNotEqual(self.curve(5.0, 5.0, 5.0, 5.0, 10.0), "flat")

    def test_no_curve_is_claimed_for_what_follows_none(self):
        self.assertEqual(self.curve(5.0, 100.0, 3.0, 90.0, 4.0), "irregular")

    def test_sentences(self):
        def say(*ys):
            return growth.sentence("A pair", "idle readers", "ns", READERS, ys, growth.fit(READERS, ys))

        self.assertEqual(say(5, 5, 5, 5, 5), "A pair does not grow: 5 ns at 1 idle readers, "
                                             "5 ns at 10,000.")
        self.assertIn("grows linearly, 1 ns for each", say(101, 110, 200, 1100, 10100))


class Shapes(unittest.TestCase):
    def shape(self, ys, xs=tuple(10 ** power for power in range(7))):
        return growth.shape(xs, ys)

    def test_the_slope_of_a_power(self):
        for power in (0, 0.5, 1, 2):
            found = self.shape([3 * 10 ** (power * i) for i in range(7)])
            self.assertAlmostEqual(found["slope"], power)
            self.assertEqual((found["knee"], found["above_linear"]), (None, power > 1))

    def test_a_knee(self):
        found = self.shape([5, 5, 5, 5, 50, 500, 5000])
        self.assertEqual(found["knee"], 1000)
        self.assertAlmostEqual(found["before"], 0)
        self.assertAlmostEqual(found["after"], 1)
        self.assertFalse(found["above_linear"])

    def test_what_is_above_linear_only_after_the_knee(self):
        found = self.shape([5, 5, 5, 5, 5 * 10 ** 1.5, 5 * 10 ** 3, 5 * 10 ** 4.5])
        self.assertLess(found["slope"], 1.1)
        self.assertTrue(found["above_linear"])

    def test_noise_and_few_points_have_no_knee(self):
        self.assertIsNone(self.shape([5, 5.2, 4.9, 5.1, 5, 5.3, 5.2])["knee"])
        self.assertIsNone(self.shape([5, 500, 5, 500, 5, 5000, 5])["knee"])
        self.assertIsNone(self.shape([5, 5, 50, 500], (1, 10, 100, 1000))["knee"])


class Command(unittest.TestCase):
    def test_each_work_and_the_table(self):
        works = ["block-size", "domains", "hazard-slots", "callbacks", "hash", "map", "routes", "threads"]
        self.assertEqual([axis for axis, *_ in growth.AXES if axis in works], works)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "growth.json"
            with contextlib.redirect_stdout(io.StringIO()):
                growth.main(["--quick", "--repeat", "1", "--axis", ",".join(works), "--json", str(file)], BUILD)
            rows, _ = json.loads(file.read_text())["rows"], summary.report(Path(folder))
            lines = (Path(folder) / "summary/growth.csv").read_text().splitlines()
            self.assertIn("no curve is above linear,growth,undecided,1\n", (Path(folder) / "summary/targets.csv").read_text())
        self.assertEqual([(row["axis"], row["what"]) for row in rows[::4]], [(axis, (operation or ["A pair"])[0]) for axis, _, _, _, _, *operation in growth.AXES
                                                                            if axis in works])
        self.assertTrue(all(row["y"][0] > 0 and len(row["x"]) == 3 for row in rows))
        self.assertEqual((len(lines), lines[0]), (33, "subject,along,from,to,first,last,fit,slope,knee,slope before,slope after,above linear,rounds"))

    def test_a_short_run_and_its_page(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "growth.json"
            with contextlib.redirect_stdout(io.StringIO()) as said:
                self.assertEqual(growth.main(["--quick", "--repeat", "1", "--axis",
                                           "idle-readers,caches", "--json", str(file)], BUILD), 0)
            rows = json.loads(file.read_text())["rows"]
            subprocess.run([ROOT / "lab/run/report", file], check=True, timeout=100,
                           capture_output=True)
            self.assertIn("prudence_stats", file.with_suffix(".html").read_text())
        self.assertEqual(len(rows), 8)  # four figures along two axes
        self.assertTrue(all(row["curve"] in [*growth.CURVES, "irregular"] for row in rows))
        self.assertEqual(said.getvalue().count("\n"), 8)

    def test_refuses(self):
        for text, *arguments in (("'height' is none of idle-readers", "--axis", "height"),
                                 ("'0' is not a number from 1", "--repeat", "0"),
                                 ("no such folder", "--json", "/nowhere/growth.json")):
            with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
                growth.main(arguments, BUILD)
            self.assertIn(text, said.getvalue())


if __name__ == "__main__":
    unittest.main()
