#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A header as Doxygen wants it: comments become its comments, and one that is for several declarations is for each of them.

A comment is for what follows it, up to the next comment or condition; or it stands behind what it is for. The first one is for the file.
"""

import re
import sys

RULER = re.compile(r"/\* -{10,}")
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def is_documentation(comment):
    return not RULER.match(comment) and "SPDX-License-Identifier" not in comment


def marked(text):
    """Comments in front of a line's code, and behind it."""
    out, at = [], 0
    for match in COMMENT.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        out.append(text[at:match.start()])
        at = match.end()
        if not is_documentation(match[0]):
            out.append(match[0])
        elif line.startswith("#") and not line.startswith("#define"):
            out.append(match[0])
        elif line.strip():
            out.append("/**<" + match[0][2:])
        else:
            out.append("/**" + match[0][2:])
    return "".join(out) + text[at:]


def paragraphs(text):
    """Split at empty lines that are in no braces and no comment; C++'s `extern "C" {` does not count."""
    depth, start, found = 0, 0, []
    code = COMMENT.sub(lambda match: re.sub(r"[^\n]", "x", match[0]).replace("\n", "x"), text)
    code = code.replace('extern "C" {', 'extern "C"  ')
    for match in re.finditer(r"[{}]|\n[ \t]*\n", code):
        if match[0] in "{}":
            depth = max(0, depth + (1 if match[0] == "{" else -1))
        elif depth == 0:
            found.append(text[start:match.end()])
            start = match.end()
    return [*found, text[start:]]


def blank(text):
    """The same, with x for comments."""
    return COMMENT.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), text)


def declarations(text):
    """Each with the comments beside it, and what stands in front of it."""
    depth, start, found, at = 0, 0, [], 0
    code = blank(text)
    while at < len(code):
        if code.startswith("#", at) and (at == 0 or code[at - 1] == "\n"):
            while (end := code.find("\n", at)) >= 0 and code[end - 1] == "\\":
                at = end + 1
            at = end if end >= 0 else len(code)
            found.append(text[start:at])
            start = at
            continue
        if code[at] in "{}":
            depth += 1 if code[at] == "{" else -1
        ends = code[at] == ";" and depth == 0
        ends = ends or (code[at] == "}" and depth == 0 and code[at + 1:at + 2] == "\n")
        at += 1
        if ends:
            line = code.find("\n", at)
            while line >= 0 and code[at:line].strip(" ") and text[at:line].count("/*") > text[at:line].count("*/"):
                line = code.find("\n", line + 1)  # a comment behind it goes on
            at = line if line >= 0 else len(code)
            found.append(text[start:at])
            start = at
    return [*found, text[start:]]


def joined(found):
    """With what has no comment in front as a part of the one before."""
    parts = []
    for paragraph in found:
        text = paragraph.lstrip()
        goes_on = text and not text.startswith("/*") and (text.startswith("#define") or text[0] not in "#}")
        if parts and goes_on and COMMENT.match(parts[-1].lstrip()) and is_documentation(parts[-1].lstrip()):
            parts[-1] += paragraph
        else:
            parts.append(paragraph)
    return parts


def spread(paragraph):
    """The comment in front of each declaration."""
    match = COMMENT.match(paragraph.lstrip())
    if not match or not is_documentation(match[0]):
        return paragraph
    parts = declarations(paragraph.lstrip()[match.end():])
    return "".join(f"{match[0]}\n{part.lstrip()}\n" if part.strip() else part for part in parts) + "\n"


def main():
    with open(sys.argv[1]) as file:
        text = file.read()
    text = re.sub(r"(\*/\s*/\*)", r"\1 @file\n *", text, count=1)
    sys.stdout.write(marked("".join(spread(paragraph) for paragraph in joined(paragraphs(text)))))


main()
