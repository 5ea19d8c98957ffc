#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""prudence-bench latency: the times from a retire to the reuse are those in which the writer waited.

A writer that demands each object back does little else, so its times add up to much of its run. The quantiles are bounds from above
of the shares between them."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BENCH = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve() / "bin/prudence-bench"
SHARES = {"p50": 0.5, "p90": 0.4, "p99": 0.09, "p99_9": 0.009, "max": 0.001}


class Demand(unittest.TestCase):
    def test_times_add_up_to_the_run(self):
        with tempfile.TemporaryDirectory() as folder:
            found = Path(folder) / "found.json"
            subprocess.run([BENCH, "latency", "--demand", "--subject", "classic,urcu+glibc", "--seconds", "0.3", "--json", found],
                           check=True, capture_output=True)
            rows = json.loads(found.read_text())["rows"]
        self.assertIn("classic", [row["subject"] for row in rows])
        for row in rows:
            with self.subTest(row["subject"]):
                times = row["latency_ns"]
                most = times["count"] * sum(share * times[name] for name, share in SHARES.items()) / 1e9
                self.assertEqual(times["count"], row["pairs_done"])
                self.assertGreater(most, row["measured_seconds"] / 4)
                self.assertLessEqual(times["p50"] * times["count"] / 2 / 1e9, 2 * row["measured_seconds"])


if __name__ == "__main__":
    unittest.main()
