#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The patches that put Prudence into Linux (kernel/tree/, docs/adr/0084) are well-formed: listed, numbered, each with its argument;
every hunk applies to the lines that it names. Whether that stands in Debian's source is asked by tools/kernel/tree, which downloads it."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TREE = ROOT / "kernel/tree"
PATCHES = TREE / "patches"
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def series():
    return PATCHES.joinpath("series").read_text().split()


def files_of(text):
    """{path: [(first line, lines before, lines after)]}; fails on a line that belongs to no hunk."""
    found, hunks, old, new = {}, None, 0, 0
    lines = text[text.index("\n---\n") + 5:].splitlines()
    for i, line in enumerate(lines):
        if old == new == 0:
            if line.startswith("--- a/"):
                if lines[i + 1] != "+++ b/" + line[6:]:
                    raise ValueError(f"two names: {line}")
                hunks = found.setdefault(line[6:], [])
            elif match := HUNK.match(line):
                old, new = int(match[2] or 1), int(match[4] or 1)
                hunks.append((int(match[1]), [], []))
            elif not line.startswith("+++ b/"):
                raise ValueError(f"outside of a hunk: {line}")
            continue
        if line[:1] not in (" ", "+", "-"):
            raise ValueError(f"in a hunk: {line!r}")
        if line[0] != "+":
            hunks[-1][1].append(line[1:])
            old -= 1
        if line[0] != "-":
            hunks[-1][2].append(line[1:])
            new -= 1
    if old or new:
        raise ValueError("the last hunk is too short")
    return found


def file_with(hunks, after):
    """The part of a file that hunks show; `after` their change, or before. It ends where they do, as a patch at a file's end demands."""
    lines, at = [], 1
    for first, before, changed in hunks:
        lines += [f"line {n}" for n in range(at, first)] + (changed if after else before)
        at = first + len(before)
    return "\n".join([*lines, ""])


class Patches(unittest.TestCase):
    def test_the_series_lists_them_all(self):
        self.assertEqual(series(), sorted(path.name for path in PATCHES.glob("*.patch")))
        for i, name in enumerate(series(), 1):
            self.assertRegex(name, rf"^{i:04}-[\w-]+\.patch$")

    def test_each_has_its_argument(self):
        for i, name in enumerate(series(), 1):
            head = PATCHES.joinpath(name).read_text().split("\n---\n")[0]
            with self.subTest(name):
                self.assertRegex(head, rf"^Subject: \[PATCH {i:02}/{len(series())}\] [\w, ]+: \S")
                self.assertGreater(len(head.split("\n\n", 1)[1]), 200)
                self.assertLessEqual(max(map(len, head.splitlines()[1:])), 75)

    def test_each_hunk_applies_to_its_own_context(self):
        for name in series():
            for path, hunks in files_of(PATCHES.joinpath(name).read_text()).items():
                with self.subTest(f"{name} {path}"), tempfile.TemporaryDirectory() as folder:
                    file = Path(folder, path)
                    file.parent.mkdir(parents=True)
                    file.write_text(file_with(hunks, False))
                    text = PATCHES.joinpath(name).read_text()
                    begin = text.index(f"--- a/{path}\n")
                    end = text.find("\n--- a/", begin)
                    subprocess.run(["patch", "-p1", "-s", "-f", "-F0", "-d", folder], check=True, text=True,
                                   input=text[begin:end + 1 if end > 0 else None])
                    self.assertEqual(file.read_text(), file_with(hunks, True))

    def test_no_lines_are_changed_twice(self):
        """Each patch can be read, and taken away, by itself: in the file of another one it changes other lines."""
        lines = {}
        for name in series():
            for path, hunks in files_of(PATCHES.joinpath(name).read_text()).items():
                for first, before, _ in hunks:
                    lines.setdefault(path, []).append((first, first + len(before)))
        for path, ranges in lines.items():
            ranges.sort()
            for (_, end), (first, _) in zip(ranges, ranges[1:]):
                self.assertLessEqual(end, first, path)

    def test_a_cache_that_is_named_is_added_allocated_and_deferred(self):
        added = "".join(line[1:] for name in series()
                        for line in PATCHES.joinpath(name).read_text().splitlines(keepends=True) if line.startswith("+"))
        names = re.findall(r"DEFINE_PRUDENCE_TREE\((\w+), struct \w+, [\w.]+\)", added)
        self.assertGreater(len(names), 9)
        for name in names:
            with self.subTest(name):
                for function in ("add", "alloc", "free", "defer"):
                    self.assertRegex(added, rf"prudence_tree_{function}(?:_lru)?\(\s*&{name}_tree\b")
                self.assertIn(f"`{name}`", (ROOT / "docs/how-to/kernel-tree.md").read_text())


class Overlay(unittest.TestCase):
    def test_nothing_of_the_kernel_is_here(self):
        for path in TREE.rglob("*"):
            if path.is_file() and path.suffix in (".c", ".h"):
                self.assertIn("MIT OR GPL-2.0-only", path.read_text()[:100], path)

    def test_what_is_linked_is_there(self):
        kbuild = (ROOT / "kernel/Kbuild").read_text()
        parts = re.search(r"^prudence-y := ((?:.*\\\n)*.*)$", kbuild, re.MULTILINE)[1].replace("\\\n", " ").split()
        self.assertGreater(len(parts), 40)
        for part in parts:
            source = part.removesuffix(".o") + ".c"
            self.assertTrue((ROOT / "kernel" / source).exists() or (ROOT / "src/core" / source).exists(), source)


if __name__ == "__main__":
    unittest.main()
