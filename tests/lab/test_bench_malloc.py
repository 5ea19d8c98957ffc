#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (it tests reports of measurements; none of it is in the library)
"""prudence-bench malloc: a short run of all patterns, the output, and the faults that it must notice."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
BENCH, LOAD, WATCH = (BUILD / "bin" / name for name in (
    "prudence-bench", "prudence-malloc-load", "prudence-malloc-watch"))

sys.path.insert(0, str(ROOT / "lab"))
from measure.malloc import listed, verdict, watch  # noqa: E402 (the path comes first)
from measure.allocators import ALLOCATORS, Allocator, package_version  # noqa: E402

SUBJECTS = [name for name in ("glibc", "prudence", "jemalloc")
            if name != "prudence" or (BUILD / "libprudence-malloc.so").exists()]
GLIBC = next(one for one in ALLOCATORS if one.name == "glibc")


def run(*command, **more):
    return subprocess.run(command, text=True, capture_output=True, timeout=200, **more)


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


class KeptApart(unittest.TestCase):
    def test_a_third_is_kept_apart_for_good(self):
        names = [listed.full_name(row[0]) for row in listed.LISTED]
        self.assertEqual([name for name in names if name.startswith("apart/")], [f"apart/{name}" for name in (
            "mawk", "ruby", "node", "guile", "php", "xmllint", "graphviz", "cppcheck", "clang-format", "ninja", "make")])
        self.assertEqual(len(set(names)), 34)


class ShortRun(WithFolder):
    def test_rows_summary_and_page(self):
        patterns = [one["name"] for one in json.loads(run(LOAD, "list").stdout)]
        result = self.folder / "malloc.json"
        done = run(BENCH, "malloc", "--repeat", "1", "--scale", "0.002", "--pause", "0.01",
                   "--subject", ",".join(SUBJECTS), "--program", ",".join(patterns + ["python"]),
                   "--json", result)
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(result.read_text())
        self.check_rows(document, patterns)
        self.check_summary(document, patterns)
        document["skipped"] = [{"program": "abacus", "why": "gone"},
                               {"subject": "nomalloc", "why": "gone"}]
        result.write_text(json.dumps(document))
        self.check_page(result, patterns)

    def test_any_number_of_threads(self):
        for pattern in json.loads(run(LOAD, "list").stdout):
            for threads in ("1", "3", "8"):
                done = run(LOAD, pattern["name"], "--scale", "0.0005", "--threads", threads)
                self.assertEqual(done.returncode, 0, (pattern["name"], threads, done.stderr))

    def check_rows(self, document, patterns):
        rows = {(row["program"], row["subject"]): row for row in document["rows"]}
        self.assertEqual(set(rows), {(program, subject) for program in patterns + ["python"]
                                     for subject in SUBJECTS})
        for (program, subject), row in rows.items():
            self.assertNotIn("failed", row)
            self.assertRegex(row["version"], r"^\d+\.\d+")
            for key in ("wall_seconds", "cpu_seconds", "peak_rss_bytes", "minor_faults"):
                self.assertGreater(row[key], 0, (program, subject, key))
            self.assertEqual("paused_rss_bytes" in row, program != "python")
        self.assertGreater(len(patterns), 10)

    def check_summary(self, document, patterns):
        said = document["summary"]
        self.assertEqual((said["baseline"], said["left_out"]), ("glibc", []))
        self.assertEqual(said["programs"], patterns + ["python"])
        for key in verdict.FIGURES:
            self.assertAlmostEqual(said["subjects"][0][key]["geometric_mean"], 1)
        self.assertTrue(any(line["on_pareto_front"] for line in said["subjects"]))

    def check_page(self, result, patterns):
        done = run(ROOT / "lab/run/report", result)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = result.with_suffix(".html").read_text()
        for name in ("jemalloc", "Pareto front", "<svg", "abacus", "nomalloc", *patterns):
            self.assertTrue(name in page, name)
        self.assertIsNone(re.search(r'(?:src|href)="(?!#|data:)', page))


class BadInput(unittest.TestCase):
    def refused(self, text, *arguments):
        done = run(BENCH, "malloc", *arguments)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(text, done.stderr)

    def test_names(self):
        self.refused("unknown program 'nothing'", "--program", "lifo,nothing")
        self.refused("unknown subject 'nomalloc'", "--subject", "glibc,nomalloc")

    def test_numbers(self):
        self.refused("--repeat: 'x' is not a number", "--repeat", "x")
        self.refused("--scale: '0' is not a number above 0", "--scale", "0")
        self.refused("--pause: '-1' is not", "--pause=-1")

    def test_folder(self):
        self.refused("'/nowhere/a.json' cannot be written", "--json", "/nowhere/a.json")

    def test_load(self):
        for text, *arguments in (("unknown pattern 'lifofifo'", "lifofifo"), ("which pattern",),
                                 ("--threads: '0' is not", "lifo", "--threads", "0"),
                                 ("--scale: 'a lot' is not", "lifo", "--scale", "a lot")):
            done = run(LOAD, *arguments)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(text, done.stderr)


class Libraries(WithFolder):
    def test_the_first_pattern_that_is_there_counts(self):
        other = self.folder / "debian.so"
        other.touch()
        one = Allocator("one", f"peers/*.so {other}", "")
        self.assertTrue(one.find(self.folder))
        self.assertEqual(one.path, other)
        (self.folder / "peers").mkdir()
        (self.folder / "peers/newest.so").touch()
        self.assertTrue(one.find(self.folder))
        self.assertEqual(one.path.name, "newest.so")

    def test_versions_of_crates_are_those_of_the_lock(self):
        lock = (ROOT / "lab/measure/peers/Cargo.lock").read_text()
        for one in ALLOCATORS:
            if one.package.endswith("-sys"):
                name, version = package_version(one.package).split()
                self.assertIn(f'name = "{name}"\nversion = "{version}', lock)


class Watch(WithFolder):
    def outcome(self, *command, timeout=60):
        GLIBC.find(BUILD)
        with watch.Watched(WATCH, GLIBC, command, {}, timeout) as watched:
            return watched.finish()

    def fails(self, text, *command, **more):
        with self.assertRaisesRegex(watch.Failed, text):
            self.outcome(*command, **more)

    def test_what_it_cost(self):
        output, cost = self.outcome("/bin/sh", "-c", "echo hello; sleep 0.2")
        self.assertEqual(output, "hello\n")
        self.assertGreater(cost["wall_seconds"], 0.2)
        self.assertLess(cost["peak_rss_bytes"], 16 << 20)

    def test_failures_have_a_reason(self):
        self.fails("exit status 3: broken", "/bin/sh", "-c", "echo broken >&2; exit 3")
        self.fails("SIGSEGV", "/bin/sh", "-c", "kill -SEGV $$")
        self.fails("not finished after 0.2 s", "/bin/sleep", "60", timeout=0.2)
        self.fails("No such file", "/nowhere/program")

    def test_a_library_that_was_not_loaded(self):
        library, result = self.folder / "libnothing.so", self.folder / "result.json"
        library.write_text("not a library\n")
        self.assertEqual(run(WATCH, result, library, "/bin/true").returncode, 0)
        self.assertIs(json.loads(result.read_text())["mapped"], False)


class BrokenAllocator(WithFolder):
    """Functions over those of the C library that do one thing wrong."""

    def notices(self, text, source, pattern):
        code, library = self.folder / "broken.c", self.folder / "broken.so"
        code.write_text("#include <stdlib.h>\n#include <string.h>\n"
                        "void *__libc_malloc(size_t); void __libc_free(void *);\n" + source)
        subprocess.run(["cc", "-O1", "-fno-builtin", "-w", "-shared", "-fPIC", code, "-o", library],
                       check=True)
        done = run(LOAD, pattern, "--scale", "0.01", env={**os.environ, "LD_PRELOAD": library})
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(text, done.stderr)

    def test_realloc_that_copies_nothing(self):
        self.notices("lost their beginning", "void *realloc(void *p, size_t n) { return calloc(1, n); }",
                     "realloc")

    def test_realloc_that_copies_the_beginning(self):
        self.notices("lost their end", """
            void *realloc(void *p, size_t n) { return p ? memcpy(calloc(1, n), p, 8) : malloc(n); }""",
                     "realloc")

    def test_a_block_handed_out_twice(self):
        self.notices("was overwritten", """
            static char block[64] __attribute__((aligned(16)));
            static int count;
            void *malloc(size_t n) { return n == 64 && ++count % 100 < 2 ? block : __libc_malloc(n); }
            void free(void *p) { if (p != block) __libc_free(p); }""", "one-size")

    def test_blocks_that_overlap(self):
        self.notices("was overwritten", """
            static char space[1 << 20] __attribute__((aligned(16)));
            static size_t used;
            void *malloc(size_t n)
            {
                if (n < 256 || n > 511 || used + n > sizeof space) return __libc_malloc(n);
                used += n / 2 & -16;
                return space + used - (n / 2 & -16);
            }
            void free(void *p)
            {
                if ((char *)p < space || (char *)p >= space + sizeof space) __libc_free(p);
            }""", "fifo")

    def test_no_memory(self):
        self.notices("malloc(64) returned NULL",
                     "void *malloc(size_t n) { return n == 64 ? NULL : __libc_malloc(n); }",
                     "one-size")


class Summary(unittest.TestCase):
    @staticmethod
    def row(program, subject, walls, peak=1 << 20):
        return {"program": program, "subject": subject, "repeats": [
            {"wall_seconds": wall, "cpu_seconds": wall, "peak_rss_bytes": peak, "minor_faults": 1}
            for wall in walls]}

    def test_geometric_means(self):
        said = verdict.summarize([self.row("p", "a", [1, 9, 1]), self.row("p", "b", [2, 2, 0.1]),
                                  self.row("q", "a", [1]), self.row("q", "b", [8], 1 << 19)],
                                 ["a", "b"])
        a, b = said["subjects"]
        self.assertAlmostEqual(a["wall"]["geometric_mean"], 1)
        self.assertAlmostEqual(b["wall"]["geometric_mean"], 4)  # of 2 and 8
        self.assertAlmostEqual(b["wall_x_peak_rss"]["geometric_mean"], 8 ** 0.5)  # of 2 and 4
        self.assertLess(b["wall"]["low"], 4)
        self.assertGreaterEqual(b["wall"]["high"], 4)
        self.assertNotIn("paused_rss", b)

    def test_the_interval_is_narrow_without_noise(self):
        said = verdict.summarize([self.row("p", "a", [1] * 5), self.row("p", "b", [3] * 5)],
                                 ["a", "b"])
        self.assertAlmostEqual(said["subjects"][1]["wall"]["low"], 3)
        self.assertAlmostEqual(said["subjects"][1]["wall"]["high"], 3)

    def test_a_program_that_failed_is_left_out(self):
        rows = [self.row("p", "a", [1]), self.row("p", "b", [2]), self.row("q", "a", [1]),
                {**self.row("q", "b", []), "failed": "no"}]
        said = verdict.summarize(rows, ["a", "b"])
        self.assertEqual((said["programs"], said["left_out"]), (["p"], ["q"]))
        self.assertEqual(verdict.summarize(rows[2:], ["a", "b"])["subjects"], [])

    def test_pareto_front(self):
        self.assertEqual(verdict.on_front([(1, 1), (0.5, 2), (0.6, 2), (1, 1), (2, 0.5), (1, 1.1)]),
                         [True, True, False, True, True, False])


if __name__ == "__main__":
    unittest.main()
