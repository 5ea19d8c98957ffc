#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Memory is mapped, unmapped, protected and given back in one file, which holds every call to whole pages of the system.

The file of export.c is alone in its mapping."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CALLS = r"mmap|mmap64|munmap|mprotect|madvise|process_madvise|mremap|mincore|mbind|mlock|munlock|remap_file_pages|shmat"
CALL = re.compile(rf"(?<![\w\"'])(?:SYS_(?:{CALLS})\b|(?:{CALLS})\s*\()")
SEAM = re.compile(r"\bcall_(?:mmap|munmap|madvise|mprotect|mremap)\(")  # the last functions before the system
COMMENT = re.compile(r"/\*.*?\*/", re.S)
# file.c tries to map a page of a file, and unmaps it at once; system_call.h and the madvise of programs pass arguments on.
ALLOWED = {"preload/advice.c", "src/core/os/posix/mapping.c", "src/core/os/posix/file.c", "src/core/os/posix/system_call.h"}


class MappingCalls(unittest.TestCase):
    def test_stand_in_one_file(self):
        found = {str(path.relative_to(ROOT)) for folder in ("src", "preload") for path in (ROOT / folder).rglob("*.[ch]")
                 if CALL.search(COMMENT.sub("", path.read_text()))}
        self.assertEqual(found, ALLOWED)

    def test_each_is_held_to_whole_pages(self):
        text = (ROOT / "src/core/os/posix/mapping.c").read_text()
        for function in re.split(r"\n(?=\w[^\n;]*\([^;]*?\)\n\{)", text)[1:]:
            name = re.match(r"[^(]*?(\w+)\(", function).group(1)
            body = COMMENT.sub("", function)
            if name.startswith("call_") or name in ("ask", "ask_and_cut", "mapping_make_on_node"):
                continue
            if CALL.search(body) or SEAM.search(body):
                with self.subTest(name):
                    self.assertIn("require_whole_pages(", function)


if __name__ == "__main__":
    unittest.main()
