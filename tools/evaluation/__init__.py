# SPDX-License-Identifier: MIT
"""What tools/evaluate runs and measures in a process, and what tools/report_evaluate.py says of it (docs/adr/0081)."""
