#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Public headers in strict programs: each alone, twice (the second time finds a missing include guard), and
their macros in use, as C and C++ of several years, by GCC and Clang, with warnings that such programs turn on."""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INCLUDE = ROOT / "include"
COMPAT = INCLUDE / "prudence/urcu-compat"
SCM_COMPAT = INCLUDE / "prudence/scm-compat"
STRICT = """-Werror -Wall -Wextra -Wpedantic -Wshadow -Wempty-body -Wconversion -Wsign-conversion -Wcast-align
    -Wcast-qual -Wundef -Wpointer-arith -Wwrite-strings -Wredundant-decls -Wdouble-promotion -Wformat=2
    -Wnull-dereference -Wvla -Wmissing-declarations -Wswitch-default""".split()
STRICT_C = "-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wbad-function-cast".split()
STRICT_CXX = "-Wold-style-cast -Wzero-as-null-pointer-constant -Wextra-semi -Wnon-virtual-dtor".split()
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"  # make test-long: each compiler with each language
LANGUAGES = [("c", "c11"), ("c", "c17"), ("c++", "c++17"), ("c++", "c++20")]
COMPILERS = {"gcc": {"c": "gcc", "c++": "g++"}, "clang": {"c": "clang", "c++": "clang++"}}


def compilers():
    found = [name for name in COMPILERS if shutil.which(name)]
    if len(found) < 2:
        print(f"only {found} is here: nothing is known about the other compiler", file=sys.stderr)
        if os.environ.get("CI"):
            sys.exit("gcc and clang are needed (tools/setup installs both)")
    return found


def compile_text(text, compiler, language, standard, *flags):
    """Returns the complaint of the compiler, or None."""
    strict = STRICT + (STRICT_C if language == "c" else STRICT_CXX)
    done = subprocess.run([COMPILERS[compiler][language], f"-std={standard}", "-O2", *strict, *flags,
                           f"-I{INCLUDE}", "-x", language, "-c", "-o", "/dev/null", "-"],
                          input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return f"{compiler} {standard}: {text[:60]}\n{done.stdout}" if done.returncode else None


def twice(headers):
    # Not empty: a header of macros alone leaves nothing else.
    return "".join(f"#include <{header}>\n" for header in headers) * 2 + "typedef int nothing;\n"


# The following need headers that are for C, or that few systems have. tests/toolkit compiles them.
OF_OTHERS = {"ck-domain.h", "dpdk-domain.h"}


class Headers(unittest.TestCase):
    def all_compile(self, texts, *flags, languages=None):
        found, languages = compilers(), languages or LANGUAGES
        ways = [(text, one, language) for text, one, language in itertools.product(texts, found, languages)
                if DEEP or len(languages) == 1 or (found.index(one) + languages.index(language)) % 2 == 0]
        with ThreadPoolExecutor(2) as pool:
            wrong = [say for say in pool.map(
                lambda way: compile_text(way[0], way[1], *way[2], *flags), ways) if say]
        self.assertEqual(wrong, [], "\n".join(wrong[:3]))

    @unittest.skipUnless(DEEP, "make test-long")
    def test_each_alone(self):
        headers = sorted(path.relative_to(INCLUDE) for path in INCLUDE.glob("prudence/*.h") if path.name not in OF_OTHERS)
        self.assertGreater(len(headers), 8)
        self.all_compile([twice([header]) for header in headers])

    def test_macros_in_use(self):
        self.all_compile([(HERE / "uses_of_headers.c").read_text()])

    def test_with_longer_slices(self):
        self.all_compile([twice(["prudence/rcu.h"])], "-DPRUDENCE_READER_SLICES")

    def test_with_thread_sanitizer(self):
        self.all_compile([twice(["prudence/rcu.h"])], "-fsanitize=thread")

    @unittest.skipUnless(DEEP, "make test-long")
    def test_names_of_liburcu(self):
        headers = sorted(path.relative_to(COMPAT) for path in COMPAT.rglob("*.h")
                         if not path.name.startswith("prudence-") and "map" not in path.parts)
        self.assertGreater(len(headers), 20)
        self.all_compile([twice([header]) for header in headers], f"-I{COMPAT}",
                         languages=LANGUAGES[:1])
        self.all_compile([twice(headers)], f"-I{COMPAT}")

    def test_names_of_libscm(self):
        headers = sorted(path.name for path in SCM_COMPAT.glob("*.h"))
        self.assertEqual(len(headers), 3)
        self.all_compile([twice([header]) for header in headers], f"-I{SCM_COMPAT}")

    def test_32_bits_are_refused(self):
        """Few systems have headers for 32 bits, so the compiler's own macro stands in for -m32, except in one header."""
        pretended = ["-Wno-builtin-macro-redefined", "-U__SIZEOF_POINTER__", "-D__SIZEOF_POINTER__=4"]
        ways = [(header.relative_to(INCLUDE), flags) for header in sorted(INCLUDE.glob("prudence/*.h")) for flags in (pretended, [])]
        if os.uname().machine == "x86_64":
            ways += [("prudence/prudence.h", ["-m32"]), ("prudence/prudence.h", ["-mx32"])]
        for compiler, (header, flags) in itertools.product(compilers()[:2 if DEEP else 1], ways):
            said = subprocess.run([COMPILERS[compiler]["c"], "-E", *flags, f"-I{INCLUDE}", INCLUDE / header], text=True,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE).stderr
            self.assertEqual("Prudence needs a 64-bit program" in said, bool(flags), f"{compiler} {flags} {header}: {said}")

    def test_a_build_for_32_bits_is_refused(self):
        if os.uname().machine != "x86_64":
            self.skipTest("compilers for other processors have no -m32")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["cmake", "-S", INCLUDE.parent, "-B", folder, "-DCMAKE_C_FLAGS=-m32",
                                   "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY"],  # no system libraries either
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Prudence needs a 64-bit system: the compiler's pointers have 4 bytes", " ".join(done.stdout.split()))

    def test_a_fault_is_found(self):
        for fault in ("static inline int wrong(long a) { return a; }\n", "#if UNDEFINED_NAME\n#endif\n"):
            self.assertIsNotNone(compile_text(fault, "gcc", "c", "c11"))


if __name__ == "__main__":
    unittest.main()
