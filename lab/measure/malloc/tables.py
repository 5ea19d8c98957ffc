# SPDX-License-Identifier: MIT
"""Tables with a row for each program: the figures of each allocator by those of the baseline, and their geometric means over groups of programs.

A cell is a median with the 95 % interval of verdict.py. A program that an allocator did not run has a row without figures, so that it is missed."""

import numpy

from . import verdict

FIGURES = {"CPU": "cpu", "peak": "peak_rss", "CPU × peak": "cpu_x_peak_rss"}
GROUPS = {"tuned": "tuned/", "apart": "apart/", "all": ""}  # prefixes of names
NONE = "–"


def means(programs, subjects):
    """{(subject, column): (mean, low, high)} of programs as verdict.complete returns them."""
    found, rng = {}, numpy.random.default_rng(1)
    for column, name in FIGURES.items():
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
    rows = [row(one["name"], one["version"], means([programs[one["name"]]], subjects) if one["name"] in programs else None, subjects,
                rounds.get(one["name"], 0)) for one in document["programs"]]
    rows += [row(one["program"], one["why"], None, subjects, 0) for one in document["skipped"] if "program" in one]
    groups = {}
    for group, prefix in GROUPS.items():
        members = [name for name in programs if name.startswith(prefix)]
        if members:
            groups[group] = means([programs[name] for name in members], subjects)
            rows.append(row(f"geometric mean, {group}: {len(members)}", NONE, groups[group], subjects, min(rounds[name] for name in members)))
    return rows, groups
