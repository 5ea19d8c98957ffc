# SPDX-License-Identifier: MIT
"""The sources of ranges on pages of results, and of counts of instructions on all pages (CONTRIBUTING.md). test_ranges.py compares them.

A range ("0.6 to 1.0") must begin at the least and end at the largest of the rows that its sentence covers, so no row is worse than the sentence. A
count of instructions must be the one that the tests of tests/instructions hold."""

import dataclasses
import math
from collections.abc import Callable

from page_figures import cell, down, numbers_in, rows, table, text_of

BENCH, PAPER = "docs/results/data/bench", "docs/results/data/evaluate"
RESULTS, EVALUATE, ACDC = "docs/results.md", "docs/results-evaluate.md", "docs/results-acdc.md"
KERNEL, IN_LINUX = "docs/results-kernel.md", "docs/results-kernel-evaluate.md"
PAGES = (RESULTS, EVALUATE, ACDC)  # every range on them is in RANGES or in OTHER


@dataclasses.dataclass(frozen=True)
class Range:
    page: str
    words: str        # with two {}
    read: Callable    # () -> the values of all rows that the sentence covers


def csv(name):
    return f"{BENCH}/{name}.csv"


def by_subject(name, wanted, loads=("",)):
    """The medians of a table of ratios, of the columns that begin with `wanted` and the rows that begin with one of `loads`."""
    titles, *lines = table(f"{PAPER}/{name}.csv", "")
    places = [place for place, title in enumerate(titles) if place and title.startswith(wanted)]
    return [numbers_in(line[place])[0] for line in lines if line[0].startswith(tuple(loads)) for place in places if numbers_in(line[place])]


def faster_than_classic(load, better=lambda ours, classic: classic / ours):
    lines = rows(f"{PAPER}/{load}.csv", "")
    ns = {(row[0], row[1]): numbers_in(row[2])[0] for row in lines}
    return [better(ns["prudence", what], ns["classic", what]) for _, what in ns if ("classic", what) in ns]


# Ways to make a pair: as results.md names them, and as replace.csv does; the most that they may take of the best plain pair.
WAYS = {"shared library": ("prudence", 0.80), "static": ("prudence-static", 0.75), "`<prudence/inline.h>`": ("prudence-inline", 0.50),
        "`prudence_cache_replace`": ("prudence-replace", 0.65), "the same, inlined": ("prudence-replace-inline", 0.50)}
SIZES = {"16 B": "16", "64 B": "64", "512 B": "512", "4,096 B": "4096"}


def by_plain(threads, ways, sizes=tuple(SIZES.values())):
    """Divides by the best plain pair in batches of 1,024: each load that replaces live objects."""
    titles, *lines = table(csv("replace"), "")
    return [numbers_in(line[titles.index(way)])[1] for way in ways for line in lines if line[0] == threads and line[1] in sizes and line[2] != "tight"]


def pairs_cell(way, size):
    """A cell of results.md's table, without and with a reader: the geometric mean and the worst load; bold where the mean is within the target."""
    name, target = WAYS[way]
    found = []
    for threads in ("1 + 0", "1 + 1"):
        values = by_plain(threads, [name], [SIZES[size]])
        mean = math.exp(sum(map(math.log, values)) / len(values))
        text = f"{mean:.2f}"
        found.append((f"**{text}**" if mean <= target else text) + f" [{max(values):.2f}]")
    return "; ".join(found)


def rcu(load, ours, theirs):
    """Theirs by ours, for each row of a load."""
    titles = table(csv("rcu"), "")[0]
    pairs = [[numbers_in(row[titles.index(name)]) for name in (theirs, ours)] for row in rows(csv("rcu"), "", load)]
    return [a[0] / b[0] for a, b in pairs if a and b]


def found_here(claim):
    """The two ends of a cell of the findings."""
    return numbers_in(next(row[3] for row in rows("docs/results/data/evaluate/findings.csv", "") if row[1].startswith(claim)))[:2]


def by_glibc(*names):
    """All quanta of a throughput that is divided by glibc's."""
    return [value for name in names for value in map(float, rows("docs/results/data/acdc/throughput-by-glibc.csv", "", name)[0][1:])]


def acdc(name, column, *start):
    """All numbers in a column of a table of ACDC."""
    titles = table(f"docs/results/data/acdc/{name}.csv", "")[0]
    return [value for row in rows(f"docs/results/data/acdc/{name}.csv", "", *start) for value in numbers_in(row[titles.index(column)])]


def reason(what):
    return acdc("reasons", "figure", what)


def on_each_machine(figure, word, folder="docs/results/data/kernel-evaluate"):
    """In how many caches it is less, or more, on each machine."""
    found = []
    for machine in ("1-cpu", "2-cpus", "4-cpus", "8-cpus-2-nodes"):
        said = rows(f"{folder}/findings-{machine}.csv", "", figure)[0][3]
        found.append(next(int(part.split()[-1]) for part in said.split(" of ")[0].split(", ") if part.split()[0] == word))
    return found


def other_sides(way):
    return [numbers_in(row[2])[0] for row in rows("docs/results/data/kernel-evaluate/other-sides.csv", "") if row[0].endswith(way) and row[2]]


def kernel_row(kernel, name):
    return list(map(float, rows("docs/results/data/kernel/pairs.csv", "", kernel, name)[0][2:]))


def faster_in_linux(column):
    place = table("docs/results/data/kernel-evaluate/latency.csv", "")[0].index(column)
    sides = [[numbers_in(side)[0] for side in row[place].split("→")] for row in rows("docs/results/data/kernel-evaluate/latency.csv", "")]
    return [before / after for before, after in sides]


# Rows of results.md's table of floors, of tight pairs of 64 bytes: (subject, batch) in floors.csv.
FLOORS = {"the loop alone": ("floor-loop", "1"), "an array of the thread": ("floor-array", "1"), "the same through two calls": ("floor-array-called", "1"),
          "one sequence": ("floor-rseq", "1"), "two sequences": ("floor-two-rseqs", "1"), "one that commits two counts": ("floor-packed-rseq", "1"),
          "a pair, inlined": ("prudence-inline", "1"), "`prudence_cache_replace`, inlined": ("prudence-replace-inline", "1"), "a pair": ("prudence", "1"),
          "best plain pair, one at a time": ("plain+tcmalloc", "1"), "best plain pair in batches": ("plain+mimalloc", "1024")}
FLOOR_COLUMNS = ("ns CPU", "÷ plain, one at a time", "÷ plain, batches of 1,024")


def floor_cells(name):
    """The cells of a row: medians, without ranges."""
    subject, batch = FLOORS[name]
    return [f"{cell(csv('floors'), '', ('tight', '64', subject, batch), column):.2f}" for column in FLOOR_COLUMNS]


SHARED, INLINED = ("prudence",), ("prudence-inline", "prudence-replace-inline")

RANGES = [
    Range(RESULTS, "library takes {} to {} of the best plain pair", lambda: by_plain("1 + 0", SHARED)),
    Range(RESULTS, "inlined code {} to {}; beside", lambda: by_plain("1 + 0", INLINED)),
    Range(RESULTS, "beside a reader {} to {} and", lambda: by_plain("1 + 1", SHARED)),
    Range(RESULTS, "and {} to {}. So", lambda: by_plain("1 + 1", INLINED)),
    Range(RESULTS, "A pair takes {} to {} ns, and", lambda: down(csv("pairs"), "", "prudence")),
    Range(RESULTS, "pair of any `call_rcu` {} to {} ns", lambda: down(csv("pairs"), "", "best call_rcu")),
    Range(RESULTS, "ns, {} to {} times as long (pairs.csv)", lambda: down(csv("pairs"), "", "that ÷ ours")),
    Range(RESULTS, "Callbacks run {} to {} times sooner", lambda: [*rcu("call to callback, median µs", "Prudence memb", "liburcu memb"),
                                                               *rcu("call to callback, median µs", "Prudence qsbr", "liburcu qsbr")]),
    Range(RESULTS, "`synchronize` of memb is {} to {} times as fast", lambda: rcu("synchronize", "Prudence memb", "liburcu memb")),
    Range(RESULTS, "that of qsbr {} to {} times", lambda: rcu("synchronize", "Prudence qsbr", "liburcu qsbr")),
    Range(RESULTS, "public programs peak at {} to {} of", lambda: [one for one in down(csv("public"), "", "peak RSS") if one >= 1.25]),

    Range(EVALUATE, "by {} to {} % in the median", lambda: faster_than_classic("tree", lambda ours, classic: 100 * (classic / ours - 1))),
    Range(EVALUATE, "and {} to {} of its memory", lambda: [1 / ratio for ratio in by_subject("peers-memory-store", "rculfhash")]),
    Range(EVALUATE, "Prudence is {} to {} times as fast as `classic`", lambda: found_here("by 3.9 times at least")),
    Range(EVALUATE, "`call_rcu` over any allocator takes {} to {} times as long", lambda: by_subject("peers-time-lists", "urcu", ("pairs",))),
    Range(EVALUATE, "lists it needs {} to {} times the memory", lambda: by_subject("peers-memory-lists", "urcu", ("pairs", "lists"))),
    Range(EVALUATE, "{} to {} times our time in pairs", lambda: by_subject("peers-time-lists", ("ck-epoch+tcmalloc", "ck-epoch+mimalloc"), ("pairs",))),
    Range(EVALUATE, "and {} to {} times in the tree", lambda: by_subject("peers-time-lists", ("ck-epoch+tcmalloc", "ck-epoch+mimalloc"), ("tree",))),

    Range(ACDC, "Prudence's malloc has {} to {} times glibc's", lambda: by_glibc("malloc and free: Prudence")),
    Range(ACDC, "throughput, deferred frees {} to {} times", lambda: by_glibc("frees deferred: Prudence")),
    Range(ACDC, "of seven allocators has {} to {}.", lambda: by_glibc("call_rcu, best of seven allocators")),
    Range(ACDC, "**Short-term memory beside glibc**: {} to {} times", lambda: by_glibc("lazy", "eager")),
    Range(ACDC, "A lazy refresh takes {} to {} cycles", lambda: acdc("operations", "refresh", "lazy")),
    Range(ACDC, "a lazy tick {} to {}. The", lambda: acdc("operations", "tick", "lazy")),
    Range(ACDC, "lazy global tick is {} to {} times as slow", lambda: numbers_in(rows("docs/results/data/acdc/findings-later.csv", "", "6.8", "lazy global tick is faster than tick with large heaps")[0][2])[:2]),
    Range(ACDC, "malloc and free take {} to {} cycles in glibc", lambda: reason("malloc and free of glibc, cycles, with cache misses")),
    Range(ACDC, "and {} to {} in ours", lambda: reason("malloc and free of Prudence, cycles, with cache misses")),
    Range(ACDC, "it has {} to {} (lazy)", lambda: reason("nothing but allocate and refresh, throughput by jemalloc, mimalloc, tcmalloc, lazy")),
    Range(ACDC, "(lazy) and {} to {} (eager) times", lambda: reason("nothing but allocate and refresh, throughput by jemalloc, mimalloc, tcmalloc, eager")),
    Range(ACDC, "tcmalloc, and {} to {} and", lambda: reason("nothing but allocate and refresh, throughput by Prudence's malloc, lazy")),
    Range(ACDC, "and {} to {} times that of Prudence's own", lambda: reason("nothing but allocate and refresh, throughput by Prudence's malloc, eager")),

    Range(KERNEL, "`kfree_rcu` takes {} to {} times the instructions on 6.1", lambda: kernel_row("6.1", "kfree_rcu beside Prudence")),
    Range(KERNEL, "and {} to {} times on 7.3", lambda: kernel_row("7.3", "kfree_rcu beside Prudence")),

    Range(IN_LINUX, "One operation in a thousand is {} to {} times faster", lambda: faster_in_linux("99.9 %")),
    Range(IN_LINUX, "churns are fewer in {} to {} of the 23", lambda: on_each_machine("Figure 8", "less")),
    Range(IN_LINUX, "slab churns in {} to {}**, by", lambda: on_each_machine("Figure 9", "less")),
    Range(IN_LINUX, "Peaks are higher in {} to {} of 23", lambda: on_each_machine("Figure 10", "more")),
    Range(IN_LINUX, "and lower in {} to {}.", lambda: on_each_machine("Figure 10", "less")),
    Range(IN_LINUX, "instead of `call_rcu` is {} to {} % faster", lambda: other_sides("kfree_rcu")),
    Range(IN_LINUX, "slowest of all {} to {} times", lambda: faster_in_linux("slowest")),
]

# Ranges that no kept table has: (page, words, why).
OTHER = [
    (EVALUATE, "the paper has 3.9 to 28.6", "the paper's figure"),
    (ACDC, "618 points, each 5 to 50 times", "a condition"),
    (ACDC, "5 to 50 runs of each", "a condition"),
    (ACDC, "flat from 1 to 12 threads", "a condition"),
    (RESULTS, "among 64 to 16,384 live ones", "a condition"),
    (RESULTS, "From 1 to 8 threads", "a condition"),
    (RESULTS, "pairs of 16 to 512 bytes", "a condition; test_ranges.py reads all its rows"),
    (RESULTS, "peaks of 17 to 59 MB", "seen in runs that were not kept"),
    (RESULTS, "reached 18 to 436 MB", "seen in runs that were not kept"),
    (RESULTS, "liburcu 52 to 64", "seen in runs that were not kept"),
]


# ------------------------------------------------------------------------------------------ counts of instructions

def golden(name, file="fast_paths"):
    """An entry of tests/instructions/FILE.txt."""
    for line in text_of(f"tests/instructions/{file}.txt").splitlines()[1:]:
        path, number = line.rsplit(" ", 1)
        if path.rstrip(":") == name:
            return int(number)
    raise KeyError(f"tests/instructions/{file}.txt has no {name}")


SHORT_TERM, HARDENED = "docs/reference/short-term-memory.md", "docs/reference/hardened.md"
ADR = "docs/adr"

COUNTS = [  # (page, words with {}, the source of each {})
    (SHORT_TERM, "A refresh executes {} instructions", [lambda: golden("scm_refresh", "short_term")]),
    (SHORT_TERM, "A lazy tick executes {} instructions", [lambda: golden("scm_tick", "short_term")]),
    (f"{ADR}/0020-short-term-memory.md", "first refresh {}, further {}, tick {}, allocation in a region {}.",
     [lambda: golden("scm_refresh", "short_term"), lambda: golden("scm_refresh, a further date", "short_term"), lambda: golden("scm_tick", "short_term"),
      lambda: golden("scm_region_alloc", "short_term")]),
    (HARDENED, "A free takes {} instructions, `operator delete` with a size {}", [lambda: golden("free", "malloc_fast_paths"), lambda: golden("_ZdlPvm", "malloc_fast_paths")]),
    (RESULTS, "An inlined pair takes {} instructions, `prudence_cache_replace` inlined {}",
     [lambda: golden("prudence_cache_alloc_inlined") + golden("prudence_cache_free_deferred_inlined"), lambda: golden("prudence_cache_replace_inlined")]),
    (f"{ADR}/0026-every-way-of-linking.md", "Entering a section takes {} instructions", [lambda: golden("prudence_read_lock")]),
]

# Counts that no golden has: (page, words, why).
COUNTED_ELSEWHERE = [
    (RESULTS, "in a loop takes 24 instructions", "tests/instructions/test_read_side.py compares it"),
    ("docs/how-to/example-chat.md", "20 instructions more", "tests/instructions/test_chat.py compares it"),
    (HARDENED, "two instructions of a free", "a difference to a build without the check"),
    (SHORT_TERM, "one instruction is atomic", "a property"),
    ("docs/explanation/testing.md", "between two instructions", "no count"),
    ("docs/explanation/testing.md", "at an instruction", "no count"),
    ("docs/explanation/scaling.md", "an instruction in each sequence", "no count"),
    ("docs/reference/options.md", "6 instructions for an allocation by size, about 30", "the cost of an option that is off by default"),
]
# Pages whose counts are of the kernel and the table.
OF_THE_KERNEL = ("docs/results-kernel", "docs/linux-rfc.md", "docs/how-to/kernel")
