# SPDX-License-Identifier: MIT
"""Where Prudence loses: every figure of the published tables in which a peer, or the baseline, is better, and the page of the worst.

A loss follows the rule of verdict.py: our figure is worse than that of the best peer by more than counts as the same, in all rounds (the worst of the
peer compared with the best of ours, where a table has them), and a row with fewer rounds than decide is none. A zero counts as the smallest number that its
cell can show. TABLES says how each table is read, and NOT_COMPARED why one is not."""

import csv
import itertools
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from .arguments import Parser
from .command import ROOT
from .page import Refused, around_table, markdown_table, write_tables
from .verdict import ROUNDS, SAME

LESS, MORE, HITS = "less", "more", "hits"  # what is better; hits count as misses
SHOWN = 16  # rows of the page

# -------------------------------------------------------------------------------------------------------------- cells

UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "KB": 1e3, "MB": 1e6}
NUMBER = re.compile(r"([+-]?\d[\d,]*(?:\.(\d+))?(?:e-?\d+)?)(?: ?(ns|µs|ms|KB|MB)\b)?")
SPREAD = re.compile(r"\[([^\]]+), ([^\]]+)\]|\(([^)]+) to ([^)]+)\)|(±) (\S+)")


@dataclass(frozen=True)
class Cell:
    low: float
    middle: float
    high: float
    least: float  # that the cell can show


def number(text):
    found = NUMBER.search(text)
    return float(found[1].replace(",", "")) * UNITS.get(found[3], 1), 10.0 ** -len(found[2] or "") * UNITS.get(found[3], 1)


def cell(text, better=LESS):
    """The figure of a cell with its spread, or None if there is none."""
    if not NUMBER.search(text):
        return None
    middle, least = number(text)
    low = high = middle
    if found := SPREAD.search(text):
        ends = [number(found[i])[0] for i in (1, 2, 3, 4) if found[i] and NUMBER.search(found[i])]
        low, high = ends if len(ends) == 2 else (middle - number(found[6])[0], middle + number(found[6])[0]) if found[5] else (middle, middle)
    return Cell(100 - high, 100 - middle, 100 - low, least) if better == HITS else Cell(low, middle, high, least)


def worse_by(ours, peer, better):
    """How many times worse our cell is than the peer's, or 0 if that is no loss."""
    good, bad = (ours, peer) if better == MORE else (peer, ours)
    least = max(good.least, bad.least)
    if bad.low <= good.high * (1 + SAME) or bad.middle - good.middle < 1.5 * least:  # or the last digit may be rounded
        return 0.0
    return max(bad.middle, least) / max(good.middle, least)


# -------------------------------------------------------------------------------- tables: (row, figure, better, ours, {peer: text})

def named(row, keys):
    return ", ".join(f"{key} {row[key]}" if re.fullmatch(r"[\d,.]+", row[key]) else row[key] for key in keys if row[key] not in ("", "–")) or "–"


def directions(figures):
    return figures if isinstance(figures, dict) else dict.fromkeys(figures, LESS)


def by_rows(ours, peers, figures, keys=(), subject="subject"):
    """Each subject has a row; `peers` is a pattern of subjects."""
    def compare(rows):
        for mine in rows:
            if mine[subject] == ours:
                others = [row for row in rows if re.fullmatch(peers, row[subject]) and all(row[key] == mine[key] for key in keys)]
                for figure, better in directions(figures).items():
                    yield named(mine, keys), figure, better, mine[figure], {row[subject]: row[figure] for row in others}, mine
    return compare


def by_columns(ours, peers, figure, keys=("subject",), better=LESS):
    """Each subject has a column; `figure` is a name, or a list of those in a cell."""
    def compare(rows):
        for row in rows:
            for i, name in enumerate(figure if isinstance(figure, tuple) else (figure,)):
                def part(text, i=i):
                    return text if not isinstance(figure, tuple) else (re.split(r" / |[ (),]+", text) + [""] * 3)[i]
                yield named(row, keys), name, better, part(row[ours]), {peer: part(row[peer]) for peer in row if re.fullmatch(peers, peer)}, row
    return compare


def changes(figures, keys=("subject",), peer="the baseline", arrow=" → ", mine=1):
    """A cell has the baseline's figure and ours."""
    def compare(rows):
        for row in rows:
            for figure, better in directions(figures).items():
                sides = row[figure].split(arrow)
                if len(sides) == 2:
                    yield named(row, keys), figure, better, sides[mine], {peer: sides[1 - mine]}, row
    return compare


def ratios(figures, keys, peer, only=lambda row: True):
    """A cell has our figure by the peer's, whose name may follow in brackets or stand in the column `peer`."""
    def compare(rows):
        for row in filter(only, rows):
            for figure in figures:
                said = re.search(r"\(([a-z]\w*)\)", row[figure])
                yield named(row, keys), figure, LESS, row[figure].split(" (")[0], {said[1] if said else row.get(peer, peer): "1.00"}, row
    return compare


def listed(rows):
    """Columns are named after an allocator and a figure; all are by glibc's."""
    for row in rows:
        for figure in ("CPU", "peak", "CPU × peak"):
            peers = {name.partition(", ")[0]: text for name, text in row.items() if name.endswith(f", {figure}") and not name.startswith("prudence")}
            yield row["program"], figure, LESS, row[f"prudence, {figure}"], {"glibc": "1.000", **peers}, row


def kept(rows):
    for row in rows:
        yield row["program"], row["figure"], LESS, row.get("prudence", ""), {name: text for name, text in row.items()
                                                                            if name not in ("program", "figure", "prudence", "rounds")}, row


def adopted(rows):
    """A cell has the median of the rounds' ratios, after by before."""
    for row in rows:
        what, better = row["what"].rstrip(" ↓↑"), MORE if row["what"].endswith("↑") else LESS
        if row["what"].endswith(("↓", "↑")):
            yield row["subject"], what, better, row["after ÷ before"], {"before": "1.00"}, row


def of_sizes(ours, peers, figures, keys):
    """Subjects are a size and a side."""
    compare = by_rows(ours, peers, figures, (*keys, "size"))
    return lambda rows: compare([row | dict(zip(("size", "subject"), row["subject"].split(", "))) for row in rows])


SIZES = tuple(f"{1 << power} B" for power in range(3, 13))
KERNEL_PEERS = "kfree_rcu(-headless)?|call_rcu|headless"
PAIRS_IN_KERNEL = by_rows("Prudence, deferred", "kmalloc and .*rcu.*", SIZES, ("kernel",))
SLOWEST = ("half are faster than", "99 %", "99.9 %", "99.99 %", "slowest")
LOADS = ("ns", "CPU ns", "memory, MB", "waiting, MB")
SERVERS = by_rows("prudence", "liburcu", ("ns", "CPU ns", "median, µs", "99 %, µs", "99 % during updates, µs", "an update, µs", "peak, MB"), ("load",))
MIXES = by_rows("prudence", "classic.*", ("misses, of a million", "object-cache churns, of a million", "slab churns, of a million", "peak slabs"), ("load",))
CACHES = {"hits": HITS, "object-cache churns": LESS, "slab churns": LESS}
HASH, TREE = r"(?!prudence|hash-values|lockfree|subject).*", r"(?!map|routes|subject).*"
STRUCTURES = {"hash": ("prudence", HASH), "map": ("map", TREE), "routes": ("routes", TREE), "routes6": ("routes6", TREE)}
OTHER_MALLOCS = r"persistent\+(?!prudence).*"
OF_STRUCTURES = {"ns": "ns", "cpu": "CPU ns", "memory": "bytes an object", "lookups-tail": "99.9 % of lookups", "updates-tail": "99.9 % of updates"}

TABLES = {f"structures/{family}-{table}": by_columns(*sides, figure) for family, sides in STRUCTURES.items() for table, figure in OF_STRUCTURES.items()} | {
    "acdc/throughput-quantum": by_rows("persistent+prudence", OTHER_MALLOCS, {"MB/s of CPU time": MORE}, ("at",)),
    "acdc/throughput-threads": by_rows("persistent+prudence", OTHER_MALLOCS, {"MB/s of CPU time": MORE}, ("at",)),
    "acdc/original": by_rows("persistent+prudence", OTHER_MALLOCS, {"MB/s of CPU time": MORE, "live, MB": LESS, "resident, MB": LESS}, ("at",)),
    "adopt/adopt": adopted,
    "bench/classic": changes({"ns": LESS, "hits, %": HITS, "object-cache churns": LESS, "slab churns": LESS, "peak slabs": LESS},
                             ("scenario", "writers + readers", "bytes"), "classic", " / ", 0),
    "bench/crowd": by_columns("prudence", r"classic|.*\+mimalloc", ("ns of CPU", "ns of a writer", "latent MB"), ("writers + readers", "bytes")),
    "bench/demand": by_rows("prudence", r"classic|(urcu|ck-).*", ("p50", "p99", "p99.9", "max"), ("readers", "bytes", "batch")),
    "bench/destroy": by_rows("prudence", r"classic|(urcu|ck-).*", ("p50", "p99", "max")),
    "bench/endurance": by_rows("prudence", r"classic|urcu.*", ("ns wall", "ns CPU", "peak, MB"), ("writers + readers",)),
    "bench/floors": ratios(("÷ plain, one at a time", "÷ plain, batches of 1,024"), ("order", "bytes"), "plain",
                           lambda row: row["subject"] == "prudence" and row["batch"] == "1"),
    "bench/huge-pages": by_rows("prudence", "(?!prudence).*", ("CPU", "wall", "peak", "page faults"), ("system",), "allocator"),
    "bench/latency": by_rows("prudence", r"classic|(urcu|ck-).*", ("p50", "p99", "p99.9", "max"), ("readers", "bytes", "batch")),
    "bench/listed": listed,
    "bench/malloc": by_rows("prudence", "(?!prudence).*", ("time", "CPU time", "peak RSS", "time × peak RSS", "page faults", "RSS after a pause"), (),
                            "allocator"),
    "bench/malloc-slower": ratios(("ours by the best peer",), ("pattern",), "mimalloc3"),
    "bench/memory": kept,
    "bench/pairs": ratios(("ours ÷ that",), ("writers + readers", "bytes"), "best plain, batches of 1,024"),
    "bench/public": ratios(("time", "CPU time", "peak RSS"), ("program",), "the best peer"),
    "bench/rcu": lambda rows: itertools.chain(*(by_columns(ours, peers, "ns, or as named", ("load", "workers + readers"))(rows) for ours, peers in (
        ("Prudence memb", "liburcu memb|liburcu mb"), ("Prudence qsbr", "liburcu qsbr")))),
    "bench/readers": by_rows("prudence", "(urcu|ck-).*", ("ns",), ("writers",)),
    "bench/reading": by_rows("prudence", "urcu|ck-.*", ("read", "read with a writer", "pair", "pair with a busy reader", "pair with one that stays",
                                                       "garbage with it, MB")),
    "bench/recycle": by_rows("prudence", "classic|(urcu|ck-).*", ("ns", "peak, MB"), ("sizes",)),
    "bench/replace-by-plain": ratios(("mean", "worst load"), ("pairs", "bytes", "readers"), "the best plain pair"),
    "bench/stall": by_rows("prudence", "urcu.*", ("ns wall", "ns CPU", "peak, MB", "latent peak, MB"), ("stays, ms",)),
    "crates/crates": changes({"CPU ns an operation": LESS, "million operations a second": MORE, "peak MB": LESS, "peak MB with a pinned guard": LESS},
                             ("crate",), "its own"),
    "evaluate/counts": changes(("object-cache churns, of a million", "slab churns, of a million", "peak slabs"), peer="classic"),
    "evaluate/endurance": by_rows("prudence", "(?!prudence).*", LOADS, ("load",)),
    "evaluate/pairs": by_rows("prudence", "(?!prudence).*", LOADS, ("load",)),
    "evaluate/recycle": by_rows("prudence", "(?!prudence).*", LOADS, ("load",)),
    "evaluate/tree": by_rows("prudence", "(?!prudence).*", LOADS, ("load",)),
    "evaluate/store": by_rows("prudence", "(?!prudence).*", ("ns", "CPU ns", "bytes an object"), ("load",)),
    "evaluate/knot": SERVERS, "evaluate/bind": SERVERS, "evaluate/mixes-default": MIXES, "evaluate/mixes-fixed": MIXES,
    "hours/endured": by_rows("after", "before", ("most memory, MB", "at the end, MB"), ("subject",), "side"),
    "kernel/at-once": by_columns("Prudence", KERNEL_PEERS, "instructions", ("kernel, size",)),
    "kernel/endurance": by_rows("Prudence", KERNEL_PEERS, {"updates, M": MORE, "mean memory, MB": LESS, "peak, MB": LESS, "failed allocations": LESS,
                                                           "longest allocation, s": LESS}, ("kernel",)),
    "kernel/latency": of_sizes("prudence", KERNEL_PEERS, SLOWEST, ("Linux", "RCU")),
    "kernel/latency-4-cpus": of_sizes("prudence", KERNEL_PEERS, SLOWEST, ("Linux", "RCU")),
    "kernel/locks": by_columns("Prudence", KERNEL_PEERS, "found held", ("kernel", "size")),
    "kernel/mixes": by_rows("Prudence", KERNEL_PEERS, CACHES | {"peak slabs": LESS}, ("kernel, mix",)),
    "kernel/pairs": PAIRS_IN_KERNEL, "kernel/pairs-short": PAIRS_IN_KERNEL,
    "kernel/remote": by_columns("Prudence", KERNEL_PEERS, "instructions", ("kernel",)),
    "kernel-evaluate/caches": changes(CACHES | {"peak, KB": LESS, "KB two seconds after it": LESS}, ("subject", "on"), "SLUB"),
    "kernel-evaluate/disturbance-instructions": by_columns("Prudence", "SLUB.*", "instructions"),
    "kernel-evaluate/latency": changes(SLOWEST, peer="SLUB, call_rcu"),
    "kernel-evaluate/latency-kfree-rcu": changes(SLOWEST, peer="SLUB, kfree_rcu"),
    "kernel-evaluate/latency-nocbs": changes(SLOWEST, peer="SLUB, callbacks offloaded"),
    "kernel-evaluate/latency-normal": changes(SLOWEST, peer="SLUB, no expedited grace periods"),
    "kernel-evaluate/locks": changes(("nodes' locks are taken", "by another CPU than before", "not at once", "the page allocator's are taken"),
                                     ("subject", "on"), "SLUB"),
    "kernel-evaluate/memory": changes(("peak of all slabs, MB",), ("subject", "on"), "SLUB"),
    "kernel-evaluate/throughput": changes(("instructions a transaction",), peer="SLUB"),
    "kernel-evaluate/wall": changes(("seconds",), peer="SLUB"),
    "kernel-tree/calls": by_columns("Prudence", "SLUB.*", "instructions", ("instructions", "on")),
    "kernel-tree/kfree-rcu": by_rows("Prudence", "SLUB.*", ("instructions of a pair", "peak, KB"), ("CPUs", "freed by", "bytes"), "allocator"),
    "misses/misses": by_rows("prudence.ko", "SLUB", ("hit", "refill", "grow"), ("bytes",), "where"),
    "variants/grace-periods": by_rows("memb", "urcu-.*", ("with no readers", "with 1 reader", *(f"call to callback with {n}" for n in (0, 1, 2, 4, 8)))),
}

NOT_COMPARED = {
    "acdc/(bursts|descriptors|factorial.*|findings|keep-alive|misses|operations|quantum|reasons|threads|trace|units)": "no peers, or the figures of another table",
    "bench/(batches|limit|growth)": "no peers",
    "bench/(replace|targets)": "summed up in another table, or targets",
    "evaluate/(findings.*|losses|long-form|peers-.*)": "verdicts, and summaries of the other tables",
    "examples/.*": "before and after a change of one program",
    "kernel/(conditions|.*findings|mixes-4-cpus|rfc-.*)": "conditions, verdicts, rounds that differ by a factor, and patches for Linux itself",
    "kernel-evaluate/(findings.*|functions|disturbance|other-sides|no-.*|.*-no-.*)": "verdicts, our own sides, and those of SLUB",
    "kernel-tree/caches": "no peers",
    "latent/latent": "other programs without us",
    "misses/by-clock": "no peers",
    "structures/.*goals": "verdicts",
    "variants/(complexity|cost|findings|idle)": "lines of code, verdicts, and costs of which each cell has two",
    "published|losses": "conditions, and the losses themselves",
}


# ------------------------------------------------------------------------------------------------------------- losses

def losses_of(table, comparisons):
    """(losses, {figure: number of comparisons}) of one table."""
    found, counted = [], {}
    for where, figure, better, ours, peers, row in comparisons:
        mine, others = cell(ours, better), {peer: one for peer, text in peers.items() if (one := cell(text, better))}
        if not mine or not others or int(row.get("rounds") or ROUNDS) < ROUNDS:
            continue
        counted[figure] = counted.get(figure, 0) + 1
        best = (max if better == MORE else min)(others, key=lambda peer: others[peer].middle)
        factor = worse_by(mine, others[best], better)
        if factor > 1:
            found.append({"table": table, "row": where, "figure": figure, "ours": ours.strip(), "peer": best, "theirs": peers[best].strip(), "factor": factor})
    return found, counted


def all_losses(data):
    """([loss], {(table, figure): comparisons}); refuses a table that nobody said how to read."""
    losses, counted = [], {}
    for place in sorted(data.rglob("*.csv")):
        name = place.relative_to(data).with_suffix("").as_posix()
        if name not in TABLES:
            if not any(re.fullmatch(pattern, name) for pattern in NOT_COMPARED):
                raise Refused(f"{place}: neither in TABLES nor in NOT_COMPARED of lab/measure/losses.py")
            continue
        with place.open() as file:
            found, numbers = losses_of(name, TABLES[name](list(csv.DictReader(file))))
        losses += found
        counted |= {(name, figure): compared for figure, compared in numbers.items()}
    return sorted(losses, key=lambda loss: -loss["factor"]), counted


def shown(losses, counted):
    """The worst loss of each figure of a table."""
    worst, lost = {}, {}
    for loss in losses:
        key = loss["table"], loss["figure"]
        worst.setdefault(key, loss)
        lost[key] = lost.get(key, 0) + 1
    return [{"table": f"[{table}](results/data/{table}.csv)", "figure": figure, "lost": f"{lost[table, figure]}/{counted[table, figure]}",
             "the worst row": loss["row"], "ours, best peer": f'{middle_of(loss["ours"])}, {middle_of(loss["theirs"])} ({loss["peer"]})',
             "factor": factor_text(loss)} for (table, figure), loss in worst.items()]


def middle_of(text):
    return re.split(r" [\[(±]", text)[0]


def factor_text(loss):
    digits = 2 if loss["factor"] < 10 else 0
    return f'{loss["factor"]:,.{digits}f}'


def write(docs):
    """docs/results/data/losses.csv and the table of docs/results-losses.md. Returns the number of losses."""
    losses, counted = all_losses(docs / "results/data")
    lines = shown(losses, counted)
    page = docs / "results-losses.md"
    before, after = around_table(page, "The worst")
    write_tables(docs / "results/data", {"losses": [loss | {"factor": factor_text(loss)} for loss in losses]})
    page.write_text(before + markdown_table(lines[:SHOWN], "table") + after)
    return len(losses), len(lines)


def main(words, _=None):
    parser = Parser("losses", "Writes DOCS/results-losses.md and DOCS/results/data/losses.csv from all tables in DOCS/results/data.")
    parser.add_argument("--into", type=Path, metavar="DOCS", default=ROOT / "docs", help="the folder docs")
    given = parser.parse_args(words)
    try:
        rows, figures = write(given.into)
    except (Refused, OSError) as why:
        sys.exit(f"losses: {why}")
    print(f"{rows} losses in {figures} figures; the worst {min(figures, SHOWN)} are on the page")
    return 0
