# SPDX-License-Identifier: MIT
"""The summary of lab/run/all in Markdown: each target, whether it is reached, and its numbers; and each table as DIRECTORY/summary/TABLE.csv.

Reads DIRECTORY/*.json as lab/run/all leaves them. A part that was not measured is skipped."""

import json

from .bench import by_plain
from .malloc import tables as malloc_tables
from .malloc.page import COLUMNS as MALLOC_FIGURES
from .page import Refused, busy_warning, markdown_table, write_tables
from .pictures import MEGA
from .verdict import ROUNDS, quantity

ENDURANCE_BOUND = 16 << 20  # bytes beyond the live set, while threads <= CPUs
PLAIN_PEERS = {"plain+glibc", "plain+jemalloc", "plain+mimalloc", "plain+tcmalloc"}
NO_MORE_THREADS_THAN_CPUS = [(1, 0), (2, 0), (1, 1)]  # (writers, readers) on the 2-CPU machine


class Results:
    """The rows of all parts, found by the values that they must match."""

    def __init__(self, folder):
        documents = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
        self.parts = {name: document for name, document in documents.items() if "rows" in document and "host" in document}

    def rows(self, part, **wanted):
        return [row for row in self.all_rows(part) if "ns_per_pair_wall" in row and all(row.get(key) == value for key, value in wanted.items())]

    def row(self, part, **wanted):
        return next(iter(self.rows(part, **wanted)), None)

    def fewest_rounds(self, part):
        counts = [len(row.get("repeats") or ()) or row.get("rounds") for row in self.all_rows(part)]
        return min(filter(None, counts), default=0)

    def all_rows(self, part):
        """Also those of other programs, and those that failed."""
        return self.parts.get(part, {"rows": []})["rows"]

    def sizes(self, part):
        return sorted({row["size"] for row in self.rows(part)})


class Summary:
    """Targets met, of how many, and tables. With fewer than ROUNDS rounds in any row of a part none of its targets is decided."""

    def __init__(self, results):
        self.results, self.verdicts, self.tables = results, [], []

    def add(self, part, target, found):
        """`found`: of each row, whether it reaches the target."""
        missed, rounds = len(found) - sum(found), self.results.fewest_rounds(part)
        if found:
            verdict = f"**missed** in {missed} of {len(found)}" if missed else "**reached**"
            self.verdicts.append({"target": target, "part": part, "verdict": verdict if rounds >= ROUNDS else "undecided", "rounds at least": rounds})

    def table(self, name, title, cells, words=""):
        """A section of the page, and NAME.csv. Without rows, nothing."""
        if cells:
            self.tables.append((name, f"## {title}\n\n" + (words and words + "\n\n"), cells))


def without_marks(cells):
    """For a CSV, without Markdown's."""
    return [{name.replace("`", ""): str(cell).replace("**", "").replace("`", "") for name, cell in row.items()} for row in cells]


def ns(row):
    return f'{row["ns_per_pair_wall"]:.2f}'


def mb(key):
    return lambda row: f"{row[key] / MEGA:.1f}"


def us(key):
    return lambda row: f"{row[key] / 1e3:.1f}"


COLUMNS = {  # of rows of prudence-bench; others are the row's own figures
    "writers + readers": lambda row: f'{row["threads"]} + {row["readers"]}', "writers": lambda row: row["threads"], "bytes": lambda row: row["size"],
    "mode": lambda row: row.get("reader_mode", "–"), "stays, ms": lambda row: row["stay_ms"],
    "sizes": lambda row: "16, mixed" if row.get("mixed") else row["size"], "ns": ns, "ns wall": ns, "ns CPU": lambda row: f'{row["ns_per_pair_cpu"]:.2f}',
    "limit, MB": mb("latent_limit"), "peak, MB": mb("peak_rss_bytes"), "latent peak, MB": mb("latent_peak_bytes"),
    "growth in the second half, MB": mb("rss_growth_bytes"), "out of memory": lambda row: "yes" if row["out_of_memory"] else "no",
}


def cells(row, *columns):
    return {name: COLUMNS[name](row) if name in COLUMNS else row[name] for name in columns}


def fastest(rows):
    return min(rows, key=lambda row: row["ns_per_pair_wall"], default=None)


def named(row):
    return f'{row["subject"]} {ns(row)}'


def where_of(row, *keys):
    return {key: row[key] for key in keys}


def is_few(row):
    return (row["threads"], row["readers"]) in NO_MORE_THREADS_THAN_CPUS


def pairs(results, summary):
    lines, half, even, twenty = [], [], [], []
    for threads, readers in NO_MORE_THREADS_THAN_CPUS:
        for size in results.sizes("pairs"):
            where = {"size": size, "threads": threads, "readers": readers}
            ours = [results.row("pairs", subject=name, **where) for name in ("prudence", "prudence-fenced", "prudence-free")]
            plain, single = (fastest(row for row in results.rows(part, **where) if row["subject"] in PLAIN_PEERS) for part in ("batches", "pairs"))
            call_rcu = fastest(row for row in results.rows("pairs", **where) if row["subject"].startswith("urcu"))
            if not all([*ours, plain, single, call_rcu]):
                continue
            adaptive, fenced, free = (row["ns_per_pair_wall"] for row in ours)
            floor, factor = plain["ns_per_pair_wall"], call_rcu["ns_per_pair_wall"] / adaptive
            half += [adaptive <= floor / 2, fenced <= floor / 2]
            even.append(free <= floor)
            twenty.append(factor >= 20)
            lines.append(cells(ours[0], "writers + readers", "bytes") | dict(zip(("prudence", "fenced", "fence-free"), map(ns, ours))) | {
                "best plain, batches of 1,024": named(plain), "ours ÷ that": f"{adaptive / floor:.2f}×", "best plain, one at a time": named(single),
                "best `call_rcu`": named(call_rcu), "that ÷ ours": f"{factor:.0f}×"})
    summary.add("pairs", "pair: adaptive and fenced at most half of the best plain pair in batches", half)
    summary.add("pairs", "pair: fence-free no slower than the best plain pair in batches", even)
    summary.add("pairs", "pair: 20× faster than every `call_rcu` subject", twenty)
    summary.table("pairs", "Allocate/defer pairs, ns", lines)


def floors(results, summary):
    """Shows our pair between the least cost of a pair and the plain pairs, in one run."""
    lines = [cells(row, "order", "bytes", "subject", "batch", "ns CPU") |
             {"÷ plain, one at a time": by_plain(row, "single"), "÷ plain, batches of 1,024": by_plain(row, "batched"), "rounds": row["rounds"]}
             for row in results.rows("floors")]
    summary.table("floors", "Floors, ours and plain pairs, ns of CPU", lines, "Ratios are of CPU time, with the range over the rounds.")


def batches(results, summary):
    rows = [row for row in results.rows("batches") if row["subject"].startswith("prudence") and is_few(row)]
    summary.table("batches", "Ours in batches of 1,024, ns per pair", [cells(row, "writers + readers", "bytes", "subject", "ns") for row in rows])


# The most that a pair may take, by the best plain pair in batches of 1,024.
REPLACEMENT_TARGETS = {"prudence": 0.80, "prudence-static": 0.75, "prudence-inline": 0.50, "prudence-replace": 0.65, "prudence-replace-inline": 0.50}
CONDITIONS = ("threads", "readers", "size", "order", "live")


def replacement(results, summary):
    """Each way of calling us, by the best plain pair of the same conditions, measured with it."""
    rows = results.rows("replace")
    ways = list(dict.fromkeys(row["subject"] for row in rows if not row["subject"].startswith(("plain+", "floor-"))))
    met, lines, groups = {way: [] for way in ways}, [], {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in CONDITIONS), []).append(row)
    for here in groups.values():
        batched, single = (fastest(row for row in here if row["subject"] in PLAIN_PEERS and row["batch"] == batch) for batch in (1024, 1))
        ours = {row["subject"]: row for row in here if row["batch"] == 1}
        if batched and single:
            lines.append(cells(here[0], "writers + readers", "bytes", "order") | {"live": here[0]["live"] or "–"} |
                         {way: replacement_cell(way, ours.get(way), batched, met) for way in ways} |
                         {"best plain, batches of 1,024": named(batched), "best plain, one at a time": named(single)})
    for way, target in REPLACEMENT_TARGETS.items():
        summary.add("replace", f"pair of `{way}` at most {target:.2f} of the best plain pair in batches, in order and at random", met.get(way, []))
    targets = ", ".join(f"{way} {most:.2f}" for way, most in REPLACEMENT_TARGETS.items())
    summary.table("replace", "Pairs by the best plain pair in batches of 1,024", lines,
                  "Our cells: ns, and how much of the best plain pair in batches of 1,024 that is, with the same size, order, live objects, writers and "
                  f"readers in the same interleaved run; *slower* where it is more. **Bold**: more than its target ({targets}).")


def replacement_cell(way, row, plain, met):
    if not row:
        return "–"
    ratio = row["ns_per_pair_wall"] / plain["ns_per_pair_wall"]
    good = way not in REPLACEMENT_TARGETS or ratio <= REPLACEMENT_TARGETS[way]
    met[way].append(good)
    cell = f"{ns(row)} ({ratio:.2f})" + (" slower" if ratio > 1 else "")
    return cell if good else f"**{cell}**"


MOST_BY_PLACE = 1.10  # the slowest place of the code by the fastest


def alignment(results, summary):
    """Writes the cost of a pair with the code in eight places."""
    rows = results.all_rows("alignment")
    summary.add("alignment", "pair: the code's place makes no more than a tenth", [row["spread"] <= MOST_BY_PLACE for row in rows])
    summary.table("alignment", "Pairs with the code in eight places, 16 bytes apart, ns", [
        {"loop": row["loop"]} | {name: f"{row[key]:.2f}" for name, key in (("fastest", "ns_min"), ("slowest", "ns_max"), ("ratio", "spread"))}
        for row in rows])


def growth(results, summary):
    """Writes a row for each curve of growth, with its slope on log axes."""
    def number(value):
        return "–" if value is None else f"{value:,.2f}"

    rows = results.all_rows("growth")
    summary.add("growth", "cost as work grows: no curve is above linear", [not row["above_linear"] for row in rows])
    summary.table("growth", "Growth", [{
        "subject": row["what"], "along": row["axis_text"], "from": f'{row["x"][0]:,}', "to": f'{row["x"][-1]:,}', "first": quantity(row["y"][0], row["unit"]),
        "last": quantity(row["y"][-1], row["unit"]), "fit": row["curve"], "slope": number(row["slope"]), "knee": f'{row["knee"]:,}' if row["knee"] else "–",
        "slope before": number(row["before"]), "slope after": number(row["after"]), "above linear": "yes" if row["above_linear"] else "no",
        "rounds": row["rounds"]} for row in rows], "Slopes are on log axes: 0 is constant, 1 proportional. The curves are drawn in growth.html.")


def limit(results, summary):
    rows = results.rows("limit")
    summary.add("limit", "2 writers + 1, 2, 4 readers: bytes in flight within `latent_limit`", [row["latent_peak_bytes"] <= row["latent_limit"] for row in rows])
    summary.table("limit", "Throughput against `latent_limit`",
                  [cells(row, "readers", "bytes", "limit, MB", "latent peak, MB", "ns wall", "ns CPU") for row in rows])


def crowd(results, summary):
    """More threads than CPUs: CPU time against plain queues, and bytes within their limit."""
    lines, fast, within = [], [], []
    for ours in results.rows("crowd", subject="prudence"):
        found = {row["subject"]: row for row in (ours, *results.rows("crowd", **where_of(ours, "size", "threads", "readers")))}
        fast += [ours["ns_per_pair_cpu"] <= row["ns_per_pair_cpu"] for row in found.values() if row is not ours]
        within.append(ours["totals"]["bytes_latent_peak"] <= ceiling_of(ours))
        lines.append(cells(ours, "writers + readers", "bytes") | {name: crowd_cell(row) for name, row in found.items()})
    summary.add("crowd", "more threads than CPUs: CPU time at or below `classic`'s and `call_rcu`'s", fast)
    summary.add("crowd", "more threads than CPUs: bytes within `latent_ceiling`", within)
    summary.table("crowd", "More threads than CPUs", lines, "Each cell: ns of CPU a pair (wall time of a writer), latent MB.")


def ceiling_of(row):
    """Results of before 2026-11-27 have no ceiling."""
    return row["totals"].get("latent_ceiling", row["totals"]["latent_limit"])


def crowd_cell(row):
    return f'{row["ns_per_pair_cpu"]:.0f} ({row["ns_per_pair_wall"]:.0f}), {row["latent_peak_bytes"] / MEGA:.0f}'


def of_counter(key, scale, digits):
    """A counter by allocations."""
    return lambda row: f'{scale * row["counters"][key] / max(1, row["counters"]["allocations"]):.{digits}f}'


CLASSIC = {"ns": ns, "hits, %": of_counter("hits", 100, 2), "object-cache churns": of_counter("object_cache_churns", 1e6, 1),
           "slab churns": of_counter("slab_churns", 1e6, 1), "peak slabs": lambda row: row["counters"]["slabs_peak"],
           "f_t": lambda row: f'{row["counters"]["total_fragmentation"]:.2f}' if row["counters"]["objects_live"] else "–"}


def classic(results, summary):
    found = [(part, results.row(part, subject="prudence", **where_of(theirs, "size", "threads", "readers")), theirs)
             for part in ("pairs", "endurance") for theirs in results.rows(part, subject="classic")]
    found = [one for one in found if one[1]]
    for part in ("pairs", "endurance"):
        summary.add(part, "faster than `classic` at every size", [ours["ns_per_pair_wall"] < theirs["ns_per_pair_wall"] for one, ours, theirs in found if one == part])
    summary.table("classic", "Prudence against `classic` (the paper's Figures 6 to 11)", [
        {"scenario": part} | cells(ours, "writers + readers", "bytes") | {name: f"{of(ours)} / {of(theirs)}" for name, of in CLASSIC.items()}
        for part, ours, theirs in found], "Each cell: prudence / classic. Churns are per million allocations.")


def growth_after_first_second(row):
    """Returns the largest rise of memory above its value in the first second, of all runs."""
    rises = []
    for run in row["repeats"]:
        taken = [(ms, resident) for ms, resident, *_ in run.get("samples", [])]
        first = max((resident for ms, resident in taken if ms <= 1000), default=0)
        rises += [resident - first for ms, resident in taken if ms > 1000]
    return max(rises, default=0)


def endurance(results, summary):
    lines, bound, flat = [], [], []
    for row in results.rows("endurance"):
        beyond, rise = row["peak_rss_bytes"] - row["baseline_rss_bytes"] - row["length"] * row["size"] * row["threads"], growth_after_first_second(row)
        if row["subject"] == "prudence":
            bound.append(beyond <= (ENDURANCE_BOUND if is_few(row) else ceiling_of(row)))
            flat.append(rise < 1 << 20)
        lines.append(cells(row, "writers + readers", "subject", "ns wall", "ns CPU", "peak, MB") |
                     {"beyond live, MB": f"{beyond / MEGA:.1f}", "rise after 1 s, MB": f"{rise / MEGA:.1f}"} | cells(row, "latent peak, MB", "out of memory"))
    summary.add("endurance", "endurance: under 16 MB beyond the live set while threads ≤ CPUs, within `latent_limit` beyond", bound)
    summary.add("endurance", "endurance: flat after the first second (rises less than 1 MiB in any run)", flat)
    summary.table("endurance", "Endurance", lines)


def latency(results, summary):
    for part, title in (("latency", "in a storm"), ("demand", "wanted back at once")):
        lines, soon = [], []
        for row in results.rows(part):
            took = {name: row["latency_ns"].get(name.replace(".", "_"), float("inf")) / 1e3 for name in ("p50", "p99", "p99.9", "max")}
            if row["subject"] == "prudence" and row["readers"]:
                soon.append(took["p50"] < 25 and took["p99"] < 200)
            lines.append(cells(row, "readers", "bytes", "batch", "subject") |
                         {name: f"{value:.1f}" if value < float("inf") else "never" for name, value in took.items()})
        summary.add(part, f"free-to-reuse with a busy reader, {title}: p50 < 25 µs, p99 < 200 µs", soon)
        summary.table(part, f"From retire to reuse, {title}, µs", lines)


def readers(results, summary):
    sides = [[results.row("readers", subject=name, threads=writers) for name in names] for writers in (0, 1)
             for names in (("prudence-free", "urcu+glibc"), ("prudence-fenced", "urcu-mb+glibc"))]
    summary.add("readers", "reader lock + unlock: fence-free no slower than liburcu memb, fenced than mb",
                [ours["ns_per_pair_wall"] <= theirs["ns_per_pair_wall"] for ours, theirs in sides if ours and theirs])
    summary.table("readers", "Reader lock + unlock, ns", [cells(row, "writers", "subject", "mode", "ns") for row in results.rows("readers")])


def stall(results, summary):
    summary.add("stall", "a reader that stays 100 ms: at or under `latent_limit`", [
        row["latent_peak_bytes"] <= row["totals"]["latent_limit"] for row in results.rows("stall", subject="prudence", stay_ms=100)])
    summary.table("stall", "A reader that stays", [cells(row, "stays, ms", "subject", "ns wall", "ns CPU", "peak, MB", "latent peak, MB")
                                                   for row in results.rows("stall")])


def reading(results, summary):
    """Each way to read: sections, epochs, names of single objects."""
    def ns_of(part, family, **wanted):
        row = next((row for row in results.rows(part, **wanted) if row["subject"].partition("+")[0] == family), None)
        return f'{row["ns_per_pair_cpu"]:.2f}' if row else "–"

    lines = []
    for pair in results.rows("reading", readers=0):
        subject, _, allocator = pair["subject"].partition("+")
        stays = results.row("stall", subject=pair["subject"], stay_ms=100)
        lines.append({"subject": subject, "malloc": allocator, "read": ns_of("readers", subject, threads=0),
                      "read with a writer": ns_of("readers", subject, threads=1), "pair": ns_of("reading", subject, readers=0),
                      "pair with a busy reader": ns_of("reading", subject, readers=1),
                      "pair with one that stays": f'{stays["ns_per_pair_cpu"]:.2f}' if stays else "–",
                      "garbage with it, MB": mb("latent_peak_bytes")(stays) if stays else "–"})
    summary.table("reading", "Ways to read, ns of CPU", lines, "A reader that stays is inside, or names one object, for 100 ms at a time.")


def recycle(results, summary):
    summary.table("recycle", "Retire on one CPU, allocate on another", [cells(row, "subject", "sizes", "ns", "peak, MB", "growth in the second half, MB")
                                                                       for row in results.rows("recycle") + results.rows("mixed")])


def destroy(results, summary):
    summary.table("destroy", "Destroy a cache while another is busy, µs", [
        {"subject": row["subject"]} | {key: f'{row["latency_ns"].get(key, 0) / 1e3:.1f}' for key in ("p50", "p99", "max")} |
        {"destroyed": row["latency_ns"]["count"]} for row in results.rows("destroy")])


def variant_rows(results, part, **wanted):
    return [row for row in results.all_rows(part) if "variant" in row and all(row[key] == value for key, value in wanted.items())]


def ahead_of_liburcu(rows, key, better_by=1):
    """Says of each of our rows whether it reaches the best of liburcu's under the same load."""
    found = []
    for row in rows:
        peers = [peer[key] for peer in rows if peer["variant"].startswith("urcu") and peer[key]
                 and all(peer[same] == row[same] for same in ("load", "workers", "readers", "batch"))]
        if row["variant"] in ("memb", "qsbr") and peers and row[key]:
            found.append(row[key] * better_by <= min(peers))
    return found


def variants_table(summary, name, title, rows):
    summary.table(name, title, [where_of(row, "load", "variant", "workers", "readers") | {
        "batch": row["batch"] or "", "ns": f'{row["ns"]:.1f}', "p50, µs": us("p50_ns")(row), "p99, µs": us("p99_ns")(row),
        "peak, MB": mb("peak_rss_bytes")(row)} for row in rows])


def rcu(results, summary):
    rows, storm = variant_rows(results, "rcu"), variant_rows(results, "storm", load="storm")
    for load in ("read", "synchronize", "update"):
        summary.add("rcu", f"{load}: at or ahead of liburcu's best flavor", ahead_of_liburcu([row for row in rows if row["load"] == load], "ns"))
    summary.add("rcu", "call to callback: 100 times sooner than liburcu", ahead_of_liburcu([row for row in rows if row["load"] == "call"], "p50_ns", 100))
    summary.add("storm", "a storm of callbacks: a twentieth of liburcu's memory", ahead_of_liburcu(storm, "peak_rss_bytes", 20))
    variants_table(summary, "rcu", "Grace periods and liburcu's", rows + storm)


def variants(results, summary):
    variants_table(summary, "variants", "Grace periods, historical implementations",
                   variant_rows(results, "variants") + variant_rows(results, "variants-call"))


def malloc(results, summary):
    found = results.parts.get("malloc", {}).get("summary", {"subjects": []})
    lines = found["subjects"]
    summary.add("malloc", "malloc for whole programs: on the Pareto front of time and peak RSS", [one["on_pareto_front"] for one in lines if one["subject"] == "prudence"])
    if lines:
        summary.table("malloc", f'malloc for {len(found["programs"])} patterns and programs, relative to {found["baseline"]}', [
            {"allocator": one["subject"]} | {title: f'{one[key]["geometric_mean"]:.3f}' for key, title in MALLOC_FIGURES.items() if key in lines[0]} |
            {"Pareto front": "yes" if one["on_pareto_front"] else ""} for one in lines])


MOST_BY_PEER = 1.25  # our time by that of the fastest peer


def public(results, summary):
    """Programs of the kinds that a public set runs: ours by the best peer in each, time and memory."""
    lines, fast, by_program = [], [], {}
    for row in results.all_rows("public"):
        if "wall_seconds" in row:
            by_program.setdefault(row["program"], {})[row["subject"]] = row
    for program, rows in by_program.items():
        ours = rows.pop("prudence", None)
        if not ours or not rows:
            continue
        line = {"program": program}
        for title, key in (("time", "wall_seconds"), ("CPU time", "cpu_seconds"), ("peak RSS", "peak_rss_bytes")):
            best = min(rows.values(), key=lambda row, key=key: row[key])
            text = f'{ours[key] / best[key]:.2f} ({best["subject"]})'
            line[title] = f"**{text}**" if ours[key] / best[key] > MOST_BY_PEER else text
        fast.append(ours["cpu_seconds"] <= MOST_BY_PEER * min(row["cpu_seconds"] for row in rows.values()))
        lines.append(line)
    summary.add("public", f"a public set's programs: CPU time at most {MOST_BY_PEER} of the best peer's", fast)
    summary.table("public", "Programs of the kinds of a public set, ours by the best peer", lines, f"**Bold**: more than {MOST_BY_PEER}.")


MOST_BY_GLIBC = 1.03  # CPU time of any program that is kept apart


def listed(results, summary):
    """Programs of other people: CPU time and peak of each allocator by the baseline's."""
    if "listed" not in results.parts:
        return
    lines, groups = malloc_tables.listed(results.parts["listed"])
    for column in ("CPU", "CPU × peak"):
        found = {subject: mean for (subject, name), (mean, *_) in groups.get("apart", {}).items() if name == column}
        if "prudence" in found:
            summary.add("listed", f"programs that are kept apart: {column} at or below every other allocator's", [found["prudence"] <= min(found.values())])
    apart = [line["prudence, CPU"] for line in lines if line["program"].startswith("apart/") and line.get("prudence, CPU", malloc_tables.NONE) != malloc_tables.NONE]
    summary.add("listed", f"programs that are kept apart: CPU at most {MOST_BY_GLIBC} of glibc's", [float(cell.split()[0]) <= MOST_BY_GLIBC for cell in apart])
    summary.table("listed", "Programs of other people, by glibc", lines, "Medians, with the 95 % interval of a bootstrap over rounds.")


def memory(results, summary):
    """The memory that each allocator keeps, and the cost of huge pages."""
    for part, title, table in (("memory", "Memory that is kept", malloc_tables.kept), ("huge-pages", "Huge pages, by glibc without any", malloc_tables.huge_pages)):
        if part in results.parts:
            summary.table(part, title, table(results.parts[part]))


def versions(results):
    found = set()
    for part in results.parts:
        for row in results.rows(part):
            said = row["versions"]
            if said["library_version"]:
                found.add(f'{said["library"]} {said["library_version"]}')
            found.add(f'{said["allocator"]["name"]} {said["allocator"]["version"]}')
    for document in results.parts.values():
        found |= {f'{allocator["name"]} {allocator["version"]}' for allocator in document.get("allocators", [])}
    return ", ".join(sorted(found))


SECTIONS = (pairs, floors, batches, replacement, alignment, limit, crowd, classic, endurance, latency, readers, stall, reading, recycle, destroy, rcu, variants, growth,
            malloc, public, listed, memory)


def report(folder):
    results = Results(folder)
    if not results.parts:
        raise Refused(f"no results in {folder}")
    summary = Summary(results)
    for section in SECTIONS:
        section(results, summary)
    document = next(iter(results.parts.values()))
    host = document["host"]
    said = [f'# Measurements of {document["date"][:10]}\n',
            f'{host["cpu"]}, {host["cpus"]} CPUs, {host["system"]} {host["kernel"]}, gcc {host["compiler"]}; {versions(results)}.']
    said += [f"**{part}: {warning}**\n" for part, document in results.parts.items() for warning in busy_warning(document)]
    said.append("Medians of interleaved runs, each in a fresh process; a pair and the subjects are explained in docs/reference/benchmark.md.\n")
    found = [one for one in (("targets", "", summary.verdicts), *summary.tables) if one[2]]
    write_tables(folder / "summary", {name: without_marks(cells) for name, _, cells in found})
    return "\n".join([*said, *(words + markdown_table(cells, next(iter(cells[0]))) for _, words, cells in found)])
