# SPDX-License-Identifier: MIT
"""Commands for gdb: the caches of a process that uses Prudence, what an address is, and what waits for which reader.

    (gdb) source prudence-gdb.py
    (gdb) prudence dump
    (gdb) prudence caches
    (gdb) prudence counters [CACHE]
    (gdb) prudence whois ADDRESS
    (gdb) prudence latent [CACHE]
    (gdb) prudence readers
    (gdb) prudence domains
    (gdb) prudence traces
    (gdb) prudence walk [CACHE]
    (gdb) prudence profile FILE
    (gdb) prudence set OPTION VALUE

They print what prudence-inspect(1) prints, of memory as gdb has it: of a process or of a core file. No function of the program is called, and
the library may be stripped. `prudence set` writes a request into a running process. The package prudence_watch, which lies beside this file, does
the rest.

The process may have damaged its memory, and a core file may be anyone's: prudence_watch/bounds.py says how much is taken from it.
"""

import os
import re
import sys
from pathlib import Path

import gdb

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(folder) for folder in (HERE, HERE.parent / "watch") if (folder / "prudence_watch").is_dir()]
from prudence_watch import bounds, commands, inspect  # noqa: E402 (the path comes first)
from prudence_watch.ask import Request  # noqa: E402
from prudence_watch.errors import WatchError  # noqa: E402
from prudence_watch.figures import Watch  # noqa: E402
from prudence_watch.memory import Memory, Target  # noqa: E402
from prudence_watch.process import inner_pid  # noqa: E402


class GdbMemory(Memory):
    """Of the process or core file that gdb has."""

    def __init__(self):
        super().__init__()
        self.budget = bounds.Budget(bounds.COMMAND_SECONDS)

    def at(self, address, size):
        try:
            return bytes(gdb.selected_inferior().read_memory(address, size))
        except gdb.MemoryError as error:
            raise OSError(str(error)) from None

    @staticmethod
    def write(address, data):
        try:
            gdb.selected_inferior().write_memory(address, data)
        except gdb.error as error:
            raise WatchError(f"the memory cannot be written ({error})") from None


MAPPING = re.compile(r"\s*0x(\w+)\s+0x(\w+)\s+0x\w+\s+0x(\w+)\s+(?:[-rwxps]{4}\s+)?(/.*)")


class Debugged(Target):
    stands = True

    def __init__(self):
        pid = gdb.selected_inferior().pid
        if not pid:
            raise gdb.GdbError("prudence: there is no process and no core file")
        super().__init__(GdbMemory(), pid, os.path.basename(gdb.current_progspace().filename or "unknown"), f"process {pid}")
        rows = (MAPPING.fullmatch(line.rstrip()) for line in gdb.execute("info proc mappings", to_string=True).splitlines())
        self.mapped = [row.groups() for row in rows if row]
        self.find([int(start, 16) for start, _, offset, _ in self.mapped if not int(offset, 16)])

    def thread_name(self, thread):
        return next((found.name or "" for found in gdb.selected_inferior().threads() if found.ptid[1] == thread), "")

    def mappings(self):
        """Of files, as in /proc/PID/maps. A core file has them in a note."""
        return [f"{start}-{end} r-xp {offset} 00:00 0 {path}" for start, end, offset, path in self.mapped]


def watch():
    return Watch(Debugged())


def told(lines):
    """Prints lines as they come."""
    try:
        for line in commands.shown(lines()):
            print(line)
    except WatchError as error:
        raise gdb.GdbError(f"prudence: {error}") from None
    except OSError as error:
        raise gdb.GdbError(f"prudence: the memory cannot be read ({error})") from None


class Prudence(gdb.Command):
    """Objects, caches and readers of Prudence: prudence dump, caches, counters, whois, latent, readers, domains, traces, walk, profile, set."""

    def __init__(self):
        super().__init__("prudence", gdb.COMMAND_DATA, prefix=True)


class Reading(gdb.Command):
    """A command of prudence-inspect: with the name of a cache after it, or without."""

    def __init__(self, run, of_cache):
        self.__doc__ = run.__doc__ + (f" prudence {run.__name__} [CACHE]" if of_cache else "")
        self.run, self.of_cache = run, of_cache
        super().__init__(f"prudence {run.__name__}", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        told(lambda: self.run(watch(), *([argument or None] if self.of_cache else [])))


class Whois(gdb.Command):
    """What an address is: prudence whois ADDRESS. Its cache, slab and object, and where that object is: live, cached,
    latent or free."""

    def __init__(self):
        super().__init__("prudence whois", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        if not argument:
            raise gdb.GdbError("prudence whois: an address is missing")
        address = int(gdb.parse_and_eval(argument).cast(gdb.lookup_type("unsigned long")))
        told(lambda: commands.whois(watch(), address))


class Traces(gdb.Command):
    """The calls of the threads that are inside a read-side critical section, the one that entered first comes first."""

    def __init__(self):
        super().__init__("prudence traces", gdb.COMMAND_DATA)

    @staticmethod
    def lines():
        by_number = {thread.ptid[1]: thread for thread in gdb.selected_inferior().threads()}
        for domain, reader in commands.inside(watch()):
            yield f"thread {reader['thread']} is inside of domain '{domain.text('name')}' since {reader['grace_periods_begun']} grace periods"
            thread = by_number.get(reader["thread"])
            if thread:
                thread.switch()
                yield from gdb.execute("backtrace", to_string=True).splitlines()
            else:
                yield "gdb sees no thread of this number (it may have another one in its own namespace)"

    def invoke(self, argument, from_tty):
        before = gdb.selected_thread()
        try:
            told(self.lines)
        finally:
            if before:
                before.switch()


class Profile(gdb.Command):
    """Writes the heap profile for prudence-profile: prudence profile FILE."""

    def __init__(self):
        super().__init__("prudence profile", gdb.COMMAND_DATA, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, from_tty):
        if not argument:
            raise gdb.GdbError("prudence profile: the name of a file is missing")
        told(lambda: inspect.write_profile(watch(), argument))


class Set(gdb.Command):
    """Sets an option of the running process: prudence set OPTION VALUE (docs/reference/options.md). The process acts when it goes on, at its next
    slow path."""

    def __init__(self):
        super().__init__("prudence set", gdb.COMMAND_DATA)

    @staticmethod
    def lines(name, value):
        asked = watch()
        for copy in asked.copies:
            Request(copy, asked.process.memory, inner_pid(asked.process.pid), name, value).send()
        yield f"{name}={value}: the process sets it when it goes on, and next allocates or defers past its caches"

    def invoke(self, argument, from_tty):
        given = gdb.string_to_argv(argument)
        if len(given) != 2:
            raise gdb.GdbError("prudence set: an option and a value are wanted, as in: prudence set profile 1")
        if not gdb.selected_thread():
            raise gdb.GdbError("prudence set: there is no running process")
        told(lambda: self.lines(*given))


Prudence()
for read, named in ((commands.dump, False), (commands.caches, False), (commands.counters, True), (commands.latent, True), (commands.readers, False),
                    (commands.domains, False), (commands.walk, True)):
    Reading(read, named)
for command in (Whois, Traces, Profile, Set):
    command()
