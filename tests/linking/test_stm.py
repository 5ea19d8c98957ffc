#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 5
"""Programs for libscm (<stm.h>, <stm-debug.h>, <libscm.h>) are compiled against <prudence/scm-compat> as they are, by both compilers, as C and
C++, and linked with each form of the library; they behave as before, and a first tick makes a thread take part."""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
INCLUDE = [f"-I{ROOT}/include/prudence/scm-compat", f"-I{ROOT}/include"]
LIBRARIES = {"shared": ["-L", BUILD, "-lprudence", f"-Wl,-rpath,{BUILD}"], "static": [BUILD / "libprudence.a"]}
LANGUAGES = {"c": ["-x", "c", "-std=gnu11"], "c++": ["-x", "c++", "-std=c++17"]}
MADE = 3 * (200 + 67) # threads, their own records and those that they share
STRICT = "-O2 -Wall -Wextra -Wpedantic -Wshadow -Werror".split()


def compilers():
    found = [name for name in ("gcc", "clang") if shutil.which(name)]
    if len(found) < 2 and os.environ.get("CI"):
        sys.exit("gcc and clang are needed (tools/setup installs both)")
    return found


def compile_program(compiler, language, library, to, *sources):
    command = [compiler, *STRICT, *INCLUDE, *LANGUAGES[language], *sources, "-x", "none", *LIBRARIES[library], "-pthread", "-o", to]
    return subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


class Programs(unittest.TestCase):
    def test_run_as_they_are(self):
        with tempfile.TemporaryDirectory() as folder:
            for compiler, language, library in itertools.product(compilers(), LANGUAGES, LIBRARIES):
                program = Path(folder, "program")
                with self.subTest(compiler=compiler, language=language, library=library):
                    built = compile_program(compiler, language, library, program, HERE / "program_stm.c")
                    self.assertEqual((built.returncode, built.stdout), (0, ""))
                    done = subprocess.run([program], text=True, timeout=60, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(done.stdout, f"{MADE} made, {MADE} finalized, figures agree\nerrno: ERANGE\n")
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr) # no tick was refused
                    self.assertIn("scm_refresh: extension 5000", done.stderr)

    def test_clocks_and_regions_by_number(self):
        with tempfile.TemporaryDirectory() as folder:
            other = Path(folder, "other.c")
            other.write_text(f'#define OTHER_FILE\n#include "{HERE}/program_libscm.c"\n')
            for compiler, language, library in itertools.product(compilers(), LANGUAGES, LIBRARIES):
                program = Path(folder, "program")
                with self.subTest(compiler=compiler, language=language, library=library):
                    built = compile_program(compiler, language, library, program, HERE / "program_libscm.c", other)
                    self.assertEqual((built.returncode, built.stdout), (0, ""))
                    done = subprocess.run([program], text=True, timeout=60, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    self.assertEqual((done.returncode, done.stdout), (0, "numbers agree\n"), done.stderr)
                    self.assertRegex(done.stderr, r"\A.*: scm_region_alloc: region \S+ has (ended|expired).*\n\Z")

    def test_headers_alone_and_in_any_order(self):
        for compiler, order in itertools.product(compilers(), itertools.permutations(["stm.h", "libscm.h", "prudence/scm.h"])):
            text = "".join(f"#include <{header}>\n" for header in order * 2) + "void (*tick)(void) = scm_tick;\n"
            done = subprocess.run([compiler, *STRICT, *INCLUDE, "-x", "c", "-c", "-", "-o", os.devnull], input=text, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
