#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (each part of the static library is linked alone)
# ctest: cost 12
"""The members of the static library (docs/adr/0026): a program has those that it uses, and each enters its part of fork, its
statistics and its extension, however the program is linked and loaded, and whichever constructor runs first."""

import itertools
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
sys.path.insert(0, str(ROOT / "tools"))
from preload import ld_preload  # noqa: E402 (the path comes first)
SHARED, MALLOC = BUILD / "libprudence.so", BUILD / "libprudence-malloc.so"
STATIC, STATIC_MALLOC = BUILD / "libprudence.a", BUILD / "libprudence-malloc.a"
MEMBERS = {"library", "tables", "shortterm", "urcu"}
USES = {"TABLES": "tables", "SCM": "shortterm", "URCU": "urcu"}
ALL = tuple(f"-DUSES_{use}" for use in USES)
EXECUTABLES = ("-fPIE", "-pie"), ("-fno-pie", "-no-pie"), ("-fno-pie", "-static"), ("-fPIE", "-static-pie")
# Smaller by at least that much without the three: 142 KB were measured.
SMALLER = 100_000
HOST = """
#include <dlfcn.h>
int main(int count, char **names)
{
    void *plugin = dlopen(names[1], RTLD_NOW);
    void (*run)(void) = plugin ? (void (*)(void))dlsym(plugin, "run_members") : 0;

    if (run)
        run();
    return count == 2 && run ? 0 : 1;
}
"""
CLASH = """
#include <prudence/prudence.h>
#include "fork_part.h"
const struct fork_part another = {.order = FORK_TABLES, .name = "another"};
ENTER(fork_parts, another);
int main(void)
{
    prudence_free(prudence_malloc(1));
    return 0;
}
"""


def call(*command, status=0, **names):
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "PRUDENCE_OPTIONS")}
    done = subprocess.run([str(word) for word in command], env={**environment, **names}, text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != status:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def linked(library):
    return library, f"-Wl,-rpath,{BUILD}"


def members_of(archive):
    return {name.removesuffix(".o") for name in call("ar", "t", archive).split()}


def text_of(program):
    return int(call("size", program).splitlines()[1].split()[0])


class Members(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.serial = itertools.count()

    def build(self, *words, source=HERE / "program_members.c", compiler="gcc"):
        out = self.folder / f"{next(self.serial)}"
        call(compiler, "-O2", "-Wall", "-Werror", "-Wno-unused-result", f"-I{ROOT}/include", source, "-o", out, *words, "-pthread")
        return out

    def written(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def works(self, program, **names):
        self.assertEqual(call(program, **names), "members work\n")

    # ---------------------------------------------------------------------------------- the archive

    def test_the_archives(self):
        self.assertEqual(members_of(STATIC), MEMBERS)
        self.assertEqual({name for name in members_of(STATIC_MALLOC) if "operators" not in name}, MEMBERS)

    def test_no_function_is_chosen_at_load(self):
        """A static program of position-independent code has no dynamic linker that would resolve IFUNCs of ours."""
        for library in STATIC, STATIC_MALLOC, SHARED, MALLOC:
            self.assertNotRegex(call("readelf", "-sW", library), r"\bIFUNC\b")

    def test_private_names(self):
        """Names that members share are hidden, have a prefix, and is all that is hidden; only the main one defines such names."""
        for member in MEMBERS:
            table = call("readelf", "-sW", STATIC)
            part = re.search(rf"^File: .+\({member}\.o\)\n(.*?)(?:^File: |\Z)", table, re.M | re.S)[1]
            defined = re.findall(r"(?:GLOBAL|WEAK) +HIDDEN +\d+ (\S+)", part)
            others = {name for name in defined if not name.startswith("prudence_private_")} - {"_.stapsdt.base"}
            self.assertEqual(others, set(), member)
            self.assertEqual(bool(set(defined) - {"_.stapsdt.base"}), member == "library", member)

    def linked_members(self, library, *words):
        listing = self.folder / "map"
        self.build(*words, library, f"-Wl,-Map={listing}")
        return set(re.findall(rf"{library.name}\((\w+)\.o\)", listing.read_text()))

    def test_a_program_has_what_it_uses(self):
        for library in STATIC, STATIC_MALLOC:
            for count in range(len(USES) + 1):
                for uses in itertools.combinations(USES, count):
                    found = self.linked_members(library, "-DWHEN_MAIN", *(f"-DUSES_{use}" for use in uses))
                    self.assertEqual(found & MEMBERS, {"library", *(USES[use] for use in uses)}, (library.name, uses))

    def test_a_program_that_allocates_is_smaller(self):
        user = self.written("user.c", "#include <prudence/prudence.h>\n"
                                      "int main(void)\n{\n    prudence_free(prudence_malloc(1));\n    return 0;\n}\n")
        alone = self.build("-static", STATIC, source=user)
        whole = self.build("-static", "-Wl,--whole-archive", STATIC, "-Wl,--no-whole-archive", source=user)
        self.assertGreater(text_of(whole) - text_of(alone), SMALLER)
        self.assertNotRegex(call("nm", alone), r"\b(prudence_hash_|scm_\w*refresh|prudence_urcu_create)")

    # ---------------------------------------------------------------------------------------- entries

    def test_static(self):
        """Also when a linker drops sections to which nothing refers, and with another linker and compiler."""
        ways = [(*flags, *more) for flags in EXECUTABLES for more in ((), ("-Wl,--gc-sections",))]
        ways += [("-fPIE", "-pie", f"-fuse-ld={linker}", "-Wl,--gc-sections") for linker in ("gold", "lld", "mold")
                 if shutil.which("ld." + linker)]
        for way in ways:
            self.works(self.build("-DWHEN_MAIN", *ALL, *way, STATIC), MEMBERS_WATCH="1")
        if shutil.which("clang"):
            self.works(self.build("-DWHEN_MAIN", *ALL, STATIC, compiler="clang"), MEMBERS_WATCH="1")

    def test_each_member_alone(self):
        for use in ALL:
            self.works(self.build("-DWHEN_MAIN", use, "-static", STATIC), MEMBERS_WATCH="1")

    def test_shared(self):
        for flags in EXECUTABLES[:2]:
            self.works(self.build("-DWHEN_MAIN", *ALL, *flags, *linked(SHARED)), MEMBERS_WATCH="1")

    def test_malloc(self):
        """Our handlers come first, so the program's run with nothing held."""
        self.works(self.build("-DWHEN_MAIN", *ALL, *linked(MALLOC)))
        for flags in EXECUTABLES:
            self.works(self.build("-DWHEN_MAIN", *ALL, *flags, "-Wl,-u,malloc", STATIC_MALLOC))

    def test_preloaded(self):
        shared, static = self.build("-DWHEN_MAIN", *ALL, *linked(SHARED)), self.build("-DWHEN_MAIN", *ALL, STATIC)
        for library in SHARED, MALLOC:
            self.works(shared, LD_PRELOAD=ld_preload(library))
        self.works(static, LD_PRELOAD=ld_preload(MALLOC))

    def test_order_of_constructors(self):
        """The program's may run before all of ours."""
        for when in "-DWHEN_FIRST", "-DWHEN_CONSTRUCTOR=101", "-DWHEN_CONSTRUCTOR=65535":
            for way in linked(SHARED), linked(MALLOC), (STATIC,), ("-static", STATIC), ("-static", "-Wl,-u,malloc", STATIC_MALLOC):
                with self.subTest(when=when, way=way):
                    self.works(self.build(when, *ALL, *way))

    def test_dlopen(self):
        host = self.build("-ldl", source=self.written("host.c", HOST))
        for way in linked(SHARED), linked(MALLOC), (STATIC,), (STATIC, "-Wl,--gc-sections"):
            plugin = self.build("-shared", "-fPIC", "-DWHEN_CALLED", *ALL, *way)
            self.assertEqual(call(host, plugin), "members work\n")

    # ----------------------------------------------------------------------------------- order of locks

    def test_two_parts_of_one_place(self):
        program = self.build(f"-I{ROOT}/src", f"-I{ROOT}/src/core", f"-I{ROOT}/src/core/os/posix", "-Wl,-u,tables_fork_part",
                             BUILD / "tests/libprudence_internal.a", source=self.written("clash.c", CLASH))
        self.assertRegex(call(program, status=-6), "two parts of fork, '.*', have one place in the order of locks")


if __name__ == "__main__":
    unittest.main()
