# SPDX-License-Identifier: MIT
"""BIND 9: a zone that clients ask for while it is changed by dynamic updates; and a server that forwards each question, so that it makes and
frees the requests that wait for an answer. Only named and some unit tests are built. Debian 12's 9.18 hardly uses liburcu; the backport's 9.20
does."""

import contextlib
import os
import signal
import time

import dns_load
from adopt import dns_server
from adopt.dns_server import QUIET
from adopt.program import Measure, Program

FLAGS = "-O2 -g -w"
CONFIGURE = ("--disable-doh", "--without-libxml2", "--without-json-c", "--without-lmdb", "--without-maxminddb", "--disable-geoip", "--disable-dnstap",
             "--without-gssapi", "--without-libidn2", "--without-jemalloc", "--disable-static", "--with-liburcu=membarrier", "--with-cmocka=yes")
TESTS = ("badcache_test", "db_test", "dispatch_test", "qp_test", "qpdb_test", "qpmulti_test", "qpzone_test", "update_test", "zt_test")
LIBURCU = "-lurcu-cds -lurcu-memb -lurcu-common"
FORWARDER = """options {{{{
  directory "{{folder}}"; pid-file none; session-keyfile none; recursion yes; dnssec-validation no; max-cache-ttl 0; qname-minimization off;
  listen-on port {{port}} {{{{ 127.0.0.1; }}}}; listen-on-v6 {{{{ none; }}}}; forward only; forwarders port {0} {{{{ 127.0.0.1; }}}};
}}}};
controls {{{{ }}}};
"""


class Server(dns_server.Server):
    program, configuration, arguments = "bin/named/named", dns_load.NAMED_CONF, ("-f",)

    def listens(self):
        return "> REFUSED" in self.ask("-n", "1", "-l", "1", "-Q", "10", "-v")

    def reload(self):
        self.process.send_signal(signal.SIGHUP)


class Forwarder(Server):
    def __init__(self, side, port):
        super().__init__(side)
        self.configuration = FORWARDER.format(port)


class Bind(Program):
    name, title, package, suite, upstream, mark = "bind", "BIND 9", "bind9", "bookworm-backports", True, "configure.ac"
    packages = ("libuv1-dev", "libcap-dev", "libssl-dev", "libcmocka-dev", "liburcu-dev", "pkg-config", "dnsperf")
    uses = dns_server.USES
    before = "call_rcu frees chunks of tries, requests that wait for an answer, and answers known to fail."
    after = "These come from our caches; the last two are deferred without a callback; call_rcu is our drop-in's."
    watched_cost = "cpu_ms"
    long_load = dns_server.LONG_LOAD
    measures = (*dns_server.MEASURES,
                Measure("peak_mb", "peak memory of updates", "MB", better="less"),
                Measure("after_mb", f"memory {QUIET} s after them", "MB", better="less"),
                Measure("forward_p999_us", "p99.9 of queries that are forwarded", "µs", better="less"),
                Measure("forward_cpu_ms", "CPU time meanwhile, per s", "ms", better="less"),
                Measure("forward_peak_mb", "peak memory meanwhile", "MB", better="less"))

    def build(self, side):
        if not (side.source / "config.status").exists():
            side.run(["./configure", *CONFIGURE], environment={"CFLAGS": FLAGS} | self.liburcu(side))
        jobs = f"-j{os.cpu_count()}"
        side.run(["make", "bind.keys.h"])
        for folder, *what in (("lib",), ("bin/named",), ("tests/libtest",), ("tests/dns", *TESTS)):
            side.run(["make", jobs, "-C", folder, *what])

    def liburcu(self, side):
        if not side.patched:
            return {"LIBURCU_CFLAGS": " ", "LIBURCU_LIBS": LIBURCU}
        cflags, libs = dns_server.dropin_flags(side)
        return {"LIBURCU_CFLAGS": cflags, "LIBURCU_LIBS": f"-lurcu-cds -lurcu-common {libs}"}

    def tests(self, side):
        own = {name: ["env", "-C", "tests/dns", "CMOCKA_MESSAGE_OUTPUT=TAP", f"./{name}"] for name in TESTS}
        return dns_server.checks(side.tap(own, timeout=300), side, Server)

    def measure(self, side, seconds):
        with Server(side) as server:
            found = dns_server.updates_of(server, seconds) | dns_server.memory_of(server)
        return found | forwarded(side, seconds)

    def endure(self, side, seconds):
        with Server(side) as server:
            return dns_server.endured(server, seconds)


def forwarded(side, seconds):
    """Each question goes to another server: nothing is kept."""
    with contextlib.ExitStack() as stack:
        known = stack.enter_context(Server(side))
        server = stack.enter_context(Forwarder(side, known.port))
        found = dns_server.queries_of(server, seconds, lambda: time.sleep(0.05))
        return {f"forward_{key}": value for key, value in found.items()} | {"forward_peak_mb": dns_load.peak_bytes(server.pid) / 1e6}


PROGRAM = Bind()
