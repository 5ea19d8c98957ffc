# SPDX-License-Identifier: MIT
"""The parts of tools/test/soak: runs of hours, their results and totals."""
