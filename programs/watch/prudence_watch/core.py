# SPDX-License-Identifier: MIT
"""A core file: the memory of a process when it crashed, or when a debugger wrote it down.

Pages of files that the process had not changed are mostly not in it. They are read from the files that the core file names, if these
are the ones: the page that begins a file is in the core file, and is compared.
"""

import bisect
import errno
import os
import struct
from datetime import datetime, timezone

from . import bounds
from .elf import BadElf, Part
from .errors import WatchError
from .memory import Memory, Target
from .note import DYNAMIC, HEADER, LOAD, NOTE, NOTES, PAGE, SEGMENT, segments_in
from .plain_file import open_plain

CORE = 4  # kind of ELF file
PROCESS, FILES = 3, 0x46494c45  # kinds of notes: NT_PRPSINFO, NT_FILE
PROCESS_PID, PROCESS_NAME = 24, slice(40, 56)  # places in the first
MANY = 0xffff  # segments are counted in the first section
LATER = (slice(40, 48), slice(58, 64))  # places in an ELF header that strip changes: where sections are


class Mapped:
    """A file that was mapped, of which some pages are read."""

    def __init__(self, start, end, offset, path):
        self.start, self.end, self.offset, self.path = start, end, offset, path


class CoreMemory(Memory):
    def __init__(self, path, folder=None):
        super().__init__()
        self.folder, self.mapped, self.files, self.segments, self.pid, self.name = folder, [], {}, [], 0, ""
        try:
            self.file = open_plain(path)
        except OSError as error:
            raise WatchError(f"'{path}': {error.strerror}") from None
        try:
            self._take(Part(self.file))
        except (BadElf, struct.error, ValueError) as error:
            self.close()
            raise WatchError(f"'{path}' is no core file: {error}") from None
        self.segments.sort()
        self.starts = [segment[0] for segment in self.segments]
        self.mapped.sort(key=lambda one: one.start)
        self.mapped_starts = [one.start for one in self.mapped]
        self.by_path = {}
        for one in self.mapped:
            if one.offset == 0:
                self.by_path.setdefault(one.path, one.start)

    def close(self):
        self.file.close()
        for file in self.files.values():
            if file:
                file.close()

    def _take(self, part):
        magic, bits, order, kind, _, _, _, place, sections, _, _, size, count = HEADER.unpack(part.read(0, HEADER.size))
        if magic != b"\x7fELF" or (bits, order) != (2, 1) or kind != CORE:
            raise BadElf("it does not begin as one")
        if count == MANY:
            count = struct.unpack("<I", part.read(sections + 44, 4))[0]  # sh_info of the first section
        for kind, _, offset, address, _, length, _, _ in part.table(place, SEGMENT, size, min(count, bounds.MAPPINGS)):
            if kind == LOAD and length:
                self.segments.append((address, length, offset))
            elif kind == NOTES:
                self._take_notes(part.read(offset, length, bounds.CORE_NOTES))

    def _take_notes(self, data):
        at = 0
        while at + NOTE.size <= len(data):
            name_size, size, kind = NOTE.unpack_from(data, at)
            place = at + NOTE.size + -(-name_size // 4) * 4
            note = data[place:place + size]
            if kind == PROCESS and len(note) >= PROCESS_NAME.stop:
                self.pid = struct.unpack_from("<i", note, PROCESS_PID)[0]
                self.name = note[PROCESS_NAME].split(b"\0")[0].decode(errors="replace")
            elif kind == FILES:
                self._take_files(note)
            at = place + -(-size // 4) * 4

    def _take_files(self, note):
        count, unit = struct.unpack_from("<QQ", note)
        bounds_of_files = struct.Struct("<QQQ")
        if count > bounds.MAPPINGS or 16 + count * bounds_of_files.size > len(note):
            raise BadElf("its list of files is cut off")
        names = note[16 + count * bounds_of_files.size:].split(b"\0")
        for at, name in zip(range(count), names):
            start, end, offset = bounds_of_files.unpack_from(note, 16 + at * bounds_of_files.size)
            self.mapped.append(Mapped(start, end, offset * unit, os.fsdecode(name)))

    def _own(self, address, size):
        """Returns the bytes that the core file itself has there, or b""."""
        at = bisect.bisect_right(self.starts, address) - 1
        if at >= 0:
            start, length, offset = self.segments[at]
            if address < start + length:
                return os.pread(self.file.fileno(), min(size, start + length - address), offset + address - start)
        return b""

    def _place_of(self, path):
        """Returns the place of the file on this machine. In the user's folder it is by its whole path, or by its name alone."""
        if self.folder is None:
            return path
        whole = os.path.join(self.folder, path.lstrip("/"))
        return whole if os.path.exists(whole) else os.path.join(self.folder, os.path.basename(path))

    def _open(self, path):
        """The file, which must be the one that the process had. None: it is not there."""
        if path not in self.files:
            try:
                file = open_plain(self._place_of(path))
            except OSError:
                file = None
            self.files[path] = file
            before = self._own(self.by_path[path], PAGE) if path in self.by_path else b""
            if file and before and not self._same(before, os.pread(file.fileno(), len(before), 0)):
                raise WatchError(f"'{self._place_of(path)}' is not the file that the process ran: name the folder of the right one by --binaries")
        return self.files[path]

    @staticmethod
    def _same(before, now):
        """The first page of a file. patchelf puts the dynamic section there, in which the loader writes."""
        before, now = bytearray(before), bytearray(now)
        dynamic = [slice(offset, min(offset + length, len(now))) for kind, offset, _, length in segments_in(now) if kind == DYNAMIC and offset < len(now)]
        for place in (*LATER, *dynamic):
            before[place] = now[place] = bytes(place.stop - place.start)
        return before == now

    def at(self, address, size):
        data = self._own(address, size)
        if data:
            return data
        at = bisect.bisect_right(self.mapped_starts, address) - 1
        if at >= 0 and address < self.mapped[at].end:
            one = self.mapped[at]
            file = self._open(one.path)
            if file is None:
                raise WatchError(f"it has no pages of '{one.path}', and that file is not here: name a folder that has it by --binaries")
            # Up to the next segment, whose pages the process may have changed.
            later = bisect.bisect_right(self.starts, address)
            end = min(one.end, self.starts[later]) if later < len(self.starts) else one.end
            data = os.pread(file.fileno(), min(size, end - address), one.offset + address - one.start)
        if not data:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
        return data


class Core(Target):
    """The process that a core file has."""

    stands = True

    def __init__(self, path, folder=None):
        memory = CoreMemory(path, folder)
        super().__init__(memory, memory.pid, memory.name, f"core file '{path}' of process {memory.pid}")
        try:
            self.time = datetime.fromtimestamp(os.fstat(memory.file.fileno()).st_mtime, timezone.utc)
            self.find([one.start for one in memory.mapped if one.offset == 0])
        except BaseException:
            self.close()
            raise

    def resident(self):
        """Returns the bytes of memory that the core file has."""
        return sum(length for _, length, _ in self.memory.segments)

    def mappings(self):
        return [f"{one.start:x}-{one.end:x} r-xp {one.offset:x} 00:00 0 {one.path}" for one in self.memory.mapped]
