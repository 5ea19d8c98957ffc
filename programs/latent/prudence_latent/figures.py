# SPDX-License-Identifier: MIT
"""The figures of a record: sums, shares and curves."""

from prudence_watch.modules import Modules

TOP = 10


def lowest_of(bucket):
    """ns of a bucket of the shim's: four to each power of two."""
    if bucket < 4:
        return bucket
    return (4 + bucket % 4) << (bucket // 4 - 2)


def quantile(buckets, share):
    """ns below which this share is; None without any."""
    total, passed = sum(buckets), 0
    for bucket, count in enumerate(buckets):
        passed += count
        if count and passed >= share * total:
            return lowest_of(bucket + 1)
    return None


def waits_of(buckets, most):
    if not any(buckets):
        return None
    return {"median_ns": min(most, quantile(buckets, 0.5)), "p99_ns": min(most, quantile(buckets, 0.99)), "most_ns": most}


def name_of(site, modules):
    """function at file:line, or the place in the file. The call is before the place that it returns to."""
    module = modules.module(site.file) if site.file else None
    frames = module.frames(site.offset - 1 + module.elf.lowest) if module and module.elf else []
    return str(frames[0]) if frames else f"{site.file or 'an unknown file'}+{site.offset - 1:#x}"


def site_figures(site, modules):
    return {"function": site.function, "kind": site.kind, "place": name_of(site, modules), "file": site.file, "offset": site.offset,
            "calls": site.calls, "ended": site.ended, "refused": site.refused, "mean_ns": site.waited // site.ended if site.ended else None, "most_ns": site.most,
            "bytes": site.bytes}


def curve(record, seconds):
    """Points of a picture: at most 1,000, each the most of its stretch."""
    waiting, behind = record.slots(seconds * 1e9)
    step = max(1, -(-len(waiting) // 1000))
    return [{"seconds": i * record.slot_ns / 1e9, "callbacks": max(waiting[i:i + step]), "bytes": max(behind[i:i + step])}
            for i in range(0, len(waiting), step)], sum(behind) / max(1, len(behind))


def of(record, seconds):
    """All that a report says of one process, as JSON has it. A deferral or a reclaim may sleep and free, too."""
    modules = Modules()
    calls = [site for site in record.sites if site.kind == "call"]
    others = [site for site in record.sites if site.kind != "call"]
    deferrals = [site for site in others if site.kind == "defer"]
    points, mean = curve(record, seconds)
    ended = sum(site.ended for site in calls)
    freed = sum(site.bytes for site in calls)
    return {
        "process": record.process, "program": record.program, "seconds": seconds, "slot_ns": record.slot_ns, "bytes_seen": not record.own_free, "untracked": record.untracked,
        "callbacks": {"queued": sum(site.calls for site in calls), "called": ended, "left": record.waiting,
                      "most_waiting": max((point["callbacks"] for point in points), default=0),
                      "waits": waits_of(record.waits, max((site.most for site in calls), default=0))},
        "bytes": {"freed": freed, "each": freed / ended if ended else None, "most": max((point["bytes"] for point in points), default=0), "mean": mean},
        "sleeps": {"calls": sum(record.sleeps), "ns": sum(site.waited for site in others),
                   "waits": waits_of(record.sleeps, max((site.most for site in others), default=0))},
        "deferred": sum(site.calls - site.refused for site in deferrals), "refused": sum(site.refused for site in deferrals),
        "reclaimed": {"calls": sum(site.calls for site in others if site.kind == "reclaim"), "bytes": sum(site.bytes for site in others)},
        "places": [site_figures(site, modules) for site in sorted(record.sites, key=lambda site: (-site.bytes, -site.waited, -site.calls))],
        "curve": points,
    }
