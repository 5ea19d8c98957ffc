#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 15
"""The environment matrix: every cell of tests/environment, whose programs are their own oracle.

    test_environment.py          the test; PRUDENCE_MODELS=deep (make test-long): with every mode
    test_environment.py page     writes the table of docs/reference/environments.md anew, from the cells of the test
    test_environment.py WORD...  only circumstances whose name contains one of these, with every mode

A circumstance that tests/environment/pending names, one a line, is expected to fail in some cell. When no cell of it fails any more, the test fails
until the line is taken out. Guests run environment_static under other kernels (tools/test/guests).
"""

import collections
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/environments.md"
PENDING = Path(__file__).resolve().parent / "pending"
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build"))
sys.path.insert(0, str(ROOT / "tools"))
from preload import ld_preload  # noqa: E402 (the path comes first)
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"
MALLOC, INLINE, STATIC = SUBJECTS = ("malloc", "inline", "static")
LIBRARY, INTERPOSER = BUILD / "libprudence-malloc.so", BUILD / "bin/libenvironment_interpose.so"
PATIENCE, LITTLE = 100, 5  # seconds; a cell takes some hundredths. Less for those that are known to hang
SKIPPED = 77

# The environment of the process: modes of rseq, sizes of pages, and other settings that change paths.
MODES = {
    "": {}, "rseq=0": {"PRUDENCE_OPTIONS": "rseq=0"}, "tunable": {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}, "membarrier=0": {"PRUDENCE_OPTIONS": "membarrier=0"},
    "check=1": {"PRUDENCE_OPTIONS": "check=1"}, "hardened=1": {"PRUDENCE_OPTIONS": "hardened=1"}, "background=1": {"PRUDENCE_OPTIONS": "background=1"},
    "background=0": {"PRUDENCE_OPTIONS": "background=0"}, "16K": {"PRUDENCE_OPTIONS": "page_size=16K"}, "64K": {"PRUDENCE_OPTIONS": "page_size=64K"},
}
ORDINARY = ("", "rseq=0")  # without PRUDENCE_MODELS=deep; system calls are refused in the first only

Cell = collections.namedtuple("Cell", "subject mode circumstance moment")


def interposed():
    """The functions that interpose.c has."""
    text = (Path(__file__).resolve().parent / "interpose.c").read_text()
    return sorted({*re.findall(r"^INTERPOSE\([^,]+, (\w+),", text, re.M), *re.findall(r'^    note\("(\w+)"\);', text, re.M)})


def circumstances(subject):
    """(circumstance, moment), as the program lists them, and those that are made by another library in front."""
    done = subprocess.run([program(subject)], capture_output=True, text=True, check=True)
    yield from (tuple(line.split()) for line in done.stdout.splitlines())
    if subject != STATIC:
        for name in interposed():
            yield from ((f"interposed:{name}", moment) for moment in ("used", "threads"))


def program(subject):
    return str(BUILD / f"bin/environment_{subject}")


def cells(modes):
    for subject in SUBJECTS:
        for circumstance, moment in circumstances(subject):
            for mode in modes:
                if mode == "background=1" and circumstance == "unshare-alone:user":
                    continue  # there is a thread, as asked for
                if modes is ORDINARY and circumstance == "single-step" and sys.argv[1:] != ["page"]:
                    continue  # ten seconds each; make test has api_test_single_step
                if modes is not ORDINARY or mode == "" or not circumstance.startswith(("refused", "interposed")):
                    yield Cell(subject, mode, circumstance, moment)


def run(cell):
    """'ok', 'skipped', or how it ended."""
    kind, _, word = cell.circumstance.partition(":")
    names = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "PRUDENCE_", "GLIBC_"))} | MODES[cell.mode]
    preload = [str(LIBRARY)] if cell.subject == MALLOC else []
    if kind == "interposed":
        preload, names = [str(INTERPOSER), *preload], names | {"ENVIRONMENT_INTERPOSE": word}
    if preload:
        names["LD_PRELOAD"] = ld_preload(*preload)
    command = [program(cell.subject), "plain" if kind == "interposed" else cell.circumstance, cell.moment]
    with subprocess.Popen(command, env=names, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True) as child:
        try:
            errors = child.communicate(timeout=LITTLE if cell.circumstance in pending() else PATIENCE)[1].decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            return "hangs"
    if child.returncode == SKIPPED:
        return "skipped"
    last = errors.strip().splitlines()[-1:] or [""]
    return "ok" if child.returncode == 0 else f"ends with {child.returncode} ({last[0]})"


def run_all(chosen):
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(chosen, pool.map(run, chosen)))


def pending():
    return PENDING.read_text().split()


def judge(outcomes):
    """Prints the faults. Returns True if there are none."""
    failed = {cell: outcome for cell, outcome in outcomes.items() if outcome not in ("ok", "skipped")}
    expected, known = set(pending()), {cell.circumstance for cell in outcomes}
    wrong = [f"{' '.join(filter(None, cell))}: {outcome}" for cell, outcome in failed.items() if cell.circumstance not in expected]
    wrong += [f"{PENDING.name}: {name}: no cell of it fails any more; take the line out" for name in sorted(expected & known)
              if name not in {cell.circumstance for cell in failed}]
    print("\n".join(wrong))
    skipped = sorted({cell.circumstance for cell, outcome in outcomes.items() if outcome == "skipped"})
    if skipped:
        print(f"skipped, because this user or this kernel does not allow them: {' '.join(skipped)}")
    counts = collections.Counter(outcome if outcome in ("ok", "skipped") else "failed" for outcome in outcomes.values())
    print(f"{len(outcomes)} cells: {dict(counts)}, {len(wrong)} of them unexpected")
    return not wrong


# ----------------------------------------------------------------------------------------- the page

def merged(outcomes):
    """Checks the cells of one subject and circumstance."""
    counts = collections.Counter(outcomes)
    if counts["ok"] == len(outcomes):
        return "right"
    if counts["skipped"] == len(outcomes):
        return "skipped"
    good = counts["ok"] + counts["skipped"]
    if good == len(outcomes):
        return f"right ({counts['skipped']} of {len(outcomes)} skipped)"
    return f"**{len(outcomes) - good} of {len(outcomes)} fail**"


def table(outcomes):
    """Circumstances with the same columns share a row, if their names begin or end alike."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for cell, outcome in outcomes.items():
        found[cell.circumstance][cell.subject].append(outcome)
    rows = collections.defaultdict(list)
    for circumstance, subjects in found.items():
        kind, _, word = circumstance.partition(":")
        rows[kind, tuple(merged(subjects[subject]) if subject in subjects else "–" for subject in SUBJECTS)].append(word)
    yield f"| circumstance | | {' | '.join(SUBJECTS)} |"
    yield "|---|---|" + "---|" * len(SUBJECTS)
    kinds = collections.defaultdict(list)  # kinds with equal words and columns share a row
    for (kind, columns), words in rows.items():
        kinds[tuple(filter(None, words)), columns].append(kind)
    for (words, columns), names in kinds.items():
        yield f"| {', '.join(names)} | {', '.join(f'`{word}`' for word in words)} | {' | '.join(columns)} |"


def write_page():
    modes = MODES if DEEP else ORDINARY
    outcomes = run_all(list(cells(modes)))
    lines = [f"{'All modes' if DEEP else 'The modes of `make test`'}, Linux {os.uname().release.split('-')[0]}, {os.uname().machine}: {len(outcomes):,} cells.", "", *table(outcomes)]
    inside = "\n".join(["", *lines, "", ""])
    text, found = re.subn("(?<=<!-- cells -->\n).*?(?=<!-- cells -->\n)", lambda _: inside, PAGE.read_text(), flags=re.S)
    if found != 1:
        print(f"{PAGE}: not one part between two lines <!-- cells -->")
        return 1
    PAGE.write_text(text)
    return 0 if judge(outcomes) else 1


def main(words):
    if words == ["page"]:
        return write_page()
    chosen = [cell for cell in cells(MODES if DEEP or words else ORDINARY) if not words or any(word in cell.circumstance for word in words)]
    if not chosen:
        print("no circumstance has such a name")
        return 2
    return 0 if judge(run_all(chosen)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
