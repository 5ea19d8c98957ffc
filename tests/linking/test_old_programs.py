#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that were compiled before symbols had versions (revision a08bd7f0 and earlier) run, or are refused with a sentence;
new programs ask for a version (docs/reference/abi.md)."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "tools"))
from measure.preload import ld_preload  # noqa: E402 (the path comes first)


class OldPrograms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """The program's names have no versions, because those of the library beside it had none."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.program, library, source = (Path(folder.name, name) for name in ("program", "libprudence.so", "library.c"))
        names = set(re.findall(r"\b((?:prudence|scm)_\w+)\(", (HERE / "old_program.c").read_text()))
        source.write_text("".join(f"void {name}(void) {{}}\n" for name in sorted(names)))
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libprudence.so.0", source, "-o", library], check=True)
        subprocess.run(["cc", "-O1", HERE / "old_program.c", library, "-o", cls.program], check=True)

    def run_it(self, *arguments, preload=""):
        names = {**os.environ, "LD_LIBRARY_PATH": str(BUILD), "LD_PRELOAD": ld_preload(preload)}
        done = subprocess.run([self.program, *arguments], env=names, text=True, timeout=60, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def test_what_did_not_change_runs(self):
        for preload in "", BUILD / "libprudence-malloc.so":
            self.assertEqual(self.run_it(preload=preload), (0, "runs\n"))

    def test_what_changed_is_refused_by_name(self):
        for word, name in ("hash", "prudence_hash_create"), ("ids", "prudence_id_insert"), ("routes", "prudence_routes_create"):
            for preload in "", BUILD / "libprudence-malloc.so":
                status, said = self.run_it(word, preload=preload)
                self.assertEqual(status, -6, said)
                self.assertIn(f"{name}: this program was compiled for an earlier revision", said)

    def test_new_programs_ask_for_a_version(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "program")
            subprocess.run(["cc", f"-I{ROOT}/include", HERE / "program.c", BUILD / "libprudence.so", "-o", program, "-pthread"], check=True)
            said = subprocess.run(["readelf", "-VW", program], check=True, text=True, capture_output=True).stdout
        self.assertRegex(said, r"Name: PRUDENCE_0\.1 ")


if __name__ == "__main__":
    unittest.main()
