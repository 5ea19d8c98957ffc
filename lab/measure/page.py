# SPDX-License-Identifier: MIT
"""Writes a report: a page that stands alone, pictures, tables as CSV, and tables on a page of ours. `Report` remembers the written files."""

import csv
import re
from pathlib import Path

import jinja2

from .command import ROOT
from .pictures import inline_svg, plt

BUSY = 0.1   # CPUs of others, as the programs have it
WAITED = 2   # times its CPU time that a row took by the clock


class Refused(Exception):
    """A file that a report cannot be made of; the text says why."""


def count(number, noun):
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


# ----------------------------------------------------------------------------------------------------------- warnings

def busy_warning(document):
    """[that other programs used the machine], of a document that says so."""
    busy = document.get("others_cpus", 0)
    return [f"The machine was busy: other programs used up to {busy:.1f} CPUs at the same time. Figures are of the order only."] if busy > BUSY else []


def waiting_warning(rows, cpus):
    """[that threads which had a CPU each did not have it all the time]"""
    waited = [row for row in rows if row["threads"] + row["readers"] <= cpus and row.get("ns_per_pair_wall", 0) > WAITED * row.get("ns_per_pair_cpu", 0)]
    if not waited:
        return []
    worst = max(waited, key=lambda row: row["ns_per_pair_wall"] / max(row["ns_per_pair_cpu"], 0.01))
    return [f'{len(waited)} of {len(rows)} rows took more than {WAITED} times as long by the clock as on a CPU, with no more threads than CPUs: something else ran. '
            f'The worst: {worst["subject"]}, {worst["ns_per_pair_wall"]:.1f} ns for {worst["ns_per_pair_cpu"]:.1f} ns of CPU.']


# ------------------------------------------------------------------------------------------------------------- tables
# A table is a list of rows, which are dictionaries with the same keys.

def text_table(cells):
    """For a terminal."""
    columns = list(cells[0])
    widths = {name: max(len(name), *(len(row[name]) for row in cells)) for name in columns}
    return "\n".join("  ".join(row[name].ljust(widths[name]) if name == columns[0] else row[name].rjust(widths[name]) for name in columns)
                     for row in [dict(zip(columns, columns)), *cells])


def markdown(head, rows):
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(map(str, row))} |" for row in rows)]
    return "\n".join(lines) + "\n"


def markdown_table(cells, first=""):
    """`first`: the name of the first column."""
    return markdown([first, *list(cells[0])[1:]], (row.values() for row in cells))


def write_tables(folder, tables):
    """Writes FOLDER/NAME.csv for each name and its rows. tools/check/numbers reads these files."""
    folder.mkdir(exist_ok=True)
    for name, cells in tables.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, cells[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(cells)


def grouped(cells):
    """Without first cells that are as in the row above."""
    first, above = next(iter(cells[0])), [{}, *cells]
    return [row | {first: "" if before and row[first] == before[first] else row[first]} for before, row in zip(above, cells)]


def verdicts(findings):
    """Without figures, which the CSV file has."""
    return [{title: cell for title, cell in row.items() if title != "here"} for row in findings]


def around_table(page, title):
    """The text of a page before and after the table under `title`."""
    try:
        parts = re.split(rf"^(## {re.escape(title)}\n(?:(?!## |\|).*\n)*)(?:\|.*\n)+", page.read_text(), flags=re.M)
    except OSError as error:
        raise Refused(f"--into {page.parent}: {error}") from error
    if len(parts) != 3:
        raise Refused(f"--into {page.parent}: {page} has {len(parts) // 2} tables under '{title}'")
    return parts[0] + parts[1], parts[2]


def write_results(docs, name, tables, title, shown, arrange=list):
    """DOCS/results/data/NAME/TABLE.csv for each table; `shown`, if it is among them, becomes the table under `title` in DOCS/results-NAME.md, its rows
    as `arrange` returns them. Without that page, or without the table in it, nothing is written."""
    page = docs / f"results-{name}.md"
    before, after = around_table(page, title)
    write_tables(docs / "results/data" / name, tables)
    if shown in tables:
        page.write_text(before + markdown_table(arrange(tables[shown])) + after)


# -------------------------------------------------------------------------------------------------------------- pages

def render(name, **said):
    folders = Path(__file__).parent, ROOT / "programs/common"
    return jinja2.Environment(loader=jinja2.FileSystemLoader(folders), autoescape=True, trim_blocks=True, lstrip_blocks=True,
                              undefined=jinja2.StrictUndefined).get_template(name).render(**said)


class Report:
    """The report of FILE.json, and of further files that are taken together with it: FILE.html, FILE.svg, FILE.png and FILE/TABLE.csv in the
    same folder."""

    def __init__(self, source, note=(), into=None, images=None):
        self.source, self.note, self.into, self.images = source, list(note), into, images
        self.written, self.skipped = [], []

    def place(self, suffix, name=""):
        self.written.append(self.source.with_name(self.source.stem + name + suffix))
        return self.written[-1]

    def picture(self, figure, name="", dpi=140):
        """FILE-NAME.svg and .png; the first as text for a page."""
        svg = inline_svg(figure)
        self.place(".svg", name).write_text(svg)
        figure.savefig(self.place(".png", name), dpi=dpi)
        plt.close(figure)
        return svg[svg.index("<svg"):]

    def page(self, document, title, svg, sections, notes, versions, headline="", warnings=()):
        """`sections`: pairs of a heading and its table."""
        self.skipped = document["skipped"]
        self.place(".html").write_text(render(
            "page.html", title=title, headline=headline, picture=svg, sections=sections, notes=self.note + notes, versions=versions,
            document=document, warnings=warnings))

    def parts(self, document, notes, **said):
        """A page of several parts, each with pictures, findings and a table."""
        self.skipped = document["skipped"]
        self.place(".html").write_text(render("parts.html", document=document, notes=self.note + notes, **said))

    def tables(self, tables):
        write_tables(self.source.with_suffix(""), tables)
        self.written.append(self.source.with_suffix("") / "*.csv")
