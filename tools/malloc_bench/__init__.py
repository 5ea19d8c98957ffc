# SPDX-License-Identifier: MIT
"""prudence-bench malloc: whole programs and patterns under Prudence and under other allocators.

    cli         the command line, the rounds, the document
    allocators  what is measured, and where its library is
    programs    what runs: our patterns, whole programs, a server
    inputs      what the whole programs are given
    watch       one run under one allocator
    summary     medians, geometric means and their confidence, the Pareto front
"""
