# SPDX-License-Identifier: MIT
"""Shared by the tests of real programs (tools/test/programs runs them).

A test has a folder of its own below the system's temporary folder, a copy of the library in it that
everybody can read, and starts programs with that copy preloaded. The commands and what they printed
are kept in the runner's output folder; everything else goes.

That ours was used is proved, not assumed:
  bound    the dynamic loader's own log (LD_DEBUG=bindings) of every process that a test starts and of
           its children: each allocation function that any program or library of the process calls is
           the preloaded one, malloc or calloc among them;
  mapped   /proc/PID/maps of servers and their children, while they work;
  counted  the library's statistics at exit (PRUDENCE_OPTIONS=stats=1): one process made at least that
           many allocations. Not asked of another malloc than Prudence.
"""

import contextlib
import ctypes
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
import unittest
from pathlib import Path

from preload import make_folder

ALLOCATION = ("malloc calloc realloc free posix_memalign aligned_alloc memalign valloc pvalloc "
              "malloc_usable_size").split()
BINDING = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: normal symbol `(%s)'"
                     % "|".join(ALLOCATION))
# The library's text at the exit of each process: totals, then a block for each cache.
HEAD = (r"^prudence: statistics of process .*\n"
        r"(?:prudence \S+: process .*\n(?:(?:slabs and|latent|live|  ).*\n)*\n)?")  # holders of memory
COUNTED = re.compile(HEAD + r"(?:\w+ .*\n){0,8}?allocations +(\d+)$",
                     re.MULTILINE)
STATISTICS = re.compile(HEAD + r"(?:(?: *\w+ +\S+)?\n)*", re.MULTILINE)
NOBODY = 65534
SEARCHED = "/usr/bin:/bin:/usr/sbin:/sbin"  # Debian's programs, not others of the same name


class Settings:
    """Set by the runner before the first test."""
    library = None  # the malloc to preload
    options = ""  # PRUDENCE_OPTIONS of the programs; stats=1 is added where it does not disturb
    full = False  # the full form of each test; else the short one
    progress = None  # called with each command, to show that something goes on
    output = None  # where logs are kept


class Failed(AssertionError):
    """A program did not behave as it should; the message is for people."""


def processes_below(pid):
    """pid and its descendants."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = [pid]
    for process in found:
        found += parents.get(process, [])
    return found


def adopt_orphans():
    """Processes whose parents have ended become our children: none is lost (prctl(2))."""
    ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def kill(processes):
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def end_orphans():
    """Nothing that a test started outlives it. All that was started by subprocess has been waited for."""
    while len(processes := processes_below(os.getpid())) > 1:
        kill(processes[1:])
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def status_text(status):
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"returned {status}"


def tail(path, lines=15):
    text = STATISTICS.sub("", path.read_text(errors="replace")).splitlines()
    return "\n".join("    " + line for line in text[-lines:])


class Done:
    """The output of a command."""

    def __init__(self, stdout, stderr):
        self.stdout_path, self.stderr_path = stdout, stderr

    @property
    def stdout(self):
        return self.stdout_path.read_text(errors="replace")

    @property
    def stderr(self):
        return self.stderr_path.read_text(errors="replace")


class Program(unittest.TestCase):
    packages = ()  # Debian packages that a test needs
    wanted = ()  # programs of them, by name or path
    limit = 120, 900  # seconds for one command: short form, full form
    patience = 10  # seconds until a new process has mapped the library
    least = 1000  # allocations that one of its processes makes at least

    def setUp(self):
        missing = [program for program in self.wanted if not self.find(program)]
        if missing:
            self.skipTest(f"{' '.join(missing)} not found; tools/setup --programs installs "
                          f"{' '.join(self.packages)}")
        self.folder = make_folder()
        self.addCleanup(self.leave)
        self.library = self.folder / Settings.library.name
        shutil.copy(Settings.library, self.library)
        self.library.chmod(0o755)
        self.logs = self.make_folder("logs")
        self.bindings = self.make_folder("bindings")
        self.data = self.make_folder("data")
        self.commands = []
        self.servers = []
        self.facts = []
        self.mapped = 0
        self.traced = False

    # -- output of a test ---------------------------------------------------------------------------

    def note(self, fact):
        """A fact for the table: the checked property."""
        self.facts.append(fact)

    def pick(self, short, full):
        return full if Settings.full else short

    def make_folder(self, name):
        """A folder that an unprivileged server can write."""
        path = self.folder / name
        path.mkdir()
        path.chmod(0o1777)
        return path

    def script(self, name, text):
        """A script for a program, kept with the logs."""
        path = self.logs / name
        path.write_text(text)
        return path

    @staticmethod
    def find(program):
        if "/" in str(program):
            return program if os.path.exists(program) else None
        return shutil.which(program, path=SEARCHED)

    # -- running ------------------------------------------------------------------------------------

    def environment(self, preload, trace, extra):
        environment = {"PATH": SEARCHED, "HOME": str(self.data), "TMPDIR": str(self.data),
                       "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        if preload:
            environment["LD_PRELOAD"] = str(self.library)
            environment["PRUDENCE_OPTIONS"] = ("stats=1," if trace else "") + Settings.options
            if trace:
                environment["LD_DEBUG"] = "bindings"
                environment["LD_DEBUG_OUTPUT"] = str(self.bindings / "ld")
        environment.update(extra)
        return environment

    def launch(self, command, preload=True, trace=True, drop=False, cwd=None, env=(), stdin=None,
               stdout=None):
        """Start a command. Returns the process and the two logs.
        trace: prove by the loader's log and the statistics; False where they would disturb.
        drop: not as root, for programs that refuse it."""
        command = [str(word) for word in command]
        stem = f"{len(self.commands):02d}-{Path(command[0]).name}"
        out = Path(stdout) if stdout else self.logs / f"{stem}.out"
        err = self.logs / f"{stem}.err"
        shown = f"LD_PRELOAD={Settings.library} " if preload else ""
        if preload and Settings.options:
            shown += f"PRUDENCE_OPTIONS={Settings.options} "
        shown += "".join(f"{name}={shlex.quote(value)} " for name, value in dict(env).items())
        self.commands.append(shown + shlex.join(command) + (f" <{stdin}" if stdin else ""))
        self.traced |= preload and trace
        if Settings.progress:
            Settings.progress(stem)
        user = {}
        if drop and os.geteuid() == 0:
            user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        with contextlib.ExitStack() as files:
            source = files.enter_context(open(stdin, "rb")) if stdin else subprocess.DEVNULL
            process = subprocess.Popen(
                [self.find(command[0]) or command[0], *command[1:]], cwd=cwd or self.data,
                env=self.environment(preload, trace, dict(env)), stdin=source,
                stdout=files.enter_context(out.open("wb")), stderr=files.enter_context(err.open("wb")),
                **user)
        return process, Done(out, err)

    def run_program(self, *command, expect=0, limit=None, watch=False, **how):
        """Run a command to its end; it must return the expected status. watch: read its mappings."""
        process, done = self.launch(command, **how)
        process.command = command
        limit = limit or self.pick(*self.limit)
        try:
            if watch:
                self.check_mapped(process)
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            self.show_stacks(process.pid)
            self.end_process(process)
            raise Failed(f"{command[0]} still ran after {limit} s: {self.commands[-1]}\n"
                         f"{tail(done.stderr_path)}") from None
        finally:
            self.end_process(process)
        if status != expect:
            raise Failed(f"{command[0]} {status_text(status)}: {self.commands[-1]}\n"
                         f"{tail(done.stdout_path, 5)}\n{tail(done.stderr_path)}")
        return done

    def run_plain(self, *command, **how):
        """Runs it without our library, to compare the result."""
        return self.run_program(*command, preload=False, **how)

    def start_server(self, *command, ready, end=signal.SIGTERM, **how):
        """Start a server and wait until ready() is true. It is stopped when the test ends; stop_server
        does it earlier, and checks how it ends."""
        process, done = self.launch(command, **how)
        process.command, process.end, process.done = command, end, done
        self.servers.append(process)
        deadline = time.monotonic() + 60
        while not self.is_ready(ready):
            if process.poll() is not None:
                raise Failed(f"{command[0]} {status_text(process.returncode)} at start:\n"
                             f"{tail(done.stdout_path, 5)}\n{tail(done.stderr_path)}")
            if time.monotonic() > deadline:
                self.show_stacks(process.pid)
                raise Failed(f"{command[0]} was not ready after 60 s\n{tail(done.stderr_path)}")
            time.sleep(0.05)
        return process

    @staticmethod
    def is_ready(ready):
        try:
            return ready()
        except (OSError, Failed):
            return False

    def stop_server(self, process, expect=0):
        self.servers.remove(process)
        process.send_signal(process.end)
        try:
            status = process.wait(60)
        except subprocess.TimeoutExpired:
            self.show_stacks(process.pid)
            raise Failed(f"{process.command[0]} still ran 60 s after {process.end.name}") from None
        finally:
            self.end_process(process)
        if status != expect:
            raise Failed(f"{process.command[0]} {status_text(status)} when stopped\n"
                         f"{tail(process.done.stderr_path)}")

    @staticmethod
    def end_process(process):
        """The process and all below it. The test ends processes that have moved out of it."""
        if process.poll() is None:
            kill(processes_below(process.pid))
            process.wait()

    def show_stacks(self, pid):
        """Returns where a hanging process stands, for the kept logs."""
        if not shutil.which("gdb"):
            return
        for process in processes_below(pid):
            with (self.logs / f"stacks-{process}.txt").open("wb") as log, \
                    contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(["gdb", "-batch", "-nx", "-p", str(process), "-ex",
                                "thread apply all backtrace"], stdin=subprocess.DEVNULL, stdout=log,
                               stderr=log, timeout=60, check=False)

    # -- proofs -------------------------------------------------------------------------------------

    def check_mapped(self, process):
        """The process and all below it have our library mapped (soon, if they have just started)."""
        deadline = time.monotonic() + self.patience
        while process.poll() is None:
            maps = {}
            for pid in processes_below(process.pid):
                with contextlib.suppress(OSError):
                    maps[pid] = Path(f"/proc/{pid}/maps").read_text(errors="replace")
            without = [pid for pid, text in maps.items() if text and str(self.library) not in text]
            if not without:
                self.mapped += len(maps)
                return
            if time.monotonic() > deadline:
                raise Failed(f"of {process.command[0]}, {without} have not mapped {self.library}")
            time.sleep(0.05)

    def check_used(self):
        """Every traced process called our functions and no others."""
        if not self.traced:
            return
        used = 0
        for log in self.bindings.glob("ld.*"):
            found = BINDING.findall(log.read_text(errors="replace"))
            ours = {(caller, symbol) for caller, provider, symbol in found
                    if provider == str(self.library)}
            for caller, provider, symbol in found:
                # A program at a fixed address lends out its own jump to a function whose address
                # it takes; it counts where that jump leads.
                if (caller, symbol) not in ours and (provider, symbol) not in ours:
                    raise Failed(f"{symbol} called by {caller} is that of {provider} ({log.name})")
            used += any(symbol in ("malloc", "calloc") for _, symbol in ours)
        if not used:
            raise Failed("no process called our malloc")
        self.note(f"bound in {used} processes")

    def check_counted(self):
        counts = [int(count) for log in self.logs.iterdir()
                  for count in COUNTED.findall(log.read_text(errors="replace"))]
        if not self.traced or "prudence" not in Settings.library.name:
            return
        most = max(counts, default=0)
        if most < self.least:
            raise Failed(f"{len(counts)} processes counted at most {most} allocations; "
                         f"this test makes {self.least} and more")
        self.note(f"{most:,} allocations counted in one")

    # -- end ----------------------------------------------------------------------------------------

    def check_proofs(self):
        """Called by the runner when the test's own checks have passed."""
        self.check_used()
        if self.mapped:
            self.note(f"mapped in {self.mapped}")
        elif not self.traced:
            raise Failed("nothing was seen that proves the use of our library")
        self.check_counted()

    def run(self, result=None):
        method = getattr(self, self._testMethodName)

        def with_proofs():
            try:
                method()
            except Exception:
                for server in self.servers:
                    self.show_stacks(server.pid)
                raise
            for server in list(self.servers):
                self.stop_server(server)
            self.check_proofs()

        with_proofs.__doc__ = method.__doc__
        setattr(self, self._testMethodName, with_proofs)
        try:
            return super().run(result)
        except KeyboardInterrupt:
            self.doCleanups()
            raise

    def leave(self):
        for server in self.servers:
            self.end_process(server)
        end_orphans()
        (self.logs / "commands").write_text("".join(f"{line}\n" for line in self.commands))
        self.keep_logs()
        shutil.rmtree(self.folder, ignore_errors=True)

    def keep_logs(self):
        """Below the output folder. A test's next run replaces them."""
        program = type(self).__module__.removeprefix("program_")
        kept = Settings.output / f"{program}-{self._testMethodName.removeprefix('test_')}"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.logs, kept)
