# SPDX-License-Identifier: MIT
"""The version of the programs, which each says before anything else runs."""

TEXT = "unknown"


def add_option(parser):
    parser.add_argument("--version", action="version", version=f"%(prog)s {TEXT}", help="print the version and end")
