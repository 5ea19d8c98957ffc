#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# REUSE-IgnoreStart (what follows has such lines in texts of files)
"""The man pages: groff warns of nothing, examples do what they say, and nothing public is skipped.

Without groff that part is skipped, or with CI in the environment a failure.
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
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "tools/release"))
from source import version as version_here  # noqa: E402 (the path comes first)
sys.path.insert(0, str(ROOT / "tools/site"))
import manuals  # noqa: E402
PAGES = sorted((BUILD / "man").iterdir())  # with what tools/site/manuals.py puts into those of docs/man
SCENARIOS = ("endurance", "pairs", "latency", "stall", "recycle", "tree", "destroy", "readers", "malloc", "rcu",
             "variants", "scm", "steps")


def warnings(page):
    """Returns the warnings of groff about the text of a page."""
    return subprocess.run(["groff", "-ww", "-man", "-Kutf8", "-Tutf8", "-z"], input=page, text=True,
                          capture_output=True, check=True).stderr


def source(name):
    """Returns a page with escapes resolved."""
    text = (BUILD / "man" / name).read_text()
    for escape, plain in ((r"\-", "-"), (r"\(aq", "'"), (r"\e", "\\"), (r"\fR", ""), (r"\fI", "")):
        text = text.replace(escape, plain)
    return text


def functions(header):
    """The functions of a header, inline ones too, and macros that take arguments."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    text = re.sub(r"^#(?!define).*$", "", text, flags=re.M)
    declared = set(re.findall(r"PRUDENCE_API[^;{]*?\b((?:prudence|scm)_\w+)\(", text))
    inlined = set(re.findall(r"^(?:static inline|PRUDENCE_INLINE)\b[^;{]*?\b((?:prudence|scm)_\w+)\(", text, flags=re.M))
    macros = set(re.findall(r"#define (prudence_\w+)\(", text))
    return declared | inlined | macros


def options_of(scenario):
    text = subprocess.run([BUILD / "bin/prudence-bench", scenario, "--help"], text=True, check=True,
                          capture_output=True).stdout
    return set(re.findall(r"(--[a-z-]+)", text)) - {"--help", "--usage", "--version"}


class Version(unittest.TestCase):
    def test_each_program_with_a_page_says_it(self):
        version = version_here(mark="-")
        for page in sorted((ROOT / "docs/man").glob("*.1")):
            with self.subTest(page.name):
                done = subprocess.run([BUILD / "bin" / page.stem, "--version"], text=True, capture_output=True)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"{page.stem} {version}\n", ""))
                self.assertIn(version, page.read_text().splitlines()[1])

    def test_each_program_that_measures_says_it(self):
        """The programs print it by programs/common/arguments.c."""
        version, found = version_here(mark="-"), 0
        for program in sorted((BUILD / "bin").glob("prudence-*")):
            if b"argp_parse" in program.read_bytes():
                found += 1
                with self.subTest(program.name):
                    done = subprocess.run([program, "--version"], text=True, capture_output=True)
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"{program.name} {version}\n", ""))
        self.assertGreater(found, 6)


class Filled(unittest.TestCase):
    def test_each_page_was_made(self):
        self.assertEqual([page.name for page in PAGES], sorted(page.name for page in (ROOT / "docs/man").iterdir()))
        self.assertEqual([page.name for page in PAGES if re.search(r'^\.\\" (options|functions|headers|code|help) of', page.read_text(), re.M)], [])

    def test_a_program_that_is_not_there_describes_nothing(self):
        self.assertEqual(manuals.filled('a\n.\\" help of nothing\nb\n', "/"), "a\nb\n")

    def test_help_of_argp_and_of_argparse(self):
        said = (" Time\n  -d, --duration=TICKS       How often\n                             it advances (100)\n      --pin                  Bind\n"
                "\nMandatory or optional arguments to long options\n  -x, --not   one\n")
        self.assertEqual(manuals.of_help(said), [["Time", "-d, --duration=TICKS", "How often it advances (100)"], ["Time", "--pin", "Bind"]])
        said = "usage: a [-h]\n\noptions:\n  -h, --help   show\n  --data {a,b}\n               which\n\nthe machine:\n  --cpus N     CPUs\n\nexamples:\n  -e   f\n"
        self.assertEqual(manuals.of_help(said), [["", "--data {a,b}", "which"], ["the machine", "--cpus N", "CPUs"]])


class Man(unittest.TestCase):
    def test_groff_warns_of_nothing(self):
        if not shutil.which("groff"):
            self.assertFalse(os.environ.get("CI"), "there is no groff")
            self.skipTest("there is no groff")
        for page in PAGES:
            with self.subTest(page.name):
                self.assertEqual(warnings(page.read_text()), "")
        self.assertIn("BF", warnings(".TH X 1\n.BF x\n"), "a mistake is not seen")

    def test_head(self):
        for page in PAGES:
            with self.subTest(page.name):
                head = f'.TH {page.stem.upper()} {page.suffix[1:]} 20..-..-.. "Prudence '
                self.assertRegex(page.read_text(), r'\A\.\\" SPDX-License-Identifier: MIT\n' + head)
                self.assertIn(f"\n.SH NAME\n{page.stem} - ", source(page.name))

    def test_references(self):
        ours = {(page.stem, page.suffix[1:]) for page in PAGES}
        for page in PAGES:
            with self.subTest(page.name):
                see_also = source(page.name).split(".SH SEE ALSO")[1]
                named = set(re.findall(r"^\.BR (\S+) \((\d)\)", see_also, re.M))
                self.assertFalse([one for one in named if re.search("prudence|acdc|scm", one[0])
                                  and one not in ours])
                self.assertNotIn((page.stem, page.suffix[1:]), named)

    def test_every_header_is_named_and_every_function_has_a_page(self):
        """Except macros and full states of lists and polling, liburcu's names, and private ones, which end in _."""
        left_out = re.compile(r"prudence_(h?lists?_.*|urcu_.*|.*_full|read_lock_(first|too_deep)|"
                              r"read_unlock_unbalanced|full_fence|fence_and_count|reader_wake|"
                              r"domain_shared_of|tell_section_ends|\w+_slow|\w+_|"
                              r"slice_yield|qsbr_blocking_(enter|leave)|inline_.*|sequence_.*)$")
        text, pages = source("prudence.7") + source("prudence-scm.7"), {page.stem for page in (BUILD / "man3").iterdir()}
        for header in (ROOT / "include/prudence").glob("*.h"):
            with self.subTest(header.name):
                names = {name for name in functions(header) if not left_out.match(name)}
                self.assertEqual(names - pages, set())
                if header.name not in ("language.h", "platform.h", "sequences.h"):  # the other headers' own
                    self.assertIn(f"<prudence/{header.name}>", text)

    def test_every_scm_function_stands_in_its_synopsis(self):
        synopsis = source("prudence-scm.7").split(".SH DESCRIPTION")[0]
        declared = set(re.findall(r"\b(scm_\w+)\(", synopsis))
        self.assertEqual(declared, functions(ROOT / "include/prudence/scm.h"))
        header = " ".join((ROOT / "include/prudence/scm.h").read_text().split())
        for line in re.findall(r"^\.B ((?:int|void|struct).*;)$", synopsis, re.M):
            self.assertIn(line.rstrip(";"), header)  # inline functions have a body there

    def test_every_option_with_its_default(self):
        page = source("libprudence-malloc.7")
        found = dict(re.findall(r"^\.TP\n\.B (\w+) \((\w+).*\)$", page, re.M))
        table = dict(re.findall(r"^\| `(\w+)` \| (\w+)", (ROOT / "docs/reference/options.md").read_text(), re.M))
        self.assertEqual(found, table)

    def test_options_of_prudence_bench(self):
        page = source("prudence-bench.1")
        for scenario in SCENARIOS:
            with self.subTest(scenario):
                self.assertRegex(page, rf"\n\.(B|SS) (\w+ and )?{scenario}\b")
                self.assertEqual([one for one in options_of(scenario) if one not in page], [])

    def test_examples(self):
        outputs = {"prudence.7": "last hop: 1000000\n", "prudence-scm.7": ""}
        for name, output in outputs.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                code, program = Path(folder, "example.c"), Path(folder, "example")
                code.write_text(source(name).split("\n.EX\n")[1].split(".EE\n")[0])
                subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2",
                                f"-I{ROOT}/include", code, "-o", program, f"-L{BUILD}", "-lprudence",
                                f"-Wl,-rpath,{BUILD}", "-pthread"], check=True)
                done = subprocess.run([program], check=True, capture_output=True, text=True, timeout=60)
                self.assertEqual((done.stdout, done.stderr), (output, ""))


if __name__ == "__main__":
    unittest.main()
