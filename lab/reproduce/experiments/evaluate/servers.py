# SPDX-License-Identifier: MIT
"""Knot DNS and BIND 9, each built twice from Debian's source with the same flags: against liburcu, and against our headers. dnsperf asks for names
of a zone as fast as it can: alone, and then while one client changes the zone by dynamic updates, each after the answer to the one before. So
queries are compared without updates, of which a side that is faster makes more."""

import dataclasses
import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import urcu_knot
from debian_source import fetch
from dns_load import KNOT_CONF, NAMED_CONF, ZONE, Failed, Updates, cpu_seconds, free_port, latencies_of, number_of, peak_bytes, queries, zone_file

NAMES = ("knot", "bind")
SIDES = ("liburcu", "prudence")
OPEN_QUERIES = 20       # of dnsperf at a time
FLAGS = "-O2 -g -w"
PATIENCE = 20           # seconds in which a server has to be ready, or to end


@dataclasses.dataclass(frozen=True)
class Server:
    name: str
    package: str
    suite: str | None     # another than this system's; then without Debian's changes
    program: str          # in its source folder
    real: str             # the executable, or the one that it starts: libtool's programs are scripts
    packages: str         # of Debian, that building needs


SERVERS = {
    "knot": Server("knot", "knot", None, "src/knotd", "src/.libs/knotd", "libgnutls28-dev, liblmdb-dev, libedit-dev"),
    "bind": Server("bind", "bind9", "bookworm-backports", "bin/named/named", "bin/named/.libs/named", "libuv1-dev, libcap-dev, libssl-dev"),
}


# ------------------------------------------------------------------------------------------------------------ a server

def figures_of(alone, cpu, updated, updates, peak):
    """Reads the output of dnsperf -v and the server's CPU time without updates, and its output with updates, and these updates."""
    taken, meanwhile = latencies_of(alone), latencies_of(updated)
    if not taken or not meanwhile or not updates.seconds:
        raise Failed(f"{len(taken)} and {len(meanwhile)} answers, {len(updates.seconds)} updates")
    return {"ns": 1e9 / number_of(alone, "Queries per second"), "cpu_ns": 1e9 * cpu / len(taken), "us_p50": taken[len(taken) // 2],
            "us_p99": taken[len(taken) * 99 // 100], "us_p99_updating": meanwhile[len(meanwhile) * 99 // 100],
            "us_update": 1e6 * statistics.mean(updates.seconds), "rss_mb": peak / 1e6,
            "lost": sum(number_of(said, "Queries lost") for said in (alone, updated)) + updates.lost}


class Servers:
    def __init__(self, root, build, output):
        self.root, self.build_folder, self.output = root, build, output
        self.problems = {}

    def source(self, name, side):
        """The unpacked source in which that side was built, or None."""
        return next((found.parent for found in sorted((self.output / f"{name}-{side}").glob("*/configure.ac"))), None)

    def program(self, name, side):
        source = self.source(name, side)
        return source / SERVERS[name].program if source else None

    def files(self, name, side):
        source = self.source(name, side)
        return [source / SERVERS[name].real, *([self.build_folder / "libprudence.so"] if side == "prudence" else [])]

    def why_not(self, name, side):
        if not shutil.which("dnsperf"):
            return "dnsperf is not installed (tools/setup --programs)"
        source = self.source(name, side)
        if not source or not (source / SERVERS[name].real).exists():
            return self.problems.get((name, side), "it is not built (lab/reproduce/evaluate --build-servers)")
        return None

    # -------------------------------------------------------------------------------------------------------- building

    def environment(self, side, prefix):
        compat = f"-I{self.root}/include/prudence/urcu-compat -I{self.root}/include"
        mine = f"-L{self.build_folder} -lprudence -Wl,-rpath,{self.build_folder}"
        libraries = {"knot": {"liburcu": "-lurcu", "prudence": mine},
                     "bind": {"liburcu": "-lurcu-cds -lurcu-memb -lurcu-common", "prudence": f"-lurcu-cds -lurcu-common {mine}"}}
        name = "liburcu" if prefix == "knot" else "LIBURCU"
        return {"CFLAGS": FLAGS, f"{name}_CFLAGS": compat if side == "prudence" else " ", f"{name}_LIBS": libraries[prefix][side]}

    def build(self, names):
        """Builds the missing servers. A server that fails is skipped, with the reason."""
        for name in names:
            for side in SIDES:
                source = self.source(name, side)
                if source and (source / SERVERS[name].real).exists():
                    continue
                print(f"evaluate: building {name} with {side}", flush=True)
                problem = self.build_one(SERVERS[name], side)
                if problem:
                    self.problems[name, side] = problem
                    print(f"evaluate: {name} with {side}: {problem}", flush=True)

    def build_one(self, server, side):
        """Why it failed, or None."""
        clean = fetch(self.output / f"{server.name}-source", server.package, server.suite, server.suite is not None)
        if not clean:
            return f"no source of {server.package} (apt-get source {server.package})"
        folder = self.output / f"{server.name}-{side}"
        if not self.source(server.name, side):
            shutil.copytree(clean, folder / clean.name, symlinks=True)
        source, log = self.source(server.name, side), self.output / f"{server.name}-{side}.log"
        environment = self.environment(side, server.name)
        done = urcu_knot.build(source, environment, log) if server.name == "knot" else build_bind(source, environment, log)
        return None if done else f"it cannot be built here, see {log} ({server.packages})"

    # ------------------------------------------------------------------------------------------------------- measuring

    def start(self, name, side, folder, port):
        (folder / "db").mkdir()
        (folder / "zone").write_text(zone_file())
        configuration = folder / "conf"
        configuration.write_text((KNOT_CONF if name == "knot" else NAMED_CONF).format(folder=folder, port=port, zone=ZONE))
        command = [self.program(name, side), "-c", configuration, *(["-f"] if name == "bind" else [])]
        log = open(folder / "stderr", "w")  # the server's, until it ends
        return subprocess.Popen(command, stderr=log, stdout=log, cwd=folder)

    def check_library(self, pid, side):
        maps = Path(f"/proc/{pid}/maps").read_text()
        ours, theirs = "libprudence.so" in maps, re.search(r"liburcu(-memb|-qsbr|-mb|-bp)?\.so", maps)
        if ours != (side == "prudence") or bool(theirs) == ours:
            raise Failed("it does not use the grace periods that it should")

    def load(self, server, port, folder, seconds, updates=None):
        """Returns the output of dnsperf, which runs while `updates` are made."""
        (folder / "queries").write_text(queries())
        with open(folder / "answers", "w") as out:
            client = subprocess.Popen(["dnsperf", "-s", "127.0.0.1", "-p", str(port), "-d", folder / "queries", "-l", str(seconds), "-c", "4",
                                       "-q", str(OPEN_QUERIES), "-v"], stdout=out, stderr=subprocess.STDOUT)
            try:
                while client.poll() is None and server.poll() is None:
                    updates.make_one() if updates else time.sleep(0.05)
            finally:
                client.kill() if server.poll() is not None else client.wait(PATIENCE)
        if server.poll() is not None:
            raise Failed(f"the server ended: {(folder / 'stderr').read_text()[-500:]}")
        return (folder / "answers").read_text()

    def measure(self, name, side, seconds):
        with tempfile.TemporaryDirectory() as place:
            folder, port = Path(place), free_port()
            server = self.start(name, side, folder, port)
            try:
                wait_until_ready(server, port, folder)
                self.check_library(server.pid, side)
                cpu = cpu_seconds(server.pid)
                alone = self.load(server, port, folder, seconds)
                cpu, updates = cpu_seconds(server.pid) - cpu, Updates(port)
                updated = self.load(server, port, folder, seconds, updates)
                found = figures_of(alone, cpu, updated, updates, peak_bytes(server.pid))
            finally:
                server.send_signal(signal.SIGTERM)
                try:
                    server.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    server.kill()
                    server.wait()
        title = {"knot": "Knot DNS", "bind": "BIND"}[name]
        return {"program": "server", "versions": {title: self.source(name, side).name.partition("-")[2]},
                "rows": [{"load": title, "subject": side, "figures": found}]}


def wait_until_ready(server, port, folder):
    """An update succeeds."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        try:
            updates = Updates(port)
            updates.link.settimeout(0.2)
            updates.make_one()
            if updates.seconds:
                return
        except (Failed, OSError):
            pass
        time.sleep(0.1)
    raise Failed(f"the server is not ready after {PATIENCE} s: {(folder / 'stderr').read_text()[-500:]}")


def build_bind(source, environment, log):
    off = ["--disable-doh", "--without-libxml2", "--without-json-c", "--without-lmdb", "--without-maxminddb", "--disable-geoip", "--disable-dnstap",
           "--without-gssapi", "--without-libidn2", "--without-jemalloc", "--disable-static", "--with-liburcu=membarrier"]
    steps = [["sh", "-c", "test -x configure || autoreconf -fi"], ["./configure", *off], ["make", "bind.keys.h"],
             ["make", "-j2", "-C", "lib"], ["make", "-j2", "-C", "bin/named"]]
    with open(log, "w") as out:
        return all(subprocess.run(step, cwd=source, env=os.environ | environment, stdout=out, stderr=out, check=False).returncode == 0 for step in steps)
