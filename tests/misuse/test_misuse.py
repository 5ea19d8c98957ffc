#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 20
"""The misuse matrix: every cell of program_misuse.c, what is caught and when.

    test_misuse.py          the test; PRUDENCE_MODELS=deep (make test-long): all sizes, origins and options
    test_misuse.py page     writes the table of docs/reference/misuse.md, and docs/reference/misuse-cells.csv, anew
    test_misuse.py table    the same tables on standard output
    test_misuse.py list     every cell that is not caught, or only after an object was handed out twice

A cell is run once that ends by exit(). If its misuse is caught before that, the other runs would only repeat it, because
they have the same beginning; else it is run once for each of the other ways to go on.
"""

import collections
import csv
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/misuse.md"
CELLS = ROOT / "docs/reference/misuse-cells.csv"
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build"))
PROGRAM = BUILD / "bin/misuse_program_misuse"
INLINE = BUILD / "bin/misuse_program_misuse_inline"
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"
SIZES = [64, 512, 4096, 32768]
SOME_SIZES = SIZES if DEEP else SIZES[:1]
LARGE = 40000 # too large for a cache
# Everything is caught at the call. In a quarantine objects of some cells rest, and others have left the smaller one.
STRICT = ("check=1", "hardened=1", "check=1,guard=1,zero_on_free=1", "quarantine=4K", "quarantine=2M")
STRICT_DEEP = ("quarantine=2M,check=1", "quarantine=2M,guard=1", "quarantine=2M,rseq=0", "quarantine=2M,zero_on_free=1")
# Other ways through the library; in the deep test only.
OPTIONS = ("rseq=0", "reader_mode=free", "decay=0", "background=0", "cache_per_cpu=64K", "scm_collection=eager")

# When the library reported it: the last thing that the process said before it was ended.
CALL, COLLECTION, TRIM, ALLOCATION, END = "call", "collection", "trim", "allocation", "end"
STAGES = {"call": CALL, "collection": COLLECTION, "trim": TRIM, "synchronize": TRIM, "allocation": ALLOCATION,
          "returned": CALL, "twice": ALLOCATION, "end": END}
CAUGHT = (CALL, COLLECTION, TRIM, ALLOCATION, END)
AT_ONCE = (CALL, COLLECTION) # before the operation was over
SILENT = "silent"
RETURNED = "returned" # silent, and the operation returned the object: after that its books are in order
ABSENT = "no second CPU" # everything else is a failure of the test: a crash, a report without the pointer, ...

# The cells by default. The last one is reached without a promise.
RETURNED_MOST, TWICE_BEFORE_TRIM, TWICE_GOING_ON = 4, 40, 640 # those that are RETURNED are among them

Outcome = collections.namedtuple("Outcome", "when twice said")
Cell = collections.namedtuple("Cell", "operation kind size")
PLAIN = 0 # the origin of the objects


class Matrix:
    """Returns the names of `program`, and which cells mean nothing, or leave nothing behind. Objects of one origin."""

    def __init__(self, program, origin=PLAIN):
        self.program, self.origin, self.nothing, self.asks = program, origin, {}, set()
        names = collections.defaultdict(list)
        for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines():
            key, *values = line.split("\t")
            if key == "nothing":
                self.nothing[int(values[0]), int(values[1])] = values[2]
            elif key == "asks":
                self.asks.add((int(values[0]), int(values[1])))
            else:
                names[key].append(values[0])
                names["report"] += values[1:]
        self.operations, self.kinds, self.runs = names["operation"], names["kind"], names["run"]
        self.origins, self.reports = names["origin"], names["report"]

    def cells(self, sizes, operations=None):
        return [Cell(operation, kind, size) for operation in operations or range(len(self.operations))
                for kind in range(len(self.kinds)) for size in sizes if (operation, kind) not in self.nothing]

    def large_cells(self):
        """Cells of operations without a cache; the size of a large block is not checked, and none is of another cache."""
        free = [number for number, name in enumerate(self.operations) if "cache" not in name]
        return [cell for cell in self.cells([LARGE], free) if not self.kinds[cell.kind].startswith("of a")]

    def says_all(self, cell, options, said):
        """Returns whether the report of a call names the operation and the misuse. Inlined calls are all "deferred free"."""
        name = "prudence_free" if self.operations[cell.operation] == "prudence_call" else self.operations[cell.operation]
        rests = self.kinds[cell.kind] == "freed" and options.startswith("quarantine=2M")
        gone = cell.size > 4096 and not rests and "foreign pointer" in said # the memory may go back at once
        return (name in said or "deferred free" in said) and (gone or self.reports[cell.kind] in said)

    def asks_only(self, cell):
        return (cell.operation, cell.kind) in self.asks

    def name(self, cell):
        return f"{self.operations[cell.operation]}, {self.kinds[cell.kind]}, {cell.size} bytes"


def judge(status, words, errors):
    """Returns the verdict about the misuse, from the end and the output of a process."""
    stage = words[-1].split()[0] if words else "nothing"
    pointer = next((word.split()[1] for word in words if word.startswith("call ")), "?")
    twice = any(word.startswith("twice ") for word in words)
    said = next((line for line in errors.splitlines() if line.startswith("prudence: ")), "")
    if status == 77:
        when = ABSENT
    elif status == 0:
        returned = any(word.startswith("returned ") for word in words)
        when = "does not abort" if said else RETURNED if returned else SILENT
    elif status != -signal.SIGABRT:
        when = f"ends with {status}, after {stage!r}"
    elif not said:
        when = "aborts without a word"
    elif pointer not in errors and "'destroyed'" not in errors: # a report of a destroyed cache names the cache
        when = "names another pointer"
    else:
        when = STAGES.get(stage, f"at {stage!r}")
    return Outcome(when, twice, said)


def run_cell(matrix, cell, run, options):
    names = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "PRUDENCE_"))}
    names |= {"PRUDENCE_OPTIONS": options} if options else {}
    command = [matrix.program, *map(str, cell), str(matrix.runs.index(run)), str(matrix.origin)]
    try:
        done = subprocess.run(command, env=names, timeout=60, capture_output=True)
    except subprocess.TimeoutExpired:
        return Outcome("hangs", False, "")
    return judge(done.returncode, done.stdout.decode().splitlines(), done.stderr.decode(errors="replace"))


def run_all(matrix, cells, options="", runs=None):
    """A dictionary of the runs' outcomes for each cell."""
    def of_cell(cell):
        first = run_cell(matrix, cell, "exit", options)
        again = first.when not in AT_ONCE + (ABSENT,)
        return {run: run_cell(matrix, cell, run, options) if again and run != "exit" else first
                for run in runs or matrix.runs}
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(cells, pool.map(of_cell, cells)))


def count(outcomes, run):
    return collections.Counter("twice" if outcome[run].twice else outcome[run].when for outcome in outcomes.values())


# ------------------------------------------------------------------------------------------------ the test

def failures(matrix, outcomes):
    """Whatever the mode: every outcome is one of those that have a name here."""
    for cell, runs in outcomes.items():
        for run, outcome in runs.items():
            if outcome.when not in CAUGHT + (SILENT, RETURNED, ABSENT):
                yield f"{matrix.name(cell)}, {run}: {outcome.when} ({outcome.said})"


def silent_at_end(matrix, outcomes):
    for cell, runs in outcomes.items():
        for run in ("exit", "return"):
            if run in runs and runs[run].when == SILENT and not matrix.asks_only(cell):
                yield f"{matrix.name(cell)}: silent at {run}"


def too_often_returned(outcomes):
    """prudence_cache_replace gave the misused object back, which then looks like any other."""
    for run in ("exit", "return"):
        returned = sum(run in runs and runs[run].when == RETURNED for runs in outcomes.values())
        if returned > RETURNED_MOST:
            yield f"run {run}: {returned} cells give the misused object back and say nothing, more than {RETURNED_MOST}"


def too_often_twice(outcomes):
    for run, most in (("trim", TWICE_BEFORE_TRIM), ("on", TWICE_GOING_ON)):
        twice = sum(run in runs and runs[run].twice for runs in outcomes.values())
        if twice > most:
            yield f"run {run}: {twice} cells hand an object out twice before it is said, more than {most}"


def not_at_once(matrix, options, outcomes):
    for cell, runs in outcomes.items():
        end = runs["exit"]
        if end.when != ABSENT and (end.when != CALL or not matrix.says_all(cell, options, end.said)):
            yield f"{matrix.name(cell)}: {end.when} ({end.said})"


def not_set_up(matrix, outcomes):
    """Kinds whose objects are in their slabs: there a question sees the state."""
    for cell, runs in outcomes.items():
        if matrix.asks_only(cell) and matrix.kinds[cell.kind].endswith("slab") and runs["exit"].when != CALL:
            yield f"{matrix.name(cell)}: the object is not in its slab"


def trials():
    """Returns (title, matrix, cells, options, runs) for the tests."""
    matrix, inlined = Matrix(PROGRAM), Matrix(INLINE)
    by_cache = [number for number, name in enumerate(inlined.operations) if "cache" in name]
    runs = matrix.runs if DEEP else ["exit", "trim", "on"]
    yield "by default", matrix, matrix.cells(SIZES), "", runs
    yield "return", matrix, matrix.cells(SIZES[:1]), "", ["exit", "return"]
    yield "inlined", inlined, inlined.cells(SOME_SIZES, by_cache), "", runs
    for origin, name in enumerate(matrix.origins):
        if origin != PLAIN:
            other = Matrix(PROGRAM, origin)
            yield name, other, other.cells(SOME_SIZES), "", runs if DEEP else ["exit"]
    for options in STRICT + (STRICT_DEEP if DEEP else ()):
        yield options, matrix, matrix.cells(SOME_SIZES) + matrix.large_cells(), options, ["exit"]
    yield "inlined, check=1", inlined, inlined.cells(SOME_SIZES), STRICT[0], ["exit"]
    for options in OPTIONS if DEEP else ():
        yield options, matrix, matrix.cells(SIZES), options, runs


def test():
    wrong = []
    for title, matrix, cells, options, runs in trials():
        outcomes = run_all(matrix, cells, options, runs)
        for run in runs:
            print(f"{title}, {len(cells)} cells, {run}: {dict(count(outcomes, run))}", flush=True)
        wrong += [f"{title}: {what}" for what in (
            *failures(matrix, outcomes), *not_set_up(matrix, outcomes), *silent_at_end(matrix, outcomes), *too_often_returned(outcomes), *too_often_twice(outcomes),
            *(not_at_once(matrix, options, outcomes) if options in STRICT + STRICT_DEEP else ()))]
    print("\n".join(wrong))
    return 1 if wrong else 0


# --------------------------------------------------------------------------------------- tables and lists

def merged(texts):
    """The text of most sizes, and others with their sizes."""
    if len(set(texts)) == 1:
        return texts[0]
    sizes = collections.defaultdict(list)
    for size, text in zip(SIZES, texts):
        sizes[text].append(str(size))
    most = max(sizes, key=lambda text: len(sizes[text]))
    return "; ".join([most, *(f"{text} ({', '.join(of)})" for text, of in sizes.items() if text != most)])


def text_of(matrix, cell, runs):
    end, trim, on = runs["exit"], runs["trim"], runs["on"]
    if end.when in AT_ONCE:
        return end.when
    if matrix.asks_only(cell) and end.when == SILENT:
        return "no"
    found = [name for name, known in (("trim", trim.when in CAUGHT and not trim.twice), ("end", end.when == END)) if known]
    return ("slab" if len(found) == 2 else "".join(found) or f"**{end.when}**") + (" ²" if trim.twice else " ¹" if on.twice else "")


def columns_of_cells(matrix, outcomes):
    """(operations, their column) where operations with equal columns share one."""
    columns = collections.defaultdict(list)
    for operation, name in enumerate(matrix.operations):
        column = []
        for kind in range(len(matrix.kinds)):
            cells = [Cell(operation, kind, size) for size in SIZES]
            column.append("–" if (operation, kind) in matrix.nothing else
                          merged([text_of(matrix, cell, outcomes[cell]) for cell in cells]))
        columns[tuple(column)].append(name.removeprefix("prudence_"))
    return [(names, column) for column, names in columns.items()]


def table_of_cells(matrix, outcomes):
    columns = columns_of_cells(matrix, outcomes)
    yield ["pointer", *(", ".join(names) for names, _ in columns)]
    rows = collections.defaultdict(list)  # kinds of pointers with equal cells share one
    for kind, name in enumerate(matrix.kinds):
        rows[tuple(column[kind] for _, column in columns)].append(name)
    for row, names in rows.items():
        yield ["; ".join(names), *row]


def table_of_counts(matrix, outcomes):
    classes = [*CAUGHT, "twice", RETURNED, SILENT]
    yield f"| options, run | {' | '.join(classes)} |"
    yield "|" + "---|" * (len(classes) + 1)
    for options, cells in outcomes.items():
        silent_by_right = sum(matrix.asks_only(cell) and runs["exit"].when == SILENT for cell, runs in cells.items())
        rows = collections.defaultdict(list)
        for run in matrix.runs:
            counts = count(cells, run)
            row = [f"{counts[name]:,}" for name in classes]
            if silent_by_right:
                row[-1] = f"{counts[SILENT] - silent_by_right:,} and {silent_by_right} questions"
            rows[" | ".join(row)].append(run)
        for row, runs in rows.items():
            yield f"| {options}: {', '.join(runs)} | {row} |"


MARK = "<!-- counts -->\n"


def tables():
    matrix = Matrix(PROGRAM)
    cells = matrix.cells(SIZES)
    outcomes = {options or "by default": run_all(matrix, cells, options) for options in ("", *STRICT[:2])}
    return ([f"Of {len(matrix.operations) * len(matrix.kinds) * len(SIZES):,} cells {len(cells):,} mean something.", "",
             *table_of_counts(matrix, outcomes)], list(table_of_cells(matrix, outcomes["by default"])))


def print_tables():
    counts, cells = tables()
    print("\n".join(counts))
    csv.writer(sys.stdout, lineterminator="\n").writerows(cells)
    return 0


def write_page():
    counts, cells = tables()
    inside = "\n".join(["", *counts, "", ""])
    text, found = re.subn(f"(?<={MARK}).*?(?={MARK})", lambda _: inside, PAGE.read_text(), flags=re.S)
    if found != 1:
        print(f"{PAGE}: not one part between two lines {MARK}")
        return 1
    PAGE.write_text(text)
    with CELLS.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(cells)
    return 0


def list_missed():
    for title, matrix, cells, options, runs in trials():
        for cell, outcomes in run_all(matrix, cells, options, runs).items():
            if any(outcome.twice or outcome.when not in CAUGHT for outcome in outcomes.values()):
                print(f"{title}: {matrix.name(cell)}: " + ", ".join(
                    f"{run} {outcome.when}{' TWICE' if outcome.twice else ''}" for run, outcome in outcomes.items()))
    return 0


if __name__ == "__main__":
    sys.exit({"table": print_tables, "page": write_page, "list": list_missed}.get(" ".join(sys.argv[1:]), test)())
