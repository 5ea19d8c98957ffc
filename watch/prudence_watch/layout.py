# SPDX-License-Identifier: MIT
"""The description that a process gives of itself: where its figures stand (src/runtime/export_layout.c)."""

import struct

LAYOUT = 1
NAME = "prudence-export"  # of the mapping, and the first word of the description
MOST = 16384


class WatchError(Exception):
    """Something that a user did or met; its text says all."""


class Ended(WatchError):
    """The process is no more, or runs another program."""


class Layout:
    """A description, read: `numbers`, `texts`, `addresses`, and members of structures."""

    def __init__(self, text):
        self.numbers, self.texts, self.addresses, self.members = {}, {}, {}, {}
        head, *lines = text.split("\n")
        name, _, number = head.partition(" ")
        if name != NAME:
            raise WatchError("the description does not begin with its name")
        if number != str(LAYOUT):
            raise WatchError(f"its description is of layout {number}, and this tool reads layout {LAYOUT}: "
                             "use the tool of the library's version")
        if "end" not in lines:
            raise WatchError("the description has no end")
        for line in lines[:lines.index("end")]:
            self._take(line)

    def _take(self, line):
        kind, *words = line.split()
        if kind == "number":
            self.numbers[words[0]] = int(words[1])
        elif kind == "text":
            self.texts[words[0]] = words[1].replace("_", " ")
        elif kind == "address":
            self.addresses[words[0]] = int(words[1], 16)
        elif kind == "member":
            self.members[words[0]] = int(words[1]), int(words[2])

    def size(self, structure):
        return self.members[structure][1]

    def offset(self, member):
        return self.members[member][0]

    def unpacker(self, structure, names):
        """A function of memory and a place in it: {name: value} of these members. Faster than a Record of each of many."""
        form, order, at = "<", [], 0
        for offset, size, name in sorted((*self.members[f"{structure}.{name}"], name) for name in names):
            form += f"{offset - at}x{'Q' if size == 8 else 'I'}"
            order.append(name)
            at = offset + size
        unpack = struct.Struct(form).unpack_from
        return lambda memory, start: dict(zip(order, unpack(memory, start)))


class Record:
    """A structure's bytes, as they were read; members are taken out by name."""

    def __init__(self, layout, structure, memory, start=0):
        self.layout, self.structure, self.memory, self.start = layout, structure, memory, start

    def __getitem__(self, member):
        """A whole number without sign."""
        offset, size = self.layout.members[f"{self.structure}.{member}"]
        place = self.start + offset
        return int.from_bytes(self.memory[place:place + size], "little")

    def text(self, member):
        offset, size = self.layout.members[f"{self.structure}.{member}"]
        place = self.start + offset
        return self.memory[place:place + size].split(b"\0")[0].decode(errors="replace")
