# SPDX-License-Identifier: MIT
"""The parser of each program's command line.

 - Help is wrapped to the terminal, except examples, which are lines to copy.
 - A shell that asks for completions calls the program with a line in the environment, and argcomplete answers from the parser
   (programs/completion has what shells read). Without argcomplete there are none.
"""

import argparse
import os

from . import pipe

ASKED = "_ARGCOMPLETE"  # the number of the word where the program's arguments begin, from 1


def is_to_complete():
    return ASKED in os.environ


def words_to_complete():
    """The whole words before the cursor, without the program's name."""
    before = os.environ.get("COMP_LINE", "")[:int(os.environ.get("COMP_POINT", 0))]
    return before.split()[1:] if before.endswith(" ") else before.split()[1:-1]


def skip_word():
    """The program's first word is a command with a parser of its own."""
    os.environ[ASKED] = "2"


class Formatter(argparse.HelpFormatter):
    def _fill_text(self, text, width, indent):
        return text if "\n" in text else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    def __init__(self, **arguments):
        super().__init__(**{"formatter_class": Formatter, "allow_abbrev": False} | arguments)

    def parse_args(self, args=None, namespace=None):
        if is_to_complete():
            try:
                import argcomplete
            except ImportError:
                self.exit()
            argcomplete.autocomplete(self)  # ends the program
        try:
            return super().parse_args(args, namespace)
        except BrokenPipeError: # of help
            return pipe.end()

    def exit(self, status=0, message=None):
        pipe.flush()
        super().exit(status, message)
