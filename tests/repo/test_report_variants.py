#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tools/report_variants.py: when a finding holds, does not, or is undecided; how lines are counted; a short run and its
page."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
REPORT = ROOT / "tools/report_variants.py"

sys.path.insert(0, str(ROOT / "tools"))
from variants_report import findings, sources  # noqa: E402 (the path comes first)


def latencies(**p50):
    """Rows of the load call beside one reader."""
    return [{"load": "call", "variant": name, "workers": 1, "readers": 1, "rate": 0, "batch": 0,
             "repeats": [{"latency_ns": {"p50": one}} for one in all_of]} for name, all_of in p50.items()]


class Verdicts(unittest.TestCase):
    OTHERS = {name: [900, 901, 902, 903, 904] for name in findings.OF_FIGURE_87 if name != "polling"}

    def verdict(self, polling):
        checked = findings.check(latencies(polling=polling, **self.OTHERS))
        return next(line for line in checked if "shortest" in line["the thesis"])

    def test_holds(self):
        self.assertEqual(self.verdict([10, 11, 12, 13, 14])["verdict"], "holds")

    def test_does_not_hold(self):
        line = self.verdict([5000, 5001, 5002, 5003, 5004])
        self.assertEqual(line["verdict"], "does not hold")
        self.assertIn("polling 5 µs", line["here"])

    def test_undecided_when_the_runs_disagree(self):
        self.assertEqual(self.verdict([10, 11, 12, 5000, 5001])["verdict"], "undecided")

    def test_not_measured(self):
        rows = latencies(polling=[10])
        self.assertEqual({line["verdict"] for line in findings.check(rows) if line["subject"] != "Table 8.1"},
                         {"not measured"})

    def test_a_failed_run_is_no_figure(self):
        rows = latencies(polling=[10])
        rows[0]["repeats"].append({"failed": "it took longer"})
        self.assertEqual(findings.Results(rows).latency("polling", 1), 10)


class Sources(unittest.TestCase):
    def test_every_historical_variant_has_its_files(self):
        said = subprocess.run([BUILD / "bin/prudence-variants", "--list"], check=True, capture_output=True, text=True).stdout
        variants, _ = said.split("\n\n")
        names = {line.split()[0]: "historical:" in line for line in variants.splitlines()}
        self.assertEqual({name for name, historical in names.items() if historical}, set(sources.FILES))
        self.assertEqual(set(sources.IDLE), set(names) - {"none"})

    def test_comments_are_no_lines(self):
        own, whole = sources.lines("krcud")
        text = (ROOT / sources.FOLDER / "krcud.c").read_text()
        self.assertLess(own, len(text.splitlines()))
        self.assertGreater(whole, own)


class Command(unittest.TestCase):
    def test_a_short_run_and_its_page(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "variants.json"
            subprocess.run([BUILD / "bin/prudence-variants", "--variant", "ring,k42,none", "--seconds", "0.02", "--json", file,
                            "--load", "switch,preempt,idle,synchronize,call,paced", "--rate", "10000"],
                           check=True, capture_output=True, timeout=100)
            said = subprocess.run([REPORT, file], check=True, capture_output=True, text=True, timeout=100).stdout
            page = file.with_suffix(".html").read_text()
        self.assertIn("## Overhead when idle (Table 8.2)", said)
        self.assertIn("| rcu-taskq is the smallest |", said)
        self.assertIn("Latency by load", page)
        self.assertIn("10,000/s", page)

    def test_refuses(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "other.json"
            file.write_text(json.dumps({"program": "prudence-growth", "rows": [1]}))
            done = subprocess.run([REPORT, file], capture_output=True, text=True, timeout=100)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has no rows of prudence-variants", done.stderr)


if __name__ == "__main__":
    unittest.main()
