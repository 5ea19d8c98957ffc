#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Pictures and pages from the JSON of prudence-bench.

    tools/report.py endurance FILE.json    memory and speed over time: .html, .svg, .png beside FILE
    tools/report.py pairs FILE.json        nanoseconds per pair by object size, likewise

The page stands alone: the picture is inside it as SVG.
"""

import argparse
import csv
import io
import json
import re
import sys
from pathlib import Path

import jinja2
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (the backend comes first)

OURS = "#0b6e4f"
# Okabe and Ito's colours, which the colour-blind can tell apart.
THEIRS = ["#d55e00", "#0072b2", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#000000"]
MEGA = 1e6

plt.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "prudence", "font.size": 11,
    "font.family": "sans-serif", "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#e4e4e0", "grid.linewidth": 0.8, "axes.axisbelow": True,
    "axes.titlelocation": "left", "axes.titleweight": "bold",
})


def is_ours(row):
    return row["versions"]["library"] == "prudence"


def label(row):
    """urcu+jemalloc -> call_rcu over jemalloc."""
    name = row["subject"]
    if name.startswith("urcu+"):
        return "call_rcu over " + name.removeprefix("urcu+")
    return {"prudence": "Prudence"}.get(name, name)


def version(row):
    """Plain malloc has no library, and so no version of it."""
    versions, allocator = row["versions"], row["versions"]["allocator"]
    library = f'{versions["library"]} {versions["library_version"]}' if versions["library_version"] else ""
    return library if is_ours(row) else ", ".join(filter(None, [library, f'{allocator["name"]} {allocator["version"]}']))


def measured(document):
    """The rows that have a result, a crash of the subject apart."""
    return [row for row in document["rows"] if "versions" in row]


BUSY = 0.1   # CPUs of others, as the programs have it
WAITED = 2   # times its CPU time that a row took by the clock


def busy_warning(document):
    """[that other programs used the machine], of a document that says so."""
    busy = document.get("others_cpus", 0)
    return [f"The machine was busy: other programs used up to {busy:.1f} CPUs meanwhile. Figures are of the order only."] if busy > BUSY else []


def waiting_warning(rows, cpus):
    """[that threads which had a CPU each did not have it all the time]"""
    waited = [row for row in rows if row["threads"] + row["readers"] <= cpus and row.get("ns_per_pair_wall", 0) > WAITED * row.get("ns_per_pair_cpu", 0)]
    if not waited:
        return []
    worst = max(waited, key=lambda row: row["ns_per_pair_wall"] / max(row["ns_per_pair_cpu"], 0.01))
    return [f'{len(waited)} of {len(rows)} rows took more than {WAITED} times as long by the clock as on a CPU, with no more threads than CPUs: something else ran. '
            f'The worst: {worst["subject"]}, {worst["ns_per_pair_wall"]:.1f} ns for {worst["ns_per_pair_cpu"]:.1f} ns of CPU.']


def warnings_of(document):
    return busy_warning(document) + waiting_warning([row for row in document["rows"] if "ns_per_pair_wall" in row], document["host"].get("cpus", 0))


# ------------------------------------------------------------------------------------- endurance

def legend_below(figure, grid, columns=4):
    """One for all axes of `grid`, below them, so that it covers no curve."""
    found = {}
    for axes in grid:
        for handle, name in zip(*axes.get_legend_handles_labels()):
            found.setdefault(name, handle)
    share = (0.24 * -(-len(found) // columns) + 0.15) / figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, share, 1, 1 - share))
    return figure.legend(found.values(), found.keys(), frameon=False, ncols=columns, loc="lower center")


def samples(row):
    """Seconds, resident megabytes, updates so far."""
    taken = next(run["samples"] for run in row["repeats"] if run.get("samples"))
    return ([ms / 1e3 for ms, *_ in taken], [resident / MEGA for _, resident, *_ in taken],
            [done for *_, done in taken])


def rates(seconds, done, window=0.25):
    """Millions of updates a second, window by window."""
    points, last = [], 0
    for i, second in enumerate(seconds):
        if second - seconds[last] >= window:
            rate = (done[i] - done[last]) / (second - seconds[last]) / MEGA
            points.append(((second + seconds[last]) / 2, rate))
            last = i
    return zip(*points) if points else ((), ())


def draw_endurance(rows):
    figure, (memory, speed) = plt.subplots(2, 1, figsize=(10, 7.6), sharex=True,
                                           height_ratios=[2.2, 1], constrained_layout=True)
    used = {}
    for row in rows:
        seconds, resident, done = samples(row)
        style = subject_style(row["subject"], used)
        memory.plot(seconds, resident, label=label(row), **style)
        speed.plot(*rates(seconds, done), **style)
        if row.get("out_of_memory"):
            memory.plot(seconds[-1], resident[-1], "x", color=style["color"], markersize=10,
                        markeredgewidth=3)
    limit = rows[0]["limit"] / MEGA
    memory.axhline(limit, color="#444444", linewidth=1, linestyle=(0, (4, 3)))
    memory.annotate("memory limit", (0, limit), xytext=(4, 4), textcoords="offset points",
                    color="#444444", fontsize=9)
    memory.set(yscale="log", ylabel="resident memory, MB", title="Memory under an update storm")
    speed.set(yscale="log", ylabel="million updates/s", xlabel="seconds",
              title="Updates per second")
    for axes in (memory, speed):
        axes.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        axes.margins(x=0.01)
    memory.set_ylim(top=limit * 1.6)
    legend_below(figure, [memory], 3)
    return figure


def share(part, whole):
    return f"{100 * part / whole:.2f} %" if whole else "–"


def endurance_cells(row):
    counters = row.get("counters", {})
    return {
        "subject": label(row),
        "updates/s": f'{row["pairs_per_second"] / MEGA:.1f} M',
        "ns/update": f'{row["ns_per_pair_wall"]:.1f}',
        "CPU ns": f'{row["ns_per_pair_cpu"]:.1f}',
        "peak resident": f'{row["peak_rss_bytes"] / MEGA:.0f} MB',
        "peak latent": f'{row["latent_peak_bytes"] / MEGA:.1f} MB',
        "hits": share(counters.get("hits", 0), counters.get("allocations", 0)),
        "object-cache churns": str(counters.get("object_cache_churns", "–")),
        "slab churns": str(counters.get("slab_churns", "–")),
        "out of memory": f'after {row["measured_seconds"]:.1f} s' if row["out_of_memory"] else "no",
    }


def endurance_headline(rows):
    """Ours against the others, in one sentence; empty when one of them is missing."""
    ours = next((row for row in rows if row["subject"] == "prudence"), None)
    others = [row for row in rows if not is_ours(row)]
    if not ours or not others:
        return ""
    fastest = max(others, key=lambda row: row["pairs_per_second"])
    least = min(row["peak_rss_bytes"] for row in others)
    times = ours["pairs_per_second"] / fastest["pairs_per_second"]
    return (f'Prudence makes {ours["pairs_per_second"] / MEGA:.0f} million updates a second within '
            f'{ours["peak_rss_bytes"] / MEGA:.0f} MB: {times:.0f} times as many as the fastest of '
            f'the others ({label(fastest)}, {fastest["pairs_per_second"] / MEGA:.1f} million), of '
            f'which none stays under {least / MEGA:.0f} MB.')


ENDURANCE_NOTES = [
    "Each writer replaces the entries of its own list of 64 objects, one after the other, without "
    "a pause; readers traverse all lists. What is live never grows: all that does is garbage that "
    "has not found its way back yet. Both vertical axes are logarithmic.",
    "ns/update is wall time of one writer; CPU ns is the CPU time of the writers and of the "
    "threads that free for them (call_rcu has one), per update. It does not include what is still "
    "waiting to be freed at the end.",
    "Peak resident is the whole process, VmHWM. Peak latent is what was retired and not yet free: "
    "for Prudence its own count, for call_rcu the callbacks not called yet.",
    "Hits are allocations served without the node; an object-cache churn is a pair of a refill and "
    "a flush, a slab churn a pair of a grow and a shrink.",
]


# ----------------------------------------------------------------------------------------- pairs

def setting_of(row):
    return (row["threads"], row["readers"], row["batch"], row.get("live", 0),
            row.get("order", "tight"))


def curves(rows):
    """(subject, and its setting) -> {size: row}, in order of appearance."""
    found = {}
    for row in rows:
        key = (row["subject"], *setting_of(row))
        found.setdefault(key, {})[row["size"]] = row
    return found


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


def count(number, noun):
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def draw_pairs(rows):
    settings = sorted({setting_of(row) for row in rows})
    figure, grid = plt.subplots(len(settings), 1, figsize=(10, 5.2 * len(settings)), squeeze=False,
                                constrained_layout=True)
    used = {}
    for axes, (threads, readers, batch, live, order) in zip(grid[:, 0], settings):
        for (subject, *setting), by_size in curves(rows).items():
            if setting == [threads, readers, batch, live, order]:
                sizes = sorted(by_size)
                axes.plot(sizes, [by_size[size]["ns_per_pair_wall"] for size in sizes], marker="o",
                          markersize=3, label=subject, **subject_style(subject, used))
        axes.set(xscale="log", yscale="log", xlabel="object size, bytes", ylabel="ns per pair",
                 title=f"{count(threads, 'writer')}, {count(readers, 'reader')}, "
                       f"{'one at a time' if batch == 1 else f'batches of {batch}'}"
                       + (f", {order}, {live:,} live" if live else ""))
        axes.set_xticks(sorted({row["size"] for row in rows}))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def pairs_cells(row):
    spread = row["spread"]["ns_per_pair_wall"]
    return {
        "subject": row["subject"], "size": str(row["size"]), "writers": str(row["threads"]),
        "readers": str(row["readers"]), "batch": str(row["batch"]),
        "ns/pair": f'{row["ns_per_pair_wall"]:.2f}',
        "min to max": f'{spread["min"]:.2f} to {spread["max"]:.2f}',
        "CPU ns": f'{row["ns_per_pair_cpu"]:.2f}',
        "peak resident": f'{row["peak_rss_bytes"] / MEGA:.1f} MB',
        "peak latent": f'{row["latent_peak_bytes"] / MEGA:.1f} MB',
        "readers' mode": row.get("reader_mode", "–"),
    }


PAIRS_NOTES = [
    "A pair is one object allocated, touched in one byte, and retired; nanoseconds of one writer. "
    "Plain subjects free at once and have no reader to wait for: they are the floor.",
    "Medians of interleaved runs, each in a fresh process.",
]

KINDS = {
    "endurance": ("Endurance", draw_endurance, endurance_cells, endurance_headline,
                  ENDURANCE_NOTES),
    "pairs": ("Allocate and retire", draw_pairs, pairs_cells, lambda rows: "", PAIRS_NOTES),
}


# ------------------------------------------------------------------------------------------ files

def inline_svg(figure):
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def print_table(cells):
    columns = list(cells[0])
    widths = {name: max(len(name), *(len(row[name]) for row in cells)) for name in columns}
    for row in [{name: name for name in columns}] + cells:
        print("  ".join(row[name].ljust(widths[name]) if name == columns[0]
                        else row[name].rjust(widths[name]) for name in columns))


def write_tables(folder, tables):
    """FOLDER/NAME.csv for each name and its rows, which are dictionaries; what pages and tests read (tests/repo/page_figures.py)."""
    folder.mkdir(exist_ok=True)
    for name, cells in tables.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, cells[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(cells)


def document_arguments(description, *more):
    """Of a report that several documents make, and that may say more. `more`: (option, what argparse takes) of its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--note", action="append", default=[], help="something else that the page says")
    for option, keywords in more:
        parser.add_argument(option, **keywords)
    given = parser.parse_args()
    if not Path(given.files[0]).suffix:
        parser.error(f"{given.files[0]}: FILE needs an ending, as FILE.json has, because its tables go into the folder FILE")
    return given


def markdown_table(cells):
    """The name of the first column is left out."""
    columns = list(cells[0])
    lines = [f"| {' | '.join(['', *columns[1:]])} |", f"|{'---|' * len(columns)}", *(f"| {' | '.join(row.values())} |" for row in cells)]
    return "\n".join(lines) + "\n"


def write_results(docs, name, tables, title, shown):
    """DOCS/results/data/NAME/TABLE.csv for each table; `shown`, if it is among them, becomes the table under `title` in DOCS/results-NAME.md. Without
    that page, or without the table in it, nothing is written."""
    page = docs / f"results-{name}.md"
    parts = re.split(rf"^(## {re.escape(title)}\n(?:(?!## |\|).*\n)*)(?:\|.*\n)+", page.read_text(), flags=re.M)
    if len(parts) != 3:
        raise ValueError(f"{page} has {len(parts) // 2} tables under '{title}'")
    write_tables(docs / "results/data" / name, tables)
    if shown in tables:
        page.write_text(parts[0] + parts[1] + markdown_table(tables[shown]) + parts[2])


def page_template(name):
    return jinja2.Environment(loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True,
                              trim_blocks=True, lstrip_blocks=True,
                              undefined=jinja2.StrictUndefined).get_template(name)


def write_page(path, document, title, headline, svg, sections, notes, versions, warnings=()):
    """`sections`: pairs of a heading and the rows of its table, each a dictionary."""
    path.write_text(page_template("report_page.html").render(
        title=title, headline=headline, picture=svg[svg.index("<svg"):], sections=sections,
        notes=notes, versions=versions, document=document, warnings=warnings))


def write_parts(path, document, **said):
    """A page of several parts, each with pictures, findings and a table (report_parts.html)."""
    path.write_text(page_template("report_parts.html").render(document=document, **said))


def write_pictures(source, figure):
    """FILE.svg and FILE.png beside FILE.json; the text of the first."""
    svg = inline_svg(figure)
    source.with_suffix(".svg").write_text(svg)
    figure.savefig(source.with_suffix(".png"), dpi=140)
    return svg


def say_written(source, document):
    for skipped in document["skipped"]:
        print(f'skipped: {skipped.get("subject") or skipped["program"]}: {skipped["why"]}')
    print("\nwritten:", ", ".join(str(source.with_suffix(suffix))
                                  for suffix in (".html", ".svg", ".png", ".json")))


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    kind, source = sys.argv[1], Path(sys.argv[2])
    document = json.loads(source.read_text())
    rows = measured(document)
    if not rows:
        sys.exit(f"report: {source} has no rows with a result")
    title, draw, cells_of, headline, notes = KINDS[kind]
    cells = [cells_of(row) for row in rows]
    svg = write_pictures(source, draw(rows))
    write_page(source.with_suffix(".html"), document, title, headline(rows), svg,
               [("In numbers", cells)], notes, sorted({version(row) for row in rows}), warnings_of(document))
    for warning in warnings_of(document):
        print(f"report: {warning}", file=sys.stderr)
    if kind == "endurance":
        print_table(cells)
        print("\n" + headline(rows))
    say_written(source, document)


if __name__ == "__main__":
    main()
