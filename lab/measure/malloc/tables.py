# SPDX-License-Identifier: MIT
"""Tables of prudence-bench malloc: programs of other people by the baseline, memory that is kept, and huge pages.

A ratio has the 95 % interval of verdict.py, another figure the least and the most of the rounds. A program that was not run has a row without figures, so
that it is missed."""

import numpy

from ..verdict import spread
from . import verdict

FIGURES = {"CPU": "cpu", "peak": "peak_rss", "CPU × peak": "cpu_x_peak_rss"}
GROUPS = {"tuned": "tuned/", "apart": "apart/", "all": ""}  # prefixes of names
NONE = "–"

# ------------------------------------------------------------------------------------ programs of other people


def means(programs, subjects, figures):
    """{(subject, column): (mean, low, high)} of programs as verdict.complete returns them."""
    found, rng = {}, numpy.random.default_rng(1)
    for column, name in figures.items():
        exact, drawn = verdict.geometric_means([verdict.values(by_subject, subjects, verdict.FIGURES[name]) for by_subject in programs], rng)
        low, high = numpy.percentile(drawn, [2.5, 97.5], axis=1)
        found |= {(subject, column): (float(exact[i]), float(low[i]), float(high[i])) for i, subject in enumerate(subjects)}
    return found


def row(name, version, found, subjects, rounds):
    cells = {f"{subject}, {column}": "{:.3f} [{:.3f}, {:.3f}]".format(*found[subject, column]) if found else NONE
             for subject in subjects[1:] for column in FIGURES}
    return {"program": name, **cells, "rounds": rounds, "version": version}


def listed(document):
    """(rows of the table, {group: its means}) of a document of prudence-bench malloc."""
    subjects = [one["name"] for one in document["allocators"]]
    programs = verdict.complete(document["rows"], subjects)
    rounds = {name: min(len(one["repeats"]) for one in by_subject.values()) for name, by_subject in programs.items()}
    rows = [row(one["name"], one["version"], means([programs[one["name"]]], subjects, FIGURES) if one["name"] in programs else None, subjects,
                rounds.get(one["name"], 0)) for one in document["programs"]]
    rows += [row(one["program"], one["why"], None, subjects, 0) for one in document["skipped"] if "program" in one]
    groups = {}
    for group, prefix in GROUPS.items():
        members = [name for name in programs if name.startswith(prefix)]
        if members:
            groups[group] = means([programs[name] for name in members], subjects, FIGURES)
            rows.append(row(f"geometric mean, {group}: {len(members)}", NONE, groups[group], subjects, min(rounds[name] for name in members)))
    return rows, groups


# ------------------------------------------------------------------------------------ memory that is kept

COSTS = {"CPU, s": lambda run: run["cpu_seconds"], "wall, s": lambda run: run["wall_seconds"], "peak, MB": lambda run: run["peak_rss_bytes"] / 1e6,
         "page faults": lambda run: run["minor_faults"]}


def kept(document):
    """A row for each figure of each program, those of the pattern itself first."""
    subjects, found = [one["name"] for one in document["allocators"]], {}
    for one in document["rows"]:
        found.setdefault(one["program"], {})[one["subject"]] = one
    rows = [{"program": program, "figure": title, **{subject: cell(by_subject, subject, figure) for subject in subjects},
             "rounds": min(len(one["repeats"]) for one in by_subject.values())}
            for program, by_subject in found.items() for title, figure in (own_figures(by_subject) | COSTS).items()]
    return rows + [{"program": one["program"], "figure": one["why"], **dict.fromkeys(subjects, NONE), "rounds": 0}
                   for one in document["skipped"] if "program" in one]


def own_figures(by_subject):
    names = dict.fromkeys(name for one in by_subject.values() for run in one["repeats"] for name in run.get("figures", {}))
    return {name: lambda run, name=name: run.get("figures", {}).get(name) for name in names}


def cell(by_subject, subject, figure):
    """The median, with the least and the most; a run that failed has none."""
    one = by_subject.get(subject, {"failed": ""})
    values = [] if "failed" in one else [value for run in one["repeats"] if (value := figure(run)) is not None]
    return spread(values, lambda value: f"{value:.4g}" if value < 1000 else f"{value:,.0f}") if values else NONE


HUGE_PAGES = {"CPU": "cpu", "wall": "wall", "peak": "peak_rss", "page faults": "minor_faults"}


def huge_pages(document):
    """A row for each way in which the system gives huge pages, and each allocator: geometric means over patterns, by the baseline's without any."""
    subjects, sides = [one["name"] for one in document["allocators"]], {}
    modes = list(dict.fromkeys(one["program"].partition("/")[0] for one in document["rows"]))
    keys = [(mode, subject) for mode in modes for subject in subjects]
    for one in document["rows"]:
        mode, _, pattern = one["program"].partition("/")
        if "failed" not in one:
            sides.setdefault(pattern, {})[mode, one["subject"]] = one
    patterns = [found for found in sides.values() if all(key in found for key in keys)]
    if not patterns:
        return []
    rounds, figures = min(len(one["repeats"]) for found in patterns for one in found.values()), means(patterns, keys, HUGE_PAGES)
    return [{"system": mode, "allocator": subject, **{title: "{:.3f} [{:.3f}, {:.3f}]".format(*figures[(mode, subject), title]) for title in HUGE_PAGES},
             "patterns": len(patterns), "rounds": rounds} for mode, subject in keys]
