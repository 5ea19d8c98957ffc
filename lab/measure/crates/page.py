# SPDX-License-Identifier: MIT
"""The table of crates before and after, in docs/how-to/rust.md, and its data, docs/results/data/crates/crates.csv."""

import csv
import io
import re
import statistics

from . import plan

PAGE, DATA = "how-to/rust.md", "results/data/crates/crates.csv"
COLUMNS = ("crate", "own tests that pass", "CPU ns an operation", "million operations a second", "peak MB", "peak MB with a pinned guard",
           "values dropped with it")
OTHERS = {"allocator-api2": "our adapter", "seize": "its own on ours", "crossbeam-epoch": "its own on ours"}
TABLE = re.compile(r"^\| crate \| own tests.*\n(?:\|.*\n)+", re.M)
PLACE = re.compile(rf"(?:{TABLE.pattern}\n)?^Measured by .*\n", re.M)


def sides(document, workload, field, best, form):
    """'before → after' of a workload."""
    found = {side: [run[field] for run in document["runs"] if (run["workload"], run["side"]) == (workload, side)] for side in plan.SIDES}
    return " → ".join(form(best(found[side])) for side in plan.SIDES) if all(found.values()) else ""


def of_made(document, workload):
    return next((f" of {run['made']:,.0f}" for run in document["runs"] if run["workload"] == workload), "")


def rows(document):
    versions = {one.name: one for one in plan.CRATES}
    for tests in document["tests"]:
        one = versions[tests["crate"]]
        if not one.replaced:
            continue
        peak = "{:.1f}".format
        yield (f"{one.name} {one.version}", f"{tests['passed']} of {tests['tests']}",
               sides(document, one.workload, "cpu_ns", min, "{:.0f}".format),
               sides(document, one.workload, "per_second", lambda values: max(values) / 1e6, "{:.1f}".format),
               sides(document, one.workload, "peak_mb", statistics.median, peak),
               sides(document, f"{one.workload}-pinned", "peak_mb", statistics.median, peak),
               sides(document, f"{one.workload}-dropped", "dropped", min, "{:,.0f}".format) + of_made(document, f"{one.workload}-dropped"))


def table(lines):
    rule = ("---",) * len(COLUMNS)
    return "".join(f"| {' | '.join(line)} |\n" for line in (COLUMNS, rule, *lines))


def text(document):
    """For the terminal."""
    others = "".join(f"crates: {one['crate']}: {one['passed']} of {one['tests']} tests of {OTHERS[one['crate']]} pass\n"
                     for one in document["tests"] if one["crate"] in OTHERS)
    found = list(rows(document))
    return others + (table(found) if found else "")


def read(data):
    """Returns the lines of a table that `put_into` kept."""
    return [tuple(line) for line in csv.reader(io.StringIO(data.read_text()))][1:]


def put_into(document, docs):
    """Replaces the line of the page that says how it was measured, and the table before that line, if there is one, and keeps the data."""
    place, data = docs / PAGE, docs / DATA
    found = list(rows(document))
    data.parent.mkdir(parents=True, exist_ok=True)
    with data.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *found])
    said = (f"Measured by `lab/run/crates --into docs` on {document['date'][:10]} at {document['commit']} ({document['machine']}; "
            f"{document['rustc']}; {document['rounds']} rounds).\n")
    page = place.read_text()
    place.write_text(PLACE.sub(lambda _: f"{table(found)}\n{said}", page))
