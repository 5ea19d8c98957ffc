# SPDX-License-Identifier: MIT
"""Commands for gdb: the caches of a process that uses Prudence, the meaning of an address, and the reader for which each object waits.

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
    (gdb) prudence call FUNCTION [ARGUMENT...]

They print the same as prudence-inspect(1), from memory as gdb has it: of a process or of a core file. No function of the program is called, except
by `prudence call`, and the library may be stripped. `prudence set` writes a request into a running process. `prudence call` also works where gdb's
own `call` does not: gdb 13 on a processor with AMX. The package prudence_watch, which lies next to this file, does the rest.

The process may have damaged its memory, and a core file may be anyone's: prudence_watch/bounds.py says how much is taken from it.
"""

import contextlib
import os
import re
import signal
import sys
import threading
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
    """The memory of the process or core file that gdb has."""

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
        """Returns the mappings of files, as in /proc/PID/maps. A core file has them in a note."""
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
    """Objects, caches and readers of Prudence: prudence dump, caches, counters, whois, latent, readers, domains, traces, walk, profile, set, call."""

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
    """prudence whois ADDRESS

    Shows the cache, slab and object of an address, and the state of the object (live, cached, latent or free)."""

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


REGISTERS = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", *(f"r{number}" for number in range(8, 16)), "eflags", "orig_rax", "rip")
ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
WORD = (1 << 64) - 1
RED_ZONE = 256  # bytes, with some to spare
CODE_OF_64_BITS = 0x33  # of cs
CALL_SECONDS = 10  # then the call is ended, because all other threads stand still
REFUSALS = {1: "the processor has more state of vectors than this version of the library can save", 2: "the process cannot block signals"}
BREAKPOINT = b"\xcc"
END = b"\x0f\x05" + BREAKPOINT  # the last of the stub's code: a system call and a breakpoint
BUSY = re.compile(r"malloc|calloc|realloc|free|memalign|_dl_|dl_iterate_phdr|fork|^prudence_")  # functions that have locks which a call may want
BUSY_LIBRARIES = re.compile(r"/(libprudence|ld-linux|ld-musl)")


@contextlib.contextmanager
def parameters(**wanted):
    """gdb's settings, for a while."""
    before = {}
    try:
        for name, value in wanted.items():
            name = name.replace("_", "-")
            before[name] = gdb.parameter(name)
            gdb.execute(f"set {name} {value}")
        yield
    finally:
        for name, value in before.items():
            gdb.execute(f"set {name} {value}")


@contextlib.contextmanager
def signals_stop():
    """Each signal stops the thread, also those that gdb passes on otherwise, and that of the stub's breakpoint; gdb prints nothing then."""
    point = re.search(r"\d+", gdb.execute("catch signal all", to_string=True))[0]
    try:
        gdb.execute(f"commands {point}\nsilent\nend", to_string=True)
        yield
    finally:
        gdb.execute(f"delete {point}")


def register(name):
    """Reads a register of the innermost frame. After a write that changes how the stack is read, gdb may have selected another."""
    gdb.newest_frame().select()
    flags = " | 0" if name == "eflags" else ""  # makes a number of them
    return int(gdb.parse_and_eval(f"${name}{flags}").cast(gdb.lookup_type("long"))) & WORD


def write_register(name, value):
    gdb.newest_frame().select()
    gdb.execute(f"set var ${name} = {value - (value >> 63 << 64)}", to_string=True)


def signal_of_stop():
    """The number of the signal by which the selected thread stopped; 0: unknown."""
    try:
        return int(gdb.parse_and_eval("$_siginfo.si_signo"))
    except gdb.error:
        return 0


class NotNow(Exception):
    """The selected thread cannot call a function."""


class Stub:
    """Calls functions in the selected thread, by src/core/os/posix/call_stub.c. Only general registers are written."""

    def __init__(self, copy):
        self.copy, self.layout = copy, copy.layout
        if "call_stub" not in self.layout.addresses:
            raise WatchError("the library calls functions for debuggers on x86-64 alone, since version 0.3; gdb's own 'call' works elsewhere")
        self.entry, self.state, self.fits = (self.layout.address(name) for name in ("call_stub", "call_state", "call_fits"))
        code = b""
        while END not in code and len(code) < 1024:
            code += self.copy.memory.read(self.entry + len(code), 16)
        if END not in code:
            raise WatchError("the library's code for calls does not end")
        done = self.entry + code.index(END) + END.index(BREAKPOINT)
        self.ends = done, done + len(BREAKPOINT)  # stopped by a signal before the breakpoint, or by the breakpoint
        if self.word("phase"):
            raise WatchError("another call has not returned in this process")

    def word(self, member):
        return self.copy.memory.word(self.state + self.layout.offset(f"call_state.{member}"))

    def is_in_sequence(self):
        """Says whether the thread is inside a restartable sequence: only a thread that goes on there is restarted."""
        area = self.layout.address("rseq_area")
        if not self.copy.memory.number(area + self.layout.offset("rseq_area.known"), 1):
            return False
        place = register("fs_base") + self.copy.memory.word(area + self.layout.offset("rseq_area.offset")) + 8 & WORD
        sequence = self.copy.memory.word(place)
        if not sequence:
            return False
        start, size = self.copy.memory.words(sequence + 8, 2)
        return 0 <= register("rip") - start < size

    def go(self, values):
        """Writes registers and lets the thread run. Returns "", or the reason why it stopped before the end."""
        for name, value in values.items():
            try:
                write_register(name, value)
            except gdb.error as error:
                raise WatchError(f"the register {name} cannot be written ({error})") from None
        wrong = [name for name, value in values.items() if register(name) != value & WORD]
        if wrong:
            raise WatchError(f"gdb has not written the registers {', '.join(wrong)}")
        gdb.execute("queue-signal 0", to_string=True)
        timer = threading.Timer(CALL_SECONDS, os.kill, (gdb.selected_inferior().pid, signal.SIGSTOP))
        failed = ""
        timer.start()
        try:
            gdb.execute("continue", to_string=True)
        except gdb.error as error:
            failed = str(error)
        finally:
            timer.cancel()
        if not gdb.selected_inferior().pid:
            raise WatchError("the process has ended")
        place = register("rip")
        return "" if place in self.ends else failed or f"signal {signal_of_stop()} at {place:#x}"

    @staticmethod
    def put_back(values):
        """Writes the registers that have changed; a write that fails is tried once more."""
        for last in (False, True):
            errors = []
            for name, value in values.items():
                try:
                    if register(name) != value:
                        write_register(name, value)
                except gdb.error as error:
                    errors.append(f"{name} = {value:#x} ({error})")
            if errors and last:
                raise WatchError(f"registers cannot be put back: {', '.join(errors)}. Put them back by 'set var' before the process goes on")

    def call(self, function, arguments, name):
        before = {each: register(each) for each in REGISTERS}
        given = {"rbp": self.state, "rsp": before["rsp"] - RED_ZONE & ~15, "orig_rax": WORD}
        try:
            ended = self.go(given | dict(zip(ARGUMENTS, arguments)) | {"rax": function, "rip": self.entry})
            if ended and not self.word("phase"):
                raise NotNow(f"{ended} came first")
            if ended and self.go(given | {"rip": self.word("back")}):
                raise WatchError(f"{name} was stopped by {ended}, and the thread's vector registers cannot be restored")
            result = register("rbx")
        finally:
            if gdb.selected_inferior().pid:
                self.put_back(before)
        if ended:
            raise WatchError(f"{name} did not return: it was stopped by {ended}. The thread goes on as before the call; locks that {name} took stay")
        if self.word("refusal"):
            raise WatchError(REFUSALS.get(self.word("refusal"), "the library refuses the call"))
        return result

    def check(self):
        """NotNow: the selected thread cannot call a function now."""
        if register("cs") != CODE_OF_64_BITS:
            raise NotNow("it runs code of 32 bits")
        if signal_of_stop() not in (0, signal.SIGTRAP, signal.SIGSTOP, signal.SIGINT):
            raise NotNow("it is about to get a signal")
        frame = gdb.newest_frame()
        while frame:
            if BUSY.search(frame.name() or "") or BUSY_LIBRARIES.search(gdb.solib_name(frame.pc()) or ""):
                raise NotNow("it is inside the library, an allocator or the loader")
            frame = frame.older()
        if self.is_in_sequence():
            raise NotNow("it is inside a restartable sequence")
        if not self.call(self.fits, (), "the library's check") & 0xff:
            raise NotNow("it is inside the library")


class Call(gdb.Command):
    """Calls a function of the library in the stopped process: prudence call FUNCTION [ARGUMENT...]. FUNCTION is a name or an address, and at most
    six arguments are numbers. Registers and the interrupted system call stay as they are. All other threads stand still, so a function that waits
    for them is ended after ten seconds."""

    def __init__(self):
        super().__init__("prudence call", gdb.COMMAND_DATA)

    @staticmethod
    def address_of(name):
        if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            try:
                return int(gdb.parse_and_eval(f"&{name}").cast(gdb.lookup_type("long"))) & WORD
            except gdb.error:
                raise WatchError(f"there is no function '{name}'; in a stripped static program give its address") from None
        return Call.number(name)

    @staticmethod
    def number(text):
        try:
            value = int(text, 0)
        except ValueError:
            raise WatchError(f"'{text}' is not a number") from None
        if not -1 << 63 <= value <= WORD:
            raise WatchError(f"'{text}' has more than 64 bits")
        return value & WORD

    @staticmethod
    def in_some_thread(stubs, function, arguments, name):
        """In the selected thread if it can."""
        first, reasons = gdb.selected_thread(), []
        for thread in sorted(gdb.selected_inferior().threads(), key=lambda thread: (thread.num != first.num, thread.num)):
            try:
                thread.switch()
                gdb.newest_frame().select()
                for stub in stubs:
                    stub.check()
                return stubs[0].call(function, arguments, name)
            except NotNow as reason:
                reasons.append(f"thread {thread.num}: {reason}")
        raise WatchError(f"no thread can call it now; let the process go on, and ask again. {'; '.join(reasons[:5])}")

    def lines(self, name, *texts):
        stubs = [Stub(copy) for copy in watch().copies]
        function, arguments = self.address_of(name), [self.number(text) for text in texts]
        with signals_stop():
            result = self.in_some_thread(stubs, function, arguments, name)
        yield f"{name} returned {result} ({result:#x})"

    def invoke(self, argument, from_tty):
        given = gdb.string_to_argv(argument)
        if not 1 <= len(given) <= 1 + len(ARGUMENTS):
            raise gdb.GdbError("prudence call: a function and at most six numbers are wanted, as in: prudence call prudence_dump 2")
        if not gdb.selected_thread():
            raise gdb.GdbError("prudence call: there is no running process")
        thread, frame = gdb.selected_thread(), gdb.selected_frame()
        try:
            with parameters(language="c", scheduler_locking="on"):
                told(lambda: self.lines(*given))
        finally:
            if thread.is_valid():
                thread.switch()
                if frame.is_valid():
                    frame.select()


Prudence()
for read, named in ((commands.dump, False), (commands.caches, False), (commands.counters, True), (commands.latent, True), (commands.readers, False),
                    (commands.domains, False), (commands.walk, True)):
    Reading(read, named)
for command in (Whois, Traces, Profile, Set, Call):
    command()
