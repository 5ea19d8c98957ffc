#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""malloc called from within the library: each function of libc's that the library calls gets a stand-in that allocates.

nested_calls.txt names every undefined dynamic symbol of the libraries, and the phases in which it is called. A symbol that it does not
name is a failure, and so is a call, without options, in a phase that it does not name. PRUDENCE_MODELS=deep (make test-long) tries all
stand-ins under all options; otherwise those that are called without options, and some of them under options.
"""

import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", HERE.parents[1] / "build"))
sys.path.insert(0, str(HERE.parents[1] / "tools"))
from preload import ld_preload  # noqa: E402 (the path comes first)
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"
MALLOC, PRUDENCE = BUILD / "libprudence-malloc.so", BUILD / "libprudence.so"
CC = os.environ.get("CC", "cc")
PHASES = ("start", "run", "exit")
COUNTS_FD = 200  # nested_phases.h
OPTIONS = ("check=1", "hardened=1", "rseq=0,membarrier=0", "background=1,stats=1",
           "check=1,guard=50,quarantine=1M,profile=64K,profile_file=/dev/null,stall_trace=1,stats=1")
# calloc, realloc and failures of every malloc call them each time.
FOR_EVER = {"__errno_location", "memset", "memcpy", "memmove"}
REGISTRATION = ("clock_gettime", "gettid", "pthread_mutex_lock", "pthread_setspecific", "pthread_sigmask", "sigfillset", "syscall")
UNDER_OPTIONS = ("getpid", "mmap", "pthread_mutex_unlock", "secure_getenv", "syscall", "memset")
NOT_FUNCTIONS = {"data", "hook"}


def table():
    """Returns the words behind the name of each symbol."""
    rows = {}
    for line in (HERE / "nested_calls.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, *words = line.split()
            rows[name] = set(words)
    return rows


TABLE = table()
FUNCTIONS = sorted(name for name, words in TABLE.items() if not words & NOT_FUNCTIONS)


def undefined(library):
    lines = subprocess.run(["nm", "-D", "--undefined-only", library], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


class StandIns:
    """Builds a library for each function, when it is first asked for."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def compile(self, *arguments):
        subprocess.run([CC, *arguments], check=True)

    def common(self, *flags):
        part = self.folder / f"common{''.join(flags)}.o"
        if not part.exists():
            self.compile("-O1", "-fPIC", "-fno-builtin", "-ftls-model=initial-exec", "-Wall",
                         "-Werror", *flags, "-c", HERE / "nested_interposer.c", "-o", part)
        return part

    def of(self, function, *flags):
        library = self.folder / f"{function}{''.join(flags)}.so"
        if not library.exists():
            self.compile("-shared", f"-DINTERPOSED={function}", HERE / "nested_stub.S",
                         self.common(*flags), "-o", library)
        return library

    def without_memory(self):
        library = self.folder / "no_memory.so"
        self.compile("-shared", "-fPIC", HERE / "nested_no_memory.c", self.common(), "-o", library)
        return library


class Run:
    """Runs the program once; `calls`: how often the stand-in was called in each phase."""

    def __init__(self, preload, options="", program="preload_program_nested"):
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("LD_PRELOAD", "PRUDENCE_OPTIONS")}
        environment["LD_PRELOAD"] = ld_preload(*preload)
        environment["PRUDENCE_OPTIONS"] = options
        with tempfile.TemporaryFile() as file:
            file.truncate(mmap.PAGESIZE)
            try:
                done = subprocess.run(
                    [BUILD / "bin" / program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    text=True, timeout=120, env=environment, pass_fds=(COUNTS_FD,),
                    preexec_fn=lambda: os.dup2(file.fileno(), COUNTS_FD))
                self.status, self.out, self.errors = done.returncode, done.stdout, done.stderr
            except subprocess.TimeoutExpired:
                self.status, self.out, self.errors = "it hangs", "", ""
            file.seek(0)
            self.calls = dict(zip(PHASES, struct.unpack("3Q", file.read(24))))

    def wrong(self, function, options):
        """Returns the fault of the run, or None."""
        if self.status != 0 or self.out != "ok\n":
            return f"{self.status}: {self.out}{self.errors}"
        if "stats=1" in options:
            return None if self.errors.startswith("prudence: statistics") else self.errors
        if self.errors:
            return self.errors
        phases = {phase for phase, calls in self.calls.items() if calls}
        if not options and not phases <= TABLE[function]:
            return f"called in {phases}, which nested_calls.txt does not say"
        return None


class NestedCalls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.stand_ins = StandIns(cls.folder.name)
        cls.stand_ins.common()
        os.dup2(os.open(os.devnull, os.O_RDONLY), COUNTS_FD)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def try_all(self, functions, options="", library=MALLOC, program="preload_program_nested", flags=()):
        def one(function):
            run = Run((self.stand_ins.of(function, *flags), library), options, program)
            return function, run.wrong(function, options), run.calls

        self.stand_ins.common(*flags)
        with ThreadPoolExecutor(2) as pool:
            done = list(pool.map(one, functions))
        wrong = [f"{function}, '{options}': {what}" for function, what, _ in done if what]
        self.assertEqual(wrong, [], "\n".join(wrong))
        return {function: calls for function, _, calls in done}

    def test_every_symbol_has_its_phases(self):
        symbols = undefined(MALLOC) | undefined(PRUDENCE)
        self.assertEqual(symbols - set(TABLE), set(), "not in nested_calls.txt")
        self.assertEqual(set(TABLE) - symbols, set(), "no longer called")
        words = set().union(*TABLE.values())
        self.assertLessEqual(words, {*PHASES, "options", "report", *NOT_FUNCTIONS})
        self.assertTrue(all(TABLE.values()), "without a phase")

    def test_each_function_allocates(self):
        usual = [name for name in FUNCTIONS if TABLE[name] & set(PHASES) and "options" not in TABLE[name]]
        calls = self.try_all(FUNCTIONS if DEEP else usual)
        self.assertGreater(calls["getpid"]["start"], 0)
        self.assertGreater(calls["pthread_sigmask"]["run"], 100)

    def test_under_options(self):
        for options in OPTIONS if DEEP else OPTIONS[:2]:
            self.try_all(FUNCTIONS if DEEP else UNDER_OPTIONS, options)

    def test_dlsym_in_the_trace_of_a_free_by_dlsym(self):
        """The loaded library looks a function up. There dlsym frees the text of a failed dlsym of the stand-in."""
        self.try_all(["backtrace"], OPTIONS[-1])

    def test_a_stand_in_that_calls_itself(self):
        """The stand-in allocates and reads each time. A thread's first read calls some of the functions."""
        functions = FUNCTIONS if DEEP else {*UNDER_OPTIONS, *REGISTRATION}
        self.try_all([name for name in functions if name not in FOR_EVER],
                     flags=("-DNESTED_MORE=100000",))

    def test_functions_of_libprudence(self):
        functions = FUNCTIONS if DEEP else UNDER_OPTIONS
        self.try_all([name for name in functions if name in undefined(PRUDENCE)], library=PRUDENCE,
                     program="preload_program_nested_prudence", flags=("-DNESTED_PRUDENCE",))

    def test_a_static_program(self):
        """Nothing can be preloaded to it, but its own functions go before those of the archive."""
        run = Run((), program="preload_program_nested_static")
        self.assertEqual((run.status, run.out, run.errors), (0, "ok\n", ""))

    def test_no_memory_from_the_start(self):
        """mmap refuses from the start: nested calls are served all the same, then malloc returns NULL, and the program aborts."""
        run = Run((self.stand_ins.without_memory(), MALLOC))
        self.assertEqual((run.status, run.errors), (-signal.SIGABRT, ""))
        self.assertGreater(run.calls["run"], 0)


if __name__ == "__main__":
    if os.uname().machine not in ("x86_64", "aarch64"):
        sys.exit(77)
    unittest.main()
