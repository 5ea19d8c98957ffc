# SPDX-License-Identifier: MIT
"""What tools/kernel-evaluate runs and measures, and what tools/report_kernel_evaluate.py says of it (docs/adr/0088)."""
