#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 30
"""Programs built with ThreadSanitizer on a library that is not: no false report, and true races are found.

PRUDENCE_MODELS=deep (make test-long) runs all; otherwise one program with every way from thread to thread is run, by gcc.
"""

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
SHARED, STATIC = (BUILD / "libprudence.so", f"-Wl,-rpath,{BUILD}"), (BUILD / "libprudence.a",)
RACE = "WARNING: ThreadSanitizer: data race"
LIBURCU = f"-I{ROOT}/include/prudence/urcu-compat"
SLICES = "-DPRUDENCE_READER_SLICES"
PROGRAMS = [HERE / f"program_{name}.c" for name in ("threads", "tables", "small", "short_term", "urcu")]
# Headers whose functions no program with ThreadSanitizer has: with a sanitizer there are no inlined fast paths; and functions that stand in
# Those of domains are called by the library, for readers of other schemes.
OTHERS = {"ck-domain.h", "dpdk-domain.h", "inline.h", "sequences.h", "urcu-domain.h"}
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"  # make test-long
long = unittest.skipUnless(DEEP, "only make test-long runs it")


def compilers(folder):
    """Returns the compilers that can build a program with ThreadSanitizer."""
    found = []
    source = folder / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    for name in ("gcc", "clang"):
        if shutil.which(name) and subprocess.run([name, "-fsanitize=thread", source, "-o", folder / "empty"],
                                                 capture_output=True).returncode == 0:
            found.append(name)
    if len(found) < 2:
        print(f"only {found} can build with -fsanitize=thread", file=sys.stderr)
        if os.environ.get("CI"):
            sys.exit("gcc and clang with libclang-rt are needed (tools/setup installs both)")
    return found


def without_comments(path):
    return re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)


def inlined():
    """The functions and the macros with code that the public headers have."""
    functions, macros = set(), set()
    for header in (ROOT / "include/prudence").glob("*.h"):
        text = without_comments(header)
        if header.name not in OTHERS:
            functions |= set(re.findall(r"^(?:static inline|PRUDENCE_INLINE) [^;{(]*?\b(\w+)\(", text, re.M))
            macros |= set(re.findall(r"^#define (prudence_\w*[a-z])\(", text, re.M))
    return functions, macros


def named_in_table(source):
    """The structures that a program knows: the first word of each entry of its table."""
    return re.findall(r'^    \{"(\w+)", ', source.read_text(), re.M)


def plain_addresses():
    """ThreadSanitizer fails where addresses are too random."""
    refused = subprocess.run(["setarch", "-R", "true"], capture_output=True).returncode
    return [] if refused else ["setarch", "-R"]


class ThreadSanitizer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.compilers = compilers(cls.folder)
        cls.launcher = plain_addresses()

    def build(self, compiler, source, *library):
        out = self.folder / f"{self._testMethodName}-{compiler}"
        command = [compiler, "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread",
                   f"-I{ROOT}/include", LIBURCU, source, "-o", out, *library, "-pthread"]
        done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.assertEqual((done.returncode, done.stdout), (0, ""), command)
        return out

    def run_it(self, program, options="", race="", arguments=()):
        # A report says all that is asked for here, and each takes long.
        names = {**os.environ, "PRUDENCE_OPTIONS": options, "TSAN_OPTIONS": "halt_on_error=1"}
        if race:
            names["RACE"] = race
        done = subprocess.run([*self.launcher, program, *arguments], env=names, text=True, timeout=200,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def racing(self, program, **words):
        """A true race is seen in most runs, not in all: the threads must meet."""
        for _ in range(5):
            status, output = self.run_it(program, **words)
            if status:
                break
        return status, output

    @long
    def test_the_example_of_the_readme(self):
        text = re.search(r"```c\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
        source = self.folder / "example.c"
        source.write_text(text.replace("1000000", "100000"))
        for compiler in self.compilers:
            self.assertEqual(self.run_it(self.build(compiler, source, *SHARED)), (0, "last hop: 100000\n"))

    def test_all_that_headers_inline_is_in_a_program(self):
        """Without optimization a compiler makes those inline functions that are called."""
        functions, macros = inlined()
        self.assertGreater(len(functions), 100)
        self.assertGreater(len(macros), 30)
        made = set()
        for source in PROGRAMS:
            out = self.folder / "object.o"
            subprocess.run(["gcc", "-O0", "-fsanitize=thread", SLICES, f"-I{ROOT}/include", LIBURCU, "-c", source, "-o", out],
                           check=True)
            names = subprocess.run(["nm", out], check=True, text=True, capture_output=True).stdout
            made |= set(re.findall(r" t (\w+)$", names, re.M))
        self.assertEqual(functions - made, set())
        text = "".join(without_comments(source) for source in PROGRAMS)
        self.assertEqual({name for name in macros if not re.search(rf"\b{name}\(", text)}, set())

    @long
    def test_the_examples(self):
        examples = [source for source in sorted((ROOT / "lab/examples").glob("*.c")) if "dlopen" not in source.read_text()]
        self.assertGreater(len(examples), 10)
        for source in examples if DEEP else examples[::3]:
            # gcc says that it does not see fences; the accesses next to those of the examples are atomic.
            program = self.build("gcc", source, *SHARED, "-Wno-tsan")
            self.assertEqual(self.run_it(program), (0, f"{program.name}: right\n"))

    def test_every_way_from_thread_to_thread(self):
        for compiler in self.compilers if DEEP else self.compilers[:1]:
            program = self.build(compiler, HERE / "program_threads.c", *SHARED)
            for options in ("", "check=1,guard=50,quarantine=100K,zero_on_free=1"):
                self.assertEqual(self.run_it(program, options), (0, "done\n"))
            # Without information, it reports false races, so these ways do need the annotations.
            self.assertIn(RACE, self.run_it(program, "annotate=0")[1])

    def each_by(self, compiler, names):
        """All names with each compiler; without DEEP the compilers share them, because each run takes long."""
        return names if DEEP else names[self.compilers.index(compiler)::len(self.compilers)]

    @long
    def test_tables(self):
        """Objects reach readers by tables, whose stores ThreadSanitizer does not see. One table at a time: order that one makes would
        do for the others."""
        for compiler in self.compilers:
            program = self.build(compiler, HERE / "program_tables.c", *SHARED)
            for table in self.each_by(compiler, ("hash", "lockfree", "ids", "map", "strings", "routes4", "routes6", "values")):
                self.assertEqual(self.run_it(program, race=f"only-{table}"), (0, "done\n"), table)
                self.assertIn(RACE, self.run_it(program, "annotate=0", race=f"only-{table}")[1], table)
                status, output = self.racing(program, race=table)
                self.assertNotEqual(status, 0, table)
                self.assertRegex(output, r"SUMMARY: ThreadSanitizer: data race .* in (touch|check|has_key)", table)

    def each_alone(self, source, places):
        """Runs each row of the program's table, one at a time: right, and with a race, which is seen in one of the functions."""
        for compiler in self.compilers:
            program = self.build(compiler, source, *SHARED)
            for name in self.each_by(compiler, named_in_table(source)):
                self.assertEqual(self.run_it(program, arguments=(name,)), (0, "done\n"), name)
                status, output = self.racing(program, arguments=(name, "race"))
                self.assertNotEqual(status, 0, name)
                self.assertRegex(output, rf"SUMMARY: ThreadSanitizer: data race .* in ({places})", name)

    @long
    def test_small_structures(self):
        """The part of them that the headers inline."""
        self.each_alone(HERE / "program_small.c",
                        r"touch|check|write_out|has_key|is_in_table|memset|let_go|read_\w+|update_\w+")

    @long
    def test_names_of_liburcu(self):
        self.each_alone(HERE / "program_urcu.c", "check|replace|let_go")

    @long
    def test_short_term_memory(self):
        for compiler in self.compilers:
            program = self.build(compiler, HERE / "program_short_term.c", *SHARED)
            for options in ("", "scm_expired=deferred", "check=1,guard=50,quarantine=100K,zero_on_free=1"):
                self.assertEqual(self.run_it(program, options), (0, "done\n"))
            self.assertIn(RACE, self.run_it(program, "annotate=0")[1])
            status, output = self.racing(program, race="date")
            self.assertNotEqual(status, 0)
            self.assertIn("SUMMARY: ThreadSanitizer: data race", output)

    @long
    def test_the_static_library(self):
        for compiler in self.compilers:
            # With readers that ask for longer time slices; clang before 17 has no thread pointer for them.
            program = self.build(compiler, HERE / "program_threads.c", *STATIC, *([SLICES] if compiler == "gcc" else []))
            self.assertEqual(self.run_it(program), (0, "done\n"))

    @long
    def test_true_races_are_found(self):
        for compiler in self.compilers:
            program = self.build(compiler, HERE / "program_threads.c", *SHARED)
            for race, place in (("pass", "in take"), ("reader", "in fill")):
                status, output = self.racing(program, race=race)
                self.assertNotEqual(status, 0)
                self.assertRegex(output, rf"SUMMARY: ThreadSanitizer: data race .* {place}")


if __name__ == "__main__":
    unittest.main()
