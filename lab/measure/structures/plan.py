# SPDX-License-Identifier: MIT
"""The parts of a measurement: each is one call of prudence-structures, whose rows are interleaved and compared with each other."""

import dataclasses

FAMILIES = ("hash", "map", "routes", "routes6")
# Objects that fit into the first, second and last level of caches of today's processors, and such that do not fit anywhere.
SHARES = "0,1,10,50,100"


@dataclasses.dataclass(frozen=True)
class Part:
    family: str
    name: str
    options: dict  # of prudence-structures

    def arguments(self, seconds, repeat):
        given = {"family": self.family, "seconds": f"{seconds:g}", "repeat": str(repeat), **self.options}
        return [word for key, value in given.items() for word in (f"--{key}", value)]


# About five minutes for all families, on two CPUs.
QUICK_SECONDS, QUICK_REPEAT = 0.08, 3
QUICK = [
    Part("hash", "caches", {"size": "1000,200000", "updates": "0,10,100", "threads": "2"}),
    Part("hash", "more threads than CPUs", {"size": "10000", "updates": "0,10,100", "threads": "4"}),
    Part("hash", "Zipf", {"size": "10000", "updates": "0,10,100", "threads": "2", "draw": "zipf"}),
    Part("hash", "strings", {"size": "10000", "updates": "0,10,100", "threads": "2", "keys": "strings"}),
    Part("map", "caches", {"size": "1000,200000", "updates": "0,10,100", "threads": "2"}),
    Part("map", "more threads than CPUs", {"size": "10000", "updates": "0,10,100", "threads": "4"}),
    Part("map", "Zipf", {"size": "10000", "updates": "0,10,100", "threads": "2", "draw": "zipf"}),
    Part("map", "strings", {"size": "10000", "updates": "0,10,100", "threads": "2", "keys": "strings"}),
    Part("routes", "caches", {"size": "1000,100000", "updates": "0,10,100", "threads": "2"}),
    Part("routes6", "caches", {"size": "100000", "updates": "0,10,100", "threads": "2"}),
    Part("routes6", "few", {"size": "1000", "updates": "0", "threads": "2"}),  # rte_fib6 aborts in updates of so few
]

# A night.
FULL_SECONDS, FULL_REPEAT = 0.3, 5


def part(family, size, threads, keys="numbers", draw="uniform"):
    kind = [name for name in (keys, draw) if name not in ("numbers", "uniform")]
    return Part(family, ", ".join([f"{size} objects", f"{threads} threads", *kind]),
                {"size": size, "updates": SHARES, "threads": threads, "keys": keys, "draw": draw})


def full():
    for family in ("hash", "map"):
        for threads in ("1", "2", "3", "4"):
            yield from (part(family, size, threads) for size in ("250", "1000", "10000", "200000", "1000000"))
            yield from (part(family, size, threads, keys, draw) for size in ("10000", "200000")
                        for keys, draw in (("numbers", "zipf"), ("strings", "uniform"), ("strings", "zipf")))
        yield from (part(family, "10000000", threads) for threads in ("1", "2"))
    for size in ("1000", "10000", "100000"):
        for family, updates in (("routes", SHARES), ("routes6", SHARES if size != "1000" else "0")):
            yield Part(family, f"{size} prefixes", {"size": size, "updates": updates, "threads": "1,2,3,4", "hits": "0,100"})


FULL = list(full())


def parts(quick, families):
    return [part for part in (QUICK if quick else FULL) if part.family in families]
