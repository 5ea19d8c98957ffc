# SPDX-License-Identifier: MIT
"""The page and tables of bench-acdc: each figure of the thesis' chapter 6, next to the results here. With --images, FOLDER/acdc-EXPERIMENT.png."""

import numpy

from measure.pictures import MEGA, OURS, THEIRS, colours as colours_of, inline_svg, plt

REFRESH = ("refresh", "global_refresh", "tick", "global_tick")
MALLOC = ("allocate", "free")
SHORT_TERM = ("short-term-lazy", "short-term-eager")
NOTES = [
    "A point is the mean of several runs, each in a fresh process and with another seed; the bars are "
    "its 95 % confidence interval. Points were repeated until the interval of each response that the "
    "experiment is about lay within {precision:.0%} of the mean, at least {least} and at most {most} times; "
    "a point that did not get there has a “~” in the tables. A factorial design has {replications} replications.",
    "Cycles are those of the time-stamp counter, of the call alone: fenced on both sides, less the cost "
    "of an empty measurement. They are means of the fastest 99.9 % of the calls (ticks, which are few: "
    "99 %), so that a thread that loses its CPU inside of one does not decide.",
    "Findings on throughput are of the bytes allocated in a second of CPU time of all threads. Where threads are no more "
    "than CPUs, and nothing else runs, that is throughput by a thread; other programs on the machine do not lower it as "
    "much as it does throughput by the clock.",
    "The thesis' machine had 24 cores at 2.1 GHz; here more threads than CPUs take turns. Where it says "
    "“nearly the same” or “constant”, a factor of 1.25 was allowed.",
    "A verdict is “undecided” when draws from the runs (100, of each point as many as it has, with repetition) "
    "disagree with it in one of twenty or more, and in factorial designs when more than half of the variation is "
    "between equal runs: a loaded machine, or too few runs. Fewer than three runs of a point decide nothing.",
    "Held memory is memory that the model has not returned: live objects, and those that are deferred or "
    "whose dates have not expired (short-term memory: as the allocator counts, with its rounding).",
    "Allocation of variation: how much of all variation between the runs of a 2^k r design each "
    "factor, or combination of factors, explains (R. Jain, The Art of Computer Systems Performance "
    "Analysis, chapter 18).",
]


def colours(subjects):
    return colours_of(subjects, {"persistent+prudence": OURS, "deferred-prudence": "#4caf86", "short-term-lazy": "#7a5195",
                                 "short-term-eager": "#ef5675", "none": "#bbbbbb"})


def curve(rows, subject, response):
    """Points, means and half widths, in the order of the points."""
    found = [(row["point"], row["responses"][response]) for row in rows if row["subject"] == subject and response in row["responses"]]
    return ([point for point, _ in found], [one["mean"] for _, one in found], [one["half_width"] or 0 for _, one in found])


def subjects_of(rows, response=None):
    return list(dict.fromkeys(row["subject"] for row in rows if response is None or response in row["responses"]))


def legend_below(axes):
    """Puts the legend below the picture, so that no data are covered."""
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3)


def draw_curves(axes, rows, curves, experiment, scale=1.0):
    """`curves`: (subject, response, label, style)."""
    drawn = False
    for subject, response, label, style in curves:
        points, means, widths = curve(rows, subject, response)
        if points:
            drawn = True
            axes.errorbar(points, numpy.array(means) * scale, numpy.array(widths) * scale,
                          label=label, marker="o", markersize=3.5, capsize=2, **style)
    axes.set_xlabel(experiment["axis"])
    if experiment["log"]:
        axes.set_xscale("log", base=2)
    if drawn:
        legend_below(axes)
    else:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color="#888888")


def fit_to_means(axes, rows, response, scale, bottom=None):
    """The axis shows all means; wide intervals, as of few and short runs, may go beyond it."""
    means = [row["responses"][response]["mean"] * scale for row in rows if response in row["responses"]]
    if means:
        axes.set_ylim(min(means) * 0.7 if bottom is None else bottom, max(means) * 1.3)


def operation_curves(subject):
    return [(subject, name, name.replace("_", " "), {"color": colour, "linestyle": line})
            for name, colour, line in zip(REFRESH, THEIRS, ("-", "--", "-", ":"))]


def draw_operations(document, experiment, rows):
    """Figures 6.5 to 6.9: the operations' times, lazy and eager; the heap; malloc next to it."""
    figure, ((lazy, eager), (heap, malloc)) = plt.subplots(2, 2, figsize=(12, 8.4), constrained_layout=True)
    for axes, subject in ((lazy, SHORT_TERM[0]), (eager, SHORT_TERM[1])):
        draw_curves(axes, rows, operation_curves(subject), experiment)
        axes.set(ylabel="cycles", title=subject)
    eager.set_yscale("log")
    colour = colours(subjects_of(rows))
    shown = [name for name in subjects_of(rows, "held_bytes") if name in SHORT_TERM or name == "persistent+glibc"]
    draw_curves(heap, rows, [(name, "held_bytes", name, {"color": colour[name]}) for name in shown], experiment, 1 / MEGA)
    objects = heap.twinx()
    for name in shown:
        points, means, _ = curve(rows, name, "live_objects")
        objects.plot(points, numpy.array(means) / 1e3, color=colour[name], linestyle=":")
    objects.set_ylabel("thousands of live objects (dotted)")
    objects.grid(False)
    heap.set(ylabel="held memory, MB", title="Heap")
    draw_curves(malloc, rows, [
        (name, response, f"{name.removeprefix('persistent+')}, {response}", {"color": colour[name], "linestyle": line})
        for name in subjects_of(rows, "allocate") if name.startswith("persistent+")
        for response, line in zip(MALLOC, ("-", ":"))], experiment)
    malloc.set(ylabel="cycles", yscale="log", title="malloc (solid) and free (dotted)")
    if experiment["log"]:
        heap.set_yscale("log")
        objects.set_yscale("log")
    return figure


def draw_throughput(document, experiment, rows):
    """Figures 6.10 and 6.11."""
    figure, (speed, time) = plt.subplots(1, 2, figsize=(12, 5.6), constrained_layout=True)
    colour = colours(subjects_of(rows))
    dashes = {"persistent": "-", "short-term": "-", "deferred": "--", "none": ":"}
    kind = {row["subject"]: row["kind"] for row in rows}
    for axes, response, scale in ((speed, "bytes_per_cpu_second", 1 / MEGA), (time, "seconds", 1)):
        draw_curves(axes, rows, [(name, response, name, {"color": colour[name], "linestyle": dashes[kind[name]]})
                                 for name in subjects_of(rows)], experiment, scale)
    time.get_legend() and time.get_legend().remove()
    speed.set(ylabel="MB allocated a second of CPU time", title="Throughput")
    time.set(ylabel="seconds", title="Run time")
    if experiment["log"]:
        time.set_yscale("log")
    fit_to_means(speed, rows, "bytes_per_cpu_second", 1 / MEGA, bottom=0)
    fit_to_means(time, rows, "seconds", 1)
    return figure


def draw_trace(document, experiment, rows):
    """Figure 6.12, and the resident memory of the process at the same time."""
    figure, (held, resident) = plt.subplots(1, 2, figsize=(12, 5.2), constrained_layout=True)
    colour = colours(subjects_of(rows))
    for row in rows:
        samples = row.get("samples") or []
        name = row["subject"]
        times = [sample["time"] for sample in samples]
        resident.plot(times, [sample["resident_bytes"] / MEGA for sample in samples], color=colour[name], label=name, linewidth=1.3)
        if name in (*SHORT_TERM, "persistent+glibc", "deferred-prudence"):
            held.plot(times, [sample["held_bytes"] / MEGA for sample in samples], color=colour[name], label=name, linewidth=1.5)
    for axes, what in ((held, "held"), (resident, "resident")):
        axes.set(xlabel="time, ticks", ylabel=f"{what} memory, MB", title=f"{what} memory".capitalize())
        axes.set_ylim(bottom=0)
        legend_below(axes)
    return figure


def draw_histograms(document, experiment, rows):
    """Figures 5.1 and 5.2: the allocated memory, which is the same for all subjects."""
    found = next((row["histograms"] for row in rows if row.get("histograms")), None)
    if not found:
        return None
    figure, (livenesses, sizes) = plt.subplots(1, 2, figsize=(12, 4), constrained_layout=True)
    for axes, bins, key in ((livenesses, found["livenesses"], "liveness"), (sizes, found["sizes"], "size_class")):
        axes.bar([one[key] for one in bins], [one["objects"] for one in bins], color=THEIRS[1])
        axes.set_ylabel("objects")
    livenesses.set(xlabel="lifetime, ticks", title="Lifetimes of objects (figure 5.1)")
    sizes.set(xlabel="size class: 2^n bytes", title="Sizes of objects (figure 5.2)", yscale="log")
    return figure


def draw_factorial(document, experiment, rows):
    """Figures 6.1 to 6.4: a bar for each effect."""
    found = document["variation"].get(experiment["name"], {})
    if not found:
        return None
    (shares,) = found.values()
    figure, grid = plt.subplots(2, 2, figsize=(12, 7.2), constrained_layout=True)
    for axes, name in zip(grid.flat, REFRESH):
        if name in shares:
            effects = list(shares[name])
            axes.bar(effects, [100 * shares[name][effect] for effect in effects],
                     color=[THEIRS[1] if effect != "error" else "#999999" for effect in effects])
        axes.tick_params(axis="x", rotation=90, labelsize=8)
        axes.set(ylabel="% of variation", title=name.replace("_", " "))
    return figure


def draw_factorial_malloc(document, experiment, rows):
    """A column for each allocator."""
    found = document["variation"].get(experiment["name"], {})
    if not found:
        return None
    figure, grid = plt.subplots(1, 2, figsize=(12, 4.6), constrained_layout=True)
    for axes, name in zip(grid, MALLOC):
        subjects = [subject for subject in found if name in found[subject]]
        effects = list(next(iter(found.values()))[name])
        table = numpy.array([[100 * found[subject][name][effect] for subject in subjects] for effect in effects])
        axes.imshow(table, cmap="Greens", vmin=0, vmax=100, aspect="auto")
        for (i, j), value in numpy.ndenumerate(table):
            axes.text(j, i, f"{value:.0f}", ha="center", va="center", fontsize=9, color="white" if value > 60 else "#222222")
        axes.set_xticks(range(len(subjects)), [subject.removeprefix("persistent+") for subject in subjects], rotation=45, ha="right")
        axes.set_yticks(range(len(effects)), effects)
        axes.set_title(f"{name}: % of variation")
        axes.grid(False)
    return figure


DRAW = {"factorial": draw_factorial, "factorial-malloc": draw_factorial_malloc,
        "threads": draw_operations, "quantum": draw_operations,
        "throughput-quantum": draw_throughput, "throughput-threads": draw_throughput,
        "trace": draw_trace}
MORE = {"trace": draw_histograms}  # a second picture
UNITS = {"seconds": ("time, s", 1, 3), "bytes_per_second": ("MB/s", MEGA, 1),
         "bytes_per_cpu_second": ("MB/s of CPU time", MEGA, 1),
         "held_bytes": ("held, MB", MEGA, 2), "live_bytes": ("live, MB", MEGA, 2),
         "resident_bytes": ("resident, MB", MEGA, 2), "live_objects": ("live objects", 1, 0)}


def cell(response, name):
    _, scale, digits = UNITS.get(name, ("", 1, 1))
    text = f'{response["mean"] / scale:,.{digits}f}'
    if response["half_width"] is None:
        return text
    return f'{text} ± {response["half_width"] / scale:,.{digits}f}' + ("" if response["known"] else " ~")


def cells(rows):
    names = [name for name in (*REFRESH, *MALLOC, *UNITS) if any(name in row["responses"] for row in rows)]
    table = []
    for row in rows:
        line = {"subject": row["subject"], "at": str(row["point"]), "runs": str(len(row["repeats"]))}
        for name in names:
            title = UNITS.get(name, (name.replace("_", " ") + ", cycles",))[0]
            line[title] = cell(row["responses"][name], name) if name in row["responses"] else "–"
        if "failed" in row:
            line[next(iter(line))] += f' (failed: {row["failed"]})'
        table.append(line)
    return table


def headline(document):
    findings = [one["verdict"] for one in document["findings"] if one["verdict"] != "not measured"]
    count = findings.count
    if not findings:
        return "None of the thesis' findings was measured."
    return (f'Of the {len(document["findings"])} findings of chapter 6 that are checked, '
            f'{len(findings)} were measured: {count("holds")} hold here, {count("does not hold")} do not, '
            f'{count("undecided")} are undecided.')


def progress(document):
    """How far the run has come, when it is not at its end."""
    if not document.get("points_open"):
        return ""
    return (f'Not finished ({document["ended"]}): {document["points_within_aim"]} of '
            f'{document["points"]} points are within their aim, {document["points_open"]} are open.')


def pictures(document, experiment, rows, folder):
    if not any(row["repeats"] for row in rows):
        return
    name = experiment["name"]
    for draw, file in ((DRAW.get(name), f"acdc-{name}.png"), (MORE.get(name), f"acdc-{name}-histograms.png")):
        figure = draw(document, experiment, rows) if draw else None
        if figure is None:
            continue
        if folder:
            figure.savefig(folder / file, dpi=75)
        svg = inline_svg(figure)
        plt.close(figure)
        yield svg[svg.index("<svg"):]


def parts(document, folder):
    for experiment in document["experiments"]:
        rows = [row for row in document["rows"] if row["experiment"] == experiment["name"]]
        said = ["acdc " + " ".join(experiment["options"])]
        yield {"name": experiment["name"], "title": experiment["title"], "figures": experiment["figures"], "open": False, "cells": cells(rows),
               "text": said + [f"{label} = {what}" for label, what in experiment["labels"].items()],
               "pictures": list(pictures(document, experiment, rows, folder)),
               "findings": [{"place": one["figure"], "claim": one["thesis"], "verdict": one["verdict"], "rounds": one["rounds"], "here": one["measured"],
                             "reason": one["reason"]} for one in document["findings"] if one["experiment"] == experiment["name"]]}


def tables(document, made):
    """{name: rows}"""
    found = {part["name"]: part["cells"] for part in made if part["cells"]}
    checked = [{"figure": one["figure"], "the thesis": one["thesis"], "verdict": one["verdict"], "rounds": str(one["rounds"]), "here": one["measured"]}
               for one in document["findings"]]
    return found | ({"findings": checked} if checked else {})


def report(documents, made):
    document, = documents
    found = list(parts(document, made.images))
    made.parts(document, [note.format(**document) for note in NOTES], title="ACDC", source="the thesis", headline=headline(document), parts=found,
               subtitle=f'acdc {document["prudence"]} · {document["date"]}' + (" · short form" if document["short"] else ""),
               warnings=list(filter(None, [progress(document)])), versions=[f'{one["name"]} {one["version"]}' for one in document["allocators"]])
    made.tables(tables(document, found))
    return headline(document)
