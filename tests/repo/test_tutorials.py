#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""README's program and the tutorials' behave as the pages say, with the pages' own commands, and print the pages' output.

Each page's commands run in a folder with the page's programs, and pkg-config finds the files installed for this test. Numbers of an output
that differ from run to run are compared with the page's words about them. Examples check for NULL.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from preload import plain_base  # noqa: E402 (the path comes first)

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build"))
README, FIRST, LIST = (ROOT / page for page in ("README.md", "docs/tutorial/first-program.md", "docs/tutorial/locked-list.md"))
VARIES = {"hits": (990_000, 1_000_001), "slab_bytes_peak": (4096, 32 << 20)}  # first-program.md says why, and the bound
WORDS_BEFORE_THE_FIRST_PROGRAM = 300


def blocks(page, language):
    """The page's blocks of code in a language."""
    return [code for name, code in re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.S | re.M) if name == language]


def commands(page):
    """The lines of the page's blocks without a language that are commands, by program."""
    return [line for block in blocks(page, "") for line in block.splitlines() if re.match(r"(cc|time|PRUDENCE_OPTIONS=\S+|\./)", line)]


def once(text, old, new):
    assert text.count(old) == 1, (old, text)
    return text.replace(old, new)


def block_without_check(block):
    """The name of a pointer that the block gets from an allocation, and does not compare with NULL; or None."""
    for name in re.findall(r"([\w.>-]+) = (?:prudence|scm)\w*_(?:alloc|calloc|malloc)\w*\(", block):
        if not re.search(rf"!{name}\b|MUST\({name}\)|\b{name} [!=]= NULL", block):
            return name
    return None


class Tutorials(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(dir=plain_base())
        cls.addClassCleanup(folder.cleanup)
        cls.installed = Path(folder.name)
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.installed], check=True, stdout=subprocess.DEVNULL)
        libraries = next(cls.installed.rglob("libprudence.so")).parent
        cls.environment = {**os.environ, "PKG_CONFIG_PATH": str(libraries / "pkgconfig"), "LD_RUN_PATH": str(libraries)}

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=plain_base())
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_lines(self, *lines, fails=False):
        """Returns the output of the commands. Warnings are errors, because a reader would wonder about them."""
        script = "\n".join(lines).replace("cc ", "cc -Wall -Wextra -Werror ")
        done = subprocess.run(["bash", "-ec", script], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode != 0, fails, done)
        return done.stderr if fails else done.stdout

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def test_readme(self):
        self.write("example.c", blocks(README, "c")[0])
        compile_it = re.search(r"`(cc -O2 -pthread example\.c [^`]+)`", README.read_text())[1]
        self.assertEqual(self.run_lines(compile_it, "./a.out"), "last hop: 1000000\n")

    def test_words_before_the_first_program(self):
        self.assertLessEqual(len(README.read_text().split("```c\n")[0].split()), WORDS_BEFORE_THE_FIRST_PROGRAM)

    def test_first_program(self):
        program = "\n".join(blocks(FIRST, "c"))
        compile_it, run_it, check_it = commands(FIRST)
        self.write("routes.c", program)
        printed = dict(re.findall(r"^(\w+) +(\d+)$", self.run_lines(compile_it, run_it), re.M))
        shown = dict(line.split() for block in blocks(FIRST, "") for line in block.splitlines() if re.fullmatch(r"\w+ +\d+", line))
        self.assertEqual(len(shown), 4)
        for name, number in shown.items():
            low, high = VARIES.get(name, (int(number),) * 2)
            for value in (number, printed[name]):
                self.assertTrue(low <= int(value) <= high, f"{name} is {value}, and the page says {number}")
        deferral = "    prudence_cache_free_deferred(cache, old);\n"
        self.write("routes.c", once(program, deferral, 2 * deferral))
        self.assertIn("cache 'routes' is already deferred", self.run_lines(compile_it, check_it, fails=True))

    def unlocked(self, locked):
        """The second program, made of the first as the page says."""
        headers, lookup, change = blocks(LIST, "c")[1:]
        body = re.search(r"    pthread_mutex_lock\(&lock\);\n    for .*?pthread_mutex_unlock\(&lock\);\n", locked, re.S)[0]
        text = once(locked, body, lookup)
        text = re.sub(r"static void change\(.*?^}\n", lambda _: change, text, count=1, flags=re.S | re.M)
        return headers + once(text, "host = malloc(", "host = prudence_malloc(")

    def test_locked_list(self):
        locked = blocks(LIST, "c")[0]
        self.write("locked.c", locked)
        self.write("unlocked.c", self.unlocked(locked))
        lines = commands(LIST)
        self.assertEqual(len(lines), 6, lines)
        for pair in (lines[:2], lines[2:4]):
            self.assertRegex(self.run_lines(*pair), r"^4000000 lookups, \d+ changes, 0 misfits\n$")
        self.assertRegex(self.run_lines(*lines[4:]), r"^4000000 lookups, \d+ changes, 0 misfits\n$")
        self.write("unlocked.c", once(self.unlocked(locked), "prudence_free_deferred(old)", "prudence_free(old)"))
        reported = self.run_lines(*lines[4:], fails=True)
        shown = next(block for block in blocks(LIST, "") if block.startswith("prudence: use after free"))
        for line in shown.splitlines():
            pattern = re.sub(r"0x[0-9a-f]+", "0x[0-9a-f]+", re.sub(r"(tid |byte )\d+", r"\1NUMBER", line.replace("(", r"\(").replace(")", r"\)")
                                                                  .replace("[", r"\[").replace("]", r"\]"))).replace("NUMBER", r"\d+")
            self.assertRegex(reported, rf"(?m)^{pattern}")

    def test_examples_check_for_null(self):
        pages = [README, *sorted((ROOT / "docs/tutorial").glob("*.md")), *sorted((ROOT / "docs/how-to").glob("*.md"))]
        careless = [(page.name, name) for page in pages for block in blocks(page, "c") if (name := block_without_check(block))]
        self.assertEqual(careless, [])
        self.assertEqual(block_without_check("struct a *a = prudence_malloc(1);\na->b = 1;\n"), "a")


if __name__ == "__main__":
    unittest.main()
