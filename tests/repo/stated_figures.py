# SPDX-License-Identifier: MIT
"""Where each number of README.md and CHANGELOG.md comes from (docs/adr/0132). test_figures.py compares them.

A line is (page, words, sources). The words stand in the page once, however its lines are broken; each {} is a number, and has a source:

  measured   a function that reads it out of tables
  said       a file, and words in it that have the same number: of limits, defaults, sizes and conditions, which nobody measures

Versions, dates and the like are known by their form (FORMS) and need no line."""

import dataclasses
from collections.abc import Callable

from page_figures import across, cell, counted, down, rows

FORMS = {
    "a version": r"\b(?:Linux|glibc|gcc|liburcu|jemalloc|mimalloc|tcmalloc|Kit|BIND|Unreleased \(|kernels \(Linux|version)\s*\d[\d.]*(?:(?:,| to| and) \d+\.\d+)*",
    "a date": r"\b\d{4}-\d\d-\d\d\b",
    "a year": r"\b(?:ASPLOS|of) (?:199\d|20[0-3]\d)\b(?! ?(?:%|[A-Za-z]*B\b|bytes|times))",
    "a width or a name": r"\bx86-64\b|\b(?:32|64)-bit\b|\bSipHash-1-3\b",
    "a page of the manual": r"\b[a-z-]+\(\d\)",
    "a licence": r"\bGPL-2\.0\b",
    "a figure of the paper": r"\bFigures? \d+(?: to \d+)?",
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
HARDENED, OPTIONS = "docs/reference/hardened.md", "docs/reference/options.md"
PLAN = "tools/evaluation/plan.py"
CROWD, REPLACE, MALLOC, SLOWER, RCU = (f"{DATA}/bench/{name}.csv" for name in ("crowd", "replace", "malloc", "malloc-slower", "rcu"))
LATENCY, PEAKS, THROUGHPUT, HASTENED = (f"{DATA}/kernel-evaluate/{name}.csv" for name in ("latency", "memory", "throughput", "no-hasten"))


# ------------------------------------------------------------------------------------------- more than one cell

def pair(subject, size, column="ns"):
    return cell("docs/results/data/evaluate/pairs.csv", "", (subject, f"pairs, {size} B"), column)


def pairs_row(words, subject):
    """A row of README's table: three sizes, and the most memory of them."""
    return (README, words, [*(measured(lambda size=size: pair(subject, size)) for size in (64, 512, 4096)),
                            measured(lambda: max(pair(subject, size, "memory, MB") for size in (64, 512, 4096)))])


def best(name):
    """A line of the pairs by the best plain pair: of 16 to 4,096 bytes."""
    return [cell(RESULTS, "Pairs by the best plain pair", (name,), size) for size in ("16 B", "64 B", "512 B", "4,096 B")]


def crowd(subject, number):
    return cell(CROWD, "", ("256 + 256", "512"), subject, number)


def last_slower_size():
    """Up to which size three threads on two CPUs take longer than the best plain pair in every order."""
    last = 0
    for size in ("16", "64", "512", "4096"):
        if not all("slower" in row[4] for row in rows(REPLACE, "", "2 + 1", size)):
            break
        last = int(size)
    return last


OWN = ("the attack of 3.4", "4 threads: make an eventfd")  # loads of our own, not programs


def times_at(column):
    return [theirs / ours for theirs, ours in zip(down(LATENCY, "", column, side=0), down(LATENCY, "", column, side=1))]


def peaks(own, machines):
    """Changes of the peaks of all slabs, in per cent."""
    found = []
    for row in rows(PEAKS, ""):
        if row[0].startswith(OWN) == own and row[1] in machines:
            theirs, ours = (float(side.split()[0]) for side in row[3].split("→"))
            found.append(100 * (ours / theirs - 1))
    return found


MACHINES = ("1 CPU", "2 CPUs", "4 CPUs", "8 CPUs, 2 nodes")


def gains():
    return {row[0]: float(row[2].split()[0]) for row in rows(THROUGHPUT, "") if not row[0].startswith(OWN)}


def programs():
    return [gain for name, gain in gains().items() if not name.startswith("pgbench")]


def verdict(default, figure, pattern):
    return measured(lambda: counted(f"docs/results/data/evaluate/findings-mixes-{'default' if default else 'fixed'}.csv", "", (figure,), "here", pattern))


def qsbr_updates():
    """Times of liburcu's, of two workers, by batch from 256 on."""
    return [cell(RCU, "", (f"update, batches of {batch}", "2 + 0"), "Prudence qsbr") / cell(RCU, "", (f"update, batches of {batch}", "2 + 0"), "liburcu qsbr")
            for batch in ("256", "4,096", "262,144")]


def faults(column, row="all of malloc's interface"):
    return measured(lambda: cell(HARDENED, "What was tried", (row,), column))


def hasten(column, side):
    return measured(lambda: cell(HASTENED, "", ("open_close: filp", "2 CPUs"), column, side=side))


CLASSES = "docs/adr/0040-fast-paths-inlined-into-programs.md"


def large_pairs(state):
    """ns of a pair, of the sizes above 1,024 bytes."""
    return [cell(CLASSES, "Measured", (size,), state) for size in ("1,500", "4,096", "8,192")]


PROFILE = ("docs/adr/0092-a-sampling-profiler.md", "Measured")
RFC = (f"{DATA}/kernel/rfc-pairs.csv", "")


# --------------------------------------------------------------------------------------------------------- README

FIGURES = [
    (README, "pages of {} and {} KB, emulated", [said("docs/how-to/install.md", "4 KB"), said("docs/how-to/install.md", "16 KB")]),
    (README, "pages of {} KB; AArch64 hardware", [said("docs/how-to/install.md", "64 KB")]),
    (README, "{}-core AMD EPYC virtual machine", [said(EVALUATE, "AMD EPYC, 2 CPUs")]),
    (README, "medians of {} short runs", [measured(lambda: counted("docs/results/data/evaluate/findings.csv", "", ("Figure 3", "with callbacks memory grows until it runs out (at the 196th second of 252 GB)"), "here", r"of (\d+) rounds"))]),
    (README, "the clock rate changed by {}", [said(EVALUATE, "the virtual machine's clock rate changed by half between rounds")]),
    (README, "| {} writers | {} B | {} B | {} B |", [said(PLAN, '"pairs", 19 if quick else 180, {"threads": "2"'), said(PLAN, 'SIZES = "64,'),
                                                       said(PLAN, "256,512,1024"), said(PLAN, '2048,4096"')]),
    pairs_row("| **Prudence** | **{}** | **{}** | **{}** | **{} MB** |", "prudence"),
    pairs_row("(`classic`) | {} | {} | {} | {} MB |", "classic"),
    *(pairs_row(f"| `call_rcu` over {name} | {{}} | {{}} | {{}} | {{}} MB |", f"urcu+{name}") for name in ("mimalloc", "tcmalloc", "jemalloc", "glibc")),
    pairs_row("Kit epochs over mimalloc | {} | {} | {} | {} MB |", "ck-epoch+mimalloc"),
    (README, "({} patterns and programs) it takes {} of glibc's time; its time times peak memory is {} of glibc's, mimalloc's {}.",
     [said(RESULTS, "Over 22 patterns and programs"),
      *(measured(lambda name=name, column=column: cell(MALLOC, "", (name,), column))
        for name, column in (("prudence", "time"), ("prudence", "time × peak RSS"), ("mimalloc", "time × peak RSS")))]),
    (README, "one operation in a thousand takes {} to {} times as long", [measured(lambda: min(times_at("99.9 %"))), measured(lambda: max(times_at("99.9 %")))]),
    (README, "A deferred pair costs {} to {} of the best *plain* pair, inlined {} to {}. {} was our target at every size; inlined replacing reaches it, at {} bytes alone.",
     [measured(lambda: min(best("shared library"))), measured(lambda: max(best("shared library"))), measured(lambda: min(best("<prudence/inline.h>"))),
      measured(lambda: max(best("<prudence/inline.h>"))), measured(lambda: cell(RESULTS, "Pairs by the best plain pair", ("the same, inlined",), "target")),
      measured(lambda: [size for size, one in zip((16, 64, 512, 4096), best("the same, inlined")) if one <= 0.5].pop(0))]),
    (README, "a pair of up to {} bytes takes longer", [measured(last_slower_size)]),
    (README, "with {} writers and {} readers on two CPUs a pair of {} bytes takes {} times the wall time of `classic`, within {} MB instead of {}.",
     [said(CROWD, "256 + 256,512"), said(CROWD, "256 + 256,512"), said(CROWD, "256 + 256,512"),
      measured(lambda: crowd("prudence", 1) / crowd("classic", 1)), measured(lambda: crowd("prudence", 2)), measured(lambda: crowd("classic", 2))]),
    (README, "to others: {} times the best peer's time", [measured(lambda: cell(SLOWER, "", ("cache-scratch",), "ours by the best peer"))]),
    (README, "peak up to {} % higher than SLUB's. (On four and eight CPUs they peak {} to {} % lower",
     [measured(lambda: max(peaks(False, MACHINES))), measured(lambda: -max(peaks(True, MACHINES[2:]))), measured(lambda: -min(peaks(True, MACHINES[2:])))]),
    (README, "hardly faster, by {} to {} %; pgbench is {} % slower.",
     [measured(lambda: min(programs())), measured(lambda: max(programs())), measured(lambda: -next(gain for name, gain in gains().items() if name.startswith("pgbench")))]),
    (README, "the same in {} of {} mixes with caches by demand, the default, and fewer in {} of {} with fixed caches of {} and {} objects. Peak slabs are more in {} of the {}.",
     [verdict(True, "Figure 7", r"same in (\d+)"), verdict(True, "Figure 7", r"of (\d+) rows"), verdict(False, "Figure 7", r"more in (\d+)"),
      verdict(False, "Figure 7", r"of (\d+) rows"), said(PLAN, '"cache": "0,64,256"'), said(PLAN, '"cache": "0,64,256"'), verdict(True, "Figure 10", r"more in (\d+)"),
      verdict(True, "Figure 10", r"of (\d+) rows")]),
    (README, "polled after each {} objects", [said("docs/reference/benchmark.md", "the writer polls once in 64 objects")]),
    (README, "in batches of {} and more take up to {} times", [said(RCU, '"update, batches of 256",2 + 0'), measured(lambda: max(qsbr_updates()))]),

    # --------------------------------------------------------------------------------------------------- CHANGELOG

    (CHANGES, "keeps more than {} MB beyond `retain`", [said(OPTIONS, "keeps more than 1 MB beyond `retain`")]),
    (CHANGES, "Systems whose pages have {} or {} KiB", [said("docs/how-to/install.md", "16 KB"), said("docs/how-to/install.md", "64 KB")]),
    (CHANGES, "reserves {} MiB of addresses", [said("docs/how-to/inline.md", "slabs in 64 MiB of addresses of its own")]),
    (CHANGES, "an alternate stack of {} KB", [said("src/runtime/summary.c", "A handler's stack may have 8 KB")]),
    (CHANGES, "It costs {} to {} % of the CPU time of programs that allocate much",
     [measured(lambda: min(down(*PROFILE, "more"))), measured(lambda: max(down(*PROFILE, "more")))]),
    (CHANGES, "more than {} bytes no longer wait", [said(CLASSES, "Above 1,024 bytes the size class took `bsr`")]),
    (CHANGES, "a pair of {} to {} bytes takes {} to {} ns instead of {} to {}.",
     [said(CLASSES, "| 1,500 |"), said(CLASSES, "| 8,192 |"), *(measured(lambda of=of, state=state: of(large_pairs(state))) for state in ("after", "before") for of in (min, max))]),
    (CHANGES, "`prudence_up` is {} while", [said("docs/how-to/watch.md", "`prudence_up` is 0 while")]),
    (CHANGES, "take at most {} more than their size", [said("docs/adr/0010-malloc-for-whole-programs.md", "an object takes at most an eighth more")]),
    (CHANGES, "kernels with pages of {} KB", [said("docs/how-to/install.md", "16 KB")]),
    (CHANGES, "With pages of {} or {} KiB, slabs of aligned objects leave at most {} and {} % over. Before, it was up to {} %.",
     [said("docs/adr/0024-aarch64-and-the-laboratory.md", "at 16 and 64 KiB: at most 1.6 and 3.5 % (8.6 % before), computed")] * 5),
    (CHANGES, "shortcuts over the first {} bits", [said("docs/adr/0070-routes.md", "a hash of the first 31 bits")]),
    (CHANGES, "unless they are {}", [said("include/prudence/ref.h", "0")]),
    (CHANGES, "Blocks up to {} MiB share regions of {} MiB", [said("docs/adr/0009-page-source-for-whole-programs.md", "32 MiB"), said("docs/reference/options.md", "regions of 64 MiB")]),
    (CHANGES, "before a thread's {}st tick, or each {}th after that, or in several epochs of {} ticks",
     [said("docs/adr/0020-short-term-memory.md", "a thread's 21st tick"), *[said("docs/adr/0020-short-term-memory.md", "every 65,536 ticks")] * 2]),
    (CHANGES, "It catches {} of {} faults", [faults("hardened=1"), faults("of")]),
    (CHANGES, "Of {} cells of the", [measured(lambda: cell("docs/reference/misuse.md", "How many", ("hardened=1: exit, return, trim, on",), "call"))]),
    (CHANGES, "{} of {} faults are caught, glibc catches {}.", [faults("by default"), faults("of"), faults("glibc")]),
    (CHANGES, "a CPU on which {} KB were deferred", [said("docs/adr/0110-a-cpu-that-defers-much-hastens-rcu.md", "Much is 64 KB closed on this CPU")]),
    (CHANGES, "peak at {} KB on two CPUs instead of {}, for {} % more instructions", [
        hasten("peak, KB", 1), hasten("peak, KB", 0), measured(lambda: -cell(HASTENED, "", ("open_close: all", "1 CPU, instructions"), "throughput"))]),
    (CHANGES, "takes {} to {} % fewer instructions, built", [measured(lambda: min(across(*RFC, "less"))), measured(lambda: max(across(*RFC, "less")))]),
    (CHANGES, "begin with {} objects a CPU", [said("docs/adr/0101-tidying-on-each-cpu.md", "caches of a CPU begin with 64 objects")]),
    (CHANGES, "`PRUDENCE_INLINE_LAYOUT` is {}. Programs of layout {} go on", [said("include/prudence/sequences.h", "PRUDENCE_INLINE_LAYOUT 3"), said("docs/how-to/inline.md", "the names of layout 2 as well")]),
    (CHANGES, "objects of {} to {} bytes may be a cache line more", [said("docs/adr/0003-latent-caches-and-latent-slabs.md", "from 1,024 to 8,191 bytes")] * 2),
]
