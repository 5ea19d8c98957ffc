# SPDX-License-Identifier: MIT
"""How often comments of C use what makes prose hard to read: comments that open with a fragment, and "what", "its", "it" and
colons in a thousand words. For tools/check/prose; docs/how-to/write-plain-english.md says why.

A rate is a thermometer. One file may be three times above the limit, since a file with a parameter `what` needs the word; all
files of a group together may not be above it.
"""

import collections
import re

# The folders of a group, and how many of each it may have: fragments in a hundred comments, words and colons in a thousand words.
GROUPS = {
    "the product": (("src", "include", "preload", "kernel"), {"fragments": 3, "what": 1.5, "its": 4, "it": 10, "colons": 15}),
    "tests and tools": (("tests", "programs", "examples"), {"fragments": 6, "what": 3, "its": 8, "it": 20, "colons": 30}),
}
COMMENT = re.compile(r"""//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""", re.S)  # or a string, which may look like one
FRAGMENT = re.compile(r"(It|They|That|Those|These|Them|One|Of|By|As|What|Where|Whether|The same|So|Beside|Behind)\b")
MARKS = ("SPDX", "---", "clang-format", "NOLINT", "cppcheck")  # comments for tools
SHORT = 20  # characters; shorter comments are names and units
A_FILE = 3  # times the limit, and ...
SOME = 3  # that many are never too many
COLUMNS = 100


def comments(text):
    """Each comment, as one line."""
    for match in COMMENT.finditer(text):
        comment = re.sub(r"\n\s*\*? ?", " ", match["block"] or match["line"] or "").strip()
        if len(comment) > SHORT and not comment.startswith(MARKS):
            yield comment


def count(text):
    found = collections.Counter()
    for comment in comments(text):
        found["comments"] += 1
        found["words"] += len(comment.split())
        found["fragments"] += bool(FRAGMENT.match(comment))
        found["colons"] += comment.count(":")
        for word in ("what", "its", "it"):
            found[word] += len(re.findall(rf"\b{word}\b", comment, re.I))
    return found


def excesses(found, limits, times=1, least=0):
    """What is above the limits, in words."""
    for name, limit in limits.items():
        whole, per = (found["comments"], 100) if name == "fragments" else (found["words"], 1000)
        if found[name] > max(least, times * limit * whole / per):
            yield f'{found[name]} "{name}" in {whole} {"comments" if per == 100 else "words"}: more than {times * limit:g} in {per}'


def too_wide(text):
    """Lines of comments; the formatter sees to code."""
    return [number for number, line in enumerate(text.split("\n"), 1) if len(line) > COLUMNS and re.search(r"^\s*(/?\*|//)|\*/\s*$", line)]


def findings(root, paths):
    """Each limit that is passed, as a line."""
    for group, (folders, limits) in GROUPS.items():
        total = collections.Counter()
        for path in paths:
            name = path.relative_to(root)
            if path.suffix not in (".c", ".h") or name.parts[0] not in folders:
                continue
            text = path.read_text()
            found = count(text)
            total += found
            yield from (f"{name}: {excess}" for excess in excesses(found, limits, A_FILE, SOME))
            yield from (f"{name}:{line}: more than {COLUMNS} columns" for line in too_wide(text))
        yield from (f"comments of {group}: {excess}" for excess in excesses(total, limits))
