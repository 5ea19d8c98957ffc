# SPDX-License-Identifier: MIT
"""Knot DNS: a zone of many names that clients ask for while it is changed by dynamic updates, and while it is loaded again and again."""

import contextlib
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import dns_load
import urcu_knot
from adopt.program import Failed, Measure, Program

HOSTS = 50_000
QUERIES = 2000            # per second
UPDATES = 50              # per second, where both sides make as many
OPEN_QUERIES = 20
RELOADS = 12
QUIET = 2                 # seconds, before memory is looked at
PATIENCE = 30             # seconds in which the server has to be ready, or to end
USER = 65534              # nobody: root may make threads without a limit
FLAGS = "-O2 -g -w"


class Server:
    """knotd with a zone of its own, until the end of the with block."""

    def __init__(self, side, hosts=HOSTS, user=None, zones=True, environment=None):
        self.side, self.hosts, self.user, self.zones, self.environment = side, hosts, user, zones, environment or {}

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            self.port = dns_load.free_port()
            (self.folder / "db").mkdir()
            (self.folder / "zone").write_text(dns_load.zone_file(self.hosts))
            (self.folder / "queries").write_text(dns_load.queries(self.hosts))
            self.configure(self.zones)
            if self.user:
                for path in (self.folder, *self.folder.iterdir()):
                    os.chown(path, self.user, self.user)
            log = stack.enter_context(open(self.folder / "stderr", "w"))
            self.process = subprocess.Popen([self.side.source / "src/knotd", "-c", self.folder / "conf"], stderr=log, stdout=log, cwd=self.folder,
                                            env=self.side.environment | self.environment, user=self.user, group=self.user,
                                            extra_groups=[] if self.user else None)
            self.pid = self.process.pid
            stack.callback(self.end)
            self.wait_until_ready() if self.zones else self.wait_until_it_listens()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        self.stack.close()

    def end(self):
        """Its status. Negative: the signal that ended it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failed(f"knotd did not end within {PATIENCE} s") from None

    def said(self):
        return (self.folder / "stderr").read_text()

    def control(self, *words):
        done = subprocess.run([self.side.source / "src/knotc", "-s", self.folder / "knot.sock", "-b", *words], env=self.side.environment,
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        if done.returncode:
            raise Failed(f"knotc {' '.join(words)}: {done.stdout}{done.stderr}; knotd: {self.said()[-500:]}")

    def configure(self, zones):
        whole = dns_load.KNOT_CONF.format(folder=self.folder, port=self.port, zone=dns_load.ZONE)
        (self.folder / "conf").write_text(whole if zones else whole.partition("\nzone:")[0] + "\n")

    def wait_until(self, ready, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(Failed):
                if ready():
                    return
            time.sleep(0.1)
        ended = f"ended with {self.process.returncode}" if self.process.poll() is not None else f"{what} for {PATIENCE} s"
        raise Failed(f"knotd {ended}: {self.said()[-500:]}")

    def wait_until_it_listens(self):
        self.wait_until(lambda: self.control("status") is None, "does not listen")

    def wait_until_ready(self):
        """It has read the zone. No update is made, so that the first is the caller's."""
        def answers():
            asked = subprocess.run(["dnsperf", "-s", "127.0.0.1", "-p", str(self.port), "-d", self.folder / "queries", "-n", "1", "-l", "1", "-Q", "10",
                                    "-v"], capture_output=True, text=True, check=False)
            return dns_load.latencies_of(asked.stdout)
        self.wait_until(answers, "does not answer")

    def under_queries(self, seconds, step):
        """The answers' latencies in microseconds, while `step` is called over and over."""
        with open(self.folder / "answers", "w") as out:
            client = subprocess.Popen(["dnsperf", "-s", "127.0.0.1", "-p", str(self.port), "-d", self.folder / "queries", "-l", str(seconds), "-c", "4",
                                       "-q", str(OPEN_QUERIES), "-Q", str(QUERIES), "-v"], stdout=out, stderr=subprocess.STDOUT)
            try:
                while client.poll() is None and self.process.poll() is None:
                    step()
            finally:
                client.kill() if self.process.poll() is not None else client.wait(PATIENCE)
        if self.process.poll() is not None:
            raise Failed(f"knotd ended with {self.process.returncode}: {self.said()[-500:]}")
        found = dns_load.latencies_of((self.folder / "answers").read_text())
        if not found:
            raise Failed("dnsperf had no answers")
        return found


class Paced:
    """Makes an update when it is due, and else sleeps until then."""

    def __init__(self, updates):
        self.updates, self.next = updates, time.monotonic()

    def __call__(self):
        self.next = max(self.next + 1 / UPDATES, time.monotonic() - 1)
        time.sleep(max(0, self.next - time.monotonic()))
        self.updates.make_one()


class Knot(Program):
    name, title, package, mark = "knot", "Knot DNS", "knot", "configure.ac"
    packages = ("libgnutls28-dev", "liblmdb-dev", "libedit-dev", "liburcu-dev", "pkg-config", "dnsperf")
    before = ("An update copies the parts of the zone's trie that it changes; call_rcu frees the old ones and lets the next update begin. Memory comes "
              "from malloc, which is trimmed each 10 MB of zones.")
    after = "The zone's tries, nodes and arrays come from our caches, old tries are deferred at once, nothing is trimmed; call_rcu is our drop-in's."
    measures = (Measure("p999_us", f"p99.9 of queries, {UPDATES} updates per s", "µs", better="less"),
                Measure("cpu_ms", "CPU time meanwhile, per s", "ms", better="less"),
                Measure("update_us", "an update, one after the other", "µs", better="less"),
                Measure("update_p99_us", "p99 of updates", "µs", better="less"),
                Measure("storm_p999_us", "p99.9 of queries meanwhile", "µs", better="less"),
                Measure("growth", "memory, second half of these updates", "%", better="less"),
                Measure("reload_ms", "the zone loaded again", "ms", better="less"),
                Measure("peak_mb", "peak memory of reloads", "MB", better="less"),
                Measure("after_mb", f"memory {QUIET} s after them", "MB", better="less"))

    def build(self, side):
        environment = side.environment | {"CFLAGS": FLAGS}
        if side.patched:
            flags = [side.run(["pkg-config", kind, "prudence"]).strip() for kind in ("--cflags", "--libs")]
            compat = side.run(["pkg-config", "--cflags-only-I", "prudence-urcu"]).strip()
            environment |= {"liburcu_CFLAGS": f"{compat} {flags[0]}", "liburcu_LIBS": flags[1]}
        if not urcu_knot.build(side.source, environment, side.folder / "build.log", tests=True):
            raise Failed(f"it cannot be built: {side.folder}/build.log")

    def tests(self, side):
        own = {name: ["env", "-C", "tests", "SOURCE=.", "BUILD=.", f"./{name}"] for name in urcu_knot.unit_tests(side.source)}
        found = side.tap(own, timeout=300)
        for name, check in (("threads refused", threads_refused), ("nothing left", nothing_left)):
            try:
                check(side)
                found["passed"] += 1
            except Failed as error:
                found["failed"].append(f"{name} ({str(error).partition(':')[0]})")
        return found

    def measure(self, side, seconds):
        with Server(side) as server:
            updates = dns_load.Updates(server.port)
            cpu, begun = dns_load.cpu_seconds(server.pid), time.monotonic()
            paced = server.under_queries(seconds, Paced(updates))
            found = {"p999_us": paced[len(paced) * 999 // 1000],
                     "cpu_ms": 1e3 * (dns_load.cpu_seconds(server.pid) - cpu) / (time.monotonic() - begun)}
            return found | storm_of(server, updates, seconds) | reloads_of(server)


def storm_of(server, updates, seconds):
    """One update after the other."""
    updates.seconds.clear()
    resident = []

    def step():
        updates.make_one()
        if updates.number % 32 == 0:
            resident.append(dns_load.status_bytes(server.pid, "VmRSS"))

    latencies = server.under_queries(seconds, step)
    times = sorted(updates.seconds)
    quarter = max(1, len(resident) // 4)
    if len(resident) < 2 or updates.lost:
        raise Failed(f"{len(times)} updates, {updates.lost} lost")
    # the third quarter and the last, each with its highest
    early, late = max(resident[2 * quarter:3 * quarter] or resident), max(resident[-quarter:])
    return {"update_us": 1e6 * statistics.mean(times), "update_p99_us": 1e6 * times[len(times) * 99 // 100],
            "storm_p999_us": latencies[len(latencies) * 999 // 1000], "growth": 100 * (late / early - 1)}


def reloads_of(server):
    """The zone is read from its file again, whole; each time a whole zone is freed."""
    begun = time.monotonic()
    for _ in range(RELOADS):
        server.control("zone-reload", dns_load.ZONE)
    took = time.monotonic() - begun
    peak = dns_load.peak_bytes(server.pid)
    time.sleep(QUIET)
    return {"reload_ms": 1e3 * took / RELOADS, "peak_mb": peak / 1e6, "after_mb": dns_load.status_bytes(server.pid, "VmRSS") / 1e6}


def threads_refused(side):
    """The system makes no further thread before the first callback, which the zone's loading queues: the server lives, and updates go on."""
    with Server(side, hosts=1000, user=USER, zones=False) as server:
        subprocess.run(["prlimit", "--pid", str(server.pid), "--nproc=1"], user=USER, group=USER, extra_groups=[], check=True)
        server.configure(zones=True)
        server.control("reload")
        server.wait_until_ready()
        updates = dns_load.Updates(server.port)
        server.under_queries(2, updates.make_one)
        if updates.lost or len(updates.seconds) < 10:
            raise Failed(f"{len(updates.seconds)} updates were answered, {updates.lost} were not")


def nothing_left(side):
    """After a clean end no object is live. Without our library there is only the end."""
    with Server(side, hosts=1000, environment={"PRUDENCE_OPTIONS": "stats=1"}) as server:
        updates = dns_load.Updates(server.port)
        for _ in range(200):
            updates.make_one()
        server.control("zone-reload", dns_load.ZONE)
        status = server.end()
        if status:
            raise Failed(f"knotd ended with {status}")
        live = re.search(r"^objects_live +(\d+)$", server.said(), re.M)
        if side.patched and (not live or int(live[1])):
            raise Failed(f"{live[1] if live else 'unknown'} objects are live at the end")


PROGRAM = Knot()
