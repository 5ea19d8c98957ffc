#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Numbers of README.md and of pages are those of their tables (tools/check/numbers), and each table is a rectangle with named columns."""

import csv
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/check/numbers"
FILES = ("README.md", "docs/reference/short-term-memory.md", "docs/reference/hardened.md", "docs/results-acdc.md", "docs/results/data/evaluate/pairs.csv",
         "docs/results/data/acdc/findings.csv", "docs/results/data/bench/malloc.csv", "docs/results/data/bench/replace.csv",
         "docs/results/data/kernel-evaluate/throughput.csv",
         "tests/instructions/short_term.txt", "tests/instructions/malloc_fast_paths.txt")


class Tree(unittest.TestCase):
    def test_it_is_up_to_date(self):
        done = subprocess.run([TOOL], text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_each_table_is_a_rectangle_whose_columns_have_names(self):
        kept = sorted(ROOT.glob("docs/results/data/*/*.csv"))
        self.assertTrue(kept)
        for path in kept:
            with self.subTest(path.name), path.open() as file:
                names, *rows = csv.reader(file)
                self.assertTrue(rows)
                self.assertTrue(all(names) and len(set(names)) == len(names), names)
                self.assertEqual({len(row) for row in rows}, {len(names)})


class Changes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in FILES:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)

    def change(self, name, old, new):
        path = self.root / name
        changed = re.sub(old, new, path.read_text(), count=1, flags=re.M)
        self.assertNotEqual(changed, path.read_text())
        path.write_text(changed)

    def run_it(self, *words):
        done = subprocess.run([TOOL, *words, self.root], text=True, capture_output=True, check=False)
        return done.returncode, done.stdout

    def test_a_table_that_changed_is_written_into_the_page(self):
        before = (self.root / "README.md").read_text()
        self.change("docs/results/data/bench/malloc.csv", r"^prudence,[\d.]+", "prudence,0.123")
        self.change("docs/results/data/evaluate/pairs.csv", r'^(prudence,"pairs, 512 B",)"[\d.]+', r'\1"1234.5')
        status, said = self.run_it()
        self.assertEqual(status, 1)
        self.assertIn("README.md: 'Prudence takes {} of glibc's time': not the numbers of its table", said)
        self.assertIn(" sentences, 2 failures", said)
        self.assertEqual((self.root / "README.md").read_text(), before)
        self.assertEqual(self.run_it("--update")[0], 0)
        after = (self.root / "README.md").read_text()
        self.assertIn("takes 0.12 of glibc's time", after)
        self.assertRegex(after, r"\| \*\*Prudence\*\* \| \*\*[\d.]+\*\* \| \*\*1,234\*\* \|")
        self.assertEqual(self.run_it()[0], 0)

    def test_words_that_are_not_there_once_are_named(self):
        self.change("docs/reference/short-term-memory.md", r"A lazy tick executes", "A tick executes")
        with (self.root / "README.md").open("a") as page:
            page.write("As malloc, Prudence takes 1 of glibc's time.\n")
        status, said = self.run_it("--update")
        self.assertEqual(status, 1)
        self.assertIn("'A lazy tick executes {} instructions': stands there 0 times", said)
        self.assertIn("'Prudence takes {} of glibc's time': stands there 2 times", said)

    def test_a_row_that_is_gone_is_named(self):
        self.change("docs/results/data/bench/malloc.csv", r"^jemalloc,", "other,")
        status, said = self.run_it()
        self.assertEqual(status, 1)
        self.assertIn("jemalloc holds {} times': ", said)


if __name__ == "__main__":
    unittest.main()
