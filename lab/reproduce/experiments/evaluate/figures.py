# SPDX-License-Identifier: MIT
"""Figures of one subject under one load, in the same words whichever program measured them.

A figure is less the better it is, except `hits`; a value that a program does not print is absent. Memory is resident memory beyond what the
process had when the load began; of servers, all of it."""

import dataclasses
import statistics

MEGA = 1e6
FEW = 5000  # allocations of a cache below which its counts say nothing, as in Linux


@dataclasses.dataclass
class Row:
    """A subject under a load: its figures of each round, and why rounds have none."""
    part: str
    load: str
    subject: str
    rounds: dict = dataclasses.field(default_factory=dict)  # round -> {figure: value}
    failed: list = dataclasses.field(default_factory=list)

    def values(self, figure):
        return [found[figure] for _, found in sorted(self.rounds.items()) if figure in found]

    def median(self, figure):
        values = self.values(figure)
        return statistics.median(values) if values else None


def of_counters(counters):
    """The paper's counts, for each allocation; none of a cache that was hardly used."""
    allocations = counters.get("allocations", 0)
    if allocations < FEW:
        return {}
    found = {"hits": counters["hits"] / allocations, "misses": 1 - counters["hits"] / allocations,
             "churns": counters["object_cache_churns"] / allocations, "slab_churns": counters["slab_churns"] / allocations,
             "slabs": counters["slabs_peak"]}
    if counters.get("objects_live"):
        found["f_t"] = counters["total_fragmentation"]
    return found


def load_of_bench(row):
    if row["scenario"] == "endurance":
        return f"lists, {row['size']} B"
    if row["scenario"] == "pairs":
        return f"pairs, {row['size']} B"
    if row["scenario"] == "tree":
        return f"tree, {row['updates']} % updates"
    return "hand over, 16 sizes" if row.get("mixed") else f"hand over, {row['size']} B"


def of_bench(document, _):
    for row in document["rows"]:
        load = load_of_bench(row)
        if "ns_per_pair_wall" not in row:
            yield load, row["subject"], {"failed": row.get("failed", "memory ran out, and the system ended it" if row.get("killed") else "no result")}
            continue
        found = {"ns": row["ns_per_pair_wall"], "cpu_ns": row["ns_per_pair_cpu"], "latent_mb": row["latent_peak_bytes"] / MEGA,
                 "mb": max(row["peak_rss_bytes"] - row["baseline_rss_bytes"], 0) / MEGA, "growth_mb": row["rss_growth_bytes"] / MEGA,
                 "peak_mb": row["peak_rss_bytes"] / MEGA, "out_of_memory": bool(row["out_of_memory"])}
        if row.get("reader_errors"):
            yield load, row["subject"], {"failed": f"readers saw freed memory {row['reader_errors']} times"}
        else:
            yield load, row["subject"], found | counted_of(row)


def counted_of(row):
    """Mixed sizes have a cache each, so the one that counts says nothing. The number of live objects when objects are handed over is random, and
    so is f_t."""
    if row.get("mixed"):
        return {}
    found = of_counters(row.get("counters", {}))
    return {key: value for key, value in found.items() if key != "f_t" or row["scenario"] != "recycle"}


BY_DEMAND = "cache by demand"  # as caches are unless a program says otherwise
# The library does no pre-flush without the option `background=1`, so that is a subject of its own; "+spares" is none that a user has.
MIX_SUBJECTS = {"classic": "classic", "prudence": "prudence", "+preflush": "prudence, pre-flush"}


def mix_subject(name):
    return name if name.startswith("throttled-") else MIX_SUBJECTS.get(name)


def of_mix(document, _):
    for row in document["rows"]:
        subject = mix_subject(row["subject"])
        if not subject:
            continue
        load = f"mix {row['mix']}, {row['period']} steps, {'cache ' + str(row['cached']) if row['cached'] else BY_DEMAND}"
        if "failed" in row:
            yield load, subject, {"failed": row["failed"]}
            continue
        for seed, counted in enumerate(row["repeats"]):
            yield load, subject, of_counters(counted | {"total_fragmentation": counted["bytes_left"] / counted["bytes_live"], "objects_live": 1}), seed


def of_structures(document, allocator):
    for row in document["rows"]:
        load, subject = f"store, {row['updates']} % updates", row["subject"] if row["subject"] == "prudence" else f"{row['subject']}+{allocator}"
        refused = next((one[key] for one in row["repeats"] for key in ("not_measured", "failed") if key in one), None)
        if refused or not row["ns"]:
            yield load, subject, {"failed": refused or "no result"}
            continue
        yield load, subject, {"ns": row["ns"], "cpu_ns": row["all_cpu_ns"], "bytes_per_object": row["peak_bytes_per_object"]}


def of_server(document, _):
    for row in document["rows"]:
        yield row["load"], row["subject"], row["figures"]


READ = {"prudence-bench": of_bench, "prudence-mix": of_mix, "prudence-structures": of_structures, "server": of_server}


def rows_of(runs):
    """All rows, in the order in which they were measured first. A run of mixes, of which there is one, has a round for each seed."""
    rows = {}
    for run in runs:
        read = READ[run["document"]["program"]]
        for load, subject, found, *seed in read(run["document"], run["allocator"]):
            row = rows.setdefault((load, subject), Row(run["part"], load, subject))
            if "failed" in found:
                row.failed.append(found["failed"])
            else:
                row.rounds[seed[0] if seed else run["round"]] = found
    return list(rows.values())


def loads_of(rows):
    return list(dict.fromkeys(row.load for row in rows))


def find(rows, load, subject):
    return next((row for row in rows if (row.load, row.subject) == (load, subject)), None)


def rounds_of_both(rows, load, theirs, ours, figure):
    """{round: (theirs, ours)} of the rounds in which both were measured."""
    one, other = find(rows, load, theirs), find(rows, load, ours)
    if not one or not other:
        return {}
    return {turn: (one.rounds[turn][figure], other.rounds[turn][figure]) for turn in sorted(one.rounds.keys() & other.rounds.keys())
            if figure in one.rounds[turn] and figure in other.rounds[turn]}


def of_both(rows, load, theirs, ours, figure):
    """Removes the rounds."""
    return list(rounds_of_both(rows, load, theirs, ours, figure).values())
