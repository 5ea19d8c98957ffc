# SPDX-License-Identifier: MIT
"""Two revisions measured in turn, and what changed from one to the other.

    trees      a revision's sources and programs
    parts      what is run, and which figures that gives
    verdicts   the interval of a change, and what it says
    cli        the command line, the rounds, what is printed
"""
