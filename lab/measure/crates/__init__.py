# SPDX-License-Identifier: MIT
"""Crates of the registry on rust/prudence: their own tests, and their cost before and after (lab/run/crates)."""
