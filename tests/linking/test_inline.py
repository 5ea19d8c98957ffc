#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 35
"""Inlined fast paths (<prudence/inline.h>) in programs and plugins, linked in every way; libraries whose layout is an older
or a newer one are refused when the program is loaded (docs/adr/0040)."""

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
SHARED, MALLOC, STATIC = (BUILD / name for name in ("libprudence.so", "libprudence-malloc.so", "libprudence.a"))
INTERNAL = BUILD / "tests/libprudence_internal.a"  # the same objects, with the names that files share
INTERNAL_HEADERS = [f"-I{ROOT}/{folder}" for folder in ("src", "src/core", "src/core/os/posix", "src/core/gp/user")]
CXX = {"gcc": "g++", "clang": "clang++"}
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
NO_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
# Compilers for AArch64; clang is one itself, and needs the headers alone. tools/test/guests runs the first one's output.
CROSS = {"aarch64-linux-gnu-gcc": ["-std=c11"], "aarch64-linux-gnu-g++": ["-std=c++11", "-x", "c++"],
         "clang": ["--target=aarch64-linux-gnu", "-isystem", "/usr/aarch64-linux-gnu/include"]}
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"  # make test-long
CROSS_WAYS = [("-O2", "-fPIC"), *([("-O0",), ("-O3", "-fno-pie", "-mbranch-protection=standard")] if DEEP else [])]
LAYOUT = re.search(r"#define PRUDENCE_INLINE_LAYOUT (\d+)",
                   (ROOT / "include/prudence/sequences.h").read_text())[1]


def compilers():
    found = [name for name in CXX if shutil.which(name)]
    if len(found) < 2 and os.environ.get("CI"):
        sys.exit("gcc and clang are needed (tools/setup installs both)")
    return found


def linked(library):
    return library, f"-Wl,-rpath,{library.parent}"


WAYS = [("-O2", "-fPIE", "-pie", *linked(SHARED)), ("-O2", "-fno-pie", "-no-pie", *linked(SHARED)),
        ("-O2", "-fPIC", "-pie", *linked(SHARED)), ("-O0", *linked(SHARED)), ("-O3", "-flto", *linked(SHARED)),
        ("-O2", "-ffunction-sections", "-Wl,--gc-sections", *linked(SHARED)), ("-O2", *linked(MALLOC)),
        ("-O2", STATIC), ("-O2", "-static", STATIC), ("-O2", "-flto", "-static", STATIC),
        ("-O2", "-fPIE", "-static-pie", STATIC)]


class Inline(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.serial = iter(range(10000))

    def call(self, *command, fails=False):
        done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode != 0, fails, f"{command}\n{done.stdout}")
        return done.stdout

    def run_it(self, *command, status=0, **environment):
        names = {name: value for name, value in os.environ.items()
                 if name not in ("LD_PRELOAD", "PRUDENCE_OPTIONS", "GLIBC_TUNABLES")}
        done = subprocess.run([str(word) for word in command], env={**names, **environment}, text=True, timeout=100,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, status, f"{command} {environment}\n{done.stdout}")
        return done.stdout

    def build(self, compiler, *flags, source="program_inline.c", include=ROOT / "include", inlined=True, **how):
        out = self.folder / f"{next(self.serial)}"
        define = ["-DINLINED"] if inlined else []
        said = self.call(compiler, *STRICT, *define, f"-I{include}", HERE / source, "-o", out, *flags, "-pthread", **how)
        return said if how else out

    # ------------------------------------------------------------------------------ ways of linking

    @unittest.skipUnless(DEEP, "make test-long")
    def test_every_way_of_linking(self):
        def one(way):
            program = self.build(*way)
            self.assertEqual(self.run_it(program), "inlined\n", way)
            self.assertEqual(self.run_it(program, **NO_RSEQ), "inlined\n", way)
            if "-static" not in way and "-static-pie" not in way:
                self.assertEqual(self.run_it(program, LD_PRELOAD=ld_preload(MALLOC)), "inlined\n", way)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(one, [(compiler, *way) for compiler in compilers()
                                for way in (WAYS if DEEP or compiler == "gcc" else WAYS[::3])]))

    @unittest.skipUnless(shutil.which("aarch64-linux-gnu-gcc"), "no compiler for AArch64")
    @unittest.skipUnless(DEEP, "make test-long")
    def test_compiled_for_aarch64(self):
        part = self.folder / "aarch64.o"
        for compiler in filter(shutil.which, CROSS):
            for way in CROSS_WAYS:
                self.call(compiler, *CROSS[compiler], *STRICT, "-DINLINED", *way, f"-I{ROOT}/include", "-c",
                          HERE / "program_inline.c", "-o", part)
                self.assertIn(f"U prudence_inline{LAYOUT}_cache_replace", self.call("nm", part), (compiler, way))

    @unittest.skipUnless(DEEP, "make test-long")
    def test_c11_and_cxx(self):
        for compiler in compilers():
            for way in ((compiler, "-std=c11"), (CXX[compiler], "-std=c++11", "-x", "c++"),
                        (CXX[compiler], "-std=c++20", "-x", "c++")):
                self.assertEqual(self.run_it(self.build_in_steps(*way)), "inlined\n")

    def build_in_steps(self, compiler, *flags):
        out, part = self.folder / f"{next(self.serial)}", self.folder / f"{next(self.serial)}.o"
        self.call(compiler, *flags, *STRICT, "-DINLINED", "-O2", f"-I{ROOT}/include", "-c",
                  HERE / "program_inline.c", "-o", part)
        self.call(compiler, part, "-o", out, *linked(SHARED), "-pthread")
        return out

    def test_parts_with_the_same_inline_functions(self):
        for compiler in compilers():
            parts = [self.folder / f"{next(self.serial)}.o" for _ in range(2)]
            for part, define in zip(parts, ([], ["-DPART"])):
                self.call(CXX[compiler], "-std=c++17", *STRICT, "-O2", *define, f"-I{ROOT}/include", "-c",
                          HERE / "program_inline_twice.cpp", "-o", part)
            program = self.folder / f"{next(self.serial)}"
            self.call(CXX[compiler], *parts, "-o", program, *linked(SHARED))
            self.assertEqual(self.run_it(program), "inlined\n")

    def test_sanitized_programs_call(self):
        for sanitizer in ("address", "thread"):
            program = self.folder / f"{next(self.serial)}.o"
            self.call("gcc", *STRICT, "-DINLINED", "-O2", f"-fsanitize={sanitizer}", f"-I{ROOT}/include", "-c",
                      HERE / "program_inline.c", "-o", program)
            self.assertNotIn("prudence_inline", self.call("nm", program))

    # ------------------------------------------------------------------------------- searches

    def test_misuse_is_caught_at_the_call(self):
        expected = {"interior": "prudence_cache_free: .* 16 bytes after its start",
                    "foreign": "prudence_cache_free_deferred: foreign pointer",
                    "wrong-cache": "prudence_cache_replace: .* belongs to cache 'mine', not to 'other'",
                    "destroyed": "prudence_cache_alloc: cache 'mine' .* was destroyed"}
        for compiler in compilers():
            program = self.build(compiler, "-O2", *linked(SHARED))
            for how, text in expected.items():
                self.assertRegex(self.run_it(program, how, status=-6), text)

    def test_options_that_look_for_bugs_close_the_paths(self):
        program = self.build("gcc", "-O2", *linked(SHARED))
        self.assertEqual(self.run_it(program, PRUDENCE_OPTIONS="check=1"), "inlined\n")
        for options in "check=1", "guard=1", "quarantine=1M", "zero_on_free=1,check=1":
            self.assertRegex(self.run_it(program, "double", status=-6, PRUDENCE_OPTIONS=options),
                             "prudence_cache_free: ")
        self.assertRegex(self.run_it(program, "double-deferred", status=-6, PRUDENCE_OPTIONS="check=1"),
                         "deferred free: .* is already deferred and not yet safe")
        self.assertRegex(self.run_it(program, "double", status=-6), "nothing was said\n.*end of the process: double free")
        self.assertRegex(self.run_it(program, "double-at-once", status=-6), "free: double free")

    # ------------------------------------------------------------------------------ other layouts

    def headers_of(self, layout):
        """The public headers, where the layout has another number."""
        include = self.folder / f"include{layout}"
        if not include.exists():
            shutil.copytree(ROOT / "include", include)
            header = include / "prudence/sequences.h"
            header.write_text(header.read_text().replace(f"#define PRUDENCE_INLINE_LAYOUT {LAYOUT}\n",
                                                         f"#define PRUDENCE_INLINE_LAYOUT {layout}\n"))
        return include

    def library_of(self, layout):
        """libprudence.so with names of that layout: the static library's objects, one of them compiled anew."""
        folder = self.folder / f"library{layout}"
        if folder.exists():
            return folder / "libprudence.so"
        folder.mkdir()
        archive, renamed = folder / "libprudence.a", folder / "inline.c.o"
        shutil.copy(INTERNAL, archive)
        self.call("gcc", "-O2", "-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec",
                  f"-I{self.headers_of(layout)}", *INTERNAL_HEADERS, "-c", ROOT / "src/core/heap/inline.c", "-o", renamed)
        self.call("ar", "r", archive, renamed)
        self.call("gcc", "-shared", "-Wl,-soname,libprudence.so.0", "-Wl,-z,nodelete",
                  f"-Wl,--version-script={ROOT}/cmake/prudence.map", "-Wl,--whole-archive", archive,
                  "-Wl,--no-whole-archive", "-pthread", "-o", folder / "libprudence.so.0")
        (folder / "libprudence.so").symlink_to("libprudence.so.0")
        return folder / "libprudence.so"

    def test_libraries_of_other_layouts_are_refused(self):
        for layout in (int(LAYOUT) - 1, int(LAYOUT) + 1):
            other = {"LD_LIBRARY_PATH": str(self.library_of(layout).parent)}
            for compiler in compilers():
                for flags in (("-fPIE", "-pie"), ("-fno-pie", "-no-pie"), ("-O0",))[:None if DEEP else 1]:
                    program = self.build(compiler, "-O2", *flags, "-Wl,-z,lazy", SHARED)
                    self.assertIn(f"undefined symbol: prudence_inline{LAYOUT}_",
                                  self.run_it(program, status=127, **other))
                    self.assertEqual(self.run_it(program, LD_LIBRARY_PATH=str(BUILD)), "inlined\n")
            called = self.build("gcc", "-O2", "-Wl,-z,lazy", SHARED, inlined=False)
            self.assertEqual(self.run_it(called, **other), "called\n")

    def test_libraries_of_other_layouts_serve_their_own_programs(self):
        layout = int(LAYOUT) + 1
        program = self.build("gcc", "-O2", self.library_of(layout), include=self.headers_of(layout))
        self.assertEqual(self.run_it(program, LD_LIBRARY_PATH=str(self.library_of(layout).parent)), "inlined\n")
        self.assertIn(f"undefined symbol: prudence_inline{layout}_",
                      self.run_it(program, status=127, LD_LIBRARY_PATH=str(BUILD)))

    def test_plugins_are_refused_too(self):
        plugin = self.plugin("gcc", "-Wl,-z,lazy", SHARED)
        host = self.build("gcc", "-O2", source="host.c", inlined=False)
        other = {"LD_LIBRARY_PATH": str(self.library_of(int(LAYOUT) + 1).parent)}
        self.assertIn("undefined symbol: prudence_inline", self.run_it(host, plugin, status=1, **other))

    def test_a_program_is_not_linked_with_another_layout(self):
        said = self.build("gcc", "-O2", SHARED, include=self.headers_of(int(LAYOUT) + 1), fails=True)
        self.assertIn("undefined reference", said)

    def test_a_layout_that_has_moved_is_noticed_by_the_compiler(self):
        include = self.folder / "moved"
        for change in ("uint64_t ring_tail; ", "uint64_t ring_stop; "), ("const char *base; ", "uint64_t end; "), \
                ("LEAF_SHIFT 30", "LEAF_SHIFT 29"), ("void *lines; ", "void *liness; "):
            shutil.rmtree(include, ignore_errors=True)
            shutil.copytree(ROOT / "include", include)
            header = include / "prudence/sequences.h"
            text = header.read_text()
            old, new = change
            self.assertEqual(text.count(old), 1, change)
            header.write_text(text.replace(old, "uint64_t more; " + old if ";" in old else new))
            said = self.call("gcc", f"-I{include}", *INTERNAL_HEADERS, "-fsyntax-only", ROOT / "src/core/heap/inline.c", fails=True)
            self.assertIn("static assertion failed", said)

    # ---------------------------------------------------------------------------------------- plugins

    def plugin(self, compiler, *flags):
        out = self.folder / f"plugin{next(self.serial)}.so"
        self.call(compiler, *STRICT, "-DINLINED", "-DPLUGIN", "-O2", "-fPIC", "-shared", f"-I{ROOT}/include",
                  HERE / "program_inline.c", "-o", out, *flags, "-pthread")
        return out

    @unittest.skipUnless(DEEP, "make test-long")
    def test_plugins_stay(self):
        """The host closes the plugin while the thread that was in it goes on; it is there afterwards."""
        for compiler in compilers():
            host = self.build(compiler, "-O2", "-DSTAYS", source="host.c", inlined=False)
            for library in (linked(SHARED), linked(MALLOC), (STATIC,)):
                plugin = self.plugin(compiler, *library)
                self.assertEqual(self.run_it(host, plugin), "inlined\nstays\n")

    def test_plugins_without_the_header_go(self):
        host = self.build("gcc", "-O2", "-DSTAYS", source="host.c", inlined=False)
        out = self.folder / "goes.so"
        self.call("gcc", "-DPLUGIN", "-O2", "-fPIC", "-shared", f"-I{ROOT}/include", HERE / "program_inline.c", "-o", out,
                  *linked(SHARED), "-pthread")
        self.assertEqual(self.run_it(host, out), "called\ngoes\n")


if __name__ == "__main__":
    unittest.main()
