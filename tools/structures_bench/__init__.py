# SPDX-License-Identifier: MIT
"""What tools/bench-structures measures, and what tools/report_structures.py says of it."""
