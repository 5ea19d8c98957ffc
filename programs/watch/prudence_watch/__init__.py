# SPDX-License-Identifier: MIT
"""Watching processes that use Prudence from outside (docs/adr/0089-watching-from-outside.md).

    version.py    the option --version
    errors.py     messages and exit statuses of the tools
    bounds.py     how much is taken from others (docs/adr/0089-watching-from-outside.md)
    patience.py   work that another process could keep from ending
    layout.py     the description that a process gives of itself
    process.py    finding processes; reading their memory
    figures.py    a sample: all figures of a process at one time
    rates.py      events between two samples
    source.py     samples one after the other, with rates
    choose.py     the command line that the tools share
    text.py       numbers and sparklines as text, samples as JSON and CSV
    top.py, screen.py         prudence-top
    stat.py, openmetrics.py   prudence-stat
    plain_file.py, elf.py     files whose names may come from others; addresses in ELF files
    symbols.py, modules.py    functions and lines in ELF files, also those that were inlined
    symbolize.py              prudence-symbolize
    profile_file.py, since.py, pprof.py, profile.py   prudence-profile

Each uses those above it.
"""
