#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each range that a page of results states covers all rows that its sentence speaks of, and each count of instructions is the one that the tests of
tests/instructions hold: stated_ranges.py says which."""

import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import page_figures as pages  # noqa: E402 (the path comes first)
import stated_ranges as stated  # noqa: E402 (the path comes first)

A_RANGE = re.compile(rf"{pages.DIGITS}(?: (?:%|MB|ns|µs))?\s+to\s+{pages.DIGITS}")
A_COUNT = re.compile(r"(?:\d[\d,]*|\b(?:an|one|two|three|four|five|six|seven|eight|nine|ten))\s+instructions?\b")


def pattern_of(words):
    parts = [r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in words.split("{}")]
    return rf"({pages.DIGITS})".join(parts)


def is_rounded(number, value):
    """Returns whether a number is that value, rounded as it is written."""
    digits = number.replace(",", "")
    return abs(float(digits) - value) <= 0.5 * 10 ** -len(digits.partition(".")[2]) * 1.000001


def wrong_range(text, words, values):
    """Returns the fault of a range, or None."""
    found = re.findall(pattern_of(words), text)
    if len(found) != 1:
        return f"'{words}' is there {len(found)} times, not once"
    for number, value, end in zip(found[0], (min(values), max(values)), ("least", "largest")):
        if not is_rounded(number, value):
            return f"{number} in '{words}': the {end} of its rows is {value:.6g}"
    return None


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
        if not page.startswith((*stated.OF_THE_KERNEL, "docs/adr/", "docs/how-to/write-plain-english")):
            yield page


class Ranges(unittest.TestCase):
    def test_each_covers_its_rows(self):
        for one in stated.RANGES:
            with self.subTest(one.words):
                self.assertIsNone(wrong_range(pages.text_of(one.page), one.words, one.read()))

    def test_each_range_has_a_source(self):
        for page in stated.PAGES:
            words = [one.words for one in stated.RANGES if one.page == page] + [words for of, words, _ in stated.OTHER if of == page]
            self.assertEqual(uncovered(pages.text_of(page), A_RANGE, words), [], f"{page}: add a line to tests/repo/stated_ranges.py")

    def test_what_has_no_table_is_still_there(self):
        for page, words, _ in stated.OTHER:
            self.assertRegex(pages.text_of(page), pattern_of(words))

    def test_with_three_threads_the_shared_library_is_slower(self):
        place = pages.table(stated.csv("replace"), "")[0].index("prudence")
        for size in ("16", "64", "512"):
            for row in pages.rows(stated.csv("replace"), "", "2 + 1", size):
                self.assertIn("slower", row[place], row[:4])

    def test_the_table_of_pairs_is_that_of_all_loads(self):
        (_, *sizes, _), *lines = pages.table(stated.RESULTS, "Pairs by the best plain pair")
        self.assertEqual((sizes, [line[0] for line in lines]), (list(stated.SIZES), [pages.plain(way) for way in stated.WAYS]))
        for way, line in zip(stated.WAYS, lines):
            self.assertEqual(float(line[-1]), stated.WAYS[way][1])
            self.assertIn(" | ".join([f"\n| {way}", *(stated.pairs_cell(way, size) for size in sizes)]), pages.text_of(stated.RESULTS))

    def test_the_table_of_floors(self):
        lines = pages.table(stated.RESULTS, "Floors")[1:]
        self.assertEqual([line[0] for line in lines], [pages.plain(name) for name in stated.FLOORS])
        for name, line in zip(stated.FLOORS, lines):
            self.assertEqual(line[1:], stated.floor_cells(name), name)
        for subject, batch in (("plain+", "1"), ("plain+", "1024")):  # the best ones are the best
            titles, *rows = pages.table(stated.csv("floors"), "")
            times = {row[titles.index("subject")]: float(row[titles.index("ns CPU")]) for row in rows
                     if row[0] == "tight" and row[1] == "64" and row[titles.index("subject")].startswith(subject) and row[titles.index("batch")] == batch}
            self.assertIn((min(times, key=times.get), batch), stated.FLOORS.values())

    def test_about_a_nanosecond(self):
        takes = pages.down(stated.csv("readers"), "", "ns", ("0", "prudence")) + pages.down(stated.csv("readers"), "", "ns", ("1", "prudence"))
        self.assertTrue(all(0.75 < ns < 1.25 for ns in takes), takes)
        for page in ("README.md", "docs/tutorial/first-program.md", "docs/how-to/pattern-pure-rcu.md"):
            self.assertIn("about a nanosecond", pages.text_of(page))


class Counts(unittest.TestCase):
    def test_each_is_that_of_the_golden(self):
        for page, words, sources in stated.COUNTS:
            with self.subTest(page):
                found = re.findall(pattern_of(words), pages.text_of(page))
                self.assertEqual(len(found), 1, words)
                numbers = [found[0]] if isinstance(found[0], str) else found[0]
                self.assertEqual([int(number) for number in numbers], [source() for source in sources], words)

    def test_each_count_has_a_source(self):
        for page in prose_pages():
            words = [words for of, words, *_ in (*stated.COUNTS, *stated.COUNTED_ELSEWHERE) if of == page]
            self.assertEqual(uncovered(pages.text_of(page), A_COUNT, words), [], f"{page}: add a line to tests/repo/stated_ranges.py")

    def test_what_has_no_golden_is_still_there(self):
        for page, words, _ in stated.COUNTED_ELSEWHERE:
            self.assertRegex(pages.text_of(page), pattern_of(words))


class Reading(unittest.TestCase):
    """Tests the check itself."""

    def test_a_range_that_leaves_a_row_out(self):
        text = "It costs 0.6 to\n1.0 of that."
        self.assertIsNone(wrong_range(text, "costs {} to {} of", [0.58, 0.8, 1.04]))
        self.assertIn("largest of its rows is 1.17", wrong_range(text, "costs {} to {} of", [0.6, 1.17]))
        self.assertIn("least of its rows is 0.5", wrong_range(text, "costs {} to {} of", [0.5, 1.0]))
        self.assertIn("0 times", wrong_range(text, "takes {} to {} of", [0.6, 1.0]))

    def test_a_range_without_a_source(self):
        text = "It takes 2 to 3 ns, and\n1,000 to 2,000 MB; `1 to 2`.\n\n| 5 to 6 |\n"
        self.assertEqual(uncovered(text, A_RANGE, ["takes {} to {} ns"]), ["1,000 to 2,000"])
        self.assertEqual(uncovered(text, A_RANGE, ["takes {} to {} ns", "1,000 to 2,000 MB"]), [])

    def test_a_count_without_a_source(self):
        text = "A call takes 22 instructions, or two instructions more."
        self.assertEqual(uncovered(text, A_COUNT, ["takes {} instructions"]), ["two instructions"])


if __name__ == "__main__":
    unittest.main()
