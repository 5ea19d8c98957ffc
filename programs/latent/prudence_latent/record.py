# SPDX-License-Identifier: MIT
"""The file that the shim writes: the layout of programs/latent/shim/layout.h."""

import struct
from array import array

MAGIC, VERSION = 0x746e6574616c7270, 3
PARTS, SITES, SLOTS, BUCKETS = 16, 512, 131072, 256
HEAD = struct.Struct("<16Q256s")
SITE = struct.Struct("<QIIQ16s232s")
USE = struct.Struct("<6Q")
PART_BYTES = 8 * 2 * BUCKETS + USE.size * SITES + 16 * SLOTS
KINDS = ("", "call", "synchronize", "barrier", "defer", "reclaim", "internal")


class BadRecord(Exception):
    """No file of the shim, or not of this version."""


class Site:
    def __init__(self, packed, uses):
        self.place, kind, named, offset, function, file = SITE.unpack(packed)
        self.kind = KINDS[kind] if kind < len(KINDS) else ""
        self.function = function.rstrip(b"\0").decode("ascii", "replace")
        self.file = file.rstrip(b"\0").decode("utf-8", "surrogateescape") if named else ""
        self.offset = offset
        self.calls, self.ended, self.waited, self.bytes, self.refused = (sum(use[i] for use in uses) for i in (0, 1, 2, 4, 5))
        self.most = max(use[3] for use in uses)


class Head:
    """The first part of the file of a process. Most of the file is empty if nothing was `seen`, and is not read then."""

    def __init__(self, data):
        if len(data) < HEAD.size:
            raise BadRecord("its head is not there")
        magic, version, self.process, self.parent, self.began, self.slot_ns, seen, self.untracked, own_free, self.waiting, *_, program = HEAD.unpack_from(data)
        if (magic, version) != (MAGIC, VERSION):
            raise BadRecord("no file of this version")
        self.seen, self.own_free = bool(seen), bool(own_free)
        self.program = program.rstrip(b"\0").decode("utf-8", "surrogateescape")


class Record(Head):
    """All of it."""

    def __init__(self, data):
        super().__init__(data)
        whole = HEAD.size + SITE.size * SITES + PART_BYTES * PARTS
        if len(data) != whole:
            raise BadRecord(f"{len(data)} bytes instead of {whole}")
        self.parts = [data[at:at + PART_BYTES] for at in range(HEAD.size + SITE.size * SITES, whole, PART_BYTES)]
        self.waits, self.sleeps = ([sum(column) for column in zip(*(array64(part[at:at + 8 * BUCKETS]) for part in self.parts))]
                                   for at in (0, 8 * BUCKETS))
        self.sites = self._sites(data)

    def _sites(self, data):
        uses = [list(USE.iter_unpack(part[16 * BUCKETS:16 * BUCKETS + USE.size * SITES])) for part in self.parts]
        packed = [data[at:at + SITE.size] for at in range(HEAD.size, HEAD.size + SITE.size * SITES, SITE.size)]
        found = [Site(one, [use[i] for use in uses]) for i, one in enumerate(packed)]
        return [site for site in found if (site.calls or site.ended) and site.kind != "internal"]

    def slots(self, until):
        """(callbacks, bytes) that waited at the end of each slot of time before `until` (ns since the start)."""
        count = min(SLOTS, int(until // self.slot_ns) + 1)
        change = [0] * count, [0] * count
        for part in self.parts:
            both = array64(part[-16 * SLOTS:][:16 * count], "q")
            if any(both):
                for which in (0, 1):
                    for i, value in enumerate(both[which::2]):
                        change[which][i] += value
        return tuple(running(one) for one in change)


def array64(data, kind="Q"):
    found = array(kind)
    found.frombytes(bytes(data))
    return found


def running(values):
    total, found = 0, []
    for value in values:
        total += value
        found.append(total)
    return found


def read(path):
    """A Record, or only its Head: nothing was seen."""
    with open(path, "rb") as file:
        head = Head(file.read(HEAD.size))
        if not head.seen:
            return head
        file.seek(0)
        return Record(memoryview(file.read()))
