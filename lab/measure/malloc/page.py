# SPDX-License-Identifier: MIT
"""The page of prudence-bench malloc."""

import numpy

from ..page import Refused
from ..pictures import MEGA, OURS, colours, plt

COLUMNS = {"wall": "time", "cpu": "CPU time", "peak_rss": "peak RSS",
           "wall_x_peak_rss": "time × peak RSS", "minor_faults": "page faults",
           "paused_rss": "RSS after a pause"}
CELLS = {"wall_seconds": ("time, s", lambda value: f"{value:.3f}"),
         "cpu_seconds": ("CPU time, s", lambda value: f"{value:.3f}"),
         "peak_rss_bytes": ("peak RSS, MB", lambda value: f"{value / MEGA:.1f}"),
         "paused_rss_bytes": ("RSS after a pause, MB", lambda value: f"{value / MEGA:.1f}"),
         "minor_faults": ("page faults", lambda value: f"{value:,.0f}")}
NOTES = [
    "Every library is preloaded into the same programs in the same run; rounds go over all programs "
    "and allocators in turn. Each run was seen to have its library in its memory map.",
    "A figure relative to the baseline is the quotient of two medians of one program; the figure of "
    "an allocator is the geometric mean over all programs. The 95 % interval comes from a bootstrap "
    "over the rounds: the effect of noise, not of other programs.",
    "Time is wall time: of the pattern proper, of a program from its start to its end, of all "
    "clients of a server. CPU time is user and system time. Peak RSS is that of the largest process "
    "(VmHWM of a pattern, ru_maxrss elsewhere), with the program itself in it.",
    "RSS after a pause: patterns have freed everything by then, a server keeps its data.",
    "The Pareto front: no other allocator needs less time and less memory on average.",
]


def subjects_of(document):
    return [line["subject"] for line in document["summary"]["subjects"]]


def errors(line, key):
    figure = line[key]
    return [[figure["geometric_mean"] - figure["low"]], [figure["high"] - figure["geometric_mean"]]]


def draw_front(axes, lines, baseline):
    colour = colours([line["subject"] for line in lines], {"prudence": OURS})
    for line in lines:
        x, y = (line[key]["geometric_mean"] for key in ("wall", "peak_rss"))
        axes.errorbar(x, y, xerr=clip(errors(line, "wall")), yerr=clip(errors(line, "peak_rss")),
                      fmt="o", color=colour[line["subject"]], capsize=3,
                      markersize=11 if line["subject"] == "prudence" else 7)
        axes.annotate(line["subject"], (x, y), xytext=(8, 6), textcoords="offset points",
                      color=colour[line["subject"]],
                      fontweight="bold" if line["subject"] == "prudence" else "normal")
    front = sorted((line["wall"]["geometric_mean"], line["peak_rss"]["geometric_mean"]) for line in lines if line["on_pareto_front"])
    axes.step(*zip(*front), where="post", color="#888888", linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    axes.set(xlabel=f"time, relative to {baseline}", ylabel=f"peak RSS, relative to {baseline}",
             title="Time and memory: geometric means over all programs (less is better)")
    axes.margins(0.15)


def clip(bounds):
    return numpy.maximum(bounds, 0)


def ratios(document, key):
    """Programs by subjects, relative to the baseline; NaN where there is no figure."""
    rows = {(row["program"], row["subject"]): row.get(key) for row in document["rows"]}
    subjects = subjects_of(document)
    names = [program["name"] for program in document["programs"]]
    table = numpy.array([[rows.get((name, subject)) or numpy.nan for subject in subjects] for name in names], dtype=float)
    return names, subjects, table / table[:, :1]


def draw_map(axes, document, key, title):
    names, subjects, table = ratios(document, key)
    shown = numpy.clip(numpy.log2(table), -2, 2)
    axes.imshow(shown, cmap="PiYG_r", vmin=-2, vmax=2, aspect="auto")
    for (i, j), value in numpy.ndenumerate(table):
        axes.text(j, i, "–" if numpy.isnan(value) else f"{value:.2f}", ha="center", va="center",
                  fontsize=8, color="white" if abs(shown[i, j]) > 1.5 else "#222222")
    axes.set_xticks(range(len(subjects)), subjects, rotation=45, ha="right", fontsize=9)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_title(title)
    axes.grid(False)


def draw(document):
    summary = document["summary"]
    rows = len(document["programs"])
    figure = plt.figure(figsize=(12, 6.5 + 0.3 * rows + 1.5), constrained_layout=True)
    upper, lower = figure.subfigures(2, 1, height_ratios=[6.5, 0.3 * rows + 1.5])
    draw_front(upper.subplots(), summary["subjects"], summary["baseline"])
    left, right = lower.subplots(1, 2)
    draw_map(left, document, "wall_seconds", f'Time ÷ that of {summary["baseline"]}')
    draw_map(right, document, "peak_rss_bytes", f'Peak RSS ÷ that of {summary["baseline"]}')
    return figure


def summary_cells(summary):
    cells = []
    for line in sorted(summary["subjects"], key=lambda line: line["wall_x_peak_rss"]["geometric_mean"]):
        cells.append({"subject": line["subject"], **{
            title: "{geometric_mean:.3f} [{low:.3f}, {high:.3f}]".format(**line[key])
            for key, title in COLUMNS.items() if key in line},
            "Pareto front": "yes" if line["on_pareto_front"] else ""})
    return cells


def program_cells(rows):
    return [{"subject": row["subject"], **(
        {title: show(row[key]) if key in row else "–" for key, (title, show) in CELLS.items()} |
        {"time, least to most": "{min:.3f} to {max:.3f}".format(**row["spread"]["wall_seconds"])}
        if "failed" not in row else {"time, s": f'failed: {row["failed"]}'})} for row in rows]


def sections(document):
    summary = document["summary"]
    parts = [(f'Relative to {summary["baseline"]}: geometric means of ' f'{len(summary["programs"])} programs', summary_cells(summary))]
    for program in document["programs"]:
        rows = [row for row in document["rows"] if row["program"] == program["name"]]
        rows.sort(key=lambda row: "failed" in row)  # the first gives the table its columns
        parts.append((f'{program["name"]}: {program["summary"]}', program_cells(rows)))
    return parts


def headline(document):
    lines = {line["subject"]: line for line in document["summary"]["subjects"]}
    ours, baseline = lines.get("prudence"), document["summary"]["baseline"]
    if not ours or baseline == "prudence":
        return ""
    rank = sorted(line["wall_x_peak_rss"]["geometric_mean"] for line in lines.values()).index(ours["wall_x_peak_rss"]["geometric_mean"]) + 1
    return (f'Over {len(document["summary"]["programs"])} programs Prudence needs '
            f'{ours["wall"]["geometric_mean"]:.2f} times the time of {baseline} and '
            f'{ours["peak_rss"]["geometric_mean"]:.2f} times its memory: number {rank} of '
            f'{len(lines)} by time × peak RSS, '
            f'{"on" if ours["on_pareto_front"] else "not on"} the Pareto front.')


def notes(document):
    said = [f'{document["repeat"]} rounds, scale {document["scale"]:g}, a pause of ' f'{document["pause_seconds"]:g} s.']
    if document["summary"]["left_out"]:
        said.append("Not in the means, since not every allocator ran it: " + ", ".join(document["summary"]["left_out"]) + ".")
    if document["environment"]:
        said.append("Set in the environment: " + ", ".join(f"{name}={value}" for name, value in document["environment"].items()) + ".")
    return NOTES + said


def versions(document):
    return ([f'{one["name"]} {one["version"]}' for one in document["allocators"]] +
            [one["version"] for one in document["programs"] if one["version"]])


def report(documents, made):
    document, = documents
    if not document["summary"]["subjects"]:
        raise Refused(f"{made.source} has no comparison of malloc in it")
    made.page(document, "malloc for whole programs", made.picture(draw(document)), sections(document), notes(document), versions(document),
              headline(document))
    return headline(document)
