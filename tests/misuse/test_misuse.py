#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 12
"""The misuse matrix: every cell of program_misuse.c, what is caught and when.

    test_misuse.py          the test; PRUDENCE_MODELS=deep (make test-long): with check=1 and hardened=1 in every size
    test_misuse.py table    the Markdown tables of docs/reference/misuse.md
    test_misuse.py list     every cell that is not caught, or only after an object was handed out twice

A cell is run once that ends by exit(). If its misuse is caught before that, the other runs would only repeat it, because
they have the same beginning; else it is run once for each of the other ways to go on.
"""

import collections
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", Path(__file__).resolve().parents[2] / "build"))
PROGRAM = BUILD / "bin/misuse_program_misuse"
INLINE = BUILD / "bin/misuse_program_misuse_inline"
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"
SIZES = [64, 512, 4096, 32768]
SOME_SIZES = SIZES if DEEP else SIZES[:1]
MODES = {"by default": "", "check=1": "check=1", "hardened=1": "hardened=1"}

# When the library reported it: the last thing that the process said before it was ended.
CALL, COLLECTION, TRIM, ALLOCATION, END = "call", "collection", "trim", "allocation", "end"
STAGES = {"call": CALL, "collection": COLLECTION, "trim": TRIM, "synchronize": TRIM, "allocation": ALLOCATION,
          "twice": ALLOCATION, "end": END}
CAUGHT = (CALL, COLLECTION, TRIM, ALLOCATION, END)
AT_ONCE = (CALL, COLLECTION) # before the operation was over
SILENT = "silent"
ABSENT = "no second CPU" # everything else is a failure of the test: a crash, a report without the pointer, ...

# Of the cells by default. The last one is what is reached; nothing was promised.
TWICE_BEFORE_TRIM, TWICE_GOING_ON = 40, 400

Outcome = collections.namedtuple("Outcome", "when twice said")
Cell = collections.namedtuple("Cell", "operation kind size")


class Matrix:
    """What `program` has: names, and which cells mean nothing, or leave nothing behind."""

    def __init__(self, program):
        self.program, self.nothing, self.asks = program, {}, set()
        names = collections.defaultdict(list)
        for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines():
            key, *values = line.split("\t")
            if key == "nothing":
                self.nothing[int(values[0]), int(values[1])] = values[2]
            elif key == "asks":
                self.asks.add((int(values[0]), int(values[1])))
            else:
                names[key].append(values[0])
        self.operations, self.kinds, self.runs = names["operation"], names["kind"], names["run"]

    def cells(self, sizes, operations=None):
        return [Cell(operation, kind, size) for operation in operations or range(len(self.operations))
                for kind in range(len(self.kinds)) for size in sizes if (operation, kind) not in self.nothing]

    def asks_only(self, cell):
        return (cell.operation, cell.kind) in self.asks

    def name(self, cell):
        return f"{self.operations[cell.operation]}, {self.kinds[cell.kind]}, {cell.size} bytes"


def judge(status, words, errors):
    """What a process's end, and what it and the library wrote, say of the misuse."""
    stage = words[-1].split()[0] if words else "nothing"
    pointer = next((word.split()[1] for word in words if word.startswith("call ")), "?")
    twice = any(word.startswith("twice ") for word in words)
    said = next((line for line in errors.splitlines() if line.startswith("prudence: ")), "")
    if status == 77:
        when = ABSENT
    elif status == 0:
        when = "does not abort" if said else SILENT
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
    command = [matrix.program, *map(str, cell), str(matrix.runs.index(run))]
    try:
        done = subprocess.run(command, env=names, timeout=60, capture_output=True)
    except subprocess.TimeoutExpired:
        return Outcome("hangs", False, "")
    return judge(done.returncode, done.stdout.decode().splitlines(), done.stderr.decode(errors="replace"))


def run_all(matrix, cells, options=""):
    """A dictionary of the runs' outcomes for each cell."""
    def of_cell(cell):
        first = run_cell(matrix, cell, "exit", options)
        again = first.when not in AT_ONCE + (ABSENT,)
        return {run: run_cell(matrix, cell, run, options) if again and run != "exit" else first for run in matrix.runs}
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(cells, pool.map(of_cell, cells)))


def count(outcomes, run):
    return collections.Counter("twice" if outcome[run].twice else outcome[run].when for outcome in outcomes.values())


# ------------------------------------------------------------------------------------------------ the test

def failures(matrix, outcomes):
    """Whatever the mode: every outcome is one of those that have a name here."""
    for cell, runs in outcomes.items():
        for run, outcome in runs.items():
            if outcome.when not in CAUGHT + (SILENT, ABSENT):
                yield f"{matrix.name(cell)}, {run}: {outcome.when} ({outcome.said})"


def silent_at_end(matrix, outcomes):
    for cell, runs in outcomes.items():
        for run in ("exit", "return"):
            if runs[run].when == SILENT and not matrix.asks_only(cell):
                yield f"{matrix.name(cell)}: silent at {run}"


def twice_in(outcomes, run):
    return sum(runs[run].twice for runs in outcomes.values())


def not_at_once(matrix, outcomes):
    for cell, runs in outcomes.items():
        if runs["exit"].when not in AT_ONCE + (ABSENT,):
            yield f"{matrix.name(cell)}: {runs['exit'].when}"


def test():
    wrong = []
    matrix, inlined = Matrix(PROGRAM), Matrix(INLINE)
    by_cache = [number for number, name in enumerate(inlined.operations) if "cache" in name]
    for title, which, cells in (("by default", matrix, matrix.cells(SIZES)),
                                ("inlined", inlined, inlined.cells(SOME_SIZES, by_cache))):
        outcomes = run_all(which, cells)
        counts = {run: dict(count(outcomes, run)) for run in which.runs}
        print(f"{title}, {len(cells)} cells: {counts}")
        wrong += [f"{title}: {what}" for what in (*failures(which, outcomes), *silent_at_end(which, outcomes))]
        for run, most in (("trim", TWICE_BEFORE_TRIM), ("on", TWICE_GOING_ON)):
            if twice_in(outcomes, run) > most:
                wrong.append(f"{title}, run {run}: {twice_in(outcomes, run)} cells hand an object out twice, "
                             f"more than {most}")
    for options in ("check=1", "hardened=1"):
        outcomes = run_all(matrix, matrix.cells(SOME_SIZES), options)
        print(f"{options}, {len(outcomes)} cells: {dict(count(outcomes, 'exit'))}")
        wrong += [f"{options}: {what}" for what in (*failures(matrix, outcomes), *not_at_once(matrix, outcomes))]
    print("\n".join(wrong))
    return 1 if wrong else 0


# --------------------------------------------------------------------------------------- tables and lists

def merged(texts):
    """One text for all sizes, or each with its size."""
    if len(set(texts)) == 1:
        return texts[0]
    sizes = collections.defaultdict(list)
    for size, text in zip(SIZES, texts):
        sizes[text].append(str(size))
    return "; ".join(f"{text} ({', '.join(of)})" for text, of in sizes.items())


def text_of(matrix, cell, runs):
    end, trim, on = runs["exit"], runs["trim"], runs["on"]
    if end.when in AT_ONCE:
        return end.when
    if matrix.asks_only(cell) and end.when == SILENT:
        return "no"
    text = "trim" if trim.when in CAUGHT and not trim.twice else ""
    text += (" or " if text else "") + "end" if end.when == END else ""
    return (text or "**silent**") + (" ²" if trim.twice else " ¹" if on.twice else "")


def table_of_cells(matrix, outcomes):
    print(f"| pointer | {' | '.join(f'`{name}`' for name in matrix.operations)} |")
    print("|" + "---|" * (len(matrix.operations) + 1))
    for kind, name in enumerate(matrix.kinds):
        row = []
        for operation in range(len(matrix.operations)):
            cells = [Cell(operation, kind, size) for size in SIZES]
            row.append("–" if (operation, kind) in matrix.nothing else
                       merged([text_of(matrix, cell, outcomes[cell]) for cell in cells]))
        print(f"| {name} | {' | '.join(row)} |")


def table_of_counts(matrix, outcomes):
    classes = [*CAUGHT, "twice", SILENT]
    print(f"| mode, run | {' | '.join(classes)} |")
    print("|" + "---|" * (len(classes) + 1))
    for mode, cells in outcomes.items():
        for run in matrix.runs:
            counts = count(cells, run)
            other = sum(counts.values()) - sum(counts[name] for name in classes)
            print(f"| {mode}, {run} | {' | '.join(str(counts[name]) for name in classes)} |" +
                  (f" {other} others" if other else ""))


def table():
    matrix = Matrix(PROGRAM)
    outcomes = {mode: run_all(matrix, matrix.cells(SIZES), options) for mode, options in MODES.items()}
    print(f"{len(matrix.cells(SIZES))} cells\n")
    table_of_counts(matrix, outcomes)
    print()
    table_of_cells(matrix, outcomes["by default"])
    return 0


def list_missed():
    for program in (PROGRAM, INLINE):
        matrix = Matrix(program)
        for mode, options in MODES.items():
            for cell, runs in run_all(matrix, matrix.cells(SIZES), options).items():
                if mode != "by default" and runs["exit"].when not in AT_ONCE or \
                        any(outcome.twice or outcome.when not in CAUGHT for outcome in runs.values()):
                    print(f"{program.name}, {mode}: {matrix.name(cell)}: " + ", ".join(
                        f"{run} {outcome.when}{' TWICE' if outcome.twice else ''}" for run, outcome in runs.items()))
    return 0


if __name__ == "__main__":
    sys.exit({"table": table, "list": list_missed}.get(" ".join(sys.argv[1:]), test)())
