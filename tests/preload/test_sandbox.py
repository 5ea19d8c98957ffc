#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs in a sandbox: a filter of system calls that was installed after the start of the library.

Each phase of program_sandbox.c runs under three kinds of filter: one that kills, where nothing more than the short list
may be called; one that refuses, which may never end the process; and one that shows which calls are made. These are compared with the
table "System calls by phase" of docs/reference/malloc.md.
"""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build"))
PROGRAM = BUILD / "bin" / "preload_program_sandbox"
STATIC = BUILD / "bin" / "preload_program_sandbox_static"
PAGE = ROOT / "docs" / "reference" / "malloc.md"
SKIPPED = 77

# Rows of the table, by their first column: the action of the program, and the options.
PHASES = {
    "allocates and frees": ("alone", ""),
    "the same in threads": ("threads", ""),
    "`malloc_trim`, `mallinfo2`, `malloc_stats`": ("trim", ""),
    "the same after threads have ended": ("trim-threads", ""),
    "reports misuse": ("misuse", ""),
    "forks": ("fork", ""),
    "forks with threads": ("fork-threads", ""),
    "`check=1`": ("alone", "check=1"),
    "`hardened=1`, `guard=1000`": ("threads", "hardened=1,guard=1000"),
    "`profile=1`": ("threads", "profile=1"),
    "`stats=1`, at exit": ("alone", "stats=1"),
    "`profile_file`, at exit": ("alone", "profile=1,profile_file=/dev/null"),
    "reads and defers": ("defer", ""),
    "the same in threads that have read before": ("defer-threads", ""),
    "allocates and frees, after it has deferred": ("defer-before", ""),
    "`prudence_call`": ("callbacks", ""),
    "keeps more than `retain`, with threads, after it has deferred": ("helper", ""),
    "`sandbox=1` was set at run time": ("late-option", ""),
    "the same with threads that defer": ("late-option-defers", ""),
}

# The calls of these phases depend on how much time passes.
BY_TIME = {"defer-threads", "defer-before", "helper"}


def run(role, mode, options="", program=PROGRAM):
    names = {name: value for name, value in os.environ.items()
             if name not in ("LD_PRELOAD", "PRUDENCE_OPTIONS")}
    if options:
        names["PRUDENCE_OPTIONS"] = options
    done = subprocess.run([str(program), role, mode], env=names, text=True, timeout=100,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode == SKIPPED:
        raise unittest.SkipTest("no filters of system calls here")
    return done


def beyond(role, options):
    """The calls beyond the short list, as the program prints them."""
    done = run(role, "log", options)
    line = re.search(r"^beyond:(.*)$", done.stdout, re.M)
    if not line:
        raise AssertionError(f"{role} {options}: {done.returncode} {done.stdout}{done.stderr}")
    return set(line.group(1).split())


def calls(cell):
    """Returns the text of a cell of the table; "none" for none."""
    return set(re.findall(r"`(\w+)`", cell))


def table():
    rows = {}
    section = PAGE.read_text().split("## System calls by phase", 1)[1].split("\n## ", 1)[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3 and not cells[0].startswith("---"):
            for phase in cells[0].split("; "):  # phases with equal cells share a row
                rows[phase] = (calls(cells[1]), calls(cells[2]))
    rows.pop("after its start the process")
    return rows


def joined(*options):
    return ",".join(option for option in options if option)


class Sandbox(unittest.TestCase):
    def test_the_table_has_the_phases(self):
        self.assertEqual(sorted(table()), sorted(PHASES))

    def test_what_is_called_is_in_the_table(self):
        for phase, written in table().items():
            role, options = PHASES[phase]
            for column, more in ((0, ""), (1, "sandbox=1")):
                with self.subTest(phase=phase, more=more):
                    seen = beyond(role, joined(options, more))
                    self.assertEqual(seen - written[column], set(), "not in the table")
                    if role not in BY_TIME:
                        self.assertEqual(bool(seen), bool(written[column]), "nothing is called")

    def test_few_calls_are_enough(self):
        """If the table says none, a filter that kills does not."""
        for phase, written in table().items():
            role, options = PHASES[phase]
            for column, more in ((0, ""), (1, "sandbox=1")):
                if written[column] or role == "misuse":
                    continue
                with self.subTest(phase=phase, more=more):
                    done = run(role, "kill", joined(options, more))
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_refused_call_ends_no_process(self):
        for mode in ("eperm", "enosys"):
            for phase in PHASES:
                role, options = PHASES[phase]
                if role == "misuse":
                    continue
                with self.subTest(phase=phase, mode=mode):
                    self.assertEqual(run(role, mode, options).returncode, 0)

    def test_misuse_is_reported_under_a_filter_that_kills(self):
        for options in ("", "sandbox=1", "check=1"):
            with self.subTest(options=options):
                done = run("misuse", "kill", options)
                self.assertEqual(done.returncode, 134)
                self.assertRegex(done.stderr, "double free|is already free")
                self.assertRegex(done.stderr, r"\[in thread \d+\]")

    def test_statistics_are_printed_under_a_filter_that_kills(self):
        done = run("threads", "kill", "sandbox=1,stats=1")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"allocations +\d{5}")
        self.assertIn("sandbox=1", done.stderr)

    def test_a_profile_that_cannot_be_written_is_told(self):
        done = run("alone", "kill", "sandbox=1,profile=1,profile_file=/tmp/never")
        self.assertEqual(done.returncode, 0)
        self.assertIn("cannot be written to '/tmp/never'", done.stderr)

    def test_options_that_contradict_are_told(self):
        done = run("alone", "kill", "sandbox=1,background=1")
        self.assertEqual(done.returncode, 0)
        self.assertIn("there is no helper with sandbox=1", done.stderr)

    def test_a_static_program(self):
        for role in ("alone", "threads", "fork", "fork-threads"):
            for options in ("", "sandbox=1"):
                with self.subTest(role=role, options=options):
                    self.assertEqual(run(role, "kill", options, STATIC).returncode, 0)
        self.assertEqual(run("defer-threads", "kill", "sandbox=1", STATIC).returncode, 0)

    def test_sandbox_0_makes_all_calls(self):
        """The filter sees all calls: without the option's default a plain program is killed."""
        self.assertNotEqual(run("threads", "kill", "sandbox=0").returncode, 0)


if __name__ == "__main__":
    if "--print" in sys.argv:
        for name, (which, with_options) in PHASES.items():
            cells = [", ".join(f"`{call}`" for call in sorted(beyond(which, joined(with_options, more))))
                     for more in ("", "sandbox=1")]
            print(f"| {name} | {cells[0] or 'none'} | {cells[1] or 'none'} |")
    else:
        unittest.main()
