# SPDX-License-Identifier: MIT
"""How often comments, help texts and messages use what makes prose hard to read: texts that open with a fragment, and "what",
"its", "it", colons and private words in a thousand words. For tools/check/prose; docs/how-to/write-plain-english.md says why.

A rate is a thermometer. One file may be three times above the limit, since a file may need a word as a name; all
files of a group together may not be above it.
"""

import ast
import collections
import io
import re
import tokenize
from typing import Callable, NamedTuple

COMMENT = re.compile(r"""//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""", re.S)  # or a string, which may look like one
JOINED_COMMENTS = re.compile(r"""(?:^[ \t]*//[^\n]*\n)+|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\\n])'""", re.M | re.S)
CODE = re.compile(r"```.*?```|`[^`]*`", re.S)
STRINGS = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*""", re.S)  # or a comment, which may look like one
FORMAT = re.compile(r"\\[nt]|%[-.*0-9]*[a-zA-Z]+")
FRAGMENT = re.compile(r"(It|They|That|Those|These|Them|One|Of|By|As|What|Where|Whether|The same|So|Beside|Behind)\b")
COLON = re.compile(r":(?=\s|$)")  # of a sentence, not of a name in C++
FOR_TOOLS = re.compile(r"SPDX-[\w-]+: [\w.-]+(?: OR [\w.-]+)?|^/usr/bin/python3|noqa: \w+|\bSAFETY:|\bctest:")  # words, not sentences
MARKS = ("---", "clang-format", "NOLINT", "cppcheck")  # comments for tools
HELP = {"help", "description", "epilog"}  # what argparse prints
SHORT = 20  # characters; shorter comments are names and units
MESSAGE_WORDS = 5
A_FILE = 3  # times the limit, and ...
SOME = 3  # that many are never too many
COLUMNS = 100


def comments(text):
    """Each comment of C, as one line."""
    for match in COMMENT.finditer(text):
        yield re.sub(r"\n\s*\*? ?", " ", match["block"] or match["line"] or "")


def joined_comments(text):
    """Each comment of C++ and Rust. Those of lines that follow each other are one, and code in them is a word."""
    for match in JOINED_COMMENTS.finditer(text):
        if match[0].lstrip().startswith(("//", "/*")):
            yield " ".join(CODE.sub("code", re.sub(r"(?m)^[ \t]*(?:/[/*]+!?|\*/?)|\*/", "", match[0])).split())


def python_comments(text):
    """Docstrings, and comments, of which those of lines that follow each other are one."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield " ".join((ast.get_docstring(node) or "").split())
    comment, last = [], 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1:
                yield " ".join(comment)
                comment = []
            comment.append(token.string.lstrip("#! "))
            last = token.start[0]
    yield " ".join(comment)


def sentence(text):
    """A help text or a message may begin with a small letter."""
    text = " ".join(text.split())
    return text[:1].upper() + text[1:]


def python_help(text):
    """The texts that argparse prints."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.keyword) and node.arg in HELP:
            yield sentence("".join(part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant) and isinstance(part.value, str)))


def messages(text):
    """Strings of C that have as many words as a sentence."""
    for match in STRINGS.finditer(text):
        if match[0].startswith('"'):
            words = FORMAT.sub(" ", "".join(part[1:-1] for part in re.findall(r'"(?:\\.|[^"\\\n])*"', match[0])))
            if len(re.findall(r"[A-Za-z]{2,}", words)) >= MESSAGE_WORDS:
                yield sentence(words)


class Group(NamedTuple):
    folders: tuple
    endings: tuple
    texts: Callable  # the texts of a file
    limits: dict

    def has(self, file, end):
        return file.as_posix().startswith(tuple(f"{folder}/" for folder in self.folders)) and end in self.endings


def limits(fragments, what, its, it, colons=None):
    """How many fragments a hundred texts may have, and how many of each other a thousand words. Colons of messages are not
    counted, because a message names the object before a colon."""
    words = {"fragments": fragments, "what": what, "its": its, "it": it}
    return words | {"colons": colons} if colons else words


# Rates that others meet, measured with this file: comments and help texts of Python's standard library; comments of the crates
# memchr, regex and smallvec, and of the headers of GoogleTest. The aim of messages is that of help texts.
AIMS = {python_comments: limits(1, 1, 2, 8, 11), python_help: limits(1, 1, 2, 8, 11), messages: limits(1, 1, 2, 8),
        joined_comments: limits(2, 1, 2, 13, 10)}
GROUPS = {
    "comments of the product": Group(("src", "include", "preload", "kernel"), (".c", ".h"), comments, limits(2, 1.5, 4, 10, 15)),
    "comments of tests and tools": Group(("tests", "programs", "lab"), (".c", ".h"), comments, limits(2, 2, 8, 20, 30)),
    # The limits below are the rates of the day, rounded up. They only go down: docs/how-to/write-plain-english.md has the aim.
    "comments of C++ headers": Group(("include",), (".hpp",), joined_comments, limits(2, 1, 7, 15, 12)),
    "comments of Rust": Group(("rust", "tests", "lab"), (".rs",), joined_comments, limits(2, 2, 8, 20, 10)),
    "Python of programs and tools": Group(("programs", "tools", "lab", "rust", "packaging"), (".py",),
                                          python_comments, limits(1, 1, 11, 16, 23)),
    "Python of tests": Group(("tests",), (".py",), python_comments, limits(1, 3, 10, 16, 22)),
    "help texts of Python": Group(("programs", "tools", "lab", "tests", "rust"), (".py",),
                                  python_help, limits(1, 1, 5, 7, 22)),
    "messages of the product": Group(("src", "include", "preload", "kernel"), (".c", ".h"), messages, limits(2, 1, 7, 9)),
    "help texts and messages of programs": Group(("programs", "lab/bench", "lab/acdc"), (".c", ".h"), messages, limits(2, 1, 5, 5)),
}


# Words that plain English has better ones for, as a pattern, and how many of each a thousand words of all groups together may have.
# "Look up" is a term. These limits only go down, too.
PRIVATE = {"besides?": 0.1, r"look(?:s|ed|ing)?(?! up\b)": 0.4, "(?:no|some|any)body": 0.1, "in the way": 0.1, "tells?|told|telling": 0.1,
           "left": 0.2, "meanwhile": 0.1, "in vain": 0.1, "so many": 0.1}


def count(texts):
    found = collections.Counter()
    for text in (FOR_TOOLS.sub("", text).strip() for text in texts):
        if len(text) <= SHORT or text.startswith(MARKS):
            continue
        found["texts"] += 1
        found["words"] += len(text.split())
        found["fragments"] += bool(FRAGMENT.match(text))
        found["colons"] += len(COLON.findall(text))
        for word in ("what", "its", "it"):
            found[word] += len(re.findall(rf"\b{word}\b", text, re.I))
        for pattern in PRIVATE:
            found[pattern] += len(re.findall(rf"\b(?:{pattern})\b", text, re.I))
    return found


def whole_of(found, name):
    """Fragments are counted in texts, the others in words."""
    return (found["texts"], 100) if name == "fragments" else (found["words"], 1000)


def excesses(found, limits_of_group, times=1, least=0):
    """Each rate above the limits, in words."""
    for name, limit in limits_of_group.items():
        whole, per = whole_of(found, name)
        if found[name] > max(least, times * limit * whole / per):
            yield f'{found[name]} "{name}" in {whole} {"texts" if per == 100 else "words"}: more than {times * limit:g} in {per}'


def too_wide(text):
    """Lines of comments; the formatter sees to code."""
    return [number for number, line in enumerate(text.split("\n"), 1) if len(line) > COLUMNS and re.search(r"^\s*(/?\*|//)|\*/\s*$", line)]


def ending(path):
    if path.suffix:
        return path.suffix
    with path.open("rb") as file:
        return ".py" if file.readline() == b"#!/usr/bin/python3\n" else ""


def sources(root, paths):
    """(name, ending, text) of each file that some group counts."""
    for path in paths:
        name, end = path.relative_to(root), ending(path)
        if any(group.has(name, end) for group in GROUPS.values()):
            yield name, end, path.read_text(encoding="utf-8")


def totals(texts):
    """For each group, the counts of its files by name."""
    return {name: {file: count(group.texts(text)) for file, end, text in texts if group.has(file, end)}
            for name, group in GROUPS.items()}


def findings(root, paths):
    """Each limit that is passed, as a line."""
    texts = list(sources(root, paths))
    for file, end, text in texts:
        if any(group.has(file, end) for group in GROUPS.values() if group.texts is comments):
            yield from (f"{file}:{line}: more than {COLUMNS} columns" for line in too_wide(text))
    everything = collections.Counter()
    for name, counts in totals(texts).items():
        for file, found in counts.items():
            yield from (f"{file}: {excess}" for excess in excesses(found, GROUPS[name].limits, A_FILE, SOME))
        total = sum(counts.values(), collections.Counter())
        yield from (f"{name}: {excess}" for excess in excesses(total, GROUPS[name].limits))
        everything += total
    yield from (f"private words of all groups: {excess}" for excess in excesses(everything, PRIVATE))


def table(root, paths):
    """The rates of each group, the limits and the aims."""
    everything = collections.Counter()
    for name, counts in totals(list(sources(root, paths))).items():
        total = sum(counts.values(), collections.Counter())
        everything += total
        aims = AIMS.get(GROUPS[name].texts, {})
        rates = []
        for word, limit in GROUPS[name].limits.items():
            whole, per = whole_of(total, word)
            aim = f" (aim {aims[word]:g})" if word in aims else ""
            rates.append(f"{word} {total[word] * per / max(1, whole):.1f} of {limit:g}{aim}")
        yield f"{name}: {total['words']} words; {', '.join(rates)}"
    private = (f"{pattern} {1000 * everything[pattern] / max(1, everything['words']):.2f} of {limit:g}" for pattern, limit in PRIVATE.items())
    yield f"private words of all groups: {', '.join(private)}"
