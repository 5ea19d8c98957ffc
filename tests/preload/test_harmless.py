#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that other allocators let run go on: harmless faults are reported once (ADR 159). Options end them."""

import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "tools"))
from preload import ld_preload  # noqa: E402 (the path comes first)
PROGRAM = BUILD / "bin/preload_program_harmless"
LIBRARY = BUILD / "libprudence-malloc.so"
ENDING = "harmless_misuse=abort ends the process here"
# {the misuse: the report}
MISUSE = {
    "delete": "sized operator delete: .* has 1(12|04) bytes, and the size 4 is wrong",
    "delete[]": "sized operator delete: .* has 100(3520|0000) bytes, and the size 5000 is wrong",
    "free_sized": "free_sized: .* has 10(24|00) bytes, and the size 2000 is wrong",
    "free_aligned_sized": "free_aligned_sized: .* cannot have been allocated with alignment 3",
    "usable freed": "malloc_usable_size: .* is no block that is allocated",
    "usable static": "malloc_usable_size: .* is no block that is allocated",
}


def run(what, options="", times=3):
    done = subprocess.run([PROGRAM, what, str(times)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100,
                          env={**os.environ, "LD_PRELOAD": ld_preload(LIBRARY), "PRUDENCE_OPTIONS": options})
    return done.returncode, done.stdout, done.stderr


class Harmless(unittest.TestCase):
    def test_is_reported_once_and_goes_on(self):
        for what, says in MISUSE.items():
            for options in ("", "check=1,harmless_misuse=report", "hardened=1,harmless_misuse=report", "sandbox=1", "rseq=0"):
                if "usable" in what and "=report" in options or what == "usable freed" and options:
                    continue  # the option that finds the misuse there ends the process, or does not see it
                with self.subTest(what=what, options=options):
                    status, out, errors = run(what, options)
                    self.assertEqual((status, out), (0, "still running\n"), errors)
                    self.assertRegex(errors, says)
                    self.assertEqual(errors.count(ENDING), 1, errors)

    def test_ends_where_bugs_are_looked_for(self):
        for what in MISUSE:
            for options in ("check=1", "hardened=1", "harmless_misuse=abort"):
                with self.subTest(what=what, options=options):
                    status, _, errors = run(what, options)
                    self.assertEqual(status, -signal.SIGABRT, errors)
                    self.assertNotIn(ENDING, errors)

    def test_a_dead_object_ends_it_whatever_the_size(self):
        for what, says in (("delete", "sized operator delete"), ("free_sized", "free_sized")):
            with self.subTest(what=what):
                status, _, errors = run(f"{what} of the dead")
                self.assertEqual(status, -signal.SIGABRT, errors)
                self.assertRegex(errors, f"{says}: .* is already free")

    def test_a_double_free_found_at_the_end(self):
        status, out, errors = run("twice", times=1)
        self.assertEqual((status, out), (0, "still running\n"), errors)
        self.assertEqual(errors.count("end of the process: double free"), 1, errors)
        self.assertEqual(run("twice", "harmless_misuse=abort", times=1)[0], -signal.SIGABRT)
        self.assertEqual(run("twice", "check=1", times=1)[0], -signal.SIGABRT)


if __name__ == "__main__":
    unittest.main()
