# SPDX-License-Identifier: MIT
"""The model for Prudence's grace periods: the cost of a deferral, the wait, and the memory.

The thesis counts the cache lines of DYNIX/ptx (7.14 to 7.17). Here are ours, as heap_test_shared_lines counts them in the
library as it is built (docs/explanation/scaling.md):

  pair            0 lines: allocation and deferral are on the CPU's own lines
  batch           at most 2 lines: the domain's `sequence` when a CPU closes a batch, `completed` when it merges one.
                  A CPU loads each once in a grace period, so more batches of that CPU cost no line
  grace period    3 lines for each CPU that has read since the last one (its word to the driver and back, and `sequence`),
                  2 for the driver itself, and one membarrier unless the readers fence
  clock tick      nothing: no timer drives a grace period (the thesis' C_h)

An object waits in an open batch until the batch is full. So there is no isolated callback that pays for a grace period
alone, as in 7.18: where deferrals are rare a batch costs memory instead of time. Two questions that the thesis leaves open
are answered for this design: how long a grace period takes (L6334), and how much memory deferral costs (L6335).
"""

import math
from dataclasses import dataclass

import numpy

from . import model

BATCH_OBJECTS = 256  # a batch has this many objects (ADR 3),
BATCH_BYTES = 256 << 10  # or as many as these hold
DUE_CHEAP = (128, 1024)  # objects that are worth a grace period without a system call: DUE_CHEAP_BYTES, within these
DUE_CHEAP_BYTES = 64 << 10
DUE_COSTLY_PER_NS = 3  # with one: this many for each nanosecond of it, that is a 30th of their pairs' time (ADR 44),
DUE_COSTLY_BYTES = 4 << 20  # or this many bytes at most
ASK_APART, ASK_MORE = 6000.0, 4000.0  # ns between questions to readers, and more for each reader (ADR 41)
ASK_READERS = 32  # at most
ASK_COST = 300.0  # ns: the cost of a question for a reader, by the estimate of ADR 41
LINES_OF_BATCH = 2
LINES_OF_READER = 3
LINES_OF_DRIVER = 2
LATENT_LIMIT = 32 << 20  # the option's default
SLICE = 3e6  # ns that a thread keeps its CPU if others want it: about what the kernel's scheduler gives
DECAY = 100e6  # ns; the option's default: a round of decay drives the grace periods of latent objects (ADR 42)


@dataclass(frozen=True)
class Costs:
    """Nanoseconds; each may be an array of draws."""

    pair: float  # an allocation and a deferral on the fast paths
    transfer: float  # a line from another CPU
    membarrier: float  # makes all readers fence
    fence: float
    look: float = 3.0  # to read a reader's word (ADR 41: 2 to 4 ns), its line apart


def objects_of_batch(size):
    """Objects of `size` bytes in one batch."""
    return max(1, min(BATCH_OBJECTS, BATCH_BYTES // size))


def grace_period(readers, costs, fenced=False):
    """The CPU time of one grace period that `readers` CPUs have read in: 7.15 of ours."""
    barrier = costs.fence if fenced or readers == 0 else costs.membarrier
    return (LINES_OF_READER * readers + LINES_OF_DRIVER) * costs.transfer + readers * costs.look + barrier


def objects_due(readers, size, costs, fenced=False):
    """How many objects wait before a grace period is driven for them.

    With no reader about, a batch's grace period is over at once (ADR 37). Otherwise src/core/slab/alloc.c weighs it.
    """
    if readers == 0:
        return objects_of_batch(size) + 0 * costs.membarrier
    if fenced:
        return min(max(DUE_CHEAP_BYTES // size, DUE_CHEAP[0]), DUE_CHEAP[1]) + 0 * costs.membarrier
    least = max(1, DUE_CHEAP_BYTES // size)
    return numpy.clip(DUE_COSTLY_PER_NS * costs.membarrier, least, max(least, DUE_COSTLY_BYTES // size))


def ask_interval(readers):
    """How often readers are asked to fence, at most."""
    return ASK_APART + ASK_MORE * readers


def are_asked(readers, entries_apart):
    """Says whether fence-free readers answer a question with a fence soon, so that a grace period needs no membarrier (ADR 41).

    They do if they are few and enter again before the next question.
    """
    return (0 < readers <= ASK_READERS) & (entries_apart < ask_interval(readers))


def deferral_of_count(count, cpus, readers, size, costs, fenced=False):
    """The cost of each of `count` deferrals of one grace period, made on `cpus` CPUs: 7.21 of ours."""
    batches = numpy.maximum(1.0, count / objects_of_batch(size))
    lines = LINES_OF_BATCH * model.occupied_cpus(1, cpus, batches)
    return costs.pair + (grace_period(readers, costs, fenced) + lines * costs.transfer) / count


def deferral_typical(batches, cpus, readers, size, costs, fenced=False):
    """7.24 of ours: the number of batches in a grace period is Poisson-distributed with mean `batches`, and not 0."""
    objects = objects_of_batch(size)
    alone = model.mean_inverse_count(batches)
    occupied = cpus * (alone - model.mean_inverse_count(batches, 1 - 1 / cpus)) if batches else 1.0
    shared = grace_period(readers, costs, fenced) * alone + occupied * LINES_OF_BATCH * costs.transfer
    return costs.pair + shared / objects


def deferral(cpus, readers, size, costs, fenced=False):
    """The cost of a deferral when a grace period has as many as the library gathers."""
    return deferral_of_count(objects_due(readers, size, costs, fenced) * 1.0, cpus, readers, size, costs, fenced)


# ------------------------------------------------------------------------------ how long, and how much memory

def longest_section(readers, inside, section, varying=False):
    """How long a grace period waits for sections that are open when it starts, on average.

    Each of `readers` is inside one with probability `inside`. All last for `section`, so that the rest of one is
    anything up to that; `varying`: they are exponentially distributed with that mean.
    """
    if readers == 0:
        return 0.0 * section * inside
    inside = numpy.clip(inside, 1e-12, 1.0)
    if not varying:  # the mean of K / (K + 1), K of `readers` being inside; where hardly one is, it would cancel
        few = readers * inside / 2 - readers * (readers - 1) * inside ** 2 / 6
        many = 1 - (1 - (1 - inside) ** (readers + 1)) / ((readers + 1) * inside)
        return section * numpy.where((readers + 1) * inside < 1e-3, few, many)
    return section * sum((1 - (1 - inside) ** k) / k for k in range(1, readers + 1))


def longest_wait_for_cpu(threads, cpus, inside, slice_ns):
    """Returns the time that readers add that have lost their CPU inside a section: with more threads than CPUs, a turn of the others."""
    waiting = max(0, threads - cpus)
    if waiting == 0:
        return 0.0 * inside
    return (1 - (1 - inside) ** waiting) * slice_ns * waiting / cpus


def grace_period_length(threads, cpus, inside, section, costs, fenced=False, varying=False, slice_ns=SLICE):
    """From its start to its end (L6334): its own work, and the last of the sections that were open at its start."""
    running = min(threads, cpus)
    return (grace_period(running, costs, fenced) + longest_section(running, inside, section, varying)
            + longest_wait_for_cpu(threads, cpus, inside, slice_ns))


def objects_in_flight(rate, length, cpus, readers, size, costs, fenced=False, latent_limit=LATENT_LIMIT, asked=False):
    """Objects that are deferred and not yet reusable, where `rate` are deferred in a nanosecond (all CPUs).

    Half a batch is open on each CPU; a closed batch waits until it is worth a grace period, then for its end. Without
    readers a closed batch is over at once. Where
    updates are rare, rounds of decay come first: an object waits for two of them at most.
    """
    batches = cpus * objects_of_batch(size)
    # Asked readers answer before the next question, and the next batch that is closed finds the answer.
    due = numpy.where(asked, batches + rate * ask_interval(readers), objects_due(readers, size, costs, fenced))
    gathered = batches / 2 + (due if readers else 0.0)
    there = numpy.minimum(gathered, 2 * DECAY * rate) + rate * length
    return numpy.minimum(there, latent_limit / size if latent_limit else math.inf)


def footprint_cost(size, cycling, cache, miss, line=64):
    """The cost of cache misses of a deferral (L6335): a new version is written to memory that was used `cycling` bytes ago.

    Objects that are changed in place under a lock stay in the cache. A fresh object's lines are found in a cache of
    `cache` bytes only if everything that was used since fits in there as well.
    """
    missing = numpy.clip(1 - cache / numpy.maximum(cycling, 1.0), 0.0, 1.0)
    return math.ceil(size / line) * missing * miss
