# SPDX-License-Identifier: MIT
"""The source of each number of README.md and CHANGELOG.md (CONTRIBUTING.md). test_figures.py compares them.

A line is (page, words, sources). The words stand in the page once, however its lines are broken; each {} is a number, and has a source:

  measured   a function that reads it out of tables
  said       a file, and words in it that have the same number: of limits, defaults, sizes and conditions, which are not measured

Versions, dates and the like are known by their form (FORMS) and need no line."""

import dataclasses
from collections.abc import Callable

from page_figures import cell, counted, numbers_in, rows, table

FORMS = {
    "a version": r"\b(?:Linux|glibc|gcc|liburcu|jemalloc|mimalloc|tcmalloc|Kit|BIND|Unreleased \(|kernels \(Linux|version)\s*\d[\d.]*(?:(?:,| to| and) \d+\.\d+)*",
    "a date": r"\b\d{4}-\d\d-\d\d\b",
    "a year": r"\b(?:ASPLOS|of) (?:199\d|20[0-3]\d)\b(?! ?(?:%|[A-Za-z]*B\b|bytes|times))",
    "a width or a name": r"\bx86-64\b|\b(?:32|64)-bit\b",
    "a page of the manual": r"\b[a-z-]+\(\d\)",
    "a licence": r"\bGPL-2\.0\b",
    "a version of ours": r"(?m:^)## \d\.\d+\.\d+(?= \()|\b(?:release|migrate)-\d\.\d+|\b(?:themselves|since) \d\.[\d.]*\d|find_package\(prudence \d\.\d+|PRUDENCE_\d\.\d+",
}


@dataclasses.dataclass(frozen=True)
class Said:
    file: str
    words: str


@dataclasses.dataclass(frozen=True)
class Measured:
    read: Callable  # () -> number


def said(file, words):
    return Said(file, words)


def measured(read):
    return Measured(read)


README, CHANGES = "README.md", "CHANGELOG.md"
RESULTS, EVALUATE, DATA = "docs/results.md", "docs/results-evaluate.md", "docs/results/data"
PLAN = "lab/reproduce/experiments/evaluate/plan.py"
MALLOC, THROUGHPUT = f"{DATA}/bench/malloc.csv", f"{DATA}/kernel-evaluate/throughput.csv"


# ------------------------------------------------------------------------------------------- more than one cell

def pair(subject, size, column="ns"):
    return cell("docs/results/data/evaluate/pairs.csv", "", (subject, f"pairs, {size} B"), column)


def pairs_row(words, subject):
    """A row of README's table: three sizes, and the most memory of them."""
    return (README, words, [*(measured(lambda size=size: pair(subject, size)) for size in (64, 512, 4096)),
                            measured(lambda: max(pair(subject, size, "memory, MB") for size in (64, 512, 4096)))])


def by_plain(threads):
    """Divides by the best plain pair in batches of 1,024: each load that replaces live objects."""
    titles, *lines = table(f"{DATA}/bench/replace.csv", "")
    place = titles.index("prudence")
    return [numbers_in(line[place])[1] for line in lines if line[0] == threads and line[2] != "tight"]


OWN = ("the attack of 3.4", "4 threads: make an eventfd")  # loads of our own, not programs


def gains():
    return {row[0]: float(row[2].split()[0]) for row in rows(THROUGHPUT, "") if not row[0].startswith(OWN)}


def gain(program):
    return next(share for name, share in gains().items() if name.startswith(program))


# --------------------------------------------------------------------------------------------------------- README

FIGURES = [
    (README, "pages of {} and {} KB, emulated", [said("docs/how-to/install.md", "4 KB"), said("docs/how-to/install.md", "16 KB")]),
    (README, "pages of {} KB; AArch64 hardware", [said("docs/how-to/install.md", "64 KB")]),
    (README, "{}-core Intel Xeon virtual machine", [said(EVALUATE, "Intel Xeon, 2 CPUs")]),
    (README, "medians of {} short runs", [measured(lambda: counted("docs/results/data/evaluate/findings.csv", "", ("Figure 3", "with callbacks memory grows until it runs out (at the 196th second of 252 GB)"), "here", r"of (\d+) rounds"))]),
    (README, "| {} writers | {} B | {} B | {} B |", [said(PLAN, '"pairs", 19 if quick else 180, {"threads": "2"'), said(PLAN, 'SIZES = "64,'),
                                                       said(PLAN, "256,512,1024"), said(PLAN, '2048,4096"')]),
    pairs_row("| **Prudence** | **{}** | **{}** | **{}** | **{} MB** |", "prudence"),
    pairs_row("(`classic`) | {} | {} | {} | {} MB |", "classic"),
    *(pairs_row(f"| `call_rcu` over {name} | {{}} | {{}} | {{}} | {{}} MB |", f"urcu+{name}") for name in ("mimalloc", "glibc")),
    pairs_row("Kit epochs over mimalloc | {} | {} | {} | {} MB |", "ck-epoch+mimalloc"),
    (README, "Prudence takes {} of glibc's time in {} patterns and programs",
     [measured(lambda: cell(MALLOC, "", ("prudence",), "time")),
      said(RESULTS, "Over 22 patterns and programs")]),
    (README, "A pair takes {} to {} times the best plain malloc and free in batches, beside a busy reader {} to {} times",
     [measured(lambda threads=threads, end=end: end(by_plain(threads))) for threads in ("1 + 0", "1 + 1") for end in (min, max)]),
    (README, "programs gain at most {} %; pgbench loses {} %, dbench {} %.",
     [measured(lambda: max(gains().values())), *(measured(lambda program=program: -gain(program)) for program in ("pgbench", "dbench"))]),
    (README, "Prudence holds {} times glibc's memory a second after a load has ended; jemalloc holds {} times",
     [measured(lambda name=name: cell(MALLOC, "", (name,), "RSS after a pause")) for name in ("prudence", "jemalloc")]),

    # --------------------------------------------------------------------------------------------------- CHANGELOG

    (CHANGES, "other sizes than {}, {} and {} KiB", [said("docs/how-to/install.md", "4, 16 or 64 KiB")] * 3),
    (CHANGES, "(layout {}; those of layout {} still run)", [said("include/prudence/sequences.h", "PRUDENCE_INLINE_LAYOUT 3"), said("docs/adr/0040-fast-paths-inlined-into-programs.md", "Layout 2 (before 0.1)")]),
]
