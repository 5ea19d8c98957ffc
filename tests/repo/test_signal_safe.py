#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each function that a public header calls async-signal-safe is called by a body of a test that has a handler come between any two
instructions (tests/support/handler_steps.h)."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include/prudence"
STEPPED = ("tests/api/test_handlers_read.c", "tests/tables/test_handlers_in_tables.c")
SAFE = re.compile(r"(?<!not )(?<!Not )\b[Aa]sync-signal-safe", re.S)
SAYS = re.compile(r"async-signal-safe|\bsignals?\b.*\bhandlers?\b", re.I | re.S)
DECLARED = re.compile(r"^PRUDENCE_(?:API|INLINE)\b[^;{(]*?\b(prudence_\w+)\(", re.M)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
RULE = re.compile(r"/\* -{10,} ?([^-]*?) ?(?:-+ )?\*/")

# The words of a header's first comment about signals, and which of the header's functions it means: those of these sections, or all
# but these.
GROUPS = {
    "counter.h": ("additions and sums may be made anywhere, also in signal handlers", {"but": {"create", "destroy"}}),
    "hash.h": ("the functions of readers are async-signal-safe if `match` is; no other is", {"sections": {"readers"}}),
    "hash_values.h": ("the functions of readers are async-signal-safe; no other is", {"sections": {"readers"}}),
    "hazard.h": ("All functions but prudence_hazard_retire and prudence_hazard_reclaim may be called in signal handlers",
                 {"but": {"retire", "reclaim"}}),
    "id_table.h": ("lookups and walks are async-signal-safe; nothing else is", {"sections": {"readers"}}),
    "lockfree_hash.h": ("all functions but creating and destroying are async-signal-safe if `match` is", {"but": {"create", "destroy"}}),
    "log.h": ("places may be taken in signal handlers", {"but": {"create", "destroy", "flush", "dropped"}}),
    "map.h": ("the functions of readers are async-signal-safe; no other is", {"sections": {"readers"}}),
    "map_values.h": ("Signals, fork, and order are the map's", {"sections": {"readers"}}),
    "ref.h": ("all functions may be called anywhere, also in signal handlers", {"but": set()}),
    "routes.h": ("lookups, get and walks are async-signal-safe; nothing else is", {"sections": {"readers"}}),
    "stack.h": ("push and take_all are async-signal-safe; pop is, too, inside a section", {"but": set()}),
    "swap.h": ("prudence_swap_get is async-signal-safe inside a section", {"but": {"init", "exchange", "transfer"}}),
}
NONE_SAFE = {
    "prudence.h": "not async-signal-safe (like malloc). Only the read side in <prudence/rcu.h> is",
    "scm.h": "Signals: not async-signal-safe",
}


def spoken(comment):
    return " ".join(re.sub(r"^\s*(/\*|\*/?)", " ", comment, flags=re.M).split())


def declared(text):
    return [(match.start(), match.group(1)) for match in DECLARED.finditer(text)]


def section_at(text, place):
    return next((match.group(1).strip() for match in reversed(list(RULE.finditer(text, 0, place)))), "")


def by_comments(text):
    """Functions below a comment that calls them safe, up to the next comment at the start of a line."""
    comments = [match for match in COMMENT.finditer(text) if match.start() == 0 or text[match.start() - 1] == "\n"]
    ends = [match.start() for match in comments[1:]] + [len(text)]
    found = set()
    for comment, end in zip(comments, ends):
        if comment.start() < text.find("#ifndef") or not SAFE.search(spoken(comment.group())):
            continue
        found |= {name for place, name in declared(text) if comment.end() <= place < end}
    return {name for name in found if not name.endswith(("_", "_misuse"))}


def by_group(text, group):
    stem = {name: name.split("prudence_", 1)[1] for _, name in declared(text)}
    if "sections" in group:
        return {name for place, name in declared(text) if section_at(text, place) in group["sections"] and not name.endswith("_")}
    return {name for name, rest in stem.items()
            if not rest.endswith(("_", "_slow")) and not any(rest.endswith(f"_{word}") or rest == word for word in group["but"])}


def problems_of(header, text, stepped):
    """Returns the faults of a header, as lines."""
    first = spoken(text[:text.find("#ifndef")])
    safe, problems = by_comments(text), []
    if header in GROUPS:
        sentence, group = GROUPS[header]
        if sentence not in first:
            problems.append(f"{header} does not say any more: {sentence}; mend GROUPS")
        safe |= by_group(text, group)
    elif header in NONE_SAFE:
        if NONE_SAFE[header] not in first:
            problems.append(f"{header} does not say any more: {NONE_SAFE[header]}; mend NONE_SAFE")
    elif SAYS.search(first) and not re.search(r"not async-signal-safe|not for signal handlers", first, re.I):
        problems.append(f"{header} speaks of signals: add it to GROUPS or NONE_SAFE")
    for name in sorted(safe):
        if not re.search(rf"\b{name}\(", stepped):
            problems.append(f"{header}: {name} is async-signal-safe: call it in a body of {' or '.join(STEPPED)}")
    return problems


class SignalSafe(unittest.TestCase):
    def setUp(self):
        self.stepped = "".join((ROOT / path).read_text() for path in STEPPED)

    def test_every_safe_function_is_stepped(self):
        found = [problem for path in sorted(HEADERS.glob("*.h")) for problem in problems_of(path.name, path.read_text(), self.stepped)]
        self.assertEqual(found, [])

    def test_the_list_is_not_empty(self):
        text = (HEADERS / "rcu.h").read_text()
        self.assertLessEqual({"prudence_read_lock", "prudence_read_unlock", "prudence_srcu_read_lock", "prudence_srcu_up_read",
                              "prudence_qsbr_online"}, by_comments(text))
        self.assertNotIn("prudence_synchronize", by_comments(text))
        names = set().union(*(by_group((HEADERS / header).read_text(), group) for header, (_, group) in GROUPS.items()))
        self.assertLessEqual({"prudence_hazard_acquire_row", "prudence_map_floor", "prudence_lockfree_hash_put", "prudence_stack_pop",
                              "prudence_routes_get", "prudence_swap_get", "prudence_log_reserve"}, names)
        self.assertTrue(names.isdisjoint({"prudence_hazard_retire", "prudence_map_add", "prudence_hash_resize", "prudence_log_flush"}))

    def test_a_new_function_is_reported(self):
        new = "\n/* Looks. Async-signal-safe. */\nPRUDENCE_API int\nprudence_look_new(void);\n/* Not async-signal-safe. */\nPRUDENCE_API int prudence_b(void);\n"
        self.assertEqual(problems_of("new.h", "/* */\n#ifndef NEW\n" + new, self.stepped),
                         [f"new.h: prudence_look_new is async-signal-safe: call it in a body of {' or '.join(STEPPED)}"])
        text = (HEADERS / "stack.h").read_text()
        added = text.replace("#endif /* PRUDENCE_STACK_H */", "PRUDENCE_INLINE bool prudence_stack_turn(void);\n#endif")
        self.assertIn("prudence_stack_turn", problems_of("stack.h", added, self.stepped)[0])

    def test_a_new_sentence_is_reported(self):
        self.assertIn("mend GROUPS", problems_of("log.h", (HEADERS / "log.h").read_text().replace("may be taken", "are taken"), self.stepped)[0])
        self.assertIn("add it to GROUPS", problems_of("new.h", "/* Signals: all are async-signal-safe. */\n#ifndef NEW\n", self.stepped)[0])


if __name__ == "__main__":
    unittest.main()
