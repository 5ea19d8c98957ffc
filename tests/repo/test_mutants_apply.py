#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each fault of tests/mutants can still be put into the source, and names a case or a test that is there: a list that
cannot be applied would say less with each change. Whether each is found is asked by tools/test/mutants (make test-long)."""

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/mutants"))
import mutants  # noqa: E402 (the path comes first)


class Mutants(unittest.TestCase):
    def test_each_applies(self):
        for mutant in mutants.load():
            with self.subTest(mutant["name"]):
                self.assertNotEqual(mutants.mutated(mutant), (ROOT / mutant["file"]).read_text())

    def test_each_names_what_finds_it(self):
        cases = "".join(path.read_text() for path in (ROOT / "tests/model/source").glob("*_cases.c"))
        for mutant in mutants.load():
            with self.subTest(mutant["name"]):
                if "case" in mutant:
                    self.assertIn(f'"{mutant["case"]}"', cases)
                else:
                    layer, _, behaviour = mutant["test"].removeprefix("inline_").removesuffix("_on_malloc").partition("_")
                    found = [*(ROOT / "tests").glob(f"**/{layer}/{behaviour}.*"), *(ROOT / "tests/guests").glob(f"{mutant['test']}.c"),
                             *(ROOT / "tests/torture").glob(f"{mutant['test']}.c")]
                    self.assertTrue(found, mutant["test"])

    def test_names_are_unique(self):
        names = [mutant["name"] for mutant in mutants.load()]
        self.assertEqual(sorted(names), sorted(set(names)))


if __name__ == "__main__":
    unittest.main()
