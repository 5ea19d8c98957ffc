# SPDX-License-Identifier: MIT
"""Memory of a process over a time: read at equal distances, and how much it grew at last."""

import time

import dns_load


class Readings:
    """`bytes`: one reading for each `every` seconds in which `take` was called."""

    def __init__(self, pid, every):
        self.pid, self.every, self.begun, self.bytes = pid, every, time.monotonic(), []

    def take(self):
        if time.monotonic() - self.begun >= self.every * len(self.bytes):
            self.bytes.append(dns_load.status_bytes(self.pid, "VmRSS"))


def growth(readings):
    """Returns the growth in the second half, in per cent, by the highest value of each of the last two quarters."""
    quarter = max(1, len(readings) // 4)
    early, late = max(readings[2 * quarter:3 * quarter] or readings), max(readings[-quarter:])
    return 100 * (late / early - 1)
