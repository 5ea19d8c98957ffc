# SPDX-License-Identifier: MIT
"""Reads the files of a process's mappings for build ids, names of functions, and lines."""

from . import bounds
from .elf import BadElf, Elf
from .symbols import Frame, Symbols


class Module:
    """A file. Empty if it cannot be read: it may have gone, or be another's, or be no program."""

    def __init__(self, path, spend):
        self.path, self.symbols = path, None
        try:
            self.elf = Elf(path, spend)
        except (OSError, BadElf):
            self.elf = None

    @property
    def build_id(self):
        return self.elf.build_id if self.elf else ""

    def name(self, offset):
        return self.elf.function_at(offset) if self.elf else None

    def frames(self, address):
        """The functions at an address, by the file's own addresses: those that the compiler inlined there, then the function that has the
        code. []: unknown."""
        if not self.elf:
            return []
        self.symbols = self.symbols or Symbols(self.path)
        found = self.symbols.frames(address)
        name = None if found else self.elf.function_of(address)
        return [Frame(name, "")] if name else found


class Modules:
    """All files of a profile, each read once. Together they have no more symbols than a bound."""

    def __init__(self):
        self.by_path, self.left = {}, bounds.SYMBOLS

    def spend(self, symbols):
        if symbols > self.left:
            return False
        self.left -= symbols
        return True

    def module(self, path):
        if path not in self.by_path:
            self.by_path[path] = Module(path, self.spend)
        return self.by_path[path]

    def frames(self, profile, call):
        """The functions at a return address, the innermost first. The call is before it. A function without a name is "/a/file+0x12", or an
        address."""
        mapping = profile.mapping_of(call - 1)
        if not mapping:
            return [Frame(f"{call - 1:#x}", "", named=False)]
        offset = call - 1 - mapping.start + mapping.offset
        module = self.module(mapping.path)
        address = module.elf.address_of(offset) if module.elf else None
        found = [] if address is None else module.frames(address)
        return found or [Frame(f"{mapping.path}+{offset:#x}", "", named=False)]
