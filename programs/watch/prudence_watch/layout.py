# SPDX-License-Identifier: MIT
"""The table that the library has of itself: where its figures stand (src/observe/watch_table.h). Nothing of it is believed before it is
checked here: a program may describe itself as it likes."""

import re
import struct

from . import bounds
from .errors import WatchError

LAYOUT = 3
NAME = "prudence-watch"
HEAD = struct.Struct("<16sII32s" + 4 * "QII")
# Kinds of rows, in the order of the head: the bytes of a row that are read, and its columns.
KINDS = {"number": struct.Struct("<32sQ"), "address": struct.Struct("<32sQ"), "member": struct.Struct("<40sII"), "counter": struct.Struct("<32s64s112s")}

# Numbers that something is multiplied or divided by, or that are counted to: from, to.
NUMBERS = {"percpu_stride": (1, bounds.STRUCTURE), "stack_count_bits": (1, 63), "grace_period_step": (1, 1 << 63), "page_shift": (8, 30),
           "chunk_shift": (8, 62), "leaf_shift": (8, 62), "leaves": (1, 1 << 40), "margin_unit": (1, 1 << 30), "sampling_unit": (1, 1 << 32), "site_buckets": (1, bounds.SITES),
           "requests": (1, bounds.REQUESTS)}


# Not a suffix that metrics have, nor the beginning of other names.
COUNTER = r"(?!.*_(total|created|info)$)(?!(cache|domain|process)_|(up|process)$)[a-z][a-z0-9_]*"
# The places that a counter may be the sum of, by the group of figures that it belongs to: members, or variables of the process.
PLACES = {"cache": r"(cpu_cache|slab_node)\.counts\.\w+|cache_body\.\w+", "domain": r"prudence_domain\.\w+", "process": r"\w+"}


class Counter:
    """A figure that only grows: its place and its meaning."""

    def __init__(self, group, name, places, meaning):
        if group not in PLACES or not re.fullmatch(COUNTER, name):
            raise ValueError("its name is none of a counter")
        if not all(re.fullmatch(PLACES[group], place, re.ASCII) for place in places):
            raise ValueError("no counter can be there")
        if not meaning:
            raise ValueError("it says nothing")
        self.places, self.meaning = places, meaning


def text_of(characters):
    return characters.split(b"\0")[0].decode(errors="replace")


def rows_of(memory, address):
    """(version, rows) of the table at an address; each row is its kind, its name and its values."""
    found = HEAD.unpack(memory.read(address, HEAD.size))
    name, layout, kinds, version, *places = found
    if text_of(name) != NAME:
        raise WatchError("the table of its figures does not begin with its name")
    if layout != LAYOUT or kinds < len(KINDS):
        raise WatchError(f"the table of its figures is of layout {layout}, and this tool reads layout {LAYOUT}: use the tool of the library's version")
    rows = []
    for at, (kind, form) in enumerate(KINDS.items()):
        first, count, size = places[3 * at:3 * at + 3]
        if count > bounds.ROWS or not form.size <= size <= bounds.ROW:
            raise WatchError(f"the table of its figures claims {count} rows of {size} bytes for each {kind}")
        data = memory.read(first, count * size) if count else b""
        for start in range(0, len(data), size):
            rows.append((kind, *(text_of(value) if isinstance(value, bytes) else value for value in form.unpack_from(data, start))))
    return text_of(version), rows


class Layout:
    """A table, read: numbers, addresses, members of structures, and counters. Each is looked up by a function, which names a missing one.

    version: of the library; rows: as rows_of() has them; place: the table's own address."""

    def __init__(self, version, rows, place=0):
        self.numbers, self.addresses, self.members, self.counters = {}, {}, {}, {}
        self.address_of_table = place
        if not 0 < len(version) <= bounds.TEXT:
            raise WatchError("the table of its figures has no version")
        self.version = version
        for row in rows:
            try:
                self._take(*row)
            except ValueError as error:
                shown = " ".join(map(str, row))[:bounds.SHOWN]
                raise WatchError(f"a row of the table of its figures cannot be: '{shown}' ({error})") from None
        self._check_members()

    @classmethod
    def read(cls, memory, address):
        return cls(*rows_of(memory, address), address)

    def _take(self, kind, name, *values):
        if not re.fullmatch(r"[\w.]{1,64}", name, re.ASCII):
            raise ValueError("its name is none")
        if kind == "number":
            least, most = NUMBERS.get(name, (0, bounds.WORD))
            self.numbers[name] = self._within(values[0], most, least)
        elif kind == "address":
            self.addresses[name] = self._within(values[0], bounds.ADDRESS)
        elif kind == "counter":
            group, _, figure = name.partition(".")
            self.counters[name] = Counter(group, figure, values[0].split(","), values[1])
        else:
            self.members[name] = self._within(values[0], bounds.STRUCTURE), self._within(values[1], bounds.STRUCTURE, 1)

    @staticmethod
    def _within(value, most, least=0):
        if not least <= value <= most:
            raise ValueError(f"{value} is no number from {least} to {most}")
        return value

    def _check_members(self):
        """Checks that each lies in its structure, whose size is given where structures are read as a whole."""
        for name, (offset, size) in self.members.items():
            _, most = self.members.get(name.partition(".")[0], (0, bounds.STRUCTURE))
            if offset + size > most:
                raise WatchError(f"the table of its figures has '{name}' end {offset + size} bytes into a structure of {most}")

    @staticmethod
    def _known(what, name):
        if name not in what:
            raise WatchError(f"the table of its figures lacks '{name}'")
        return what[name]

    def number(self, name):
        return self._known(self.numbers, name)

    def address(self, name):
        return self._known(self.addresses, name)

    def counter(self, name):
        return self._known(self.counters, name)

    def counters_of(self, group):
        """{figure: Counter}"""
        return {name.partition(".")[2]: counter for name, counter in self.counters.items() if name.startswith(f"{group}.")}

    def size(self, name):
        return self._known(self.members, name)[1]

    def offset(self, name):
        return self._known(self.members, name)[0]

    def place(self, name, most=8):
        """Returns the begin and the end of a member, which has at most this number of bytes. A number has 8."""
        offset, size = self._known(self.members, name)
        if size > most:
            raise WatchError(f"the table of its figures has {size} bytes for '{name}', whose limit is {most}")
        return offset, offset + size

    def unpacker(self, structure, names, room):
        """A function of memory and a place in it: {name: value} of these members, which lie in the first `room` bytes. Faster than a
        Record of each of many."""
        form, order, at = "<", [], 0
        for offset, end, name in sorted((*self.place(f"{structure}.{name}"), name) for name in names):
            if offset < at or end > room or end - offset not in (4, 8):
                raise WatchError(f"the table of its figures has '{structure}.{name}' where it cannot be")
            form += f"{offset - at}x{'Q' if end - offset == 8 else 'I'}"
            order.append(name)
            at = end
        unpack = struct.Struct(form).unpack_from
        return lambda memory, start: dict(zip(order, unpack(memory, start)))


class Record:
    """A structure's bytes, as they were read; members are taken out by name."""

    def __init__(self, layout, structure, memory, start=0):
        self.layout, self.structure, self.memory, self.start = layout, structure, memory, start

    def part(self, member, most=bounds.TEXT):
        first, end = self.layout.place(f"{self.structure}.{member}", most)
        return self.memory[self.start + first:self.start + end]

    def __getitem__(self, member):
        """A whole number without sign."""
        return int.from_bytes(self.part(member, 8), "little")

    def text(self, member):
        return self.part(member).split(b"\0")[0].decode(errors="replace")
