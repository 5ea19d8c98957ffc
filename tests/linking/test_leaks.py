#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 12
"""Values that only a structure of ours has are no leaks for LeakSanitizer and Valgrind's memcheck, and true leaks are found."""

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
SOURCE = HERE / "program_values.c"
LIBRARY = ("-L", BUILD, "-lprudence", f"-Wl,-rpath,{BUILD}", "-pthread")
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"
# Structures that link nodes in the program's objects. Memcheck finds pointers into the middle of these, and says "possibly lost".
BY_NODE = {"hash", "lockfree", "names", "map", "map_of_bytes", "stack", "list", "hlist", "calls", "external"}
OPTIONS = ["check=1,guard=30,quarantine=100K", *(["guard=1", "hardened=1", "profile=1", "zero_on_free=1"] if DEEP else [])]


def structures():
    """Their names, from the table at the end of the program."""
    return re.findall(r'^    \{"(\w+)", fill_(\w+)', SOURCE.read_text(), re.M)


class Leaks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.object = cls.command("gcc", "-c", SOURCE, to="plain.o")
        cls.programs = {}
        for name in ("gcc", "clang"):
            if not shutil.which(name):
                cls.missing(name)
                continue
            cls.programs[f"{name}-address"] = cls.command(name, "-fsanitize=address", SOURCE, *LIBRARY,
                                                          to=f"{name}-address")
            cls.programs[f"{name}-leak"] = cls.command(name, "-fsanitize=leak", cls.object, *LIBRARY, to=f"{name}-leak")

    @classmethod
    def command(cls, compiler, *words, to):
        out = cls.folder / to
        command = [compiler, "-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", "-o", out, *words]
        done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode or done.stdout:
            raise AssertionError(f"{command}: {done.stdout}")
        return out

    @classmethod
    def missing(cls, what):
        print(f"{what} is missing", file=sys.stderr)
        if os.environ.get("CI"):
            sys.exit(f"{what} is needed (tools/setup installs it)")

    def run_it(self, *command, options=""):
        environment = {**os.environ, "PRUDENCE_OPTIONS": f"stall_timeout=0,{options}".rstrip(",")}  # a busy machine stalls readers
        done = subprocess.run([str(word) for word in command], env=environment, text=True, timeout=200,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def test_the_list_is_whole(self):
        """Each public function that takes a value from the program is used by the program."""
        self.assertTrue(all(name == function for name, function in structures()))
        self.assertLess(BY_NODE, {name for name, _ in structures()})
        headers = "".join(path.read_text() for path in (ROOT / "include/prudence").glob("*.h"))
        makers = re.compile(r"\bprudence_\w+_create(?:_external)?(?=\()")
        others = {"prudence_counter_create", "prudence_sizes_create", "prudence_urcu_domain_create", "prudence_ck_domain_create", "prudence_dpdk_domain_create",  # no values
                  "prudence_urcu_create"}  # has a queue of callbacks, as a domain
        self.assertEqual(set(makers.findall(headers)) - set(makers.findall(SOURCE.read_text())), others)

    def test_leak_sanitizer(self):
        for name, program in self.programs.items():
            for whose in ("libc", "ours"):
                for options in ["", *(OPTIONS if DEEP or name == "gcc-address" else [])]:
                    self.assertEqual(self.run_it(program, whose, options=options), (0, "done\n"), (name, whose, options))

    def test_leak_sanitizer_needs_telling(self):
        """Without information, it finds no value of a structure that has memory of ours."""
        known = {"stack", "calls",  # from the program's variables, or the library's
                 "contexts", "external"}  # from the first chunk of metadata, which is part of the library
        for name, program in self.programs.items():
            status, output = self.run_it(program, "libc", options="annotate=0")
            self.assertNotEqual(status, 0, name)
            found = set(re.findall(r" in (?:fill|change)_(\w+)", output))
            self.assertLessEqual({function for _, function in structures()} - found, known, name)

    def test_leak_sanitizer_finds_leaks(self):
        for name, program in self.programs.items():
            status, output = self.run_it(program, "libc", "lost", "hash")
            self.assertNotEqual(status, 0, name)
            self.assertEqual(set(re.findall(r" in (\w+_\w+) .*program_values", output)), {"lose_some"}, name)

    def memcheck(self, whose):
        """For each kind of loss, the functions of the program that made the lost objects."""
        program = self.command("gcc", self.object, *LIBRARY, to="plain")
        status, output = self.run_it("valgrind", "-q", "--leak-check=full", "--error-exitcode=9", program, whose, "lost")
        self.assertEqual(status, 9, output)
        lost = {}
        for record in re.split(r"^==\d+== \n", output, flags=re.M):
            kind = re.search(r" (definitely|indirectly|possibly) lost in loss record", record)
            place = re.search(r": (?:fill_|change_)?(\w+) \(program_values\.c:\d+\)\n==\d+==    by \w+: main ", record)
            if kind:
                lost.setdefault(kind[1], set()).add(place and place[1])
        return lost

    def test_memcheck(self):
        if not shutil.which("valgrind"):
            self.missing("valgrind")
            self.skipTest("valgrind is missing")
        for whose in ("libc", "ours") if DEEP else ("ours",):
            lost = self.memcheck(whose)
            self.assertEqual(lost.pop("definitely"), {"lose_some"}, whose)
            # None: the stack of a thread of the library, which has no such function.
            self.assertEqual(lost.pop("possibly") - {None}, BY_NODE, whose)
            self.assertEqual(lost, {}, whose)


if __name__ == "__main__":
    unittest.main()
