#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each count of instructions that a page states is the one that the tests of tests/instructions hold (CONTRIBUTING.md)."""

import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import page_figures as pages  # noqa: E402 (the path comes first)

A_COUNT = re.compile(r"(?:\d[\d,]*|\b(?:an|one|two|three|four|five|six|seven|eight|nine|ten))\s+instructions?\b")


def golden(name, file="fast_paths"):
    """An entry of tests/instructions/FILE.txt."""
    for line in pages.text_of(f"tests/instructions/{file}.txt").splitlines()[1:]:
        path, number = line.rsplit(" ", 1)
        if path.rstrip(":") == name:
            return int(number)
    raise KeyError(f"tests/instructions/{file}.txt has no {name}")


SHORT_TERM, HARDENED = "docs/reference/short-term-memory.md", "docs/reference/hardened.md"

COUNTS = [  # (page, words with {}, the source of each {})
    (SHORT_TERM, "A refresh executes {} instructions", [lambda: golden("scm_refresh", "short_term")]),
    (SHORT_TERM, "A lazy tick executes {} instructions", [lambda: golden("scm_tick", "short_term")]),
    (HARDENED, "A free takes {} instructions, `operator delete` with a size {}", [lambda: golden("free", "malloc_fast_paths"), lambda: golden("_ZdlPvm", "malloc_fast_paths")]),
]

# Counts that no golden has: (page, words, why).
COUNTED_ELSEWHERE = [
    ("docs/how-to/example-chat.md", "20 instructions more", "tests/instructions/test_chat.py compares it"),
    (HARDENED, "two instructions of a free", "a difference to a build without the check"),
    (SHORT_TERM, "one instruction is atomic", "a property"),
    ("docs/explanation/testing.md", "between two instructions", "no count"),
    ("docs/explanation/testing.md", "at an instruction", "no count"),
    ("docs/explanation/scaling.md", "an instruction in each sequence", "no count"),
    ("docs/reference/options.md", "6 instructions for an allocation by size, about 30", "the cost of an option that is off by default"),
]
# Pages whose counts are of the kernel and the table.
OF_THE_KERNEL = ("docs/results-kernel", "docs/linux-rfc.md", "docs/how-to/kernel")


def pattern_of(words):
    parts = [r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in words.split("{}")]
    return rf"({pages.DIGITS})".join(parts)


def without_tables(text):
    return re.sub(r"^\|.*$", lambda line: " " * len(line[0]), text, flags=re.M)


def uncovered(text, forms, words):
    """Places of `forms` in the text that none of the words cover."""
    spans = [match.span() for one in words for match in re.finditer(pattern_of(one), text)]
    return [match[0] for match in forms.finditer(without_tables(pages.blanked(text)))
            if not any(first <= match.start() and match.end() <= last or match.start() <= first < match.end() for first, last in spans)]


def prose_pages():
    for path in sorted((pages.ROOT / "docs").rglob("*.md")):
        page = str(path.relative_to(pages.ROOT))
        if not page.startswith((*OF_THE_KERNEL, "docs/adr/", "docs/how-to/write-plain-english")):
            yield page


class Counts(unittest.TestCase):
    def test_each_is_that_of_the_golden(self):
        for page, words, sources in COUNTS:
            with self.subTest(page):
                found = re.findall(pattern_of(words), pages.text_of(page))
                self.assertEqual(len(found), 1, words)
                numbers = [found[0]] if isinstance(found[0], str) else found[0]
                self.assertEqual([int(number) for number in numbers], [source() for source in sources], words)

    def test_each_count_has_a_source(self):
        for page in prose_pages():
            words = [words for of, words, *_ in (*COUNTS, *COUNTED_ELSEWHERE) if of == page]
            self.assertEqual(uncovered(pages.text_of(page), A_COUNT, words), [], f"{page}: add a line to tests/repo/test_counts.py")

    def test_what_has_no_golden_is_still_there(self):
        for page, words, _ in COUNTED_ELSEWHERE:
            self.assertRegex(pages.text_of(page), pattern_of(words))


class Reading(unittest.TestCase):
    """Tests the check itself."""

    def test_a_count_without_a_source(self):
        text = "A call takes 22 instructions, or two instructions more."
        self.assertEqual(uncovered(text, A_COUNT, ["takes {} instructions"]), ["two instructions"])


if __name__ == "__main__":
    unittest.main()
