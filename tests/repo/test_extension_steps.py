#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A step of the slab layer's extensions has users: at most four steps have one alone (docs/adr/0061). What only one extension
wants is part of a step that others have, or a call."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
STEPS = ROOT / "src/core/slab/extension_steps.h"
ROW = re.compile(r"^(?:EACH|EVERY|ANY|MADE)\((\w+),|^(?:FIRST|THROUGH)\([^,]+, (\w+),", re.M)
EXTENSION = re.compile(r"^(?:static )?const struct slab_extension (\w+) = \{(.*?)\};", re.M | re.S)


def steps():
    return [one or other for one, other in ROW.findall(STEPS.read_text())]


def extensions():
    """{extension: its steps}"""
    sources = [path for folder in ("src", "kernel") for path in (ROOT / folder).rglob("*.c")]
    return {name: set(re.findall(r"\.(\w+) =", body)) for path in sources for name, body in EXTENSION.findall(path.read_text())}


class Steps(unittest.TestCase):
    def test_all_are_found(self):
        self.assertGreater(len(steps()), 15)
        self.assertGreater(len(extensions()), 10)
        self.assertLessEqual(set.union(*extensions().values()), set(steps()))

    def test_few_have_one_user(self):
        users = {step: [name for name, own in extensions().items() if step in own] for step in steps()}
        self.assertEqual([step for step, own in users.items() if not own], [])
        self.assertLessEqual(len([step for step, own in users.items() if len(own) == 1]), 4, users)


if __name__ == "__main__":
    unittest.main()
