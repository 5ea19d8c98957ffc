# SPDX-License-Identifier: MIT
"""A recycle pool of a file server, written by us from its description. It is an example next to the programs of others, not one of them."""

import re

from adopt.program import Measure, Program


LONG_WRITES = 100_000


class RecyclePool(Program):
    name, title, counted = "recycle_pool", "A recycle pool (ours)", False
    packages = ("liburcu-dev",)
    before = "Retired objects wait on their CPU's list; one thread sweeps the lists into depots, which only threads on the same CPU take from."
    after = "One cache, whose domain asks liburcu's qsbr readers."
    watched_cost = "cpu_ns"
    long_load = f"{LONG_WRITES:,} versions replaced per s under 80 readers"
    measures = (Measure("writes", "versions replaced under 80 readers", "per s", better="more"),
                Measure("cpu_ns", "CPU time of the process for one", "ns", better="less"),
                Measure("p999_us", "p99.9 of one", "µs", better="less"),
                Measure("paused_percent", "time that writers stood still at 1 GB", "%", better="less"),
                Measure("steady_mb", "peak memory of that", "MB", better="less"),
                Measure("drift_mb", "growth after the first quarter of the time", "MB", better="less"),
                Measure("handover_mb", "growth in 350,000 writes that another CPU retires", "MB", better="less"),
                Measure("reclaimed", "reclaimed of 400,000 retired at once", "per s", better="more"),
                Measure("peak_mb", "peak memory of all", "MB", better="less"),
                Measure("after_mb", "memory two seconds after", "MB", better="less"))

    def build(self, side):
        pool = "cache.c" if side.patched else "per_cpu_pools.c"
        side.run(["cc", "-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "writes.c", pool, "-o", side.folder / "writes",
                  *side.flags("liburcu-qsbr")])

    def tests(self, side):
        said = side.run([side.folder / "writes", "check"], timeout=120) + side.run([side.folder / "writes", "refused"], timeout=60)
        return {"passed": len(re.findall(r"^ok ", said, re.M)), "failed": re.findall(r"^not ok (.*):", said, re.M), "skipped": 0}

    def measure(self, side, seconds):
        return side.figures([side.folder / "writes", seconds], timeout=seconds * 3 + 120)

    def endure(self, side, seconds):
        found = side.figures([side.folder / "writes", seconds, LONG_WRITES], timeout=seconds * 2 + 120)
        return found["bytes"], found["writes"]


PROGRAM = RecyclePool()
