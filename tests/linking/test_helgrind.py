#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 10
"""The installed suppressions (cmake/prudence.supp) leave of Helgrind's reports those of the program's own functions. With PRUDENCE_MODELS=deep
(make test-long) only."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
PLACE = re.compile(r"Possible data race[^\n]*\n(?:==\d+== Locks held[^\n]*\n)?==\d+==    at 0x\w+: (.*)")


@unittest.skipUnless(os.environ.get("PRUDENCE_MODELS") == "deep", "make test-long runs this")
class Helgrind(unittest.TestCase):
    def setUp(self):
        if not shutil.which("valgrind"):
            if os.environ.get("CI"):
                sys.exit("valgrind is needed (tools/setup installs it)")
            self.skipTest("valgrind is missing")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.program = self.folder / "program"
        subprocess.run(["gcc", "-O1", "-g", f"-I{ROOT}/include", HERE / "program_small.c", "-o", self.program, "-L", BUILD,
                        "-lprudence", f"-Wl,-rpath,{BUILD}", "-pthread"], check=True)

    def places(self, *options):
        """Returns the place of the first of each two accesses."""
        done = subprocess.run(["valgrind", "--tool=helgrind", *options, self.program, "swap"], text=True, timeout=200,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertIn("\ndone\n", done.stdout)
        return PLACE.findall(done.stdout)

    def test_the_installed_suppressions(self):
        of_library = re.compile(r"prudence_|.*libprudence|\w+ \((?!program_small\.c)")
        self.assertTrue(any(of_library.match(place) for place in self.places()))
        left = self.places(f"--suppressions={ROOT}/cmake/prudence.supp")
        self.assertTrue(left)
        self.assertEqual([place for place in left if of_library.match(place)], [])


if __name__ == "__main__":
    unittest.main()
