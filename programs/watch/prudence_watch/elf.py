# SPDX-License-Identifier: MIT
"""Reads an ELF file: segments, build id, and names of functions. 64 bits, little-endian, as is every
process that uses the library.

The file is any that a profile names, so it may be made to harm: each place and size is checked against the file's own size, each table
against a bound, and a table that cannot be is none.
"""

import array
import bisect
import os
import struct

from . import bounds
from .plain_file import open_plain

HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
NOTE = struct.Struct("<III")
MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
LOAD, NOTES = 1, 4  # kinds of segments
SYMBOLS, STRINGS, DYNAMIC_SYMBOLS = 2, 3, 11  # kinds of sections
FUNCTIONS = (2, 10)  # kinds of symbols: functions, and those that choose one when the program is loaded
BUILD_ID, BUILD_ID_MOST = 3, 64
PAGE = 4096


class BadElf(Exception):
    """The file is no ELF file, or a damaged one."""


class Part:
    """An open file, of which nothing is read that is not there."""

    def __init__(self, file):
        self.file, self.size = file, os.fstat(file.fileno()).st_size

    def read(self, offset, size, most=None):
        """BadElf: it is not in the file, or too much."""
        if offset + size > self.size or (most is not None and size > most):
            raise BadElf("it has a part that is not there, or is too large")
        data = os.pread(self.file.fileno(), size, offset)
        if len(data) < size:
            raise BadElf("it has become shorter")
        return data

    def table(self, offset, form, size, count):
        if count == 0:
            return ()
        if size != form.size:
            raise BadElf("it has a table of another kind")
        return form.iter_unpack(self.read(offset, size * count, size * bounds.HEADERS))


def build_id_in(notes, align):
    at = 0
    while at + NOTE.size <= len(notes):
        name_size, size, kind = NOTE.unpack_from(notes, at)
        name = at + NOTE.size
        data = name + -(-name_size // align) * align
        if kind == BUILD_ID and notes[name:name + name_size] == b"GNU\0" and size <= BUILD_ID_MOST:
            return notes[data:data + size].hex()
        at = data + -(-size // align) * align
    return ""


class Elf:
    """An ELF file. The file is opened again for names, which are read when they are asked for.

    spend: is asked for leave to keep a number of symbols; without it functions have no names. OSError or BadElf: there is nothing to be known.
    """

    def __init__(self, path, spend):
        self.path, self.segments, self.build_id = path, [], ""
        self.starts, self.sizes, self.names, self.strings = array.array("Q"), array.array("Q"), array.array("I"), (0, 0)
        with open_plain(path) as file:
            self.take(Part(file), spend)

    def take(self, file, spend):
        if file.size > bounds.FILE:
            raise BadElf("it is too large")
        if file.read(0, len(MAGIC)) != MAGIC:
            raise BadElf("it does not begin as one")
        _, _, _, _, segments, sections, _, _, segment_size, segment_count, section_size, section_count, _ = HEADER.unpack(
            file.read(0, HEADER.size))
        for kind, _, offset, address, _, size, _, align in file.table(segments, SEGMENT, segment_size, segment_count):
            if kind == LOAD:
                self.segments.append((offset, size, address))
            elif kind == NOTES and not self.build_id:
                self.build_id = build_id_in(file.read(offset, size, bounds.NOTES), 8 if align == 8 else 4)
        self.take_functions(file, list(file.table(sections, SECTION, section_size, section_count)), spend)

    def take_functions(self, file, sections, spend):
        """Reads the functions of the table of all symbols, or, in a stripped file, of the exported ones."""
        tables = [section for kind in (SYMBOLS, DYNAMIC_SYMBOLS) for section in sections if section[1] == kind]
        if not tables:
            return
        _, _, _, _, offset, size, link, _, _, entry_size = tables[0]
        if entry_size != SYMBOL.size or size % SYMBOL.size or link >= len(sections) or sections[link][1] != STRINGS:
            raise BadElf("its symbols are none")
        if not spend(size // SYMBOL.size):
            return
        self.strings = sections[link][4:6]
        found = [(value, length, name) for name, info, _, _, value, length in SYMBOL.iter_unpack(file.read(offset, size))
                 if info & 15 in FUNCTIONS and value]
        found.sort()
        for column, values in zip((self.starts, self.sizes, self.names), zip(*found)):
            column.extend(values)

    @property
    def lowest(self):
        """Returns the address of the first page in the file's own addresses, which is 0 unless the file cannot be moved."""
        return min((address for _, _, address in self.segments), default=0) // PAGE * PAGE

    def address_of(self, offset):
        """The address, by the file's own, of an offset in the file; None: it is in no segment."""
        return next((offset - start + address for start, size, address in self.segments if start <= offset < start + size), None)

    def function_at(self, offset):
        """The name of the function at an offset in the file; None: unknown. In a stripped file static functions have no names."""
        address = self.address_of(offset)
        return None if address is None else self.function_of(address)

    def function_of(self, address):
        """A function of no size is one of assembler, whose end is unknown."""
        at = bisect.bisect_right(self.starts, address) - 1
        if at < 0 or (self.sizes[at] and address >= self.starts[at] + self.sizes[at]):
            return None
        return self.string(self.names[at])

    def functions(self):
        """The names of all functions. [] if they cannot be read."""
        offset, size = self.strings
        try:
            with open_plain(self.path) as file:
                data = Part(file).read(offset, size, bounds.STRINGS)
        except (BadElf, OSError):
            return []
        return [data[at:data.find(b"\0", at)].decode(errors="replace") for at in self.names]

    def string(self, place):
        offset, size = self.strings
        try:
            with open_plain(self.path) as file:
                data = Part(file).read(offset + place, max(0, min(size - place, bounds.SYMBOL)))
        except (BadElf, OSError):
            return None
        return data.split(b"\0")[0].decode(errors="replace") or None
