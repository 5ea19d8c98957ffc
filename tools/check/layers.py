# SPDX-License-Identifier: MIT
"""The layers of src/, from the top to the bottom: the source of check-layers, check-calls and the list in
docs/explanation/design.md."""

LAYERS = {  # folder: its purpose; each may use only layers below it
    "whole": "the library that has all parts: the tables that name them; functions for other languages",
    "observe": "observation of a process: statistics, dumps, profiles, the walk over the heap",
    "shortterm": "short-term memory: objects with expiration dates",
    "tables": "tables that readers search while writers change and resize them; counts, counters, logs, swaps",
    "toolkit/urcu": "liburcu's names: its workers, batches and hash tables",
    "toolkit/callbacks": "work after a grace period: callbacks, the threads that run them, destructors",
    "toolkit/domains": "more kinds of domains: hazard pointers, epochs, srcu, sets, those of other libraries",
    "guard": "the search for bugs: checks, guarded objects, quarantine, traces, annotations",
    "core/alone": "the same tables where there is no other part (the archive prudence-core)",
    "core/process": "the start and the fork of a process; options; figures",
    "core/heap": "any size: size classes, large blocks, public caches; from a pointer to its slab",
    "core/slab": "the paper: caches, latent caches, nodes, slabs; the gate for extensions. No libc, no threads API",
    "core/gp": "when is it safe? domains, readers, driving grace periods (user/; kernel/: the kernel's own RCU)",
    "core/pages": "where slabs get their pages: runs, huge mappings, windows, and pages that go back to the system",
    "core/os": "requests to the system: memory, per-CPU lines, barriers, locks, clock, idle work (posix/, kernel/)",
    "core/base": "types, bits, lists, atomics, exact division",
}
# Members of the static library in addition to the main one: a program may lack them (ADR 26). Tables stand on the interface that
# programs have, and on these layers; short-term memory and liburcu's names know more of the core.
MEMBERS = {"tables", "shortterm", "toolkit/urcu"}
CLIENTS = {"tables": {"core/os", "core/base"}}
RANK = {layer: rank for rank, layer in enumerate(reversed(LAYERS))}
CORE = {layer.removeprefix("core/") for layer in LAYERS if layer.startswith("core/")}


def of(path):
    """The layer of slab/x.h, as includes name the core, or of core/slab/x.h and toolkit/urcu/x.c; None outside the layers."""
    parts = path.split("/")
    if len(parts) > 1 and parts[0] in CORE:
        return f"core/{parts[0]}"
    return next((layer for layer in ("/".join(parts[:2]), parts[0]) if layer in RANK and len(parts) > layer.count("/") + 1), None)

# Constant tables that the embedding program defines (src/whole in a process, kernel/ in Linux): by them a layer
# calls functions of a layer above, which it does not know.
PROGRAM_TABLES = {
    "slab_extensions": "calls at the steps of an object's life",
    "process_parts": "parts that start with the process",
    "other_parts": "the same of other parts than the core",
    "other_fork_parts": "their parts that fork visits",
    "option_tables": "the options of all parts",
    "domain_queue": "the queue of callbacks that each domain has",
    "gp_schemes": "all kinds of domains",
    "gp_schemes_count": "",
    "gp_parts": "the work of other parts of gp/ for threads and processes",
    "heap_upcalls": "the few calls from the heap to parts above it",
    "reuse_upcalls": "preparation of objects for reuse: destructors",
}

# Variables by which a layer learns at run time which function to call.
HOOKS = {
    "callbacks_weigh": "how many bytes wait with a callback: only toolkit/callbacks/call.c knows slabs",
    "callbacks_leave": "a callback leaves its queue: toolkit/callbacks/call.c has counted its object as leaving",
    "callbacks_other_work": "the worker runs destructors too",
    "enable": "os/posix/slice.c: the kernel, or a test in its place",
    "yield": "os/posix/slice.c: the same",
    "current_work": "os/posix/idle.c: the work done in idle time",
    "fault_look_at": "guard/fault_handler.c: whose memory was touched",
    "when_noticed": "os/posix/copy.c: a child that no fork handler has prepared",
    "injected_current": "tests have their own CPUs",
    "injected_idle": "tests have their own idle time",
    "os_memory_fails": "tests refuse memory",
    "pages_zero_clock": "tests say how long purges take",
    "mapping_seen": "tests stand in for functions of the program in the place of mmap and its kind",
    "thread_ends": "gp/user/reader_exit.c: the end of a thread's slots (readers.c)",
    "thread_ends_before": "gp/user/reader_exit.c: short-term memory of a thread that ends (shortterm/threads.c)",
    "posix_clock_injected": "tests have their own clock",
    "posix_cpu_injected": "tests say whether a thread has a CPU",
    "posix_sequence_verdict_injected": "tests set the kernel's answer",
    "look": "slab/recent_frees.c: the objects searched for in CPUs' caches",
    "posix_report_elsewhere": "os/posix/report.c: the file of an option (observe/report_file.c)",
    "pressure_own_bytes": "os/posix/memory_pressure.c: the memory of the page source (process/sandbox.c)",
    "scm_real_time": "tests have their own clock",
}


def listing():
    """The layers as docs/explanation/design.md has them."""
    width = max(map(len, LAYERS)) + 2
    return "".join(f"{layer + '/':<{width}} {purpose}\n" for layer, purpose in LAYERS.items())
