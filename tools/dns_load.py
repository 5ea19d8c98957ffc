# SPDX-License-Identifier: MIT
"""A zone, a client that changes it by dynamic updates, and dnsperf's output about queries: the load that measures DNS servers (lab/reproduce/evaluate
and lab/adopt/run)."""

import os
import re
import socket
import struct
import time
from pathlib import Path

ZONE, HOSTS = "example.test", 5000


class Failed(Exception):
    """A server that cannot be built or measured; the text says why."""


def zone_file(hosts=HOSTS):
    lines = ["$TTL 60", f"@ IN SOA ns.{ZONE}. admin.{ZONE}. 1 3600 3600 6000 60", f"@ IN NS ns.{ZONE}.", "ns IN A 127.0.0.1"]
    return "\n".join([f"$ORIGIN {ZONE}.", *lines, *(f"h{i} IN A 10.{i >> 16}.{i >> 8 & 255}.{i & 255}" for i in range(hosts))]) + "\n"


def queries(hosts=HOSTS):
    """dnsperf's input: each name once, scattered."""
    return "".join(f"h{i * 2741 % hosts}.{ZONE} A\n" for i in range(hosts))


KNOT_CONF = """server:
  rundir: {folder}
  listen: 127.0.0.1@{port}
  udp-workers: 1
  tcp-workers: 1
database:
  storage: {folder}/db
log:
  - target: stderr
    any: error
acl:
  - id: local
    address: 127.0.0.1
    action: update
template:
  - id: default
    storage: {folder}
    zonefile-sync: -1
    journal-content: none
    zonefile-load: whole
zone:
  - domain: {zone}
    file: zone
    acl: local
"""
NAMED_CONF = """options {{
  directory "{folder}"; pid-file none; session-keyfile none; recursion no; dnssec-validation no;
  listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
}};
controls {{ }};
zone "{zone}" {{ type primary; file "zone"; allow-update {{ 127.0.0.1; }}; notify no; }};
"""


# ------------------------------------------------------------------------------------------------------ dynamic updates

def wire_name(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"


def update_message(identity, host, address):
    """RFC 2136: the addresses of that host are replaced by this one."""
    name = wire_name(f"{host}.{ZONE}")
    zone = wire_name(ZONE) + struct.pack(">HH", 6, 1)
    delete = name + struct.pack(">HHIH", 1, 255, 0, 0)
    add = name + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton(address)
    return struct.pack(">HHHHHH", identity, 5 << 11, 1, 0, 2, 0) + zone + delete + add


class Updates:
    """Makes one update after the other, and keeps the time of each."""

    def __init__(self, port):
        self.link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.link.settimeout(2)
        self.link.connect(("127.0.0.1", port))
        self.number, self.seconds, self.lost = 0, [], 0

    def make_one(self):
        identity = self.number & 65535
        self.number += 1
        begun = time.monotonic()
        self.link.send(update_message(identity, f"u{self.number % 1000}", f"10.1.{self.number >> 8 & 255}.{self.number & 255}"))
        while True:
            try:
                answer = self.link.recv(4096)
            except OSError:
                self.lost += 1
                return
            if answer[:2] == struct.pack(">H", identity):
                break
        if answer[3] & 15:
            raise Failed(f"an update was refused with code {answer[3] & 15}")
        self.seconds.append(time.monotonic() - begun)


# ------------------------------------------------------------------------------------------------------- the process

def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpu_seconds(pid):
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def status_bytes(pid, field):
    """VmRSS or VmHWM, for example."""
    return 1024 * int(re.search(rf"{field}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


def peak_bytes(pid):
    return status_bytes(pid, "VmHWM")


def latencies_of(text):
    """Reads the output of dnsperf -v, in microseconds: one line for each answer."""
    return sorted(1e6 * float(found) for found in re.findall(r"^> NOERROR \S+ \S+ ([0-9.]+)$", text, re.M))


def number_of(text, name):
    found = re.search(rf"^ *{name}: +([0-9.]+)", text, re.M)
    if not found:
        raise Failed(f"dnsperf does not say '{name}': {text[-300:]}")
    return float(found[1])
