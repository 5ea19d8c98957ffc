#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 10
"""prudence-top in a terminal: it shows the caches and the reader that stays, sorts, scrolls, follows the terminal's size, and
stays when the process dies. The terminal is a pseudo-terminal with an emulator behind it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
import unittest

from watching import PATIENCE, TOP, Case, until

try:
    import pyte
except ImportError:
    if os.environ.get("CI"):
        sys.exit("there is no pyte (tools/setup installs it)")
    print("there is no pyte (Debian: python3-pyte): skipped")
    sys.exit(77)

UP, DOWN, HOME, END = "\033[A", "\033[B", "\033[1~", "\033[4~"  # of TERM=linux


class Terminal:
    """A program in a terminal of this many columns and rows."""

    def __init__(self, columns, rows, *command, **environment):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.output = b""
        own = {name: value for name, value in os.environ.items() if name not in ("LINES", "COLUMNS")}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                self.set_size(0, columns, rows)
                os.execve(command[0], [str(word) for word in command],
                          own | {"TERM": "linux", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"} | environment)
            finally:
                os._exit(127)
        self.status = None

    @staticmethod
    def set_size(fd, columns, rows):
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        self.set_size(self.fd, columns, rows)

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def read_some(self):
        """False: the program has closed the terminal."""
        if not select.select([self.fd], [], [], 0.05)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.output += data
        self.stream.feed(data)
        return bool(data)

    def until(self, what):
        """Waits until that is true of the screen's text; returns the text."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            open_still = self.read_some()
            if what(self.text()):
                return self.text()
            if not open_still:
                break
        raise AssertionError(f"not seen on the screen:\n{self.text()}")

    def text(self):
        return "\n".join(self.screen.display)

    def shows(self, *patterns):
        return self.until(lambda text: all(re.search(pattern, text) for pattern in patterns))

    def end(self):
        """The program ends; its exit status."""
        end = time.monotonic() + PATIENCE
        while self.read_some() and time.monotonic() < end:
            pass
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


class Top(Case):
    def top(self, watched, *arguments, columns=150, rows=40, **environment):
        terminal = Terminal(columns, rows, TOP, "--pid", watched.pid, "--interval", "100ms", *arguments, **environment)
        self.addCleanup(terminal.close)
        return terminal

    @staticmethod
    def caches(text):
        return re.findall(r"^(routes|more \d\d) ", text, re.M)

    def test_the_cache_and_the_reader_that_stays(self):
        watched = self.start()
        thread = watched.ask("enter")
        watched.ask("defer 5000")
        watched.ask("keep 100")
        terminal = self.top(watched)
        text = terminal.shows(rf"blocking: thread 'parser' \(tid {thread}\) is inside a section of domain 'default'")
        self.assertIn(f"prudence-top: watched ({watched.pid}), Prudence ", text)
        self.assertRegex(text, r"routes +100B +100 +5\.0k +\d+ +547K ")
        self.assertRegex(text, r"latent 547K of 32\.0M")
        self.assertIn("readers 1, inside 1", text)
        self.assertRegex(text, "█")
        watched.ask("leave")
        terminal.shows(r"routes +100B +100 +0 ", "inside 0")
        self.assertNotIn("blocking:", terminal.text())
        terminal.press("q")
        self.assertEqual(terminal.end(), 0)
        self.assertIn(b"\033[?25h", terminal.output[-200:])  # the cursor is shown again

    def test_sorting_and_scrolling(self):
        watched = self.start()
        watched.ask("more 20")
        watched.ask("enter")
        watched.ask("defer 10")
        terminal = self.top(watched, rows=18)
        terminal.until(lambda text: self.caches(text)[:2] == ["routes", "more 01"] and "more below" in text)
        terminal.press("v")
        terminal.until(lambda text: self.caches(text)[:3] == ["more 20", "more 19", "more 18"] and "*LIVE" in text)
        terminal.press("n")
        terminal.until(lambda text: self.caches(text)[:2] == ["more 01", "more 02"] and "CACHE*" in text)
        terminal.press(DOWN + DOWN)
        terminal.until(lambda text: self.caches(text)[:1] == ["more 03"])
        terminal.press(UP)
        terminal.until(lambda text: self.caches(text)[:1] == ["more 02"])
        terminal.press(END)
        terminal.until(lambda text: self.caches(text)[-2:] == ["more 20", "routes"] and "more below" not in text)
        terminal.press(HOME)
        terminal.until(lambda text: self.caches(text)[:1] == ["more 01"])
        terminal.press("r")
        terminal.until(lambda text: self.caches(text)[:2] == ["routes", "more 20"])
        terminal.press("q")
        self.assertEqual(terminal.end(), 0)

    def test_pause(self):
        watched = self.start()
        watched.ask("keep 10")
        terminal = self.top(watched)
        terminal.shows(r"routes +100B +10 ")
        terminal.press(" ")
        terminal.shows("paused")
        watched.ask("keep 10")
        for _ in range(10):
            terminal.read_some()
        self.assertRegex(terminal.text(), r"routes +100B +10 ")
        terminal.press(" ")
        terminal.shows(r"routes +100B +20 ")

    def test_every_size(self):
        watched = self.start()
        watched.ask("more 5")
        terminal = self.top(watched, columns=80, rows=24)
        terminal.shows("more 05", r"(?m)^CACHE +SIZE +LIVE +\*LATENT +L.BYTES +ALLOC/s +DEFER/s +OC/s +SLAB/s *$")
        terminal.press("h")
        terminal.shows(r"L.BYTES +\*HIT% +ALLOC/s +DEFER/s +OC/s")
        terminal.resize(200, 50)
        terminal.shows("SLAB/s +latent +live", "more 05.*█")
        for columns, rows in ((40, 10), (3, 2), (1, 1), (20, 3)):
            terminal.resize(columns, rows)
            for _ in range(4):
                terminal.read_some()
        terminal.resize(100, 30)
        terminal.shows("more 01", "OC/s", "q quit")
        terminal.press("q")
        self.assertEqual(terminal.end(), 0)

    def test_the_process_dies(self):
        watched = self.start()
        watched.ask("keep 10")
        terminal = self.top(watched)
        terminal.shows(r"routes +100B +10 ")
        watched.tell("crash")
        watched.process.wait()
        terminal.shows(rf"process {watched.pid} has ended", r"routes +100B +10 ")
        terminal.press("n")
        terminal.shows(r"CACHE\*")
        terminal.press("q")
        self.assertEqual(terminal.end(), 1)
        self.assertIn(f"prudence-top: process {watched.pid} has ended".encode(), terminal.output)

    def test_it_runs_another_program(self):
        watched = self.start()
        terminal = self.top(watched)
        terminal.shows("memory: resident")
        watched.tell("exec")
        terminal.shows("has ended, or runs another program")
        terminal.press("q")
        self.assertEqual(terminal.end(), 1)

    def test_control_c(self):
        terminal = self.top(self.start())
        terminal.shows("memory: resident")
        terminal.press("\003")
        self.assertEqual(terminal.end(), 130)
        self.assertNotIn(b"Traceback", terminal.output)

    def test_the_terminal_goes(self):
        """Under nohup: nothing else ends it, and nothing remains to wait for."""
        watched = self.start()
        terminal = Terminal(80, 24, "/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh", TOP, "--pid", watched.pid)
        terminal.shows("memory: resident")
        os.close(terminal.fd)
        self.assertTrue(until(lambda: os.waitpid(terminal.pid, os.WNOHANG)[0]) or os.kill(terminal.pid, signal.SIGKILL))

    def test_a_terminal_without_utf8(self):
        watched = self.start()
        watched.ask("keep 10")
        watched.ask("name \xe4")
        terminal = self.top(watched, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
        terminal.shows(r"routes +100B +10 .*#", r"(?m)^\? +64B")
        self.assertTrue(terminal.text().isascii())

    def test_no_such_terminal(self):
        terminal = self.top(self.start(), TERM="nonsense")
        self.assertEqual(terminal.end(), 1)
        self.assertIn(b"prudence-top: the terminal 'nonsense' cannot be used", terminal.output)


if __name__ == "__main__":
    unittest.main()
