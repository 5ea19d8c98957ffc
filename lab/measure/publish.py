# SPDX-License-Identifier: MIT
"""Measures all parts of the published results on one state of the sources and one machine, in steps that are kept.

A part is some commands. They measure, and write tables into the folder of this state. A part counts if all of them succeed, the sources did
not change, and other programs left the machine alone. The next call makes those that are still missing. `--into` copies the tables to the
pages, with one that says of each part when, where and of which sources it was measured."""

import dataclasses
import math
import os
import shutil
import subprocess
from pathlib import Path

from . import keep, losses, summary
from .arguments import Parser
from .command import ROOT, Progress, commit, now, processor
from .page import BUSY, Refused, around_table, markdown_table, write_tables

MEASURED = ("src", "include")  # a change of these makes another state
OF_SEVERAL_PARTS = ("classic.csv", "targets.csv")  # published with the last part only, because rows of missing parts would be lost


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    minutes: float  # on two CPUs
    commands: tuple  # {report} is the folder of this state, {docs} that of the pages
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
    of_bench("malloc", 90, "malloc", "public"),
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
    parser = Parser("publish", "Measures the published tables, all on one state of src and include, and on one machine. Parts that are finished are kept, "
                    "and the next call goes on. The machine should do nothing else: a part during which other programs ran does not count.")
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
    changed = said_by_git("status", "--porcelain", "--", *MEASURED).split("\n")[0]
    if changed:
        raise Refused(f"not committed: {changed.strip()}")
    return {"sources": " ".join(said_by_git("rev-parse", f"HEAD:{folder}")[:12] for folder in MEASURED), "processor": processor(), "CPUs": os.cpu_count(),
            "Linux": os.uname().release}


class Measurement:
    def __init__(self, found, docs, others):
        self.found, self.docs, self.others = found, docs, others
        self.folder = ROOT / "build/report/publish" / found["sources"].replace(" ", "-")

    def words(self, command):
        return [word.format(report=self.folder, docs=self.docs) for word in command]

    def run(self, part):
        self.folder.mkdir(parents=True, exist_ok=True)
        for command in part.commands:
            words = self.words(command)
            status, said = keep.run_session(words, {**os.environ, "PRUDENCE_BENCH_REPORT": str(self.folder)}, ROOT)
            if status != 0:
                return {"failed": f"{' '.join(words)}: status {status}\n" + "\n".join(said.splitlines()[-5:])}
        return {"date": now()[:10], "commit": commit(), **self.compared(part), "tables": sorted(file.name for place, _ in part.tables for file in (self.folder / place).glob("*.csv"))}

    def compared(self, part):
        """The versions of all that `lab/run/all` compared in this part, and the names of subjects and programs that it left out."""
        results = summary.Results(self.folder)
        names = [name for command in part.commands if "lab/run/all" in command for name in command[command.index("lab/run/all") + 1:]]
        results.parts = {name: document for name, document in results.parts.items() if name in names}
        skipped = {one.get("subject") or one["program"] for document in results.parts.values() for one in document.get("skipped", ())}
        return {"versions": summary.versions(results), "left out": sorted(skipped)}

    def task(self, part):
        return keep.Task(part.name, part.name, part.name, {**self.found, "commands": [list(command) for command in part.commands]},
                         lambda: self.run(part), part.minutes * 60, math.inf if part.counts else self.others)

    def kept(self, part):
        task = self.task(part)
        return keep.kept(self.folder / "parts" / f"{part.name}.json", task.identity)


def row(part, run, found):
    return {"part": part.name, "date": run["date"], "commit": run["commit"], "processor": found["processor"], "CPUs": found["CPUs"],
            "Linux": found["Linux"], "others' CPUs": f'{run["others_cpus"]:.2f}', "minutes": f'{run["seconds"] / 60:.0f}',
            "left out": ", ".join(run["left out"]) or "–"}


def publish(measurement, docs):
    """Copies tables of finished parts, and writes the conditions of each, and the losses of all tables."""
    finished = [(part, run) for part in PARTS if (run := measurement.kept(part))]
    for part, _ in finished:
        for place, name in part.tables:
            for file in (measurement.folder / place).glob("*.csv"):
                if file.name not in OF_SEVERAL_PARTS or len(finished) == len(PARTS):
                    shutil.copy(file, docs / "results/data" / name)
    rows = [row(part, run, measurement.found) for part, run in finished]
    if rows:
        before, after = around_table(docs / "results.md", "Measured together")
        write_tables(docs / "results/data", {"published": [line | {"versions": run["versions"] or "–"} for line, (_, run) in zip(rows, finished)]})
        (docs / "results.md").write_text(before + markdown_table(rows, "part") + after)
        losses.write(docs)
    return len(rows)


def within(parts, hours, kept):
    """Parts that are missing and can end in that time, in turn."""
    left, found = hours * 60, []
    for part in parts:
        if not kept(part) and part.minutes <= left:
            left -= part.minutes
            found.append(part)
    return found


def main(words, build):
    parser, given = arguments_of(words)
    try:
        measurement = Measurement(state(), given.into or ROOT / "docs", given.others)
        parts = [part for part in PARTS if part.name in given.part]
        if given.list:
            for part in parts:
                run = measurement.kept(part)
                print(f"{part.name:<12} {part.minutes:>4} minutes   {'measured on ' + run['date'] if run else 'missing'}")
            return 0
        subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL)
        tasks = [measurement.task(part) for part in within(parts, given.hours, measurement.kept)]
        failed = keep.run_all("publish", tasks, measurement.folder / "parts")[1]
        if given.into:
            print(f"{publish(measurement, given.into)} parts are in {given.into}")
    except (Refused, subprocess.CalledProcessError) as why:
        parser.error(str(why))
    missing = [part.name for part in parts if not measurement.kept(part)]
    Progress("publish").say("missing: " + ", ".join(missing) if missing else "all parts are measured")
    return 1 if failed else 0
