#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Patterns of kept memory: their own figures, locked memory, the system's huge pages while a pattern runs, and both tables."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
LOAD = BUILD / "bin/prudence-malloc-load"
sys.path.append(str(ROOT / "lab"))
from measure import allocators, summary  # noqa: E402 (the path comes first)
from measure.malloc import programs, tables  # noqa: E402

FIGURES = {"memory-sizes": ["freed, MB"], "memory-quiet": ["freed, MB", "5 s later, MB", "30 s later, MB"], "memory-calloc": ["one page used, MB", "freed, MB"],
           "memory-survivors": [f"trimmed, one in {n} left, MB" for n in ("1,000", "256", "64")], "memory-huge": ["freed, MB"], "memory-huge-crowd": ["freed, MB"]}


def load(pattern, *options, scale="0.002", **environment):
    done = subprocess.run([LOAD, pattern, "--scale", scale, *options], capture_output=True, text=True, check=True, timeout=60, env={**os.environ, **environment})
    return json.loads(done.stdout)


class Patterns(unittest.TestCase):
    def test_each_has_its_figures(self):
        for pattern, names in FIGURES.items():
            found = load(pattern)["figures"]
            self.assertEqual(list(found), names)
            self.assertTrue(all(0 < value < 1000 for value in found.values()), found)

    def test_the_longest_turn_is_that_of_a_real_time_thread(self):
        worst = load("memory-real-time", scale="0.01").get("figures", {}).get("worst turn, ms", 1.0)  # without the right there is none
        self.assertTrue(0 < worst < 1000, worst)

    def test_the_more_blocks_stay_the_more_memory_stays(self):
        found = list(load("memory-survivors", scale="0.2")["figures"].values())
        self.assertEqual(found, sorted(found))
        self.assertLess(found[0], 8)
        self.assertGreater(found[2], found[0] + 1)

    def test_what_is_never_freed_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            code, library = Path(folder) / "kept.c", Path(folder) / "kept.so"
            code.write_text("void free(void *block) { (void)block; }\n")
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, code], check=True)
            given, kept = (load("memory-sizes", scale="0.1", **more)["figures"]["freed, MB"] for more in ({}, {"LD_PRELOAD": str(library)}))
        self.assertLess(given, 10)
        self.assertGreater(kept, 20)

    def test_locked_memory_is_resident_at_once(self):
        locked = programs.Locked(SimpleNamespace(load=LOAD), "memory-calloc", "")
        if locked.missing():
            self.skipTest(locked.missing())
        locked.prepare(0.1)
        self.assertEqual((locked.name, locked.command[-1]), ("locked/memory-calloc", "--lock"))
        with_lock, without = (load("memory-calloc", *options, scale="0.2")["peak_rss_bytes"] for options in (["--lock"], []))
        self.assertGreater(with_lock, without + 40e6)


class HugePages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = Path(folder.name) / "enabled"
        self.place.write_text("always [madvise] never")
        patched = unittest.mock.patch.object(programs, "HUGE_PAGES", self.place)
        patched.start()
        self.addCleanup(patched.stop)
        self.program = programs.WithHugePages(None, "mix", "", "always")

    def run_it(self, run):
        with unittest.mock.patch.object(programs.Pattern, "run", lambda *_: run()):
            return self.program.run(None, 0)

    def test_the_former_way_is_restored(self):
        self.assertEqual(self.run_it(self.place.read_text), "always")
        self.assertEqual(self.place.read_text(), "madvise")

    def test_also_after_a_failure(self):
        with self.assertRaises(ZeroDivisionError):
            self.run_it(lambda: 1 / 0)
        self.assertEqual(self.place.read_text(), "madvise")

    def test_without_the_right_only_the_present_way_is_measured(self):
        with unittest.mock.patch("os.access", lambda *_: False):
            self.assertIn("cannot be written", self.program.missing())
            self.assertIsNone(programs.WithHugePages(None, "mix", "", "madvise").missing())

    def test_the_variant_has_the_option(self):
        variant, = allocators.VARIANTS
        self.assertEqual(variant.environment, {"PRUDENCE_OPTIONS": "huge_pages=1"})
        self.assertNotIn(variant.name, [one.name for one in allocators.ALLOCATORS])


def row(program, subject, *peaks, **more):
    return {"program": program, "subject": subject, "repeats": [
        {"wall_seconds": 1.0, "cpu_seconds": 2.0, "peak_rss_bytes": peak, "minor_faults": 7, "figures": {"freed, MB": peak / 2e6}} for peak in peaks], **more}


def document(*rows):
    return {"host": {"cpu": "a CPU", "cpus": 2, "system": "Linux", "kernel": "6.1", "compiler": "12"}, "date": "2026-01-01T00:00:00Z", "rows": list(rows),
            "skipped": [{"program": "locked/a", "why": "may not"}], "allocators": [{"name": "glibc", "version": "2.36"}, {"name": "prudence", "version": "1.0"}]}


class Tables(unittest.TestCase):
    def test_kept(self):
        found = {(one["program"], one["figure"]): one for one in tables.kept(document(
            row("memory-a", "glibc", 2e6, 4e6, 9e6), row("memory-a", "prudence", 8e6, failed="no")))}
        self.assertEqual(list(found)[0], ("memory-a", "freed, MB"))
        self.assertEqual(found["memory-a", "freed, MB"]["glibc"], "2 [1, 4.5]")
        self.assertEqual((found["memory-a", "peak, MB"]["prudence"], found["locked/a", "may not"]["glibc"]), ("–", "–"))
        self.assertEqual(found["memory-a", "CPU, s"]["rounds"], 1)

    def test_huge_pages(self):
        rows = [row(f"{mode}/{name}", subject, peak * times) for mode, peak in (("never", 10), ("always", 30)) for name in ("a", "b")
                for subject, times in (("glibc", 1), ("prudence", 2))]
        rows += [row("never/c", "glibc", 1), row("never/c", "prudence", failed="no")]
        found = {(one["system"], one["allocator"]): one for one in tables.huge_pages(document(*rows))}
        self.assertEqual([one["peak"].split()[0] for one in found.values()], ["1.000", "2.000", "3.000", "6.000"])
        self.assertEqual(found["always", "prudence"]["patterns"], 2)

    def test_the_way_into_the_summary(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "memory.json").write_text(json.dumps(document(row("memory-a", "glibc", 2e6), row("memory-a", "prudence", 2e6))))
            (Path(folder) / "huge-pages.json").write_text(json.dumps(document(row("never/a", "glibc", 2e6), row("never/a", "prudence", 2e6))))
            summary.report(Path(folder))
            self.assertEqual(sorted(place.name for place in (Path(folder) / "summary").iterdir()), ["huge-pages.csv", "memory.csv"])


if __name__ == "__main__":
    unittest.main()
