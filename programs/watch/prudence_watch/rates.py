# SPDX-License-Identifier: MIT
"""Compares two samples, and keeps earlier ones: rates, hit rates, and values for sparklines."""

from collections import deque

KEPT = 120  # samples

RATES = ("allocations", "frees", "deferred_frees", "hits", "refills", "flushes", "object_cache_churns", "slab_churns", "merges")
RATES_OF_ALL = RATES[:4] + ("object_cache_churns", "slab_churns", "merges", "grace_periods", "scans", "membarriers", "stalls")
SHOWN = ("bytes_latent", "bytes_live")


def per_second(now, before, names, seconds):
    """Returns the rate of a counter, which only grows."""
    return {name: max(0, now[name] - before[name]) / seconds if before and seconds > 0 else 0.0 for name in names}


def hit_rate(now, rates):
    """Returns the hit rate between the samples. Without allocations between them, returns that of all time, or None if there were never any."""
    if rates["allocations"]:
        return min(1.0, rates["hits"] / rates["allocations"])
    return now["hits"] / now["allocations"] if now["allocations"] else None


def key_of(cache):
    return cache["copy"], cache["number"]


class GracePeriods:
    """How long the default domain's grace periods take, without a clock read by the process: by Little's law the mean number
    that is under way at a time is their rate times their mean length."""

    def __init__(self):
        self.restart()

    def restart(self):
        self.looks, self.under_way = 0, 0

    def look(self, begun_and_not_ended):
        self.looks += 1
        self.under_way += begun_and_not_ended

    def seconds(self, rate):
        """(mean length, False), or (a bound, True) if none was seen under way; None: none ended."""
        if not rate or not self.looks:
            return None
        return max(self.under_way, 1) / self.looks / rate, not self.under_way


class History:
    """Samples, one after the other."""

    def __init__(self):
        self.before = None
        self.values, self.of_all = {}, {name: deque(maxlen=KEPT) for name in SHOWN}

    def add(self, sample):
        """Adds the changes since the sample before: `per_second` and `hit_rate`, of all and of each cache."""
        before, self.before = self.before, sample
        seconds = sample["seconds"] - before["seconds"] if before else 0
        caches_before = {key_of(cache): cache for cache in before["caches"]} if before else {}
        sample["interval_seconds"] = seconds
        for cache in sample["caches"]:
            cache["per_second"] = per_second(cache, caches_before.get(key_of(cache)), RATES, seconds)
            cache["hit_rate"] = hit_rate(cache, cache["per_second"])
            values = self.values.setdefault(key_of(cache), {name: deque(maxlen=KEPT) for name in SHOWN})
            for name in SHOWN:
                values[name].append(cache[name])
        totals = sample["totals"]
        totals["per_second"] = per_second(totals, before and before["totals"], RATES_OF_ALL, seconds)
        totals["hit_rate"] = hit_rate(totals, totals["per_second"])
        for name in SHOWN:
            self.of_all[name].append(totals[name])
        present = {key_of(cache) for cache in sample["caches"]}
        self.values = {key: values for key, values in self.values.items() if key in present}
        return sample
