#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 90
# ctest: timeout 3600 (make test-long compiles the two files in thirty ways)
"""Whatever linker a program is linked by, the library works in it as fast as the machine allows: with restartable sequences and
membarriers.

The library is also linked as two files (tools/amalgamate), which link-time optimization sees together with the program: by each compiler,
for each kind of executable, by each linker, below programs in C, C++ and Rust. PRUDENCE_MODELS=deep (make test-long) has any two of these together, else some are tried.

A program may have probes of its own (sys/sdt.h) before or after the static library, whose notes and the program's name one base. clang's
builds take LLVM's objcopy, with which the linker gets the base of each member (make test-long).

mold binds a weak variable of the dynamic loader to 0, so that a library which trusts its reference believes that glibc has no
sequences. The features of the machine are found by a program that does not use the library (tests/modes/machine.c)."""

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
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"
SHARED, STATIC, STATIC_MALLOC = BUILD / "libprudence.so", BUILD / "libprudence.a", BUILD / "libprudence-malloc.a"
CORE = BUILD / "libprudence-core.a"
LINKERS = ("bfd", "gold", "lld", "mold")
EXECUTABLES = (("-fPIE", "-pie"), ("-fno-pie", "-no-pie"), ("-fPIE", "-pie", "-flto"), ("-static",), ("-fPIE", "-static-pie"))
# gold cannot link such programs; gcc's LTO needs a plug-in, which lld does not load.
IMPOSSIBLE = {("gold", "-static-pie"), ("lld", "-flto")}
# The compilers of the two files and of the program above them.
COMPILERS = (("gcc",), ("gcc", "-flto", "-flto-partition=none"), ("gcc", "-flto", "-flto-partition=balanced"),
             ("clang",), ("clang", "-flto=full"), ("clang", "-flto=thin"))
OPTIMIZED = ("-O0", "-O1", "-O2", "-O3")
POSITIONS = {"-shared": "-fPIC", "-pie": "-fPIE", "-no-pie": "-fno-pie", "-static": "-fno-pie", "-static-pie": "-fPIE"}
PLUS = {"gcc": "g++", "clang": "clang++"}
RUSTC = shutil.which("rustc", path="/usr/bin") or shutil.which("rustc") or sys.exit("there is no rustc (tools/setup installs it)")
numbers = itertools.count()
OWN_PROBE = """
#include <sys/sdt.h>
int main(void)
{
    DTRACE_PROBE(own, here);
    return 0;
}
"""
# For a program that calls malloc before constructors run, and whose own dlsym allocates (glibc 2.34 and newer).
FIRST = """
#include <dlfcn.h>
#include <stdlib.h>
extern void *dlvsym(void *handle, const char *name, const char *version);
void *dlsym(void *handle, const char *name)
{
    void *(*real)(void *, const char *) = dlvsym((void *)-1L, "dlsym", "GLIBC_2.34");
    char *volatile memory = strdup(name);
    void *found = real(handle, name);

    free(memory);
    return found;
}
static void first(void)
{
    char *volatile memory = malloc(1);
    free(memory);
}
__attribute__((section(".preinit_array"), used)) static void (*const before_constructors)(void) = first;
"""


def call(*command, **names):
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "PRUDENCE_OPTIONS")} | names
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, timeout=300)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def rows_of_pairs(possible, *axes):
    """Rows with a value of each axis, in which any two values of two axes that can be together are together once; the first have most."""
    pairs = {row: set(itertools.combinations(enumerate(row), 2)) for row in itertools.product(*axes) if possible(row)}
    missing = set().union(*pairs.values())
    while missing:
        best = max(pairs, key=lambda row: len(pairs[row] & missing))
        missing -= pairs[best]
        yield best


def is_possible(row):
    (compiler, *flags), _, kind, linker, _ = row
    return not IMPOSSIBLE & {(linker, kind), *((linker, flag) for flag in flags if compiler == "gcc")}


class Linkers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = [linker for linker in LINKERS if not shutil.which(f"ld.{linker}")]
        cls.compilers = [compiler for compiler in COMPILERS if shutil.which(PLUS[compiler[0]])]
        if (missing or len(cls.compilers) < len(COMPILERS)) and os.environ.get("CI"):
            sys.exit(f"there is no {[*missing, 'clang++'][0]} (tools/setup installs all linkers and compilers)")
        cls.linkers = [linker for linker in LINKERS if linker not in missing]
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        machine = dict(word.split("=") for word in call(BUILD / "bin/machine").split())
        cls.right = (f"percpu={'rseq ()' if int(machine['sequences']) else 'lock'}",
                     f"membarrier={'available' if int(machine['membarrier']) else 'missing'}")

    def linked(self, linker, *words, source=HERE / "program_mode.c"):
        program = self.folder / f"program-{next(numbers)}"
        call("gcc", "-O2", "-Wall", "-Werror", f"-I{ROOT}/include", source, "-o", program, f"-fuse-ld={linker}", *words, "-pthread")
        return program

    @staticmethod
    def versions(library):
        """Returns {(name, version)} of the library's exports with a version: @ or @@, which linkers choose by themselves."""
        return {tuple(line.split()[-1].replace("@@", "@").partition("@")[::2]) for line in call("nm", "-D", "--defined-only", library).splitlines()
                if "@" in line and " A " not in line}

    def works(self, program, **names):
        said = call(program, **names)
        for part in self.right:
            self.assertIn(part, said, program)

    def each(self, ways, **more):
        ways = [(linker, *way) for linker in self.linkers for way in ways if not IMPOSSIBLE & {(linker, word) for word in way}]
        self.assertGreater(len(ways), len(self.linkers) - 1)

        def one(way):
            with self.subTest(way=way):
                self.works(self.linked(*way, **more))
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(one, ways))

    def test_static_libraries(self):
        self.each([(*flags, library) for flags in EXECUTABLES for library in (STATIC, STATIC_MALLOC)])

    @classmethod
    def libraries(cls):
        """Returns the folders of the static libraries: those of the build, and in the long test those that clang builds."""
        if not DEEP or ("clang",) not in cls.compilers:
            return [BUILD]
        clang = cls.folder / "clang"
        call("cmake", "-S", ROOT, "-B", clang, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_COMPILER=clang")
        call("ninja", "-C", clang, "-j2", STATIC.name, CORE.name)
        return [BUILD, clang]

    def test_probes_of_the_program(self):
        if "stapsdt" not in call("readelf", "-nW", SHARED):
            self.skipTest("<sys/sdt.h> is not there (Debian: systemtap-sdt-dev)")
        program, linked = self.folder / "own.c", self.folder / "own"
        program.write_text(OWN_PROBE)
        for library, linker in itertools.product((folder / name for folder in self.libraries() for name in (STATIC.name, CORE.name)), self.linkers):
            with self.subTest(library=library):
                self.assertNotRegex(call("readelf", "-sW", library), r"(LOCAL|GLOBAL) .* _\.stapsdt\.base")
            whole = f"-Wl,--whole-archive,{library},--no-whole-archive"
            for order in (program, whole), (whole, program):
                with self.subTest(order=order, linker=linker):
                    call("gcc", *order, f"-fuse-ld={linker}", "-pthread", "-o", linked)
                    notes, sections = call("readelf", "-nW", linked), call("readelf", "-SW", linked)
                    self.assertEqual(set(re.findall(r"Provider: (\w+)", notes)), {"prudence", "own"})
                    self.assertEqual(set(re.findall(r"Base: 0x(\w+)", notes)), set(re.findall(r" \.stapsdt\.base +PROGBITS +(\w+)", sections)))
                    call(linked)

    def test_shared_library(self):
        self.each([(SHARED, f"-Wl,-rpath,{BUILD}", *flags) for flags in EXECUTABLES[:3]])

    def test_the_library_itself(self):
        """A shared library that each linker makes of the same members, as packages do."""
        map_, versions = ROOT / "cmake/prudence.map", self.versions(SHARED)
        self.assertGreater(len({version for _, version in versions}), 1)
        for linker in self.linkers:
            library = self.folder / f"lib{linker}.so"
            call("gcc", "-shared", f"-fuse-ld={linker}", "-Wl,--whole-archive", STATIC, "-Wl,--no-whole-archive", "-Wl,-z,now",
                 f"-Wl,--version-script={map_}", "-o", library, "-pthread")
            with self.subTest(linker=linker):
                self.assertEqual(self.versions(library), versions)
                self.works(self.linked("bfd", library, f"-Wl,-rpath,{self.folder}"))
                preloaded = self.linked("bfd", SHARED, f"-Wl,-rpath,{BUILD}")
                self.works(preloaded, LD_PRELOAD=str(library))

    def two_files_work(self, row):
        (compiler, *flags), optimized, kind, linker, language = row
        flags += [optimized, "-Wall", "-Werror", POSITIONS[kind], f"-I{self.folder}"]
        link = [*flags, f"-fuse-ld={linker}", "-pthread", "-o"]
        library, program, linked = (self.folder / f"two-{next(numbers)}{end}" for end in (".o", ".o", ""))
        call(compiler, *flags, "-c", self.folder / "prudence.c", "-o", library)
        if language == "rust":
            model = "static" if POSITIONS[kind] == "-fno-pie" else "pic"
            call(RUSTC, "--edition=2021", "--crate-type=staticlib", f"-Copt-level={optimized[2:]}", f"-Crelocation-model={model}",
                 HERE / "program_mode.rs", "-o", program)
        else:
            call(compiler, *flags, "-DTWO_FILES", "-x", language, "-c", HERE / "program_mode.c", "-o", program)
        kind = [kind]
        if kind == ["-shared"]:
            objects, library = library, self.folder / f"lib{linked.name}.so"
            call(compiler, *link, library, *kind, objects)
            kind = ["-pie", f"-Wl,-rpath,{self.folder}"]  # not always, because glibc 2.36 crashes in a -static-pie program with a path
        call(PLUS[compiler] if language == "c++" else compiler, *link, linked, *kind, program, library, "-lm")
        self.works(linked)

    def test_two_files(self):
        call(ROOT / "tools/amalgamate", self.folder)
        rows = rows_of_pairs(is_possible, self.compilers, OPTIMIZED, POSITIONS, self.linkers, ("rust", "c", "c++"))

        def one(row):
            with self.subTest(row=row):
                self.two_files_work(row)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(one, rows if DEEP else itertools.islice(rows, 8)))

    def test_first_malloc_asks_the_loader(self):
        """The program's first malloc comes before constructors, and its own dlsym allocates."""
        source = self.folder / "first.c"
        source.write_text((HERE / "program_mode.c").read_text() + FIRST)
        self.each([(*flags, STATIC_MALLOC) for flags in EXECUTABLES[:2]], source=source)


if __name__ == "__main__":
    unittest.main()
