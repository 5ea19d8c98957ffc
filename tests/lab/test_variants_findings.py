#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each finding on ways to detect grace periods, with its own parameters: it holds for ways that behave as the thesis says, and does
not hold when they are changed in the figures of this finding alone. So no row of the table can be negated, nor read the figures of
another, without a failure here."""

import sys
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "lab/reproduce")]
from experiments.variants import verdict  # noqa: E402 (the path comes first)

ALL = (*verdict.INDUCING, *verdict.OBSERVING)
RATES = (1000, 10000, 100000, 1000000)
MS = 1_000_000
# Longer latency means less overhead, in this order.
LATENCY = dict(zip(("polling", "polling-percpu", "k42", "preempt", "xrcu", "krcud", "barrier", "ring", "batch", "taskq"),
                   (0.2, 0.3, 1, 2, 4, 5, 6, 8, 0.1, 0.15)))


def ways_as_the_thesis_says():
    """(load, variant, workers, readers, rate, a figure's name): its value, or {quantile: ns}."""
    found = {}
    for name, ns in {"none": 10, "taskq": 10, "ring": 12, "polling": 20, "barrier": 21, "xrcu": 22, "krcud": 23, "preempt": 30}.items():
        found["switch", name, 1, 0, 0, "ns"] = ns
    found["preempt", "preempt", 1, 0, 0, "ns"] = 200
    for name, ms in {"barrier": 1, "xrcu": 2, "krcud": 3}.items():
        found["idle", name, 1, 0, 0, "cpu_ns"] = ms * MS
    for name in verdict.OF_FIGURE_87:
        for readers in (0, 1, 4):
            grows = {"taskq": 10, "ring": 300}.get(name, 1.5)
            ns = LATENCY[name] * MS * (1 if name == "polling" else 2) * (1 if readers == 0 else grows)
            found["call", name, 1, readers, 0, "latency_ns"] = {"p50": ns, "p90": 1.2 * ns, "count": 1000}
    for name in ALL:
        for rate in RATES:
            shared = {1000: 1, 10000: 0.4, 100000: 0.1, 1000000: 0.05}[rate]
            cost = 10_000 * (0.5 if name == "barrier" else 1 / LATENCY[name] ** 0.1 * (1 if name in verdict.OBSERVING else 1.2)) * shared
            found["paced", name, 1, 1, rate, "cost_ns"] = cost
            found["paced", name, 1, 1, rate, "latency_ns"] = {"p50": LATENCY[name] * MS, "count": 1000}
    for name, ns in {"polling": 900, "polling-percpu": 300}.items():
        found["storm", name, 2, 0, 0, "ns"] = ns
    return found


def rows_of(ways):
    rows = {}
    for (load, name, workers, readers, rate, figure), value in ways.items():
        key = load, name, workers, readers, rate
        row = rows.setdefault(key, {"load": load, "variant": name, "workers": workers, "readers": readers, "rate": rate, "batch": 0,
                                    "seconds": 10, "repeats": [{"calls_per_second": 1000, "latency_ns": {"p50": 1, "count": 1000}}]})
        row["repeats"][0][figure] = value
    for row in rows.values():
        row["repeats"] *= verdict.RUNS
    return list(rows.values())


def times(factor, load, *names, figure="ns", workers=1, readers=0, rate=0):
    """Multiplies a figure of these ways; a latency in all quantiles."""
    def change(ways):
        for name in names:
            key = load, name, workers, readers, rate, figure
            value = ways[key]
            ways[key] = ({quantile: ns * (factor if quantile != "count" else 1) for quantile, ns in value.items()}
                         if isinstance(value, dict) else value * factor)
    return change


def latency(factor, name, readers):
    return times(factor, "call", name, figure="latency_ns", readers=readers)


def cost(factor, *names, rate=10000):
    return times(factor, "paced", *names, figure="cost_ns", readers=1, rate=rate)


def paced_latency(factor, *names):
    return times(factor, "paced", *names, figure="latency_ns", readers=1, rate=10000)


def all_of(*changes):
    def change(ways):
        for one in changes:
            one(ways)
    return change


LINES = dict(zip(verdict.OF_TABLE_82, (50, 100, 110, 120, 130, 140, 150)))
# Part of the claim, and the change after which it does not hold.
CHANGES = [
    ("taskq costs nothing when idle", times(1.3, "switch", "taskq")),
    ("one local increment a switch", times(1.3, "switch", "krcud")),
    ("one global read a switch", times(3, "switch", "ring")),
    ("costs something at each preemption", times(0.3, "preempt", "preempt")),
    ("lowest overhead on an idle system", times(0.4, "idle", "xrcu", figure="cpu_ns")),
    ("by far the shortest latency", latency(0.01, "krcud", 1)),
    ("below 250 µs idle and 10 ms loaded", latency(100, "polling", 4)),
    ("larger latencies, well bounded", latency(1.4, "xrcu", 4)),
    ("takes seconds", all_of(latency(0.1, "ring", 1), latency(0.1, "ring", 4))),
    ("latency grows with the load", latency(0.15, "taskq", 4)),
    ("longer latency means less overhead", all_of(paced_latency(0.001, "ring", "krcud", "xrcu", "preempt", "k42"),
                                                  paced_latency(100, "batch", "taskq", "polling"))),
    ("frequent calls share the cost", cost(50, "k42", rate=100000)),
    ("gain less and less", cost(0.2, "xrcu", rate=1000000)),
    ("hardly sensitive", cost(3, "k42", rate=1000)),
    ("queues per CPU greatly reduce", times(2.5, "storm", "polling-percpu", workers=2)),
    ("less CPU time than rcu-poll with", cost(0.4, "polling-percpu")),
    ("less CPU time than rcu-sched", cost(0.5, "ring")),
    ("buys its latency with overhead", paced_latency(30, "polling-percpu")),
    ("more efficient than inducing", cost(0.1, "batch")),
    ("rcu-ltimer is the most efficient", cost(2.1, "barrier")),
]


class EachRow(unittest.TestCase):
    def setUp(self):
        self.known = [claim for _, claim, _ in verdict.FINDINGS]

    def verdict(self, claim, change=None):
        ways = ways_as_the_thesis_says()
        if change:
            change(ways)
        row = next(row for row in verdict.FINDINGS if row[1] == claim)
        with mock.patch.object(verdict, "FINDINGS", [row]), mock.patch.object(verdict, "DRAWS", 1):
            return verdict.check(rows_of(ways))[0]["verdict"]

    def test_each_finding_has_one_change(self):
        found = [[claim for claim in self.known if words in claim] for words, _ in CHANGES]
        self.assertEqual([len(one) for one in found], [1] * len(CHANGES), found)
        self.assertEqual(sorted([claim for (claim,) in found] + ["rcu-taskq is the smallest"]), sorted(self.known))

    def test_each_holds_and_then_does_not(self):
        for words, change in CHANGES:
            claim = next(claim for claim in self.known if words in claim)
            with self.subTest(claim):
                self.assertEqual(self.verdict(claim), "holds")
                self.assertEqual(self.verdict(claim, change), "does not hold")

    def test_the_smallest_source(self):
        for smallest, said in (("taskq", "holds"), ("ring", "does not hold")):
            lines = LINES | {smallest: 10}
            with mock.patch.object(verdict.sources, "lines", lambda name: (0, lines[name])):
                self.assertEqual(self.verdict("rcu-taskq is the smallest"), said)


if __name__ == "__main__":
    unittest.main()
