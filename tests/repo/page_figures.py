# SPDX-License-Identifier: MIT
"""Numbers that a page states, and tables that numbers are read out of (CONTRIBUTING.md).

A number is digits, or a word for a ratio ("half", "six times"). Code, the targets of links and comments of HTML state none. Text is never changed in
length, so places in it are places in the page."""

import csv
import functools
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COUNTS = dict(zip("two three four five six seven eight nine ten twenty".split(), (2, 3, 4, 5, 6, 7, 8, 9, 10, 20)))
PARTS = {"third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "tenth": 10, "twentieth": 20}
DIGITS = r"(?<![A-Za-z_\d.])\d+(?:,\d{3})*(?:\.\d+)*(?![\d_])"
WORDS = (r"\b(?:half|twice|doubled|doubles|(?:" + "|".join(COUNTS) + r") times|(?:an?|one|two|three|four) (?:" + "|".join(PARTS) + r")s?|(?:" +
         "|".join(COUNTS) + r")fold)\b")
NUMBER = f"{DIGITS}|{WORDS}"
ROUGH = 0.1   # as a share: how far a word, or a rounded number, may be from the measured value


class NoSuchCell(Exception):
    """A table, a row or a column that is not there, or is there more than once."""


@functools.cache
def text_of(page):
    return (ROOT / page).read_text()


def blanked(text):
    """Returns the text that a reader sees: without code, unless that is a bare number; without targets of links and without comments."""
    def away(match):
        return re.sub(r"\S", " ", match[0])
    text = re.sub(r"^```.*?^```$", away, text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", away, text, flags=re.S)
    text = re.sub(r"`[^`\n]*`", lambda match: match[0] if re.fullmatch(r"`[\d., %]+`", match[0]) else away(match), text)
    return re.sub(r"\]\([^)\s]*\)", away, text)


def numbers_of(text):
    """[(first, end)]"""
    return [match.span() for match in re.finditer(NUMBER, blanked(text), re.I)]


def value_of(word):
    """Returns (the value of the number, the distance allowed from the measured value)."""
    word = word.lower()
    if word[0].isdigit():
        digits = word.replace(",", "")
        value, off = float(digits), 0.5 * 10 ** -len(digits.partition(".")[2]) * 1.000001
        return value, min(off, ROUGH * value) if value else off
    if word == "half":
        value = 0.5
    elif word in ("twice", "doubled", "doubles"):
        value = 2
    elif word.removesuffix("fold") in COUNTS:
        value = COUNTS[word.removesuffix("fold")]
    elif word.split()[1] == "times":
        value = COUNTS[word.split()[0]]
    else:
        count, part = word.split()
        value = COUNTS.get(count, 1) / PARTS[part.removesuffix("s")]
    return value, ROUGH * value


# --------------------------------------------------------------------------------------------------- tables of pages

def plain(text):
    return text.strip().replace("**", "").replace("`", "")


@functools.cache
def tables_of(page):
    """{title: [rows of cells, the columns' names first]}. The title is the heading above, or the bold words that begin the paragraph above. A CSV file
    is one table, without a title."""
    if page.endswith(".csv"):
        return {"": [list(csv.reader(text_of(page).splitlines()))]}
    found, title, rows = {}, "", []
    for line in [*text_of(page).split("\n"), ""]:
        if line.startswith("|"):
            rows.append([plain(cell) for cell in line.split("|")[1:-1]])
            continue
        if rows:
            found.setdefault(title, []).append([rows[0], *rows[2:]])
            rows = []
        lead = re.match(r"#+ (.*)|\*\*(.*?)\.\*\*", line)
        if lead:
            title = plain(lead[1] or lead[2])
    return found


def table(page, title):
    """`title`: or that and how many tables of it come before."""
    name, before = (title, None) if isinstance(title, str) else title
    found = tables_of(page).get(name, [])
    if len(found) <= (before or 0) or (before is None and len(found) > 1):
        raise NoSuchCell(f"{page} has {len(found)} tables under '{name}'")
    return found[before or 0]


def numbers_in(cell):
    return [float(one.replace(",", "")) for one in re.findall(r"-?\d+(?:,\d{3})*(?:\.\d+)?", cell)]


def rows(page, title, *start):
    """Returns the rows whose first cells are these."""
    found = [row for row in table(page, title)[1:] if row[:len(start)] == list(start)]
    if not found:
        raise NoSuchCell(f"{page}, '{title}' has no row {' | '.join(start)}")
    return found


def place_of(page, title, column):
    columns = table(page, title)[0]
    if columns.count(column) != 1:
        raise NoSuchCell(f"{page}, '{title}' has {columns.count(column)} columns '{column}'")
    return columns.index(column)


def number_in(cell, where, number, side):
    """The `number`th of a cell, or of one side of its arrow."""
    found = numbers_in(cell if side is None else cell.split("→")[side])
    if number >= len(found):
        raise NoSuchCell(f"{where}: '{cell}' has no number {number}")
    return found[number]


def cell(page, title, start, column, number=0, side=None):
    """`side`: of the arrow in the cell, 0 or 1. `start`: the first cells of the row, as a tuple."""
    found = rows(page, title, *start)
    if len(found) != 1:
        raise NoSuchCell(f"{page}, '{title}' has {len(found)} rows {' | '.join(start)}")
    return number_in(found[0][place_of(page, title, column)], f"{page}, '{title}', {' | '.join(start)}", number, side)


def counted(page, title, start, column, pattern):
    """A number in the words of a cell."""
    words = rows(page, title, *start)[0][place_of(page, title, column)]
    found = re.search(pattern, words)
    if not found:
        raise NoSuchCell(f"{page}, '{title}', {' | '.join(start)}: '{words}' has no '{pattern}'")
    return float(found[1].replace(",", ""))
