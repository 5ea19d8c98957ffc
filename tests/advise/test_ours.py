#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The model of our own grace periods: against what the library counts and decides, simulation, and limits."""

import re
import sys
import unittest
from pathlib import Path

import numpy

try:
    from hypothesis import HealthCheck, given, settings, strategies
except ImportError:  # Debian: python3-hypothesis
    print("there is no hypothesis (python3-hypothesis): skipped")
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "programs/advise"))
from prudence_advise import ours  # noqa: E402 (the path comes first)

COSTS = ours.Costs(pair=8.0, transfer=100.0, membarrier=5000.0, fence=5.0)
readers = strategies.integers(0, 256)
sizes = strategies.integers(16, 8192)
quick = settings(max_examples=60, deadline=None, database=None, derandomize=True,
                 suppress_health_check=[HealthCheck.too_slow])  # no test depends on the time it takes


def random():
    return numpy.random.default_rng(7)


class Counts(unittest.TestCase):
    def test_constants_are_the_librarys(self):
        text = "".join((ROOT / "src/core" / name).read_text() for name in ("slab/alloc.c", "gp/user/gp_poll.h"))
        asking = (ROOT / "src/core/gp/user/at_once.c").read_text()
        self.assertIn(f"ASK_AGAIN_NS      UINT64_C({ours.ASK_APART:.0f})", asking)
        self.assertIn(f"ASK_AGAIN_NS_EACH UINT64_C({ours.ASK_MORE:.0f})", asking)
        self.assertIn(f"LOOK_AT_MOST {ours.ASK_READERS} /* readers */", asking)
        for name, value in (("DUE_CHEAP_OBJECTS ", ours.DUE_CHEAP[1]), ("DUE_CHEAP_OBJECTS_MIN ", ours.DUE_CHEAP[0]),
                            ("DUE_CHEAP_BYTES ", ours.DUE_CHEAP_BYTES),
                            ("DUE_COSTLY_BYTES ", ours.DUE_COSTLY_BYTES),
                            ("DUE_COSTLY_PER_NS ", ours.DUE_COSTLY_PER_NS),
                            ("GP_BATCH_OBJECTS ", ours.BATCH_OBJECTS), ("GP_BATCH_BYTES ", ours.BATCH_BYTES)):
            found = re.search(rf"#define {name}\s*(?:\(\((?:size_t|unsigned)\))?(\d+)\)?u?(?: << (\d+))?", text)
            self.assertTrue(found, name)
            self.assertEqual(int(found[1]) << int(found[2] or 0), value, name)

    def test_lines_are_no_fewer_than_were_counted(self):
        """docs/explanation/scaling.md: a batch with its share of a grace period, in lines; 64 CPUs without readers."""
        page = (ROOT / "docs/explanation/scaling.md").read_text()
        self.assertIn("a batch of 256 pairs of 64 B, with its share of a grace period | | 1.4 lines", page)
        self.assertIn("3 lines for each CPU that has read", page)
        free = ours.Costs(pair=0.0, transfer=1.0, membarrier=0.0, fence=0.0, look=0.0)
        counted = ours.deferral_of_count(64 * 256.0, 64, 0, 64, free) * 256
        self.assertTrue(1.2 <= counted <= 2.1, counted)

    def test_a_pair_pays_a_nanosecond_for_what_is_shared(self):
        """"If a line takes 100 ns, a pair pays 1 ns for shared lines, on 64 CPUs as on 256" (the same page)."""
        for cpus in (64, 256):
            shared = ours.deferral_of_count(cpus * 128.0, cpus, 0, 64, COSTS) - COSTS.pair
            self.assertTrue(0.2 < shared < 1.5, shared)

    def test_batches(self):
        self.assertEqual([ours.objects_of_batch(size) for size in (16, 64, 1024, 4096, 1 << 20)],
                         [256, 256, 256, 64, 1])

    def test_as_many_objects_wait_with_a_busy_reader_as_adr_52_says(self):
        self.assertTrue(10000 < ours.objects_due(1, 64, COSTS) < 30000)
        self.assertEqual(ours.objects_due(1, 4096, COSTS), 1024)  # 4 MiB
        self.assertEqual(ours.objects_due(0, 64, COSTS), 256)
        self.assertGreater(ours.objects_in_flight(0.1, 10.0, 2, 1, 64, COSTS), 10000)
        self.assertEqual(ours.objects_due(1, 64, COSTS, fenced=True), 1024)


class Limits(unittest.TestCase):
    def test_a_deferral_tends_to_its_pair(self):
        self.assertAlmostEqual(ours.deferral_of_count(1e12, 64, 64, 64, COSTS), COSTS.pair, 6)
        self.assertAlmostEqual(ours.deferral_typical(1e9, 64, 64, 64, COSTS), COSTS.pair, 4)

    def test_rare_batches_are_alone(self):
        alone = ours.deferral_of_count(256.0, 8, 3, 64, COSTS)
        self.assertAlmostEqual(ours.deferral_typical(0, 8, 3, 64, COSTS), alone)
        self.assertAlmostEqual(ours.deferral_typical(1e-9, 8, 3, 64, COSTS), alone, 6)

    def test_fenced_readers_spare_the_membarrier(self):
        saved = ours.grace_period(4, COSTS) - ours.grace_period(4, COSTS, fenced=True)
        self.assertAlmostEqual(saved, COSTS.membarrier - COSTS.fence)

    def test_longest_section_is_that_of_a_simulation(self):
        chance = random()
        for count, inside in ((1, 1.0), (4, 0.5), (16, 0.1), (64, 1.0)):
            open_ones = chance.random((40000, count)) < inside
            for varying, left in ((False, chance.random(open_ones.shape)),
                                  (True, chance.exponential(1.0, open_ones.shape))):
                simulated = numpy.mean(numpy.max(numpy.where(open_ones, left, 0.0), axis=1))
                computed = ours.longest_section(count, inside, 1.0, varying)
                self.assertAlmostEqual(computed, simulated, delta=0.03 * max(1, simulated))

    def test_no_readers_no_wait(self):
        self.assertEqual(ours.longest_section(0, 0.5, 100.0), 0)
        self.assertEqual(ours.longest_wait_for_cpu(4, 4, 0.5, 3e6), 0)

    def test_more_threads_than_cpus_make_grace_periods_long(self):
        few = ours.grace_period_length(4, 4, 0.1, 100.0, COSTS)
        many = ours.grace_period_length(16, 4, 0.1, 100.0, COSTS)
        self.assertGreater(many, 100 * few)

    def test_memory_is_within_latent_limit(self):
        stored = ours.objects_in_flight(1.0, 1e9, 64, 64, 64, COSTS, latent_limit=1 << 20)
        self.assertEqual(stored * 64, 1 << 20)

    def test_rare_updates_hold_little_memory(self):
        """A thousand updates a second: decay drives their grace periods before enough of them wait for one."""
        self.assertAlmostEqual(ours.objects_in_flight(1e-6, 100.0, 64, 64, 64, COSTS), 200, 0)

    def test_readers_that_enter_often_are_asked(self):
        self.assertTrue(ours.are_asked(1, 1000.0) and ours.are_asked(32, 100000.0))
        self.assertFalse(ours.are_asked(1, 20000.0) or ours.are_asked(33, 1.0) or ours.are_asked(0, 1.0))
        # A writer's pairs with a busy reader: then it is two batches and a half, instead of 16,384 objects.
        self.assertLess(ours.objects_in_flight(0.1, 10.0, 1, 1, 64, COSTS, asked=True), 1500)

    def test_half_a_batch_is_open_without_readers(self):
        """Compares with a count of prudence-trial with one thread: 129 objects in the median."""
        self.assertAlmostEqual(ours.objects_in_flight(1e-3, 10.0, 1, 0, 64, COSTS), 128, 0)

    def test_little_memory_without_readers(self):
        self.assertLess(ours.objects_in_flight(0.1, 100.0, 1, 0, 64, COSTS) * 64, 64 << 10)

    def test_footprint_costs_nothing_within_the_cache(self):
        self.assertEqual(ours.footprint_cost(64, 1000, 4096, 50.0), 0)
        self.assertAlmostEqual(ours.footprint_cost(200, 1e12, 4096, 50.0), 4 * 50.0, 3)


class Properties(unittest.TestCase):
    @quick
    @given(strategies.floats(256, 1e7), strategies.floats(256, 1e7), readers, sizes)
    def test_more_objects_never_cost_more(self, one, other, count, size):
        low, high = sorted((one, other))
        self.assertGreaterEqual(ours.deferral_of_count(low, 64, count, size, COSTS) * (1 + 1e-9),
                                ours.deferral_of_count(high, 64, count, size, COSTS))

    @quick
    @given(readers, readers, sizes, strategies.booleans())
    def test_more_readers_never_cost_less(self, one, other, size, fenced):
        low, high = sorted((one, other))
        for function in (lambda n: ours.grace_period(n, COSTS, fenced),
                         lambda n: ours.deferral_of_count(1000.0, 64, n, size, COSTS, fenced)):
            self.assertLessEqual(function(low), function(high))

    @quick
    @given(readers, strategies.floats(0, 1), strategies.floats(0, 1), strategies.booleans())
    def test_a_grace_period_is_longer_the_more_are_inside(self, count, one, other, varying):
        low, high = sorted((one, other))
        self.assertLessEqual(ours.longest_section(count, low, 1.0, varying),
                             ours.longest_section(count, high, 1.0, varying) + 1e-6)

    @quick
    @given(strategies.floats(0, 10), strategies.floats(1, 1e9), sizes)
    def test_memory_grows_with_length_to_its_limit(self, rate, length, size):
        less = ours.objects_in_flight(rate, length, 8, 8, size, COSTS)
        more = ours.objects_in_flight(rate, 2 * length, 8, 8, size, COSTS)
        self.assertTrue(less <= more <= ours.LATENT_LIMIT / size + 1e-6)


if __name__ == "__main__":
    unittest.main()
