#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Traces name the plug-in that had the code when they were captured, although it was unloaded since and another one has its addresses:
in profiles and in reports of misuse."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "tools"))
from preload import ld_preload  # noqa: E402 (the path comes first)

PLUGIN = r"""
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) void *NAME(void) { void *block = malloc(1000); memset(block, 1, 1000); return block; }
void *entry(unsigned blocks) { void *last = 0; while (blocks--) { void **block = NAME(); *block = last; last = block; } return last; }
"""
# Arguments: the files loaded and unloaded one after another ("-": not unloaded), then the file whose last block is freed twice, or "".
PROGRAM = r"""
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
static void *(*first_entry)(unsigned);
int main(int count, char **names)
{
    void *blocks[8] = {0};
    for (int i = 1; i < count - 1; i++) {
        void *plugin = dlopen(names[i] + (*names[i] == '-'), RTLD_NOW);
        void *(*entry)(unsigned) = (void *(*)(unsigned))dlsym(plugin, "entry");
        if (!first_entry) first_entry = entry;
        if (first_entry != entry) return 2; /* it has other addresses */
        blocks[i] = entry(2000);
        if (*names[i] != '-') dlclose(plugin);
    }
    for (int i = 1; i < count - 1; i++)
        if (*names[count - 1] && strstr(names[i], names[count - 1])) { free(blocks[i]); free(blocks[i]); }
    return 0;
}
"""


def supported():
    """Returns whether the C library finds modules without a lock (glibc 2.35)."""
    return b"_dl_find_object" in Path(BUILD / "libprudence-malloc.so").read_bytes()


@unittest.skipUnless(supported(), "the C library has no _dl_find_object")
class Unloaded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="prudence-unloaded-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        flags = ["cc", "-g", "-O1", "-fno-optimize-sibling-calls", "-xc", "-"]
        subprocess.run([*flags, "-o", cls.folder / "program"], input=PROGRAM, text=True, check=True)
        for name in ("alpha", "beta"):
            subprocess.run([*flags, "-shared", "-fPIC", f"-DNAME={name}_allocates", "-o", cls.folder / f"{name}.so"],
                           input=PLUGIN, text=True, check=True)

    def run_program(self, *plugins, twice="", options):
        words = [f"{'-' * plugin.startswith('-')}{self.folder}/{plugin.removeprefix('-')}.so" for plugin in plugins]
        done = subprocess.run([self.folder / "program", *words, twice], text=True, capture_output=True, timeout=100,
                              env=os.environ | {"LD_PRELOAD": ld_preload(BUILD / "libprudence-malloc.so"), "PRUDENCE_OPTIONS": options})
        if done.returncode == 2:
            self.skipTest("the second plug-in got other addresses")
        return done

    def profile(self, *plugins):
        """Bytes in use by the function that allocated them."""
        file = self.folder / "profile"
        self.assertEqual(self.run_program(*plugins, options=f"profile=4K,profile_file={file}").returncode, 0)
        text = subprocess.run([BUILD / "bin/prudence-profile", file], text=True, stdout=subprocess.PIPE, check=True).stdout
        found = {}
        for size, unit, function in re.findall(r"^ +([0-9.]+)([KM]?) .*: (\w+_allocates) <", text, re.M):
            found[function] = found.get(function, 0) + float(size) * {"": 1, "K": 1 << 10, "M": 1 << 20}[unit]
        return found

    def test_a_profile_tells_two_apart(self):
        for plugins in (("alpha", "-beta"), ("alpha", "beta"), ("alpha", "beta", "alpha", "-beta")):
            with self.subTest(plugins):
                found = self.profile(*plugins)
                for name in ("alpha", "beta"):
                    expected = sum(name in plugin for plugin in plugins) * 2_000_000
                    self.assertLess(abs(found.get(f"{name}_allocates", 0) - expected), 0.3 * expected, found)

    def test_a_profile_has_an_unloaded_one_that_nothing_replaced(self):
        self.assertIn("alpha_allocates", self.profile("alpha"))

    def allocated_by(self, *plugins, twice):
        done = self.run_program(*plugins, twice=twice, options="check=1")
        self.assertNotEqual(done.returncode, 0)
        return done.stderr[done.stderr.index("allocated by"):].splitlines()[1]

    def test_a_report_says_so(self):
        for plugins in (("alpha", "-beta"), ("alpha",), ("alpha", "beta")):
            with self.subTest(plugins):
                line = self.allocated_by(*plugins, twice="alpha")
                self.assertRegex(line, r"\(\S+/alpha\.so\+0x\w+\) \[unloaded\]$")

    def test_one_that_is_there_is_named_as_ever(self):
        line = self.allocated_by("alpha", "-beta", twice="beta")
        self.assertRegex(line, r" in beta_allocates\+0x\w+ \(\S+/beta\.so\+0x\w+\)$")


if __name__ == "__main__":
    unittest.main()
