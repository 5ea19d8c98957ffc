# SPDX-License-Identifier: MIT
"""Lines of code, lines of comments and lengths of functions of one text, for tools/check/size.

The layout of a text does not change the count of C, C++ and Python. C and C++ have passed through clang-format before they come here. Python is
written again from the syntax tree: a statement is a line, and a longer statement is one line for each COLUMNS characters. Rust, shell
and CMake count as they stand. A blank line never counts. The length of a function is the number of lines of code from the name to the end.
"""

import ast
import io
import re
import tokenize
from typing import NamedTuple

from prose_rates import COMMENT

COLUMNS = 100
ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\)\s*")
NO_FUNCTION = re.compile(r"\s*(class|namespace|struct|union|enum|extern|template)\b(?!.*\))")
RUST_FUNCTION = re.compile(r"( *)(?:pub(?:\([a-z]+\))? |const |unsafe |async |extern \"C\" )*fn (\w+)")
SHELL_FUNCTION = re.compile(r"( *)(?:function )?([\w-]+) ?\(\) *\{")


class Count(NamedTuple):
    code: int
    comments: int
    functions: list  # (length, name) of each


def blank(match):
    """A comment becomes blanks; a string stays."""
    return match[0] if match["line"] is None and match["block"] is None else re.sub(r"[^\n]", " ", match[0])


def of_lines(text, code):
    """Compares a text with the same text without comments. Returns the lines of code, and the number of lines that only comment."""
    whole, lines = text.split("\n"), code.split("\n")
    kept = [line for line in lines if line.strip()]
    return kept, sum(bool(line.strip()) for line in whole) - len(kept)


def block_end(lines, first, indent, end):
    """The first line after `first` that closes a block of this indentation, or else the last line."""
    for number in range(first, len(lines)):
        if lines[number].startswith(indent + end):
            return number
    return len(lines) - 1


def c_functions(lines):
    """Each function opens with a brace that stands alone, below its head, as .clang-format has it."""
    for number, line in enumerate(lines):
        if line.strip() != "{":
            continue
        indent = line[:-1]
        head = number
        while head and not lines[head - 1].rstrip().endswith((";", "}", "{", ":")) and not lines[head - 1].startswith("#"):
            head -= 1
        words = ATTRIBUTE.sub("", " ".join(lines[head:number]))
        name = re.search(r"([\w~]+) ?\(", words)
        if name and not NO_FUNCTION.match(words):
            yield block_end(lines, number, indent, "}") - head + 1, name[1]


def of_c(text):
    code, comments = of_lines(text, COMMENT.sub(blank, text))
    return Count(len(code), comments, list(c_functions(code)))


def named_functions(lines, opening):
    for number, line in enumerate(lines):
        if match := opening.match(line):
            is_short = line.rstrip().endswith(("}", ";"))
            yield 1 if is_short else block_end(lines, number + 1, match[1], "}") - number + 1, match[2]


def of_rust(text):
    code, comments = of_lines(text, COMMENT.sub(blank, text))
    return Count(len(code), comments, list(named_functions(code, RUST_FUNCTION)))


def of_shell(text):
    code, comments = of_lines(text, re.sub(r"(?m)^[ \t]*#.*$", "", text))
    return Count(len(code), comments, list(named_functions(code, SHELL_FUNCTION)))


def take_docstrings(tree):
    """Removes the docstrings. Returns their number of lines."""
    docstrings = 0
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node) is not None:
            docstring = node.body.pop(0)
            docstrings += docstring.end_lineno - docstring.lineno + 1
    return docstrings


def statement_lines(node):
    return sum(-(-len(line) // COLUMNS) for line in ast.unparse(node).split("\n"))


def of_python(text):
    tree = ast.parse(text)
    docstrings = take_docstrings(tree)
    comments = sum(token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")
                   for token in tokenize.generate_tokens(io.StringIO(text).readline))
    functions = [(statement_lines(node), node.name) for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return Count(statement_lines(tree), comments + docstrings, functions)


def of_page(text):
    """A page has words, which stand in the place of code."""
    return Count(len(text.split()), 0, [])
