#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (a tool whose tests are run as well)
"""tools/test/programs with made-up tests and libraries: it reports failures, and believes no claim that a
library was used."""

import ast
import os
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "from support import Failed, Program\nclass Test(Program):\n"

# A malloc that takes everything from a static block and frees nothing; FAULT makes it wrong.
MALLOC = r"""
#include <stddef.h>
#include <string.h>
static char block[64 << 20] __attribute__((aligned(4096)));
static size_t used;
void *malloc(size_t size)
{
    size_t *start = (size_t *)(block + __atomic_fetch_add(&used, (size + 31) / 16 * 16, 5));
    start[1] = size;
    return start + 2;
}
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t size) { return malloc(n * size); }
void *realloc(void *p, size_t size)
{
    void *moved = malloc(size);
    size_t old = p ? ((size_t *)p)[-1] : 0;
    return memcpy(moved, p ? p : "", (old < size ? old : size) / FAULT);
}
"""


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.output = self.folder / "output"

    def library(self, text, name="libmade.so"):
        path = self.folder / name
        subprocess.run(["cc", "-O2", "-fno-builtin", "-shared", "-fPIC", "-o", path, "-xc", "-"],
                       input=text, text=True, check=True)
        return path

    def run_made(self, body, library=None, name="made", **environment):
        """Run one made-up test, whose class has this body. Returns the status and the output."""
        (self.folder / f"program_{name}.py").write_text(
            PREFIX + "".join(f"    {line}\n" for line in body.splitlines()))
        environment = {**{key: value for key, value in os.environ.items() if key != "CI"}, **environment}
        done = subprocess.run(
            [ROOT / "tools/test/programs", "--folder", self.folder, "--output", self.output, "--library",
             library or self.library(MALLOC.replace("FAULT", "1")), name],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        return done.returncode, done.stdout

    def fails(self, words, *arguments, **environment):
        status, text = self.run_made(*arguments, **environment)
        self.assertEqual(status, 1, text)
        self.assertIn(words, text)
        return text

    def test_passes(self):
        status, text = self.run_made("def test_sort(self):\n self.run_program('sort', '/etc/passwd')")
        self.assertEqual(status, 0, text)
        self.assertIn("bound in 1 processes", text)
        self.assertIn("1 passed, 0 failed, 0 skipped", text)

    def test_a_library_without_malloc_is_not_used(self):
        self.fails("is that of /lib/x86_64-linux-gnu/libc.so.6" if os.uname().machine == "x86_64" else
                   "is that of", "def test_sort(self):\n self.run_program('sort', '/etc/passwd')",
                   self.library("int none;"))

    def test_a_library_without_realloc_is_not_enough(self):
        text = MALLOC.replace("FAULT", "1").replace("*realloc(", "*not_realloc(")
        self.fails("realloc called by", "def test_sort(self):\n self.run_program('sort', '/etc/passwd')",
                   self.library(text))

    def test_no_preload_is_no_proof(self):
        self.fails("nothing was seen", "def test_sort(self):\n self.run_plain('sort', '/etc/passwd')")

    @unittest.skipUnless(shutil.which("busybox"), "busybox is not installed")
    def test_a_server_without_the_library_is_seen(self):
        """A static one, which never has it, also not for a moment."""
        self.fails("have not mapped", "patience = 1\ndef test_sleep(self):\n"
                   " self.run_program('busybox', 'sleep', 5, watch=True)")

    def test_too_few_allocations_counted(self):
        library = self.library(MALLOC.replace("FAULT", "1"), "libprudence-made.so")
        self.fails("0 processes counted at most 0",
                   "def test_sort(self):\n self.run_program('sort', '/etc/passwd')", library)

    @unittest.skipUnless(shutil.which("lua5.4"), "lua5.4 is not installed")
    def test_a_wrong_malloc_is_caught(self):
        """realloc that loses half of the bytes: Lua's real test fails."""
        library = self.library(MALLOC.replace("FAULT", "2"))
        done = subprocess.run([ROOT / "tools/test/programs", "--output", self.output, "--library", library,
                               "lua"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 1, done.stdout)

    def test_failure_is_shown_and_kept(self):
        text = self.fails("ls returned 2", "def test_ls(self):\n self.run_program('ls', '/no such file')")
        self.assertIn("No such file", text)
        self.assertIn("ls '/no such file'", (self.output / "made-ls/commands").read_text())
        self.assertIn("No such file", (self.output / "made-ls/00-ls.err").read_text())

    def test_a_signal_is_named(self):
        self.fails("SIGABRT", "def test_signal(self):\n self.run_program('bash', '-c', 'kill -ABRT $$')")

    def test_a_hang_is_ended(self):
        text = self.fails("still ran after 1 s", "def test_hang(self):\n"
                          " self.run_program('bash', '-c', 'sleep 987654 & wait', limit=1)")
        self.assertNotIn("ERROR", text)
        found = subprocess.run(["grep", "-slx", "sleep", *Path("/proc").glob("[0-9]*/comm")],
                               stdout=subprocess.PIPE, text=True).stdout.split()
        for comm in found:
            self.assertNotIn(b"987654", Path(comm).with_name("cmdline").read_bytes())

    def test_interrupted_leaves_nothing(self):
        (self.folder / "program_made.py").write_text(
            PREFIX + "    def test_sleep(self):\n        self.run_program('sleep', 987653, watch=True)")
        place = self.folder / "temporary"
        place.mkdir()
        runner = subprocess.Popen(
            [ROOT / "tools/test/programs", "--folder", self.folder, "--output", self.output, "--library",
             self.library(MALLOC.replace("FAULT", "1")), "made"], stdout=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(place)})
        children = Path(f"/proc/{runner.pid}/task/{runner.pid}/children")
        while not (text := children.read_text()):
            time.sleep(0.05)
        time.sleep(0.5)
        runner.terminate()
        self.assertEqual(runner.wait(), 1)
        self.assertEqual(list(place.iterdir()), [])
        self.assertFalse(Path("/proc", text.split()[0]).exists())

    def test_a_server_that_ends_is_reported(self):
        self.fails("returned 3 at start", "def test_server(self):\n"
                   " self.start_server('bash', '-c', 'exit 3', ready=lambda: False)")

    def test_missing_is_skipped(self):
        body = "packages = ('no-package',)\nwanted = ('no-program',)\ndef test_it(self):\n pass"
        status, text = self.run_made(body)
        self.assertEqual(status, 77, text)
        self.assertIn("SKIPPED", text)
        self.assertIn("no-program not found; tools/setup --programs installs no-package", text)
        self.fails("failures in CI", body, CI="true")

    def test_unknown_program(self):
        done = subprocess.run([ROOT / "tools/test/programs", "--library", "/dev/null", "nothing"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown program nothing; there are:", done.stdout)

    def test_setup_installs_what_is_wanted(self):
        """Each package that a test names is in tools/setup, or part of every Debian system."""
        listed = set((ROOT / "tools/setup").read_text().split())
        listed |= {"gcc", "g++", "python3.11", "bash", "coreutils", "mawk", "sed", "grep", "tar", "gzip"}
        for path in (ROOT / "tests/programs").glob("program_*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "packages":
                    self.assertLessEqual(set(ast.literal_eval(node.value)), listed, path.name)


if __name__ == "__main__":
    unittest.main()
