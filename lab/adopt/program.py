# SPDX-License-Identifier: MIT
"""The description of a program. `PROGRAM` of lab/adopt/programs/NAME.py is one of these."""

import dataclasses

NOBODY = 65534  # a user: root may make threads without a limit


class Failed(Exception):
    """A side that cannot be built, tested or measured; the text says why."""


class Missing(Exception):
    """Something is missing on this machine; the text names it. The program is skipped."""


@dataclasses.dataclass(frozen=True)
class Measure:
    key: str             # in the result of Program.measure
    title: str
    unit: str
    better: str          # "more" or "less"

    def __post_init__(self):
        if self.better not in ("more", "less"):
            raise ValueError(f"{self.key}: better is 'more' or 'less', not '{self.better}'")


class Program:
    name = ""            # of its module, its patch and its results
    title = ""
    package = ""         # Debian's source package; empty: the program is in lab/adopt/programs/NAME
    suite = None         # another than this system's
    upstream = False     # without Debian's changes
    mark = "configure.ac"  # a file in the folder of its source
    packages = ()        # of Debian, that building and measuring need
    shared_patch = None  # in lab/adopt/patches, of both sides: it drives the program, and does not change its work
    uses = ()            # files on which results depend in addition to the frame, from adopt/
    counted = True       # among the programs of the report; else an example of ours, shown next to them
    before = ""          # how it defers, in a line
    after = ""           # how the patch changes that
    measures = ()
    watched_cost = ""    # key of the measure for the cost of prudence-latent
    long_load = ""       # its load for an hour, if that is measured: the same on both sides

    def build(self, side):
        """Configures and compiles in side.source."""
        raise NotImplementedError

    def tests(self, side):
        """The program's own tests: {"passed": number, "failed": [name], "skipped": number}; the same on both sides."""
        raise NotImplementedError

    def measure(self, side, seconds):
        """Measures one round and returns {key of a measure: number}."""
        raise NotImplementedError

    def endure(self, side, seconds):
        """long_load for so long: (memory in bytes at equal distances, how often it was done)."""
        raise NotImplementedError
