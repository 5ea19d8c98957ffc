#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`make install` says what its prefix needs, and that is enough; `make uninstall` leaves nothing; nothing below build/ becomes root's.

A stand-in for the checkout has the Makefile and tools/install, and installs some files, or those of this test's build. So nothing is
compiled.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from preload import plain_base  # noqa: E402 (the path comes first)

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build"))
PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(stand_in NONE)
set(PRUDENCE_BUILD_ADVISE OFF CACHE BOOL "")
install(DIRECTORY TREE/ DESTINATION . USE_SOURCE_PERMISSIONS)
"""
PROGRAM = re.search(r"```c\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
CLEAN = {name: value for name, value in os.environ.items()
         if name not in ("PREFIX", "prefix", "DESTDIR", "LD_RUN_PATH", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "VERBOSE", "PYTHONDONTWRITEBYTECODE")}
NOBODY = 65534


def run(*command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=options.pop("env", CLEAN), **options)
    if done.returncode:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def paths(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


class MakeInstall(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=plain_base())
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.root.chmod(0o755)
        self.checkout, self.prefix = self.root / "checkout", self.root / "prefix"
        (self.checkout / "tools").mkdir(parents=True)
        for name in ("Makefile", "tools/install"):
            shutil.copy(ROOT / name, self.checkout / name)
        self.tree = self.root / "tree"
        (self.checkout / "CMakeLists.txt").write_text(PROJECT.replace("TREE", str(self.tree)))
        for name in ("bin/tool", "lib/libprudence.so", "lib/pkgconfig/prudence.pc", "share/prudence/package/module.py"):
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / name).write_text("x = 1\n")

    def make(self, *arguments, **options):
        return run("make", *arguments, cwd=self.checkout, **options)

    def test_what_it_prints_is_enough(self):
        run("cmake", "--install", BUILD, "--prefix", self.tree, "--strip")
        shutil.rmtree(self.tree / "share")
        lines = self.make("install", f"prefix={self.prefix}").splitlines()
        self.assertLessEqual(len(lines), 8, lines)
        self.assertRegex(lines[0], rf"^installed: [0-9]+ files below {self.prefix} ")
        self.assertNotIn("LD_RUN_PATH", "\n".join(lines))  # glibc 2.36 crashes in every -static-pie program that is linked with it
        commands = [line.strip() for line in lines if re.match(r"    (export|cc) ", line)]
        self.assertEqual([command.split()[0] for command in commands], ["export", "cc"], lines)
        (self.root / "example.c").write_text(PROGRAM)
        self.assertEqual(run("bash", "-c", "\n".join(["set -e", *commands, "./a.out"]), cwd=self.root), "last hop: 1000000\n")

    def test_uninstall_leaves_nothing(self):
        (self.prefix / "lib").mkdir(parents=True)
        (self.prefix / "lib/of-another").write_text("")
        before = paths(self.prefix)
        self.make("install", f"PREFIX={self.prefix}")
        run("python3", "-c", "import module", cwd=self.prefix / "share/prudence/package")  # leaves a file of its own
        self.assertTrue((self.prefix / "share/prudence/package/__pycache__").exists())
        self.make("install", f"PREFIX={self.prefix}")  # finds its own directories
        self.make("uninstall")
        self.assertEqual(paths(self.prefix), before)

    def test_destdir(self):
        said = self.make("install", f"PREFIX={self.prefix}", "DESTDIR=package")
        package = self.checkout / "package"
        self.assertTrue((Path(f"{package}{self.prefix}") / "lib/pkgconfig/prudence.pc").exists())
        self.assertFalse(self.prefix.exists())
        self.assertNotIn("export", said)
        self.make("uninstall")
        self.assertFalse(package.exists())

    def test_spaces_are_refused(self):
        for variable in ("PREFIX", "DESTDIR"):
            with self.assertRaisesRegex(AssertionError, "may not contain spaces, .*: '.*a b"):
                self.make("install", f"{variable}={self.prefix}/a b")
        self.assertFalse((self.checkout / "build").exists())

    def test_refuses_what_it_may_not_write_to(self):
        self.prefix.mkdir(mode=0o555)
        (self.root / "file").write_text("")
        user = {"user": NOBODY} if os.geteuid() == 0 else {}
        with self.assertRaisesRegex(AssertionError, f"you may not write to {self.prefix}. Run `sudo make install`"):
            self.make("install", f"PREFIX={self.prefix}/deeper", **user)
        (self.checkout / "build").mkdir()
        (self.checkout / "build/installed.txt").write_text(f"{self.prefix}\n{self.prefix}/file\n")
        with self.assertRaisesRegex(AssertionError, f"you may not write to {self.prefix}. Run `sudo make uninstall`\n"):
            self.make("uninstall", **user)
        with self.assertRaisesRegex(AssertionError, f"{self.root}/file is not a directory"):
            self.make("install", f"PREFIX={self.root}/file")
        self.assertEqual(paths(self.checkout / "build"), ["installed.txt"])

    def make_with(self, name, script, *arguments):
        """Runs make with a stand-in for a program."""
        stand_in = self.root / "bin" / name
        stand_in.parent.mkdir()
        stand_in.write_text(f"#!/bin/sh\n{script}\n")
        stand_in.chmod(0o755)
        return self.make(*arguments, env={**CLEAN, "PATH": f"{stand_in.parent}:{CLEAN['PATH']}"})

    def test_a_folder_where_the_loader_looks(self):
        """The loader knows more than a pipe holds."""
        said = self.make_with("ldconfig", f"echo '{self.prefix}/lib: (from a file)'; seq 100000", "install", f"PREFIX={self.prefix}")
        self.assertIn("export PKG_CONFIG_PATH=", said)
        self.assertNotIn("rpath", said)

    def test_says_what_the_advisor_lacks(self):
        said = self.make_with("pkg-config", 'case "$*" in *jansson*) exit 1 ;; esac', "install", f"PREFIX={self.prefix}")
        self.assertRegex(said, r"(?m)^not installed: prudence-advise and prudence-latent, which need.* libjansson-dev")

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_by_a_user_below_directories_of_root(self):
        """PREFIX may be relative, too."""
        self.prefix.mkdir()
        for path in (self.checkout, *self.checkout.rglob("*"), self.prefix):
            os.chown(path, NOBODY, NOBODY)
        said = self.make("install", "PREFIX=../prefix/", user=NOBODY, group=NOBODY, extra_groups=[])
        self.assertIn(f"installed: 4 files below {self.prefix} ", said)
        self.assertTrue((self.prefix / "lib/pkgconfig/prudence.pc").exists())
        self.make("uninstall", user=NOBODY, group=NOBODY, extra_groups=[])
        self.assertEqual(paths(self.prefix), [])

    @unittest.skipUnless(os.geteuid() == 0, "only root can install from another's checkout")
    def test_nothing_of_the_build_becomes_roots(self):
        for path in (self.checkout, *self.checkout.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        self.make("install", f"PREFIX={self.prefix}")
        self.make("install", f"PREFIX={self.prefix}")
        self.assertEqual([path for path in self.checkout.rglob("*") if path.lstat().st_uid != NOBODY], [])
        self.assertEqual([path for path in (self.prefix, *self.prefix.rglob("*")) if path.lstat().st_uid != 0], [])


if __name__ == "__main__":
    unittest.main()
