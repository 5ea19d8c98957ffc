# SPDX-License-Identifier: MIT
"""Finds the library in a process: each program and library there is asked for the library's ELF note, which leads to the table of its
figures (src/observe/watch_table.c). Headers and note are read from the process's memory, so a file that was deleted, replaced or stripped
is no obstacle. A program that was linked with the static library has the note itself.

The note has the distance to the table, as the linker knew it. patchelf moves notes when it changes a path (findings/), so a note that leads
elsewhere still says that the table is in this module, and the table is searched for by its name."""

import struct

from . import bounds
from .errors import WatchError
from .layout import NAME as TABLE
from .layout import Layout

HEADER = struct.Struct("<4sBB10xHHIQQQIHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")
NOTE = struct.Struct("<III")
LOAD, DYNAMIC, NOTES = 1, 2, 4  # kinds of segments
NAME, KIND = b"Prudence\0", 1
PAGE = 4096


def note_in(data):
    """Returns the place of the note's descriptor among notes, and the distance in the descriptor, or None if there is no such note."""
    at = 0
    while at + NOTE.size <= len(data):
        name_size, size, kind = NOTE.unpack_from(data, at)
        name = at + NOTE.size
        place = name + -(-name_size // 4) * 4
        if data[name:name + name_size] == NAME and kind == KIND and size == 8 and place + 8 <= len(data):
            return place, struct.unpack_from("<q", data, place)[0]
        at = place + -(-size // 4) * 4
    return None


def segments_in(page):
    """(kind, offset, address, size in the file) of each segment, by the first page of a module's file."""
    if len(page) < HEADER.size:
        return []
    magic, bits, order, _, _, _, _, place, _, _, _, size, count = HEADER.unpack_from(page)
    end = place + count * SEGMENT.size
    if magic != b"\x7fELF" or (bits, order) != (2, 1) or size != SEGMENT.size or count > bounds.SEGMENTS or end > len(page):
        return []
    return [(kind, offset, address, length) for kind, _, offset, address, _, length, _, _ in SEGMENT.iter_unpack(page[place:end])]


def segments_of(memory, start):
    """Returns the segments of the module whose file begins at that address of memory."""
    header = HEADER.unpack(memory.read(start, HEADER.size))
    place, count = header[7], header[12]
    return segments_in(memory.read(start, place + count * SEGMENT.size)) if place <= PAGE and count <= bounds.SEGMENTS else []


BEGINNING = TABLE.encode().ljust(16, b"\0")


def begins_there(memory, address):
    try:
        return memory.read(address, len(BEGINNING)) == BEGINNING
    except OSError:
        return False


def search(memory, start, size):
    """The address of the table in a segment; None: it is not there."""
    end = start + min(size, bounds.SEARCHED)
    for at in range(start, end, bounds.READ - len(BEGINNING)):
        try:
            place = memory.read(at, min(bounds.READ, end - at)).find(BEGINNING)
        except OSError:
            continue
        if place >= 0:
            return at + place
    return None


def searched(memory, bias, segments):
    """The address of the table in any segment that was loaded; None: it is nowhere."""
    places = (((bias + address) & bounds.WORD, size) for kind, _, address, size in segments if kind == LOAD)
    return next((found for place, size in places if (found := search(memory, place, size)) is not None), None)


def table_in(memory, start):
    """The address of the table that a module has; None: it is not the library."""
    try:
        segments = segments_of(memory, start)
        bias = next((start - (address - offset) // PAGE * PAGE for kind, offset, address, _ in segments if kind == LOAD and offset < PAGE), None)
        for kind, _, address, size in segments if bias is not None else ():
            place = (bias + address) & bounds.WORD
            found = note_in(memory.read(place, min(size, bounds.NOTES))) if kind == NOTES else None
            if found:
                table = (place + sum(found)) & bounds.WORD
                return table if begins_there(memory, table) else searched(memory, bias, segments) or table
    except OSError:
        pass
    return None


def tables(memory, starts):
    """The address of each copy's table; starts: of each mapping of a file's first page. Two notes of one copy lead to one table."""
    found = dict.fromkeys(table for table in (table_in(memory, start) for start in starts) if table is not None)
    if len(found) > bounds.COPIES:
        raise WatchError(f"it claims more copies of the library than the limit, {bounds.COPIES}")
    return list(found)


def layouts(memory, starts):
    """The table of each copy of the library, read."""
    found = []
    for table in tables(memory, starts):
        try:
            found.append(Layout.read(memory, table))
        except OSError as error:
            raise WatchError(f"the table of its figures cannot be read ({error})") from None
    return found
