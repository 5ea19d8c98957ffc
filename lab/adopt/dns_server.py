# SPDX-License-Identifier: MIT
"""A server for DNS that is measured and tested on both sides: it runs in a folder of its own, is asked by dnsperf and changed by dynamic updates."""

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
from adopt.memory import Readings, growth
from adopt.program import NOBODY, Failed, Measure

HOSTS = 50_000
QUERIES = 2000            # per second
UPDATES = 50              # per second, where both sides make as many
LONG_QUERIES, LONG_UPDATES = 100, 20  # per second of an hour
OPEN_QUERIES = 20
QUIET = 2                 # seconds, before memory is read
PATIENCE = 30             # seconds in which the server has to be ready, or to end
MEMORY = "/dev/shm"       # a disk would dominate the measurement, because a journal is synchronized for each update
READINGS = 0.1            # seconds between two of memory


USES = ("dns_server.py", "memory.py", "../../tools/dns_load.py")  # the files that results depend on, as Program.uses
MEASURES = (Measure("p999_us", f"p99.9 of queries, {UPDATES} updates per s", "µs", better="less"),
            Measure("cpu_ms", "CPU time meanwhile, per s", "ms", better="less"),
            Measure("update_us", "an update, one after the other", "µs", better="less"),
            Measure("update_p99_us", "p99 of updates", "µs", better="less"),
            Measure("storm_p999_us", "p99.9 of queries meanwhile", "µs", better="less"),
            Measure("growth", "memory, second half of these updates", "%", better="less"))
LONG_LOAD = f"{LONG_UPDATES} updates and {LONG_QUERIES} queries per s"


def dropin_flags(side):
    """Returns the flags that compile and link a program for liburcu on our drop-in."""
    compat, cflags, libs = (side.run(["pkg-config", *words]).strip() for words in
                            (("--cflags-only-I", "prudence-urcu"), ("--cflags", "prudence"), ("--libs", "prudence")))
    return f"{compat} {cflags}", libs


class Updates(dns_load.Updates):
    def make_one(self):
        """Makes an update. A refused update fails only its own round or check."""
        try:
            super().make_one()
        except dns_load.Failed as error:
            raise Failed(str(error)) from None


class Server:
    """Until the end of the with block. Another class says which program it is: program, configuration, listens."""

    program = ""             # in the source's folder
    configuration = ""       # of dns_load
    arguments = ()

    def __init__(self, side, hosts=HOSTS, user=None, zones=True, environment=None):
        self.side, self.hosts, self.user, self.zones, self.environment = side, hosts, user, zones, environment or {}

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY if os.path.isdir(MEMORY) else None)))
            self.port = dns_load.free_port()
            (self.folder / "db").mkdir()
            (self.folder / "zone").write_text(dns_load.zone_file(self.hosts))
            (self.folder / "queries").write_text(dns_load.queries(self.hosts))
            self.configure(self.zones)
            if self.user:
                for path in (self.folder, *self.folder.iterdir()):
                    os.chown(path, self.user, self.user)
            log = stack.enter_context(open(self.folder / "stderr", "w"))
            self.process = subprocess.Popen(self.side.watched([self.side.source / self.program, "-c", self.folder / "conf", *self.arguments]), stderr=log,
                                            stdout=log, cwd=self.folder, env=self.side.environment | self.environment, user=self.user, group=self.user,
                                            extra_groups=[] if self.user else None)
            stack.callback(self.end)
            self.wait_until_ready() if self.zones else self.wait_until(self.listens, "does not listen")
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        self.stack.close()

    @property
    def pid(self):
        """Returns the id of the server itself, which is the only child of the watching process."""
        if not self.side.reports:
            return self.process.pid
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        if len(children) != 1:
            raise Failed(f"{self.program} is watched, and has {len(children)} processes")
        return int(children[0])

    def listens(self):
        raise NotImplementedError

    def reload(self):
        """Makes the server read its configuration again, which may name more zones."""
        raise NotImplementedError

    def load_again(self):
        """Makes the server read the zone again, if it can, and free the old one."""
        self.reload()

    def end(self):
        """Its status. Negative: the signal that ended it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failed(f"{self.program} did not end within {PATIENCE} s") from None

    def said(self):
        return (self.folder / "stderr").read_text()

    def configure(self, zones):
        whole = self.configuration.format(folder=self.folder, port=self.port, zone=dns_load.ZONE)
        (self.folder / "conf").write_text(whole if zones else whole.partition("\nzone")[0] + "\n")

    def wait_until(self, ready, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(Failed):
                if ready():
                    return
            time.sleep(0.1)
        ended = f"ended with {self.process.returncode}" if self.process.poll() is not None else f"{what} for {PATIENCE} s"
        raise Failed(f"{Path(self.program).name} {ended}: {self.said()[-500:]}")

    def ask(self, *options):
        return subprocess.run(["dnsperf", "-s", "127.0.0.1", "-p", str(self.port), "-d", self.folder / "queries", *options], capture_output=True,
                              text=True, check=False).stdout

    def wait_until_ready(self):
        """Waits until the server has read the zone. Makes no update, so that the first is the caller's."""
        self.wait_until(lambda: dns_load.latencies_of(self.ask("-n", "1", "-l", "1", "-Q", "10", "-v")), "does not answer")

    def under_queries(self, seconds, step, rate=QUERIES):
        """The answers' latencies in microseconds, while `step` is called over and over; `rate`: of questions, per second."""
        with tempfile.TemporaryFile("w+") as out:
            client = subprocess.Popen(["dnsperf", "-s", "127.0.0.1", "-p", str(self.port), "-d", self.folder / "queries", "-l", str(seconds), "-c", "4",
                                       "-q", str(OPEN_QUERIES), "-Q", str(rate), "-v"], stdout=out, stderr=subprocess.STDOUT)
            try:
                while client.poll() is None and self.process.poll() is None:
                    step()
            finally:
                client.kill() if self.process.poll() is not None else client.wait(PATIENCE)
            out.seek(0)
            found = dns_load.latencies_of(out.read())
        if self.process.poll() is not None:
            raise Failed(f"{Path(self.program).name} ended with {self.process.returncode}: {self.said()[-500:]}")
        if not found:
            raise Failed("dnsperf had no answers")
        return found


class Paced:
    """Makes an update when it is due, and else sleeps until then."""

    def __init__(self, updates, rate):
        self.updates, self.rate, self.next = updates, rate, time.monotonic()

    def __call__(self):
        self.next = max(self.next + 1 / self.rate, time.monotonic() - 1)
        time.sleep(max(0, self.next - time.monotonic()))
        self.updates.make_one()


# ---------------------------------------------------------------------------------------------------------- measuring

def p999(latencies):
    return latencies[len(latencies) * 999 // 1000]


def queries_of(server, seconds, step):
    """p99.9 of queries, and the server's CPU time for a second."""
    cpu, begun = dns_load.cpu_seconds(server.pid), time.monotonic()
    latencies = server.under_queries(seconds, step)
    return {"p999_us": p999(latencies), "cpu_ms": 1e3 * (dns_load.cpu_seconds(server.pid) - cpu) / (time.monotonic() - begun)}


def updates_of(server, seconds):
    """MEASURES: as many updates on both sides, and then one after the other."""
    updates = Updates(server.port)
    return queries_of(server, seconds, Paced(updates, UPDATES)) | storm_of(server, updates, seconds)


def memory_of(server):
    """Returns the peak of the server's memory, and its memory after a quiet time."""
    peak = dns_load.peak_bytes(server.pid)
    time.sleep(QUIET)
    return {"peak_mb": peak / 1e6, "after_mb": dns_load.status_bytes(server.pid, "VmRSS") / 1e6}


def storm_of(server, updates, seconds):
    """Makes one update after the other. Updates that were lost before count, too."""
    updates.seconds.clear()
    memory = Readings(server.pid, READINGS)

    def step():
        updates.make_one()
        memory.take()

    latencies = server.under_queries(seconds, step)
    times = sorted(updates.seconds)
    if len(memory.bytes) < 2 or updates.lost:
        raise Failed(f"{len(times)} updates, {updates.lost} lost")
    return {"update_us": 1e6 * statistics.mean(times), "update_p99_us": 1e6 * times[len(times) * 99 // 100],
            "storm_p999_us": p999(latencies), "growth": growth(memory.bytes)}


def endured(server, seconds):
    """LONG_LOAD, as Program.endure."""
    updates, memory = Updates(server.port), Readings(server.pid, 1)
    make_due = Paced(updates, LONG_UPDATES)

    def step():
        make_due()
        memory.take()

    server.under_queries(seconds, step, LONG_QUERIES)
    if updates.lost > len(updates.seconds) // 100:
        raise Failed(f"{len(updates.seconds)} updates, {updates.lost} lost")
    return memory.bytes, len(updates.seconds)


# ------------------------------------------------------------------------------------------------------------ testing

def threads_refused(server):
    """Lets the server make no further thread, before the zone is loaded. The server lives, and updates go on. `server` runs without zones, as
    NOBODY."""
    subprocess.run(["prlimit", "--pid", str(server.pid), "--nproc=1"], user=NOBODY, group=NOBODY, extra_groups=[], check=True)
    server.configure(zones=True)
    server.reload()
    server.wait_until_ready()
    updates = Updates(server.port)
    server.under_queries(2, updates.make_one)
    if updates.lost or len(updates.seconds) < 10:
        raise Failed(f"{len(updates.seconds)} updates were answered, {updates.lost} were not")


def nothing_left(server):
    """After a clean end no object is live. Without our library there is only the end. `server` has the option stats=1."""
    updates = Updates(server.port)
    for _ in range(200):
        updates.make_one()
    server.load_again()
    status = server.end()
    if status:
        raise Failed(f"{Path(server.program).name} ended with {status}")
    live = re.search(r"^objects_live +(\d+)$", server.said(), re.M)
    if server.side.patched and (not live or int(live[1])):
        raise Failed(f"{live[1] if live else 'unknown'} objects are live at the end")


def checks(found, side, kind):
    """Adds both tests to the result of Program.tests. `kind`: a class of servers."""
    for name, check, how in (("threads refused", threads_refused, {"user": NOBODY, "zones": False}),
                             ("nothing left", nothing_left, {"environment": {"PRUDENCE_OPTIONS": "stats=1"}})):
        try:
            with kind(side, hosts=1000, **how) as server:
                check(server)
            found["passed"] += 1
        except Failed as error:
            found["failed"].append(f"{name} ({str(error).partition(':')[0]})")
    return found
