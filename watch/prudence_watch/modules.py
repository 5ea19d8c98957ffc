# SPDX-License-Identifier: MIT
"""What the files behind a process's mappings say of addresses: build ids and names of functions, by pyelftools."""

import bisect
import functools

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile


class Module:
    """An ELF file. Empty if it cannot be read: it may have gone, or be another's."""

    def __init__(self, path):
        self.build_id, self.segments, self.starts, self.functions = "", [], [], []
        try:
            with open(path, "rb") as file:
                self._read(ELFFile(file))
        except (OSError, ELFError):
            pass

    def _read(self, elf):
        for segment in elf.iter_segments():
            if segment["p_type"] == "PT_LOAD":
                self.segments.append((segment["p_offset"], segment["p_filesz"], segment["p_vaddr"]))
            if segment["p_type"] == "PT_NOTE":
                self.build_id = next((note["n_desc"] for note in segment.iter_notes()
                                      if note["n_type"] == "NT_GNU_BUILD_ID"), self.build_id)
        table = elf.get_section_by_name(".symtab") or elf.get_section_by_name(".dynsym")
        symbols = {} if not table else {
            one["st_value"]: (one["st_size"], one.name) for one in table.iter_symbols()
            if one["st_info"]["type"] in ("STT_FUNC", "STT_LOOS") and one["st_value"]}
        self.starts = sorted(symbols)
        self.functions = [symbols[start] for start in self.starts]

    def name(self, offset):
        """Of the function at an offset in the file; None: unknown. In a stripped file static functions have no names."""
        for start, size, address in self.segments:
            if start <= offset < start + size:
                return self._name_at(offset - start + address)
        return None

    def _name_at(self, address):
        """A function of no size is one of assembler, whose end is not told."""
        place = bisect.bisect_right(self.starts, address)
        if not place:
            return None
        size, name = self.functions[place - 1]
        return name if not size or address < self.starts[place - 1] + size else None


@functools.lru_cache(maxsize=None)
def module(path):
    return Module(path)


def describe(profile, call):
    """A return address: "function", "/a/file+0x12" or an address. The call is before it."""
    mapping = profile.mapping_of(call - 1)
    if not mapping:
        return f"{call - 1:#x}"
    offset = call - 1 - mapping.start + mapping.offset
    return module(mapping.path).name(offset) or f"{mapping.path}+{offset:#x}"
