#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every name of liburcu's headers is in docs/reference/liburcu-names.md: ours, or refused with a reason.

The names are taken from the liburcu-dev that is installed. Names that the page calls ours are compiled in each
flavour; refused names must not be there; struct rcu_flavor_struct must be laid out as liburcu's.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ROOT / "include/prudence/urcu-compat"
PAGE = ROOT / "docs/reference/liburcu-names.md"
FLAVOURS = ("memb", "mb", "signal", "bp", "qsbr")
FUNCTION_LIKE = re.compile(r"pointer|dereference")


def installed_headers():
    for folder in (Path("/usr/include"), *sorted(Path("/usr/include").glob("*-linux-gnu*"))):
        if (folder / "urcu/urcu-memb.h").is_file():
            return folder
    return None


THEIRS = installed_headers()


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"\\\n", " ", re.sub(r"//[^\n]*", "", text))


def without_bodies(code):
    before = None
    code = re.sub(r'extern\s+"C"\s*\{', "", code)
    while before != code:
        before, code = code, re.sub(r"\{[^{}]*\}", ";", code)
    return code


def names_of(text):
    """Macros, functions, variables and structures; no include guards."""
    text = without_comments(text)
    names = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M))
    code = without_bodies(re.sub(r"^[ \t]*#.*$", "", text, flags=re.M))
    names |= set(re.findall(r"\b(\w+)\s*\((?:[^()]|\([^()]*\))*\)\s*;", code))
    names |= set(re.findall(r"\bextern\b[^();]*?(\w+)\s*;", code))
    names |= {"struct " + name for name in re.findall(r"\bstruct\s+(\w+)\s*;", code)}
    return {name for name in names if not re.fullmatch(r"_URCU_(\w+_)?H|DECLARE_URCU_TLS", name)}


def replaced_headers():
    """Returns their names that ours stand in front of."""
    for path in sorted(OURS.rglob("*.h")):
        theirs = THEIRS / path.relative_to(OURS)
        if theirs.is_file():
            yield theirs


def general(name):
    """The name as the page has it: FLAVOUR for a flavour, in front or, as once, behind."""
    name = re.sub(r"^(_?|struct )urcu_(memb|mb|bp|qsbr|signal)_", r"\1urcu_FLAVOUR_", name)
    name = re.sub(r"^rcu_(memb|mb|bp|qsbr|sig)_((?:before|after)_fork\w*)$", r"\2_FLAVOUR", name)
    return re.sub(r"_(memb|mb|bp|qsbr|sig)$", "_FLAVOUR", name)


def page_rows():
    """Returns name -> the page's word: 'ours', 'some' (in some flavours) or 'refused'; and the reason."""
    rows = {}
    for line in PAGE.read_text().splitlines():
        match = re.match(r"\| (`.*?`) \| (ours|refused)\b([^|]*)\|", line)
        if match:
            for name in re.findall(r"`([^`]+)`", match[1]):
                rows[name] = (match[2], match[3].strip(" :"))
    return rows


def compile_errors(source, *options):
    result = subprocess.run([shutil.which("cc"), "-x", "c", "-std=gnu11", "-fsyntax-only", "-Werror", "-Wno-unused-value",
                             f"-I{OURS}", f"-I{ROOT / 'include'}", *options, "-"], input=source, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return "" if result.returncode == 0 else result.stdout


@unittest.skipUnless(THEIRS and shutil.which("cc"), "liburcu-dev or a compiler is not installed")
class Names(unittest.TestCase):
    maxDiff = None

    def test_each_name_is_in_the_table(self):
        rows = page_rows()
        names = set().union(*(names_of(path.read_text()) for path in replaced_headers()))
        self.assertGreater(len(names), 300)
        self.assertEqual(sorted({general(name) for name in names} - set(rows)), [])

    def test_each_refusal_has_a_reason(self):
        self.assertEqual([name for name, (what, why) in page_rows().items() if what == "refused" and len(why) < 8], [])

    def probe(self, flavour, name, what, why):
        """Lines of a program that does not compile if the page is wrong."""
        name = name.replace("FLAVOUR", flavour)
        if what == "ours":
            if why.startswith("in ") and flavour not in why:
                return []
            use = "" if FUNCTION_LIKE.search(name) else f"static void use_{name}(void) {{ (void)({name}); }}"
            return [f"#ifndef {name}", f"static void use_{name}(void) {{ (void)({name}); }}", "#else", use, "#endif"]
        return [f"#ifdef {name}", f'#error "{name} is there"', "#endif",
                f"extern struct nothing *{name}[3];"]

    def test_what_is_ours_compiles_and_what_is_refused_is_not_there(self):
        for flavour in FLAVOURS:
            for what in ("ours", "refused"):
                lines = ["#define URCU_API_MAP", f"#include <urcu/urcu-{flavour}.h>", "#include <urcu/urcu-poll.h>",
                         "#include <urcu/futex.h>", "struct nothing;"]
                for name, (said, why) in page_rows().items():
                    if said == what and not name.startswith("struct "):
                        lines += self.probe(flavour, name, what, why)
                with self.subTest(flavour=flavour, what=what):
                    self.assertEqual(compile_errors("\n".join(lines) + "\n", "-Wno-unused-function"), "")

    def offsets(self, include, folder):
        text = without_comments((THEIRS / "urcu/flavor.h").read_text())
        body = re.search(r"struct rcu_flavor_struct\s*\{(.*?)\n\};", text, re.S)[1]
        fields = [re.search(r"\(\*(\w+)\)\(", field)[1] for field in body.split(";") if "(" in field]
        prints = "".join(f'printf("{field} %zu\\n", offsetof(struct rcu_flavor_struct, {field}));' for field in fields)
        source = f"#include <stddef.h>\n#include <stdio.h>\n{include}\nint main(void) {{ {prints} return 0; }}\n"
        program = Path(folder) / "offsets"
        subprocess.run(["cc", "-x", "c", f"-I{ROOT / 'include'}", "-o", program, "-"], input=source, text=True, check=True)
        self.assertGreaterEqual(len(fields), 14)
        return subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout

    def test_flavours_are_laid_out_as_theirs(self):
        with tempfile.TemporaryDirectory() as folder:
            theirs = self.offsets(f'#include "{THEIRS}/urcu/flavor.h"', folder)
            ours = self.offsets(f'#include "{OURS}/urcu/flavor.h"', folder)
        self.assertEqual(theirs, ours)

    def test_flavours_have_what_newer_versions_have(self):
        fields = ("update_start_poll_synchronize_rcu", "update_poll_state_synchronize_rcu")
        for flavour in FLAVOURS:
            self.assertEqual(compile_errors(
                f"#include <urcu/urcu-{flavour}.h>\n#include <stddef.h>\n"
                f"int used(void) {{ return urcu_{flavour}_flavor.{fields[1]}(urcu_{flavour}_flavor.{fields[0]}()); }}\n"
                # New members come after all that older ones have, in this order.
                "_Static_assert(offsetof(struct rcu_flavor_struct, " + fields[0] + ") == 14 * sizeof(void *), \"\");\n"
                "_Static_assert(offsetof(struct rcu_flavor_struct, " + fields[1] + ") == 15 * sizeof(void *), \"\");\n"), "")


if __name__ == "__main__":
    if not THEIRS:
        sys.exit(77)
    unittest.main()
