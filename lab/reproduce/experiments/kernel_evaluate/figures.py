# SPDX-License-Identifier: MIT
"""Reads the output of a guest (kernel/tree/load.c), and computes the figures of one cache in one run, in the same words for both allocators.

A hit is an allocation that needs no more than its CPU has. For SLUB it is one that goes neither to the node's list nor to the page allocator:
an object from the CPU's partial slabs is a hit, as an object that Prudence merges is. `fast_hits` are those of SLUB's fast path alone."""

KB_PER_PAGE = 4


class Incomplete(Exception):
    pass


def pairs(words):
    """A kernel's message may have come into the middle of a line."""
    try:
        return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}
    except ValueError:
        raise Incomplete(f"a line is damaged: {' '.join(words)}") from None


WANTED = {"locks": ("locks", "LOCK"), "latency": ("latency", "LATENCY"), "latency_wall": ("latency", "LATENCY"), "counts": ("peaks", "PEAK")}  # that only these modes have, and its lines


def read(text, mode=None):
    """{"wall_ns", "busy_ns", "slub" and "caches": {name: {"before", "after"}}, "totals", "peaks": {name: KB}, "at_peak": {name: {place: objects}}, "peak_kb", "locks": {name: {"taken", ...}}, "latency": {"p50_ns", ...}}"""
    run = {"slub": {}, "caches": {}, "totals": {}, "peaks": {}, "at_peak": {}, "locks": {}, "latency": {}}
    for line in text.splitlines():
        words = line.split()
        kind = words[0] if len(words) > 2 else ""
        if kind == "SLUB":
            run["slub"].setdefault(words[2], {})[words[1]] = pairs(words[3:])
        elif kind == "CACHE":
            run["caches"].setdefault(words[2], {})[words[1]] = pairs(words[3:])
        elif kind == "TOTALS":
            run["totals"][words[1]] = pairs(words[2:])
        elif kind == "LOCK":  # /proc/lock_stat: contention by another CPU and all, four times; the same of acquisitions
            run["locks"][words[1]] = {"contended": int(words[3]), "moved": int(words[8]), "taken": int(words[9])}
        elif kind == "LATENCY":
            run["latency"] = pairs(words[1:])
        elif kind == "LOAD":
            run |= pairs(words[1:])
        elif kind == "PEAK" and words[1] == "memory":
            run["peak_kb"] = int(words[3])
        elif kind == "PEAK":
            run["peaks"][words[1]] = int(words[3])
            run["at_peak"][words[1]] = pairs(words[4:])
    if "busy_ns" not in run:
        raise Incomplete("it has no line LOAD")
    if run["status"]:
        raise Incomplete(f"the load ended with status {run['status']}")
    for kind in ("slub", "caches"):  # a cache may have come while the load ran, or gone
        run[kind] = {name: {"before": {}, **parts} for name, parts in run[kind].items() if "after" in parts}
    if not run["slub"]:
        raise Incomplete("figures after the load are missing")
    figure, line = WANTED.get(mode, (None, None))
    if figure and not run[figure]:
        raise Incomplete(f"it has no line {line}")
    return run


def watched(run):
    """SLUB's caches with all figures."""
    return {name for name, parts in run["slub"].items() if "total_objects" in parts["after"]}


def growth(figures, *names):
    return sum(figures["after"].get(name, 0) - figures["before"].get(name, 0) for name in names)


def slub_kb(figures, objects):
    return objects // figures["objs_per_slab"] * (KB_PER_PAGE << figures["order"])


def of_slub(run, name):
    figures = run["slub"][name]
    after = figures["after"]
    allocations = growth(figures, "alloc_fastpath", "alloc_slowpath")
    refills = growth(figures, "alloc_from_partial", "alloc_slab")
    flushes = growth(figures, "cpu_partial_drain")
    return {"allocations": allocations, "frees": growth(figures, "free_fastpath", "free_slowpath"),
            "hits": allocations - refills, "fast_hits": growth(figures, "alloc_fastpath"),
            "object_cache_churns": min(refills, flushes),
            "slab_churns": min(growth(figures, "alloc_slab"), growth(figures, "free_slab")),
            "peak_kb": run["peaks"].get(name),  # only counts are sampled
            "kb": slub_kb(after, after["total_objects"])}


def of_prudence(run, name):
    """Memory is that of both allocators: objects from before a cache changed stay SLUB's. So is the peak, which the guest has added up."""
    figures, rest = run["caches"][name], of_slub(run, name)
    after = figures["after"]
    slab_kb = after["slab_size"] // 1024
    return {"allocations": growth(figures, "allocations"), "frees": growth(figures, "frees", "deferred_frees"),
            "deferred": growth(figures, "deferred_frees"), "hits": growth(figures, "hits"), "fast_hits": growth(figures, "hits") -
            growth(figures, "hits_after_merge"), "object_cache_churns": growth(figures, "object_cache_churns"),
            "slab_churns": growth(figures, "slab_churns"), "peak_kb": rest["peak_kb"],
            "kb": after["slabs_now"] * slab_kb + rest["kb"]}


def deferred_share(run):
    """Counts all frees of all caches of both allocators. call_rcu and kfree_rcu of caches that do not change count as plain."""
    deferred = sum(growth(figures, "deferred_frees") for figures in run["caches"].values())
    ours = deferred + sum(growth(figures, "frees") for figures in run["caches"].values())
    theirs = sum(growth(figures, "free_fastpath", "free_slowpath") for figures in run["slub"].values())
    return deferred / (ours + theirs) if ours + theirs else 0
