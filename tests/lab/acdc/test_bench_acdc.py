#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 45
"""bench-acdc: the statistics against a textbook's figures, the findings, the choice of the next measurement, runs that
are interrupted and gone on with, a short run and the page."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
BENCH, REPORT = ROOT / "lab/reproduce/bench-acdc", ROOT / "lab/run/report"

sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "lab/reproduce")]
from measure import keep as kept, statistics  # noqa: E402 (the path comes first)
from experiments.acdc import keep, plan, run as measuring, verdict  # noqa: E402
from experiments.acdc.rounds import Measuring, Point  # noqa: E402

DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"  # make test-long


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
             "point": point, "responses": {response: {"mean": value}},
             "repeats": [{response: value}] * 3} for point, value in values.items()]


class Findings(unittest.TestCase):
    def result(self, rows, thesis):
        document = {"rows": rows, "variation": {}, "host": {"cpus": 2}}
        return next(one for one in verdict.check_all(document) if thesis in one["thesis"])

    def test_nothing_was_measured(self):
        document = {"rows": [], "variation": {}, "host": {"cpus": 2}}
        self.assertTrue(all(one["holds"] is None for one in verdict.check_all(document)))

    def test_constant(self):
        thesis = "Lazy: refresh takes the same time"
        rows = curve("threads", verdict.LAZY, "refresh", {1: 100, 2: 110, 4: 105})
        self.assertIs(self.result(rows, thesis)["holds"], True)
        rows = curve("threads", verdict.LAZY, "refresh", {1: 100, 2: 160, 4: 105})
        self.assertIs(self.result(rows, thesis)["holds"], False)

    def test_fewer_than_three_runs_decide_nothing(self):
        rows = curve("threads", verdict.LAZY, "refresh", {1: 100, 2: 160, 4: 105})
        rows[0]["repeats"] = rows[0]["repeats"][:2]
        found = self.result(rows, "Lazy: refresh takes the same time")
        self.assertEqual((found["holds"], found["verdict"], found["rounds"]), (None, "undecided", 2))
        self.assertIn("too few runs: 2 of 3", found["measured"])

    def test_largest_step(self):
        thesis = "largest step of global tick"
        for values, holds in (({1: 100, 2: 150, 4: 160, 12: 300}, True), # 140 for 8 threads are less than 50 for one
                              ({1: 100, 2: 110, 4: 160}, False), ({1: 100, 2: 101, 4: 101}, False), ({1: 100, 2: 150}, None)):
            found = self.result(curve("threads", verdict.LAZY, "global_tick", values), thesis)
            self.assertIs(found["holds"], holds, values)

    def test_eager_global_refresh(self):
        for ratios, holds in (({1: 0.8, 12: 1.3}, True), ({1: 0.8, 12: 0.9}, False), ({1: 1.1, 12: 1.3}, False), ({1: 0.8, 4: 1.3}, None)):
            rows = curve("threads", verdict.LAZY, "global_refresh", dict.fromkeys(ratios, 100))
            rows += curve("threads", verdict.EAGER, "global_refresh", {point: 100 * ratio for point, ratio in ratios.items()})
            self.assertIs(self.result(rows, "Eager: global refresh")["holds"], holds, ratios)

    def test_constant_until_a_point(self):
        def values(*of):
            return dict(zip((1 << 12, 1 << 14, 1 << 16, 1 << 20, 1 << 24), of))

        for curve_of, holds in ((values(100, 105, 100, 150, 200), True), (values(100, 105, 100, 104, 100), False),
                                (values(100, 150, 160, 200, 300), False), ({1 << 12: 100, 1 << 16: 100, 1 << 24: 300}, None)):
            found = self.result(curve("quantum", verdict.LAZY, "refresh", curve_of), "up to 2^16")
            self.assertIs(found["holds"], holds, curve_of)

    def test_one_grows_less_than_another(self):
        for global_refresh, holds in ((150, True), (250, False)):
            rows = curve("quantum", verdict.LAZY, "refresh", {4096: 100, 1 << 24: 200})
            rows += curve("quantum", verdict.LAZY, "global_refresh", {4096: 100, 1 << 24: global_refresh})
            self.assertIs(self.result(rows, "global refresh grows less")["holds"], holds)

    def test_global_tick_with_large_heaps(self):
        for values, holds in (({4096: 500, 1 << 21: 90, 1 << 24: 90}, True), ({4096: 50, 1 << 21: 110, 1 << 24: 90}, False), ({4096: 50}, None)):
            rows = curve("quantum", verdict.LAZY, "tick", dict.fromkeys(values, 100))
            rows += curve("quantum", verdict.LAZY, "global_tick", values)
            self.assertIs(self.result(rows, "global tick is faster than tick")["holds"], holds, values)

    def test_proportional(self):
        thesis = "Eager: tick is proportional to the heap"
        rows = curve("quantum", verdict.EAGER, "tick", {4096: 10, 8192: 20, 16384: 40})
        self.assertIs(self.result(rows, thesis)["holds"], True)
        rows = curve("quantum", verdict.EAGER, "tick", {4096: 10, 8192: 11, 16384: 12})
        self.assertIs(self.result(rows, thesis)["holds"], False)

    def test_same_throughput(self):
        rows = curve("throughput-quantum", verdict.LAZY, verdict.SPEED, {1: 100, 2: 100})
        rows += curve("throughput-quantum", verdict.EAGER, verdict.SPEED, {1: 110, 2: 70})
        self.assertIs(self.result(rows, "Lazy and eager have the same throughput")["holds"], False)

    def test_ratios_are_of_the_seeds_that_both_ran(self):
        rows = curve("throughput-threads", verdict.LAZY, verdict.SPEED, {1: 100})
        rows += curve("throughput-threads", verdict.EAGER, verdict.SPEED, {1: 200})
        rows[1]["repeats"] = [{verdict.SPEED: value} for value in (101, 101, 101, 900)]
        found = self.result(rows, "Lazy and eager do not differ")
        self.assertEqual((found["holds"], found["measured"][-12:]), (True, "1.01 to 1.01"))

    def test_what_does_not_hold_has_a_reason(self):
        said = {thesis for of_one in verdict.FINDINGS.values() for _, thesis, _ in of_one}
        self.assertLessEqual(set(verdict.REASONS), said)
        thesis = "Lazy: refresh takes the same time"
        rows = curve("threads", verdict.LAZY, "refresh", {1: 100, 2: 160, 4: 105})
        self.assertIn("24 cores", self.result(rows, thesis)["reason"])
        rows = curve("threads", verdict.LAZY, "refresh", {1: 100, 2: 110, 4: 105})
        self.assertIsNone(self.result(rows, thesis)["reason"])

    def test_too_wide_to_say(self):
        thesis = "Lazy: refresh takes the same time"
        rows = curve("threads", verdict.LAZY, "refresh", {1: 100, 2: 118})
        for row in rows: # means 1.18 apart: constant by the means, but who knows
            mean = row["responses"]["refresh"]["mean"]
            row["repeats"] = [{"refresh": mean * factor} for factor in (0.5, 0.8, 1.0, 1.2, 1.5)]
        found = self.result(rows, thesis)
        self.assertEqual((found["holds"], found["verdict"]), (None, "undecided"))
        self.assertIn("differ too much: it holds in ", found["measured"])
        for row in rows:
            mean = row["responses"]["refresh"]["mean"]
            row["repeats"] = [{"refresh": mean * factor} for factor in (0.99, 1.0, 1.01)]
        self.assertEqual(self.result(rows, thesis)["verdict"], "holds")

    def test_pairs_are_drawn_together(self):
        """Seeds differ by ten times, subjects by a tenth: their ratios say so."""
        rows = curve("throughput-quantum", verdict.LAZY, verdict.SPEED, {1: 370, 2: 370})
        rows += curve("throughput-quantum", verdict.EAGER, verdict.SPEED, {1: 407, 2: 407})
        for row, factor in zip(rows, (1, 1, 1.1, 1.1)):
            row["repeats"] = [{verdict.SPEED: value * factor} for value in (10, 100, 1000)]
        rows[0]["repeats"].append({verdict.SPEED: 5})
        self.assertEqual(self.result(rows, "Lazy and eager have the same throughput")["verdict"], "holds")

    def test_chance_decides_no_factorial_design(self):
        document = {"rows": [], "host": {"cpus": 2}, "variation": {"factorial": {verdict.LAZY: {
            "refresh": {"A": 0.01, "D": 0.3, "E": 0.04, "B": 0.05, "error": 0.6}}}}}
        first = verdict.check_all(document)[0]
        self.assertEqual((first["holds"], first["verdict"]), (None, "undecided"))
        self.assertIn("60% of the variation is between equal runs", first["measured"])

    def test_strongest(self):
        rows = [{"experiment": "factorial", "subject": verdict.LAZY, "point": "A+", "responses": {}, "repeats": [{}] * 3}]
        document = {"rows": rows, "host": {"cpus": 2}, "variation": {"factorial": {verdict.LAZY: {
            "refresh": {"A": 0.01, "D": 0.8, "E": 0.04, "B": 0.05, "error": 0.1}}}}}
        first = verdict.check_all(document)[0]
        self.assertEqual((first["figure"], first["holds"]), ("6.1", True))
        self.assertIn("D 80%", first["measured"])


class Design(unittest.TestCase):
    def test_factorial_points_are_all_combinations(self):
        for short in (True, False):
            by_name = {one.name: one for one in plan.experiments(short, 2)}
            self.assertEqual(len(by_name["factorial"].points), 32)
            self.assertEqual(len(by_name["factorial-malloc"].points), 8)
            options = by_name["factorial"].points["A+B-C-D+E-"]
            self.assertIn("--threads=2", options)
            self.assertIn("--max-liveness=10", options)
            self.assertIn("--collection=eager", options)
            self.assertEqual(by_name["factorial"].prudence_options["A+B-C-D+E-"],
                             "scm_expired=free")


def request(least=3, most=20, precision=0.1, replications=2):
    return types.SimpleNamespace(least=least, most=most, precision=precision,
                                 replications=replications)


def experiment(name="threads", work=1000, factors=()):
    return plan.Experiment(
        name, name, "", ("persistent",), ("allocate",), [f"--time-quantum={work}", "--duration=1"],
        "threads", {1: [], 2: ["--threads=2"]}, labels=dict.fromkeys(factors))


def point(name="x", of=None, at=1, **wanted):
    return Point(of or experiment(), types.SimpleNamespace(name=name, kind="persistent"), at,
                 request(**wanted))


class Laboratory:
    """Stands in for acdc and for time: a run of `name` takes `seconds[name]`, and its response goes
    `spread[name]` up and down about 100."""

    def __init__(self, points, seconds=None, spread=None, **options):
        self.now, self.order, self.seeds, self.saves = 0.0, [], [], 0
        self.seconds, self.spread = seconds or {}, spread or {}
        self.measuring = Measuring(points, self.run, self.save, types.SimpleNamespace(say=lambda _: None, passing=lambda _: None),
                                   clock=lambda: self.now, **options)

    def run(self, one):
        name, seed = one.subject.name, one.next_seed
        self.now += self.seconds.get(name, 1)
        self.order.append(name)
        self.seeds.append(seed)
        up = 1 if seed % 2 else -1
        one.add({"allocate": 100 + up * self.spread.get(name, 0)}, self.seconds.get(name, 1))

    def save(self):
        self.saves += 1

    def measure(self):
        return self.measuring.measure()


class PointOfAnExperiment(unittest.TestCase):
    def test_is_done_when_its_interval_is_within_the_aim(self):
        one = point(least=3, precision=0.1)
        for value, is_open in ((100, True), (101, True), (99, False)):
            one.add({"allocate": value}, 1)
            self.assertEqual(one.is_open(), is_open)
        self.assertTrue(one.is_within_aim())
        self.assertLess(one.need(), 1)

    def test_is_repeated_until_then_and_at_most_so_often(self):
        one = point(least=2, most=4)
        for value in (50, 150, 50):
            one.add({"allocate": value}, 1)
            self.assertTrue(one.is_open())
        one.add({"allocate": 150}, 1)
        self.assertFalse(one.is_open())
        self.assertFalse(one.is_within_aim())

    def test_need_is_half_the_interval_by_the_aim(self):
        one = point(precision=0.05)
        for value in (10, 12, 14):
            one.add({"allocate": value, "seconds": value ** 5}, 1)
        self.assertAlmostEqual(one.need(), 4.3027 * 2 / 3 ** 0.5 / 12 / 0.05, places=3)

    def test_replications_of_a_factorial_design_have_no_aim(self):
        one = point(of=experiment(factors="AB"), replications=2)
        one.add({"allocate": 1}, 1)
        self.assertTrue(one.is_open())
        one.add({"allocate": 100}, 1)
        self.assertTrue(one.is_within_aim())

    def test_forecast(self):
        """Twice as wide as allowed after 10 repeats: 40 are needed, 30 more."""
        one = point(most=50, least=5)
        self.assertEqual(one.repeats_left(), 5)
        for _ in range(10):
            one.add({"allocate": 1}, 1)
        one.known_need = 2.0
        self.assertEqual(one.repeats_left(), 30)
        one.known_need = 7.0
        self.assertEqual(one.repeats_left(), 40)
        one.known_need = 0.9
        self.assertEqual(one.repeats_left(), 0)

    def test_goes_on_from_its_row(self):
        one = point(least=3)
        one.add({"allocate": 100}, 2)
        again = point(least=3)
        again.take_from(json.loads(json.dumps(one.as_row())))
        self.assertEqual((again.next_seed, again.wall_seconds), (2, [2]))
        self.assertTrue(again.is_open())


class WhatIsMeasuredNext(unittest.TestCase):
    def test_all_have_the_least_before_any_has_more(self):
        laboratory = Laboratory([point(name) for name in "abc"], spread={"b": 20})
        self.assertEqual(laboratory.measure(), "finished")
        self.assertEqual("".join(laboratory.order)[:10], "abcabcabcb")

    def test_what_is_done_is_not_repeated(self):
        laboratory = Laboratory([point(name) for name in "abc"], spread={"b": 20})
        laboratory.measure()
        self.assertEqual(laboratory.order.count("a"), 3)
        self.assertGreater(laboratory.order.count("b"), 3)
        self.assertTrue(all(one.is_within_aim() for one in laboratory.measuring.points))

    def test_the_widest_comes_first(self):
        laboratory = Laboratory([point(name) for name in "abc"],
                                spread={"a": 20, "b": 90, "c": 60}, minutes=13 / 60)
        self.assertEqual(laboratory.measure(), "time is up")
        self.assertEqual("".join(laboratory.order)[9:], "bcbc")

    def test_each_repeat_has_the_next_seed(self):
        laboratory = Laboratory([point("a")], spread={"a": 20})
        laboratory.measure()
        self.assertEqual(laboratory.seeds, list(range(1, len(laboratory.seeds) + 1)))

    def test_no_run_is_begun_that_would_end_after_the_budget(self):
        laboratory = Laboratory([point("a"), point("slow", least=3)], minutes=1,
                                seconds={"a": 1, "slow": 25}, spread={"a": 90})
        self.assertEqual(laboratory.measure(), "time is up")
        self.assertEqual(laboratory.order.count("slow"), 2)
        self.assertLessEqual(laboratory.now, 60)

    def test_what_was_not_measured_is_forecast_by_its_work(self):
        one, other = point("a"), point("b", at=2)
        laboratory = Laboratory([one, other])
        laboratory.run(one)
        self.assertEqual(laboratory.measuring.seconds_a_run(other), 2)
        self.assertEqual(laboratory.measuring.seconds_wanted(), 2 * 1 + 3 * 2)
        self.assertEqual(laboratory.measuring.seconds_at_most(), 19 * 1 + 20 * 2)

    def test_each_experiment_is_tried_before_the_forecast(self):
        points = [point("a"), point("b"), point("c", of=experiment("quantum"))]
        laboratory = Laboratory(points)
        laboratory.measure()
        self.assertEqual("".join(laboratory.order)[:3], "acb")

    def test_results_are_saved_after_each_round_and_meanwhile(self):
        quick = Laboratory([point(name) for name in "abc"])
        quick.measure()
        self.assertEqual(quick.saves, 4)
        slow = Laboratory([point(name) for name in "abc"], seconds=dict.fromkeys("abc", 40))
        slow.measure()
        self.assertEqual(slow.saves, 4 + 9)

    def test_failed_is_not_tried_again(self):
        laboratory = Laboratory([point("a"), point("b")])
        laboratory.measuring.points[0].failed = "it died"
        self.assertEqual(laboratory.measure(), "finished")
        self.assertNotIn("a", laboratory.order)


class FileOfResults(unittest.TestCase):
    def settings(self, **other):
        return {"form": "full", "host's cpu": "one", "subjects": ["a", "b"], "file acdc": "1234",
                "experiment threads": {"options": []}, **other}

    def said(self, now):
        return list(keep.differences(self.settings(), now))

    def test_the_same(self):
        self.assertEqual(self.said(json.loads(json.dumps(self.settings()))), [])

    def test_each_difference_is_named(self):
        self.assertEqual(self.said(self.settings(form="short")), ["form: full, now short"])
        self.assertEqual(self.said(self.settings(subjects=["a"])), ["subjects: a b, now a"])
        self.assertEqual(self.said(self.settings(**{"file acdc": "99"})), ["file acdc: another build"])
        self.assertEqual(self.said(self.settings(**{"experiment threads": {"options": ["x"]}})),
                         ["experiment threads: other options"])
        self.assertEqual(self.said(self.settings(**{"environment's X": "1"})),
                         ["environment's X: none, now 1"])

    def test_written_whole_or_not_at_all(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "acdc.json")
            kept.write(path, {"scenario": "acdc", "rows": [1]})
            with self.assertRaises(TypeError):
                kept.write(path, {"scenario": "acdc", "rows": [object()]})
            self.assertEqual(keep.read(path)["rows"], [1])

    def test_others_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "acdc.json")
            self.assertIsNone(keep.read(path))
            for text in ("[]", '{"scenario": "malloc"}', '{"scenario": "ac'):
                path.write_text(text)
                with self.assertRaises(keep.Refused):
                    keep.read(path)
            with self.assertRaisesRegex(keep.Refused, "older bench-acdc"):
                keep.go_on(path, {"scenario": "acdc", "rows": []}, self.settings(), [])


class Interrupted(unittest.TestCase):
    OPTIONS = ("--short", "--least=40", "--most=41", "--experiment=throughput-threads",
               "--subject=none,persistent+glibc")

    def start_and_interrupt(self, result):
        """After the first results, as Control-C does."""
        process = subprocess.Popen([BENCH, *self.OPTIONS, "--json", result], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True)
        deadline = time.monotonic() + 100
        while not result.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)
        said, errors = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("6.11", said)
        self.assertIn("interrupted:", errors)
        return json.loads(result.read_text())

    @unittest.skipUnless(DEEP, "make test-long")
    def test_a_run_is_gone_on_with(self):
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder, "acdc.json")
            first = self.start_and_interrupt(result)
            self.assertEqual(first["ended"], "interrupted")
            self.assertGreater(first["points_open"], 0)
            self.check_refusals(result)
            done = run(BENCH, *self.OPTIONS, "--resume", "--minutes=0.01", "--json", result)
            self.assertEqual(done.returncode, 0, done.stderr)
            second = json.loads(result.read_text())
            self.assertEqual(second["ended"], "time is up")
            self.assertEqual(second["date"], first["date"])
            before, after = ([row["repeats"] for row in one["rows"]] for one in (first, second))
            self.assertGreater(sum(map(len, after)), sum(map(len, before)))
            for old, new in zip(before, after):
                self.assertEqual(new[:len(old)], old)
            self.check_page(result)

    def check_refusals(self, result):
        done = run(BENCH, *self.OPTIONS, "--json", result)
        self.assertEqual(done.returncode, 2)
        self.assertIn("has a run that is not finished", done.stderr)
        done = run(BENCH, *self.OPTIONS[:-1], "--subject=none", "--resume", "--json", result)
        self.assertEqual(done.returncode, 2)
        self.assertIn("subjects: none persistent+glibc, now none", done.stderr)

    def check_page(self, result):
        done = run(REPORT, result)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Not finished (time is up)", result.with_suffix(".html").read_text())


@unittest.skipUnless(DEEP, "make test-long")
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
        self.assertEqual(page.count("<svg"), len(document["experiments"]) + 1)  # the trace has histograms, too
        for text in ("Left out: nomalloc: gone &lt;", "not measured", "In numbers", "Lifetimes of objects (figure 5.1)",
                     "Sizes of objects (figure 5.2)"):
            self.assertIn(text, page)
        tables = {path.stem: path.read_text() for path in result.with_suffix("").glob("*.csv")}
        self.assertEqual(set(tables), {one["name"] for one in document["experiments"]} | {"findings"})
        self.assertIn("\npersistent+glibc,", tables["threads"])
        self.assertIn("\n6.12,", tables["findings"])

    def test_refused(self):
        for text, *options in (("unknown experiment 'x'", "--experiment=x"),
                               ("unknown subject 'x'", "--subject=x"),
                               ("--precision: '0' is not a number from", "--precision=0"),
                               ("--least 9 is more than --most 3", "--least=9", "--most=3"),
                               ("--minutes: '0' is not a number from", "--minutes=0"),
                               ("--resume needs --json", "--resume"),
                               ("--json: '/none/x' cannot be written", "--json=/none/x")):
            said = io.StringIO()
            with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as ended:
                measuring.main(options, BUILD)
            self.assertEqual(ended.exception.code, 2)
            self.assertIn(text, said.getvalue())
        done = run(REPORT, ROOT / "CMakePresets.json")
        self.assertIn("there is a report of", done.stderr)
        done = run(REPORT, ROOT / "LICENSE")
        self.assertEqual(done.returncode, 2)
        self.assertIn("LICENSE: FILE needs an ending", done.stderr)

    def test_list(self):
        done = run(BENCH, "--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in ("factorial-malloc", "6.12", "persistent+glibc", "short-term-lazy"):
            self.assertIn(text, done.stdout)


if __name__ == "__main__":
    unittest.main()
