# SPDX-License-Identifier: MIT
"""The own tests of a crate that a module of ours replaces, as a crate that uses the stand-in: programs of tests, unit tests that need
nothing private, and the examples of its documentation."""

import re

from . import plan

FENCE, COMMENT = "```", re.compile(r"\s*//[/!] ?(.*)$")
TEST = re.compile(r"(?:^    #\[.*\n|^    //.*\n)*^    #\[test\]\n(?:^    #\[.*\n)*^    fn (\w+)\(\) \{\n(?:.*\n)*?^    \}\n\n?", re.M)


def examples(text):
    """[(language, lines)] of the blocks of code in the comments of documentation."""
    found, block = [], None
    for line in text.splitlines():
        comment = COMMENT.match(line)
        if not comment:
            block = None
        elif not comment[1].startswith(FENCE):
            if block:
                block[1].append(comment[1])
        elif block:
            found.append(block)
            block = None
        else:
            block = (comment[1].removeprefix(FENCE), [])
    return found


def documented(stem, text):
    """Functions that do nothing, each with one example."""
    return "".join(f"/// {FENCE}{language}\n" + "".join(f"/// {line}\n" for line in lines) + f"/// {FENCE}\npub fn {stem}_{number}() {{}}\n\n"
                   for number, (language, lines) in enumerate(examples(text)))


def unit_tests(text, suite):
    """The module of tests of a file as a program, without those that are not for the stand-in; None: there is none."""
    _, found, body = text.partition("\nmod tests {\n")
    if not found:
        return None
    body = TEST.sub(lambda test: "" if test[1] in suite.private else test[0], body.rstrip().removesuffix("}"))
    for old, new in suite.words:
        body = body.replace(old, new)
    return "#![allow(dead_code, unexpected_cfgs)]\n" + body


def make(work, one, write):
    """The folder of the suite. `write(place, text)` writes a file."""
    source, folder, suite = work / one.folder, work / f"suite-{one.name}", plan.SUITES[one.name]
    needs = "".join(f'{name} = "{version}"\n' for name, version in suite.needs)
    write(folder / "Cargo.toml", f'[package]\nname = "suite-{one.name}"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n'
          f'{one.name} = {{ path = "../{one.name}" }}\n{needs}[workspace]\n')
    texts = {path: path.read_text() for path in sorted((source / "src").rglob("*.rs"))}
    write(folder / "src/lib.rs", "".join(documented(path.stem, text) for path, text in texts.items()))
    for name in suite.programs:
        write(folder / "tests" / name, (source / "tests" / name).read_text())
    for path, text in texts.items():
        tests = unit_tests(text, suite) if path.stem in suite.units else None
        if tests:
            write(folder / f"tests/{path.stem}.rs", tests)
    return folder
