#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""docs/reference/rules.md names all eleven rules, and nothing that is not there: each function is defined under src or
include, each test and file stands in the tree, and no test of a rule is skipped."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reference/rules.md").read_text()
ROWS = dict(re.findall(r"^\| (\d+) (\|.*)$", PAGE, re.M))
CODE = "\n".join(path.read_text() for folder in ("src", "include") for path in sorted((ROOT / folder).rglob("*.[ch]")))
TESTS = {f"{path.parent.name}_{path.stem}" for path in (ROOT / "tests").rglob("test_*.c")}


def named(text):
    return re.findall(r"`([^`]+)`", text)


class Rules(unittest.TestCase):
    def test_all_are_there(self):
        self.assertEqual(list(ROWS), [str(number) for number in range(1, 12)])

    def test_functions_exist(self):
        for number, row in ROWS.items():
            for name in named(row.split("|")[2]):
                self.assertRegex(CODE, rf"\b{name}\([^;]*\)\s*\{{", f"rule {number}")

    def test_tests_exist(self):
        for number, row in ROWS.items():
            for name in named(row.split("|")[3]):
                self.assertIn(name, TESTS, f"rule {number}")

    def test_no_test_is_left_out(self):
        for name in sorted(TESTS):
            if of_rule := re.search(r"_test_rule(\d\d)_", name):
                self.assertIn(f"`{name}`", ROWS[str(int(of_rule[1]))])

    def test_files_exist(self):
        for name in named(PAGE):
            if "/" in name:
                self.assertTrue((ROOT / name).is_file(), name)


if __name__ == "__main__":
    unittest.main()
