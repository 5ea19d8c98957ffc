#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Misuse of slots, heads, families, epochs and nodes of tables (program_calls.c): the reports by default and with check=1.

    test_calls.py          the test
    test_calls.py page     writes the table of docs/reference/misuse.md anew
"""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/misuse.md"
PROGRAM = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")) / "bin/misuse_program_calls"
MARK = "<!-- calls -->\n"
# By default the memory of a domain that ended may be anything, so these are tried with check=1 alone.
GONE = {"record wanted after the domain's end", "advanced after the domain's end"}
# No report can come for these by default: inlined calls read nothing else, and the callbacks never run.
SILENT = {"released twice by its thread", "names an object after its release", "queued twice"}
HANGS = "loses objects, or never ends" # which of the two depends on the other nodes of the chain


def cases():
    return [line.split("\t") for line in subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout.splitlines()]


def outcome(number, report, options):
    """Returns the program's own words, or "ends" (with a report), "reported", "silent", or any other outcome."""
    done = subprocess.run([PROGRAM, str(number)], capture_output=True, text=True, env={**os.environ, "PRUDENCE_OPTIONS": options},
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (2, 2)))
    said = report in done.stderr
    if done.returncode == -signal.SIGABRT and said:
        return "ends"
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL) or done.stdout == "loses objects\n":
        return HANGS
    if done.returncode == 0:
        return ", ".join([*done.stdout.splitlines(), *(["reported"] if said else [])]) or "silent"
    return f"{done.returncode}: {done.stderr}"


def table():
    rows = ["| | misuse | by default | check=1 |", "|---|---|---|---|"]
    for number, (subject, how, report) in enumerate(cases()):
        default = "–" if how in GONE else outcome(number, report, "")
        rows.append(f"| {subject} | {how} | {default} | {outcome(number, report, 'check=1')} |")
    return "\n".join(rows) + "\n"


def main():
    before, old, after = PAGE.read_text().split(MARK)
    new = table()
    if "page" in sys.argv:
        PAGE.write_text(f"{before}{MARK}\n{new}\n{MARK}{after}")
        return 0
    for row in new.splitlines()[2:]:
        _, _, how, default, checked, _ = (cell.strip() for cell in row.split("|"))
        assert checked in ("ends", "reported") or "node" in how, row
        assert default == "–" if how in GONE else (default == "silent") == (how in SILENT), row
    assert old.strip() == new.strip(), f"the page has another table; test_calls.py page writes it:\n{new}"
    return 0


sys.exit(main())
