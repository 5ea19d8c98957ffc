#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The lines of the closing table about what the library had in the test programs (tools/test/modes), and the record that they write."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build"))
HAS, HAS_NOT = "sequences=1 membarrier=1", "sequences=0 membarrier=0"
RSEQ = "percpu=rseq percpu_later=rseq membarrier=available inlined=-1"
NONE = "percpu=the_C_library_has_none percpu_later=the_C_library_has_none membarrier=available inlined=-1"
JUNIT = """<testsuite><testcase name="one"><system-out>
[  SKIPPED ] 2 test(s), listed below:
[  SKIPPED ] first
[  SKIPPED ] second
</system-out></testcase><testcase name="two"><skipped/></testcase><testcase name="three"><system-out>
OK (skipped=3)
</system-out></testcase><testcase name="four"/></testsuite>"""


class Modes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def said(self, *records, machine=HAS, left_out="", status=0, **names):
        (self.folder / "records").write_text("".join(f"program {record}\n" for record in records))
        (self.folder / "junit").write_text(JUNIT)
        (self.folder / "left-out").write_text(left_out)
        done = subprocess.run([ROOT / "tools/test/modes", self.folder / "records", machine, self.folder / "junit", self.folder / "left-out"], text=True,
                              capture_output=True, check=False, env={name: value for name, value in os.environ.items() if name != "CI"} | names)
        self.assertEqual(done.returncode, status, done)
        return done

    def test_counts(self):
        later = RSEQ.replace("later=rseq", "later=injected_topology")
        intended = NONE.replace("the_C_library_has_none", "option_rseq=0_or_sandbox=1")
        said = self.said(RSEQ, RSEQ, later, intended, RSEQ.replace("-1", "1")).stdout
        self.assertIn("programs: 3 with sequences, 1 also with locks, 1 with locks by intent, 0 with locks for another reason; 0 without membarriers; "
                      "1 inlined, 0 not", said)
        self.assertIn("skipped: 6 cases one:2 three:3 two:1", said)

    def test_what_falls_back_fails(self):
        """In each of the ways, and only where the machine has more."""
        for record in NONE, RSEQ.replace("later=rseq", "later=not_registered"), RSEQ.replace("available", "missing"), RSEQ.replace("-1", "0"):
            with self.subTest(record=record):
                self.assertIn(record, self.said(RSEQ, record, status=1).stderr)
                self.said(RSEQ, record, machine=HAS_NOT)

    def test_no_record_fails(self):
        self.said(status=1)

    def test_what_is_not_built(self):
        left_out = "ck gp/one.c\nck gp/two.c\nuv api/three.c\n"
        self.assertIn("not built: 3, 2 without ck, 1 without uv", self.said(RSEQ, left_out=left_out).stdout)
        self.said(RSEQ, left_out=left_out, CI="true", status=1)
        self.said(RSEQ, CI="true")


class Record(unittest.TestCase):
    """Runs a program that is no test of this: base_test_list."""

    def run_it(self, **names):
        with tempfile.TemporaryDirectory() as folder:
            records = Path(folder) / "records"
            done = subprocess.run([BUILD / "bin/base_test_list"], env={**os.environ, "PRUDENCE_TEST_MODES": str(records), **names}, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            return done, records.read_text() if records.exists() else ""

    def test_a_program_writes_one_line(self):
        done, said = self.run_it()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(said, r"\Abase_test_list percpu=\w\S* percpu_later=\w\S* membarrier=\w+ inlined=-1\n\Z")

    def test_an_option_is_an_intent(self):
        _, said = self.run_it(PRUDENCE_OPTIONS="rseq=0,membarrier=0")
        self.assertEqual(said, "base_test_list percpu=option_rseq=0_or_sandbox=1 percpu_later=option_rseq=0_or_sandbox=1 membarrier=unwanted "
                               "inlined=-1\n")

    def test_a_tunable_is_an_intent(self):
        done, said = self.run_it(GLIBC_TUNABLES="glibc.pthread.rseq=0")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("percpu=a_tunable_of_glibc", said)


if __name__ == "__main__":
    unittest.main()
