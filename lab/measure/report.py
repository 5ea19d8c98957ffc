# SPDX-License-Identifier: MIT
"""lab/run/report: finds out which measurement a file is of, and has that make its page, pictures and tables.

Each measurement has a function report(documents, made), which returns its summary in a sentence or two."""

import argparse
import importlib
import json
import sys
from pathlib import Path

from .command import ROOT
from .page import Refused, Report

sys.path.append(str(ROOT / "lab/reproduce"))  # whose experiments have pages, too

# Reports by "program", "scenario", or the scenario of the rows.
PAGES = {"evaluate": "experiments.evaluate.page", "kernel-evaluate": "experiments.kernel_evaluate.page", "acdc": "experiments.acdc.page",
         "prudence-variants": "experiments.variants.page", "bench-structures": "measure.structures.page",
         "prudence-structures": "measure.structures.page", "malloc": "measure.malloc.page", "growth": "measure.growth",
         "endurance": "measure.bench", "pairs": "measure.bench"}
MORE_FILES = ("measure.structures.page", "experiments.variants.page", "experiments.kernel_evaluate.page")  # that are taken together


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="report", formatter_class=argparse.RawDescriptionHelpFormatter, description="""\
Pictures, tables and verdicts of a measurement.

  report FILE.json...              .html in the folder of the first FILE, a page that stands alone; .svg and .png; FILE/TABLE.csv.
                                   Of prudence-bench (endurance, pairs, malloc, variants), lab/run/growth,
                                   lab/run/structures, and the programs of lab/reproduce/. Files of structures, of variants and of
                                   kernel-evaluate are taken together; they should be of one machine.
  report DIRECTORY                 the summary of lab/run/all, as Markdown, and DIRECTORY/summary/TABLE.csv
  report FILE.lines                of tools/kernel/bench likewise, of tools/kernel/rfc as Markdown and CSV
  report SLUB.out PRUDENCE.out     of tools/kernel/tree figures, as Markdown""")
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path)
    parser.add_argument("--note", action="append", default=[], help="something else that the page says")
    parser.add_argument("--into", metavar="DOCS", type=Path,
                        help="replace the tables in this folder docs by the measured ones of evaluate or variants; the text stays")
    parser.add_argument("--images", metavar="FOLDER", type=Path, help="write the picture of each experiment of bench-acdc as a PNG into FOLDER")
    given = parser.parse_args(arguments)
    if given.files[0].is_file() and not given.files[0].suffix:
        parser.error(f"{given.files[0]}: FILE needs an ending, as FILE.json has, because its tables go into the folder FILE")
    if given.images and not given.images.is_dir():
        parser.error(f"{given.images} is not a folder")
    return given


def page_of(document):
    """The module that makes its report, or None."""
    if not isinstance(document, dict) or not (document.get("rows") or document.get("runs")):
        return None
    kinds = [document.get("program"), document.get("scenario"), *(row.get("scenario") for row in document.get("rows", ()) if isinstance(row, dict))]
    return next((PAGES[kind] for kind in kinds if kind in PAGES), None)


def of_documents(given, made):
    documents = [json.loads(file.read_text()) for file in given.files]
    pages = [page_of(document) for document in documents]
    for file, page in zip(given.files, pages):
        if page is None:
            raise Refused(f"{file} has no rows or runs of a measurement that there is a report of")
        if page != pages[0] or (len(pages) > 1 and page not in MORE_FILES):
            raise Refused(f"{file} is not taken together with {given.files[0]}")
    return importlib.import_module(pages[0]).report(documents, made)


def of_lines(file, made):
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    if not rows:
        raise Refused(f"{file} has no results")
    return importlib.import_module("measure.kernel_rfc" if "side" in rows[0] else "measure.kernel").report(rows, made)


def main(arguments, _=None):
    given = parse_arguments(arguments)
    first = given.files[0]
    made = Report(first, given.note, given.into, given.images)
    try:
        if first.is_dir():
            said = importlib.import_module("measure.summary").report(first)
        elif first.suffix == ".out":
            said = importlib.import_module("measure.kernel_tree").report(given.files)
        else:
            said = of_lines(first, made) if first.suffix == ".lines" else of_documents(given, made)
    except (Refused, OSError, json.JSONDecodeError) as why:
        sys.exit(f"report: {why}")
    if said:
        print(said)
    for skipped in made.skipped:
        print(f'skipped: {skipped.get("subject") or skipped["program"]}: {skipped["why"]}', file=sys.stderr)
    if made.written:
        print("written:", ", ".join(map(str, made.written)), file=sys.stderr)
    return 0
