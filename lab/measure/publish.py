# SPDX-License-Identifier: MIT
"""Measures all parts of the published results on one state of the sources, each part on one machine, in steps that are kept.

A part is some commands. They measure, and write tables into the folder of this state. A part counts if all of them succeed, the sources did
not change, and other programs left the machine alone. The next call makes those that are still missing. `--into` copies the tables to the
pages, with one that says of each part when, where and of which sources it was measured. Another machine that has these pages goes on with
the parts that are missing there."""

import csv
import dataclasses
import hashlib
import math
import os
import shutil
import subprocess
from pathlib import Path

from . import keep, losses, summary
from .arguments import Parser
from .command import ROOT, Progress, commit, now, processor
from .page import BUSY, Refused, around_table, markdown_table, write_tables

MEASURED = ("src", "include")  # a change of a file there, but no page, makes another state
OF_SEVERAL_PARTS = {"classic.csv": "scenario", "targets.csv": "part"}  # and the column that says which


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    minutes: float  # on two CPUs
    commands: tuple  # {report} is the folder of this part in this state, {docs} that of the pages
    tables: tuple = ()  # (folder below {report}, folder below {docs}/results/data), whose CSV files are copied
    counts: bool = False  # its figures are counts, which other programs do not change


def of_bench(name, minutes, *parts):
    return Part(name, minutes, (("lab/run/all", *parts),), (("summary", "bench"),))


PARTS = (
    of_bench("readers", 5, "readers", "reading", "stall"),
    of_bench("pairs", 70, "pairs", "batches", "floors"),
    of_bench("replace", 60, "replace", "alignment", "limit"),
    of_bench("crowd", 60, "crowd"),
    of_bench("endurance", 30, "endurance", "latency", "demand", "recycle", "destroy"),
    of_bench("rcu", 60, "rcu", "storm"),
    of_bench("malloc", 60, "malloc"),
    of_bench("public", 50, "public"),
    of_bench("listed", 20, "listed"),
    of_bench("memory", 75, "memory", "huge-pages"),
    of_bench("growth", 30, "growth"),
    Part("structures", 10, (("env", "PRUDENCE_BENCH_QUICK=1", "lab/run/all", "structures"),), (("structures", "structures"),)),
    Part("variants", 60, (("lab/run/all", "variants", "variants-call", "variants-paced", "variants-storm"),
                          ("lab/run/report", "{report}/variants.json", "{report}/variants-call.json", "{report}/variants-paced.json",
                           "{report}/variants-storm.json", "--into", "{docs}"))),
    Part("evaluate", 15, (("lab/reproduce/evaluate", "--quick", "--folder", "{report}/evaluate-quick"),
                          ("lab/run/report", "{report}/evaluate-quick.json", "--into", "{docs}"))),
    Part("acdc", 40, (("lab/reproduce/bench-acdc", "--json", "{report}/acdc.json"),
                      ("lab/run/report", "{report}/acdc.json", "--images", "{docs}/images")), (("acdc", "acdc"),)),
    Part("crates", 30, (("lab/run/crates", "--again", "--into", "{docs}"),)),
    Part("misses", 3, (("lab/run/count-misses",),), counts=True),
)


def arguments_of(words):
    parser = Parser("publish", "Measures the published tables, all on one state of src and include, and each part on one machine. Parts that are finished are "
                    "kept, and the next call goes on; those of another machine count if the pages have them, with the same sources. The machine should do "
                    "nothing else: a part during which other programs ran does not count.")
    parser.add_names("--part", [part.name for part in PARTS], "only these (see --list)")
    parser.add_number("--hours", 0.01, 1000, "begin no part that would not end by then (2)", float, 2.0)
    parser.add_number("--others", 0.0, 1000, f"CPUs that other programs may use meanwhile ({BUSY})", float, BUSY)
    parser.add_argument("--list", action="store_true", help="list parts, with their minutes and dates, and end")
    parser.add_argument("--into", type=Path, metavar="DOCS", help="copy the tables of finished parts to this folder docs")
    return parser, parser.parse_args(words)


def said_by_git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def state():
    """What all parts have in common: the sources and the machine. Refuses sources that no commit has."""
    changed = said_by_git("status", "--porcelain", "--", *MEASURED, ":!*.md").split("\n")[0]
    if changed:
        raise Refused(f"not committed: {changed.strip()}")
    files = "".join(said_by_git("ls-tree", "-r", "HEAD", folder) for folder in MEASURED)
    sources = hashlib.sha256("".join(line for line in files.splitlines(True) if not line.endswith(".md\n")).encode()).hexdigest()
    return {"sources": sources[:12], "processor": processor(), "CPUs": os.cpu_count(), "Linux": os.uname().release}


def compared(report):
    """The versions of all that `lab/run/all` compared, and the names of subjects and programs that it left out."""
    results = summary.Results(report)
    skipped = {one.get("subject") or one["program"] for document in results.parts.values() for one in document.get("skipped", ())}
    return {"versions": summary.versions(results), "left out": sorted(skipped)}


class Measurement:
    def __init__(self, found, docs, others):
        self.found, self.docs, self.others = found, docs, others
        self.folder = ROOT / "build/report/publish" / found["sources"]

    def run(self, part):
        report = self.folder / part.name
        report.mkdir(parents=True, exist_ok=True)
        for command in part.commands:
            words = [word.format(report=report, docs=self.docs) for word in command]
            status, said = keep.run_session(words, {**os.environ, "PRUDENCE_BENCH_REPORT": str(report)}, ROOT)
            if status != 0:
                return {"failed": f"{' '.join(words)}: status {status}\n" + "\n".join(said.splitlines()[-5:])}
        return {"date": now()[:10], "commit": commit(), **compared(report)}

    def task(self, part):
        return keep.Task(part.name, part.name, part.name, {**self.found, "commands": [list(command) for command in part.commands]},
                         lambda: self.run(part), part.minutes * 60, math.inf if part.counts else self.others)

    def kept(self, part):
        task = self.task(part)
        return keep.kept(self.folder / "parts" / f"{part.name}.json", task.identity)

    def said(self, part):
        """When it was measured, or nothing: another machine's part is on the pages, with the same sources."""
        if run := self.kept(part):
            return f"measured on {run['date']}"
        line = elsewhere(self.docs, self.found["sources"]).get(part.name)
        return line and f"on the pages, measured on {line['date']}"


def measured_names(part):
    """What of `lab/run/all` it measures."""
    return {name for command in part.commands if "lab/run/all" in command for name in command[command.index("lab/run/all") + 1:]}


def row(part, run, found):
    return {"part": part.name, "date": run["date"], "commit": run["commit"], "processor": found["processor"], "CPUs": found["CPUs"],
            "Linux": found["Linux"], "others' CPUs": f'{run["others_cpus"]:.2f}', "minutes": f'{run["seconds"] / 60:.0f}',
            "left out": ", ".join(run["left out"]) or "–"}


def rows_of(file):
    with file.open(newline="") as table:
        return list(csv.DictReader(table))


def elsewhere(docs, sources):
    """The rows of parts that were measured on these sources and are on the pages, by name: as a rule by another machine."""
    place = docs / "results/data/published.csv"
    return {line["part"]: line for line in rows_of(place) if line.get("sources") == sources} if place.exists() else {}


def add_rows(file, place, column, parts):
    """Copies a table of several parts, with the rows that `place` has of others of these parts."""
    fresh = rows_of(file)
    others = parts - {line[column] for line in fresh}
    kept = [line for line in (rows_of(place) if place.exists() else ()) if line.get(column) in others]
    write_tables(place.parent, {place.stem: fresh + kept})


def publish(measurement, docs):
    """Copies tables of finished parts, and writes the conditions of each, and the losses of all tables."""
    sources = measurement.found["sources"]
    here = {part.name: row(part, run, measurement.found) | {"versions": run["versions"] or "–", "sources": sources}
            for part in PARTS if (run := measurement.kept(part))}
    lines = elsewhere(docs, sources) | here
    published = [part for part in PARTS if part.name in lines]
    rows, names = [lines[part.name] for part in published], {name for part in published for name in measured_names(part)}
    for part in published:
        for place, name in part.tables if part.name in here else ():
            for file in (measurement.folder / part.name / place).glob("*.csv"):
                if file.name in OF_SEVERAL_PARTS:
                    add_rows(file, docs / "results/data" / name / file.name, OF_SEVERAL_PARTS[file.name], names)
                else:
                    shutil.copy(file, docs / "results/data" / name)
    if here:
        before, after = around_table(docs / "results.md", "Measured together")
        write_tables(docs / "results/data", {"published": rows})
        shown = [{name: line[name] for name in line if name not in ("versions", "sources")} for line in rows]
        (docs / "results.md").write_text(before + markdown_table(shown, "part") + after)
        losses.write(docs)
    return len(rows)


def within(missing, hours):
    """Those that can end in that time, in turn."""
    left, found = hours * 60, []
    for part in missing:
        if part.minutes <= left:
            left -= part.minutes
            found.append(part)
    return found


def main(words, build):
    parser, given = arguments_of(words)
    docs = given.into or ROOT / "docs"
    try:
        measurement = Measurement(state(), docs, given.others)
        parts = [part for part in PARTS if part.name in given.part]
        if given.list:
            for part in parts:
                print(f"{part.name:<12} {part.minutes:>4} minutes   {measurement.said(part) or 'missing'}")
            return 0
        subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL)
        tasks = [measurement.task(part) for part in within([part for part in parts if not measurement.said(part)], given.hours)]
        failed = keep.run_all("publish", tasks, measurement.folder / "parts")[1]
        if given.into:
            print(f"{publish(measurement, docs)} parts are in {docs}")
    except (Refused, subprocess.CalledProcessError) as why:
        parser.error(str(why))
    missing = [part.name for part in parts if not measurement.said(part)]
    Progress("publish").say("missing: " + ", ".join(missing) if missing else "all parts are measured")
    return 1 if failed else 0
