#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An empty section, inlined into a loop, costs at most 5 % more instructions than one of liburcu's memb flavor. Says the figures, of nested sections as well. Counted by
callgrind; two numbers of sections, so that the first is skipped."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
FEWER, MORE = 1000, 2000
LOOPS = ("ours", "ours_nested", "liburcu", "liburcu_nested")
PROGRAM = """
#define _LGPL_SOURCE /* liburcu's functions are inlined, too */
#define RCU_MEMBARRIER
#include <urcu.h>
#include <prudence/rcu.h>
#include <stdlib.h>
#include <string.h>
#define LOOP(name, enter, leave)                       \\
    __attribute__((noinline)) static void name(long n) \\
    {                                                  \\
        for (long i = 0; i < n; i++) {                 \\
            enter;                                     \\
            __asm__ __volatile__("" ::: "memory");     \\
            leave;                                     \\
        }                                              \\
    }
LOOP(ours, prudence_read_lock(), prudence_read_unlock())
LOOP(ours_nested, prudence_read_lock(); prudence_read_lock(), prudence_read_unlock(); prudence_read_unlock())
LOOP(liburcu, rcu_read_lock(), rcu_read_unlock())
LOOP(liburcu_nested, rcu_read_lock(); rcu_read_lock(), rcu_read_unlock(); rcu_read_unlock())
int main(int argc, char **argv)
{
    long count = atol(argv[2]);

    rcu_register_thread();
    !strcmp(argv[1], "ours") ? ours(count) : !strcmp(argv[1], "liburcu") ? liburcu(count) :
    !strcmp(argv[1], "ours_nested") ? ours_nested(count) : liburcu_nested(count);
    rcu_unregister_thread();
    return argc != 3;
}
"""


def cc(*arguments):
    return subprocess.run(["cc", *map(str, arguments)], check=True, capture_output=True, text=True).stdout.strip()


def instructions(program, loop, count):
    done = subprocess.run(["valgrind", "--tool=callgrind", f"--toggle-collect={loop}", f"--callgrind-out-file={program}.out", program, loop, str(count)],
                          capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def measure(folder):
    source, program = Path(folder, "sections.c"), Path(folder, "sections")
    source.write_text(PROGRAM)
    cc("-O2", f"-I{ROOT}/include", source, "-o", program, BUILD / "libprudence.so", "-lurcu-memb", f"-Wl,-rpath,{BUILD}")
    return {loop: round((instructions(program, loop, MORE) - instructions(program, loop, FEWER)) / (MORE - FEWER)) for loop in LOOPS}


def main():
    if os.uname().machine != "x86_64" or not shutil.which("valgrind"):
        print("valgrind on x86-64 is needed")
        return 77
    if subprocess.run(["cc", "-E", "-"], input="#include <urcu.h>\n", capture_output=True, text=True).returncode:
        print("liburcu-dev is needed")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        found = measure(folder)
    said = f"takes {found['ours']} instructions, with liburcu's memb {found['liburcu']}; two nested ones take {found['ours_nested']} and {found['liburcu_nested']}"
    print(said)
    if found["ours"] > 1.05 * found["liburcu"]:
        print("a section is more than 5 % above liburcu's")
        return 1
    return 0


sys.exit(main())
