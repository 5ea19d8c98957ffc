#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A binding of another language finds in the library all that public headers inline, and sizes of all their types.

A new inline function, a macro with arguments or a structure fails here until it is exported, or stands below with a reason.
"""

import ctypes
import os
import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
INCLUDE = ROOT / "include/prudence"

# Headers whose names a binding does not need, and why.
OTHER_HEADERS = {
    "ck-domain.h": "needs Concurrency Kit's headers; made of prudence_domain_create_external",
    "dpdk-domain.h": "needs DPDK's headers; made of prudence_domain_create_external",
    "inline.h": "fast paths of exported functions",
    "language.h": "differences of C and C++",
    "sequences.h": "parts of inline.h",
    "urcu-compat.h": "liburcu's names for functions above; only C programs have them",
    "urcu-domain.h": "needs liburcu's headers; made of prudence_domain_create_external",
}
# Names that end in _ are private; loops are made of a first and a next. These are private, too, or made of the functions named.
REASONS = {
    "prudence_domain_shared_of": "part of prudence_read_lock",
    "prudence_fence_and_count": "part of prudence_read_lock",
    "prudence_list_first_or_null_rcu": "prudence_list_first_link_rcu",
    "prudence_list_next_or_null_rcu": "prudence_list_next_rcu",
    "prudence_qsbr_blocking_enter": "part of PRUDENCE_QSBR_BLOCKING: prudence_qsbr_blocking_begin",
    "prudence_qsbr_blocking_leave": "part of PRUDENCE_QSBR_BLOCKING: prudence_qsbr_blocking_end",
    "prudence_tell_section_ends": "part of prudence_read_unlock",
}
# Structures that only inlined readers read.
PRIVATE_TYPES = {"prudence_domain_shared", "prudence_hash", "prudence_id_table", "prudence_lockfree_hash", "prudence_reader",
                 "prudence_routes"}

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
FUNCTION = re.compile(r"^(?:static inline|PRUDENCE_INLINE)\b[^;{(]*?\b(\w+)\(", re.M)
MACRO = re.compile(r"^#define ((?:prudence|scm)_\w+)\(", re.M)
TYPE = re.compile(r"^struct (\w+) \{|^\} (\w+);", re.M)


def exported():
    lines = subprocess.run(["nm", "-D", "--defined-only", BUILD / "libprudence.so"], check=True, text=True,
                           capture_output=True).stdout.splitlines()
    return {line.split()[-1].partition("@")[0] for line in lines if "@@" in line}


def headers():
    return {header.name: COMMENT.sub("", header.read_text()) for header in sorted(INCLUDE.glob("*.h"))
            if header.name not in OTHER_HEADERS}


def missing(text, names):
    """The inline functions and macros of a header that a binding can neither call nor do without."""
    wanted = {name for name in FUNCTION.findall(text) + MACRO.findall(text) if not name.endswith("_")}
    stand_ins = "", "_sized", "_at"
    return sorted(name for name in wanted if name not in REASONS and not any(name + end in names for end in stand_ins)
                  and not re.fullmatch(r"prudence_\w+_entry|prudence_\w+_for_each\w*", name))


class Bindings(unittest.TestCase):
    def test_every_inline_function_is_exported(self):
        names, found = exported(), headers()
        self.assertEqual({header: missing(text, names) for header, text in found.items() if missing(text, names)}, {})
        every = {name for text in found.values() for name in FUNCTION.findall(text) + MACRO.findall(text)}
        self.assertEqual(set(REASONS) - every, set(), "a reason for nothing")
        self.assertEqual(set(OTHER_HEADERS) - {header.name for header in INCLUDE.glob("*.h")}, set())

    def test_a_new_one_is_found(self):
        text = "static inline int prudence_new(void)\n{\n}\n#define prudence_newer(x) (x)\nstatic inline int prudence_own_(void)\n{\n}\n"
        self.assertEqual(missing(text, {"prudence_free"}), ["prudence_new", "prudence_newer"])

    def test_every_type_has_a_size(self):
        library = ctypes.CDLL(BUILD / "libprudence.so")
        for function in library.prudence_sizeof, library.prudence_alignof:
            function.restype, function.argtypes = ctypes.c_size_t, [ctypes.c_char_p]
        types = {one or other for text in headers().values() for one, other in TYPE.findall(text)}
        self.assertEqual(PRIVATE_TYPES - types, set(), "a private type that is not there")
        types = {name for name in types - PRIVATE_TYPES if not name.endswith("_")}
        self.assertGreater(len(types), 30)
        self.assertEqual({name for name in types if not library.prudence_sizeof(name.encode())}, set())
        table = set(re.findall(r"^    (?:TYPE|STRUCTURE)\((\w+)\)", (ROOT / "src/whole/sizes.c").read_text(), re.M))
        self.assertEqual(table, types)
        self.assertEqual((library.prudence_sizeof(b"prudence_list"), library.prudence_alignof(b"prudence_list")), (16, 8))
        self.assertEqual(library.prudence_sizeof(b"prudence_nothing") + library.prudence_alignof(None), 0)

    def test_a_binding(self):
        """Reads a list in a section as Python would, with nothing of the headers but addresses of functions."""
        library = ctypes.CDLL(BUILD / "libprudence.so")
        for name, result, *arguments in (
                ("malloc", "p", "s"), ("free_deferred", None, "p"), ("aligned_realloc", "p", "p", "s", "s"),
                ("read_lock", None), ("read_unlock", None), ("is_reading", "b"), ("list_init", None, "p"),
                ("list_add_tail_rcu", None, "p", "p"), ("list_del_rcu", None, "p"), ("list_next_rcu", "p", "p"),
                ("list_empty", "b", "p"), ("dereference_at", "p", "p"), ("assign_pointer_at", None, "p", "p"),
                ("sizeof", "s", "c")):
            kinds = {"p": ctypes.c_void_p, "s": ctypes.c_size_t, "b": ctypes.c_bool, "c": ctypes.c_char_p, None: None}
            function = getattr(library, f"prudence_{name}")
            function.restype, function.argtypes = kinds[result], [kinds[kind] for kind in arguments]
        size = library.prudence_sizeof(b"prudence_list")
        place, head = library.prudence_malloc(8), library.prudence_malloc(size)
        links = [library.prudence_malloc(size) for _ in range(3)]
        library.prudence_list_init(head)
        for link in links:
            library.prudence_list_add_tail_rcu(link, head)
        library.prudence_assign_pointer_at(place, head)
        library.prudence_read_lock()
        self.assertTrue(library.prudence_is_reading())
        found, link = [], library.prudence_list_next_rcu(library.prudence_dereference_at(place))
        while link != head:
            found.append(link)
            link = library.prudence_list_next_rcu(link)
        library.prudence_read_unlock()
        self.assertFalse(library.prudence_is_reading())
        self.assertEqual(found, links)
        for link in links:
            library.prudence_list_del_rcu(link)
            library.prudence_free_deferred(link)
        self.assertTrue(library.prudence_list_empty(head))
        self.assertEqual(library.prudence_aligned_realloc(head, 4096, 100) % 4096, 0)


if __name__ == "__main__":
    unittest.main()
