#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The site of the documentation is made, and a header that declares what no comment is for is refused."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = """/* SPDX-License-Identifier: MIT */
/* Halves. */
#ifndef HALF_H
#define HALF_H

/* Rounded down. The remainder is in *rest. */
int prudence_half(int n, int *rest);
int prudence_third(int n, int *rest);

/* Of a whole. */
struct prudence_half {
    int of;
};

#endif /* HALF_H */
"""


@unittest.skipUnless(shutil.which("doxygen") and shutil.which("mkdocs"), "doxygen or mkdocs is missing")
class Site(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        shutil.copytree(ROOT / "tools/site", self.root / "tools/site")

    def build(self, root, *arguments):
        return subprocess.run([root / "tools/site/build", *arguments], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)

    def reference_of(self, header):
        (self.root / "include/prudence").mkdir(parents=True, exist_ok=True)
        (self.root / "include/prudence/half.h").write_text(header)
        return self.build(self.root, "--reference")

    def test_one_comment_for_several_functions(self):
        done = self.reference_of(HEADER)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("Rounded down", (self.root / "build/reference/api/half_8h.html").read_text().split("prudence_third")[-1])

    def test_function_without_a_comment(self):
        done = self.reference_of(HEADER.replace("int prudence_third", "\n/* ---------------- more */\n\nint prudence_third"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("prudence_third", done.stdout)
        self.assertNotIn("prudence_half", done.stdout)

    def test_structure_without_a_comment(self):
        done = self.reference_of(HEADER.replace("/* Of a whole. */", "/* ---------------- a type */\n"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("Compound prudence_half is not documented", done.stdout)

    def test_the_whole(self):
        done = self.build(ROOT)
        self.assertEqual(done.returncode, 0, done.stdout)
        site = ROOT / "build/site"
        self.assertIn("prudence_cache_alloc", (site / "api/prudence_8h.html").read_text())
        self.assertIn('"../api/hash_8h.html"', (site / "how-to/structures.html").read_text())
        self.assertIn("prudence-advise", (site / "man/prudence-advise.1.html").read_text())


unittest.main()
