#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 8
"""Every fault of program_faults.cpp, with our malloc preloaded: some are caught by default, more with hardened=1.

    test_faults.py          the test
    test_faults.py table    a Markdown table of all faults and allocators (docs/reference/hardened.md)
"""

import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build"))
sys.path.insert(0, str(ROOT / "tools"))
from preload import ld_preload  # noqa: E402 (the path comes first)
PROGRAM = BUILD / "bin/preload_program_faults"
LIBRARY = BUILD / "libprudence-malloc.so"
CAUGHT, NO_EFFECT, MISSED, ABSENT = "caught", "no effect", "missed", "-"
STATUS = {10: NO_EFFECT, 11: MISSED, 12: ABSENT}

# Faults that hardened=1 catches by chance only, and why.
NOT_CAUGHT = {
    "write 30 bytes behind the end, 300 bytes": "it lies in the next block, whose owner may write there",
    "write after free and reuse, 16 bytes": "the memory is its next owner's, who may write there",
}
# Faults of malloc's interface, in the table of docs/reference/hardened.md.
HARDENED_AT_LEAST, DEFAULT_AT_LEAST = 160, 96


def faults():
    """(number, whether it needs functions of ours, name) of each."""
    lines = subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout.splitlines()
    return [(number, line[0] == "p", line[2:]) for number, line in enumerate(lines)]


def commit(number, preload, options):
    """The outcome of a fault, and the report."""
    names = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "PRUDENCE_"))}
    names |= {"LD_PRELOAD": ld_preload(preload)} if preload else {}
    names |= {"PRUDENCE_OPTIONS": options} if options else {}
    try:
        done = subprocess.run([PROGRAM, str(number)], env=names, timeout=60, capture_output=True)
    except subprocess.TimeoutExpired:
        return MISSED, "hangs"
    errors = done.stderr.decode(errors="replace")
    if done.returncode in (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGTRAP, -signal.SIGILL, -signal.SIGBUS):
        return CAUGHT, errors
    if "harmless_misuse=abort ends" in errors or re.search("end of the process: (double free: )?0x[0-9a-f]+ of cache .* is already ", errors):
        return CAUGHT, errors
    return STATUS.get(done.returncode, f"exit {done.returncode}"), errors


def commit_all(which, preload, options=""):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda fault: commit(fault[0], preload, options), which))


def good(outcomes):
    return sum(outcome in (CAUGHT, NO_EFFECT) for outcome, _ in outcomes)


def first_line(said):
    return next((line for line in said.splitlines() if line.strip()), "nothing")


def test():
    which = faults()
    default, hardened = commit_all(which, LIBRARY), commit_all(which, LIBRARY, "hardened=1")
    wrong = []
    for (_, _, name), (outcome, said) in zip(which, hardened):
        expected = (MISSED, CAUGHT, NO_EFFECT) if name in NOT_CAUGHT else (CAUGHT, NO_EFFECT)
        if outcome not in expected:
            wrong.append(f"{name}: {outcome}, {first_line(said)}")
        elif outcome == CAUGHT and "prudence" not in said:
            wrong.append(f"{name}: dies without a word")
    for (_, _, name), (outcome, _), (before, _) in zip(which, hardened, default):
        if before == CAUGHT and outcome == MISSED:
            wrong.append(f"{name}: caught by default, missed with hardened=1")
    plain = [index for index, fault in enumerate(which) if not fault[1]]
    counts = {name: good([outcomes[index] for index in plain])
              for name, outcomes in (("default", default), ("hardened=1", hardened))}
    print(f"of {len(plain)} faults of malloc's interface: {counts}")
    if counts["hardened=1"] < HARDENED_AT_LEAST or counts["default"] < DEFAULT_AT_LEAST:
        wrong.append(f"too few: {counts}")
    print("\n".join(wrong))
    return 1 if wrong else 0


def scudo():
    found = sorted(Path("/usr/lib").glob("llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-x86_64.so"))
    return found[-1:]


def others():
    """(name, library, options): those that Debian has, where they are installed."""
    folder = Path("/usr/lib/x86_64-linux-gnu")
    yield "glibc", "", ""
    for name, files in (("scudo", scudo()), ("jemalloc", [folder / "libjemalloc.so.2"]),
                        ("mimalloc", [folder / "libmimalloc.so.2.0", folder / "libmimalloc.so.2"]),
                        ("tcmalloc", [folder / "libtcmalloc_minimal.so.4"])):
        present = [file for file in files if file.exists()]
        if present:
            yield name, present[0], ""
    yield "prudence", LIBRARY, ""
    yield "hardened=1", LIBRARY, "hardened=1"


def table():
    which, columns = faults(), list(others())
    outcomes = [commit_all(which, library, options) for _, library, options in columns]
    plain = [index for index, fault in enumerate(which) if not fault[1]]
    print(f"| fault | {' | '.join(name for name, _, _ in columns)} |")
    print("|" + "---|" * (len(columns) + 1))
    for index, (_, _, name) in enumerate(which):
        print(f"| {name} | {' | '.join(column[index][0] for column in outcomes)} |")
    for title, chosen in (("malloc's interface", plain), ("ours", [i for i in range(len(which)) if i not in plain])):
        counts = [good([column[index] for index in chosen]) for column in outcomes]
        print(f"| **caught or without effect, of {len(chosen)} of {title}** | {' | '.join(map(str, counts))} |")
    return 0


sys.exit(table() if sys.argv[1:] == ["table"] else test())
