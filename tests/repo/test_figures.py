#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each number that README.md and CHANGELOG.md state is that of the table that it comes from, or stands in a file that says the same limit."""

import re
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
import page_figures as pages  # noqa: E402 (the path comes first)
import stated_figures as stated  # noqa: E402 (the path comes first)

PAGES = ("README.md", "CHANGELOG.md")
HOW = "add a line to tests/repo/stated_figures.py that says where it comes from"


def pattern_of(words):
    """Makes a pattern of words whose {} are numbers, however the lines are broken."""
    parts = [r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in words.split("{}")]
    return f"({pages.NUMBER})".join(parts)


def line_of(text, place):
    return text.count("\n", 0, place) + 1


def known_by_form(text, forms):
    return {form: [match.span() for match in re.finditer(form_pattern, text)] for form, form_pattern in forms.items()}


def wrong_value(number, source):
    """Returns the fault of a number, or None."""
    if isinstance(source, stated.Said):
        words = pages.text_of(source.file)
        if " ".join(source.words.split()) not in " ".join(words.split()):
            return f"{source.file} does not say '{source.words}'"
        there = any(re.search(rf"(?<![\d.]){re.escape(form)}(?![\d]|\.\d)", source.words, re.I) for form in (number, number.replace(",", "")))
        return None if there else f"'{source.words}' of {source.file} has no {number}"
    try:
        found = source.read()
    except (pages.NoSuchCell, ValueError, IndexError, StopIteration) as error:
        return f"its table cannot be read: {error or type(error).__name__}"
    value, off = pages.value_of(number)
    return None if abs(value - found) <= off else f"its table says {found:.6g}"


def problems(page, text, figures, forms):
    """Returns all faults of a page, as file:line: fault."""
    numbers, covered, found = pages.numbers_of(text), set(), []
    for words, sources in figures:
        matches = list(re.finditer(pattern_of(words), text, re.I))
        if len(matches) != 1:
            found.append(f"{page}: '{words}' is there {len(matches)} times, not once: mend tests/repo/stated_figures.py")
            continue
        spans = [matches[0].span(i + 1) for i in range(len(sources))]
        if matches[0].re.groups != len(sources):
            found.append(f"{page}: '{words}' has {matches[0].re.groups} numbers and {len(sources)} sources")
            continue
        covered |= set(spans)
        found += [f"{page}:{line_of(text, first)}: {text[first:end]} in '{words}' is code, or a part of another number" for first, end in spans if (first, end) not in numbers]
        for span, source in zip(spans, sources):
            wrong = wrong_value(text[slice(*span)], source)
            if wrong:
                found.append(f"{page}:{line_of(text, span[0])}: {text[slice(*span)]} in '{words}': {wrong}")
    formed = [span for spans in known_by_form(text, forms).values() for span in spans]
    for first, end in numbers:
        if (first, end) not in covered and not any(a <= first and end <= b for a, b in formed):
            line = text[text.rfind("\n", 0, first) + 1:first][-40:]
            found.append(f"{page}:{line_of(text, first)}: '{line}{text[first:end]}' comes from no table: {HOW}")
    return found


class Pages(unittest.TestCase):
    def test_each_number_is_that_of_its_table(self):
        for page in PAGES:
            with self.subTest(page):
                found = problems(page, pages.text_of(page), [(words, sources) for of, words, sources in stated.FIGURES if of == page], stated.FORMS)
                self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_no_form_is_unused(self):
        whole = "\n".join(map(pages.text_of, PAGES))
        for form, spans in known_by_form(whole, stated.FORMS).items():
            self.assertTrue(spans, form)


class Kept(unittest.TestCase):
    def test_each_kept_table_is_a_rectangle_whose_columns_have_names(self):
        kept = sorted(pages.ROOT.glob("docs/results/data/*/*.csv"))
        self.assertTrue(kept)
        for path in kept:
            with self.subTest(path.name):
                names, *rows = pages.table(str(path.relative_to(pages.ROOT)), "")
                self.assertTrue(rows)
                self.assertTrue(all(names) and len(set(names)) == len(names), names)
                self.assertEqual({len(row) for row in rows}, {len(names)})


PAGE = "# T\n\nIt takes 0.61 of\nthe time, within 34 MB, `0.61`.\n\n## Times\n\n| | time | both |\n|---|---|---|\n| **ours** | 0.614 [0.5, 0.7] | 1,124 [1,000, 1,200] → 868 |\n| theirs | 1 | 2 → 3 |\n"


class Reading(unittest.TestCase):
    """Tests the check itself."""

    def setUp(self):
        for cached in (pages.text_of, pages.tables_of):
            cached.cache_clear()
            self.addCleanup(cached.cache_clear)
        where = mock.patch.object(pages, "ROOT")
        root = where.start()
        self.addCleanup(where.stop)
        root.__truediv__.return_value.read_text.return_value = PAGE

    def found(self, text, *figures, forms=None):
        return problems("README.md", text, figures, forms or {})

    def measured(self, value):
        return stated.measured(lambda: value)

    def test_a_cell(self):
        self.assertEqual(pages.cell("x", "Times", ("ours",), "time"), 0.614)
        self.assertEqual(pages.cell("x", "Times", ("ours",), "both", side=1), 868)
        self.assertEqual(pages.cell("x", "Times", ("ours",), "both", 2, side=0), 1200)
        for missing in (("No", ("ours",), "time"), ("Times", ("nobody",), "time"), ("Times", ("ours",), "no"), ("Times", ("ours",), "time", 3)):
            with self.assertRaises(pages.NoSuchCell):
                pages.cell("x", *missing)

    def test_a_number_without_a_source(self):
        for text in ("It takes 7 ns.", "It takes half of it.", "It is twice as fast.", "a twentieth", "Three times.", "a bare `0.61`", "2,048 bytes", "in 2048 bytes", "of 2016 bytes"):
            self.assertEqual(len(self.found(text, forms=stated.FORMS)), 1, text)
        for text in ("`background=1`", "[x](a1.md#2)", "<!-- 3 -->", "```\n7 ns\n```", "x86-64", "Linux 6.1 to 7.2", "gcc 12.2", "prudence(7)", "AArch64", "2026-11-23", "ASPLOS 2016"):
            self.assertEqual(self.found(text, forms=stated.FORMS), [], text)

    def test_a_number_that_is_not_its_cell(self):
        good = ("takes {} of the time", [self.measured(0.614)])
        self.assertEqual(self.found("It takes 0.61 of\nthe time", good), [])
        for wrong in ("0.62", "0.60", "0.6100", "1"):
            self.assertEqual(len(self.found(f"It takes {wrong} of the time", good)), 1, wrong)
        self.assertEqual(self.found("1,124 KB", ("{} KB", [self.measured(1124.4)])), [])
        self.assertEqual(self.found("twice", ("{}", [self.measured(2.15)])), [])
        self.assertEqual(len(self.found("twice", ("{}", [self.measured(2.3)]))), 1)

    def test_a_source_that_is_gone(self):
        self.assertIn("is there 0 times", self.found("It takes long.", ("takes {} of the time", [self.measured(1)]))[0])
        self.assertIn("is there 2 times", self.found("1 MB, 1 MB", ("{} MB", [self.measured(1)]))[0])
        self.assertIn("2 numbers and 1 sources", self.found("1 of 2", ("{} of {}", [self.measured(1)]))[0])
        gone = stated.measured(lambda: pages.cell("x", "Times", ("gone",), "time"))
        self.assertIn("has no row gone", self.found("1 MB", ("{} MB", [gone]))[0])

    def test_a_limit_stands_where_it_is_said(self):
        self.assertEqual(self.found("34 MB", ("{} MB", [stated.said("x", "within 34 MB")])), [])
        self.assertIn("does not say", self.found("34 MB", ("{} MB", [stated.said("x", "within 35 MB")]))[0])
        self.assertIn("has no 36", self.found("36 MB", ("{} MB", [stated.said("x", "within 34 MB")]))[0])


if __name__ == "__main__":
    unittest.main()
