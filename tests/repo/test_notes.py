#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Notes in the heads of tests (tests/CMakeLists.txt) are true: a test that ThreadSanitizer's build leaves out because it has one thread makes no other."""

import re
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
MAKES_A_THREAD = re.compile(r"\b(?:pthread_create|thrd_create|torture_thread|torture_start|threads?_start|in_thread)\(|\bbackground=1\b")


class OneThread(unittest.TestCase):
    def test_no_other_is_made(self):
        sources = {path: path.read_text() for path in TESTS.glob("**/*.c")}
        noted = {path: text for path, text in sources.items() if "ctest: not-with thread (one thread" in text}
        self.assertGreater(len(noted), 100)
        self.assertEqual([path.name for path, text in sorted(noted.items()) if MAKES_A_THREAD.search(text)], [])


if __name__ == "__main__":
    unittest.main()
