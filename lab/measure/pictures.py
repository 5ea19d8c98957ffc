# SPDX-License-Identifier: MIT
"""Colours, styles and legends that pictures of all measurements have in common."""

import io
import statistics

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (the backend comes first)

MEGA = 1e6
OURS = "#0b6e4f"
# Okabe and Ito's colours, which the colour-blind can distinguish.
THEIRS = ["#d55e00", "#0072b2", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#000000"]

plt.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "prudence", "font.size": 11,
    "font.family": "sans-serif", "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#e4e4e0", "grid.linewidth": 0.8, "axes.axisbelow": True,
    "axes.titlelocation": "left", "axes.titleweight": "bold",
})


def colours(subjects, fixed):
    """{subject: colour}; `fixed` has those of some."""
    theirs = iter(THEIRS * len(subjects))
    return {name: fixed.get(name) or next(theirs) for name in subjects}


def subject_style(subject, used):
    """Ours green, classic black, call_rcu solid, other peers dashed, floors dotted; a colour for each allocator, kept in `used`."""
    if subject == "classic":
        return {"color": "#000000", "linewidth": 1.6, "linestyle": "-."}
    if subject.startswith("prudence"):
        return {"color": OURS, "linewidth": 2.6 if subject == "prudence" else 1.2,
                "linestyle": {"prudence-fenced": "--", "prudence-free": ":"}.get(subject, "-")}
    allocator = subject.partition("+")[2] or subject
    colour = THEIRS[used.setdefault(allocator, len(used)) % len(THEIRS)]
    dashes = {"plain": (0, (1, 1.5)), "urcu": "-", "rculfhash": "-"}.get(subject.partition("+")[0], "--")
    return {"color": colour, "linewidth": 1.3, "linestyle": dashes}


def handles_of(grid):
    """{label: handle} of all axes."""
    found = {}
    for axes in grid:
        for handle, name in zip(*axes.get_legend_handles_labels()):
            found.setdefault(name, handle)
    return found


def panel(axes, curves, style, title, xlabel, ylabel, xscale="log"):
    """`curves`: {name: points}"""
    for name, points in curves.items():
        axes.plot(*zip(*points), label=name, **style[name])
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel, yscale="log", xscale=xscale)


def legend_below(figure, grid, columns=4):
    """Draws one legend for all axes of `grid`, below them, so that no curve is covered."""
    found = handles_of(grid)
    share = (0.24 * -(-len(found) // columns) + 0.15) / figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, share, 1, 1 - share))
    return figure.legend(found.values(), found.keys(), frameon=False, ncols=columns, loc="lower center")


def legend_in(subfigure, grid, size):
    """Draws one legend for all axes of `grid`, alone in a figure of its own."""
    found = handles_of(grid)
    subfigure.legend(found.values(), found.keys(), loc="center", ncols=6, frameon=False, fontsize=size)


def bar_with_range(axes, at, width, values, **style):
    """The median, and the least and most as whiskers."""
    middle = statistics.median(values)
    axes.bar(at, middle, width, yerr=[[middle - min(values)], [max(values) - middle]], capsize=3, **style)


def inline_svg(figure):
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def svg_of(figure):
    """Returns the picture for a page that has many, and closes the figure. Returns None if there is none."""
    if figure is None:
        return []
    svg = inline_svg(figure)
    plt.close(figure)
    return [svg[svg.index("<svg"):]]
