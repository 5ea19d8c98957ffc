# SPDX-License-Identifier: MIT
"""What a program says of itself. `PROGRAM` of lab/adopt/programs/NAME.py is one of these."""

import dataclasses

NOBODY = 65534  # a user: root may make threads without a limit


class Failed(Exception):
    """A side that cannot be built, tested or measured; the text says why."""


class Missing(Exception):
    """Something of this machine is not there; the text names it. The program is left out."""


@dataclasses.dataclass(frozen=True)
class Measure:
    key: str             # in what Program.measure returns
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
    shared_patch = None  # in lab/adopt/patches, of both sides: what drives the program, not what it does
    uses = ()            # files beside the frame on which results depend, from adopt/
    counted = True       # among the programs of the report; else an example of ours beside them
    before = ""          # how it defers, in a line
    after = ""           # what the patch makes of that
    measures = ()
    watched_cost = ""    # key of the measure that says what prudence-latent costs it
    long_load = ""       # what it does for an hour, if that is measured: the same on both sides

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
