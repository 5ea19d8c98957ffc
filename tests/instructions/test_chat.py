#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cost of a broadcast of lab/examples/chat.c for a thread that is alone: with the lock, with the short cut that takes none, and by RCU. The
page of the example has these figures. RCU must cost less than the lock, and more than the short cut: the single-threaded slowdown
of "Exploiting Deferred Destruction", section 6.6. Counted by callgrind; two numbers of calls, so that the first is skipped."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
PAGE = ROOT / "docs/how-to/example-chat.md"
FEWER, MORE = 1000, 2000
WAYS = {"lock": ("read_before", 2), "no lock, alone": ("read_before", 1), "RCU": ("read_after", 1)}  # the function, and the number of threads
PROGRAM = """
#define main main_of_example
#include "chat.c"
#undef main
int main(int argc, char **argv)
{
    const bool before = !strcmp(argv[1], "read_before");
    set_up();
    example_threads = (unsigned)atoi(argv[2]);
    for (long i = 0; i < atol(argv[3]); i++)
        MUST((before ? read_before : read_after)(0) == GUESTS + 1);
    return argc != 4;
}
"""


def instructions(program, function, threads, count):
    done = subprocess.run(["valgrind", "--tool=callgrind", f"--toggle-collect={function}", f"--callgrind-out-file={program}.out",
                           program, function, str(threads), str(count)], capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def cc(*arguments):
    return subprocess.run(["cc", *map(str, arguments)], check=True, capture_output=True, text=True).stdout.strip()


def measure(folder):
    source, program = Path(folder, "alone.c"), Path(folder, "alone")
    source.write_text(PROGRAM)
    cc("-O2", f"-I{ROOT}/lab/examples", f"-I{ROOT}/include", source, "-o", program, BUILD / "libprudence.so", f"-Wl,-rpath,{BUILD}")
    return {way: (instructions(program, *how, MORE) - instructions(program, *how, FEWER)) / (MORE - FEWER) for way, how in WAYS.items()}


def main():
    if os.uname().machine != "x86_64" or not shutil.which("valgrind"):
        print("valgrind on x86-64 is needed")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        found = measure(folder)
    table = [f"| {' | '.join(WAYS)} |", f"| {' | '.join(str(round(found[way])) for way in WAYS)} |"]
    print(*table, sep="\n")
    if not found["no lock, alone"] < found["RCU"] < found["lock"]:
        print("RCU is not between the two")
        return 1
    page = PAGE.read_text().splitlines()
    compiler = f"cc {cc('-dumpfullversion')} {cc('-dumpmachine')}"
    if not any(compiler in line for line in page):
        print(f"{compiler} is another compiler than the page's, figures are not compared")
        return 0
    lock, alone, rcu = (round(found[way]) for way in WAYS)
    said = " ".join(page)
    missing = [line for line in table if line not in page]
    missing += [words for words in (f"alone {rcu - alone} instructions more than the short cut", f"the lock costs {lock - alone} more") if words not in said]
    print(*(f"{PAGE.name} does not have: {words}" for words in missing), sep="\n")
    return 1 if missing else 0


sys.exit(main())
