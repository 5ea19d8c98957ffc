#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 30
"""The examples, as they are installed, are built against the installed library by CMake and by the plain compiler. Each
program is right, sees the mistake, and measures. Each has a page, and the code in the page is code of the program."""

import csv
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from example_faults import FAULTS

DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"  # make test-long

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build"))
EXAMPLES = ROOT / "lab/examples"
PAGES = ROOT / "docs/how-to"
SOURCES = sorted(EXAMPLES.glob("*.c"))
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
COSTS = ROOT / "docs/results/data/examples/costs.csv"
LINES_MOST = 155  # a program is read on one page


def page_of(source):
    """The page that the head of a program names."""
    return ROOT / re.search(r"docs/how-to/(?:pattern|example)-[a-z-]+\.md", source.read_text())[0]


def run(*command, status=0, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, **options)
    if done.returncode != status:
        raise AssertionError(f"{command}: exit {done.returncode}, want {status}\n{done.stdout}")
    return done.stdout


def costs_in(table):
    return list(csv.reader(table.read_text().splitlines()))


class Pages(unittest.TestCase):
    def test_each_program_has_a_row_of_costs(self):
        self.assertEqual([row[0] for row in costs_in(COSTS)[1:]], [source.stem for source in SOURCES])

    def test_each_program_has_a_page_and_each_page_a_program(self):
        pages = sorted(page for kind in ("pattern", "example") for page in PAGES.glob(kind + "-*.md"))
        self.assertEqual(sorted(map(page_of, SOURCES)), pages)

    def test_code_in_pages_is_of_the_program(self):
        for source in SOURCES:
            program, page = source.read_text(), page_of(source).read_text()
            self.assertIn(f"(../../lab/examples/{source.name})", page)
            blocks = re.findall(r"^```c\n(.*?)^```", page, re.M | re.S)
            self.assertGreaterEqual(len(blocks), 2, page_of(source))
            for block in blocks:
                self.assertIn(block, program, page_of(source).name)

    def test_lines_of_conversions_are_in_the_page(self):
        self.assertEqual(run(ROOT / "lab/run/count-conversions"), COSTS.with_name("conversions.csv").read_text())

    def test_programs_are_short(self):
        for source in SOURCES:
            self.assertLessEqual(len(source.read_text().splitlines()), LINES_MOST, source.name)


@unittest.skipUnless(DEEP, "make test-long builds and runs the programs")
class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        root = Path(cls.folder.name)
        prefix = root / "prefix"
        run("cmake", "--install", BUILD, "--prefix", prefix)
        libraries = next(prefix.rglob("libprudence.so")).parent
        cls.environment = {**os.environ, "PKG_CONFIG_PATH": str(libraries / "pkgconfig"),
                           "LD_LIBRARY_PATH": str(libraries)}
        cls.examples = prefix / "share/doc/prudence/examples"
        cls.ways = {"CMake": cls.by_cmake(root / "cmake", prefix), "cc": cls.by_compiler(root / "cc")}

    @classmethod
    def by_cmake(cls, out, prefix):
        run("cmake", "-G", "Ninja", "-S", cls.examples, "-B", out, f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_C_FLAGS={' '.join(WARNINGS)}")
        run("cmake", "--build", out)
        return out

    @classmethod
    def by_compiler(cls, out):
        out.mkdir()
        flags = run("pkg-config", "--cflags", "--libs", "prudence", env=cls.environment).split()
        for source in sorted(cls.examples.glob("*.c"))[::1 if DEEP else 3]:
            run("cc", "-O2", *WARNINGS, source, *flags, "-o", out / source.stem)
        run("cc", "-O2", *WARNINGS, "-shared", "-fPIC", cls.examples / "plugin/plugin.c", "-o", out / "plugin.so")
        return out

    def each_program(self, test):
        for way, folder in self.ways.items():
            for source in filter(lambda one: (folder / one.stem).exists(), SOURCES) if way == "cc" else SOURCES:
                with self.subTest(program=source.stem, way=way):
                    test(source.stem, folder / source.stem)

    def test_all_are_installed(self):
        names = sorted(path.relative_to(EXAMPLES) for path in EXAMPLES.rglob("*") if path.is_file())
        self.assertEqual(sorted(path.relative_to(self.examples) for path in self.examples.rglob("*") if path.is_file()),
                         names)

    def test_right(self):
        def right(name, program):
            self.assertEqual(run(program, env=self.environment), f"{name}: right\n")

        self.each_program(right)

    def test_mistake_is_seen(self):
        def seen(name, program):
            for _ in range(5):  # always
                self.assertRegex(run(program, "--mistake", status=1, env=self.environment), f"^{name}: WRONG: ")

        self.each_program(seen)

    def test_a_pattern_without_its_essence_is_seen(self):
        """A program that says "right" whatever was taken out of it checks nothing: stall_updates once did, without its stalls."""
        self.assertEqual(sorted(FAULTS), [source.stem for source in SOURCES])
        flags = run("pkg-config", "--cflags", "--libs", "prudence", env=self.environment).split()
        folder = self.ways["cc"] / "faults"  # plugin_unload searches for the plug-in in its own folder
        folder.mkdir()
        shutil.copy(self.ways["cc"] / "plugin.so", folder)
        for source in SOURCES:
            head, mark, after = source.read_text().partition("- after */")
            for what, edits in FAULTS[source.stem].items():
                with self.subTest(program=source.stem, fault=what):
                    changed = after
                    for old, new in edits:
                        self.assertEqual(changed.count(old), 1, old)
                        changed = changed.replace(old, new)
                    (folder / source.name).write_text(head + mark + changed)
                    run("cc", "-O1", f"-I{EXAMPLES}", folder / source.name, *flags, "-o", folder / source.stem)
                    done = subprocess.run([folder / source.stem], env=self.environment, capture_output=True, text=True, timeout=60)
                    self.assertNotIn("right", done.stdout)
                    self.assertNotEqual(done.returncode, 0)

    def test_measure(self):
        def measures(_, program):
            out = run(program, "--measure", "1", env=self.environment)
            rows = re.findall(r"^ +\d+ +(\d+) % +(\d+\.\d) +(\d+\.\d)$", out, re.M)
            self.assertEqual([row[0] for row in rows][:3], ["0", "1", "10"], out)
            for _, before, after in rows:
                self.assertGreater(float(before), 0, out)
                self.assertGreater(float(after), 0, out)

        self.each_program(measures)

    def test_figures_are_written_into_the_page(self):
        copy = Path(self.folder.name) / "copy"
        shutil.copytree(EXAMPLES, copy / "lab/examples")
        (copy / "docs/results/data/examples").mkdir(parents=True)
        run(ROOT / "lab/run/examples", self.ways["CMake"], "1", "--root", copy, env=self.environment)
        before, after = (costs_in(folder / COSTS.relative_to(ROOT)) for folder in (ROOT, copy))
        self.assertEqual([after[0], *(row[0] for row in after[1:])], [before[0], *(row[0] for row in before[1:])])
        self.assertTrue(all(re.fullmatch(r"[\d.,]+", cell) for row in after[1:] for cell in row[1:]))

    def test_other_arguments_are_refused(self):
        def refused(_, program):
            for arguments in (["--mistakes"], ["--mistake", "1"], ["--measure", "x"], ["--measure", "1", "2"]):
                self.assertIn("usage: ", run(program, *arguments, status=2, env=self.environment))

        self.each_program(refused)


if __name__ == "__main__":
    unittest.main()
