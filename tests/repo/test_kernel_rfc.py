#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# REUSE-IgnoreStart (what follows has such lines in texts of files)
"""The patches to SLUB (kernel/rfc/, docs/adr/0098) are well-formed, small, touch little, and go through git am; tools/kernel/patch puts patches in and takes
them out. Whether it applies to Debian's source is asked by tools/kernel/rfc, which downloads it."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import test_kernel_tree as tree

ROOT = Path(__file__).resolve().parent.parent.parent
RFC = ROOT / "kernel/rfc"
CHANGES_MAX = 300
FILES = {"mm/slub.c", "mm/slab.h", "mm/slab_common.c", "lib/tests/slub_kunit.c",
         "kernel/rcu/tree.c", "include/linux/rcutree.h", "include/linux/rcutiny.h", "Documentation/ABI/testing/sysfs-kernel-slab"}
PATCHES = [RFC / name for name in RFC.joinpath("series").read_text().split()]


class Patch(unittest.TestCase):
    def test_the_series_lists_them_all(self):
        self.assertEqual(PATCHES, sorted(RFC.glob("*.patch")))
        self.assertTrue(PATCHES)

    def test_the_licence_is_that_of_what_it_changes(self):
        for patch in PATCHES:
            self.assertEqual(patch.read_text().split("\n")[0], "SPDX-License-Identifier: GPL-2.0-only")

    def test_it_has_its_argument(self):
        for i, patch in enumerate(PATCHES, 1):
            head = patch.read_text().split("\n---\n")[0]
            self.assertRegex(head.split("\n")[1], r"^From: .* <.*>$")
            self.assertRegex(head.split("\n")[2], rf"^Subject: \[RFC PATCH {i}/{len(PATCHES)}\] (rcu, )?mm/slub: \S")
            self.assertLessEqual(max(map(len, head.splitlines()[3:])), 75)

    def test_it_is_small_and_touches_slub_and_rcu_alone(self):
        for patch in PATCHES:
            text = patch.read_text()
            self.assertLess(len(re.findall(r"^[-+](?![-+] )", text, re.MULTILINE)), CHANGES_MAX)
            self.assertLessEqual(set(tree.files_of(text)), FILES)

    def test_it_goes_in_and_out_again(self):
        """Each by itself, on the part of its files that it shows."""
        for patch in PATCHES:
            with self.subTest(patch.name), tempfile.TemporaryDirectory() as folder:
                alone = Path(folder, "alone")
                alone.mkdir()
                shutil.copy(patch, alone)
                alone.joinpath("series").write_text(patch.name + "\n")
                files = tree.files_of(patch.read_text())
                for path, hunks in files.items():
                    file = Path(folder, "source", path)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(tree.file_with(hunks, False))
                for arguments, after in (([alone], True), ([alone], True), ([], False)):
                    subprocess.run([ROOT / "tools/kernel/patch", folder, *arguments], check=True)
                    for path, hunks in files.items():
                        self.assertEqual(Path(folder, "source", path).read_text(), tree.file_with(hunks, after))

    def test_git_takes_them_as_mail(self):
        for patch in PATCHES:
            read = subprocess.run(["git", "mailinfo", "/dev/null", "/dev/null"], input=patch.read_text(), capture_output=True, text=True, check=True)
            self.assertRegex(read.stdout, r"Author: \S.*\nEmail: \S+@\S+\nSubject: \S")

    def test_what_does_not_apply_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "source/mm").mkdir(parents=True)
            Path(folder, "source/mm/slub.c").write_text("int slub;\n")
            run = subprocess.run([ROOT / "tools/kernel/patch", folder, RFC], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 1)
            self.assertIn(f"{PATCHES[0].name} does not apply", run.stderr)

    def judged(self, console, kind="debug"):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(console)
            file.flush()
            return subprocess.run([ROOT / "tools/kernel/rfc", "judge", file.name], env=os.environ | {"KIND": kind},
                                  capture_output=True, text=True, check=False)

    def test_a_complaint_of_lockdep_fails_the_smoke(self):
        good = " debug_locks:                             1\n"
        self.assertEqual(self.judged(good).returncode, 0)
        self.assertEqual(self.judged("", kind="").returncode, 0)
        splat = self.judged("[ 1.0] WARNING: possible circular locking dependency detected\n" + good)
        self.assertEqual(splat.returncode, 1)
        self.assertIn("1:[ 1.0] WARNING: possible circular", splat.stdout)

    def test_a_complaint_of_lockdep_where_others_are_provoked_fails_the_smoke_too(self):
        provoked = "provoked: begin\n[ 1.0] WARNING: objects remain\nprovoked: end\n"
        self.assertEqual(self.judged(provoked + " debug_locks:     1\n").returncode, 0)
        off = self.judged(provoked + " debug_locks:     0\n")
        self.assertEqual(off.returncode, 1)
        self.assertIn("lockdep was not on to the end", off.stderr)


if __name__ == "__main__":
    unittest.main()
