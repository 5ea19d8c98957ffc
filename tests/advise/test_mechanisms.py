#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Costs of mechanisms: queueing against known results, agreement with the thesis at low contention, monotonicity."""

import math
import sys
import unittest
from dataclasses import replace
from pathlib import Path

import numpy

try:
    from hypothesis import HealthCheck, given, settings, strategies
except ImportError:  # Debian: python3-hypothesis
    print("there is no hypothesis (python3-hypothesis): skipped")
    sys.exit(77)

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "programs/advise"), str(Path(__file__).parent)]
import invented_machine  # noqa: E402 (the path comes first)
from prudence_advise import advice, machine, mechanisms, model  # noqa: E402
from prudence_advise.mechanisms import BY_NAME, Cost, Load, Station  # noqa: E402

HERE = machine.Machine(invented_machine.document())
QUIET = Load(threads=8, updates=0.02, between=1e9)
BUSY = Load(threads=8, updates=0.02, between=0.0, buckets=16)
quick = settings(max_examples=40, deadline=None, database=None, derandomize=True,
                 suppress_health_check=[HealthCheck.too_slow])  # no test depends on the time it takes


def rate(name, load, on=HERE):
    return advice.value(mechanisms.evaluate(BY_NAME[name], on, load)[0])


def overhead(name, load):
    """Returns the cost of a section beyond the work."""
    cycle = mechanisms.active_cpus(HERE, load) / rate(name, load)
    return cycle - load.between - load.reading - load.updates * load.update


class Queues(unittest.TestCase):
    def test_one_station_is_the_machine_repairman(self):
        """Erlang's formula for a finite source: the probability that the server is idle."""
        think, service = 100.0, 20.0
        for customers in (1, 2, 5, 20):
            terms = [math.factorial(customers) / math.factorial(customers - k) * (service / think) ** k
                     for k in range(customers + 1)]
            busy = 1 - terms[0] / sum(terms)
            found, _ = mechanisms.solve(Cost(0.0, [Station(service)]), 0.0, customers, think)
            self.assertAlmostEqual(found, busy / service, 12)

    def test_one_customer_never_waits(self):
        for one in mechanisms.MECHANISMS:
            _, waiting, _ = mechanisms.evaluate(one, HERE, replace(BUSY, threads=1))
            self.assertEqual(advice.value(waiting), 0, one.name)

    def test_many_customers_are_bound_by_the_slowest_station(self):
        found, _ = mechanisms.solve(Cost(10.0, [Station(20.0), Station(50.0)]), 0.0, 500, 100.0)
        self.assertAlmostEqual(found, 1 / 50, 6)

    def test_servers_share_the_demand(self):
        one, _ = mechanisms.solve(Cost(0.0, [Station(50.0)]), 0.0, 500, 100.0)
        ten, _ = mechanisms.solve(Cost(0.0, [Station(50.0, 10)]), 0.0, 500, 100.0)
        self.assertAlmostEqual(ten / one, 10, 0)

    def test_an_exclusive_part_bounds_the_rate(self):
        found, _ = mechanisms.solve(Cost(0.0, exclusive=100.0), 0.5, 500, 10.0)
        self.assertLessEqual(found, 1 / 50 + 1e-9)


class LowContention(unittest.TestCase):
    """If sections are far apart the costs are those of the thesis, with this machine's latencies."""

    def test_spinlock_is_7_1(self):
        t = model.Latencies(HERE["spinlock"][0] / 2, invented_machine.NEAR, invented_machine.FAR)
        # 7.1 counts a fast access in addition to a transfer only where the CPU had the line itself.
        self.assertAlmostEqual(overhead("spinlock", QUIET), model.spinlock(2, 4, t), delta=t.fast)

    def test_brlock_readers_are_7_6(self):
        t = model.Latencies(HERE["spinlock"][0] / 2, invented_machine.NEAR, invented_machine.FAR)
        for updates in (0.0, 0.001, 0.01):
            load = replace(QUIET, updates=updates)
            self.assertAlmostEqual(overhead("brlock", load), model.distributed(2, 4, updates, t),
                                   delta=0.5 + 150 * updates * 8)

    def test_rcu_readers_pay_their_section(self):
        self.assertAlmostEqual(overhead("rcu", replace(QUIET, updates=0.0)), 1.0, 3)

    def test_a_single_thread_moves_no_line(self):
        load = replace(QUIET, threads=1)
        self.assertAlmostEqual(overhead("spinlock", load), 6.0, 3)
        self.assertAlmostEqual(overhead("mutex", load), 12.0, 3)


class Sense(unittest.TestCase):
    def test_readers_without_updates(self):
        load = replace(BUSY, updates=0.0)
        self.assertGreater(rate("rcu", load), 10 * rate("rwlock", load))
        self.assertGreater(rate("rcu", load), rate("brlock", load))
        self.assertGreater(rate("brlock", load), rate("spinlock", load))

    def test_updates_alone_are_no_case_for_rcu(self):
        load = replace(BUSY, updates=1.0)
        self.assertLess(rate("rcu", load), rate("buckets", load))

    def test_retries_of_a_seqlock(self):
        few, many = (replace(BUSY, updates=share, lookup=5000.0) for share in (0.001, 0.3))
        self.assertGreater(rate("seqlock", few) / rate("seqlock", many), 3)

    def test_threads_beyond_the_cpus_add_nothing(self):
        load = replace(BUSY, updates=0.0)
        self.assertAlmostEqual(rate("rcu", load), rate("rcu", replace(load, threads=1000)), delta=0.1 * rate("rcu", load))

    def test_nothing_is_faster_than_no_synchronization(self):
        for updates in (0.0, 0.1, 1.0):
            load = replace(BUSY, updates=updates)
            ideal = mechanisms.evaluate(mechanisms.Mechanism("none", "", mechanisms.none, 0), HERE, load)[0]
            for one in mechanisms.MECHANISMS:
                self.assertLessEqual(rate(one.name, load), advice.value(ideal) * (1 + 1e-9), one.name)

    def test_shares_as_an_array_are_the_same_one_by_one(self):
        shares = numpy.array([[0.001], [0.1], [0.9]])
        for one in mechanisms.MECHANISMS:
            rates = numpy.broadcast_to(mechanisms.evaluate(one, HERE, replace(BUSY, updates=shares))[0], (3, 1))
            for row, share in enumerate(shares[:, 0]):
                self.assertAlmostEqual(rates[row, 0] / rate(one.name, replace(BUSY, updates=float(share))), 1, 9)

    def test_breakeven(self):
        shares = numpy.array([0.01, 0.1, 1.0])
        first = numpy.array([[2.0, 1.0, 2.0], [2.0, 1.0, 1.5], [2.0, 1.0, 0.5]])
        found = mechanisms.breakeven(shares, first, numpy.ones((3, 3)))
        self.assertEqual(list(found[:2]), [1.0, 0.0])
        self.assertTrue(0.1 < found[2] < 1)

    def test_memory_follows_the_updates(self):
        slow = mechanisms.evaluate(BY_NAME["rcu"], HERE, replace(BUSY, lookup=1e6, updates=0.0001))[2].memory
        fast = mechanisms.evaluate(BY_NAME["rcu"], HERE, replace(BUSY, size=4096, updates=0.5, lookup=1e6,
                                                                latent_limit=1 << 20))[2].memory
        self.assertLess(advice.value(slow), 4 << 20)
        self.assertLessEqual(advice.value(fast), (1 << 20) + 64 * 8)

    def test_draws_lie_around_the_median(self):
        drawn = machine.Machine(invented_machine.document(share=0.1), draws=4000)["mutex"]
        self.assertEqual(drawn[0], 12)
        low, middle, high = numpy.quantile(drawn[1:], (0.25, 0.5, 0.75))
        self.assertAlmostEqual(middle, 12, delta=0.2)
        self.assertAlmostEqual(high - low, 2.4, delta=0.2)

    def test_lines_of_two_nodes(self):
        # 7.1 without its accesses of t_f: 3 of 8 CPUs are on the node, 4 on the other one.
        self.assertAlmostEqual(HERE.line(8)[0], (3 * 60 + 4 * 180) / 8)
        self.assertEqual(HERE.line(1)[0], 0)

    def test_a_machine_with_one_node_says_what_it_assumes_of_others(self):
        one = machine.Machine(invented_machine.document(4, 1), cpus=64, nodes=4)
        self.assertEqual(len(one.assumed), 2)
        self.assertAlmostEqual(one.far[0], 180)
        self.assertAlmostEqual(machine.Machine(invented_machine.document(4, 1), cpus=64, nodes=4, far=500).far[0], 500)

    def test_a_machine_with_one_cpu_says_so(self):
        self.assertIn("one CPU", " ".join(machine.Machine(invented_machine.document(1, 1)).assumed))


class Properties(unittest.TestCase):
    loads = strategies.builds(Load, threads=strategies.integers(1, 64), updates=strategies.floats(0, 1),
                              operations=strategies.integers(1, 20), lookup=strategies.floats(1, 1e5),
                              update=strategies.floats(0, 1e4), between=strategies.floats(0, 1e6),
                              live=strategies.just(1000.0), size=strategies.integers(1, 1 << 20),
                              buckets=strategies.integers(1, 1 << 20))

    @quick
    @given(loads)
    def test_all_are_finite_and_slower_with_more_work(self, load):
        more = replace(load, lookup=load.lookup * 2)
        for one in mechanisms.MECHANISMS:
            now = rate(one.name, load)
            self.assertTrue(0 < now < math.inf, one.name)
            if one.name not in ("rwlock", "brlock"):  # readers that stay longer lose its line less often before they unlock
                self.assertLessEqual(rate(one.name, more), now * (1 + 1e-4), one.name)

    @quick
    @given(loads, strategies.floats(0, 1))
    def test_locks_never_gain_by_updates(self, load, other):
        low, high = sorted((load.updates, other))
        for name in ("spinlock", "mutex"):
            self.assertGreaterEqual(rate(name, replace(load, updates=low)) * (1 + 1e-9),
                                    rate(name, replace(load, updates=high)))


if __name__ == "__main__":
    unittest.main()
