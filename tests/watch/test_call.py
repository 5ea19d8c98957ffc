#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 15
"""`prudence call` of gdb calls functions where gdb's own `call` cannot: gdb's writes of vector registers fail here, as those of gdb 13.1 do on a
processor with AMX. The interrupted threads (called.c) go on as if nothing had been, also after calls that fail, and after refused writes."""

import os
import platform
import re
import signal
import subprocess
import unittest
from pathlib import Path

from watching import BUILD, PATIENCE, ROOT, Case, Watched, needs_gdb, until

SCRIPT = ROOT / "programs/gdb/prudence-gdb.py"
# gdb's system call that writes registers: those of vectors never, general ones not at the times that REFUSE has ("3" or "3-": all from then on).
PTRACE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

long ptrace(enum __ptrace_request request, ...)
{
    static long (*real)(long, long, void *, void *);
    static long count;
    const char *refuse = getenv("REFUSE");
    void *address, *data;
    va_list rest;
    long pid;

    va_start(rest, request);
    pid = va_arg(rest, int);
    address = va_arg(rest, void *);
    data = va_arg(rest, void *);
    va_end(rest);
    if (!real)
        real = (long (*)(long, long, void *, void *))dlsym(RTLD_NEXT, "ptrace");
    if (request == PTRACE_SETREGS && refuse && (++count == atol(refuse) || (count > atol(refuse) && strchr(refuse, '-')))) {
        errno = EPERM;
        return -1;
    }
    if (request == PTRACE_SETFPREGS || request == PTRACE_SETREGSET) {
        errno = EFAULT;
        return -1;
    }
    return real(request, pid, address, data);
}
"""
WAITS = ("pause", "nanosleep", "futex", "read", "epoll_wait", "sigsuspend")
CLOBBERS = {"avx512f": "clobber_zmm", "avx2": "clobber_ymm"}
TGKILL = 234
REGISTERS = "info registers rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip eflags orig_rax fs_base gs_base"

# A write of the tool is refused, by its number.
REFUSE = """python
real, count = write_register, 0
def write_register(name, value):
    global count
    count += 1
    if count == {at}:
        raise gdb.error("refused")
    real(name, value)
"""


def clobber():
    flags = Path("/proc/cpuinfo").read_text().split()
    return next((name for flag, name in CLOBBERS.items() if flag in flags), "clobber")


@unittest.skipUnless(platform.machine() == "x86_64", "gdb's own call works on other processors")
class Call(Case):
    @classmethod
    def setUpClass(cls):
        needs_gdb()
        super().setUpClass()
        cls.program("called", cls.folder / "libprudence.so.0", f"-Wl,-rpath,{cls.folder}")
        (cls.folder / "ptrace.c").write_text(PTRACE)
        subprocess.run(["cc", "-shared", "-fPIC", cls.folder / "ptrace.c", "-o", cls.folder / "ptrace.so", "-ldl"], check=True)

    @classmethod
    def program(cls, name, *more):
        subprocess.run(["cc", "-g", "-O1", f"-I{ROOT}/include", ROOT / "tests/watch/called.c", "-o", cls.folder / name, *more, "-pthread"], check=True)

    def setUp(self):
        self.begin("called")

    def begin(self, name):
        self.called = Watched(self.folder / name, stderr=subprocess.DEVNULL)
        self.addCleanup(self.called.end)
        self.ends = {}
        until(lambda: {*WAITS, "vectors", "section"} < self.threads().keys())

    def gdb(self, *commands, refuse=None):
        environment = os.environ | {"LD_PRELOAD": str(self.folder / "ptrace.so"), "LC_ALL": "C.UTF-8"} | ({"REFUSE": refuse} if refuse else {})
        words = [word for command in commands for word in ("-ex", command)]
        return subprocess.run(["gdb", "-nx", "-iex", "set debuginfod enabled off", "-iex", "set style enabled off", "-p", str(self.called.pid), "-batch",
                               "-x", SCRIPT, *words], env=environment, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False).stdout

    @staticmethod
    def at(thread):
        return f"python [each.switch() for each in gdb.selected_inferior().threads() if each.name == '{thread}']"

    def line_of(self, thread):
        """The line in which a thread says how its wait ended."""
        while thread not in self.ends:
            line = self.called.process.stdout.readline()
            self.assertTrue(line, "the process has ended")
            self.ends[line.split()[0]] = line
        return self.ends[thread]

    def ended(self, thread):
        self.called.tell(thread)
        return self.line_of(thread)

    def threads(self):
        """{name: number}"""
        return {(task / "comm").read_text().strip(): task.name for task in Path(f"/proc/{self.called.pid}/task").iterdir()}

    def check_all_go_on(self, but=None):
        """Counts the handled signals: none ended before it was asked to."""
        for thread, end in {"pause": "-1, errno 4, handled 1", "sigsuspend": "-1, errno 4, handled 2", "nanosleep": "-1, errno 4, handled 3",
                            "read": "1, errno 0", "futex": "0, errno 0", "epoll_wait": "1, errno 0", "vectors": "5"}.items():
            self.assertRegex(self.ended(thread) if thread != but else self.line_of(thread), f"{thread} returned {end}, ")

    def test_gdb_alone_cannot(self):
        self.assertIn("Couldn't write extended state status", self.gdb(self.at("futex"), "call (int)getppid()"))

    def test_calls_leave_threads_as_they_were(self):
        commands = []
        for thread in (*WAITS, "vectors"):
            commands += [self.at(thread), REGISTERS, "echo next\\n", "prudence call mark 1 2 3 4 5 -6", f"prudence call {clobber()}", "prudence call first_state", "echo next\\n", REGISTERS, "echo end\\n"]
        said = self.gdb(*commands, "prudence call prudence_dump 2", "prudence call prudence_trim", "prudence call nothing", "prudence call mark x", "prudence call",
                        "info breakpoints", "show scheduler-locking", "show language")
        numbers = self.threads()
        for thread, part in zip((*WAITS, "vectors"), said.split("end\n")):
            first, calls, last = part.split("next\n")
            self.assertEqual(first[first.index("rax "):], last, thread)
            self.assertIn(f"mark returned {numbers[thread]} ", calls)
            self.assertIn("first_state returned 8 ", calls)
        for text in ("prudence_dump returned 0 ", "prudence_trim returned", "there is no function 'nothing'; in a stripped static program give its address", "'x' is not a number",
                     "a function and at most six numbers are wanted", "No breakpoints", 'is "replay"', '"auto; currently c"'):
            self.assertIn(text, said)
        self.assertNotIn("SIGTRAP", said)
        self.check_all_go_on()

    def test_a_signal_during_the_call(self):
        """Its handler runs where the thread was, with all that the signal carries."""
        self.assertIn("signalled returned 7 ", self.gdb(self.at("pause"), "prudence call signalled"))
        self.assertRegex(self.line_of("pause"), "pause returned -1, errno 4, handled 1, value 42")

    def test_a_signal_before_the_call(self):
        """Another thread is used, and the signal comes as if nothing had been."""
        said = self.gdb(self.at("pause"), "python import ctypes", f"python ctypes.CDLL(None).syscall({TGKILL}, {self.called.pid}, {self.threads()['pause']}, {signal.SIGUSR1.value})",
                        "prudence call mark 1 2 3 4 5 -6")
        self.assertRegex(said, r"mark returned \d+ ")
        self.assertNotIn(f"mark returned {self.threads().get('pause')} ", said)
        self.check_all_go_on(but="pause")

    def test_calls_that_fail(self):
        for _ in range(5):
            said = self.gdb(self.at("pause"), REGISTERS, "echo next\\n", "prudence call fault", "echo next\\n", REGISTERS, self.at("vectors"), "prudence call fault", "prudence call 16",
                            f"prudence call {clobber()}", "break mark", "prudence call mark")
            first, calls, last = said.split("next\n")
            self.assertIn(first[first.index("rax "):], last)
            self.assertIn("fault did not return: it was stopped by signal 11 at", calls)
            self.assertIn("16 did not return: it was stopped by signal 11 at 0x10. ", last)
            self.assertIn(f"{clobber()} returned", last)
            self.assertIn("mark did not return: it was stopped by signal 5 at", last)
        self.check_all_go_on()

    def test_a_call_that_waits_is_ended(self):
        said = self.gdb(self.at("futex"), "python CALL_SECONDS = 0.3", "prudence call prudence_synchronize", "prudence call mark 1 2 3 4 5 -6")
        self.assertIn("prudence_synchronize did not return: it was stopped by signal 19", said)
        self.assertRegex(said, r"mark returned \d+ ")
        self.check_all_go_on()

    def test_threads_inside_the_library(self):
        """Another thread is used."""
        said = self.gdb("python BUSY = re.compile('libc_read')", self.at("read"), "prudence call mark 1 2 3 4 5 -6")
        self.assertRegex(said, r"mark returned \d+ ")
        self.assertNotIn(f"mark returned {self.threads()['read']} ", said)
        self.assertIn("no thread can call it now", self.gdb("python BUSY = re.compile('')", "prudence call mark"))
        self.check_all_go_on()

    def test_refused_writes(self):
        """The thread is as before, whether the system refuses a write of the tool's, or all."""
        for refuse in ("1-", "1", "4"):
            self.refused("pause", (), refuse=refuse)
        for at in (3, 6, 12, 17, 24):
            self.refused("pause", (REFUSE.format(at=at),))
        self.check_all_go_on()

    def refused(self, thread, commands, **more):
        said = self.gdb(*commands, self.at(thread), REGISTERS, "echo next\\n", f"prudence call {clobber()}", "echo next\\n", REGISTERS, **more)
        first, call, last = said.split("next\n")
        self.assertIn(first[first.index("rax "):], last, call)
        self.assertRegex(call, "cannot be written|returned")
        self.assertNotIn("cannot be put back", call)

    def test_stripped_static_program(self):
        """The command has no names, and takes addresses."""
        self.called.end()
        self.program("static", BUILD / "libprudence.a", "-static", "-no-pie")
        names = subprocess.run(["nm", self.folder / "static"], capture_output=True, text=True, check=True).stdout
        address = re.search(r"^([0-9a-f]+) T mark$", names, re.M)[1]
        subprocess.run(["strip", self.folder / "static"], check=True)
        self.begin("static")
        said = self.gdb("prudence call mark 1 2 3 4 5 -6", f"prudence call 0x{address} 1 2 3 4 5 -6")
        self.assertIn("there is no function 'mark'", said)
        self.assertRegex(said, rf"0x{address} returned \d+ ")
        self.check_all_go_on()


if __name__ == "__main__":
    unittest.main()
