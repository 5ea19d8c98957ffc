#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tools/setup on a made-up system: commands that only note how they were called."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from preload import plain_base  # noqa: E402 (the path comes first)

SETUP = Path(__file__).resolve().parents[2] / "tools/setup"


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=plain_base())
        self.addCleanup(folder.cleanup)
        self.bin = Path(folder.name)
        self.calls = self.bin / "calls"
        self.calls.touch()
        for name in ("bash", "dirname", "env", "grep", "sh"):
            (self.bin / name).symlink_to(Path("/usr/bin", name))
        self.command("apt-get", f'echo "apt-get $1" >>{self.calls}')
        self.command("id", "echo 0")

    def command(self, name, body):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def installed(self, status):
        """dpkg-query answers with this status for every package but cmake, which is there."""
        self.command("dpkg-query", "shift 3; for package; do case $package in "
                     f'cmake) echo "installed cmake";; *) echo "{status} $package";; esac; done')

    def run_setup(self, *arguments, setup=SETUP):
        return subprocess.run(["/bin/bash", setup, *arguments], env={**os.environ, "PATH": str(self.bin)},
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def test_nothing_missing_changes_nothing(self):
        self.installed("installed")
        self.command("id", "echo 1000")
        done = self.run_setup()
        self.assertEqual((done.returncode, self.calls.read_text()), (0, ""), done.stdout)

    def test_missing_is_installed(self):
        self.installed("not-installed")
        done = self.run_setup()
        self.assertEqual((done.returncode, self.calls.read_text()),
                         (0, 2 * "apt-get update\napt-get install\n"), done.stdout)
        self.assertIn(" ninja-build ", done.stdout)
        self.assertNotIn(" cmake ", done.stdout)

    def test_removed_but_configured_is_missing(self):
        self.installed("config-files")
        self.assertIn("missing: build-essential", self.run_setup().stdout)

    def test_sudo_is_used(self):
        self.installed("not-installed")
        self.command("id", "echo 1000")
        self.command("sudo", f'echo sudo >>{self.calls}; exec "$@"')
        self.assertEqual(self.run_setup().returncode, 0)
        self.assertEqual(self.calls.read_text(), 2 * "sudo\napt-get update\nsudo\napt-get install\n")

    def test_neither_root_nor_sudo(self):
        self.installed("not-installed")
        self.command("id", "echo 1000")
        done = self.run_setup()
        self.assertEqual((done.returncode, self.calls.read_text()), (1, ""))
        self.assertIn("there is no sudo", done.stdout)

    def copy_of_setup(self):
        """In a tree of its own, since --programs writes below build/."""
        copy = self.bin / "tree/tools/setup"
        copy.parent.mkdir(parents=True)
        copy.write_bytes(SETUP.read_bytes())
        lock = self.bin / "tree/lab/measure/peers/Cargo.lock"
        lock.parent.mkdir(parents=True)
        lock.write_text("the lock\n")
        return copy

    def test_programs_are_extra(self):
        self.installed("not-installed")
        self.command("python3", f'echo "python3 $2" >>{self.calls}; '
                     f'mkdir -p $3/bin; printf "#!/bin/sh\necho pip >>{self.calls}" >$3/bin/pip; '
                     'chmod +x $3/bin/pip')
        self.command("cargo", f'if [ "$1" = vendor ]; then echo vendor >>{self.calls}; shift $(($# - 1)); mkdir -p "$1"; fi')
        self.command("cmake", f"echo cmake >>{self.calls}")
        self.command("ninja", f"echo ninja >>{self.calls}")
        for name in ("mkdir", "chmod"):
            (self.bin / name).symlink_to(Path("/usr/bin", name))
        self.assertNotIn("redis", self.run_setup().stdout)
        self.calls.write_text("")
        done = self.run_setup("--programs", setup=self.copy_of_setup())
        self.assertIn(" redis-server ", done.stdout)
        self.assertEqual((done.returncode, self.calls.read_text()),
                         (0, 2 * "apt-get update\napt-get install\n" + "python3 venv\npip\nvendor\ncmake\nninja\n"), done.stdout)
        self.calls.write_text("")
        again = self.run_setup("--programs", setup=self.bin / "tree/tools/setup")
        self.assertIn("the allocators of Rust's registry are built", again.stdout)
        self.assertNotIn("ninja", self.calls.read_text())

    def test_programs_without_pypi(self):
        self.installed("installed")
        self.command("python3", "exit 1")
        done = self.run_setup("--programs", setup=self.copy_of_setup())
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("the benchmark goes without it", done.stdout)
        self.assertIn("the benchmark goes without those that are missing", done.stdout)

    def test_the_demo_needs_less(self):
        self.installed("not-installed")
        done = self.run_setup("--demo")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(" libjansson-dev ", done.stdout)
        for other in ("clang", "qemu", "aarch64", "cmocka", "cargo", "busybox", "valgrind", "crates"):
            self.assertNotIn(other, done.stdout)
        called = subprocess.run(["make", "-n", "demo"], cwd=SETUP.parents[1], check=True, text=True,
                                capture_output=True).stdout
        self.assertEqual(re.findall(r"tools/setup.*|--preset \S+", called),
                         ["tools/setup --demo", "--preset demo", "--preset demo"])

    def test_a_release_needs_less(self):
        self.installed("not-installed")
        self.command("python3", "exit 1")
        done = self.run_setup("--release", setup=self.copy_of_setup())
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(" reuse ", done.stdout)
        self.assertIn("a release has no bill of materials", done.stdout)
        self.assertNotIn("clang", done.stdout)

    def test_the_debug_kernel_is_extra(self):
        self.installed("not-installed")
        self.assertNotIn(" coccinelle", self.run_setup().stdout)
        self.assertIn(" flex bison coccinelle", self.run_setup("--fuzz").stdout)

    def test_both_compilers_are_installed(self):
        self.installed("not-installed")
        self.assertIn(" clang libclang-rt-14-dev", self.run_setup().stdout)

    def test_compiler_for_aarch64_that_cannot_be_had(self):
        self.installed("not-installed")
        self.command("apt-get", f'echo "$*" >>{self.calls}; case $* in *aarch64*) exit 100;; esac')
        done = self.run_setup()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user could not be installed", done.stdout)
        self.assertEqual(self.run_setup("--aarch64").returncode, 1)

    def test_what_aarch64_needs(self):
        self.installed("not-installed")
        plain = self.run_setup().stdout
        self.assertIn(" gcc-aarch64-linux-gnu ", plain)
        self.assertNotIn(" qemu-system-arm", plain)
        whole = self.run_setup("--aarch64").stdout
        for package in ("gcc-aarch64-linux-gnu", "g++-aarch64-linux-gnu", "qemu-system-arm"):
            self.assertIn(f" {package} ", whole)

    def test_unknown_argument(self):
        self.installed("installed")
        done = self.run_setup("--program")
        self.assertEqual(done.returncode, 1)
        self.assertIn("unknown argument '--program'", done.stdout)

    def test_not_debian(self):
        (self.bin / "apt-get").unlink()
        done = self.run_setup()
        self.assertEqual(done.returncode, 1)
        self.assertIn("not a Debian-like system", done.stdout)

    def test_apt_fails(self):
        self.installed("not-installed")
        self.command("apt-get", "exit 100")
        self.assertEqual(self.run_setup().returncode, 1)


if __name__ == "__main__":
    unittest.main()
