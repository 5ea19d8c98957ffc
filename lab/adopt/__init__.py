# SPDX-License-Identifier: MIT
"""Programs of other projects, whose deferred frees are moved to Prudence: built as they are and with a patch, tested and measured side by side.

    program    the description of a program: where its source is, how a side is built, tested and measured
    sides      a side of a program: its sources, with the patch or without; the build stays until something changes
    run        the command: fetches, builds, tests, measures; goes on where it was interrupted
    page       one report of all programs
    programs/  a module for each program
    patches/   the changes to it, at most 250 lines each
"""
