# SPDX-License-Identifier: MIT
"""How costs grow: points measured by prudence-growth, curves fitted to them, and a page.

    fits    flat, logarithmic or linear, and the sentence that says so
    cli     the command line and the rounds
"""
