# SPDX-License-Identifier: MIT
"""Ways to detect grace periods beside each other: what the thesis found, and whether prudence-variants finds it.

    findings   each finding of 8.3 and 8.4, and its verdict
    sources    the size of each variant, and what it refers to when idle
"""
