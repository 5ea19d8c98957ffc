#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The kill matrix (tests/mutants/matrix.py): which tests reach a fault, when a test kills it, which rows are kept, and the report."""

import csv
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/mutants"))
import matrix  # noqa: E402 (the path comes first)
import mutants  # noqa: E402
import trial  # noqa: E402

SOURCE = """#define LIMIT 4

static int below(int number)
{
    return number < LIMIT;
}

int main(void)
{
    return !below(3);
}
"""
LIMIT = {"name": "a lower limit", "file": "src/core/a.c", "test": "core_test_a", "edits": [["LIMIT 4", "LIMIT 3"]]}
BELOW = {"name": "up to the limit", "file": "src/core/a.c", "function": "below", "test": "core_test_a", "edits": [["number <", "number <="]]}
ABORTS = """#include <stdlib.h>
int main(int count, char **words)
{
    if (count > 1)
        return 0;
    abort();
}
"""


class Toy(unittest.TestCase):
    """A tree with one source."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.table = self.root / "matrix.csv"
        (self.root / "src/core/os/kernel").mkdir(parents=True)
        (self.root / "src/core/a.c").write_text(SOURCE)
        (self.root / "src/core/b.c").write_text("int b;\n")
        (self.root / "src/core/os/kernel/c.c").write_text("int c;\n")
        for module in (mutants, trial):
            self.patch(module, "ROOT", self.root)
        # the default is the root of the tree
        self.patch(mutants, "mutated", lambda mutant, mutated=mutants.mutated: mutated(mutant, self.root))

    def patch(self, *what):
        patch = unittest.mock.patch.object(*what)
        patch.start()
        self.addCleanup(patch.stop)


class Reached(Toy):
    def reaching(self, mutant, **lines):
        return matrix.reaching(mutant, {test: {"lines": {"src/core/a.c": numbers}} for test, numbers in lines.items()})

    def test_the_line_of_the_fault(self):
        self.assertEqual(self.reaching(BELOW, here=[3, 5], there=[3, 10]), ["here"])

    def test_the_function_if_no_test_reaches_the_line(self):
        self.assertEqual(self.reaching(BELOW, head=[3], elsewhere=[10]), ["head"])

    def test_the_file_if_the_line_has_no_code(self):
        self.assertEqual(self.reaching(LIMIT, one=[5], two=[10]), ["one", "two"])

    def test_other_files_do_not_count(self):
        self.assertEqual(matrix.reaching(LIMIT, {"other": {"lines": {"src/core/b.c": [1]}}}), [])

    def test_a_process_that_aborts_is_counted(self):
        (self.root / "aborts.c").write_text(ABORTS)
        dump = self.root / "dump.o"
        subprocess.run(["gcc", "-c", ROOT / "tests/mutants/dump.c", "-o", dump], check=True)
        subprocess.run(["gcc", "--coverage", "-Wl,--wrap=abort,--wrap=_exit", "aborts.c", dump, "-o", "aborts"], cwd=self.root, check=True)
        self.assertNotEqual(subprocess.run([self.root / "aborts"]).returncode, 0)
        self.assertEqual(matrix.collect(self.root, [self.root]), {"aborts.c": [2, 4, 6]})
        self.assertEqual(matrix.collect(self.root, [self.root]), {})


    def test_a_slow_test_is_measured_again_if_more_time_is_allowed(self):
        file = self.root / "one.json"
        self.assertIsNone(matrix.measured(file, 2))
        file.write_text('{"seconds": null, "lines": {}, "longest": 2}')
        self.assertIsNotNone(matrix.measured(file, 1))
        self.assertIsNone(matrix.measured(file, 3))
        file.write_text('{"seconds": 1.5, "lines": {}, "longest": 2}')
        self.assertIsNotNone(matrix.measured(file, 3))


class Copied:
    """Instead of a copy of the tree: says of each test what its next runs do."""

    def __init__(self, **runs):
        self.runs = {test: iter(passed) for test, passed in runs.items()}

    def passes(self, test, *_, **__):
        return next(self.runs[test])


class Killed(Toy):
    def row(self, *tests, **runs):
        return matrix.try_all(Copied(**runs), BELOW, dict.fromkeys(tests, 0.1))

    def test_only_who_fails_twice_kills(self):
        row = self.row("passes", "once", "twice", passes=[True], once=[False, True], twice=[False, False])
        self.assertEqual((row["killed_by"], row["reached"], row["tried"]), ("twice", 3, 3))

    def test_the_rest_is_left_out_after_tests_that_hang(self):
        self.patch(matrix, "SHORTEST", -1) # so each failure took too long
        tests = [f"hangs{number}" for number in range(matrix.HUNG + 3)]
        row = self.row(*tests, **{test: [False] for test in tests})
        self.assertEqual((row["reached"], row["tried"]), (len(tests), matrix.HUNG))


class Table(Toy):
    def rows(self, *mutants_and_killers):
        return [{"mutant": mutant["name"], "file": mutant["file"], "identity": trial.identity(mutant), "reached": "3", "tried": "3",
                 "killed_by": killers} for mutant, killers in mutants_and_killers]

    def test_a_row_is_kept_until_the_source_changes(self):
        rows = self.rows((LIMIT, ""), (BELOW, "core_test_a core_test_b"))
        matrix.write(self.table, rows)
        self.assertEqual(list(matrix.read(self.table, [LIMIT, BELOW]).values()), rows)
        self.assertEqual(list(matrix.read(self.table, [BELOW])), [BELOW["name"]])
        (self.root / "src/core/a.c").write_text(SOURCE + "\n")
        self.assertEqual(matrix.read(self.table, [LIMIT, BELOW]), {})

    def test_a_row_is_kept_until_the_test_changes(self):
        test = self.root / "tests/core/base/test_a.c"
        test.parent.mkdir(parents=True)
        for name in ("base_test_a", "inline_base_test_a"):
            mutant = {**LIMIT, "test": name}
            test.write_text("old")
            matrix.write(self.table, self.rows((mutant, "")))
            self.assertEqual(list(matrix.read(self.table, [mutant])), [LIMIT["name"]])
            test.write_text("new")
            self.assertEqual(matrix.read(self.table, [mutant]), {})

    def test_no_table_is_no_rows(self):
        self.assertEqual(matrix.read(self.table, [LIMIT]), {})

    def test_each_layer_has_its_turn(self):
        many = [{"name": f"{layer} {number}", "file": f"src/{layer}/x.c"} for layer, count in (("core/base", 1), ("guard", 30)) for number in range(count)]
        self.assertEqual({mutant["file"] for mutant in matrix.by_turns(many)[:2]}, {"src/core/base/x.c", "src/guard/x.c"})
        self.assertEqual(len(matrix.by_turns(many)), 31)

    def test_tests_that_alone_kill_a_mutant(self):
        rows = self.rows((LIMIT, "core_test_a"), (BELOW, "core_test_a core_test_b"))
        self.assertEqual(matrix.alone(rows), {"core_test_a": 1, "core_test_b": 0})

    def test_mutants_and_code_of_each_layer(self):
        found = matrix.densities(self.root, [LIMIT, BELOW], lambda text: text.count("\n"))
        self.assertEqual(found, [("core", SOURCE.count("\n") + 1, 2)]) # no code of the kernel's

    def test_the_table_of_the_tree(self):
        with (ROOT / "tests/mutants/matrix.csv").open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            self.assertEqual(tuple(rows.fieldnames), matrix.COLUMNS)
            for row in rows:
                with self.subTest(row["mutant"]):
                    self.assertLessEqual(len(row["killed_by"].split()), int(row["tried"]))
                    self.assertLessEqual(int(row["tried"]), int(row["reached"]))


if __name__ == "__main__":
    unittest.main()
