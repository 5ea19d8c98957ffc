#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 30
"""Inline readers with the library, linked in every way: grace periods end, garbage stays within
latent_limit, and no program gets a copy of the library's data (docs/adr/0026).

Each way is tried with gcc and with clang. Without clang its half is skipped, unless CI is set.
"""

import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "tools"))
from preload import ld_preload  # noqa: E402 (the path comes first)
SHARED, MALLOC = BUILD / "libprudence.so", BUILD / "libprudence-malloc.so"
STATIC, STATIC_MALLOC = BUILD / "libprudence.a", BUILD / "libprudence-malloc.a"
# A wait that cannot expire while the machine is busy; still an end to a test that hangs.
OPTIONS = "latent_limit=1M,wait_max=50s"
numbers = itertools.count()
COPY = re.compile(r"R_\w+_COPY\b.*\b(prudence|scm|rcu)_")


def compilers():
    found = [name for name in ("gcc", "clang") if shutil.which(name)]
    if len(found) < 2 and os.environ.get("CI"):
        sys.exit("gcc and clang are needed (tools/setup installs both)")
    return found


def run(*command, preload=None, status=0, malloc=False):
    names = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    names["PRUDENCE_OPTIONS"] = OPTIONS
    if preload:
        names["LD_PRELOAD"] = ld_preload(preload)
    if malloc:
        names["DEFERS_MALLOC"] = "1"
    done = subprocess.run([str(word) for word in command], env=names, text=True, timeout=100,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != status:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


class Ways(unittest.TestCase):
    """Every test says a few ways to build; they are built and run for both compilers."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.objects = {}

    def call(self, *command):
        done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}")

    def compile(self, compiler, source, flags):
        """Each object is made once; `flags` that matter to the linker only are skipped."""
        flags = tuple(flag for flag in flags if re.match("-[fD]", str(flag)))
        key = compiler, source, flags
        if key not in self.objects:
            out = self.folder / f"{next(numbers)}.o"
            self.call(compiler, "-O2", "-Wall", "-Werror", f"-I{ROOT}/include", *flags, "-c",
                      HERE / source, "-o", out)
            self.objects[key] = out
        return self.objects[key]

    def build(self, compiler, *arguments, source="program.c"):
        out = self.folder / f"{self._testMethodName}-{next(numbers)}"
        self.call(compiler, self.compile(compiler, source, arguments), "-o", out, *arguments, "-pthread")
        relocations = subprocess.run(["readelf", "-rW", out], text=True, capture_output=True,
                                     check=True).stdout
        self.assertNotRegex(relocations, COPY)
        return out

    def plugin(self, compiler, *arguments):
        return self.build(compiler, "-shared", "-fPIC", "-DPLUGIN", *arguments)

    def host(self, compiler, *arguments):
        return self.build(compiler, *arguments, "-ldl", source="host.c")

    def each(self, ways, preload=None, malloc=False):
        """Builds and runs each way with each compiler; two at a time, since most of it is waiting."""
        def one(way):
            program = self.build(*way)
            self.assertIn("grace periods", run(program, preload=preload, malloc=malloc),
                          way)
        todo = [(compiler, *way) for compiler in compilers() for way in ways]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(one, todo))


def linked(*libraries):
    return (*libraries, f"-Wl,-rpath,{BUILD}")


EXECUTABLES = [("-fPIE", "-pie"), ("-fno-pie", "-no-pie"), ("-fPIC", "-pie"),
               ("-fno-pie", "-no-pie", "-fvisibility=protected"), ("-fPIE", "-pie", "-fvisibility=hidden"),
               ("-fno-pie", "-no-pie", "-Wl,-z,now"), ("-fPIE", "-pie", "-Wl,-Bsymbolic", "-rdynamic")]


class Programs(Ways):
    def test_libprudence(self):
        self.each([(*flags, *linked(SHARED)) for flags in EXECUTABLES])

    def test_libprudence_malloc(self):
        self.each([(*flags, *linked(MALLOC)) for flags in EXECUTABLES], malloc=True)

    def test_libprudence_malloc_preloaded(self):
        self.each([(*flags, *linked(SHARED)) for flags in EXECUTABLES[:3]], preload=MALLOC,
                  malloc=True)

    def test_libprudence_preloaded(self):
        self.each([(*flags, *linked(SHARED)) for flags in EXECUTABLES[:2]], preload=SHARED)
        self.each([(*flags, *linked(MALLOC)) for flags in EXECUTABLES[:2]], preload=SHARED)

    def test_both_libraries(self):
        self.each([("-Wl,--no-as-needed", *flags, *linked(*libraries))
                   for flags in EXECUTABLES[:2] for libraries in ((MALLOC, SHARED), (SHARED, MALLOC))])

    def test_static_library_in_a_dynamic_program(self):
        ways = [(*flags, STATIC) for flags in EXECUTABLES]
        self.each(ways + [(*EXECUTABLES[0], "-rdynamic", STATIC)])
        self.each(ways[:2], preload=MALLOC)

    def test_static_program(self):
        for library in (STATIC,), ("-Wl,-u,malloc", STATIC_MALLOC):
            self.each([("-static", *library), ("-fPIE", "-static-pie", *library)],
                      malloc=STATIC_MALLOC in library)


    def test_aligned_new_in_a_static_program(self):
        """libstdc++.a's own lets the size wrap; ours comes first."""
        told = "-Wl,-u,malloc", "-Wl,-u,_ZnwmSt11align_val_t"
        for compiler in compilers():
            compiler = {"gcc": "g++", "clang": "clang++"}[compiler]
            program = self.build(compiler, "-faligned-new", "-static", *told, STATIC_MALLOC,
                                 source="program_aligned_new.cpp")
            self.assertEqual(run(program), "refused\n")


class Plugins(Ways):
    def loads(self, host, *plugins, preload=None):
        self.assertEqual(run(host, *plugins, preload=preload).count("grace periods"),
                         sum(not str(plugin).startswith("+") for plugin in plugins))

    def test_of_the_shared_library(self):
        for compiler in compilers():
            host = self.host(compiler)
            plugin = self.plugin(compiler, *linked(SHARED))
            self.loads(host, plugin)
            self.loads(host, plugin, self.plugin(compiler, *linked(SHARED)))
            self.loads(host, plugin, preload=MALLOC)
            self.loads(self.host(compiler, "-DREADS", *linked(SHARED)), plugin)
            self.loads(self.host(compiler, "-DREADS", *linked(MALLOC)), plugin)

    def test_without_a_library_of_its_own(self):
        """The host or a dlopen of libprudence gives the symbols."""
        for compiler in compilers():
            plugin = self.plugin(compiler)
            self.loads(self.host(compiler), f"+{SHARED}", plugin)
            self.loads(self.host(compiler), f"+{MALLOC}", plugin)
            self.loads(self.host(compiler, "-DREADS", "-rdynamic", "-Wl,--whole-archive", STATIC,
                                 "-Wl,--no-whole-archive"), plugin)

    def test_of_the_static_library(self):
        """Alone, or two of them; closed while a thread that used it is still there."""
        for compiler in compilers():
            for flags in ((), ("-Wl,-Bsymbolic",), ("-Wl,-Bsymbolic-functions",),
                          ("-Wl,--exclude-libs,ALL",)):
                plugin = self.plugin(compiler, STATIC, *flags)
                self.loads(self.host(compiler), plugin, self.plugin(compiler, STATIC, *flags))

    def test_of_the_static_library_with_a_copy_of_the_host(self):
        for compiler in compilers():
            host = self.host(compiler, "-DREADS", *linked(SHARED))
            self.loads(host, self.plugin(compiler, STATIC))
            self.loads(host, self.plugin(compiler, STATIC), preload=MALLOC)
            for own in ("-Wl,-Bsymbolic", "-Wl,--exclude-libs,ALL"):
                self.loads(host, self.plugin(compiler, STATIC, own))

    def test_functions_and_readers_of_different_copies_are_refused(self):
        for compiler in compilers():
            host = self.host(compiler, "-DREADS", *linked(SHARED))
            plugin = self.plugin(compiler, STATIC, "-Wl,-Bsymbolic-functions")
            self.assertIn("but readers of the process use another", run(host, plugin, status=-6))


class Libraries(unittest.TestCase):
    def test_no_data_is_exported(self):
        """Data without an address in the library that a program could want cannot be copied."""
        for library in (SHARED, MALLOC):
            symbols = subprocess.run(["readelf", "-W", "--dyn-syms", library], text=True,
                                     capture_output=True, check=True).stdout
            defined = [line.split() for line in symbols.splitlines()
                       if re.match(r"\s*\d+:", line) and " UND " not in line]
            kinds = {words[3] for words in defined if words[6] != "ABS" and not words[7].startswith("_end")} # ABS: versions
            self.assertEqual(kinds, {"FUNC", "TLS"}, library)

    def test_the_library_itself_uses_its_own_readers(self):
        """Inline readers' names may be those of another copy (gp/user/readers.h, readers_are_superseded)."""
        for source in (ROOT / "src").rglob("*.[ch]"):
            text = re.sub(r"/\*.*?\*/", "", source.read_text(), flags=re.S)
            uses = len(re.findall(r"\bprudence_(?:reader|qsbr)_self\b", text))
            self.assertLessEqual(uses, 3 if source.name == "readers.c" else 0, source)
            if source.parts[-2] != "kernel":
                self.assertNotRegex(text, r"\bprudence_(read_(un)?lock|qsbr_quiescent)\(", source)


if __name__ == "__main__":
    if len(compilers()) < 2:
        print(f"only {compilers()} is here: nothing is known about the other compiler", file=sys.stderr)
    unittest.main()
