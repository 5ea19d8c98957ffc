#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tools/check/abi finds changes that break programs: a library of two functions, and possible changes of it.

Without abigail-tools this is skipped, or with CI in the environment a failure.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = """
#include <stddef.h>
struct figures { size_t size; int first; };
struct hidden;
int fill(struct figures *figures);
int use(struct hidden *hidden);
"""
SOURCE = """
#include "figures.h"
struct hidden { int member; };
int fill(struct figures *figures) { return figures->first; }
int use(struct hidden *hidden) { return hidden->member; }
"""
VERSIONS = "OLD { fill; use; };"


class Abi(unittest.TestCase):
    dump = None  # of the library as it is above

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "public").mkdir()
        if not Abi.dump:
            self.assertEqual(self.check("--update")[0], 0)
            Abi.dump = (self.folder / "dump").read_text()
        (self.folder / "dump").write_text(Abi.dump)

    def check(self, *options, header=HEADER, source=SOURCE, versions=VERSIONS):
        (self.folder / "public/figures.h").write_text(header)
        (self.folder / "source.c").write_text(source)
        (self.folder / "versions").write_text(versions)
        library = self.folder / "library.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-g", f"-I{self.folder}/public", f"-Wl,--version-script={self.folder}/versions",
                        self.folder / "source.c", "-o", library], check=True)
        done = subprocess.run([ROOT / "tools/check/abi", *options, "--dump", self.folder / "dump", "--headers",
                               self.folder / "public", library], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def expect_break(self, *options, **changes):
        status, said = self.check(*options, **changes)
        self.assertEqual(status, 1, said)
        self.assertIn("FAILED: the changes above break programs", said)

    def test_no_folder_of_this_machine_is_in_the_dump(self):
        for text in (Abi.dump, (ROOT / "tests/repo/libprudence.abi").read_text()):
            self.assertNotRegex(text, " path='[^']*/")

    def test_the_same(self):
        self.assertEqual(self.check(), (0, "check-abi: 2 symbols, ok\n"))

    def test_a_private_structure(self):
        self.assertEqual(self.check(source=SOURCE.replace("int member;", "long other; int member;"))[0], 0)

    def test_a_structure_that_is_changed(self):
        self.expect_break("--update", header=HEADER.replace("int first;", "long before; int first;"))
        self.assertEqual(self.check("--update", "--changed", header=HEADER.replace("int first", "long first"))[0], 0)

    def test_a_function_that_is_gone(self):
        self.expect_break(source=SOURCE.replace("int use(", "int used("))

    def test_a_function_of_another_type(self):
        self.expect_break(header=HEADER.replace("int fill", "long fill"), source=SOURCE.replace("int fill", "long fill"))

    def test_another_version(self):
        self.expect_break(versions="NEW { fill; use; };")

    def test_a_function_that_is_new(self):
        more = {"source": SOURCE + "int more(void) { return 1; }\n", "versions": VERSIONS + " NEW { more; } OLD;"}
        status, said = self.check(**more)
        self.assertEqual(status, 1)
        self.assertIn("FAILED: the dump does not have the symbols above: tools/check/abi --update", said)
        self.assertEqual(self.check("--update", **more)[0], 0)
        self.assertEqual(self.check(**more), (0, "check-abi: 3 symbols, ok\n"))


if __name__ == "__main__":
    if not shutil.which("abidw"):
        print("there is no abidw (Debian: abigail-tools)", file=sys.stderr)
        sys.exit(1 if os.environ.get("CI") else 77)
    unittest.main()
