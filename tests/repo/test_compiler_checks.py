#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs keep the compilers' checks of malloc when they move to our functions: known sizes, warnings, and _FORTIFY_SOURCE=3 (ADR 10)."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "tools"))
from preload import ld_preload  # noqa: E402 (the path comes first)
HEAD = "\n".join(f"#include <{name}.h>" for name in ("malloc", "prudence/prudence", "prudence/scm", "stdio", "stdlib", "string")) + "\n"
GCC = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True).stdout.startswith(("cc (", "gcc"))
COMPILERS = [name for name in ("cc", "clang") if shutil.which(name)]
MADE = ("prudence_malloc(10)", "prudence_calloc(2, 5)", "prudence_aligned_alloc(64, 10)", "prudence_realloc(p, 10)", "prudence_aligned_realloc(p, 64, 10)",
        "prudence_sizes_alloc(p, 10)", "scm_malloc(10)", "scm_calloc(5, 2)", "scm_realloc(p, 10)", "scm_region_alloc(p, 10)")
OURS = {"malloc": "prudence_malloc", "realloc": "prudence_realloc", "free": "prudence_free", "usable": "prudence_usable_size"}
THEIRS = {"malloc": "malloc", "realloc": "realloc", "free": "free", "usable": "malloc_usable_size"}
# {statements: warning}, of which GCC warns for both. `p` is a block of 10 bytes.
WRONG = {"memset(p, 1, 11);": "array-bounds|stringop-overflow", "%(malloc)s(10);": "unused-result", "%(realloc)s(p, 20);": "unused-result",
         "%(free)s(p + 1);": "free-nonheap-object", "%(free)s(p); use(p);": "use-after-free"}
MIXED = ("free(prudence_malloc(10));", "prudence_free(malloc(10));", "prudence_free_sized(malloc(10), 10);")
RIGHT = ("prudence_free_deferred(p); use(p);", "prudence_free_sized(p, 10);", "prudence_free(prudence_cache_alloc(cache));",
         "prudence_cache_free(cache, prudence_cache_alloc(cache));", "prudence_cache_free(cache, p);", "prudence_free(prudence_realloc(p, 20));",
         "char *q = (char *)prudence_realloc(p, 20); prudence_free(q ? q : p);", "scm_free(scm_malloc(10));", "prudence_free(scm_malloc(10));", "prudence_free_deferred(malloc(10));", "free(malloc(10));")
WRITES = """
int main(int count, char **words)
{
    size_t asked = count > 9 ? 50 : 100, usable; /* known when the program runs */
    char *p = %(malloc)s(asked);

    (void)words;
    usable = %(usable)s(p);
    if (count == 2)
        p = %(realloc)s(p, usable);
    memset(p, 1, usable);
    return usable == 100 || p[usable - 1] != 1;
}
"""


class CompilerChecks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = Path(folder.name, "program")

    def compile(self, text, *flags, compiler="cc"):
        """Returns the warnings."""
        done = subprocess.run([compiler, "-O2", "-Wall", "-Wextra", f"-I{ROOT}/include", "-o", self.program, *flags], input=HEAD + text, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def unknown(self, text, *flags, compiler):
        """Functions that the compiled text calls although it defines none of that name."""
        self.compile(text, "-c", *flags, "-", compiler=compiler)
        said = subprocess.run(["nm", "-u", self.program], capture_output=True, text=True, check=True).stdout
        return sorted(re.findall(r"unknown_\d+", said))

    def warnings_of(self, statements, names, *flags):
        text = (f"void use(void *);\nvoid f(struct prudence_cache *);\nvoid f(struct prudence_cache *cache)\n{{\n"
                f" char *p = (char *)%(malloc)s(10);\n (void)cache; use(p);\n {statements}\n}}\n")
        return self.compile(text.replace("void use", 'extern "C" void use') % names if "c++" in flags else text % names, "-c", "-x", *(flags or ("c",)), "-")

    def test_compilers_know_the_sizes(self):
        text = "".join(f"void unknown_{i}(void);\nvoid *f{i}(void *);\nvoid *f{i}(void *p)\n{{\n p = {made};\n if (__builtin_object_size(p, 0) != 10)\n"
                       f"  unknown_{i}();\n return p;\n}}\n" for i, made in enumerate([*MADE, "prudence_realloc(p, *(int *)p)"]))
        for compiler in COMPILERS:
            self.assertEqual(self.unknown(text, "-x", "c", compiler=compiler), [f"unknown_{len(MADE)}"], compiler)

    def test_all_that_allocate_at_least_gives_may_be_used(self):
        """The library of C++ need not have it yet."""
        text = "".join(f'extern "C" void unknown_{i}();\nchar *f{i}()\n{{\n char *p = prudence::allocator<char>().{call};\n'
                       f" if (__builtin_dynamic_object_size(p, 0) != {size})\n  unknown_{i}();\n return p;\n}}\n"
                       for i, (call, size) in enumerate((("allocate(10)", 10), ("allocate_at_least(10).ptr", "(size_t)-1"))))
        head = ("#include <memory>\n#ifndef __cpp_lib_allocate_at_least\n#define __cpp_lib_allocate_at_least 1\n"
                "namespace std { template <class P, class S = size_t> struct allocation_result { P ptr; S count; }; }\n#endif\n#include <prudence/allocator.hpp>\n")
        for compiler in [name for name in ("c++", "clang++") if shutil.which(name)]:
            self.assertEqual(self.unknown(head + text, "-x", "c++", "-std=c++20", compiler=compiler), [], compiler)

    @unittest.skipUnless(GCC, "these warnings are GCC's")
    def test_warns_as_of_malloc(self):
        for statements, warning in WRONG.items():
            for names in (OURS, THEIRS):
                self.assertRegex(self.warnings_of(statements, names), rf"-W({warning})\b", statements % names)
        for statements in MIXED:
            self.assertIn("-Wmismatched-dealloc", self.warnings_of(statements, OURS), statements)

    def test_does_not_warn_of_what_is_right(self):
        for statements in RIGHT:
            for flags in ((), ("c++",)):
                self.assertEqual(self.warnings_of(statements, OURS, *flags), "", statements)

    def test_usable_bytes_may_be_written_after_a_realloc(self):
        """With _FORTIFY_SOURCE=3, where the compiler knows sizes only when the program runs (GCC 12, Clang 9)."""
        for names, preload in ((OURS, ""), (THEIRS, ""), (THEIRS, ld_preload(BUILD / "libprudence-malloc.so"))):
            self.compile(WRITES % names, "-D_FORTIFY_SOURCE=3", "-x", "c", "-", "-x", "none", f"-L{BUILD}", "-lprudence", f"-Wl,-rpath,{BUILD}")
            for words, status in (([], -signal.SIGABRT), (["again"], 0)):
                done = subprocess.run([self.program, *words], stderr=subprocess.DEVNULL, check=False, env=os.environ | {"LD_PRELOAD": preload})
                self.assertEqual(done.returncode, status, (names, preload, words))


if __name__ == "__main__":
    unittest.main()
