#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""prudence-mix: three kinds of callbacks, the default and pre-flush, by counts."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MIX = Path(os.environ["PRUDENCE_BUILD_DIR"]).resolve() / "bin/prudence-mix"
ALLOCATIONS, SIZE = 100000, 192  # bytes of an object of `drop`, of which nearly each is deferred
SLAB = 32768


def measure():
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "mix.json")
        subprocess.run([MIX, "--mix", "drop", "--period", "500", "--cache", "0", "--allocations", str(ALLOCATIONS), "--seeds", "1", f"--json={place}"],
                       check=True, stdout=subprocess.DEVNULL, timeout=100)
        return {row["subject"]: row for row in json.loads(place.read_text())["rows"]}


class Mix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = measure()

    def test_subjects(self):
        self.assertEqual(list(self.rows), ["classic", "throttled-10", "throttled-20", "throttled-40", "prudence", "+preflush", "+spares"])

    def test_counts_repeat(self):
        """Except for sequences that are interrupted and give up. Hits and peaks hardly see these."""
        for subject, row in measure().items():
            for figure in ("hits", "slabs_peak"):
                self.assertAlmostEqual(row[figure], self.rows[subject][figure], delta=0.02 * row[figure], msg=f"{subject} {figure}")

    def test_the_default_has_no_helper(self):
        self.assertEqual(self.rows["prudence"]["preflushed_objects"], 0)
        self.assertGreater(self.rows["+preflush"]["preflushed_objects"], 0)

    def test_a_queue_that_keeps_up_takes_no_more_memory(self):
        """An object is deferred each second step, and throttled-10 calls one callback a step."""
        self.assertLess(self.rows["throttled-10"]["slabs_peak"], 1.1 * self.rows["classic"]["slabs_peak"])

    def test_a_queue_that_does_not_grows(self):
        """throttled-40 calls a callback each fourth step, so half of all objects wait in the end."""
        waiting = ALLOCATIONS / 2 * SIZE / SLAB
        self.assertAlmostEqual(self.rows["throttled-40"]["slabs_peak"], waiting, delta=waiting / 8)

    def test_all_callbacks_are_called_in_the_end(self):
        row = self.rows["throttled-40"]
        self.assertLess(row["bytes_left"], row["slabs_peak"] * SLAB / 2)


if __name__ == "__main__":
    if not MIX.exists():
        sys.exit(77)
    unittest.main()
