#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (gdb steps through a program)
# ctest: cost 10
"""gdb steps through allocations: with a software watchpoint, which steps over every instruction of the program, and by `next` over a line
into which a sequence was inlined. Sequences that an interruption sends back to their start would never end (docs/adr/0001).

Skipped where there is no gdb, or it may not trace.
"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()


@unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
class Debugger(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)

    def build(self, *flags):
        program = self.folder / "program"
        subprocess.run(["cc", "-O2", "-g", *flags, f"-I{ROOT}/include", HERE / "program_stepped.c", f"-L{BUILD}", "-lprudence-malloc",
                        f"-Wl,-rpath,{BUILD}", "-o", program], check=True)
        return program

    def gdb(self, program, *commands):
        """No time limit: a sequence that never ends runs into that of the test."""
        words = [word for command in ("set startup-with-shell off", "set confirm off", "break begin", "run", *commands)
                 for word in ("-ex", command)]
        done = subprocess.run(["gdb", "-q", "-batch", "-nx", *words, program], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "PRUDENCE_OPTIONS": "background=0"}).stdout
        if not re.search(r"^Breakpoint 1[.1]*, begin", done, re.M):
            if "ptrace" in done:
                self.skipTest("gdb may not trace here")
            self.fail(done)
        return done

    def test_a_software_watchpoint_ends(self):
        for flags in (), ("-DINLINED",):
            done = self.gdb(self.build(*flags), "set can-use-hw-watchpoints 0", "watch watched", "continue", "delete", "continue")
            self.assertIn("Watchpoint 2: watched", done)
            self.assertIn("Old value = 0\nNew value = 1\n", done)
            self.assertIn("exited normally", done)

    def test_next_passes_an_inlined_sequence(self):
        lines = (HERE / "program_stepped.c").read_text().splitlines()
        line = next(number for number, text in enumerate(lines, 1) if "/* next */" in text)
        done = self.gdb(self.build("-DINLINED", "-O0"), f"tbreak program_stepped.c:{line}", "continue", "next", "next", "continue")
        self.assertIn(f"\n{line}\t", done)
        self.assertIn(f"\n{line + 1}\t", done)
        self.assertIn("exited normally", done)


if __name__ == "__main__":
    unittest.main()
