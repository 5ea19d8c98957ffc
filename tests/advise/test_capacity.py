#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (what the advisor makes of numbers)
"""No mechanism outruns physics: rates and memory of the model below bounds that are computed here without its queues.

Each bound is the time that is serial in a mechanism, taken from the load and from the machine's costs. The loads go from one to 256 CPUs,
and to sixteen times as many threads. PRUDENCE_MODELS=deep (make test-long) tries ten times as many.
"""

import math
import os
import sys
import unittest
from dataclasses import replace
from pathlib import Path

try:
    from hypothesis import HealthCheck, given, settings, strategies
except ImportError:  # Debian: python3-hypothesis
    print("there is no hypothesis (python3-hypothesis): skipped")
    sys.exit(77)

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "programs/advise"), str(Path(__file__).parent)]
import invented_machine  # noqa: E402 (the path comes first)
from prudence_advise import advice, hashes, machine, mechanisms  # noqa: E402
from prudence_advise.mechanisms import BY_NAME, Load  # noqa: E402

DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"
CPUS = (1, 2, 3, 4, 8, 16, 32, 64, 128, 256)
FEW = CPUS if DEEP else (1, 2, 8, 64)
BACK_TO_BACK = Load(threads=1, updates=0.02, between=0.0, buckets=16)
ROUNDING = 1 + 1e-9
examples = settings(max_examples=400 if DEEP else 25, deadline=None, database=None, derandomize=True,
                    suppress_health_check=[HealthCheck.too_slow])  # no test depends on the time it takes


def machine_of(cpus):
    """The invented one with this many CPUs, and with the futex calls of a contended mutex: 900 ns for each that finds it taken."""
    document = invented_machine.document()
    document["costs"] |= {"futex_wait": invented_machine.spread(300.0), "futex_wake": invented_machine.spread(300.0)}
    return machine.Machine(document, cpus=cpus, nodes=1 if cpus == 1 else 2)


def evaluated(name, on, load):
    rate, waiting, cost = mechanisms.evaluate(BY_NAME[name], on, load)
    return advice.value(rate), advice.value(waiting), cost


def in_turns(name, on, load):
    """ns of an average section in which no other section can be at the same place, and how many such places there are."""
    f, line = load.updates, advice.value(on.line(mechanisms.active_cpus(on, load)))
    hold = (1 - f) * load.reading + f * load.updating
    spin, many = advice.value(on["spinlock"]), load.buckets
    return {"mutex": (advice.value(on["mutex"]) + line + hold, 1), "spinlock": (spin + line + hold, 1),
            "rwlock": (max(f * load.updating, line + 12), 1),  # the word's line, or updates, which keep all out
            "brlock": (f * (load.updating + max(load.threads, mechanisms.active_cpus(on, load)) * spin), 1),
            "buckets": (load.operations * (spin + line) + hold, many), "seqlock": (f * (spin + line + load.updating), 1),
            "rcu": (f * (spin + line + load.updating), many), "hazard": (f * (spin + line + load.updating), many)}[name]


def most(name, on, load):
    """Sections per ns that the mechanism can carry."""
    active = mechanisms.active_cpus(on, load)
    turn, places = in_turns(name, on, load)
    reading, updating = (1 - load.updates) * load.reading, load.updates * load.updating
    found = [active / (load.between + reading + updating), places / turn if turn else math.inf]
    if name in ("rwlock", "brlock", "seqlock"):  # while one updates, no thread reads
        found.append(active / (reading + active * updating))
    return min(found)


class Capacity(unittest.TestCase):
    def below(self, name, on, load):
        rate, waiting, cost = evaluated(name, on, load)
        self.assertTrue(0 < rate <= most(name, on, load) * ROUNDING, (name, rate, most(name, on, load)))
        self.assertTrue(0 <= waiting < 1, (name, waiting))
        return rate, cost

    def test_at_each_number_of_cpus(self):
        for cpus in (*FEW, 256):
            on = machine_of(cpus)
            for threads in (cpus, 2 * cpus, 16 * cpus) if DEEP else (cpus, 16 * cpus):
                for updates in (0.0, 0.02, 0.5, 1.0) if DEEP else (0.02, 0.5):
                    for between in (0.0, 1000.0):
                        load = replace(BACK_TO_BACK, threads=threads, updates=updates, between=between)
                        for name in BY_NAME:
                            with self.subTest(name=name, cpus=cpus, threads=threads, updates=updates, between=between):
                                self.below(name, on, load)

    loads = strategies.builds(Load, threads=strategies.integers(1, 4096), updates=strategies.floats(0, 1),
                              operations=strategies.integers(1, 20), lookup=strategies.floats(1, 1e5),
                              update=strategies.floats(0, 1e4), between=strategies.floats(0, 1e6),
                              live=strategies.just(1000.0), size=strategies.integers(1, 1 << 20),
                              buckets=strategies.integers(1, 1 << 20), latent_limit=strategies.sampled_from((0, 1 << 20, 32 << 20)))

    @examples
    @given(loads, strategies.sampled_from(FEW))
    def test_at_any_load(self, load, cpus):
        on = machine_of(cpus)
        for name in BY_NAME:
            _, cost = self.below(name, on, load)
            self.memory_is_bounded(name, on, load, cost)

    def memory_is_bounded(self, name, on, load, cost):
        """Locks are of a known number; under RCU and hazard pointers `latent_limit` bounds the waiting objects."""
        threads = load.threads
        bound = {"mutex": 64, "spinlock": 64, "rwlock": 64, "seqlock": 128, "brlock": 64 * (max(on.cpus, threads) + 1),
                 "buckets": 64 * load.buckets, "rcu": 64 * threads + (load.latent_limit or math.inf),
                 "hazard": 128 * threads + (load.latent_limit or math.inf)}[name]
        self.assertTrue(0 <= advice.value(cost.memory) <= bound * ROUNDING, (name, advice.value(cost.memory), bound))

    @examples
    @given(loads, strategies.sampled_from(FEW))
    def test_memory_grows_with_the_object(self, load, cpus):
        on = machine_of(cpus)
        load = replace(load, size=1 << load.size.bit_length() % 19)  # so that batches are of whole numbers
        for name in ("rcu", "hazard"):
            small, large = (advice.value(evaluated(name, on, one)[2].memory) for one in (load, replace(load, size=2 * load.size)))
            self.assertGreaterEqual(large * 1.01, small, name)

    def test_rare_updates_that_take_as_long_as_all_reading(self):
        """While one updates no thread reads, and the CPUs have no more than the rest of the time for it."""
        for threads in (2, 4, 8):
            for name in BY_NAME:
                self.below(name, machine_of(8), Load(threads=threads, updates=0.01, lookup=1e3, update=1e5, between=0.0))

    def test_a_mutex_at_8_and_64_cpus(self):
        """A lock that is held for 101 ns and costs a line and 12 ns: no more than 6.9 and 6.2 million sections a second."""
        for cpus in (8, 64, 256):
            on = machine_of(cpus)
            for between in (0.0, 1000.0):
                load = replace(BACK_TO_BACK, threads=cpus, between=between)
                alone = evaluated("spinlock", on, load)[0]
                self.assertLess(evaluated("mutex", on, load)[0], alone)

    def test_the_hash_table(self):
        """A lock for all carries one operation at a time, which takes no less than the table's own time."""
        table = hashes.Table(32, 10.0, 8.0)
        for cpus in CPUS:
            on = machine_of(cpus)
            for share in (0.0, 0.3, 1.0) if cpus in FEW else (0.3,):
                rate = advice.value(hashes.predict("global", on, table, [share], cpus)[0]) * 1e-9
                self.assertLessEqual(rate, 1 / ((1 - share) * 10 + share * 8 + 6) * ROUNDING)
                for name in ("globalrw", "brlock"):
                    rate = advice.value(hashes.predict(name, on, table, [share], cpus)[0]) * 1e-9
                    self.assertLessEqual(rate * share * 8, ROUNDING, name)

    def test_what_latent_limit_lets_through(self):
        """32 objects may wait, and a grace period lasts as long as a reader that is always there: 1 ms, of which half remains."""
        on = machine_of(256)
        load = Load(threads=256, updates=0.9, lookup=1e6, between=0.0, size=32768, buckets=1 << 20, latent_limit=1 << 20)
        free, _ = self.below("rcu", on, replace(load, latent_limit=0))
        held, _ = self.below("rcu", on, load)
        self.assertLess(held, 0.9 * free)
        self.assertLess(held * 0.9 * 0.5e6, 32 * 1.05)


class Sense(unittest.TestCase):
    @examples
    @given(Capacity.loads, strategies.sampled_from(FEW))
    def test_more_updates_make_no_single_lock_faster(self, load, cpus):
        on = machine_of(cpus)
        for name in ("mutex", "spinlock", "seqlock"):
            few, many = (evaluated(name, on, replace(load, updates=share))[0] for share in (load.updates / 2, load.updates))
            self.assertGreaterEqual(few * 1.001, many, name)

    def test_more_customers_never_do_less(self):
        """If costs stay the same, another thread adds to the rate or waits."""
        on = machine_of(256)
        for name in BY_NAME:
            load = replace(BACK_TO_BACK, threads=256)
            costs = BY_NAME[name].cost(on, load, 256)
            cost = costs[0] if isinstance(costs, list) else costs
            before = 0.0
            for customers in range(1, 257, 1 if DEEP else 51):
                rate = advice.value(mechanisms.solve(cost, load.updates, customers, 1000.0)[0])
                self.assertGreaterEqual(rate * 1.001, before, (name, customers))
                before = rate

    def test_readers_of_a_seqlock_need_a_time_without_updates(self):
        """64 CPUs that update without a pause: the counter is odd for nearly all of the time, so readers hardly come through."""
        on = machine_of(64)
        load = replace(BACK_TO_BACK, threads=64, updates=0.5, lookup=1e4)
        rate, waiting, _ = evaluated("seqlock", on, load)
        self.assertLess(rate * 0.5 * load.updating, 1)
        self.assertGreater(waiting, 0.9)
        self.assertLess(rate, evaluated("rcu", on, load)[0])


class MoreThreadsThanCpus(unittest.TestCase):
    """A holder that loses its CPU stops those that spin for its lock until its next turn."""

    ON = machine_of(2)

    def shares(self, name, updates=0.02, between=0.0, buckets=1, cpus=2):
        """Rates with 2, 8 and 32 times as many threads as CPUs, through the rate with as many."""
        on = machine_of(cpus)
        rates = [evaluated(name, on, Load(threads=times * cpus, updates=updates, between=between, buckets=buckets))[0]
                 for times in (1, 2, 8, 32)]
        return [rate / rates[0] for rate in rates[1:]]

    def test_one_spinlock_runs_while_its_holder_does(self):
        """Its holder has one of 2, 8, 32 turns (measured: 0.53, 0.13, 0.04)."""
        for times, share in zip((2, 8, 32), self.shares("spinlock")):
            self.assertAlmostEqual(share * times, 1, delta=0.1)

    def test_locks_of_which_more_are_held_at_once_are_worse(self):
        self.assertLess(self.shares("buckets", buckets=64)[2], self.shares("spinlock")[2])
        self.assertLess(self.shares("brlock")[2], self.shares("spinlock")[2])

    def test_what_sleeps_gives_the_holder_its_cpu_back(self):
        for name in ("mutex", "rwlock"):
            self.assertGreater(min(self.shares(name)), 0.9)

    def test_readers_of_rcu_hold_nothing(self):
        self.assertGreater(min(self.shares("rcu", updates=0.0)), 0.99)
        self.assertLess(self.shares("rcu", updates=0.5)[2], 0.2)

    def test_readers_of_brlock_hold_what_nobody_wants_without_updates(self):
        self.assertGreater(min(self.shares("brlock", updates=0.0)), 0.99)

    def test_sections_far_apart_seldom_lose_their_cpu(self):
        self.assertGreater(min(self.shares("spinlock", between=1e6)), 0.95)

    def test_so_many_buckets_that_nobody_meets_the_one_that_is_held(self):
        self.assertGreater(self.shares("buckets", buckets=1 << 34, between=1e5)[2], 0.95)

    def test_no_spinning_lock_is_advised(self):
        answer = advice.advise(self.ON, Load(threads=64, updates=0.02), advice.Needs(), "mutex")
        self.assertNotIn(answer["choice"], ("spinlock", "brlock", "buckets"))

    def test_more_threads_never_do_more(self):
        for name in BY_NAME:
            shares = [1.0, *self.shares(name, updates=0.1, buckets=8, cpus=16)]
            for few, many in zip(shares, shares[1:]):
                self.assertLessEqual(many, few * 1.001, name)


if __name__ == "__main__":
    unittest.main()
