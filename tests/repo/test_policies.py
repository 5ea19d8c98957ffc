#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The page and the table of policies are those of the sources (tools/check/policies), which fails when a constant lacks unit or reason."""

import csv
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/check/policies"
SOURCE = "/* Policy: how\n * long? */\n#define PAUSE_NS UINT64_C(20000) /* ns; a turn of\n * a reader */\n#define PART 8 /* part; of all */\n#define NONE UINT64_MAX\n"
MUTANTS = '[[mutant]]\nfile = "src/core/a.c"\nedits = [["PAUSE_NS", "0"]]\ntest = "slab_test_a"\n'


class Tree(unittest.TestCase):
    def test_it_is_up_to_date(self):
        done = subprocess.run([TOOL], text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_each_file_of_reclaim_with_constants_is_a_policy(self):
        with (ROOT / "docs/reference/policies.csv").open() as table:
            found = {row["file"] for row in csv.DictReader(table)}
        numeric = {f"slab/reclaim/{path.name}" for path in (ROOT / "src/core/slab/reclaim").glob("*.[ch]") if "\n#define " in path.read_text().split("#include", 1)[-1]}
        self.assertLessEqual({name for name in numeric if not name.endswith(".h")}, found)


class Faults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("tests/mutants/mutants.toml", MUTANTS)
        self.write("docs/reference/options.md", "")
        self.write("src/core/a.c", SOURCE)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_tool(self, *arguments):
        return subprocess.run([TOOL, *arguments, self.root], text=True, capture_output=True, check=False)

    def fails(self, message):
        done = self.run_tool()
        self.assertEqual(done.returncode, 1)
        self.assertIn(message, done.stdout)

    def test_update_writes_what_the_check_wants(self):
        self.fails("docs/reference/policies.md: it is not that of the sources")
        self.assertEqual(self.run_tool("--update").returncode, 0)
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertEqual((self.root / "docs/reference/policies.csv").read_text().splitlines()[1:],
                         ["how long?,a.c,PAUSE_NS,ns,20 us,a turn of a reader,slab_test_a", "how long?,a.c,PART,part,1/8,of all,slab_test_a"])
        self.assertIn("| how long? | `a.c` | 2 |\n", (self.root / "docs/reference/policies.md").read_text())

    def test_stale(self):
        self.run_tool("--update")
        self.write("src/core/a.c", SOURCE.replace("20000", "30000"))
        self.fails("docs/reference/policies.csv: it is not that of the sources")

    def test_without_unit_or_reason(self):
        for comment in ("", " /* a reason */", " /* ns */", " /* furlongs; a reason */"):
            self.write("src/core/a.c", SOURCE + f"#define MORE 3{comment}\n")
            self.fails("src/core/a.c:7: MORE has no comment of the form")
            self.assertEqual(self.run_tool("--update").returncode, 1)

    def test_without_a_policy(self):
        self.write("src/core/a.c", "int a;\n")
        self.run_tool("--update")
        self.fails("check-policies: 0 constants")


if __name__ == "__main__":
    unittest.main()
