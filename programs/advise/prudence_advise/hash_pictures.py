# SPDX-License-Identifier: MIT
"""Figures 2.3 to 2.13, 8.1 to 8.6 and D.1 to D.3: measurements as points, the model as lines."""

import numpy

from . import hashes, model
from .hashes import LAMBDAS, LOCKS, TITLES
from .model import Latencies
from .pictures import OURS, plt

RATIO_BEHIND_8_5 = 4.5  # the figures' r: ADR 68
MARKS = {"ideal": ("#000000", "_"), "rcu": (OURS, "o"), "rcu10": (OURS, "o"), "rcu100": (OURS, "o"), "prudence": ("#009e73", "D"), "hazard": ("#f0a0a0", "P"),
         "brlock": ("#56b4e9", "s"), "bkt": ("#e69f00", "^"), "bktcl": ("#d55e00", "v"), "bktrw": ("#cc79a7", "<"),
         "globalrw": ("#0072b2", ">"), "global": ("#999999", "x")}
SHARES = numpy.linspace(0, 1, 101)


def per_microsecond(rates):
    return numpy.asarray(rates) / 1e6


def points(axes, name, places, rates):
    """Medians, and the range of the repeats; a row of `rates` for each place."""
    colour, mark = MARKS[name]
    middle = numpy.median(rates, axis=1)
    axes.errorbar(places, per_microsecond(middle), yerr=per_microsecond([middle - rates.min(axis=1), rates.max(axis=1) - middle]),
                  color=colour, marker=mark, markersize=5, linestyle="none", elinewidth=1, label=TITLES[name],
                  markerfacecolor="none" if name in ("rcu", "prudence", "hazard") else colour)


def finished(axes, label):
    axes.set(yscale="log", xlabel=label, ylabel="operations a \u00b5s")
    axes.grid(color="#e4e4e0")
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def mixed(measured, machine, buckets, threads, name):
    """Figures 8.1 to 8.4, D.2 and D.3, and 2.12 and 2.13 among them: by the share of updates."""
    figure, axes = plt.subplots(figsize=(9, 4.2), constrained_layout=True)
    table = measured.table(buckets)
    for one in ("ideal", name, *(() if name == "rcu" else ("rcu",)), "prudence", "hazard", *LOCKS):
        shares, rates = measured.curve(one, buckets, threads)
        if len(shares) > 1 and one != "ideal":
            points(axes, one, shares, rates)
        if one in hashes.COSTS:
            axes.plot(SHARES, per_microsecond(hashes.predict(one, machine, table, SHARES, threads)[0][:, 0]), color=MARKS[one][0],
                      linewidth=1, linestyle=":" if one == "rcu" and name != "rcu" else "-",
                      label=TITLES[one] if one == "ideal" or not len(shares) or len(shares) == 1 else None)
    finished(axes, f"share of updates (f); {threads} threads, {buckets} buckets")
    return figure


def read_only(measured, machine, buckets):
    """Figures 2.3 to 2.8, and D.1: by threads. The model goes on where the machine ends."""
    figure, axes = plt.subplots(figsize=(9, 4.2), constrained_layout=True)
    table = measured.table(buckets)
    counts = numpy.arange(1, 5)
    for one in ("ideal", "rcu", "prudence", "hazard", *LOCKS):
        there = [int(count) for count in counts if one != "ideal" and measured.has(one, buckets, int(count), 0.0)]
        if there:
            points(axes, one, there, numpy.array([measured.rates(one, buckets, count, 0.0) for count in there]))
        if one in hashes.COSTS:
            axes.plot(counts, [per_microsecond(hashes.predict(one, machine, table, [0.0], int(count))[0][0, 0] ) for count in counts],
                      color=MARKS[one][0], linewidth=1, label=TITLES[one] if one == "ideal" else None)
    axes.set_xticks(counts)
    finished(axes, f"threads, each on a CPU; {buckets} buckets")
    return figure


def of_2004(cpus, rate, t):
    """The thesis' breakeven: where f (C_typ + lock) is the lock alone."""
    lock = model.spinlock_smp(cpus, t)
    return min(1.0, lock / (model.rcu_typical(cpus, 1, cpus * rate, t) + lock))


def breakevens(measured, machine, buckets, threads):
    """Figures 8.5 and 8.6."""
    figure, axes = plt.subplots(figsize=(9, 3.6), constrained_layout=True)
    rates = numpy.logspace(0, 4, 33)
    here, table = machine.latencies(), measured.table(buckets)
    axes.plot(rates, [hashes.predicted_breakeven(hashes.rcu_of(rate), machine, table, threads) for rate in rates], color=OURS,
              label="model: Prudence and this table, here")
    axes.plot(rates, [of_2004(threads, rate, here) for rate in rates], color="#0072b2", linestyle="--",
              label="model of 2004 (DYNIX/ptx, locks alone), latencies here")
    old = Latencies.of_ratio(RATIO_BEHIND_8_5, 3.5)
    axes.plot(rates, [of_2004(threads, rate, old) for rate in rates], color="#999999", linestyle="--",
              label=f"model of 2004 as it was (r = {RATIO_BEHIND_8_5:g})")
    for count in LAMBDAS:
        if measured.has(f"rcu{count}", buckets, threads, 1.0):
            found = measured.breakevens(f"rcu{count}", buckets, threads)
            middle = numpy.median(found)
            axes.errorbar([count], [middle], yerr=[[middle - found.min()], [found.max() - middle]], color="#000000", marker="o",
                          linestyle="none", label="measured here" if count == LAMBDAS[0] else None)
    axes.plot(LAMBDAS, {2: (0.3, 0.5), 4: (0.4, 0.4)}[threads], "x", color="#999999", label="measured in 2004, about")
    axes.set(xscale="log", ylim=(0, 1.05), xlabel=f"operations of a CPU in a grace period (\u03bb); {threads} CPUs",
             ylabel="breakeven share of updates")
    axes.grid(color="#e4e4e0")
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
