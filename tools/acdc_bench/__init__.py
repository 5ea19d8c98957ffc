# SPDX-License-Identifier: MIT
"""The experiments of chapter 6 of M. Aigner's "Short-term Memory for C" (2012), rerun with acdc.

    subjects.py      what is measured: a memory model over an allocator
    experiments.py   what is measured: the thesis' experiments, scaled to the machine
    points.py        a subject at a place of an axis: its repeats, and how far they are from the aim
    measuring.py     which point comes next, until when
    runner.py        one run of acdc
    results.py       the file of results, and whether a run may go on with one
    statistics.py    confidence intervals, allocation of variation
    findings.py      what the thesis found, and whether it holds here
    cli.py           the command line, and the document
"""
