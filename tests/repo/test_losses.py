#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The page of losses, and their table, are what lab/run/losses writes from the published tables."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = ("results-losses.md", "results/data/losses.csv")


class Losses(unittest.TestCase):
    def test_the_page_is_what_the_command_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            docs = Path(folder) / "docs"
            shutil.copytree(ROOT / "docs/results/data", docs / "results/data")
            shutil.copy(ROOT / "docs/results-losses.md", docs)
            done = subprocess.run([ROOT / "lab/run/losses", "--into", docs], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            for name in WRITTEN:
                self.assertEqual((docs / name).read_text(), (ROOT / "docs" / name).read_text(), f"docs/{name} is old: lab/run/losses")


if __name__ == "__main__":
    unittest.main()
