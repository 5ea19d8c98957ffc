#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (it tests reports of measurements; none of it is in the library)
"""lab/run/report of prudence-variants: when a finding holds, does not, or is undecided; how lines are counted; a short run and its
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
REPORT = ROOT / "lab/run/report"

sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "lab/reproduce"), str(ROOT / "tests/repo")]
from experiments.variants import sources, verdict  # noqa: E402 (the path comes first)


def row_of(load, name, repeats, **more):
    return {"load": load, "variant": name, "workers": 1, "readers": 1, "rate": 0, "batch": 0, "seconds": 1, "repeats": repeats, **more}


def latencies(count=1000, **p50):
    """Returns rows of the load call with one reader."""
    return [row_of("call", name, [{"latency_ns": {"p50": one, "count": count}} for one in all_of]) for name, all_of in p50.items()]


def costs(seconds, count=1000, ns=1e6, runs=5):
    """Rows of the load paced at 10,000 calls a second, in which `barrier` is cheaper than `ring`."""
    return [row_of("paced", name, [{"cost_ns": cost + i, "calls_per_second": count, "latency_ns": {"p50": ns, "count": 1000}}
                                   for i in range(runs)], rate=10000, seconds=seconds)
            for name, cost in (("barrier", 1000), ("ring", 2000))]


class Verdicts(unittest.TestCase):
    OTHERS = {name: [900, 901, 902, 903, 904] for name in verdict.OF_FIGURE_87 if name != "polling"}

    def verdict(self, polling):
        checked = verdict.check(latencies(polling=polling, **self.OTHERS))
        return next(line for line in checked if "shortest" in line["the thesis"])

    def test_holds(self):
        self.assertEqual(self.verdict([10, 11, 12, 13, 14])["verdict"], "holds")

    def test_does_not_hold(self):
        line = self.verdict([5000, 5001, 5002, 5003, 5004])
        self.assertEqual(line["verdict"], "does not hold")
        self.assertIn("polling 5 µs", line["here"])

    def test_undecided_when_the_runs_disagree(self):
        self.assertEqual(self.verdict([10, 11, 12, 5000, 5001])["verdict"], "undecided")

    def test_undecided_when_a_run_has_few_latencies(self):
        rows = latencies(polling=[10, 11, 12, 13, 14], **self.OTHERS)
        ring = next(row for row in rows if row["variant"] == "ring")
        ring["repeats"][3]["latency_ns"]["count"] = 19
        line = next(line for line in verdict.check(rows) if "shortest" in line["the thesis"])
        self.assertEqual(line["verdict"], "undecided")
        self.assertIn("(runs too short: call of ring with 1: 19 of 20 latencies)", line["here"])

    def test_undecided_when_there_are_few_runs(self):
        line = self.verdict([10, 11, 12, 13])
        self.assertEqual(line["verdict"], "undecided")
        self.assertIn("call of polling with 1: 4 of 5 runs", line["here"])

    def test_a_high_quantile_needs_more(self):
        rows = [row_of("call", "ring", [{"latency_ns": {"p90": 5, "count": 99}}] * 5)]
        results = verdict.Results(rows)
        self.assertEqual(results.latency("ring", 1, "p90"), 5)
        self.assertEqual(results.short, ["call of ring with 1: 99 of 100 latencies"])

    def cost_verdict(self, **lengths):
        checked = verdict.check(costs(**lengths))
        return next(line for line in checked if line["the thesis"].endswith("less CPU time than rcu-sched"))

    def test_a_cost_needs_callbacks_and_grace_periods(self):
        self.assertEqual(self.cost_verdict(seconds=1)["verdict"], "holds")
        few = self.cost_verdict(seconds=1, count=100)
        self.assertEqual(few["verdict"], "undecided")
        self.assertIn("paced of barrier at 10,000/s: 60 of 100 callbacks", few["here"])
        slow = self.cost_verdict(seconds=0.5, ns=16e6)  # as of old: 18 periods of 16 ms
        self.assertEqual(slow["verdict"], "undecided")
        self.assertIn("18 of 20 grace periods", slow["here"])

    def test_an_idle_second_is_not_a_tenth(self):
        rows = [row_of("idle", name, [{"cpu_ns": cost + i} for i in range(5)], readers=0, seconds=0.1)
                for name, cost in (("barrier", 1000), ("xrcu", 2000), ("krcud", 3000))]
        line = next(line for line in verdict.check(rows) if "idle system" in line["the thesis"])
        self.assertEqual(line["verdict"], "undecided")
        for row in rows:
            row["seconds"] = 1
        line = next(line for line in verdict.check(rows) if "idle system" in line["the thesis"])
        self.assertEqual(line["verdict"], "holds")

    def test_not_measured(self):
        rows = latencies(polling=[10])
        self.assertEqual({line["verdict"] for line in verdict.check(rows) if line["subject"] != "Table 8.1"},
                         {"not measured"})

    def test_a_failed_run_is_no_figure(self):
        rows = latencies(polling=[10])
        rows[0]["repeats"].insert(0, {"failed": "it took longer"})
        self.assertEqual(verdict.Results(rows).latency("polling", 1), 10)


class Sources(unittest.TestCase):
    def test_every_historical_variant_has_its_files(self):
        said = subprocess.run([BUILD / "bin/prudence-variants", "--list"], check=True, capture_output=True, text=True).stdout
        variants, _ = said.split("\n\n")
        names = {line.split()[0]: "historical:" in line for line in variants.splitlines()}
        self.assertEqual({name for name, historical in names.items() if historical}, set(sources.FILES))
        self.assertEqual(set(sources.IDLE), set(names) - {"none"})

    def test_each_source_is_counted_once(self):
        """A file of its own for each variant, and no file that is not counted: induced.c once held taskq as well, which
        so had the lines of both."""
        own = [first for first, _ in sources.FILES.values()]
        self.assertEqual(len(own), len(set(own)))
        named = {*own, *(name for _, shared in sources.FILES.values() for name in shared)}
        self.assertEqual({path.name for path in (ROOT / sources.FOLDER).glob("*.c")}, named | sources.OTHERS)
        self.assertFalse(named & sources.OTHERS)
        for variant, (first, _) in sources.FILES.items():
            text = (ROOT / sources.FOLDER / first).read_text()
            self.assertEqual(text.count("const struct variant variant_"), 1, first)
            self.assertIn(f'.name = "{variant}"', text)

    def test_shared_sources_are_those_that_are_included(self):
        for variant, (first, shared) in sources.FILES.items():
            text = (ROOT / sources.FOLDER / first).read_text()
            for name in ("runs", "batches", "daemons"):
                self.assertEqual(f'#include "{name}.h"' in text, f"{name}.c" in shared, variant)

    def test_comments_are_no_lines(self):
        own, whole = sources.lines("krcud")
        text = (ROOT / sources.FOLDER / "krcud.c").read_text()
        self.assertLess(own, len(text.splitlines()))
        self.assertGreater(whole, own)


class Command(unittest.TestCase):
    @unittest.skipUnless(os.environ.get("PRUDENCE_MODELS") == "deep", "make test-long runs this")
    def test_a_short_run_and_its_page(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "variants.json"
            subprocess.run([BUILD / "bin/prudence-variants", "--variant", "ring,k42,none", "--seconds", "0.02", "--json", file,
                            "--load", "switch,preempt,idle,synchronize,call,paced", "--rate", "10000"],
                           check=True, capture_output=True)
            docs = Path(folder) / "docs"
            (docs / "images").mkdir(parents=True)
            (docs / "results/data").mkdir(parents=True)
            said = subprocess.run([REPORT, file, "--into", docs], check=True, capture_output=True, text=True).stdout
            page = file.with_suffix(".html").read_text()
            written, kept = ({path.stem: path.read_text() for path in place.glob("*.csv")} for place in (file.with_suffix(""), docs / "results/data/variants"))
            self.assertTrue((docs / "images/variants.png").exists())
        self.assertIn("Of 21 findings", said)
        self.assertEqual(written, kept)
        self.assertEqual(set(kept), {"findings", "complexity", "idle", "grace-periods", "cost"})
        self.assertRegex(kept["findings"], r"subject,the thesis,verdict,rounds,here\nTable 8.1,rcu-taskq is the smallest,[a-z ]+,\d+,")
        self.assertIn("subject,own lines,", kept["complexity"])
        self.assertIn("Latency by load", page)
        self.assertIn("10,000/s", page)

    def test_a_run_goes_on_until_it_has_its_samples(self):
        """`barrier` takes two ticks of a millisecond for each callback, so ten milliseconds have five of them at most."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "variants.json"
            subprocess.run([BUILD / "bin/prudence-variants", "--variant", "barrier", "--load", "call,synchronize", "--readers", "0",
                            "--seconds", "0.01", "--samples", "30", "--json", file], check=True, capture_output=True)
            for row in json.loads(file.read_text())["rows"]:
                self.assertGreaterEqual(row["repeats"][0]["latency_ns"]["count"], 30, row["load"])

    def test_refuses(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "other.json"
            file.write_text(json.dumps({"program": "prudence-growth", "rows": [1]}))
            done = subprocess.run([REPORT, file], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("there is a report of", done.stderr)


if __name__ == "__main__":
    unittest.main()
