# SPDX-License-Identifier: MIT
"""DPDK's example l3fwd: IPv4 routes by longest prefix. The driver's patch of both sides gives it what the example lacks: routes that change, lcores that
report quiescent states (without the patch, rte_lpm's defer queue waits for these), and traffic between two ports of net_null. It has no tests of its own:
storm.c checks ports, routes and the objects that remain."""

from pathlib import Path

from adopt.program import Measure, Program

HERE = Path(__file__).resolve().parent / "l3fwd"
FILES = ("main", "l3fwd_acl", "l3fwd_lpm", "l3fwd_fib", "l3fwd_em", "l3fwd_event", "l3fwd_event_generic", "l3fwd_event_internal_port")
DPDK = ("-l", "0", "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "-m", "512", "--vdev=net_null0", "--vdev=net_null1")
OWN = ("-p", "3", "--config", "(0,0,0),(1,0,0)", "--lookup", "lpm", "--parse-ptype", "--no-numa")


class L3fwd(Program):
    name, title, package, mark, shared_patch = "l3fwd", "DPDK's l3fwd (routes)", "dpdk", "meson.build", "l3fwd_driver.patch"
    packages = ("libdpdk-dev", "pkg-config")
    before = "rte_lpm: 256 groups for routes longer than 24 bits, and a defer queue with room for all of them, which return when all lcores have reported."
    after = "Routes of Prudence, whose nodes come from caches that poll the same variable."
    watched_cost = "cpu_us"
    measures = (Measure("still", "packets forwarded by one lcore while no route changes", "per s of its CPU time", better="more"),
                Measure("packets", "packets forwarded while routes change", "per s of its CPU time", better="more"),
                Measure("updates", "routes added and deleted", "per s", better="more"),
                Measure("cpu_us", "CPU time of such an update, with those refused", "µs", better="less"),
                Measure("p999_us", "p99.9 of such an update", "µs", better="less"),
                Measure("refused", "routes refused", "%", better="less"),
                Measure("slow_updates", "routes added and deleted while one lcore reports each 20 ms", "per s", better="more"),
                Measure("slow_p999_us", "p99.9 of an update then", "µs", better="less"),
                Measure("slow_refused", "routes refused then", "%", better="less"),
                Measure("peak_mb", "peak memory", "MB", better="less"),
                Measure("after_mb", "memory two seconds after", "MB", better="less"))

    def build(self, side):
        side.run(["cc", "-O3", "-DALLOW_EXPERIMENTAL_API", f"-I{HERE}", "-I../common", *(f"{one}.c" for one in FILES), HERE / "storm.c",
                  "-o", side.folder / "l3fwd", *side.flags("libdpdk")], folder=side.source / "examples/l3fwd")

    def tests(self, side):
        return side.tap({"l3fwd": self.command(side, 2, "STORM_CHECKS=1")}, timeout=150)

    def measure(self, side, seconds):
        return side.figures(self.command(side, seconds), timeout=seconds * 5 + 120)

    def command(self, side, seconds, *more):
        rules = [f"--rule_ipv{family}={side.source}/examples/l3fwd/lpm_default_v{family}.cfg" for family in (4, 6)]
        return ["env", f"STORM_SECONDS={seconds}", *more, side.folder / "l3fwd", *DPDK, "--", *OWN, *rules]


PROGRAM = L3fwd()
