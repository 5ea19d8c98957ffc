# SPDX-License-Identifier: MIT
"""From repeats to rows, and from rows to one line for each allocator.

A figure of an allocator is relative to the same program under the baseline, and the geometric mean
over programs. Its confidence interval comes from a bootstrap over the repeats: rounds are drawn with
replacement, all allocators of a program together, since they ran side by side. So it says how far
noise could move the figure, not how other programs would.
"""

import numpy

RESAMPLES = 2000
LEAST = {"cpu_seconds": 1e-4, "minor_faults": 1.0}  # a figure may be 0; a ratio needs more
FIGURES = {
    "wall": lambda run: run["wall_seconds"],
    "cpu": lambda run: max(run["cpu_seconds"], LEAST["cpu_seconds"]),
    "peak_rss": lambda run: run["peak_rss_bytes"],
    "wall_x_peak_rss": lambda run: run["wall_seconds"] * run["peak_rss_bytes"],
    "cpu_x_peak_rss": lambda run: max(run["cpu_seconds"], LEAST["cpu_seconds"]) * run["peak_rss_bytes"],
    "minor_faults": lambda run: max(run["minor_faults"], LEAST["minor_faults"]),
    "paused_rss": lambda run: run.get("paused_rss_bytes"),
}
ROW_KEYS = ("wall_seconds", "cpu_seconds", "user_seconds", "system_seconds", "peak_rss_bytes", "paused_rss_bytes", "minor_faults", "major_faults")


def add_medians(row):
    """Returns medians of the repeats of a row, with their spread."""
    row["spread"] = {}
    for key in ROW_KEYS:
        values = [run[key] for run in row["repeats"] if key in run]
        if values:
            row[key] = float(numpy.median(values))
            row["spread"][key] = {"min": min(values), "max": max(values)}


def complete(rows, subjects):
    """Programs that every subject has run, in their order: {program: {subject: row}}."""
    found = {}
    for row in rows:
        if "failed" not in row:
            found.setdefault(row["program"], {})[row["subject"]] = row
    return {program: by_subject for program, by_subject in found.items() if all(subject in by_subject for subject in subjects)}


def values(by_subject, subjects, figure):
    """Subjects by rounds; None when the program does not have this figure."""
    table = [[value for run in by_subject[subject]["repeats"] if (value := figure(run)) is not None] for subject in subjects]
    rounds = min(len(one) for one in table)
    return numpy.array([one[:rounds] for one in table], dtype=float) if rounds else None


def geometric_means(tables, rng):
    """Returns geometric means of the medians, relative to the first subject: (subjects,), and (subjects, RESAMPLES)."""
    exact, drawn = [], []
    for table in tables:
        rounds = table.shape[1]
        medians = numpy.median(table, axis=1)
        exact.append(numpy.log(medians / medians[0]))
        resampled = numpy.median(table[:, rng.integers(rounds, size=(RESAMPLES, rounds))], axis=2)
        drawn.append(numpy.log(resampled / resampled[0]))
    return numpy.exp(numpy.mean(exact, axis=0)), numpy.exp(numpy.mean(drawn, axis=0))


def on_front(points):
    """For each (time, memory): is no other point as good in both and better in one?"""
    return [not any(other[0] <= point[0] and other[1] <= point[1] and other != point for other in points) for point in points]


def summarize(rows, subjects):
    """The first of `subjects` is the baseline."""
    programs = complete(rows, subjects)
    document = {"baseline": subjects[0], "programs": list(programs), "resamples": RESAMPLES,
                "left_out": sorted({row["program"] for row in rows} - set(programs)), "subjects": []}
    if not programs:
        return document
    rng = numpy.random.default_rng(1)
    lines = [{"subject": subject} for subject in subjects]
    for name, figure in FIGURES.items():
        tables = [table for by_subject in programs.values() if (table := values(by_subject, subjects, figure)) is not None]
        if not tables:
            continue
        exact, drawn = geometric_means(tables, rng)
        low, high = numpy.percentile(drawn, [2.5, 97.5], axis=1)
        for i, line in enumerate(lines):
            line[name] = {"geometric_mean": float(exact[i]), "low": float(low[i]), "high": float(high[i]), "programs": len(tables)}
    fronts = on_front([(line["wall"]["geometric_mean"], line["peak_rss"]["geometric_mean"]) for line in lines])
    for line, front in zip(lines, fronts):
        line["on_pareto_front"] = front
    document["subjects"] = lines
    return document
