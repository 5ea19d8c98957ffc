# SPDX-License-Identifier: MIT
"""The description that a process gives of itself: where its figures stand (src/runtime/export_layout.c). Nothing of it is believed
before it is checked here: a program may describe itself as it likes."""

import re
import struct

from . import bounds
from .errors import WatchError

LAYOUT = 2
NAME = "prudence-export"  # of the mapping, and the first word of the description
MOST = 16384

# Numbers that something is multiplied or divided by, or that are counted to: from, to.
NUMBERS = {"pid": (1, 1 << 22), "cpus": (1, bounds.CPUS), "nodes": (1, bounds.NODES), "percpu_stride": (1, bounds.STRUCTURE),
           "stack_count_bits": (1, 63), "grace_period_step": (1, 1 << 63)}


# Not a suffix that metrics have, nor the beginning of what else is named.
COUNTER = r"(?!.*_(total|created|info)$)(?!(cache|domain|process)_|(up|process)$)[a-z][a-z0-9_]*"
# The places that a counter may be the sum of, by the group of figures that it belongs to: members, or variables of the process.
PLACES = {"cache": r"(cpu_cache|slab_node)\.counts\.\w+|cache_body\.\w+", "domain": r"prudence_domain\.\w+", "process": r"\w+"}


class Counter:
    """A figure that only grows: where it stands, and what it says."""

    def __init__(self, group, name, places, meaning):
        if group not in PLACES or not re.fullmatch(COUNTER, name):
            raise ValueError("its name is none of a counter")
        if not all(re.fullmatch(PLACES[group], place, re.ASCII) for place in places):
            raise ValueError("no counter can be there")
        if not 0 < len(meaning) <= bounds.TEXT:
            raise ValueError(f"a text has 1 to {bounds.TEXT} characters")
        self.places, self.meaning = places, meaning


class Layout:
    """A description, read: numbers, texts, addresses, members of structures, and counters. Each is looked up by a function, which says
    what is missing."""

    def __init__(self, text):
        self.numbers, self.texts, self.addresses, self.members, self.counters = {}, {}, {}, {}, {}
        head, *lines = text.split("\n")
        name, _, number = head.partition(" ")
        if name != NAME:
            raise WatchError("the description does not begin with its name")
        if number != str(LAYOUT):
            raise WatchError(f"its description is of layout {number[:bounds.SHOWN]}, and this tool reads layout {LAYOUT}: "
                             "use the tool of the library's version")
        if "end" not in lines:
            raise WatchError("the description has no end")
        for line in lines[:lines.index("end")]:
            try:
                self._take(line)
            except ValueError as error:
                raise WatchError(f"a line of its description cannot be understood: '{line[:bounds.SHOWN]}' ({error})") from None
        self._check_members()

    def _take(self, line):
        """A line of an unknown kind is of a later version, and says nothing to this one."""
        kind, *words = line.split(" ")
        if not re.fullmatch("[a-z]+", kind):
            raise ValueError("it does not begin with a kind")
        if kind not in ("number", "text", "address", "member", "counter"):
            return
        if kind == "counter":
            words[2:] = [" ".join(words[2:])]
        if len(words) != (3 if kind in ("member", "counter") else 2):
            raise ValueError("it has too few or too many words")
        name, *values = words
        if not re.fullmatch(r"[\w.]{1,64}", name, re.ASCII):
            raise ValueError("its name is none")
        if kind == "number":
            least, most = NUMBERS.get(name, (0, bounds.WORD))
            self.numbers[name] = bounds.whole(values[0], most, least)
        elif kind == "text":
            self.texts[name] = self._text(values[0])
        elif kind == "address":
            self.addresses[name] = bounds.hexadecimal(values[0], bounds.ADDRESS)
        elif kind == "counter":
            group, _, figure = name.partition(".")
            self.counters[name] = Counter(group, figure, values[0].split(","), values[1])
        else:
            self.members[name] = bounds.whole(values[0], bounds.STRUCTURE), bounds.whole(values[1], bounds.STRUCTURE, 1)

    @staticmethod
    def _text(value):
        if not 0 < len(value) <= bounds.TEXT:
            raise ValueError(f"a text has 1 to {bounds.TEXT} characters")
        return value.replace("_", " ")

    def _check_members(self):
        """Each lies in its structure, whose size is told where structures are read as a whole."""
        for name, (offset, size) in self.members.items():
            _, most = self.members.get(name.partition(".")[0], (0, bounds.STRUCTURE))
            if offset + size > most:
                raise WatchError(f"its description has '{name}' end {offset + size} bytes into a structure of {most}")

    @staticmethod
    def _known(what, name):
        if name not in what:
            raise WatchError(f"its description lacks '{name}'")
        return what[name]

    def number(self, name):
        return self._known(self.numbers, name)

    def text(self, name):
        return self._known(self.texts, name)

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
        """Where a member begins and ends, which has no more bytes than that: a number has 8."""
        offset, size = self._known(self.members, name)
        if size > most:
            raise WatchError(f"its description has {size} bytes for '{name}', which has {most} at the most")
        return offset, offset + size

    def unpacker(self, structure, names, room):
        """A function of memory and a place in it: {name: value} of these members, which lie in the first `room` bytes. Faster than a
        Record of each of many."""
        form, order, at = "<", [], 0
        for offset, end, name in sorted((*self.place(f"{structure}.{name}"), name) for name in names):
            if offset < at or end > room or end - offset not in (4, 8):
                raise WatchError(f"its description has '{structure}.{name}' where it cannot be")
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
