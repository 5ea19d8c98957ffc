# SPDX-License-Identifier: MIT
"""Memory that has the library: of a process that runs (process.py), in a core file (core.py), or as a debugger has it."""

import contextlib
import errno
import os

from . import bounds
from .errors import Ended, WatchError
from .layout import NAME, text_of
from .note import layouts


class Memory:
    """`budget` limits the bytes that may be read. A sample sets a new one."""

    def __init__(self):
        self.budget = bounds.Budget()

    def close(self):
        pass

    def at(self, address, size):
        """The first bytes at an address, up to `size`. OSError: there is no memory."""
        raise NotImplementedError

    def read(self, address, size):
        """Exactly `size` bytes. OSError: there is no memory; Ended: there is no program; WatchError: that is too much."""
        parts = []
        self.budget.spend("reads of its memory")
        if size > bounds.READ:
            raise WatchError(f"it claims a structure of {size} bytes; the limit is {bounds.READ}")
        if not 0 <= address <= bounds.ADDRESS - size:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
        while size:
            part = self.at(address, size)
            parts.append(part)
            address, size = address + len(part), size - len(part)
        return b"".join(parts)

    def number(self, address, size):
        return int.from_bytes(self.read(address, size), "little")

    def word(self, address):
        return self.number(address, 8)

    def text(self, address, most):
        """The characters up to a NUL."""
        data = b""
        while len(data) < most and b"\0" not in data:
            data += self.read(address + len(data), min(most - len(data), 64 - (address + len(data)) % 64))
        return text_of(data)

    def words(self, address, count):
        data = self.read(address, 8 * count) if count else b""
        return [int.from_bytes(data[at:at + 8], "little") for at in range(0, len(data), 8)]


class Target:
    """A target that has the library. `copies` has the table of each copy of the library, `what` is the name of
    the target in messages, and `stands` says that the target cannot change."""

    stands = False
    threads = None

    def __init__(self, memory, pid, name, what):
        self.memory, self.pid, self.name, self.what = memory, pid, name, what
        self.copies = []

    def close(self):
        self.memory.close()

    @contextlib.contextmanager
    def named(self):
        """Puts the name of the target before an error in its figures. An error that ends the target has the name already."""
        try:
            yield
        except Ended:
            raise
        except WatchError as error:
            raise WatchError(f"{self.what} ({self.name}): {error}") from None

    def find(self, starts):
        with self.named():
            self.copies = layouts(self.memory, starts)
        if not self.copies:
            raise WatchError(f"{self.what} ({self.name}) does not use Prudence, or an older version, which has no note for watchers")

    def check(self):
        """Ended: it has become another program."""
        for layout in self.copies:
            try:
                name = self.memory.read(layout.address_of_table, len(NAME))
            except OSError:
                name = b""
            if name != NAME.encode():
                raise Ended(f"{self.what} ({self.name}) has unloaded the library, or runs another program")

    def resident(self):
        """Bytes of memory that it has."""
        return 0

    def thread_name(self, thread):
        """"": unknown."""
        return ""

    def now(self):
        """Nanoseconds by the clock that the library reads; None: unknown."""
        return None

    def mappings(self):
        """Lines as /proc/PID/maps has them, of files."""
        return []
