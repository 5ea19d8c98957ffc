# SPDX-License-Identifier: MIT
"""Mutations for test_fuzz.py, and a process that was recorded: the memory that a sample and commands read, to be read again when it
is gone, and with anything else in it."""

import os
import struct

from prudence_watch import commands
from prudence_watch.figures import Watch
from prudence_watch.memory import Memory, Target
from prudence_watch.process import LiveMemory, Modules, Process

COMMANDS = (commands.dump, commands.caches, commands.counters, commands.walk, commands.latent, commands.readers, commands.domains)

NUMBERS = (0, 1, 2, 3, 7, 8, 255, 256, 4095, 4096, 65535, 65536, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 47) - 8, (1 << 63) - 8, (1 << 63) - 1,
           1 << 63, (1 << 64) - 8, (1 << 64) - 1, 1 << 64, 10 ** 19, 10 ** 30)
PIECES = (b"", b" ", b"\n", b"\0", b"\r", b"\x1b[31m", b"\xc2\x9b", b"\xe2\x80\xae", b"\xff", b"-1", b"+1", b"1_0", b"0x10", b"1e9", b"nan", b"\xd9\xa1", b"{", b"[" * 50,
          b'"', b'"\\ud800"', b'{"a":1}', b"null", b"end", b"mappings", b"a" * 300, b"/", b"/dev/zero", b"/proc/self/mem", b"/dev/tty", b":", b"=" * 3)


def number(draw):
    """Returns a value that a reader may not expect."""
    return draw.choice(NUMBERS) if draw.random() < 0.8 else draw.getrandbits(draw.choice((8, 16, 32, 48, 64)))


def mutated_line(draw, line):
    """Changes, removes or doubles a word of the line."""
    words = line.split(b" ")
    at, kind = draw.randrange(len(words)), draw.randrange(6)
    if kind == 0:
        words[at] = b"%d" % number(draw)
    elif kind == 1:
        words[at] = b"%x" % number(draw)
    elif kind == 2:
        words[at] = draw.choice(PIECES)
    elif kind == 3:
        words[at] += draw.choice(PIECES)
    elif kind == 4:
        words.insert(at, draw.choice(PIECES))
    else:
        del words[at]
    return b" ".join(words)


def mutated_text(draw, text):
    """Changes, removes, doubles or moves lines, changes bytes, or cuts the text."""
    lines = text.split(b"\n")
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        at, kind = draw.randrange(len(lines)), draw.randrange(10)
        if kind < 6:
            lines[at] = mutated_line(draw, lines[at])
        elif kind == 6 and len(lines) > 1:
            del lines[at]
        elif kind == 7:
            lines.insert(at, draw.choice(lines))
        elif kind == 8:
            lines[at] = draw.choice(PIECES)
        else:
            lines[at], other = lines[-1 - at % len(lines)], lines[at]
            lines[-1 - at % len(lines)] = other
    text = b"\n".join(lines)
    return text[:draw.randrange(len(text) + 1)] if draw.random() < 0.05 else mutated_bytes(draw, text) if draw.random() < 0.05 else text


def mutated_bytes(draw, data):
    """Words and bytes anywhere in it, more at the beginning, where sizes and places are."""
    data = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        at = draw.randrange(min(len(data), draw.choice((64, 1024, len(data)))))
        new = struct.pack("<Q", number(draw) & (1 << 64) - 1)[:draw.choice((1, 2, 4, 8))]
        data[at:at + len(new)] = new
    return bytes(data)


class Recorder(LiveMemory):
    """Notes all reads."""

    def __init__(self, pid):
        super().__init__(pid)
        self.seen = {}

    def at(self, address, size):
        data = super().at(address, size)
        if len(data) > len(self.seen.get(address, b"")):
            self.seen[address] = data
        return data


class Recorded(Memory):
    """The memory that was noted, perhaps with faults in it."""

    def __init__(self, *seen):
        super().__init__()
        self.seen = {}
        for address, data in (item for some in seen for item in some.items()):
            if len(data) > len(self.seen.get(address, b"")):
                self.seen[address] = data

    def at(self, address, size):
        if address in self.seen:
            return self.seen[address][:size]
        for start, data in self.seen.items():
            if start <= address < start + len(data):
                return data[address - start:address - start + size]
        raise OSError("no memory")


def record(pid):
    """Returns (starts of modules, reads that find the library, reads of a sample and of the commands) of a process."""
    process = Process(pid)
    process.memory.close()
    starts = [start for start, _ in Modules(pid).starts]
    process.memory = Recorder(pid)
    process.find(starts)
    found, process.memory.seen = process.memory.seen, {}
    watch = Watch(process)
    watch.sample()
    watch.grace_periods_under_way()
    for command in COMMANDS:
        watch.within_bounds(lambda command=command: list(command(watch)))
    return starts, found, process.memory.seen


def damaged(draw, seen):
    """Some words are others; often existing addresses, so that lists lead elsewhere and in circles."""
    seen = {address: bytearray(data) for address, data in seen.items()}
    places, short = list(seen), [address for address, data in seen.items() if len(data) <= 512]
    for _ in range(draw.choice((0, 1, 1, 2, 4, 16))):
        address = draw.choice(short if draw.random() < 0.5 else places)
        at = draw.randrange(0, max(1, len(seen[address]) - 7), 8)
        value = draw.choice(places) + draw.choice((0, 8, 64, 200)) if draw.random() < 0.4 else number(draw)
        seen[address][at:at + 8] = struct.pack("<Q", value & (1 << 64) - 1)
    return {address: bytes(data) for address, data in seen.items()}


class Recording(Target):
    """A process that has that memory, and is this one otherwise."""

    def __init__(self, starts, found, seen):
        super().__init__(Recorded(found, seen), os.getpid(), "recorded", "process")
        self.find(starts)

    def now(self):
        return 0
