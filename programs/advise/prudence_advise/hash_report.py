# SPDX-License-Identifier: MIT
"""The page of `prudence-advise hash`: each figure with the findings of 2004 and a verdict, then memory and grace periods."""

import numpy

from . import findings, hash_pictures, hashes, ours, pictures, report
from .advice import bytes_text, value

MEMORY_SHARES = (0.02, 0.2, 1.0)


def figures(measured, machine):
    """(title, the figures' numbers whose findings belong to it, picture)"""
    small, large = hashes.BUCKETS
    most = measured.threads_most
    found = [("Searches alone, small table (Figures 2.3 to 2.8)", ("2.3 to 2.8",), hash_pictures.read_only(measured, machine, small)),
             (f"Searches and updates, small table, {most} threads (Figures 2.12 and 2.13)", ("2.12 and 2.13",),
              hash_pictures.mixed(measured, machine, small, most, "rcu"))]
    for number, threads, name in (("8.1", 2, "rcu10"), ("8.2", 4, "rcu10"), ("8.3", 2, "rcu100"), ("8.4", 4, "rcu100")):
        found.append((f"{threads} CPUs, {hashes.TITLES[name][5:]} (Figure {number})", (number,),
                      hash_pictures.mixed(measured, machine, small, threads, name)))
    for number, threads in (("8.5", 2), ("8.6", 4)):
        found.append((f"Breakeven of RCU and the best lock, {threads} CPUs (Figure {number})", (number,),
                      hash_pictures.breakevens(measured, machine, small, threads)))
    found.append(("Searches alone, large table (Figure D.1)", ("D.1",), hash_pictures.read_only(measured, machine, large)))
    for number, name in (("D.2", "rcu10"), ("D.3", "rcu100")):
        found.append((f"Searches and updates, large table, {hashes.TITLES[name][5:]} (Figure {number}: four CPUs)", (number,),
                      hash_pictures.mixed(measured, machine, large, most, name)))
    return found


def ranged(values, text):
    return f"{text(numpy.median(values))} ({text(numpy.min(values))} to {text(numpy.max(values))})"


def footprint(machine, waiting):
    """Returns the ns that a fresh element's lines take longer, by the model, if a CPU has this many that wait."""
    cache = machine.document["caches"].get("l2", 0) or 1 << 20
    return value(ours.footprint_cost(hashes.ELEMENT, waiting * hashes.ELEMENT, cache, machine.get("load_l3", "load_memory", "load_l1")))


def memory(measured, machine):
    """Answers L6335: the memory that waits for grace periods, compared with the model and with the memory of locks; and L6334: how long they take."""
    rows, threads = [], measured.threads_most
    for buckets in hashes.BUCKETS:
        table = measured.table(buckets)
        for share in MEMORY_SHARES:
            if not measured.has("rcu", buckets, threads, share):
                continue
            row = measured.rows["rcu", buckets, threads, share]
            rates, cost = hashes.predict("rcu", machine, table, [share], threads)
            waiting, details = numpy.array(row["waiting"]), cost.details
            periods = numpy.maximum(1e-9, row["grace_periods"])
            rows.append({
                "case": f"{buckets} buckets, f = {share:g}", "waiting": ranged(waiting, lambda one: f"{one:.0f}"),
                "model": f"{value(details['objects_in_flight']):.0f}", "bytes": bytes_text(numpy.median(waiting) * hashes.ELEMENT),
                "footprint": f"{footprint(machine, value(details['objects_in_flight']) / threads):.1f}",
                "data": bytes_text(2 * hashes.ELEMENT * buckets),
                "operations": ranged(numpy.array(row["rates"]) / periods, lambda one: f"{one:.0f}"),
                "length": f"{value(details['grace_period_ns']) / 1000:.2g}"})
    return rows


def memory_of_locks(machine):
    """(mechanism, bytes for each number of buckets), by the model."""
    found = []
    for name in hashes.LOCKS:
        sizes = []
        for buckets in hashes.BUCKETS:
            _, cost = hashes.predict(name, machine, hashes.Table(buckets, 10.0, 10.0), [0.0], 2)
            sizes.append(bytes_text(value(cost.memory)))
        found.append((hashes.TITLES[name], sizes))
    return found


def measured_lengths(machine):
    return [(machine.document["titles"].get(name, name), f"{machine[name][0] / 1000:.2g}")
            for name in ("grace_period_beside_free", "grace_period_beside_fenced", "grace_period_free", "grace_period_fenced")
            if machine.get(name) is not None]


def write(path, measured, machine, style):
    outcomes = findings.outcomes(measured, machine)
    drawn = [(title, pictures.svg(figure), [one for one in outcomes if one["figure"] in numbers])
             for title, numbers, figure in figures(measured, machine)]
    document = measured.document
    path.write_text(report.template("hash_report.html", style).render(
        figures=drawn, outcomes=outcomes, memory=memory(measured, machine), locks=memory_of_locks(machine),
        lengths=measured_lengths(machine), buckets=hashes.BUCKETS, document=document, host=document["calibration"]["host"],
        disturbed=measured.disturbed(), library=findings.of_library(measured), assumed=machine.assumed,
        count={verdict: sum(one["verdict"] == verdict for one in outcomes)
               for verdict in (findings.HOLDS, findings.FAILS, findings.UNDECIDED)}))
