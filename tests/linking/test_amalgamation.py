#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (the two files are compiled in four ways)
# ctest: cost 3
"""The library in two files (tools/amalgamate): prudence.c compiles without a warning, and exports what the core of
libprudence.a does; prudence.h declares all of it. With PRUDENCE_MODELS=deep also with clang and musl-gcc, and the tests of tests/api
run on it, without those of other members."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
CC = os.environ.get("PRUDENCE_CC", "gcc")  # tools/test/ports: another machine's, whose programs this one runs
EMULATOR = [os.environ["PRUDENCE_EMULATOR"]] if "PRUDENCE_EMULATOR" in os.environ else []
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"
WARNINGS = "-Wall -Wextra -Wpedantic -Wvla -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror".split()
PROGRAM = """
#include "prudence.h"
struct prudence_head head;
static void done(struct prudence_head *unused) { (void)unused; }
int main(void)
{
    struct prudence_cache *cache = prudence_cache_create("things", 64, NULL);
    void *thing = prudence_cache_alloc(cache);

    prudence_read_lock();
    prudence_read_unlock();
    prudence_cache_free_deferred(cache, thing);
    prudence_call(&head, done);
    prudence_barrier();
    return !thing || prudence_cache_destroy(cache);
}
"""
# Names of other members that the sources of tests/api use.
OTHER_MEMBERS = re.compile(r"#include <(?:prudence/(?:scm|urcu|hash|id_table|map|routes|log|counter|swap|ref)|urcu)|scm_test|cancelled\.h")
# Tests of libprudence.so as a file.
SHARED_ONLY = {"test_dlopen", "test_first_read_in_handler"}


def module():
    loader = SourceFileLoader("amalgamate", str(ROOT / "tools/amalgamate"))
    found = module_from_spec(spec_from_loader("amalgamate", loader))
    loader.exec_module(found)
    return found


def call(*command, **more):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, **more)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def names(path):
    """The names that an object defines for others: {name: its visibility}."""
    table = call("readelf", "-sW", path)
    return dict(reversed(row) for row in re.findall(r" (?:GLOBAL|WEAK) +(DEFAULT|HIDDEN) +(?!UND)\w+ (\S+)$", table, re.M))


class Amalgamation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        call(ROOT / "tools/amalgamate", cls.folder)
        cls.source = (cls.folder / "prudence.c").read_text()
        cls.header = (cls.folder / "prudence.h").read_text()
        call(CC, "-O0", *WARNINGS, "-c", cls.folder / "prudence.c", "-o", cls.folder / "prudence.o")

    def test_names(self):
        library = {name for name in names(BUILD / "members/library.o") if not name.startswith(("prudence_private_", "_."))}
        found = names(self.folder / "prudence.o")
        self.assertEqual({name for name, visibility in found.items() if visibility == "DEFAULT"}, library)
        self.assertGreater(len(library), 100)
        private = {name for name, visibility in found.items() if visibility == "HIDDEN"}
        self.assertEqual({name for name in private if not name.startswith("prudence_")}, set())

    def test_no_private_name_is_printed(self):
        """A name that a macro makes text of must not be a private one."""
        text = self.folder / "text"
        for section in re.findall(r"\] (\.rodata\S*|\.data\.rel\S*) +PROGBITS", call("readelf", "-SW", self.folder / "prudence.o")):
            call("objcopy", "-O", "binary", "--only-section", section, self.folder / "prudence.o", text)
            self.assertNotIn(b"prudence_private_", text.read_bytes())

    def test_header_declares_them(self):
        words = set(re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", self.header, flags=re.S)))
        inlined = re.compile("prudence_inline[23]_")  # <prudence/inline.h>
        missing = {name for name, visibility in names(self.folder / "prudence.o").items()
                   if visibility == "DEFAULT" and name not in words and not inlined.match(name)}
        self.assertEqual(missing, {"prudence_urcu_qsbr_self"})

    def test_program(self):
        (self.folder / "program.c").write_text(PROGRAM)
        for compiler, language in (CC, "c"), (shutil.which(f"{CC[:-2]}++") or "g++", "c++"):
            call(compiler, *WARNINGS[:3], "-Werror", "-fsyntax-only", "-x", language, self.folder / "program.c")
        call(CC, "-O2", self.folder / "program.c", self.folder / "prudence.o", "-pthread", "-o", self.folder / "program")
        call(*EMULATOR, self.folder / "program")

    def test_no_copy_of_a_private_name(self):
        """Names that one file defines for itself: C would silently take two variables for one."""
        amalgamate = module()
        one, other = self.folder / "one.c", self.folder / "other.c"
        one.write_text("static int turns;\nstruct turn {\n    int x;\n};\nstatic void (*way)(void) = 0;\n")
        other.write_text("/* static int way; */\nstatic unsigned other, turns[4];\nenum turn { LEFT };\nstatic int same(void)\n{\n    return 0;\n}\n")
        amalgamate.ROOT = self.folder
        self.assertEqual(amalgamate.clashes([one, other]), {"turns": ["one.c", "other.c"]})
        one.write_text("static struct {\n    int x;\n} same = {.x = 1};\n")
        self.assertEqual(amalgamate.clashes([one, other]), {"same": ["one.c", "other.c"]})

    @unittest.skipUnless(DEEP, "make test-long runs this")
    def test_compilers(self):
        for compiler in ("gcc", "clang", "musl-gcc"):
            for flags in (["-O2"], ["-O2", "-fPIC", "-std=c11"], ["-O1", "-flto"]):
                with self.subTest(compiler=compiler, flags=flags):
                    if not shutil.which(compiler):
                        self.skipTest(f"there is no {compiler}")
                    call(compiler, *flags, *WARNINGS, "-c", self.folder / "prudence.c", "-o", self.folder / "other.o")

    @unittest.skipUnless(DEEP, "make test-long runs this")
    def test_api(self):
        """With the private names of internal headers as prudence.c has them."""
        (self.folder / "prudence").mkdir()
        for name in re.findall(r"==== include/prudence/(\w+).h ====", self.header):
            (self.folder / f"prudence/{name}.h").write_text("#include <prudence.h>\n")
        renamed = self.folder / "names.h"
        renamed.write_text("".join(re.findall(r"^#define \w+ prudence_private_\w+\n", self.source, re.M)))
        flags = ["-O1", "-g", "-include", renamed]
        flags += [f"-I{folder}" for folder in (self.folder, ROOT / "tests", *(ROOT / folder for folder in module().SEARCHED))]
        library = self.folder / "optimized.o"
        call("gcc", "-O2", "-c", self.folder / "prudence.c", "-o", library)
        support = []
        for source in sorted((ROOT / "tests/support").glob("*.c")):  # linked into every test: nothing happens by time
            support.append(self.folder / f"{source.stem}.o")
            call("gcc", *flags, "-c", source, "-o", support[-1])
        ran = 0
        for source in sorted((ROOT / "tests/api").glob("test_*.c")):
            if OTHER_MEMBERS.search(source.read_text()) or source.stem in SHARED_ONLY:
                continue
            with self.subTest(source.name):
                program = self.folder / source.stem
                call("gcc", *flags, source, *support, library, "-lcmocka", "-pthread", "-lm", "-o", program)
                call(program)
                ran += 1
        self.assertGreater(ran, 10)


if __name__ == "__main__":
    unittest.main()
