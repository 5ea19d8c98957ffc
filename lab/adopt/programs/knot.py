# SPDX-License-Identifier: MIT
"""Knot DNS: a zone of many names that clients ask for while it is changed by dynamic updates, and while it is loaded again and again."""

import subprocess
import time

import dns_load
import urcu_knot
from adopt import dns_server
from adopt.dns_server import PATIENCE, QUIET
from adopt.program import Failed, Measure, Program

RELOADS = 12
FLAGS = "-O2 -g -w"


class Server(dns_server.Server):
    program, configuration = "src/knotd", dns_load.KNOT_CONF

    def control(self, *words):
        done = subprocess.run([self.side.source / "src/knotc", "-s", self.folder / "knot.sock", "-b", *words], env=self.side.environment,
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        if done.returncode:
            raise Failed(f"knotc {' '.join(words)}: {done.stdout}{done.stderr}; knotd: {self.said()[-500:]}")
        return True

    def listens(self):
        return self.control("status")

    def reload(self):
        self.control("reload")

    def load_again(self):
        self.control("zone-reload", dns_load.ZONE)


class Knot(Program):
    name, title, package, mark = "knot", "Knot DNS", "knot", "configure.ac"
    packages = ("libgnutls28-dev", "liblmdb-dev", "libedit-dev", "liburcu-dev", "pkg-config", "dnsperf")
    uses = (*dns_server.USES, "../../tools/urcu_knot.py")
    before = ("An update copies the parts of the zone's trie that it changes; call_rcu frees the old ones and lets the next update begin. Memory comes "
              "from malloc, which is trimmed each 10 MB of zones.")
    after = "The zone's tries, nodes and arrays come from our caches, old tries are deferred at once, nothing is trimmed; call_rcu is our drop-in's."
    watched_cost = "cpu_ms"
    long_load = dns_server.LONG_LOAD
    measures = (*dns_server.MEASURES,
                Measure("reload_ms", "the zone loaded again", "ms", better="less"),
                Measure("peak_mb", "peak memory of reloads", "MB", better="less"),
                Measure("after_mb", f"memory {QUIET} s after them", "MB", better="less"))

    def build(self, side):
        environment = side.environment | {"CFLAGS": FLAGS}
        if side.patched:
            environment |= dict(zip(("liburcu_CFLAGS", "liburcu_LIBS"), dns_server.dropin_flags(side)))
        if not urcu_knot.build(side.source, environment, side.folder / "build.log", tests=True):
            raise Failed(f"it cannot be built: {side.folder}/build.log")

    def tests(self, side):
        own = {name: ["env", "-C", "tests", "SOURCE=.", "BUILD=.", f"./{name}"] for name in urcu_knot.unit_tests(side.source)}
        return dns_server.checks(side.tap(own, timeout=300), side, Server)

    def measure(self, side, seconds):
        with Server(side) as server:
            return dns_server.updates_of(server, seconds) | reloads_of(server)

    def endure(self, side, seconds):
        with Server(side) as server:
            return dns_server.endured(server, seconds)


def reloads_of(server):
    """The zone is read from its file again, whole; each time a whole zone is freed."""
    begun = time.monotonic()
    for _ in range(RELOADS):
        server.load_again()
    took = time.monotonic() - begun
    return {"reload_ms": 1e3 * took / RELOADS} | dns_server.memory_of(server)


PROGRAM = Knot()
