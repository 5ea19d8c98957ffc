# SPDX-License-Identifier: MIT
"""Shared by the tests of this folder: a program that is watched (watched.c), and the tools that watch it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
TOP, STAT, INSPECT = (BUILD / f"bin/prudence-{name}" for name in ("top", "stat", "inspect"))
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "programs/watch"), str(ROOT / "tools")]

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # in the background of a shell: the tools would ignore it, too
    signal.signal(signal.SIGINT, signal.default_int_handler)

PATIENCE = 60  # seconds, for events that have to happen
# Core files without pages of files, as the kernel's default; the second also lacks the pages that begin them.
FILTERS = ("0x33", "0x23")


def until(what, patience=PATIENCE):
    """Its first answer that is true."""
    end = time.monotonic() + patience
    while True:
        answer = what()
        if answer or time.monotonic() > end:
            return answer
        time.sleep(0.01)


def needs_gdb():
    if not shutil.which("gdb"):
        if os.environ.get("CI"):
            sys.exit("there is no gdb (tools/setup installs it)")
        raise unittest.SkipTest("there is no gdb")


class Watched:
    """The program, running."""

    def __init__(self, path, options="", before=(), arguments=(), **more):
        environment = os.environ | {"PRUDENCE_OPTIONS": options}
        self.process = subprocess.Popen([*before, path, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, **more)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n"

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line):
        self.tell(line)
        return self.process.stdout.readline().strip()

    def stats(self):
        return json.loads(self.ask("stats"))

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Tools(unittest.TestCase):
    def run_tool(self, tool, *arguments, status=0, **more):
        done = subprocess.run([tool, *map(str, arguments)], text=True, capture_output=True, timeout=PATIENCE, check=False, **more)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done


class Case(Tools):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="prudence-watch-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.folder.chmod(0o755)
        library = cls.folder / "libprudence.so.0"  # another user may not see the tree
        shutil.copy(BUILD / "libprudence.so", library)
        cls.compile("watched", library, f"-Wl,-rpath,{cls.folder}")

    @classmethod
    def compile(cls, name, *libraries):
        subprocess.run(["cc", "-g", "-O1", f"-I{ROOT}/include", ROOT / "tests/watch/watched.c", "-o", cls.folder / name, *libraries,
                        "-pthread"], check=True)

    def start(self, name="watched", **more):
        watched = Watched(self.folder / name, **more)
        self.addCleanup(watched.end)
        return watched

    def busy(self, name="watched", **more):
        """A process with live and deferred objects, and a reader."""
        watched = self.start(name, **{"options": "background=0", **more})
        for line in ("keep 300", "enter", "defer 1000"):
            watched.ask(line)
        return watched

    def core_of(self, watched, mask=FILTERS[0]):
        """Made by gdb, which reads the filter of the process."""
        if not shutil.which("gdb"):
            self.skipTest("there is no gdb")
        Path(f"/proc/{watched.pid}/coredump_filter").write_text(mask)
        path = self.folder / f"core.{watched.pid}"
        made = subprocess.run(["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", str(watched.pid), "-ex", f"generate-core-file {path}"],
                              text=True, capture_output=True, check=False)
        if "ptrace" in made.stderr:
            self.skipTest("gdb may not trace here")
        self.assertTrue(path.exists(), made.stderr)
        return path
