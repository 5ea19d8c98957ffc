#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each finding of the thesis, with its own parameters: it holds for a machine that behaves as the thesis says, and does not hold
when that machine is changed in the figures of this finding alone. So no row of the table can be negated, nor read the figures of
another, without a failure here."""

import copy
import sys
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "lab/reproduce")]
from experiments.acdc import verdict  # noqa: E402 (the path comes first)

LAZY, EAGER, MALLOC, SPEED = verdict.LAZY, verdict.EAGER, verdict.MALLOC, verdict.SPEED
RUNS = 3
THREADS, QUANTA = (1, 2, 4, 12), tuple(1 << power for power in (12, 14, 16, 18, 20, 21, 24))


def linear(first):
    """Proportional to the point, from `first` on."""
    return lambda points: [first * point / points[0] for point in points]


def same(value):
    return lambda points: [value] * len(points)


# (experiment, subject, response): the values at the experiment's points, or a function of the points. Eager refreshes are faster
# with any number of threads; the quantum is where a refresh of a large heap takes longer.
MACHINE = {
    ("threads", LAZY, "refresh"): same(200), ("threads", EAGER, "refresh"): same(100),
    ("threads", LAZY, "tick"): same(300), ("threads", EAGER, "tick"): same(9000),
    ("threads", LAZY, "global_refresh"): [100, 150, 180, 300], ("threads", EAGER, "global_refresh"): [80, 140, 200, 400],
    ("threads", LAZY, "global_tick"): [100, 300, 350, 400], ("threads", EAGER, "global_tick"): [9000, 7000, 6000, 5000],
    ("threads", LAZY, "held_bytes"): linear(2e6), ("threads", EAGER, "held_bytes"): linear(1e6),
    ("quantum", LAZY, "refresh"): [250, 250, 250, 300, 400, 450, 500],
    ("quantum", EAGER, "refresh"): [100, 100, 100, 130, 170, 200, 220],
    ("quantum", LAZY, "global_refresh"): [250, 250, 255, 260, 265, 270, 300],
    ("quantum", LAZY, "tick"): [100, 150, 200, 400, 600, 700, 900],
    ("quantum", LAZY, "global_tick"): [300, 300, 300, 500, 590, 600, 600],
    ("quantum", LAZY, "held_bytes"): linear(1e5),
    ("quantum", EAGER, "tick"): linear(1e3), ("quantum", EAGER, "global_tick"): linear(1e3),
    ("throughput-quantum", MALLOC, SPEED): same(1e9), ("throughput-quantum", LAZY, SPEED): same(9e8),
    ("throughput-quantum", EAGER, SPEED): same(9.5e8), ("throughput-quantum", "persistent+other", SPEED): same(2e9),
    ("throughput-threads", MALLOC, "seconds"): linear(1), ("throughput-threads", MALLOC, SPEED): same(1e9),
    ("throughput-threads", LAZY, SPEED): same(8e8), ("throughput-threads", EAGER, SPEED): same(8e8),
    ("trace", LAZY, "held_bytes"): [2.2e6], ("trace", EAGER, "held_bytes"): [1.1e6], ("trace", MALLOC, "held_bytes"): [1e6],
}
SHARES = {
    "refresh": {"D": 0.65, "B": 0.15, "A": 0.02, "E": 0.03},
    "global_refresh": {"A": 0.45, "D": 0.2},
    "tick": {"D": 0.4, "E": 0.2, "DE": 0.15},
    "global_tick": {"D": 0.4, "A": 0.2, "AD": 0.15},
}


def curve(experiment, subject, response, factors):
    """Multiplies the values at some of the experiment's points, by their place."""
    def change(machine, _):
        for place, factor in factors.items():
            machine[experiment, subject, response][place] *= factor
    return change


def shares(response, **to):
    return lambda _, variation: variation[response].update(to)


# A part of each finding's words, and the change after which it does not hold. The third is a change that must come first, where two
# findings exclude each other.
CHANGES = [
    ("matters most to refresh: 65 %", shares("refresh", B=0.7)),
    ("The size of a descriptor page (B) matters to refresh", shares("refresh", B=0.09)),
    ("The number of threads (A) does not: refresh scales", shares("refresh", A=0.11)),
    ("Nor does the time threshold (E)", shares("refresh", E=0.11)),
    ("Threads (A) explain more than 40 % of global refresh", shares("global_refresh", A=0.09)),
    ("The collection strategy (D) matters most to tick", shares("tick", E=0.5)),
    ("matters to tick.", shares("tick", DE=0.09)),
    ("matters most to global tick", shares("global_tick", A=0.5)),
    ("Threads (A), alone and with the strategy (AD)", shares("global_tick", AD=0.09)),
    ("Lazy: refresh takes the same time for any", curve("threads", LAZY, "refresh", {-1: 1.3})),
    ("Lazy: so does tick", curve("threads", LAZY, "tick", {-1: 1.3})),
    ("Lazy: global refresh takes longer with more threads", curve("threads", LAZY, "global_refresh", {-1: 0.4})),
    ("Lazy: so does global tick", curve("threads", LAZY, "global_tick", {-1: 0.3})),
    ("the largest step of global tick", curve("threads", LAZY, "global_tick", {2: 3})),
    ("Eager: refresh is faster than lazy", curve("threads", EAGER, "refresh", {0: 5, -1: 5})),
    ("Eager: global refresh is faster than lazy with one", curve("threads", EAGER, "global_refresh", {0: 1.3})),
    ("Lazy: tick is faster than eager", curve("threads", EAGER, "tick", {0: 0.03, 1: 0.03, 2: 0.03, -1: 0.03})),
    ("Eager: tick takes the same time for any", curve("threads", EAGER, "tick", {-1: 1.3})),
    ("Eager: global tick gets faster", curve("threads", EAGER, "global_tick", {-1: 1.7})),
    ("Lazy: the heap is proportional to the threads", curve("threads", LAZY, "held_bytes", {-1: 3})),
    ("Eager: so it is", curve("threads", EAGER, "held_bytes", {2: 0.2, -1: 0.2})),
    ("Eager needs a smaller heap", curve("threads", LAZY, "held_bytes", {1: 0.45})),
    ("refresh grows with the heap, from 250", curve("quantum", LAZY, "refresh", {0: 1.2, -1: 0.73})),
    ("up to 2^16, and longer after", curve("quantum", LAZY, "refresh", {1: 1.3})),
    ("global refresh grows less than refresh", curve("quantum", LAZY, "global_refresh", {-1: 2})),
    ("tick grows more than refresh", curve("quantum", LAZY, "tick", {0: 6})),
    ("global tick is faster than tick with large heaps", curve("quantum", LAZY, "global_tick", {5: 1.2})),
    ("The heap is proportional to the time threshold", curve("quantum", LAZY, "held_bytes", {-1: 0.01, 5: 0.01})),
    ("Eager: refresh is about twice as fast", curve("quantum", EAGER, "refresh", dict.fromkeys(range(7), 2))),
    ("Eager: tick is proportional to the heap", curve("quantum", EAGER, "tick", {-1: 0.01, 5: 0.01})),
    ("Eager: so is global tick", curve("quantum", EAGER, "global_tick", {-1: 0.01, 5: 0.01})),
    ("nearly the same for malloc and short-term memory", curve("throughput-quantum", MALLOC, SPEED, {-1: 1.3})),
    ("Lazy and eager have the same throughput", curve("throughput-quantum", EAGER, SPEED, {-1: 1.3})),
    ("Open there: does the allocator matter?", curve("throughput-quantum", "persistent+other", SPEED, dict.fromkeys(range(7), 0.53))),
    ("Run time is proportional to the threads", curve("throughput-threads", MALLOC, "seconds", {-1: 4})),
    ("With fewer than four threads malloc", curve("throughput-threads", MALLOC, SPEED, {1: 0.7})),
    ("Lazy and eager do not differ", curve("throughput-threads", EAGER, SPEED, {-1: 1.3})),
    ("Eager needs slightly more than malloc", curve("trace", MALLOC, "held_bytes", {0: 1.2})),
    ("Lazy needs about twice as much as eager", curve("trace", LAZY, "held_bytes", {0: 0.7})),
    ("Our aim instead: lazy within 1.25", curve("trace", LAZY, "held_bytes", {0: 1.7}), curve("trace", LAZY, "held_bytes", {0: 0.6})),
]


def points_of(experiment):
    return {"threads": THREADS, "throughput-threads": THREADS, "trace": ("all",)}.get(experiment, QUANTA)


def machine_as_the_thesis_says():
    values = {key: list(of(points_of(key[0])) if callable(of) else of) for key, of in MACHINE.items()}
    return values, copy.deepcopy(SHARES)


def document(machine, variation):
    rows = [{"experiment": experiment, "subject": subject, "kind": subject.partition("+")[0], "point": point,
             "responses": {response: {"mean": value}}, "repeats": [{response: value, "settled_held_bytes": value}] * RUNS}
            for (experiment, subject, response), values in machine.items() for point, value in zip(points_of(experiment), values)]
    rows.append({"experiment": "factorial", "subject": LAZY, "point": "A+", "responses": {}, "repeats": [{}] * RUNS})
    return {"rows": rows, "host": {"cpus": 2}, "variation": {"factorial": {LAZY: {
        response: {**dict.fromkeys(("A", "B", "D", "E", "AD", "DE"), 0), **of, "error": 0.1} for response, of in variation.items()}}}}


class EachRow(unittest.TestCase):
    def setUp(self):
        draws = mock.patch.object(verdict, "DRAWS", 1)  # runs are equal
        draws.start()
        self.addCleanup(draws.stop)
        self.known = [thesis for findings in verdict.FINDINGS.values() for _, thesis, _ in findings]

    def holds(self, thesis, *changes):
        machine, variation = machine_as_the_thesis_says()
        for change in changes:
            change(machine, variation)
        return next(one["holds"] for one in verdict.check_all(document(machine, variation)) if one["thesis"] == thesis)

    def test_each_finding_has_one_change(self):
        found = [[thesis for thesis in self.known if words in thesis] for words, *_ in CHANGES]
        self.assertEqual([len(one) for one in found], [1] * len(CHANGES), found)
        self.assertEqual(sorted(thesis for (thesis,) in found), sorted(self.known))

    def test_each_holds_and_then_does_not(self):
        for words, change, *first in CHANGES:
            thesis = next(thesis for thesis in self.known if words in thesis)
            with self.subTest(thesis):
                self.assertIs(self.holds(thesis, *first), True)
                self.assertIs(self.holds(thesis, *first, change), False)


if __name__ == "__main__":
    unittest.main()
