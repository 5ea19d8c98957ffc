# SPDX-License-Identifier: MIT
"""The totals of runs: a table, and the page docs/results-soak.md.

The totals that are committed are those of journals, each by its name. So a journal that goes on replaces its own totals, those of
other machines stay, and nothing is counted twice.
"""

import datetime
import json
import re
from pathlib import Path

from . import plan
from .tree import ROOT

PAGE, KEPT = ROOT / "docs/results-soak.md", ROOT / "docs/results-soak.json"
MARK = "<!-- totals -->"
FOUND = ("failed", "hangs")
COUNTS = ("runs", "seconds", "cpu", "operations", "findings", "skipped", "clean")


def nothing(architecture):
    return {"architecture": architecture, **dict.fromkeys(COUNTS, 0), "seed": 0}


def of_runs(runs):
    """Returns totals by program. `clean`: seconds since the last finding. A run that was skipped has done nothing."""
    programs = {}
    for run in runs:
        one = programs.setdefault(run["program"], nothing(run.get("architecture", plan.NATIVE)))
        one["seed"] = max(one["seed"], run["seed"])
        if run["result"] == "skipped":
            one["skipped"] += 1
            continue
        found = run["result"] in FOUND
        one["runs"] += 1
        one["findings"] += found
        one["clean"] = 0 if found else one["clean"] + run["seconds"]
        for name in ("seconds", "cpu", "operations"):
            one[name] += run.get(name) or 0
    return programs


def findings_of(runs):
    return [{name: run.get(name) for name in ("program", "seed", "revision", "begun", "result", "log")} for run in runs if run["result"] in FOUND]


def together(many):
    """Joins the totals of several journals. Clean time ends with the last finding of each."""
    programs = {}
    for totals in many:
        for name, one in totals.items():
            sum_ = programs.setdefault(name, nothing(one["architecture"]))
            for count in COUNTS:
                sum_[count] += one[count]
            sum_["seed"] = max(sum_["seed"], one["seed"])
    return programs


# --------------------------------------------------------------------------------------------- tables

def hours(seconds):
    return f"{seconds / 3600:.2f}"


def merged_builds(programs):
    """{(architecture, program): (its builds, totals)}: one row a program. The part of a name before the slash is the build."""
    rows = {}
    for name, one in programs.items():
        build, _, program = name.partition("/")
        builds, totals = rows.get((one["architecture"], program or name), ([], {}))
        rows[one["architecture"], program or name] = [*builds, build] if program else builds, together([{"": one}, totals])
    return {key: (builds, totals[""]) for key, (builds, totals) in rows.items()}


def rows_of(programs):
    for (architecture, program), (builds, one) in sorted(merged_builds(programs).items()):
        yield (architecture, program, ", ".join(sorted(builds)) or "–", f"{one['runs']:,}", hours(one["seconds"]), hours(one["cpu"]),
               f"{one['operations']:,}" if one["operations"] else "–", str(one["findings"]), str(one["seed"]))


HEAD = ("machine", "program", "builds", "runs", "hours", "CPU hours", "operations", "findings", "last seed")


def table(programs):
    """For a terminal."""
    rows = [HEAD, *rows_of(programs)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def by_architecture(programs):
    sums = {}
    for one in programs.values():
        sum_ = sums.setdefault(one["architecture"], nothing(one["architecture"]))
        for count in COUNTS:
            sum_[count] += one[count]
    return sums


def sentences(programs):
    for architecture, one in sorted(by_architecture(programs).items(), reverse=True):
        yield (f"{architecture}: {hours(one['seconds'])} hours ({hours(one['cpu'])} of CPU time) in {one['runs']:,} runs; {one['findings']} findings; "
               f"{hours(one['clean'])} hours after the last finding of each program")


# ----------------------------------------------------------------------------------------- the page

def load():
    return json.loads(KEPT.read_text()) if KEPT.exists() else {"journals": {}, "notes": {}}


def keep(journal, machine):
    """The totals of this journal take the place of those that it had."""
    kept = load()
    kept["journals"][journal.id] = {"machine": machine, "until": datetime.date.today().isoformat(), "programs": of_runs(journal.runs),
                                    "findings": findings_of(journal.runs)}
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    return kept


def finding_lines(kept):
    found = [(one["begun"], journal, one) for journal, entry in kept["journals"].items() for one in entry["findings"]]
    if not found:
        yield "No run has failed."
        return
    causes = {}
    for begun, _, one in sorted(found, key=lambda entry: entry[0]):
        note = kept["notes"].get(f"{one['program']} {one['seed']} {one['revision']}", "not examined yet")
        causes.setdefault((one["revision"], one["result"], note), []).append((begun, f"{one['program']} {one['seed']}"))
    yield "| first | programs and seeds | revision | result | what it was |"
    yield "|---|---|---|---|---|"
    for (revision, result, note), runs in causes.items():
        yield f"| {runs[0][0]} | {', '.join(run for _, run in runs)} | {revision} | {result} | {note} |"


def lines_of(kept):
    programs = together(entry["programs"] for entry in kept["journals"].values())
    yield from (f"- {sentence}." for sentence in sentences(programs))
    machines = sorted({f"{entry['machine']} (until {entry['until']})" for entry in kept["journals"].values()})
    yield from ["", f"Machines: {'; '.join(machines)}.", "", "## Findings", "", *finding_lines(kept)]


def write_page(kept):
    inside = "\n".join(["", *lines_of(kept), "", ""])
    text, found = re.subn(f"(?<={MARK}\n).*?(?={MARK}\n)", lambda _: inside, Path(PAGE).read_text(), flags=re.S)
    if found != 1:
        raise ValueError(f"{PAGE} has not one part between two lines {MARK}")
    PAGE.write_text(text)
