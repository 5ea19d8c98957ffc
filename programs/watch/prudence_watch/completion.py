# SPDX-License-Identifier: MIT
"""Completions of command lines. A shell calls the program with a line in the environment, and argcomplete answers from the parser
(programs/completion has what shells read). Without argcomplete there are none."""

import argparse
import os

ASKED = "_ARGCOMPLETE"  # the number of the word where the program's arguments begin, from 1


def asked():
    return ASKED in os.environ


def words():
    """The whole words before the cursor, without the program's name."""
    before = os.environ.get("COMP_LINE", "")[:int(os.environ.get("COMP_POINT", 0))]
    return before.split()[1:] if before.endswith(" ") else before.split()[1:-1]


def skip_word():
    """The program's first word is a command with a parser of its own."""
    os.environ[ASKED] = "2"


class Parser(argparse.ArgumentParser):
    def parse_args(self, args=None, namespace=None):
        if asked():
            try:
                import argcomplete
            except ImportError:
                self.exit()
            argcomplete.autocomplete(self)  # ends the program
        return super().parse_args(args, namespace)
