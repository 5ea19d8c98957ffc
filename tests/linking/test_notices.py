#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Messages never get into a file of the program's that has number 2, and each kind has a limit on its rate (ADR 158)."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "tools"))
from preload import ld_preload  # noqa: E402 (the path comes first)
MALLOC = BUILD / "libprudence-malloc.so"
CONTENT = b"MAGIC-HEADER-OF-A-DATABASE, page 0 and more bytes than any message has" * 20
NOTICE = "prudence: unknown option 'nonsense'"
FAULT = "points into an object"


class Notices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.program = Path(cls.folder.name) / "program"
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-pthread", f"-I{ROOT / 'include'}", HERE / "program_notices.c", "-o",
                        cls.program, BUILD / "libprudence.so", f"-Wl,-rpath,{BUILD}"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.file = Path(self.folder.name) / "file"
        self.report = Path(self.folder.name) / "report"
        self.file.write_bytes(CONTENT)
        self.report.unlink(missing_ok=True)

    def run_program(self, kind, reason, options="", stderr=subprocess.PIPE, status=0):
        done = subprocess.run([self.program, kind, reason, self.file], stdout=subprocess.PIPE, stderr=stderr, timeout=100,
                              env={**os.environ, "PRUDENCE_OPTIONS": options})
        self.assertEqual(done.returncode, status, done)
        return done.stdout.decode(), done.stderr.decode() if done.stderr else ""

    def options(self):
        return f"report_file={self.report}"

    def test_a_database_is_left_alone(self):
        for kind in ("database", "data"):
            for reason, status in (("notice", 0), ("fault", -signal.SIGABRT), ("threads", 0)):
                with self.subTest(kind=kind, reason=reason):
                    out, _ = self.run_program(kind, reason, status=status)
                    self.assertEqual(self.file.read_bytes(), CONTENT)
                    if status == 0:
                        self.assertRegex(out, r"messages not written: \d+ because there were too many of a kind, [1-9]\d* because")

    def test_a_dump_is_not_written_into_a_database(self):
        self.run_program("database", "dump", "dump=SIGUSR1")
        self.assertEqual(self.file.read_bytes(), CONTENT)
        self.run_program("database", "dump", f"dump=SIGUSR1,{self.options()}")
        self.assertEqual(self.file.read_bytes(), CONTENT)
        self.assertIn("slabs and large blocks", self.report.read_text())

    def test_the_option_names_another_place(self):
        for kind in ("database", "null", "closed"):
            with self.subTest(kind=kind):
                self.report.unlink(missing_ok=True)
                out, _ = self.run_program(kind, "notice", self.options())
                self.assertIn(NOTICE, self.report.read_text())
                self.assertNotIn("messages not written", out)
                self.assertEqual(self.file.read_bytes(), CONTENT)

    def test_a_fault_goes_there_with_all_lines(self):
        self.run_program("database", "fault", self.options(), status=-signal.SIGABRT)
        self.assertIn(FAULT, self.report.read_text())
        self.assertIn("the option check=1", self.report.read_text())

    def test_good_places(self):
        for kind in ("pipe", "socket", "terminal"):
            with self.subTest(kind=kind):
                out, _ = self.run_program(kind, "notice", self.options())
                self.assertIn(NOTICE, out)
                self.assertFalse(self.report.exists())
        _, errors = self.run_program("same", "notice", self.options())
        self.assertIn(NOTICE, errors)

    def test_a_log_that_a_daemon_opens_to_append(self):
        self.run_program("log", "notice")
        self.assertTrue(self.file.read_bytes().startswith(CONTENT + NOTICE.encode()))

    def test_the_file_of_the_start(self):
        with open(self.report, "wb") as file:
            self.run_program("same", "notice", stderr=file)
        self.assertIn(NOTICE, self.report.read_text())

    def test_another_file_than_that_of_the_start(self):
        with open(self.report, "wb") as file:
            self.run_program("data", "notice", stderr=file)
        self.assertEqual(self.file.read_bytes(), CONTENT)

    def test_the_file_of_the_start_opened_for_data(self):
        with open(self.file, "r+b") as file:  # the same file, but another descriptor: to read and write
            self.run_program("data", "notice", stderr=file)
        self.assertEqual(self.file.read_bytes(), CONTENT)

    def test_a_start_without_a_descriptor_2(self):
        done = subprocess.run(f"'{self.program}' database notice '{self.file}' 2>&-", shell=True, stdout=subprocess.PIPE, timeout=100)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.file.read_bytes(), CONTENT)

    def test_where_the_system_may_not_be_asked(self):
        _, errors = self.run_program("same", "few")
        self.assertIn(NOTICE, errors)
        out, _ = self.run_program("database", "few")
        self.assertIn("messages not written: 0 because there were too many of a kind, 1 because", out)
        _, errors = self.run_program("same", "few-fault", status=-signal.SIGABRT)
        self.assertIn(FAULT, errors)
        self.run_program("database", "few-fault", self.options(), status=-signal.SIGABRT)
        self.assertEqual(self.file.read_bytes(), CONTENT)

    def test_a_preloaded_malloc(self):
        code = ("import os, ctypes; [os.close(fd) for fd in (0, 1, 2)]\n"
                f"[os.open('/dev/null', os.O_RDONLY) for i in range(2)]; assert os.open('{self.file}', os.O_RDWR) == 2\n"
                "ctypes.CDLL('libm.so.6', mode=os.RTLD_DEEPBIND | os.RTLD_NOW)\n")
        for options, written in ((self.options(), True), ("", False)):
            self.report.unlink(missing_ok=True)
            done = subprocess.run(["/usr/bin/python3", "-c", code], timeout=100,
                                  env={**os.environ, "LD_PRELOAD": ld_preload(MALLOC), "PRUDENCE_OPTIONS": options})
            self.assertEqual(done.returncode, 0)
            self.assertEqual(self.file.read_bytes(), CONTENT)
            self.assertEqual(self.report.exists() and "RTLD_DEEPBIND is dropped" in self.report.read_text(), written)

    def test_a_preloaded_malloc_that_ends_the_process(self):
        code = ("import os, ctypes; [os.close(fd) for fd in (0, 1, 2)]\n"
                f"[os.open('/dev/null', os.O_RDONLY) for i in range(2)]; assert os.open('{self.file}', os.O_RDWR) == 2\n"
                "ctypes.CDLL(None).free(ctypes.c_void_p(4096))\n")
        done = subprocess.run(["/usr/bin/python3", "-c", code], timeout=100, env={**os.environ, "LD_PRELOAD": ld_preload(MALLOC)})
        self.assertEqual(done.returncode, -signal.SIGABRT)
        self.assertEqual(self.file.read_bytes(), CONTENT)

    def test_each_kind_has_a_limit(self):
        began = time.monotonic()
        out, errors = self.run_program("same", "threads")
        bursts = int((time.monotonic() - began) / 10) + 1  # a slow machine may see more than one
        lines = [line for line in errors.splitlines() if "exits inside a read-side critical section" in line]
        self.assertGreaterEqual(len(lines), 10)
        self.assertLessEqual(len(lines), 10 * bursts)
        self.assertIn("for 10 s no more messages of this kind are written", errors)
        left_out = int(re.search(r"messages not written: (\d+) because there were too many", out).group(1))
        self.assertGreater(left_out, 100)  # the last dead threads may not have been found yet


if __name__ == "__main__":
    unittest.main()
