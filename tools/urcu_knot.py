# SPDX-License-Identifier: MIT
"""Knot DNS, built from Debian's source against liburcu or against our headers; and a zone that is changed while clients ask for its names
(tools/test/urcu --knot)."""

import os
import random
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

NAMES = 5000
CONFIGURATION = """server:
  rundir: {0}
  listen: 127.0.0.1@{1}
  udp-workers: 2
  tcp-workers: 1
database:
  storage: {0}/db
log:
  - target: stderr
    any: warning
template:
  - id: default
    storage: {0}
    zonefile-sync: -1
    journal-content: none
    zonefile-load: whole
zone:
  - domain: example.test
    file: zone
"""


def unit_tests(source):
    """Runs the unit tests of the server: zones, updates, queries, workers, configuration."""
    return [f"knot/{path.stem}" for path in sorted((source / "tests/knot").glob("test_*.c"))]


def build(source, environment, log, tests=False):
    """Configured and compiled in its source folder, with liburcu_CFLAGS and liburcu_LIBS of `environment`; false when that fails."""
    off = ["documentation", "fastparser", "dnstap", "maxminddb", "xdp", "quic", "dbus", "systemd",
           "static"]
    steps = [["./configure", *(f"--disable-{name}" for name in off), "--with-module-dnstap=no",
              "--without-libnghttp2"], ["make", "-j2"]]
    if (source / "config.status").exists():
        del steps[0]
    if tests:
        steps.append(["make", "-j2", "-C", "tests", "libtap.la", *unit_tests(source)])
    with open(log, "w") as out:
        return all(subprocess.run(step, cwd=source, env=os.environ | environment, stdout=out,
                                  stderr=out).returncode == 0 for step in steps)


def question(name, identity):
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack(">HHHHHH", identity, 0, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", 1, 1)


class Client(threading.Thread):
    """Asks for names whose addresses it knows, until it is asked to stop."""

    def __init__(self, port, number):
        super().__init__()
        self.port, self.random = port, random.Random(number)
        self.good = self.wrong = self.lost = 0
        self.stop = False

    def run(self):
        link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        link.settimeout(2)
        link.connect(("127.0.0.1", self.port))
        while not self.stop:
            number, identity = self.random.randrange(NAMES), self.random.randrange(65536)
            try:
                link.send(question(f"h{number}.example.test", identity))
                answer = link.recv(4096)
            except OSError:
                self.lost += 1
                continue
            if answer[:2] != struct.pack(">H", identity):
                continue  # of one that was given up
            known = bytes([10, 0, number >> 8, number & 255])
            ok = answer[3] & 15 == 0 and answer.endswith(known)
            self.good += ok
            self.wrong += not ok


def change_zone(control, number):
    """Makes one transaction. Every tenth time, the zone is loaded anew as well."""
    commands = [["zone-begin", "example.test"], ["zone-unset", "example.test", "gen", "TXT"],
                ["zone-set", "example.test", "gen", "60", "TXT", f'"{number}"'],
                ["zone-commit", "example.test"]]
    if number % 10 == 9:
        commands.append(["zone-reload", "example.test"] if number % 20 == 9 else ["reload"])
    for command in commands:
        ran = subprocess.run(control + command, capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(f"knotc {' '.join(command)}: {ran.stdout}{ran.stderr}")


def serve(source, folder, seconds):
    (folder / "db").mkdir(parents=True, exist_ok=True)
    zone = ["$ORIGIN example.test.", "$TTL 60", "@ SOA ns admin 1 60 60 600 60", "@ NS ns",
            "ns A 127.0.0.1", 'gen TXT "first"']
    zone += [f"h{i} A 10.0.{i >> 8}.{i & 255}" for i in range(NAMES)]
    (folder / "zone").write_text("\n".join(zone) + "\n")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "knot.conf").write_text(CONFIGURATION.format(folder, port))
    with open(folder / "stderr", "w") as log:
        server = subprocess.Popen([source / "src/knotd", "-c", folder / "knot.conf"], stderr=log)
    control = [str(source / "src/knotc"), "-s", str(folder / "knot.sock")]
    clients = [Client(port, number) for number in range(3)]
    changes, problems = 0, []
    try:
        for _ in range(100):
            if subprocess.run(control + ["status"], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        maps = Path(f"/proc/{server.pid}/maps").read_text()
        if "libprudence" not in maps or "liburcu" in maps:
            problems.append("it does not use libprudence, or uses liburcu as well")
        for client in clients:
            client.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end and server.poll() is None:
            change_zone(control, changes)
            changes += 1
    except (OSError, RuntimeError) as error:
        problems.append(str(error))
    for client in clients:
        client.stop = True
        if client.ident:
            client.join()
    server.terminate()
    if server.wait(30):
        problems.append(f"knotd ended with {server.returncode}")
    good, wrong, lost = (sum(getattr(client, name) for client in clients)
                         for name in ("good", "wrong", "lost"))
    if wrong or not good or not changes:
        problems.append("wrong or no answers, or no changes")
    if "prudence:" in (folder / "stderr").read_text():
        problems.append(f"a report of the library's: {folder}/stderr")
    print(f"test-urcu: knot: {good} answers, {wrong} wrong, {lost} lost, {changes} changes of the zone"
          + "".join(f"\n  {problem}" for problem in problems))
    return 1 if problems else 0
