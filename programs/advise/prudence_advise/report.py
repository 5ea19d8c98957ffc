# SPDX-License-Identifier: MIT
"""The page of `prudence-advise figures`: it stands alone, the pictures are inside it as SVG."""

from pathlib import Path

import jinja2

from . import machine as machines
from . import pictures, table
from .model import Latencies

RATIO_OF_2004 = 162.4 / 12.9  # memory and second-level cache of Table 2.1


def sections(machine):
    t = machine.latencies()
    clock = t.clock / t.fast
    old = Latencies.of_ratio(RATIO_OF_2004, 1.4 / 12.9)
    return [
        ("Cost of operations here", pictures.costs(machine.document),
         "The thesis' Table 2.1. Circles: medians of interleaved samples; bars: quartiles; crosses: 2004."),
        ("Which is the fastest here, waiting included", pictures.today(machine),
         "One lock, or 64 buckets; a lookup of 100 ns in a section, 50 ns more for an update, linked data. Beyond the CPUs "
         "of this machine lines cost as much as here."),
        ("Spinlock and distributed reader-writer lock (Figure 7.2)", pictures.locks(t),
         "Low contention, this machine's latencies."),
        ("Breakevens by CPUs, this machine's latencies (Figures 7.3 to 7.7)", pictures.by_cpus(t),
         "Each colour is where that one costs least, at low contention. RCU is that of DYNIX/ptx, with a spinlock for "
         "updates; \u03bb is the number of updates in a grace period."),
        ("Breakevens by CPUs, latencies of 2004", pictures.by_cpus(old), f"r = {RATIO_OF_2004:.1f}, of Table 2.1."),
        ("Breakevens by \u03bb (Figures 7.8 to 7.10)", pictures.by_rate(t), "This machine's latencies."),
        ("Breakevens by the ratio of latencies (Figures 7.11 to 7.25)", pictures.by_ratio(clock),
         f"Here r is {t.slow / t.fast:.1f}."),
        ("Our grace periods", pictures.deferral(machine, t),
         "Dotted: the cost of the thesis' RCU here, a callback in a grace period with that many. An object of ours waits for "
         "its batch to be full, so it is not alone in a grace period."),
        ("Memory that waits", pictures.memory(machine), "8 CPUs, fence-free readers that are inside a tenth of the time."),
    ]


def template(name, style):
    folders = [Path(__file__).parent, style]
    return jinja2.Environment(loader=jinja2.FileSystemLoader(folders), autoescape=True, trim_blocks=True, lstrip_blocks=True,
                              undefined=jinja2.StrictUndefined).get_template(name)


def write(path, machine, style):
    drawn = [(title, pictures.svg(figure), note) for title, figure, note in sections(machine)]
    rows = [(title, table.number(median), f"{table.number(low)} to {table.number(high)}",
             table.OF_2004.get(name, "")) for name, title, median, low, high in table.rows(machine.document)]
    path.write_text(template("report.html", style).render(
        sections=drawn, rows=rows, document=machine.document, assumed=machine.assumed, distances=machines.transfers_by_distance(machine.document)))
