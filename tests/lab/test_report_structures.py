#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (it tests reports of measurements; none of it is in the library)
"""lab/run/structures and the report: when a goal is reached, missed or undecided, and by how much; a short run of
each family, and its page; peers find all objects; their refusals."""

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
REPORT = ROOT / "lab/run/report"
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"  # make test-long

sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tests/repo")]
from measure.structures import plan, run, verdict  # noqa: E402 (the path comes first)


def row(subject, kind, ns, updates=0, peak=(10,), **more):
    """A row whose repeats say these ns, or thrice the only one; peaks of the first, and times of single operations."""
    ns = ns if len(ns) > 1 else 3 * ns
    repeats = [{"ns": one, "peak_bytes_per_object": peak[min(i, len(peak) - 1)],
                "lookups": {"mean_ns": 2 * one}, "updates": {"mean_ns": 3 * one}} for i, one in enumerate(ns)]
    return {"subject": subject, "kind": kind, "family": "hash", "keys": "numbers", "draw": "uniform", "hits": 100, "walk": 0,
            "writers": 0, "size": 1000, "threads": 1, "updates": updates, "repeats": repeats, **more}


class Judging(unittest.TestCase):
    def test_reached(self):
        found = verdict.judge([9, 10, 11], {"a": [12, 13, 14], "b": [19, 20, 21]})
        self.assertEqual((found.word, found.peer, found.times), ("reached", "a", 1.3))

    def test_equal_is_reached(self):
        self.assertEqual(verdict.judge([10] * 3, {"a": [10] * 3}).word, "reached")

    def test_missed_says_by_how_much(self):
        found = verdict.judge([15, 15, 15], {"a": [10, 10, 10]})
        self.assertEqual(str(found), "missed by 50 %: 0.67 (15.0; a 10.0)")

    def test_twice_as_fast(self):
        self.assertEqual(verdict.judge([10] * 3, {"a": [20] * 3}, 2).word, "reached")
        found = verdict.judge([10] * 3, {"a": [16] * 3}, 2)
        self.assertEqual(str(found), "missed by 25 %: 1.60 of 2 (10.0; a 16.0)")

    def test_undecided_where_repeats_overlap(self):
        self.assertEqual(verdict.judge([8, 11, 14], {"a": [7, 10, 13]}).word, "undecided")
        self.assertEqual(verdict.judge([10.9, 11, 11.1], {"a": [9.9, 10, 10.1]}).word, "missed")

    def test_fewer_than_three_repeats_decide_nothing(self):
        for ours, theirs in (([10, 10], [20] * 3), ([10] * 3, [20, 20]), ([20], [10])):
            self.assertEqual(verdict.judge(ours, {"a": theirs}).word, "undecided")

    def test_nothing_to_compare(self):
        for ours, peers in (([], {"a": [1]}), ([1], {}), ([1], {"a": []}), ([0], {"a": [1]}), ([1], {"a": [0]})):
            self.assertIsNone(verdict.judge(ours, peers))


class Table(unittest.TestCase):
    def check(self, *rows):
        (load, verdicts), = verdict.check(list(rows))
        return verdicts

    def test_only_lookups(self):
        verdicts = self.check(row("prudence", "ours", [10]), row("ck_ht", "rcu", [20]), row("tbb", "lock", [15]))
        self.assertEqual((verdicts["lookups"].peer, verdicts["lookups"].theirs), ("tbb", 15))
        self.assertEqual(verdicts["memory"].word, "reached")

    def test_updates_are_compared_with_peers_of_rcu_alone(self):
        verdicts = self.check(*(row(name, kind, [ns], updates=100) for name, kind, ns in
                                (("prudence", "ours", 10), ("ck_ht", "rcu", 30), ("tbb", "lock", 5))))
        self.assertEqual((verdicts["updates"].word, verdicts["updates"].peer), ("reached", "ck_ht"))

    def test_mixtures_count_what_was_timed_alone(self):
        verdicts = self.check(row("prudence", "ours", [10], updates=50), row("ck_ht", "rcu", [40], updates=50))
        self.assertEqual((verdicts["lookups"].ours, verdicts["updates"].ours), (20, 30))

    def test_what_of_ours_is_not_compared_is_no_peer(self):
        verdicts = self.check(row("prudence", "ours", [10]), row("lockfree", "ours", [1]), row("ck_ht", "rcu", [20]))
        self.assertEqual(verdicts["lookups"].peer, "ck_ht")

    def test_other_loads_are_not_compared(self):
        self.assertEqual(verdict.check([row("prudence", "ours", [10]), row("ck_ht", "rcu", [20], size=2000)]), [])

    def test_a_failed_run_is_no_figure(self):
        failed = row("ck_ht", "rcu", [20, 20])
        failed["repeats"][0] = {"failed": "killed"}
        self.assertEqual(self.check(row("prudence", "ours", [10]), failed)["lookups"].theirs, 20)

    def test_memory_is_the_peak(self):
        verdicts = self.check(row("prudence", "ours", [10], peak=(50,)), row("ck_ht", "rcu", [20], peak=(40,)))
        self.assertEqual((verdicts["memory"].word, verdicts["memory"].ours), ("missed", 50))

    def test_summary(self):
        checked = verdict.check([row("prudence", "ours", [10]), row("ck_ht", "rcu", [20]),
                               row("prudence", "ours", [30], size=9), row("ck_ht", "rcu", [20], size=9),
                               row("prudence", "ours", [50], size=8), row("ck_ht", "rcu", [20], size=8)])
        line = next(line for line in verdict.summary(checked) if line["goal"] == "lookups")
        self.assertEqual([line[key] for key in ("loads", "reached", "undecided", "missed")], [3, 1, 0, 2])
        self.assertEqual(line["worst"][0]["size"], 8)


def measured(*arguments):
    """The rows of a short run of prudence-structures."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "structures.json"
        subprocess.run([BUILD / "bin/prudence-structures", "--seconds", "0.005", *arguments, "--json", file], check=True,
                       capture_output=True)
        return json.loads(file.read_text())["rows"]


class Program(unittest.TestCase):
    def test_every_table_finds_what_is_in_it(self):
        for family in ("hash", "map"):
            rows = measured("--family", family, "--size", "3000", "--updates", "0", "--keys", "numbers,strings", "--draw", "zipf")
            for one in rows:
                with self.subTest(family=family, subject=one["subject"], keys=one["keys"]):
                    self.assertEqual(one["repeats"][0]["found"], 1)
                    self.assertGreater(one["bytes_per_object"], 0)
                    self.assertGreaterEqual(one["peak_bytes_per_object"], one["bytes_per_object"])
                    self.assertEqual(one["repeats"][0]["updates"]["count"], 0)

    def test_shares_of_updates(self):
        for share, low, high in (("1", 0.005, 0.02), ("10", 0.08, 0.12), ("50", 0.45, 0.55)):
            one, = measured("--subject", "prudence", "--size", "1000", "--updates", share)
            timed = [64 * one["repeats"][0]["lookups"]["count"], 16 * one["repeats"][0]["updates"]["count"]]
            if sum(timed) > 50000:  # else the machine gave too little time to count
                self.assertTrue(low < timed[1] / sum(timed) < high, timed)


class Command(unittest.TestCase):
    @unittest.skipUnless(DEEP, "make test-long runs this")
    def test_a_short_run_and_its_page(self):
        # rte_fib6 aborts in updates of so few prefixes.
        parts = [plan.Part(family, family, {"size": "500", "updates": "0" if family == "routes6" else "0,50,100", "threads": "2"})
                 for family in plan.FAMILIES]
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            file = Path(folder) / "structures.json"
            kept, plan.QUICK = plan.QUICK, parts
            self.addCleanup(setattr, plan, "QUICK", kept)
            self.assertEqual(run.main(["--quick", "--repeat", "1", "--seconds", "0.005", "--json", str(file)], BUILD), 0)
            document = json.loads(file.read_text())
            said = subprocess.run([REPORT, file, "--note", "A note."], check=True, capture_output=True, text=True).stdout
            page = file.with_suffix(".html").read_text()
            tables = {path.stem: path.read_text() for path in file.with_suffix("").iterdir()}
            for family in plan.FAMILIES:
                self.assertTrue((Path(folder) / f"structures-{family}.png").exists())
                self.assertIn("500 objects, 2 threads, 0 %", tables[f"{family}-ns"])
        self.assertEqual({one["family"] for one in document["rows"]}, set(plan.FAMILIES))
        self.assertIn("liburcu", document["versions"])
        self.assertIn("A note.", page)
        self.assertIn("Goals reached, by loads: ", said)
        self.assertIn('"hash: updates, 2 times",', tables["goals"])
        self.assertEqual(page.count("<svg"), len(plan.FAMILIES))
        self.assertIn("All rows", page)

    def test_every_part_is_understood(self):
        for part in plan.QUICK + plan.FULL:
            self.assertIn(part.family, plan.FAMILIES)
            self.assertEqual(part.arguments(0.1, 3)[:6], ["--family", part.family, "--seconds", "0.1", "--repeat", "3"])

    def test_refuses(self):
        for text, *arguments in (("'trees' is none of hash", "--family", "trees"), ("'0' is not a number from 1", "--repeat", "0"),
                                 ("no such folder", "--json", "/nowhere/structures.json")):
            with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
                run.main(arguments, BUILD)
            self.assertIn(text, said.getvalue())

    def test_the_report_refuses_other_files(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "other.json"
            file.write_text(json.dumps({"program": "prudence-growth", "rows": [1]}))
            done = subprocess.run([REPORT, file], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("there is a report of", done.stderr)


if __name__ == "__main__":
    unittest.main()
