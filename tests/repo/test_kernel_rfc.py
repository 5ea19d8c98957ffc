#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# REUSE-IgnoreStart (what follows has such lines in texts of files)
"""The patch to SLUB (kernel/rfc/, docs/adr/0098) is well-formed, small, and touches nothing but SLUB; tools/kernel/patch puts patches in and takes
them out. Whether it applies to Debian's source is asked by tools/kernel/rfc, which downloads it."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import test_kernel_tree as tree

ROOT = Path(__file__).resolve().parent.parent.parent
RFC = ROOT / "kernel/rfc"
LINES_MAX = 300
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
            self.assertRegex(head.split("\n")[1], rf"^Subject: \[RFC PATCH {i}/{len(PATCHES)}\] mm/slub: \S")
            self.assertLessEqual(max(map(len, head.splitlines()[2:])), 75)

    def test_it_is_small_and_touches_slub_alone(self):
        for patch in PATCHES:
            text = patch.read_text()
            self.assertLess(text.count("\n"), LINES_MAX)
            self.assertLessEqual(set(tree.files_of(text)), {"mm/slub.c", "mm/slab.h", "mm/slab_common.c"})

    def test_it_goes_in_and_out_again(self):
        """On as much of its files as it tells itself."""
        with tempfile.TemporaryDirectory() as folder:
            files = {path: hunks for patch in PATCHES for path, hunks in tree.files_of(patch.read_text()).items()}
            for path, hunks in files.items():
                file = Path(folder, "source", path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(tree.file_with(hunks, False))
            for arguments, after in (([RFC], True), ([RFC], True), ([], False)):
                subprocess.run([ROOT / "tools/kernel/patch", folder, *arguments], check=True)
                for path, hunks in files.items():
                    self.assertEqual(Path(folder, "source", path).read_text(), tree.file_with(hunks, after))

    def test_what_does_not_apply_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "source/mm").mkdir(parents=True)
            Path(folder, "source/mm/slub.c").write_text("int slub;\n")
            run = subprocess.run([ROOT / "tools/kernel/patch", folder, RFC], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 1)
            self.assertIn(f"{PATCHES[0].name} does not apply", run.stderr)


if __name__ == "__main__":
    unittest.main()
