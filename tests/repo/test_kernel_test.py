#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tools/kernel/test in a made-up tree, whose kernel says what the test wants: it passes only tested parts."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from preload import plain_base  # noqa: E402 (the path comes first)

FETCH = 'folder=$PWD/build/kernel/$1; mkdir -p "$folder"; echo 6.1.0 >"$folder/release"; echo "$folder"'
BOOT = 'echo "$TIMEOUT" >"$(dirname "$CONSOLE")/timeout"; echo booted >"$CONSOLE"; cat said; echo "# ${APPEND##*gp_preinit_delay=1 }"'


class KernelTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="prudence-kernel-test-", dir=plain_base())
        self.addCleanup(folder.cleanup)
        self.tree = Path(folder.name).resolve() / "tree"
        (self.tree / "tools/kernel").mkdir(parents=True)
        (self.tree / "kernel").mkdir()
        (self.tree / "kernel/test.sh").write_text("echo test\n")
        shutil.copy(ROOT / "tools/kernel/test", self.tree / "tools/kernel/test")
        for name, body in ("fetch", FETCH), ("build", ""), ("boot", BOOT), ("qemu-system-x86_64", ""), ("busybox", ""), ("cpio", ""):
            path = self.tree / ("tools/kernel" if name in ("fetch", "build", "boot") else "") / name
            path.write_text(f"#!/bin/bash\n{body}\n")
            path.chmod(0o755)

    def run_it(self, *kernels, said="ok 1 - one\n", seconds="2"):
        """Returns the exit status, and the last line."""
        (self.tree / "said").write_text(said)
        done = subprocess.run([self.tree / "tools/kernel/test", *kernels], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=os.environ | {"PATH": f"{self.tree}:{os.environ['PATH']}", "PRUDENCE_TORTURE_SECONDS": seconds})
        return done.returncode, done.stdout.splitlines()[-1]

    def first_line(self, name):
        return (self.tree / "build/kernel/6.1" / name).read_text().splitlines()[0]

    def test_passes(self):
        self.assertEqual(self.run_it("6.1", "6.12"), (0, "kernel-test: ok"))
        self.assertEqual((self.first_line("test.sh"), self.first_line("timeout")), ("seconds=2", "500"))

    def test_part_of_a_second(self):
        for seconds, whole in ("0.5", "1"), (".5", "1"), ("08.2", "9"):
            self.assertEqual(self.run_it(seconds=seconds), (0, "kernel-test: ok"))
            self.assertEqual(self.first_line("test.sh"), f"seconds={whole}")

    def test_what_fails_is_named(self):
        self.assertEqual(self.run_it(said="ok 1 - one\nnot ok 2 - two\n"), (1, "kernel-test: FAILED: 6.1"))
        self.assertEqual(self.run_it(said=""), (1, "kernel-test: FAILED: 6.1"))

    def test_what_was_not_tested_does_not_pass(self):
        self.assertEqual(self.run_it("6.1", "7.2", seconds="1+"), (1, "kernel-test: FAILED: 0 of 2 kernels were tested"))


if __name__ == "__main__":
    unittest.main()
