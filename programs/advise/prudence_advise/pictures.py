# SPDX-License-Identifier: MIT
"""Pictures: the cost of operations here, and the thesis' Figures 7.2 to 7.25 for this machine and for our grace periods."""

import io
import math

import matplotlib
import numpy

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (the backend comes first)
from matplotlib.colors import ListedColormap  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402

from . import model, ours, table  # noqa: E402
from .model import Latencies  # noqa: E402

OURS = "#0b6e4f"
# Okabe and Ito's colours, which the colour-blind can distinguish.
COLOURS = {"spinlock": "#e69f00", "brlock (drw)": "#56b4e9", "RCU": OURS}
RATES = (("\u03bb small", 0.0), ("\u03bb = 0.1", 0.1), ("\u03bb = 1", 1.0), ("\u03bb = 10", 10.0),
         ("\u03bb large", math.inf))
SHARES = numpy.logspace(-4, 0, 241)

plt.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "prudence", "font.size": 10, "font.family": "sans-serif",
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left", "axes.titlesize": 10,
})


def save(figure, path):
    figure.savefig(path, dpi=140)
    plt.close(figure)


def svg(figure):
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    return text.getvalue()[text.getvalue().index("<svg"):]


def costs(document):
    """Table 2.1 of this machine, drawn: medians, quartiles, and the measurements of the thesis in 2004."""
    rows = table.rows(document)
    figure, axes = plt.subplots(figsize=(10, 0.28 * len(rows) + 1), constrained_layout=True)
    for place, (name, _, median, low, high) in enumerate(rows):
        axes.plot([low, high], [place, place], color=OURS, linewidth=4, alpha=0.35, solid_capstyle="butt")
        axes.plot(median, place, "o", color=OURS, markersize=5)
        if name in table.OF_2004:
            axes.plot(table.OF_2004[name], place, "x", color="#999999", markersize=6)
    axes.plot([], [], "o", color=OURS, label="here: median and quartiles")
    axes.plot([], [], "x", color="#999999", label="700 MHz Pentium III, 2004")
    axes.set(xscale="log", xlabel="ns", yticks=range(len(rows)), yticklabels=[title for _, title, *_ in rows])
    axes.grid(axis="x", color="#e4e4e0")
    axes.set_axisbelow(True)
    axes.legend(frameon=False, loc="lower right")
    return figure


# -------------------------------------------------------------------- the thesis' figures, without nodes

def fastest(cpus, rate, t):
    """For each of SHARES: 0 spinlock, 1 distributed reader-writer lock, 2 RCU."""
    spin = numpy.full(SHARES.shape, model.spinlock_smp(cpus, t))
    distributed = model.distributed_smp(cpus, SHARES, t)
    rcu = model.rcu(cpus, 1, SHARES, rate, t, model.spinlock_smp(cpus, t))
    return numpy.argmin(numpy.stack([spin, distributed, rcu]), axis=0)


def fill(axes, values, shares, columns, colours):
    """Each point in the colour of its number."""
    axes.pcolormesh(values, shares, numpy.array(columns).T, cmap=ListedColormap(colours), vmin=-0.5,
                    vmax=len(colours) - 0.5, shading="nearest", rasterized=True)


def regions(axes, values, columns, label, log):
    fill(axes, values, SHARES, columns, list(COLOURS.values()))
    axes.set(yscale="log", xlabel=label, ylim=(SHARES[0], 1))
    if log:
        axes.set_xscale("log")


def with_legend(figure, colours=None):
    figure.suptitle(" ")  # keeps the room for the legend
    figure.legend(handles=[Patch(color=colour, label=name) for name, colour in (colours or COLOURS).items()],
                  frameon=False, ncols=6, loc="upper left")
    return figure


def by_cpus(t):
    """Figures 7.3 to 7.7."""
    figure, row = plt.subplots(1, len(RATES), figsize=(13, 3.2), sharey=True, constrained_layout=True)
    counts = numpy.arange(1, 17)
    for axes, (title, rate) in zip(row, RATES):
        regions(axes, counts, [fastest(int(n), rate, t) for n in counts], "CPUs", False)
        axes.set_title(title)
    row[0].set_ylabel("share of updates")
    return with_legend(figure)


def by_rate(t):
    """Figures 7.8 to 7.10."""
    figure, row = plt.subplots(1, 3, figsize=(11, 3.2), sharey=True, constrained_layout=True)
    rates = numpy.logspace(-2, 4, 61)
    for axes, cpus in zip(row, (2, 4, 8)):
        regions(axes, rates, [fastest(cpus, rate, t) for rate in rates], "updates in a grace period (\u03bb)", True)
        axes.set_title(f"{cpus} CPUs")
    row[0].set_ylabel("share of updates")
    return with_legend(figure)


def by_ratio(clock):
    """Figures 7.11 to 7.25; `clock` in units of t_f."""
    figure, grid = plt.subplots(3, len(RATES), figsize=(13, 8), sharex=True, sharey=True, constrained_layout=True)
    ratios = numpy.logspace(0, 3, 41)
    for row, cpus in zip(grid, (2, 4, 8)):
        for axes, (title, rate) in zip(row, RATES):
            regions(axes, ratios, [fastest(cpus, rate, Latencies.of_ratio(r, clock)) for r in ratios],
                    "t_s / t_f (r)" if cpus == 8 else None, True)
            axes.set_title(f"{cpus} CPUs, {title}")
        row[0].set_ylabel("share of updates")
    return with_legend(figure)


def locks(t):
    """Figure 7.2: a spinlock and the distributed reader-writer lock."""
    figure, axes = plt.subplots(figsize=(7, 3.4), constrained_layout=True)
    counts = numpy.arange(1, 65)
    axes.plot(counts, [model.spinlock_smp(int(n), t) for n in counts], color="#000000", label="spinlock")
    for share, colour in ((0.001, "#56b4e9"), (0.01, "#0072b2"), (0.1, "#cc79a7"), (1.0, "#d55e00")):
        axes.plot(counts, [model.distributed_smp(int(n), share, t) for n in counts], color=colour,
                  label=f"brlock (drw), {100 * share:g} % updates")
    axes.set(xlabel="CPUs", ylabel="ns", yscale="log")
    axes.grid(color="#e4e4e0")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


# --------------------------------------------------------------------------------- our grace periods

def our_costs(machine, cpus, fenced):
    kind = "fenced" if fenced else "free"
    return ours.Costs(pair=machine[f"pair_{kind}"][0], transfer=machine.other(cpus)[0],
                      membarrier=machine.membarrier(cpus)[0], fence=machine["fence"][0])


def deferral(machine, t):
    """Draws the cost of a deferral by the objects that share a grace period: ours, and the thesis' RCU with this machine's latencies."""
    figure, row = plt.subplots(1, 2, figsize=(12, 3.8), constrained_layout=True)
    counts = numpy.logspace(0, 6, 121)
    for cpus, colour in ((2, "#56b4e9"), (8, "#0072b2"), (64, "#000000")):
        for fenced in (False, True):
            found = ours.deferral_of_count(counts, cpus, cpus, 64, our_costs(machine, cpus, fenced), fenced)
            row[0].plot(counts, found, color=colour, linestyle="--" if fenced else "-",
                        label=f"{cpus} CPUs, {'fenced' if fenced else 'fence-free'}")
        row[0].plot(counts, [model.rcu_of_count(cpus, 1, count, t) for count in counts], color=colour, linestyle=":",
                    label=f"{cpus} CPUs, DYNIX/ptx")
    row[0].set(xscale="log", yscale="log", xlabel="objects in a grace period", ylabel="ns a deferral",
               title="Cost of a deferral")
    inside = numpy.linspace(0.001, 1, 100)
    for threads, colour in ((2, "#56b4e9"), (8, "#0072b2"), (64, "#000000")):
        for section, style in ((100.0, "-"), (100000.0, "--")):
            found = ours.grace_period_length(threads, threads, inside, section, our_costs(machine, threads, False))
            row[1].plot(inside, found / 1000, color=colour, linestyle=style,
                        label=f"{threads} threads, sections of {section / 1000:g} us")
    row[1].set(yscale="log", xlabel="share of time that a reader is inside", ylabel="us",
               title="Length of a grace period, fence-free")
    for axes in row:
        axes.grid(color="#e4e4e0")
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def memory(machine):
    """Memory that waits, by the rate of updates: the other side of the trade."""
    figure, axes = plt.subplots(figsize=(8, 3.6), constrained_layout=True)
    rates = numpy.logspace(2, 8, 61)  # updates a second
    for size, colour in ((64, "#56b4e9"), (512, "#0072b2"), (4096, "#000000")):
        for section, style in ((100.0, "-"), (1e6, "--")):
            costs_of = our_costs(machine, 8, False)
            length = ours.grace_period_length(8, 8, 0.1, section, costs_of)
            held = ours.objects_in_flight(rates / 1e9, length, 8, 8, size, costs_of) * size
            axes.plot(rates, held / 1e6, color=colour, linestyle=style,
                      label=f"{size} B, sections of {section / 1000:g} us")
    axes.axhline(ours.LATENT_LIMIT / 1e6, color="#444444", linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate("latent_limit", (rates[0], ours.LATENT_LIMIT / 1e6), xytext=(4, 4), textcoords="offset points",
                  fontsize=9)
    axes.set(xscale="log", yscale="log", xlabel="updates a second, 8 CPUs", ylabel="MB")
    axes.grid(color="#e4e4e0")
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def today(machine):
    """Which mechanism is the fastest here, waiting included, by CPUs and by the share of updates."""
    from . import mechanisms
    counts = sorted({1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64})
    names = ("spinlock", "rwlock", "brlock", "buckets", "hazard", "rcu")
    colours = ("#e69f00", "#cc79a7", "#56b4e9", "#f0e442", "#999999", OURS)
    figure, row = plt.subplots(1, 3, figsize=(13, 3.6), sharey=True, constrained_layout=True)
    cpus, machine.cpus = machine.cpus, max(counts)
    for axes, (title, between) in zip(row, (("sections back to back", 0.0), ("1 us apart", 1e3), ("100 us apart", 1e5))):
        columns = []
        for count in counts:
            load = mechanisms.Load(threads=count, updates=SHARES[::4, None], between=between, buckets=64)
            rates = [numpy.broadcast_to(mechanisms.evaluate(mechanisms.BY_NAME[name], machine, load)[0],
                                        (len(SHARES[::4]), machine.draws + 1))[:, 0] for name in names]
            columns.append(numpy.argmax(numpy.stack(rates), axis=0))
        fill(axes, counts, SHARES[::4], columns, colours)
        axes.set(yscale="log", xscale="log", xlabel="CPUs", title=title, xticks=[1, 4, 16, 64])
        axes.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    machine.cpus = cpus
    row[0].set_ylabel("share of updates")
    return with_legend(figure, {mechanisms.BY_NAME[name].title: colour for name, colour in zip(names, colours)})
