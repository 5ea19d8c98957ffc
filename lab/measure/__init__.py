# SPDX-License-Identifier: MIT
"""Measurements: the runs, the kept results, the findings and the page (CONTRIBUTING.md).

Shared by all measurements:
    command      start and end of a command, and its progress
    arguments    numbers, names and files of command lines
    allocators   the allocators that are preloaded: where their libraries are, and their versions
    keep         runs that are kept, so that one that was interrupted goes on; other programs that kept the machine busy
    statistics   intervals and the allocation of variation
    verdict      findings of the paper: holds, does not hold, undecided, not measured
    pictures     colours, styles and legends
    page         pages, tables and warnings
    report       which report a file has

A measurement is one file, or a folder of plan (the runs), run (the command), verdict (the findings) and page:
    compare  growth  malloc  structures, and those of lab/reproduce/experiments: acdc  evaluate  kernel_evaluate  variants
Runs of other programs have a report alone:
    bench (prudence-bench)  summary (lab/run/all)
    kernel (tools/kernel/bench; verdicts: kernel_verdict)  kernel_rfc (tools/kernel/rfc)  kernel_tree (tools/kernel/tree)
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))  # preload, and the clients of servers
