#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 12
"""Programs and plug-ins of C++: their retired objects end before the things that these use, and before the code is unloaded; files with and without
exceptions have the same definitions."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
LIBRARY = ("-L", BUILD, "-lprudence", f"-Wl,-rpath,{BUILD}", "-pthread", "-ldl")
WAYS = {1: "rcu_ptr", 2: "rcu_retire", 3: "hazard pointers", 4: "tables in tables", 5: "deleters that retire"}
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def compile(self, compiler, source, *words, to):
        libraries = () if "-c" in words else LIBRARY
        return self.build(compiler, "-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", *words, HERE / source,
                          *libraries, to=to)

    def link(self, compiler, *objects):
        return self.build(compiler, *objects, *LIBRARY, to="linked")

    def build(self, *command, to):
        done = subprocess.run([str(word) for word in (*command, "-o", self.folder / to)], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        return self.folder / to

    def run_program(self, *command):
        done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)
        return done.returncode, done.stdout

    def test_plugins_are_unloaded(self):
        for compiler in COMPILERS:
            host = self.compile(compiler, "program_plugins.cpp", to="host")
            for way, name in WAYS.items():
                with self.subTest(compiler=compiler, way=name):
                    words = [f"-DWAY={way}", "-shared", "-fPIC"]
                    if compiler == "g++":
                        words.append("-fno-gnu-unique")  # or the C library keeps modules with inline variables for ever
                    plugin = self.compile(compiler, "plugin_retires.cpp", *words, to="plugin.so")
                    self.assertEqual(self.run_program(host, plugin), (0, "ok\n"))

    def test_files_without_exceptions_change_no_other(self):
        for compiler in COMPILERS:
            for level in "-O0", "-O2":
                halves = [self.compile(compiler, source, level, "-c", *words, to=source + ".o") for source, words in
                          (("program_no_exceptions.cpp", ("-fno-exceptions",)), ("program_exceptions.cpp", ()))]
                for order in halves, halves[::-1]:
                    with self.subTest(compiler=compiler, level=level, first=order[0].name):
                        program = self.link(compiler, *order)
                        status, said = self.run_program(program)
                        said = "".join(line for line in said.splitlines(True) if not line.startswith("prudence: "))
                        self.assertEqual((status, said), (0, "length\nlength\nids\nids\nname\nname\n"))

    def test_globals_end_after_what_uses_them(self):
        for kind in ("-fPIE", "-pie"), ("-fPIC",):
            program = self.compile(COMPILERS[0], "program_exits.cpp", *kind, to="exits")
            for arguments in (), ("hazard",), ("hazard", "thread"):
                with self.subTest(kind=kind[0], arguments=arguments):
                    self.assertEqual(self.run_program(program, *arguments), (0, "5 ended\n"))


if __name__ == "__main__":
    unittest.main()
