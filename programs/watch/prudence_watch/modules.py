# SPDX-License-Identifier: MIT
"""What the files behind a process's mappings say of addresses: build ids and names of functions."""

from . import bounds
from .elf import BadElf, Elf


class Module:
    """A file. Empty if it cannot be read: it may have gone, or be another's, or be no program."""

    def __init__(self, path, spend):
        try:
            self.elf = Elf(path, spend)
        except (OSError, BadElf):
            self.elf = None

    @property
    def build_id(self):
        return self.elf.build_id if self.elf else ""

    def name(self, offset):
        return self.elf.function_at(offset) if self.elf else None


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

    def describe(self, profile, call):
        """A return address: "function", "/a/file+0x12" or an address. The call is before it."""
        mapping = profile.mapping_of(call - 1)
        if not mapping:
            return f"{call - 1:#x}"
        offset = call - 1 - mapping.start + mapping.offset
        return self.module(mapping.path).name(offset) or f"{mapping.path}+{offset:#x}"
