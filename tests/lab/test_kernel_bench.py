#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (it tests reports of measurements; none of it is in the library)
"""The report of tools/kernel/bench, by rows that are made up: each finding of the paper's Figures 3 and 6 holds, fails, and is unknown."""

import csv
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab"))
from measure import kernel, kernel_verdict  # noqa: E402 (the path comes first)

WHERE = {"kernel": "6.1", "boot": "icount"}
HOLDS, FAILS, UNDECIDED, MISSING = "holds", "does not hold", "undecided", "not measured"


def pair_rows(times, subject="call_rcu"):
    """`times`: {size: how many times as fast Prudence is in each round}"""
    return [WHERE | {"run": "pairs", "subject": name, "size": size, "round": turn, "pairs": 1000, "ns_per_pair": ns, "busy_ns_per_pair": ns}
            for size, rounds in times.items() for turn, one in enumerate(rounds) for name, ns in (("prudence", 100), (subject, 100 * one))]


def endured(subject, used_mb, failures=0, kills=0):
    """A run and the samples, one in 10 ms."""
    samples = [WHERE | {"run": "sample", "subject": subject, "ms": 10 * i, "used_kb": 1024 * mb, "updates": i} for i, mb in enumerate(used_mb)]
    return [*samples, WHERE | {"run": "endurance", "subject": subject, "ms": 10 * len(used_mb), "updates": len(used_mb), "before_kb": 1024, "mean_kb": 1024,
                               "peak_kb": 1024 * max(used_mb, default=1), "failures": failures, "failed_ms": 0, "longest_ms": 1, "kills": kills,
                               "total_kb": 192 * 1024}]


def thrice(runs):
    return [one for one in runs for _ in range(3)]


def words(rows, run):
    """{claim: verdict}"""
    return {line["the paper"]: line["verdict"] for line in kernel_verdict.findings(rows, run)}


FLAT, RISING, STARTS = [20] * 40, list(range(20, 60)), [5, 20] + [40] * 38


class Figure6(unittest.TestCase):
    def judged(self, times):
        """Each round comes three times."""
        return list(words(pair_rows({size: thrice(rounds) for size, rounds in times.items()}), "pairs").values())

    def test_fewer_than_three_rounds_decide_nothing(self):
        for rounds, found in ((1, {UNDECIDED}), (2, {UNDECIDED}), (3, {HOLDS, FAILS})):
            self.assertEqual(set(words(pair_rows({64: [5] * rounds, 4096: [6] * rounds}), "pairs").values()), found)

    def test_faster_at_every_size(self):
        for times, word in (([2, 3], HOLDS), ([0.5, 0.6], FAILS), ([0.5, 3], UNDECIDED)):
            self.assertEqual(self.judged({64: times, 4096: [5, 5]})[0], word)
        self.assertEqual(self.judged({64: [1, 1], 4096: [1, 1]})[0], UNDECIDED)  # the same everywhere proves nothing

    def test_by_3_9_times_at_least(self):
        for times, word in (([4, 5], HOLDS), ([2, 3], FAILS), ([2, 5], UNDECIDED)):
            self.assertEqual(self.judged({64: times})[1], word)
            self.assertEqual(self.judged({64: times, 512: [5, 5]})[1], word)  # a size that is below it refutes, whatever the others are

    def test_most_at_4096(self):
        for times, word in (([9, 8], HOLDS), ([3, 2], FAILS), ([9, 2], UNDECIDED), ([4, 4], UNDECIDED)):
            self.assertEqual(self.judged({8: [3, 3], 64: [4, 4], 4096: times})[2], word)
        self.assertEqual(self.judged({64: [4, 4]})[2], MISSING)
        self.assertEqual(self.judged({4096: [4, 4]})[2], MISSING)  # with nothing to compare

    def test_28_6_times_there(self):
        for times, word in (([29, 30], HOLDS), ([20, 3], FAILS), ([29, 20], UNDECIDED)):
            self.assertEqual(self.judged({4096: times})[3], word)
        self.assertEqual(self.judged({64: [29, 30]})[3], MISSING)

    def test_rounds_are_compared_with_their_own(self):
        """The best of the other sizes is another one in each round."""
        self.assertEqual(self.judged({8: [3, 6], 64: [6, 3], 4096: [7, 7]})[2], HOLDS)
        self.assertEqual(self.judged({8: [3, 9], 64: [9, 3], 4096: [7, 7]})[2], FAILS)

    def test_each_peer_and_none(self):
        both = pair_rows({64: [4, 5, 4]}) + [row for row in pair_rows({64: [2, 2, 2]}, "kfree_rcu") if row["subject"] != "prudence"]
        found = words(both, "pairs")
        self.assertEqual((found["by 3.9 times at least, compared with call_rcu"], found["by 3.9 times at least, compared with kfree_rcu"]), (HOLDS, FAILS))
        self.assertEqual(words([row for row in both if row["subject"] == "prudence"], "pairs"), {})
        self.assertEqual(words([row for row in both if row["subject"] != "prudence"], "pairs"), {})


class Figure3(unittest.TestCase):
    def judged(self, theirs, ours):
        """Each run comes three times."""
        return list(words([row for run in thrice(theirs) for row in endured("call_rcu", *run)] +
                          [row for run in thrice(ours) for row in endured("prudence", *run)], "endurance").values())

    def test_fewer_than_three_runs_decide_nothing(self):
        rows = [row for _ in range(2) for name, used in (("call_rcu", RISING), ("prudence", FLAT)) for row in endured(name, used, name == "call_rcu")]
        self.assertEqual(set(words(rows, "endurance").values()), {UNDECIDED})

    def test_memory_runs_out(self):
        """A run that ended while memory still grew was too short to refute."""
        for theirs, word in (([(RISING, 3), (RISING, 0, 1)], HOLDS), ([(FLAT,), (STARTS,)], FAILS), ([(RISING, 3), (FLAT,)], UNDECIDED), ([(RISING,)], UNDECIDED),
                             ([(RISING, 3), (RISING,)], HOLDS), ([(RISING,), (FLAT,)], FAILS)):
            self.assertEqual(self.judged(theirs, [(FLAT,)])[0], word)

    def test_memory_grows(self):
        for theirs, word in (([(RISING,)], HOLDS), ([(FLAT, 1)], HOLDS), ([(FLAT,), (STARTS,)], FAILS), ([(RISING,), (FLAT,)], UNDECIDED), ([([],)], MISSING)):
            self.assertEqual(self.judged(theirs, [(FLAT,)])[1], word)

    def test_ours_stays_the_same(self):
        for ours, word in (([(FLAT,), (STARTS,)], HOLDS), ([(RISING,)], FAILS), ([(FLAT, 1)], FAILS), ([(FLAT,), (RISING,)], UNDECIDED), ([([],)], MISSING)):
            self.assertEqual(self.judged([(RISING,)], ours)[2], word)


class Latency(unittest.TestCase):
    def judged(self, p999, most=(9, 9)):
        """Makes rounds from the factors of the time with call_rcu."""
        rows = [WHERE | {"run": "latency", "subject": subject, "size": 64, "round": turn, "p999_ns": 100 * slow, "most_ns": 100 * slowest}
                for turn, both in enumerate(thrice(zip(p999, most))) for subject, (slow, slowest) in (("prudence", (1, 1)), ("call_rcu", both))]
        return list(words(rows, "latency").values())

    def test_slow_pairs(self):
        for times, word in (([2, 3], HOLDS), ([0.5, 0.4], FAILS), ([2, 0.5], UNDECIDED), ([], None)):
            found = self.judged(times)
            self.assertEqual(found, [word, HOLDS] if word else [])
        self.assertEqual(self.judged([2, 2], [0.5, 0.5]), [HOLDS, FAILS])


class Hurry(unittest.TestCase):
    def hurried(self, periods, expedited=lambda i: 0):
        """When, in ms, of samples with this many grace periods in all."""
        samples = [{"ms": 10 * i, "grace_periods": periods(i), "expedited": expedited(i)} for i in range(40)]
        return [one["ms"] for one in kernel.hurried(samples)]

    def test_where_rcu_hurries_is_marked(self):
        self.assertEqual(self.hurried(lambda i: i), [])
        self.assertEqual(self.hurried(lambda i: i + 9 * (i >= 30)), [300])                  # more at once
        self.assertEqual(self.hurried(lambda i: i, lambda i: int(i >= 20)), [200])         # an expedited one
        self.assertEqual(kernel.hurried([{"ms": i, "used_kb": 1} for i in range(40)]), [])  # a file from before they were counted


class Report(unittest.TestCase):
    def test_tables(self):
        rows = pair_rows({64: [4, 5], 4096: [6, 6]}) + [row for one in thrice([endured("call_rcu", FLAT), endured("prudence", FLAT)]) for row in one]
        with tempfile.TemporaryDirectory() as folder:
            lines = Path(folder, "kernel.lines")
            lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
            said = subprocess.run([ROOT / "lab/run/report", lines], check=True, capture_output=True, text=True, timeout=100).stdout
            tables = {path.stem: list(csv.reader(path.read_text().splitlines())) for path in lines.with_suffix("").iterdir()}
        self.assertIn("most for objects of 4,096 bytes, compared with call_rcu", said)
        self.assertIn(["Figure 3", "with call_rcu memory grows until it runs out", FAILS, "3"], [row[:4] for row in tables["6-1-findings-of-figure-3-icount"]])
        self.assertIn(["call_rcu", "450 ± 70.7", "600 ± 0.0"], tables["6-1-1-000-pairs-icount-instructions-a-pair-mean-and-standard-deviation"])


if __name__ == "__main__":
    unittest.main()
