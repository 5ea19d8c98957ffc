#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`make help` lists every target, pages name only commands that are there, and the README of tools/ and that of reproduce/ name every one."""

import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_TARGETS = 19
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
CODE = re.compile(r"^```\w*\n(.*?)^```|`([^`\n]*)`", re.M | re.S)
TARGETS = set(re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)[1].split())


def commands(pattern):
    """(page, match) of each command in the pages' code."""
    for page in PAGES:
        for match in CODE.finditer(page.read_text()):
            for found in re.finditer(pattern, match[1] or match[2] or "", re.M):
                yield page.relative_to(ROOT), found


def programs(folder):
    return {path.name for path in (ROOT / folder).iterdir() if path.is_file() and not path.suffix and path.read_bytes().startswith(b"#!")}


class Commands(unittest.TestCase):
    def test_help_lists_every_target(self):
        said = subprocess.run(["make", "-s", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        self.assertEqual(set(re.findall(r"^  make (\S+)  +\S", said, re.M)), TARGETS)
        self.assertLessEqual(len(TARGETS), MOST_TARGETS)

    def test_pages_name_targets_that_there_are(self):
        named = list(commands(r"(?:^|&& |sudo )make ([a-z][a-z0-9-]*)"))
        self.assertGreater(len(named), 20)
        self.assertEqual([(str(page), found[1]) for page, found in named if found[1] not in TARGETS], [])

    def test_pages_name_programs_that_there_are(self):
        named = list(commands(r"(?<![\w/-])((?:tools|lab)/[a-z/_-]*[a-z](?:\.[a-z]+)?)(?![\w/*<-])"))
        self.assertGreater(len(named), 100)
        self.assertEqual([(str(page), found[1]) for page, found in named if not (ROOT / found[1]).exists()], [])

    def test_readmes_name_every_program(self):
        for folder, page in [(f"tools/{kind}", "tools") for kind in ("check", "kernel", "release", "site", "test")] + [("lab/run", "lab"), ("lab/reproduce", "lab/reproduce")]:
            words = set(re.findall(r"`([^`]+)`", (ROOT / page / "README.md").read_text()))
            missing = {name for name in programs(folder) if not words & {name, re.sub(r"-.*", "-*", name)}}
            self.assertEqual(missing, set(), f"{page}/README.md")


if __name__ == "__main__":
    unittest.main()
