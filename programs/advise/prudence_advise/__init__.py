# SPDX-License-Identifier: MIT
"""prudence-advise: whether RCU pays, on this machine, for this load (docs/reference/advise.md)."""
