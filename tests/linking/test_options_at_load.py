#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 21
"""Programs start and end with every option, and with every pair of options: preloaded, static, loaded late.

An option may need a feature that is not available yet where options are read: inside the dynamic loader's first
malloc, or before a static program's unwinder is ready (src/core/process/process.c)."""

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
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"  # make test-long
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "tools"))
from preload import ld_preload  # noqa: E402 (the path comes first)
SHARED, MALLOC = BUILD / "libprudence.so", BUILD / "libprudence-malloc.so"
STATIC, STATIC_MALLOC = BUILD / "libprudence.a", BUILD / "libprudence-malloc.a"
# Values that differ from the default of each.
VALUES = {
    "limit": "1G", "latent_limit": "1M", "latent_ceiling": "48M", "call_limit": "1M", "wait_max": "1s", "stall_timeout": "1ms",
    "stall_trace": "1", "retain": "1M", "decay": "0", "huge_pages": "1", "page_size": "16K", "background": "1", "preflush": "0",
    "stats": "1",
    "scm_max_extension": "5", "scm_collection": "eager", "scm_expired": "deferred",
    "reader_mode": "fenced", "check": "1", "trace": "8", "zero_on_free": "1", "guard": "1",
    "quarantine": "1M", "annotate": "0", "rseq": "0", "slice_extension": "0", "membarrier": "0", "drop_deepbind": "0",
    "hardened": "1", "red_zones": "1", "shuffle": "1", "guard_large": "1", "guard_first": "0", "guard_empty": "1",
    "dump": "SIGUSR2", "dump_file": "/dev/null", "report_file": "/dev/null", "harmless_misuse": "abort", "export": "1",
    "profile": "4K", "profile_file": "/dev/null", "profile_signal": "SIGUSR1", "cache_per_cpu": "1M", "cache_total": "4M",
    "sandbox": "1",
}
SINGLE = [f"{name}={VALUES[name]}" for name in VALUES]
PARTS = ("red_zones", "shuffle", "guard_large", "guard_first", "guard_empty", "profile_") # of hardened=1 and profile, which are in the pairs for them
PAIRS = [",".join(pair) for pair in itertools.combinations(
    [one for one in SINGLE if not one.startswith(PARTS)], 2)
    if set(pair) != {"sandbox=1", "background=1"}] # there is no helper, and that is said (preload/test_sandbox.py)

# With sandbox=1 those say that they have no effect.
ALL = ",".join(one for one in SINGLE if one != "sandbox=1")


def compilers():
    found = [name for name in ("gcc", "clang") if shutil.which(name)]
    if len(found) < 2 and os.environ.get("CI"):
        sys.exit("gcc and clang are needed (tools/setup installs both)")
    return found


def run(command, options, preload=()):
    names = {**os.environ, "PRUDENCE_OPTIONS": options, "LD_PRELOAD": ld_preload(*preload)}
    try:
        done = subprocess.run([str(word) for word in command], env=names, text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except subprocess.TimeoutExpired:
        return f"{options}: hangs"
    errors = re.sub(r"prudence: statistics of process(.*\n)*", "", done.stderr)
    if "stats=1" in options.split(",") and errors == done.stderr:
        return f"{options}: no statistics"
    return f"{options}: exit {done.returncode}, {errors}" if done.returncode or errors else None


class Options(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)

    def build(self, compiler, source, *arguments):
        out = self.folder / f"{self._testMethodName}-{compiler}"
        command = [compiler, "-O2", f"-I{ROOT}/include", HERE / source, "-o", out, *arguments, "-pthread"]
        done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.assertEqual((done.returncode, done.stdout), (0, ""), command)
        return out

    def starts(self, *command, options, preload=()):
        with ThreadPoolExecutor(2) as pool:
            wrong = [say for say in pool.map(lambda one: run(command, one, preload), options) if say]
        self.assertEqual(wrong, [], f"{len(wrong)} of {len(options)}: {command}")

    def test_all_are_here(self):
        table = re.findall(r'^    \{ROW_\w+\("(\w+)"', "".join(path.read_text() for path in (ROOT / "src").rglob("*.c")), re.M)
        self.assertEqual(sorted(table), sorted([*VALUES, "help"]))  # which prints: api_test_options_environment

    def test_preloaded(self):
        self.starts("/bin/true", options=["", *SINGLE, *PAIRS, ALL], preload=[MALLOC])

    def test_both_preloaded(self):
        self.starts("/bin/true", options=SINGLE, preload=[MALLOC, SHARED])
        self.starts("/bin/true", options=SINGLE, preload=[SHARED, MALLOC])

    def test_static(self):
        for compiler in compilers():
            program = self.build(compiler, "program_allocates.c", "-static", "-Wl,-u,malloc", STATIC_MALLOC)
            self.starts(program, options=["", *SINGLE, *(PAIRS if DEEP else []), ALL])

    def test_static_without_malloc(self):
        for compiler in compilers():
            program = self.build(compiler, "program_allocates.c", "-static", STATIC)
            self.starts(program, options=SINGLE)

    def test_static_pie(self):
        for compiler in compilers():
            program = self.build(compiler, "program_allocates.c", "-fPIE", "-static-pie", "-Wl,-u,malloc",
                                 STATIC_MALLOC)
            self.starts(program, options=SINGLE)

    def test_static_cxx(self):
        for compiler in compilers():
            program = self.build({"gcc": "g++", "clang": "clang++"}[compiler], "program_throws.cpp",
                                 "-static", "-Wl,-u,malloc", STATIC_MALLOC)
            self.starts(program, options=SINGLE)

    def test_loaded_late(self):
        host = self.build("gcc", "host.c", "-ldl")
        self.starts(host, f"+{SHARED}", f"+{MALLOC}", options=[one for one in SINGLE if "stats" not in one])

    @unittest.skipUnless(shutil.which("valgrind"), "needs valgrind")
    def test_under_valgrind(self):
        program = self.build("gcc", "program_allocates.c", SHARED, f"-Wl,-rpath,{BUILD}")
        self.starts("valgrind", "-q", program, options=["stall_trace=1,check=1,guard=1", "background=1"])


if __name__ == "__main__":
    if len(compilers()) < 2:
        print(f"only {compilers()} is here: nothing is known about the other compiler", file=sys.stderr)
    unittest.main()
