# SPDX-License-Identifier: MIT
"""Sets an option of a running process: writes a request into its memory, on which a thread acts when it comes to a slow path of the library
(src/observe/request.c). The system asks for the same right as it does for a debugger."""

import errno
import os
import random
import struct
import time

from . import bounds
from .errors import Ended, WatchError
from .process import PROC, why_not

LOOK = 0.005  # seconds between checks for the answer
TAKEN = 0.3  # seconds that a thread may take to set an option; then it is asked again, which does no harm
ASKED = 1  # lower half of the word, next to the ticket


def sum_of(data):
    """FNV-1a of 32 bits, as request_sum() has it."""
    total = 2166136261
    for byte in data:
        total = (total ^ byte) * 16777619 & 0xffffffff
    return total


class WritableMemory:
    def __init__(self, pid):
        self.pid = pid
        try:
            self.fd = os.open(PROC / str(pid) / "mem", os.O_RDWR | os.O_CLOEXEC)
        except PermissionError:
            raise WatchError(why_not(pid)) from None
        except (FileNotFoundError, ProcessLookupError):
            raise Ended(f"process {pid} has ended") from None

    def close(self):
        os.close(self.fd)

    def write(self, address, data):
        try:
            done = os.pwrite(self.fd, data, address)
        except OSError as error:
            raise WatchError(f"process {self.pid}: its memory cannot be written ({error.strerror})") from None
        if done != len(data):
            raise Ended(f"process {self.pid} has ended, or runs another program")


def text_in(text, size, what):
    data = text.encode()
    if len(data) >= size or b"\0" in data:
        raise WatchError(f"{what} has more than {size - 1} bytes")
    return data.ljust(size, b"\0")


class Request:
    """A request for one option, to one copy of the library."""

    def __init__(self, copy, memory, pid, name, value):
        self.copy, self.memory, self.layout, self.ticket, self.place, self.gone = copy, memory, copy.layout, 0, None, 0
        self.size = self.layout.size("request")
        self.parts = {"process": struct.pack("<i", pid)}
        for member, text in (("name", name), ("value", value)):
            first, end = self.layout.place(f"request.{member}", bounds.REQUEST)
            self.parts[member] = text_in(text, end - first, f"the option's {member}")

    def word(self, place, member):
        return self.copy.memory.word(place + self.layout.offset(f"request.{member}"))

    def free_place(self):
        first = self.layout.address("requests")
        places = range(first, first + self.size * self.layout.number("requests"), self.size)
        place = next((place for place in places if not self.word(place, "asked")), None)
        if place is None:
            raise WatchError(f"{len(places)} requests wait already, on which the process has not acted")
        return place

    def send(self):
        """The parts, then the ticket, then the word that slow paths read."""
        self.gone, self.place, self.ticket = 0, self.free_place(), random.SystemRandom().randrange(1, 1 << 32)
        data, parts = bytearray(self.size), self.parts | {"ticket": struct.pack("<I", self.ticket)}
        for member, part in parts.items():
            first = self.layout.offset(f"request.{member}")
            data[first:first + len(part)] = part
        body = self.layout.offset("request.ticket")
        first, end = self.layout.place("request.sum", 4)
        data[first:end] = struct.pack("<I", sum_of(data[body:]))
        self.memory.write(self.place + first, bytes(data[first:]))
        self.memory.write(self.place + self.layout.offset("request.asked"), struct.pack("<Q", self.ticket << 32 | ASKED))
        self.memory.write(self.layout.address("asked"), struct.pack("<Q", ASKED))

    def answered(self):
        answer = self.word(self.place, "answer")
        return answer & 0xffffffff if answer >> 32 == self.ticket else None

    def answer(self):
        """An error number or 0; None: there is none yet. EAGAIN: another process has asked at the same time."""
        answer = self.answered()
        if answer is not None or self.word(self.place, "asked") >> 32 == self.ticket:
            return answer
        answer = self.answered()  # it may have come between the two checks
        if answer is not None:
            return answer
        # A thread has taken the request and sets the option now; or another process has written over it.
        self.gone = self.gone or time.monotonic()
        return errno.EAGAIN if time.monotonic() > self.gone + TAKEN else None

    def carry_out(self, seconds):
        """Returns the answer of the process, or None if none arrives in that time."""
        end = time.monotonic() + seconds
        self.send()
        while time.monotonic() < end:
            answer = self.answer()
            if answer == errno.EAGAIN:
                time.sleep(random.uniform(0, 2 * LOOK))
                self.send()
            elif answer is not None:
                return answer
            time.sleep(LOOK)
        return None


def set_option(watch, name, value, seconds):
    """Returns lines with the result. WatchError: the process refuses it."""
    process = watch.process
    memory = WritableMemory(process.pid)
    try:
        for number, copy in enumerate(watch.copies):
            of = f" in copy {number} of the library" if len(watch.copies) > 1 else ""
            error = Request(copy, memory, process.inner_pid, name, value).carry_out(seconds)
            if error:
                raise WatchError(f"{name}={value}{of}: {os.strerror(error)}; the process says more on its standard error")
            if error is None:
                yield (f"{name}={value}{of}: the process has not acted yet. It will when it next allocates or defers past its caches; "
                       "it may do nothing now")
            else:
                yield f"{name} is {value} now{of}"
    finally:
        memory.close()
