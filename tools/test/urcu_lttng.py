# SPDX-License-Identifier: MIT
"""LTTng's session daemon as a user of liburcu's interface, for tools/test/urcu.

The daemon and its consumer keep all they know in liburcu's hash tables, read it in RCU's sections and free it
by call_rcu. They are built from Debian's source on our headers (the hash tables stay liburcu-cds's, the tracer
in the applications is Debian's liblttng-ust). Clients then make sessions, let an application of LTTng's own
tests be traced, rotate, list and destroy them, all at once, and read each trace: every event of the application
must be there, in order.
"""

import os
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path

CLIENTS = 3
EVENTS = 2000  # of each application


def build(source, folder, flags, libraries, log):
    """Configured and compiled in its source folder; false when that fails."""
    environment = dict(os.environ, CFLAGS="-O1 -w", LDFLAGS=libraries.replace("-lprudence", ""),
                       URCU_CFLAGS=flags, URCU_LIBS=libraries,
                       URCU_BP_CFLAGS=flags, URCU_BP_LIBS=libraries,
                       URCU_CDS_CFLAGS=flags, URCU_CDS_LIBS="-lurcu-cds -lurcu-common")
    rundir = f"{folder}/.lttng"  # where an application searches for the daemon by LTTNG_HOME, whoever runs it
    off = ["man-pages", "python-bindings", "extras", "static", "Werror", "bin-lttng-crash"]
    steps = [["./configure", *(f"--disable-{name}" for name in off), "--without-kmod",
              f"--with-lttng-system-rundir={rundir}"]]
    configured = source / "include/config.h"
    if configured.exists() and f'"{rundir}"' in configured.read_text():
        steps = []
    steps += [["make", "-j2", "-C", part] for part in
              ("include", "src", "tests/utils/tap", "tests/unit")]
    steps += [["make", "-j2", "-C", "tests/utils", "libtestutils.la"],
              ["make", "-j2", "-C", "tests/utils/testapp/gen-ust-events"]]
    with open(log, "w") as out:
        return all(subprocess.run(step, cwd=source, env=environment, stdout=out,
                                  stderr=out).returncode == 0 for step in steps)


def unit_tests(source):
    """Its unit tests, which the build has compiled."""
    return sorted(path.with_suffix("") for path in (source / "tests/unit").glob("test_*.c")
                  if path.with_suffix("").exists())


class Client(threading.Thread):
    """Makes sessions, has an application traced in each and checks the trace, until it is asked to stop."""

    def __init__(self, source, folder, environment, number):
        super().__init__()
        self.source, self.folder, self.environment, self.number = source, folder, environment, number
        self.sessions = self.events = 0
        self.problem = None
        self.stop = False

    def command(self, *words):
        ran = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=120)
        if ran.returncode:
            raise RuntimeError(f"{' '.join(map(str, words))}: {ran.stdout}{ran.stderr}")
        return ran.stdout

    def lttng(self, *words):
        return self.command(self.source / "src/bin/lttng/lttng", "--no-sessiond", *words)

    def session(self):
        name = f"session-{self.number}-{self.sessions}"
        trace = self.folder / name
        self.lttng("create", name, f"--output={trace}")
        self.lttng("enable-channel", "-u", "-s", name, "--blocking-timeout=inf", "all")
        self.lttng("enable-event", "-u", "-s", name, "-c", "all", "tp:tptest")
        self.lttng("add-context", "-u", "-s", name, "-c", "all", "-t", "vpid")
        self.lttng("start", name)
        application = subprocess.Popen(
            [self.source / "tests/utils/testapp/gen-ust-events/gen-ust-events", "-i", str(EVENTS)],
            env=self.environment, stdout=subprocess.DEVNULL)
        self.lttng("rotate", name)
        if name not in self.lttng("list", name):
            raise RuntimeError(f"lttng list does not know {name}")
        if application.wait(120):
            raise RuntimeError(f"the traced application ended with {application.returncode}")
        self.lttng("stop", name)
        self.lttng("destroy", name)
        seen = [int(number) for number in re.findall(
            rf"vpid = {application.pid} .*? intfield = (\d+)", self.command("babeltrace2", trace))]
        if seen != list(range(EVENTS)):
            raise RuntimeError(f"{trace}: {len(seen)} events of {EVENTS}, or not in order")
        self.events += len(seen)
        shutil.rmtree(trace)

    def run(self):
        while not self.stop:
            try:
                self.session()
            except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
                self.problem = str(error)
                return
            self.sessions += 1


def daemons(source):
    """The process ids of the session daemon and its consumers."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            program = Path(os.readlink(process / "exe"))
        except OSError:
            continue
        if source in program.parents and re.search("lttng-(sessiond|consumerd)$", program.name):
            found.append(process)
    return found


def serve(source, folder, seconds):
    shutil.rmtree(folder, ignore_errors=True)
    (folder / ".lttng").mkdir(parents=True)
    consumer = source / "src/bin/lttng-consumerd/lttng-consumerd"
    environment = dict(os.environ, LTTNG_HOME=str(folder), LTTNG_CONSUMERD64_BIN=str(consumer),
                       LTTNG_SESSION_CONFIG_XSD_PATH=str(source / "src/common/config"),
                       LTTNG_UST_REGISTER_TIMEOUT="60000", LTTNG_UST_ALLOW_BLOCKING="1")
    with open(folder / "stderr", "w") as log:
        server = subprocess.Popen([source / "src/bin/lttng-sessiond/lttng-sessiond", "--no-kernel"],
                                  env=dict(environment, PRUDENCE_OPTIONS="stats=1"), stderr=log)
    clients = [Client(source, folder, environment, number) for number in range(CLIENTS)]
    problems = []
    for _ in range(200):
        if list((folder / ".lttng").glob("client-lttng-sessiond")) or server.poll() is not None:
            break
        time.sleep(0.1)
    for client in clients:
        client.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.poll() is None:
        time.sleep(0.2)
    mapped = [(process / "maps").read_text() for process in daemons(source)]
    if len(mapped) < 2:
        problems.append("the daemon or its consumer does not run")
    if not all("libprudence" in text for text in mapped):
        problems.append("a daemon does not use libprudence")
    if any(re.search(r"/liburcu(?!-cds|-common)", text) for text in mapped):
        problems.append("a daemon uses liburcu's grace periods as well")
    for client in clients:
        client.stop = True
    for client in clients:
        client.join()
        if client.problem:
            problems.append(client.problem)
    server.terminate()
    try:
        if server.wait(60):
            problems.append(f"lttng-sessiond ended with {server.returncode}")
    except subprocess.TimeoutExpired:
        server.kill()
        problems.append("lttng-sessiond did not end")
    text = (folder / "stderr").read_text()
    periods = [int(number) for number in re.findall(r"^grace_periods +(\d+)", text, re.M)]
    if re.search("prudence: (?!statistics)", text):
        problems.append(f"a report of the library's: {folder}/stderr")
    sessions, events = (sum(getattr(client, name) for client in clients) for name in ("sessions", "events"))
    if not sessions or not sum(periods):
        problems.append("no sessions, or no grace periods of ours")
    print(f"test-urcu: lttng: {sessions} sessions whose trace held all events, in order ({events} events); "
          f"{sum(periods)} grace periods" + "".join(f"\n  {problem}" for problem in problems))
    return 1 if problems else 0
