#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# REUSE-IgnoreStart (a page has such a line)
r"""Put into the manual pages of docs/man what other files say, so that the sources say it once.

    tools/site/manuals.py FOLDER [PROGRAMS]

Writes all pages into FOLDER. Comments of a page name what follows them:
    .\" options of docs/reference/options.md      the page, without its title and first sentence
    .\" functions of scm.h                        the declarations of a public header
    .\" headers of include/prudence               each header with its first sentence, but those that the page names
    .\" code of tests/docs/readme.c               a program, without its first comment
    .\" help of acdc                              the options that a program of the folder PROGRAMS describes
    .\" help of prudence-bench pairs stall        the same, of its commands together
A program that is not in PROGRAMS, or does not run here (a build for another processor), leaves its options to its --help.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import headers

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 78
OPTION = re.compile(r" {2,6}(-.*?)(?: {2,}(\S.*))?$")
MORE = re.compile(r" {8,}(\S.*)$")
HEADING = re.compile(r" ?([A-Za-z][^:]*):?$")


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return re.sub(r"^\.", r"\\&.", text, flags=re.M)


def words(markdown):
    """Text of Markdown: names in bold, links without their targets. A pair of parentheses that has nothing but a link goes."""
    text = re.sub(r" ?\((?:\[[^\]]*\]\([^)]*\)(?:, )?)+\)", "", markdown)
    text = escaped(re.sub(r"\[((?:`[^`]*`|[^\]`])*)\]\([^)]*\)", r"\1", text))
    text = re.sub(r"`([^`]*)`", r"\\fB\1\\fR", text)
    return re.sub(r"\*([^* ][^*]*)\*", r"\\fI\1\\fR", text)


def sentences(markdown):
    """A line for each sentence."""
    return re.sub(r"(?<=[a-z)`][.:]) (?=[A-Z`\[])", "\n", " ".join(markdown.split()))


def entry(name, about):
    return f".TP\n.B {name}\n{about}\n"


def of_table(lines):
    """Each row of a table of names as an entry: name, default, text, and perhaps the cost."""
    out = ""
    for line in lines[2:]:
        name, default, *texts = (cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
        cost = f". Cost: {texts[1]}" if len(texts) > 1 and texts[1] else ""
        out += entry(f"{escaped(name.strip('`'))} ({escaped(default)})", words(sentences(f"{texts[0]}{cost}.")))
    return out


def of_page(path):
    out = ""
    for part in path.read_text().split("\n\n")[2:]:
        lines = part.strip().split("\n")
        if lines[0].startswith("#"):
            out += f".SS {words(lines[0].lstrip('# '))}\n"
        elif lines[0].startswith("|"):
            out += of_table(lines)
        elif lines[0].startswith("- "):
            items = re.split(r"\n?^- ", part.strip(), flags=re.M)[1:]
            out += "".join(f".IP \\(bu 2\n{words(sentences(item))}\n" for item in items)
        else:
            out += f".PP\n{words(sentences(part))}\n"
    return re.sub(r"^(\.SS .*\n)\.PP\n", r"\1", out, flags=re.M)


def of_header(name, root):
    header = next(one for one in headers.read_all(root / "include/prudence") if one.name == name)
    lines = []
    for group in header.groups:
        lines += [f'.B "{escaped(line)}"' for one in group.declarations if one.kind == "function"
                  for line in broken(" ".join(one.code.split()))]
    return "\n".join(lines) + "\n"


def of_headers(page, root):
    return "".join(f'.TP\n.BR <prudence/{escaped(header.name)}> " (prudence\\-{escaped(header.name)} (3))"\n{escaped(first_sentence(header.text))}\n'
                   for header in headers.read_all(root / "include/prudence") if f"<prudence/{header.name}>" not in page.replace("\\-", "-"))


def first_sentence(text):
    return re.split(r"(?<=[^.])\.(?: |$)", headers.blocks(text)[0][1], maxsplit=1)[0].replace("`", "") + "."


def of_code(path):
    code = re.sub(r"\A(/\*.*?\*/\s*)+", "", path.read_text(), flags=re.S)
    return f".EX\n{escaped(code)}.EE\n"


def broken(declaration):
    """A declaration in lines of the width of a page."""
    if len(declaration) <= COLUMNS:
        return [declaration]
    at = declaration.rfind(", ", 0, COLUMNS) + 1
    return [declaration[:at], " " * (declaration.index("(") + 1) + declaration[at + 1:]]


def of_help(text):
    """(heading, option, description) of each option in what --help prints, by argp or argparse."""
    found, heading = [], ""
    for line in re.split(r"\n\n(?:examples:|Mandatory or optional)", text)[0].splitlines():
        if option := OPTION.match(line):
            found.append([heading, option[1], option[2] or ""])
        elif (more := MORE.match(line)) and found:
            found[-1][2] = f"{found[-1][2]} {more[1]}".strip()
        elif title := HEADING.match(line):
            heading = "" if title[1] in ("options", "positional arguments") else title[1]
    return [one for one in found if not re.search(r"--(help|usage)\b", one[1])]


def of_program(programs, name, *commands):
    options = {}
    for command in commands or ("",):
        try:
            said = subprocess.run([Path(programs, name), *command.split(), "--help"], text=True, capture_output=True, check=True,
                                  env={**os.environ, "COLUMNS": "1000", "PYTHONDONTWRITEBYTECODE": "1"}).stdout
        except (OSError, subprocess.CalledProcessError):
            return ""
        for heading, option, about in of_help(said):
            options.setdefault(option, (heading, about))
    out, before = "", ""
    for option, (heading, about) in options.items():
        out += f".SS {escaped(heading)}\n" if heading and heading != before else ""
        out += entry(escaped(option), escaped(about))
        before = heading or before
    return out


def filled(text, programs=None, root=ROOT):
    """The text of a page with all that its comments name."""
    def put(match):
        kind, names = match[1], match[2].split()
        if kind == "options":
            return of_page(root / names[0])
        if kind == "functions":
            return of_header(names[0], root)
        if kind == "headers":
            return of_headers(text, root)
        if kind == "code":
            return of_code(root / names[0])
        return of_program(programs, *names) if programs else ""
    return re.sub(r'^\.\\" (options|functions|headers|code|help) of (.*)\n', put, text, flags=re.M)


def main():
    folder, programs = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
    folder.mkdir(parents=True, exist_ok=True)
    for page in sorted((ROOT / "docs/man").iterdir()):
        (folder / page.name).write_text(filled(page.read_text(), programs))


if __name__ == "__main__":
    main()
