# SPDX-License-Identifier: MIT
"""The experiments of chapter 6 of M. Aigner's "Short-term Memory for C" (2012), rerun with acdc.

    subjects.py      who is measured: a memory model over an allocator
    experiments.py   what is measured: the thesis' experiments, scaled to the machine
    runner.py        runs of acdc, repeated until the means are known well enough
    statistics.py    confidence intervals, allocation of variation
    findings.py      what the thesis found, and whether it holds here
    cli.py           the command line, and the document
"""
