# SPDX-License-Identifier: MIT
"""prudence-latent: shows what waits for grace periods in a program that was written for others' RCU.

    run      the command: starts the program with the shim, and says why there is nothing to see
    record   the file that the shim writes
    figures  the contents of the file, in sums, shares and curves
    report   as text and as JSON
    unseen   why nothing was seen
    picture  over time, and the page that has it
"""
