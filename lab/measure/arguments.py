# SPDX-License-Identifier: MIT
"""Shared by the command lines of all measurements: numbers with bounds, lists of names, a file for results, programs that must be built."""

import argparse
import fnmatch
from pathlib import Path


def number(low, high, kind=int, wanted=None):
    """A type for argparse: a number from `low` to `high`; `wanted` says so in a message."""
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(f"'{text}' is not {wanted or f'a number from {low} to {high}'}")
        return value
    return parse


def names(known):
    """A type for argparse: names of `known`, with commas between them."""
    def parse(text):
        found = text.split(",")
        for name in found:
            if name not in known:
                raise argparse.ArgumentTypeError(f"'{name}' is none of " + ", ".join(known))
        return found
    return parse


def new_file(text):
    if not Path(text).resolve().parent.is_dir():
        raise argparse.ArgumentTypeError(f"'{text}' cannot be written: there is no such folder")
    return Path(text)


class Parser(argparse.ArgumentParser):
    def __init__(self, prog, description):
        super().__init__(prog=prog, allow_abbrev=False, description=description)

    def add_number(self, option, low, high, text, kind=int, default=None, wanted=None, metavar="N"):
        self.add_argument(option, metavar=metavar, type=number(low, high, kind, wanted), default=default, help=text)

    def add_names(self, option, known, text, default=None):
        self.add_argument(option, metavar="NAME,...", type=names(list(known)), default=list(known) if default is None else default, help=text)

    def add_json(self, text="write all results to FILE"):
        self.add_argument("--json", metavar="FILE", type=new_file, help=text)

    def need(self, *programs):
        for program in programs:
            if not program.exists():
                self.error(f"{program} is missing: run `make build`")

    def choose(self, patterns, known, refusal):
        """Returns the members of `known` whose names match one of the patterns. Each pattern must match one; `refusal` has {} for one that does
        not."""
        patterns = patterns.split(",")
        for pattern in patterns:
            if not any(fnmatch.fnmatchcase(one.name, pattern) for one in known):
                self.error(refusal.format(pattern))
        return [one for one in known if any(fnmatch.fnmatchcase(one.name, pattern) for pattern in patterns)]
