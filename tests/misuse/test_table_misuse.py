#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Misuse of nodes of tables: each cell of program_table_misuse.c by default and with check=1 ends as docs/reference/misuse.md says.

    test_table_misuse.py        the test
    test_table_misuse.py page   writes the table of the page anew
"""
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / 'docs/reference/misuse.md'
PROGRAM = Path(os.environ.get('PRUDENCE_BUILD_DIR', ROOT / 'build')) / 'bin/misuse_program_table_misuse'
MARK = '<!-- tables -->'
HANGS = 'loses objects, or never ends' # which of the two depends on the other nodes of the chain


def outcome(table, misuse, options):
    names = {name: value for name, value in os.environ.items() if not name.startswith(('LD_', 'PRUDENCE_'))}
    done = subprocess.run([PROGRAM, table, misuse], env=names | {'PRUDENCE_OPTIONS': options}, capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (2, 2)))
    reported = 'prudence: ' in done.stderr
    if done.returncode == -signal.SIGABRT and reported:
        return 'stopped'
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return HANGS
    result = done.stdout.strip()
    return {('refused', True): 'EINVAL, reported', ('refused', False): 'EEXIST', ('harmless', False): 'harmless',
            ('lost', False): HANGS}.get((result, reported), f'{done.returncode}, {result!r}, {done.stderr[:200]!r}')


def table():
    cells = [line.split('\t') for line in subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout.splitlines()]
    rows = [f'| `{kind}` | {misuse} | {outcome(kind, misuse, "check=0")} | {outcome(kind, misuse, "check=1")} |'
            for kind, misuse in cells]
    return '\n'.join([MARK, '', '| table | a node that is in the table is ... | by default | check=1 |', '|---|---|---|---|', *rows, '', MARK])


def main():
    found, page = table(), PAGE.read_text()
    written = re.search(f'{MARK}.*{MARK}', page, re.S)
    if sys.argv[1:] == ['page']:
        PAGE.write_text(page.replace(written[0], found))
        return
    if found != written[0]:
        sys.exit(f'the page says\n{written[0]}\nbut it is\n{found}')


main()
