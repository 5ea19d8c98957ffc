#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A program may have any name that is not public: the static libraries keep theirs to themselves (docs/adr/0026).

The program defines every name that files of the library share, is linked with each static library, and runs. And the
static libraries define the public names, all of them and no other, except those that their members share."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
INTERNAL = BUILD / "tests/libprudence_internal.a"
STATIC, STATIC_MALLOC = BUILD / "libprudence.a", BUILD / "libprudence-malloc.a"
# Only the shared library has these: the code that finds the program's own functions of these names behind it, and C++'s operators.
SHARED_ONLY = {"_ZdaPv", "_ZdaPvm", "_ZdlPv", "_ZdlPvSt11align_val_t", "_ZdlPvm", "_Znwm", "__register_atfork", "__vfork", "madvise", "vfork"}


def defined(library):
    names = subprocess.run(["nm", "-g", "--defined-only", library], check=True, text=True, capture_output=True).stdout
    found = set(re.findall(r"^[0-9a-f]+ \w (\S+)$", names, re.M)) - {"_.stapsdt.base"} # notes of probes refer to it; no name of C
    return {name for name in found if not name.startswith("prudence_private_")} # hidden (test_members.py)


def listed(name):
    return {line.split()[0] for line in (ROOT / "cmake" / name).read_text().splitlines()}


class Names(unittest.TestCase):
    def test_public_names(self):
        public = listed("exported-symbols.txt")
        self.assertEqual(defined(STATIC), public)
        self.assertEqual(defined(STATIC_MALLOC), public | listed("exported-symbols-malloc.txt") - SHARED_ONLY)

    def test_programs_ask_for_a_version(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "program")
            subprocess.run(["cc", f"-I{ROOT}/include", HERE / "program.c", BUILD / "libprudence.so", "-o", program, "-pthread"], check=True)
            said = subprocess.run(["readelf", "-VW", program], check=True, text=True, capture_output=True).stdout
        self.assertRegex(said, r"Name: PRUDENCE_0\.1 ")

    def test_no_function_is_looked_up_late(self):
        """In a signal handler the dynamic linker would need more stack than there may be."""
        for library in BUILD / "libprudence.so", BUILD / "libprudence-malloc.so":
            head = subprocess.run(["readelf", "-d", library], check=True, text=True, capture_output=True).stdout
            self.assertRegex(head, r"FLAGS_1\).*\bNOW\b")

    def test_a_program_with_all_our_names(self):
        shared = defined(INTERNAL) - defined(STATIC)
        self.assertGreater(len(shared), 300)
        with tempfile.TemporaryDirectory() as folder:
            names = Path(folder, "names.c")
            names.write_text("".join(f"char {name}[64];\n" for name in sorted(shared)))
            for library in STATIC, STATIC_MALLOC:
                whole = [[f"-Wl,--whole-archive,{library},--no-whole-archive"]] if library == STATIC else []
                for way in [library], ["-static", library], *whole:
                    program = Path(folder, "program")
                    subprocess.run(["cc", "-O2", "-rdynamic", f"-I{ROOT}/include", HERE / "program.c", names, *way,
                                    "-o", program, "-pthread"], check=True)
                    done = subprocess.run([program], check=True, text=True, capture_output=True, timeout=100,
                                          env={**os.environ, "PRUDENCE_OPTIONS": "latent_limit=1M,wait_max=50s"})
                    self.assertIn("grace periods", done.stdout)


if __name__ == "__main__":
    unittest.main()
