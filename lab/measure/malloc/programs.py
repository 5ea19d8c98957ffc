# SPDX-License-Identifier: MIT
"""The programs that run under each allocator.

A program has a name, a summary, `missing()` (why it cannot run here, or None), `prepare(scale)`
and `run(allocator, pause)`, which returns the figures of one run: wall_seconds, cpu_seconds,
peak_rss_bytes, minor_faults, and paused_rss_bytes where it can pause.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import inputs, listed
from .watch import Failed, Watched, resident


@dataclass
class Tools:
    """The folders of our own programs and of inputs, and the longest time of a run."""
    build: Path
    timeout: float

    def __post_init__(self):
        self.bench = self.build / "bin/prudence-bench"
        self.load = self.build / "bin/prudence-malloc-load"
        self.watch = self.build / "bin/prudence-malloc-watch"
        self.inputs = self.build / "malloc-inputs"
        self.scripts = Path(__file__).resolve().parents[3] / "lab/bench/malloc/programs"


def figures(cost):
    return {"wall_seconds": cost["wall_seconds"],
            "cpu_seconds": cost["user_seconds"] + cost["system_seconds"],
            "user_seconds": cost["user_seconds"], "system_seconds": cost["system_seconds"],
            "peak_rss_bytes": cost["peak_rss_bytes"], "minor_faults": cost["minor_faults"],
            "major_faults": cost["major_faults"]}


class Pattern:
    kind = "pattern"
    version = ""
    options = ()

    def __init__(self, tools, name, summary):
        self.tools, self.name, self.summary = tools, name, summary
        self.pattern = name

    def missing(self):
        return None

    def prepare(self, scale):
        self.command = [self.tools.load, self.pattern, "--scale", f"{scale:.9f}", *self.options]

    def run(self, allocator, pause):
        command = self.command + (["--pause", f"{pause:.9f}"] if pause else [])
        with Watched(self.tools.watch, allocator, command, {}, self.tools.timeout) as run:
            output, _ = run.finish()
        said = json.loads(output)
        if said["allocator"]["file"] != allocator.path.name:
            raise Failed(f'its malloc came from {said["allocator"]["file"]}')
        return {**figures(said), **{key: said[key] for key in ("threads", "blocks", "base_rss_bytes", "paused_rss_bytes", "figures") if key in said}}


class Locked(Pattern):
    """A pattern whose process has locked all its memory."""
    options = ("--lock",)

    def __init__(self, tools, name, summary):
        super().__init__(tools, name, summary)
        self.name = f"locked/{name}"

    def missing(self):
        tried = subprocess.run([self.tools.load, self.pattern, "--scale", "1e-9", *self.options], capture_output=True, text=True, check=False)
        return tried.stderr.strip() if tried.returncode else None


HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
HUGE_PAGE_MODES = ("never", "madvise", "always")


class WithHugePages(Pattern):
    """A pattern while the system gives huge pages in this way. The former way is restored after each run."""

    def __init__(self, tools, name, summary, mode):
        super().__init__(tools, name, summary)
        self.name, self.mode = f"{mode}/{name}", mode

    def missing(self):
        if not HUGE_PAGES.exists() or (not os.access(HUGE_PAGES, os.W_OK) and self.mode != huge_page_mode()):
            return f"{HUGE_PAGES} cannot be written"
        return None

    def run(self, allocator, pause):
        former = huge_page_mode()
        try:
            set_huge_page_mode(self.mode)
            return super().run(allocator, pause)
        finally:
            set_huge_page_mode(former)


def huge_page_mode():
    """Returns the word in brackets."""
    return HUGE_PAGES.read_text().partition("[")[2].partition("]")[0]


def set_huge_page_mode(mode):
    if mode != huge_page_mode():
        HUGE_PAGES.write_text(mode)


@dataclass
class Whole:
    """A program from its start to its end, on an input of ours. `make` writes the input and
    returns the command; {out} in it is a file to write. The result must always be the same."""
    tools: Tools
    name: str
    summary: str
    executable: str
    make: callable
    version_command: list
    environment: dict = field(default_factory=dict)
    result: str = None
    kind = "program"

    def missing(self):
        if not shutil.which(self.executable):
            return f"{self.executable} is not installed: `tools/setup --{'listed' if '/' in self.name else 'programs'}` installs it"
        self.version = first_line(self.version_command)
        return None

    def prepare(self, scale):
        self.command = [str(part) for part in self.make(self.tools, scale)]
        self.result = None

    def run(self, allocator, pause):
        with tempfile.TemporaryDirectory(prefix="prudence-bench-") as folder:
            out = Path(folder, "out")
            command = [part.replace("{out}", str(out)) for part in self.command]
            environment = {"LC_ALL": "C", **self.environment}
            with Watched(self.tools.watch, allocator, command, environment, self.tools.timeout) as run:
                output, cost = run.finish()
            self.check(output.encode() + (out.read_bytes() if out.exists() else b""))
        return figures(cost)

    def check(self, result):
        digest = hashlib.sha256(result).hexdigest()
        if self.result not in (None, digest):
            raise Failed("its result is not that of the first run")
        self.result = digest


def first_line(command):
    done = subprocess.run(command, text=True, capture_output=True, stdin=subprocess.DEVNULL)
    return (done.stdout or done.stderr).partition("\n")[0].strip()


def compile_cxx(tools, scale):
    """The compiler proper on a preprocessed file, since it takes most of the time and memory."""
    source = listed.write(tools, "templates.cpp", inputs.cxx(scale))
    subprocess.run(["g++", "-E", "-P", "-o", source.with_suffix(".ii"), source], check=True)
    compiler = first_line(["g++", "-print-prog-name=cc1plus"])
    return [compiler, "-quiet", "-fpreprocessed", "-O2", source.with_suffix(".ii"), "-o", "{out}"]


def query(tools, scale):
    return ["sqlite3", ":memory:", f".read {listed.write(tools, 'queries.sql', inputs.sql(scale))}"]


def solve(tools, scale):
    return ["z3", listed.write(tools, "problems.smt2", inputs.smt2(scale))]


def python_objects(tools, scale):
    return ["/usr/bin/python3", "-S", "-s", tools.scripts / "objects.py", scale]


def lua_objects(tools, scale):
    return ["lua5.4", tools.scripts / "objects.lua", scale]


class Redis:
    """redis-server in memory, and redis-benchmark as another process, which keeps the system's allocator.
    Values change their size from one pass to the next. Wall time is the clients'; all else is the
    server's."""

    kind = "program"
    name = "redis"
    summary = "redis-server: strings, lists, sets, hashes; values of 64, 700 and 200 bytes in turn"
    tests = "set,get,lpush,lpop,sadd,hset"

    def __init__(self, tools):
        self.tools = tools

    def missing(self):
        for program in ("redis-server", "redis-benchmark", "redis-cli"):
            if not shutil.which(program):
                return f"{program} is not installed: `tools/setup --programs` installs it"
        self.version = first_line(["redis-server", "--version"])
        return None

    def prepare(self, scale):
        self.requests = inputs.scaled(40000, scale)

    def client(self, *command):
        try:
            done = subprocess.run(command, text=True, capture_output=True, timeout=self.tools.timeout)
        except subprocess.TimeoutExpired:
            raise Failed(f"{command[0]} has not finished") from None
        if done.returncode or "ERR" in done.stdout:
            raise Failed(f"{command[0]}: {(done.stderr or done.stdout).strip()[:200]}")
        return done.stdout

    def wait_until_ready(self, run, socket):
        while not socket.exists():
            if run.process.poll() is not None:
                run.finish()  # says why, if it failed
                raise Failed("redis-server has ended by itself")
            if time.monotonic() > run.deadline:
                raise Failed("redis-server does not start")
            time.sleep(0.01)
        self.client("redis-cli", "-s", socket, "ping")

    def load(self, socket):
        began = time.monotonic()
        for size in ("64", "700", "200"):
            self.client("redis-benchmark", "-s", socket, "-q", "-P", "16", "-r", "50000", "-d", size, "-n", str(self.requests), "-t", self.tests)
        return time.monotonic() - began

    def run(self, allocator, pause):
        with tempfile.TemporaryDirectory(prefix="prudence-bench-") as folder:
            socket, pid = Path(folder, "socket"), Path(folder, "pid")
            command = ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", folder, "--pidfile", pid]
            with Watched(self.tools.watch, allocator, command, {}, self.tools.timeout) as run:
                self.wait_until_ready(run, socket)
                wall, paused = self.load(socket), {}
                if pause:
                    time.sleep(pause)
                    paused = {"paused_rss_bytes": resident(int(pid.read_text()))}
                self.client("redis-cli", "-s", socket, "shutdown", "nosave")
                _, cost = run.finish()
        return {**figures(cost), "wall_seconds": wall, **paused}


LOCKED = ("memory-sizes", "memory-survivors", "memory-quiet", "memory-calloc")


def programs(tools):
    """All of them, in the order in which they are shown."""
    patterns = json.loads(subprocess.run([tools.load, "list"], check=True, text=True, capture_output=True).stdout)
    kept = [one for one in patterns if one["name"] in LOCKED]
    plain = [one for one in patterns if not one["name"].startswith(("like-", "memory-"))]
    return [Pattern(tools, one["name"], one["summary"]) for one in patterns] + [
        Locked(tools, one["name"], one["summary"]) for one in kept] + [
        WithHugePages(tools, one["name"], one["summary"], mode) for mode in HUGE_PAGE_MODES for one in plain] + [
        Whole(tools, "g++", "the compiler proper, -O2, on templates of the standard containers", "g++", compile_cxx, ["g++", "--version"]),
        Whole(tools, "lua", "tables, closures, strings, trees", "lua5.4", lua_objects, ["lua5.4", "-v"]),
        Whole(tools, "python", "objects, dictionaries, JSON, trees; PYTHONMALLOC=malloc",
              "/usr/bin/python3", python_objects, ["/usr/bin/python3", "--version"],
              {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}),
        Redis(tools),
        Whole(tools, "sqlite", "a database in memory: indexes, joins, groups, JSON", "sqlite3", query, ["sqlite3", "--version"]),
        Whole(tools, "z3", "job shops, and primes as boolean formulas", "z3", solve, ["z3", "--version"]),
    ] + [listed_program(tools, *row) for row in listed.LISTED]


def listed_program(tools, name, summary, executable, make, version, environment=None):
    return Whole(tools, listed.full_name(name), summary, executable, make, [executable, *version.split()], environment or {})
