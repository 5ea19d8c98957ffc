# SPDX-License-Identifier: MIT
"""The declarations of the public headers, and the comment of each: for the site's reference (hooks.py) and for the
manual pages of functions (man3).

Headers are written for people who read them, so no comment has markup. A comment is for the declarations that follow it, up to
the next comment or condition. The first comment is for the header. A ruler ("/* ------- readers */") begins a section; a section
whose title ends with "(private)", and a name that ends with "_", are skipped. A public name without a comment is an error.
"""

import re
import textwrap
from dataclasses import dataclass, field

COMMENT = re.compile(r"/\*.*?\*/", re.S)
RULER = re.compile(r"/\* -{10,} (.*?) \*/")
WITHOUT_PAGE = {"language.h", "platform.h", "sequences.h", "urcu-compat.h"}  # parts of the other headers
PRIVATE = re.compile(r"__\w+$|\w*_$|\w+_slow$|prudence_inline_\w+$|PRUDENCE_INLINE\w*_\w+$|prudence_qsbr_blocking_(enter|leave)$|"
                     r"PRUDENCE_(API|MALLOC|KEEP|NOPLT|THREAD_LOCAL|SANITIZED|URCU_POLLS|QSBR_BLOCKING_NAME|\w+_H)$")
DECORATION = re.compile(r"\b(PRUDENCE_(API|INLINE(_FUNCTION)?|MALLOC|KEEP|NOPLT|THREAD_LOCAL)|extern|static|inline|__extension__)\s+")
NAMES = (("macro", r"#\s*define (\w+)"), ("type", r"typedef\b.*\(\*\s*(\w+)\)\s*\("), ("type", r"typedef\b.*?\b(\w+)\s*\([^()]*\)\s*;"),
         ("type", r"typedef\b.*\b(\w+)\s*;"), ("type", r"(?:struct|union|enum) (\w+)\s*\{"), ("function", r"[^({=]*?\b(\w+)\s*\("),
         ("variable", r"[^({=]*?\b(\w+)\s*(?:\[|=|;)"))


@dataclass
class Declaration:
    name: str
    kind: str  # "function", "macro" (with arguments), "constant", "type" or "variable"
    code: str


@dataclass
class Group:
    """Declarations that share a comment."""
    text: str
    section: str
    declarations: list = field(default_factory=list)


@dataclass
class Header:
    name: str
    text: str
    groups: list
    bare: dict  # names without a comment (whether of a type, name), and their lines


class Undocumented(Exception):
    pass


def blank(text):
    """Returns the text with comments of x."""
    return COMMENT.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), text)


def plain(comment):
    """The text of a comment; lines keep their indentation."""
    lines = [re.sub(r"^\s*\* ?", "", line).rstrip() for line in ("*" + comment[2:-2]).split("\n")]
    return "\n".join(lines).strip("\n")


def paragraphs(text):
    """Split at empty lines that are in no braces and no comment; the braces of extern "C" do not count."""
    depth, start, found = 0, 0, []
    code = COMMENT.sub(lambda match: "x" * len(match[0]), text).replace('extern "C" {', 'extern "C"  ')
    for match in re.finditer(r"[{}]|\n[ \t]*\n", code):
        if match[0] in "{}":
            depth = max(0, depth + (1 if match[0] == "{" else -1))
        elif depth == 0:
            found.append((start, text[start:match.end()]))
            start = match.end()
    return [*found, (start, text[start:])]


def end_of_line(code, text, at):
    """The end of the line at `at`, and of a comment that begins there."""
    line = code.find("\n", at)
    while line >= 0 and text[at:line].count("/*") > text[at:line].count("*/"):
        line = code.find("\n", line + 1)
    return line if line >= 0 else len(code)


def declarations(text):
    """Yields each declaration with the comments before it and in its line; a directive is one, too."""
    depth, start, found, at = 0, 0, [], 0
    code = blank(text).replace('extern "C" {', 'extern "C"  ')
    while at < len(code):
        if depth == 0 and code.startswith("#", at) and (at == 0 or code[at - 1] == "\n"):
            while (end := code.find("\n", at)) >= 0 and code[end - 1] == "\\":
                at = end + 1
            at = end_of_line(code, text, at)
            found.append(text[start:at])
            start = at
            continue
        depth = max(0, depth + {"{": 1, "}": -1}.get(code[at], 0))
        ends = depth == 0 and (code[at] == ";" or code[at:at + 2] == "}\n")
        at += 1
        if ends:
            at = end_of_line(code, text, at)
            found.append(text[start:at])
            start = at
    return [part.strip("\n") for part in (*found, text[start:]) if part.strip()]


def without_attributes(code):
    while match := re.search(r"\s*\b(?:__attribute__|__asm__)\s*\(", code):
        depth, end = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            end += 1
        code = code[:match.start()] + code[end:]
    return code


def prototype(code):
    """Returns the prototype of a function, in lines of 72 columns (of 80 in a manual page), broken after commas."""
    code = re.split(r"\s*(?:\{|;)", DECORATION.sub("", without_attributes(" ".join(code.split()))), maxsplit=1)[0] + ";"
    code = re.sub(r"\* (?=\w)", "*", code).replace(" ", "\0").replace(",\0", ", ")
    return "\n".join(textwrap.wrap(code, 72, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)).replace("\0", " ")


def declaration(code):
    """Returns the declaration, or None for a directive, a forward declaration, an assertion, or the end of extern "C"."""
    bare = without_attributes(COMMENT.sub("", code)).strip()
    if bare.startswith("#") and not bare.startswith("#define") or re.match(r'(struct|union|enum) \w+;|_Static_assert|\}|extern "C"', bare):
        return None
    one_line = DECORATION.sub("", " ".join(bare.split()))
    for kind, pattern in NAMES:
        if match := re.match(pattern, one_line):
            break
    else:
        return None
    if kind == "function":
        comment = re.search(r";\s*(/\*.*\*/)\s*$", code, re.S)
        return Declaration(match[1], kind, prototype(COMMENT.sub("", code)) + (" " + " ".join(comment[1].split()) if comment else ""))
    if kind == "macro" and one_line[match.end():match.end() + 1] == "(":
        return Declaration(match[1], kind, one_line[:one_line.index(")") + 1])
    if kind == "macro":
        return Declaration(match[1], "constant", re.sub(r"\s*\\\n\s*", " ", code.strip()))
    return Declaration(match[1], kind, DECORATION.sub("", without_attributes(code)).strip() if kind == "variable" else without_attributes(code).strip())


def is_documentation(comment):
    return not RULER.match(comment) and "SPDX-License-Identifier" not in comment


class Reader:
    """Reads one header."""

    def __init__(self, path):
        self.path, self.text = path, path.read_text()
        self.groups, self.section, self.group = [], "", None
        self.seen, self.bare = set(), {}  # kinds and names with a comment; names without, and their lines

    def add(self, part, line):
        """A declaration with the comment in front of it, if it has one of its own."""
        comment = COMMENT.match(part.lstrip())
        if comment and is_documentation(comment[0]):
            self.group = Group(plain(comment[0]), self.section)
            self.groups.append(self.group)
        found = declaration(part)
        if not found or (found.kind, found.name) in self.seen or PRIVATE.match(found.name) or "(private)" in self.section:
            return
        if not self.group:
            if not part.startswith("static inline"):  # a part of others
                self.bare.setdefault((found.kind == "type", found.name), line)
            return
        self.seen.add((found.kind, found.name))
        self.group.declarations.append(declaration(part.lstrip()[comment.end():] if comment else part))

    def read(self):
        head = next(match for match in COMMENT.finditer(self.text) if is_documentation(match[0]))
        for start, paragraph in paragraphs(self.text[head.end():]):
            text = paragraph.lstrip()
            if ruler := RULER.match(text):
                self.section, self.group = ruler[1], None
                text = text[ruler.end():]
            elif text.startswith("#ifdef __cplusplus"):
                self.group = None
            for part in declarations(text):
                self.add(part, self.text.count("\n", 0, head.end() + start) + 1)
        return Header(self.path.name, plain(head[0]), [group for group in self.groups if group.declarations], self.bare)


def read_all(folder):
    """The headers with a page, in order of their names. A name needs a comment in one of them."""
    found = [Reader(path).read() for path in sorted(folder.glob("*.h")) if path.name not in WITHOUT_PAGE]
    documented = {(one.kind == "type", one.name) for header in found for group in header.groups for one in group.declarations}
    bare = [f"{folder}/{header.name}:{line}: {name} is not documented"
            for header in found for (is_type, name), line in header.bare.items() if (is_type, name) not in documented]
    if bare:
        raise Undocumented("\n".join(bare))
    return found


def blocks(text):
    """A comment's text as [("text" | "item" | "code", text)]: items begin with "- ", code is indented by four or more."""
    found, gap, indented = [], True, 0
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        kind = found[-1][0] if found else ""
        if not line.strip():
            gap = True
            continue
        if line.lstrip().startswith("- ") and indent < 4:
            found.append(("item", [line.strip()[2:]]))
            indented = indent
        elif kind == "item" and indent > indented and (not gap or indent < 4):
            found[-1][1].append(line.strip())
        elif indent >= 4:
            if kind != "code":
                found.append(("code", []))
            found[-1][1].extend([""] * (gap and kind == "code") + [line])
        elif kind == "text" and not gap:
            found[-1][1].append(line.strip())
        else:
            found.append(("text", [line.strip()]))
        gap = False
    return [(kind, textwrap.dedent("\n".join(lines)) if kind == "code" else " ".join(lines)) for kind, lines in found]
