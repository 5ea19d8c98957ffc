#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""prudence-bench pairs: floors, both plain pairs that ours are divided by, and rounds that the host spoiled."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BENCH = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve() / "bin/prudence-bench"
FLOORS = ["floor-loop", "floor-array", "floor-array-called", "floor-rseq", "floor-two-rseqs", "floor-packed-rseq"]
WITHOUT_SEQUENCES = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


def stat_line(user, steal):
    return f"cpu  {user} 0 0 1000 0 0 0 {steal} 0 0\n"


class Pairs(unittest.TestCase):
    def bench(self, *arguments, stat=(), environment=None):
        """Returns (the document, standard output, standard error)."""
        with tempfile.TemporaryDirectory() as folder:
            found, lines = Path(folder) / "found.json", Path(folder) / "stat"
            lines.write_text("".join(stat) or stat_line(0, 0))
            done = subprocess.run([BENCH, "pairs", "--pairs", "2000", "--size", "64", "--threads", "1", *arguments, "--json", found], text=True,
                                  capture_output=True, env={**os.environ, "PRUDENCE_BENCH_STAT": str(lines), **(environment or {})})
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(found.read_text()), done.stdout, done.stderr

    def ratio(self, row, key):
        return row["by_plain"][key]["ratio"]

    def test_both_plain_pairs_divide(self):
        found, printed, _ = self.bench("--subject", "prudence,plain+glibc,plain+prudence,plain+glibc/1024", "--repeat", "3")
        ours, single, prudence, batched = found["rows"]
        self.assertEqual((self.ratio(single, "single"), self.ratio(batched, "batched")), (1, 1))
        self.assertEqual({one["by_plain"][key]["subject"] for one in found["rows"] for key in ("single", "batched")}, {"plain+glibc"})
        for row, plain, key in ((ours, single, "single"), (ours, batched, "batched"), (prudence, single, "single")):
            self.assertAlmostEqual(self.ratio(row, key), row["ns_per_pair_cpu"] / plain["ns_per_pair_cpu"], places=4)
            by_round = [mine["ns_per_pair_cpu"] / theirs["ns_per_pair_cpu"] for mine, theirs in zip(row["repeats"], plain["repeats"])]
            self.assertAlmostEqual(row["by_plain"][key]["min"], min(by_round), places=4)
            self.assertAlmostEqual(row["by_plain"][key]["max"], max(by_round), places=4)
        self.assertRegex(printed, r"best plain pair one at a time: [\d.]+ ns of CPU \(plain\+glibc\)")
        self.assertRegex(printed, r"best plain pair in batches of 1,024: [\d.]+ ns")
        self.assertRegex(printed, r"spread of CPU time over the rounds .*: \d+ % in the median row, at most \d+ %")

    def test_sizes_reach_the_largest_size_class(self):
        found, _, _ = self.bench("--subject", "prudence,plain+*", "--size", "40000,131072", "--batch", "16", "--pairs", "200")
        self.assertEqual({row["size"] for row in found["rows"]}, {40000, 131072})
        self.assertTrue(all(row["ns_per_pair_cpu"] > 0 for row in found["rows"]))
        done = subprocess.run([BENCH, "pairs", "--size", "131073"], text=True, capture_output=True)
        self.assertIn("is not a list of numbers from 16 to 131072", done.stderr)

    def test_no_plain_pair_is_said(self):
        found, printed, _ = self.bench("--subject", "prudence,plain+glibc")
        self.assertIn("no plain pair in batches of 1,024 was run", printed)
        self.assertEqual({tuple(row["by_plain"]) for row in found["rows"]}, {("single",)})
        _, printed, _ = self.bench("--subject", "prudence")
        self.assertIn("no plain pair one at a time was run", printed)

    def test_without_sequences_their_floors_are_left_out(self):
        found, printed, said = self.bench("--subject", "floor-*,plain+glibc", environment=WITHOUT_SEQUENCES)
        self.assertEqual([row["subject"] for row in found["rows"]], [*FLOORS[:3], "plain+glibc"])
        for name in FLOORS[3:]:
            self.assertIn(f"{name} is skipped: there are no restartable sequences here", said)
            self.assertIn({"subject": name, "why": "there are no restartable sequences here"}, found["skipped"])

    @unittest.skipUnless(os.uname().machine == "x86_64", "floors that are sequences are x86-64's")
    def test_floors(self):
        found, _, said = self.bench("--subject", "floor-*", "--readers", "0,1", "--threads", "1,2")
        if "is skipped" not in said:
            self.assertEqual([row["subject"] for row in found["rows"]], 4 * FLOORS)
        self.assertTrue(all(row["pairs_done"] == 2048 * row["threads"] for row in found["rows"]), [row["pairs_done"] for row in found["rows"]])

    def test_floors_are_tight_pairs_alone(self):
        found, *_ = self.bench("--subject", "floor-loop,prudence", "--order", "random,tight", "--live", "64")
        self.assertEqual([(row["subject"], row["order"]) for row in found["rows"]], [("prudence", "random"), ("floor-loop", "tight"), ("prudence", "tight")])
        done = subprocess.run([BENCH, "latency", "--subject", "floor-loop"], text=True, capture_output=True)
        self.assertIn("floor-loop is a floor of pairs: not for latency", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_the_default_has_floors_and_both_plain_pairs(self):
        found, printed, _ = self.bench("--pairs", "100")
        for name in ("floor-loop", "floor-array", "floor-array-called"):
            self.assertIn(name, [row["subject"] for row in found["rows"]])
        self.assertEqual([row["batch"] for row in found["rows"] if row["subject"] == "plain+glibc"], [1, 1024])
        self.assertNotIn("was run, so no ratio", printed)

    def test_a_stolen_round_does_not_count(self):
        stat = [stat_line(0, 0), stat_line(979, 21), *(stat_line(2000, 21),) * 2, stat_line(3000, 30), stat_line(3977, 53)]
        found, printed, said = self.bench("--subject", "prudence,plain+glibc", "--repeat", "3", stat=stat)
        self.assertIn("round 1 does not count: the host took 2.1 % of the CPUs' time", said)
        self.assertIn("round 3 does not count: the host took 2.3 %", said)
        self.assertNotIn("STOLEN", printed)
        for row in found["rows"]:
            self.assertEqual([one["stolen"] for one in row["repeats"]], [True, False, True])
            self.assertEqual((row["rounds"], row["stolen"]), (1, False))
            self.assertEqual(row["ns_per_pair_cpu"], row["repeats"][1]["ns_per_pair_cpu"])
            self.assertEqual(row["by_plain"]["single"]["min"], row["by_plain"]["single"]["max"])

    def test_two_percent_is_not_too_much(self):
        found, _, said = self.bench("--subject", "prudence", stat=[stat_line(0, 0), stat_line(980, 20)])
        self.assertNotIn("does not count", said)
        self.assertEqual(found["rows"][0]["repeats"][0]["steal"], 0.02)

    def test_when_all_rounds_are_stolen_the_row_says_so(self):
        found, printed, _ = self.bench("--subject", "prudence", "--repeat", "2", stat=[stat_line(100 * i, 100 * i) for i in range(4)])
        self.assertIn("STOLEN", printed)
        self.assertEqual((found["rows"][0]["rounds"], found["rows"][0]["stolen"]), (2, True))

    def test_a_system_that_does_not_tell(self):
        found, printed, _ = self.bench("--subject", "prudence", stat=["intr 1\n"])
        self.assertNotIn("steal", found["rows"][0]["repeats"][0])
        self.assertNotIn("STOLEN", printed)


if __name__ == "__main__":
    unittest.main()
