#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""bench-acdc: its statistics against a textbook's figures, its findings, a short run and its page."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
BENCH, REPORT = ROOT / "tools/bench-acdc", ROOT / "tools/report_acdc.py"

sys.path.insert(0, str(ROOT / "tools"))
from acdc_bench import experiments, findings, statistics  # noqa: E402 (the path comes first)


def run(*command):
    return subprocess.run(command, text=True, capture_output=True, timeout=250)


class Statistics(unittest.TestCase):
    def test_sign_table(self):
        self.assertEqual(statistics.combinations("AB"), ["", "A", "B", "AB"])
        self.assertEqual(statistics.levels("AB"),
                         [{"A": False, "B": False}, {"A": True, "B": False},
                          {"A": False, "B": True}, {"A": True, "B": True}])

    def test_allocation_of_variation(self):
        """Jain, example 18.1: 78.88 %, 15.40 %, 4.27 %, and 1.45 % of errors."""
        shares = statistics.allocation_of_variation(
            "AB", [[15, 18, 12], [45, 48, 51], [25, 28, 19], [75, 75, 81]])
        for name, share in {"A": 5547, "B": 1083, "AB": 300, "error": 102}.items():
            self.assertAlmostEqual(shares[name], share / 7032, places=6)

    def test_each_effect_is_found(self):
        labels = "ABCDE"
        for effect in statistics.combinations(labels)[1:]:
            table = []
            for level in statistics.levels(labels):
                sign = 1
                for label in effect:
                    sign *= 1 if level[label] else -1
                table.append([10 + sign] * 2)
            shares = statistics.allocation_of_variation(labels, table)
            self.assertAlmostEqual(shares[effect], 1, msg=effect)

    def test_no_variation(self):
        self.assertEqual(statistics.allocation_of_variation("A", [[1, 1], [1, 1]]),
                         {"A": 0, "error": 0})

    def test_interval(self):
        mean, half = statistics.interval([10, 12, 14])
        self.assertAlmostEqual(mean, 12)
        self.assertAlmostEqual(half, 4.3027 * 2 / 3 ** 0.5, places=3)
        self.assertFalse(statistics.is_known([10, 12, 14], 0.1))
        self.assertTrue(statistics.is_known([11.9, 12, 12.1], 0.1))
        self.assertFalse(statistics.is_known([12], 0.1))

    def test_slope(self):
        self.assertAlmostEqual(statistics.slope([1, 2, 4, 8], [3, 6, 12, 24]), 1)
        self.assertAlmostEqual(statistics.slope([1, 2, 4], [5, 5, 5]), 0)


def curve(experiment, subject, response, values):
    return [{"experiment": experiment, "subject": subject, "kind": subject.partition("+")[0],
             "point": point, "responses": {response: {"mean": value}}}
            for point, value in values.items()]


class Findings(unittest.TestCase):
    def result(self, rows, thesis):
        document = {"rows": rows, "variation": {}, "host": {"cpus": 2}}
        return next(one for one in findings.check_all(document) if thesis in one["thesis"])

    def test_nothing_was_measured(self):
        document = {"rows": [], "variation": {}, "host": {"cpus": 2}}
        self.assertTrue(all(one["holds"] is None for one in findings.check_all(document)))

    def test_constant(self):
        thesis = "Lazy: refresh takes the same time"
        rows = curve("threads", findings.LAZY, "refresh", {1: 100, 2: 110, 4: 105})
        self.assertIs(self.result(rows, thesis)["holds"], True)
        rows = curve("threads", findings.LAZY, "refresh", {1: 100, 2: 160, 4: 105})
        self.assertIs(self.result(rows, thesis)["holds"], False)

    def test_proportional(self):
        thesis = "Eager: tick is proportional to the heap"
        rows = curve("quantum", findings.EAGER, "tick", {4096: 10, 8192: 20, 16384: 40})
        self.assertIs(self.result(rows, thesis)["holds"], True)
        rows = curve("quantum", findings.EAGER, "tick", {4096: 10, 8192: 11, 16384: 12})
        self.assertIs(self.result(rows, thesis)["holds"], False)

    def test_same_throughput(self):
        rows = curve("throughput-quantum", findings.LAZY, "bytes_per_second", {1: 100, 2: 100})
        rows += curve("throughput-quantum", findings.EAGER, "bytes_per_second", {1: 110, 2: 70})
        self.assertIs(self.result(rows, "Lazy and eager have the same throughput")["holds"], False)

    def test_strongest(self):
        document = {"rows": [], "host": {"cpus": 2}, "variation": {"factorial": {findings.LAZY: {
            "refresh": {"A": 0.01, "D": 0.8, "E": 0.04, "B": 0.05, "error": 0.1}}}}}
        first = findings.check_all(document)[0]
        self.assertEqual((first["figure"], first["holds"]), ("6.1", True))
        self.assertIn("D 80%", first["measured"])


class Design(unittest.TestCase):
    def test_factorial_points_are_all_combinations(self):
        for short in (True, False):
            by_name = {one.name: one for one in experiments.experiments(short, 2)}
            self.assertEqual(len(by_name["factorial"].points), 32)
            self.assertEqual(len(by_name["factorial-malloc"].points), 8)
            options = by_name["factorial"].points["A+B-C-D+E-"]
            self.assertIn("--threads=2", options)
            self.assertIn("--max-liveness=10", options)
            self.assertIn("--collection=eager", options)
            self.assertEqual(by_name["factorial"].prudence_options["A+B-C-D+E-"],
                             "scm_expired=free")


class ShortRun(unittest.TestCase):
    def test_document_and_page(self):
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder, "acdc.json")
            done = run(BENCH, "--short", "--most=2", "--replications=1", "--json", result,
                       "--experiment=factorial-malloc,threads,trace,throughput-threads",
                       "--subject=none,persistent+glibc,deferred-prudence")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("6.12", done.stdout)
            document = json.loads(result.read_text())
            names = {(row["experiment"], row["subject"]) for row in document["rows"]}
            self.assertIn(("threads", "persistent+glibc"), names)
            self.assertIn(("throughput-threads", "none"), names)
            self.assertIn(("trace", "deferred-prudence"), names)
            for row in document["rows"]:
                self.assertNotIn("failed", row)
                self.assertTrue(row["responses"], row)
            shares = document["variation"]["factorial-malloc"]["persistent+glibc"]["allocate"]
            self.assertAlmostEqual(sum(shares.values()), 1)
            self.check_page(result, document)

    def check_page(self, result, document):
        document["skipped"] = [{"subject": "nomalloc", "why": "gone <"}]
        result.write_text(json.dumps(document))
        done = run(REPORT, result)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = result.with_suffix(".html").read_text()
        self.assertEqual(page.count("<svg"), len(document["experiments"]))
        for text in ("Skipped: nomalloc: gone &lt;", "not measured", "In numbers"):
            self.assertIn(text, page)

    def test_refused(self):
        for text, *options in (("unknown experiment 'x'", "--experiment=x"),
                               ("unknown subject 'x'", "--subject=x"),
                               ("--precision: '0' is not a number from", "--precision=0"),
                               ("--least 9 is more than --most 3", "--least=9", "--most=3"),
                               ("--json: '/none/x' cannot be written", "--json=/none/x")):
            done = run(BENCH, *options)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)
        done = run(REPORT, ROOT / "CMakePresets.json")
        self.assertIn("is not of bench-acdc", done.stderr)

    def test_list(self):
        done = run(BENCH, "--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in ("factorial-malloc", "6.12", "persistent+glibc", "short-term-lazy"):
            self.assertIn(text, done.stdout)


if __name__ == "__main__":
    unittest.main()
