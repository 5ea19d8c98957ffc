# SPDX-License-Identifier: MIT
"""Draws the waiting objects over time, as a page that stands alone."""

import html
import io

from . import report


def curve_svg(found):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"svg.fonttype": "none", "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#e4e4e0",
                         "axes.titlelocation": "left", "axes.titleweight": "bold", "font.family": "sans-serif"})
    points = found["curve"]
    seconds = [point["seconds"] for point in points]
    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 5), sharex=True, constrained_layout=True)
    above.fill_between(seconds, [point["bytes"] / 1e6 for point in points], color="#d55e00", alpha=0.35, step="post")
    above.set(title="Memory that waits", ylabel="MB")
    below.fill_between(seconds, [point["callbacks"] for point in points], color="#0072b2", alpha=0.35, step="post")
    below.set(title="Callbacks that wait", xlabel="seconds")
    for axes in (above, below):
        axes.set_ylim(bottom=0)
    text = io.StringIO()
    figure.savefig(text, format="svg")
    plt.close(figure)
    return text.getvalue()[text.getvalue().index("<svg"):]


def page(every, command, style, top):
    """`every`: the results of each process; `style`: the text of a style sheet."""
    parts = []
    for found in every:
        words = "\n".join(report.lines(found, command, top))
        parts.append(f"<h2>Process {found['process']}</h2>\n<div class=\"card\">{curve_svg(found)}</div>\n<div class=\"card\"><pre>{html.escape(words)}</pre></div>")
    title = html.escape(f"What waits in {command}")
    return (f"<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
            f"<title>{title}</title><style>{style}\npre {{ overflow-x: auto; }}</style><main><h1>{title}</h1>\n" + "\n".join(parts) + "\n</main></html>\n")
