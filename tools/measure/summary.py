# SPDX-License-Identifier: MIT
"""The summary of tools/bench in Markdown: each target, whether it is reached, and its numbers; and each table as DIRECTORY/summary/TABLE.csv.

Reads DIRECTORY/*.json as tools/bench leaves them. A part that was not measured is left out."""

import json

from .page import Refused, busy_warning, markdown_table, write_tables
from .pictures import MEGA

ENDURANCE_BOUND = 16 << 20  # bytes beyond the live set, while threads <= CPUs
PLAIN_PEERS = {"plain+glibc", "plain+jemalloc", "plain+mimalloc", "plain+tcmalloc"}
NO_MORE_THREADS_THAN_CPUS = [(1, 0), (2, 0), (1, 1)]  # (writers, readers) on the 2-CPU machine


class Results:
    """The rows of all parts, found by what they must match."""

    def __init__(self, folder):
        documents = {path.stem: json.loads(path.read_text())
                     for path in sorted(folder.glob("*.json"))}
        self.parts = {name: document for name, document in documents.items()
                      if "rows" in document and "host" in document}

    def rows(self, part, **wanted):
        return [row for row in self.parts.get(part, {"rows": []})["rows"]
                if "ns_per_pair_wall" in row
                and all(row.get(key) == value for key, value in wanted.items())]

    def row(self, part, **wanted):
        return next(iter(self.rows(part, **wanted)), None)

    def sizes(self, part):
        return sorted({row["size"] for row in self.rows(part)})


class Summary:
    """Targets met, of how many, and tables."""

    def __init__(self):
        self.verdicts, self.tables = [], []

    def add(self, target, good, total):
        if total:
            self.verdicts.append({"target": target, "verdict": "**reached**" if good == total else f"**missed** in {total - good} of {total}"})

    def table(self, name, title, head, rows, words=""):
        """A section of the page, and NAME.csv. Without rows, nothing."""
        if rows:
            self.tables.append((name, f"## {title}\n\n" + (words and words + "\n\n"), [dict(zip(head, row)) for row in rows]))


def without_marks(cells):
    """For a CSV, without Markdown's."""
    return [{name.replace("`", ""): str(cell).replace("**", "").replace("`", "") for name, cell in row.items()} for row in cells]


def ns(row):
    return f'{row["ns_per_pair_wall"]:.2f}'


def fastest(rows):
    return min(rows, key=lambda row: row["ns_per_pair_wall"], default=None)


def named(row):
    return f'{row["subject"]} {ns(row)}'


def times(value):
    return f"{value:.2f}×"


def pairs(results, summary):
    lines, half, even, twenty = [], [], [], []
    for threads, readers in NO_MORE_THREADS_THAN_CPUS:
        for size in results.sizes("pairs"):
            where = {"size": size, "threads": threads, "readers": readers}
            ours = {name: results.row("pairs", subject=name, **where)
                    for name in ("prudence", "prudence-fenced", "prudence-free")}
            plain = fastest(row for row in results.rows("batches", **where)
                            if row["subject"] in PLAIN_PEERS)
            single = fastest(row for row in results.rows("pairs", **where)
                             if row["subject"] in PLAIN_PEERS)
            call_rcu = fastest(row for row in results.rows("pairs", **where)
                               if row["subject"].startswith("urcu"))
            if not all([*ours.values(), plain, single, call_rcu]):
                continue
            cost = {name: row["ns_per_pair_wall"] for name, row in ours.items()}
            floor = plain["ns_per_pair_wall"]
            factor = call_rcu["ns_per_pair_wall"] / cost["prudence"]
            half += [cost["prudence"] <= floor / 2, cost["prudence-fenced"] <= floor / 2]
            even.append(cost["prudence-free"] <= floor)
            twenty.append(factor >= 20)
            lines.append([f"{threads} + {readers}", size, *map(ns, ours.values()), named(plain),
                          times(cost["prudence"] / floor), named(single), named(call_rcu),
                          f"{factor:.0f}×"])
    summary.add("pair: adaptive and fenced at most half of the best plain pair in batches",
                 sum(half), len(half))
    summary.add("pair: fence-free no slower than the best plain pair in batches",
                 sum(even), len(even))
    summary.add("pair: 20× faster than every `call_rcu` subject", sum(twenty), len(twenty))
    summary.table("pairs", "Allocate/defer pairs, ns",
                  ["writers + readers", "bytes", "prudence", "fenced", "fence-free", "best plain, batches of 1,024", "ours ÷ that",
                   "best plain, one at a time", "best `call_rcu`", "that ÷ ours"], lines)


def batches(results, summary):
    rows = [[f'{row["threads"]} + {row["readers"]}', row["size"], row["subject"], ns(row)]
            for row in results.rows("batches") if row["subject"].startswith("prudence")
            and (row["threads"], row["readers"]) in NO_MORE_THREADS_THAN_CPUS]
    summary.table("batches", "Ours in batches of 1,024, ns per pair", ["writers + readers", "bytes", "subject", "ns"], rows)


# The most that a pair may take, by the best plain pair in batches of 1,024.
REPLACEMENT_TARGETS = {"prudence": 0.80, "prudence-static": 0.75, "prudence-inline": 0.50,
                       "prudence-replace": 0.65, "prudence-replace-inline": 0.50}


def replacement(results, summary):
    """Each way of calling us, by the best plain pair of the same conditions, measured with it."""
    rows = results.rows("replace")
    ways = list(dict.fromkeys(row["subject"] for row in rows
                              if not row["subject"].startswith("plain+")))
    met = {way: [] for way in ways}
    lines = []
    for where in conditions(rows):
        here = [row for row in rows if conditions([row]) == [where]]
        plain = [row for row in here if row["subject"] in PLAIN_PEERS]
        batched = fastest(row for row in plain if row["batch"] == 1024)
        single = fastest(row for row in plain if row["batch"] == 1)
        ours = {row["subject"]: row for row in here if row["batch"] == 1}
        if batched and single:
            lines.append([f'{where["threads"]} + {where["readers"]}', where["size"],
                          where["order"], where["live"] or "–"]
                         + [replacement_cell(way, ours.get(way), batched, met) for way in ways]
                         + [named(batched), named(single)])
    for way in ways:
        if target := REPLACEMENT_TARGETS.get(way):
            summary.add(f"pair of `{way}` at most {target:.2f} of the best plain pair in batches, "
                         "in order and at random", sum(met[way]), len(met[way]))
    targets = ", ".join(f"{way} {most:.2f}" for way, most in REPLACEMENT_TARGETS.items())
    summary.table("replace", "Pairs by the best plain pair in batches of 1,024",
                  ["writers + readers", "bytes", "order", "live", *ways, "best plain, batches of 1,024", "best plain, one at a time"], lines,
                  "Our cells: ns, and how much of the best plain pair in batches of 1,024 that is, with the same size, order, live objects, writers and "
                  f"readers in the same interleaved run; *slower* where it is more. **Bold**: more than its target ({targets}).")


def conditions(rows):
    """What rows have been measured under, each once, in their order."""
    keys = ("threads", "readers", "size", "order", "live")
    return [dict(zip(keys, values))
            for values in dict.fromkeys(tuple(row[key] for key in keys) for row in rows)]


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
    """What a pair costs with the code in eight places."""
    rows = results.parts.get("alignment", {"rows": []})["rows"]
    summary.add("pair: the code's place makes no more than a tenth",
                 sum(row["spread"] <= MOST_BY_PLACE for row in rows), len(rows))
    summary.table("alignment", "Pairs with the code in eight places, 16 bytes apart, ns", ["loop", "fastest", "slowest", "ratio"],
                  [[row["loop"], f'{row["ns_min"]:.2f}', f'{row["ns_max"]:.2f}', f'{row["spread"]:.2f}'] for row in rows])


def growth(results, summary):
    """What grows with what: a row for each curve, with its sentence."""
    rows = results.parts.get("growth", {"rows": []})["rows"]
    summary.table("growth", "Growth", ["along", "fit", "in a sentence"], [[row["axis_text"], row["curve"], row["sentence"]] for row in rows],
                  "The curves are drawn in growth.html.")


def limit(results, summary):
    rows = results.rows("limit")
    within = [row["latent_peak_bytes"] <= row["latent_limit"] for row in rows]
    summary.add("2 writers + 1, 2, 4 readers: bytes in flight within `latent_limit`",
                 sum(within), len(rows))
    summary.table("limit", "Throughput against `latent_limit`", ["readers", "bytes", "limit, MB", "latent peak, MB", "ns wall", "ns CPU"],
                  [[row["readers"], row["size"], f'{row["latent_limit"] / MEGA:.1f}', f'{row["latent_peak_bytes"] / MEGA:.1f}', ns(row),
                    f'{row["ns_per_pair_cpu"]:.2f}'] for row in rows])


def crowd(results, summary):
    """More threads than CPUs: CPU time against plain queues, and bytes within their limit."""
    lines, fast, within, others = [], [], [], {}
    for ours in results.rows("crowd", subject="prudence"):
        peers = [row for row in results.rows("crowd", size=ours["size"], threads=ours["threads"],
                                             readers=ours["readers"])
                 if row["subject"] != "prudence"]
        others = {row["subject"]: row for row in peers}
        fast += [ours["ns_per_pair_cpu"] <= row["ns_per_pair_cpu"] for row in peers]
        within.append(ours["totals"]["bytes_latent_peak"] <= ours["totals"]["latent_limit"])
        lines.append([f'{ours["threads"]} + {ours["readers"]}', ours["size"]]
                     + [crowd_cell(row) for row in [ours, *others.values()]])
    summary.add("more threads than CPUs: CPU time at or below `classic`'s and `call_rcu`'s",
                 sum(fast), len(fast))
    summary.add("more threads than CPUs: bytes within `latent_limit`", sum(within), len(within))
    summary.table("crowd", "More threads than CPUs", ["writers + readers", "bytes", "prudence", *others], lines,
                  "Each cell: ns of CPU a pair (wall time of a writer), latent MB.")


def crowd_cell(row):
    return (f'{row["ns_per_pair_cpu"]:.0f} ({row["ns_per_pair_wall"]:.0f}), '
            f'{row["latent_peak_bytes"] / MEGA:.0f}')


def per_million(row, key):
    counters = row["counters"]
    return 1e6 * counters[key] / max(1, counters["allocations"])


def classic(results, summary):
    lines, faster = [], []
    for part in ("pairs", "endurance"):
        for theirs in results.rows(part, subject="classic"):
            ours = results.row(part, subject="prudence", size=theirs["size"],
                               threads=theirs["threads"], readers=theirs["readers"])
            if ours:
                faster.append(ours["ns_per_pair_wall"] < theirs["ns_per_pair_wall"])
                lines.append(classic_line(part, ours, theirs))
    summary.add("faster than `classic` at every size", sum(faster), len(faster))
    summary.table("classic", "Prudence against `classic` (the paper's Figures 6 to 11)",
                  ["scenario", "writers + readers", "bytes", "ns", "hits, %", "object-cache churns", "slab churns", "peak slabs", "f_t"], lines,
                  "Each cell: prudence / classic. Churns are per million allocations.")


def classic_line(part, ours, theirs):
    def both(value):
        return f"{value(ours)} / {value(theirs)}"

    def counter(key):
        return both(lambda row: row["counters"][key])

    return [part, f'{ours["threads"]} + {ours["readers"]}', ours["size"], both(ns),
            both(lambda row: f'{per_million(row, "hits") / 1e4:.2f}'),
            both(lambda row: f'{per_million(row, "object_cache_churns"):.1f}'),
            both(lambda row: f'{per_million(row, "slab_churns"):.1f}'), counter("slabs_peak"),
            both(lambda row: f'{row["counters"]["total_fragmentation"]:.2f}'
                 if row["counters"]["objects_live"] else "–")]


def growth_after_first_second(row):
    """The most, of all runs, that memory rose above what it was in the first second."""
    rises = []
    for run in row["repeats"]:
        taken = [(ms, resident) for ms, resident, *_ in run.get("samples", [])]
        first = max((resident for ms, resident in taken if ms <= 1000), default=0)
        rises += [resident - first for ms, resident in taken if ms > 1000]
    return max(rises, default=0)


def endurance(results, summary):
    lines, bound, flat = [], [], []
    for row in results.rows("endurance"):
        beyond = (row["peak_rss_bytes"] - row["baseline_rss_bytes"]
                  - row["length"] * row["size"] * row["threads"])
        rise = growth_after_first_second(row)
        few = (row["threads"], row["readers"]) in NO_MORE_THREADS_THAN_CPUS
        if row["subject"] == "prudence":
            bound.append(beyond <= (ENDURANCE_BOUND if few else row["totals"]["latent_limit"]))
            flat.append(rise < 1 << 20)
        lines.append([f'{row["threads"]} + {row["readers"]}', row["subject"], ns(row),
                      f'{row["ns_per_pair_cpu"]:.2f}', f'{row["peak_rss_bytes"] / MEGA:.1f}',
                      f"{beyond / MEGA:.1f}", f"{rise / MEGA:.1f}",
                      f'{row["latent_peak_bytes"] / MEGA:.1f}',
                      "yes" if row["out_of_memory"] else "no"])
    summary.add("endurance: under 16 MB beyond the live set while threads ≤ CPUs, within "
                 "`latent_limit` beyond", sum(bound), len(bound))
    summary.add("endurance: flat after the first second (rises less than 1 MiB in any run)",
                 sum(flat), len(flat))
    summary.table("endurance", "Endurance", ["writers + readers", "subject", "ns wall", "ns CPU", "peak, MB", "beyond live, MB", "rise after 1 s, MB",
                                             "latent peak, MB", "out of memory"], lines)


def latency(results, summary):
    for part, title in (("latency", "in a storm"), ("demand", "wanted back at once")):
        lines, good, total = [], 0, 0
        for row in results.rows(part):
            took = {key: row["latency_ns"].get(key, float("inf")) / 1e3
                    for key in ("p50", "p99", "p99_9", "max")}
            if row["subject"] == "prudence" and row["readers"]:
                good += took["p50"] < 25 and took["p99"] < 200
                total += 1
            lines.append([row["readers"], row["size"], row["batch"], row["subject"],
                          *(f"{value:.1f}" if value < float("inf") else "never"
                            for value in took.values())])
        summary.add(f"free-to-reuse with a busy reader, {title}: p50 < 25 µs, p99 < 200 µs", good, total)
        summary.table(part, f"From retire to reuse, {title}, µs", ["readers", "bytes", "batch", "subject", "p50", "p99", "p99.9", "max"], lines)


def readers(results, summary):
    lines, good, total = [], 0, 0
    for ours, theirs in (("prudence-free", "urcu+glibc"), ("prudence-fenced", "urcu-mb+glibc")):
        for writers in (0, 1):
            mine = results.row("readers", subject=ours, threads=writers)
            other = results.row("readers", subject=theirs, threads=writers)
            if mine and other:
                good += mine["ns_per_pair_wall"] <= other["ns_per_pair_wall"]
                total += 1
    for row in results.rows("readers"):
        lines.append([row["threads"], row["subject"], row.get("reader_mode", "–"), ns(row)])
    summary.add("reader lock + unlock: fence-free no slower than liburcu memb, fenced than mb",
                 good, total)
    summary.table("readers", "Reader lock + unlock, ns", ["writers", "subject", "mode", "ns"], lines)


def stall(results, summary):
    ours = results.rows("stall", subject="prudence", stay_ms=100)
    within = [row["latent_peak_bytes"] <= row["totals"]["latent_limit"] for row in ours]
    summary.add("a reader that stays 100 ms: at or under `latent_limit`", sum(within), len(ours))
    summary.table("stall", "A reader that stays", ["stays, ms", "subject", "ns wall", "ns CPU", "peak, MB", "latent peak, MB"],
                  [[row["stay_ms"], row["subject"], ns(row), f'{row["ns_per_pair_cpu"]:.2f}', f'{row["peak_rss_bytes"] / MEGA:.1f}',
                    f'{row["latent_peak_bytes"] / MEGA:.1f}'] for row in results.rows("stall")])


def recycle(results, summary):
    rows = results.rows("recycle") + results.rows("mixed")
    summary.table("recycle", "Retire on one CPU, allocate on another", ["subject", "sizes", "ns", "peak, MB", "growth in the second half, MB"],
                  [[row["subject"], "16, mixed" if row.get("mixed") else row["size"], ns(row), f'{row["peak_rss_bytes"] / MEGA:.1f}',
                    f'{row["rss_growth_bytes"] / MEGA:.1f}'] for row in rows])


def destroy(results, summary):
    rows = results.rows("destroy")
    summary.table("destroy", "Destroy a cache while another is busy, µs", ["subject", "p50", "p99", "max", "destroyed"],
                  [[row["subject"], *(f'{row["latency_ns"].get(key, 0) / 1e3:.1f}' for key in ("p50", "p99", "max")), row["latency_ns"]["count"]]
                   for row in rows])


def variant_rows(results, part, **wanted):
    return [row for row in results.parts.get(part, {"rows": []})["rows"]
            if "variant" in row and all(row[key] == value for key, value in wanted.items())]


def beside_liburcu(rows, key, better_by=1):
    """For each of our rows the best of liburcu's under the same load: how many are as good."""
    good = total = 0
    for row in rows:
        peers = [peer[key] for peer in rows if peer["variant"].startswith("urcu")
                 and all(peer[same] == row[same]
                         for same in ("load", "workers", "readers", "batch")) and peer[key]]
        if row["variant"] in ("memb", "qsbr") and peers and row[key]:
            total += 1
            good += row[key] * better_by <= min(peers)
    return good, total


def variants_table(summary, name, title, rows):
    summary.table(name, title, ["load", "variant", "workers", "readers", "batch", "ns", "p50, µs", "p99, µs", "peak, MB"],
                  [[row["load"], row["variant"], row["workers"], row["readers"], row["batch"] or "", f'{row["ns"]:.1f}', f'{row["p50_ns"] / 1e3:.1f}',
                    f'{row["p99_ns"] / 1e3:.1f}', f'{row["peak_rss_bytes"] / MEGA:.1f}'] for row in rows])


def rcu(results, summary):
    rows = variant_rows(results, "rcu")
    storm = variant_rows(results, "storm", load="storm")
    for load in ("read", "synchronize", "update"):
        summary.add(f"{load}: at or ahead of liburcu's best flavor", *beside_liburcu([row for row in rows if row["load"] == load], "ns"))
    summary.add("call to callback: 100 times sooner than liburcu", *beside_liburcu([row for row in rows if row["load"] == "call"], "p50_ns", 100))
    summary.add("a storm of callbacks: a twentieth of liburcu's memory", *beside_liburcu(storm, "peak_rss_bytes", 20))
    variants_table(summary, "rcu", "Grace periods beside liburcu", rows + storm)


def variants(results, summary):
    rows = variant_rows(results, "variants") + variant_rows(results, "variants-call")
    variants_table(summary, "variants", "Grace periods, historical implementations", rows)


def malloc(results, summary):
    found = results.parts.get("malloc", {}).get("summary", {"subjects": []})
    if not found["subjects"]:
        return
    keys = {"wall": "time", "cpu": "CPU time", "peak_rss": "peak RSS",
            "wall_x_peak_rss": "time × peak RSS", "minor_faults": "page faults",
            "paused_rss": "RSS after a pause"}
    keys = {key: title for key, title in keys.items() if key in found["subjects"][0]}
    ours = [line for line in found["subjects"] if line["subject"] == "prudence"]
    summary.add("malloc for whole programs: on the Pareto front of time and peak RSS",
                sum(line["on_pareto_front"] for line in ours), len(ours))
    summary.table("malloc", f'malloc for {len(found["programs"])} patterns and programs, relative to {found["baseline"]}',
                  ["allocator", *keys.values(), "Pareto front"],
                  [[line["subject"], *(f'{line[key]["geometric_mean"]:.3f}' for key in keys), "yes" if line["on_pareto_front"] else ""]
                   for line in found["subjects"]])


MOST_BY_PEER = 1.25  # our time by that of the fastest peer


def public(results, summary):
    """Programs of the kinds that a public set runs: ours by the best peer in each, time and memory."""
    document = results.parts.get("public", {"rows": []})
    lines, fast = [], []
    for program in dict.fromkeys(row["program"] for row in document["rows"]):
        rows = [row for row in document["rows"]
                if row["program"] == program and "wall_seconds" in row]
        ours = next((row for row in rows if row["subject"] == "prudence"), None)
        peers = [row for row in rows if row["subject"] != "prudence"]
        if not ours or not peers:
            continue
        cells = []
        for key in ("wall_seconds", "cpu_seconds", "peak_rss_bytes"):
            best = min(peers, key=lambda row: row[key])
            cells.append(peer_cell(ours[key] / best[key], best["subject"]))
        fast.append(ours["cpu_seconds"] <= MOST_BY_PEER * min(row["cpu_seconds"] for row in peers))
        lines.append([program, *cells])
    summary.add(f"a public set's programs: CPU time at most {MOST_BY_PEER} of the best peer's",
                 sum(fast), len(fast))
    summary.table("public", "Programs of the kinds of a public set, ours by the best peer", ["program", "time", "CPU time", "peak RSS"], lines,
                  f"**Bold**: more than {MOST_BY_PEER}.")


def peer_cell(ratio, name):
    text = f"{ratio:.2f} ({name})"
    return f"**{text}**" if ratio > MOST_BY_PEER else text


def versions(results):
    found = set()
    for part in results.parts:
        for row in results.rows(part):
            said = row["versions"]
            if said["library_version"]:
                found.add(f'{said["library"]} {said["library_version"]}')
            found.add(f'{said["allocator"]["name"]} {said["allocator"]["version"]}')
    for allocator in results.parts.get("malloc", {}).get("allocators", []):
        found.add(f'{allocator["name"]} {allocator["version"]}')
    return ", ".join(sorted(found))


SECTIONS = (pairs, batches, replacement, alignment, limit, crowd, classic, endurance, latency, readers, stall, recycle, destroy, rcu, variants, growth,
            malloc, public)


def report(folder):
    results, summary = Results(folder), Summary()
    if not results.parts:
        raise Refused(f"no results in {folder}")
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
