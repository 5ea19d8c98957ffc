#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The table of other people's programs: figures by the baseline's, means of each group, programs that are missing, and the way into the summary."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "lab"))
from measure import summary  # noqa: E402 (the path comes first)
from measure.malloc import tables  # noqa: E402


def row(program, subject, cpu, peak):
    return {"program": program, "subject": subject, "repeats": [
        {"wall_seconds": 1.0, "cpu_seconds": cpu * noise, "peak_rss_bytes": peak, "minor_faults": 1} for noise in (1, 1, 9)]}


def document(*rows, skipped=()):
    names = list(dict.fromkeys(one["program"] for one in rows))
    return {"host": {"cpu": "a CPU", "cpus": 2, "system": "Linux", "kernel": "6.1", "compiler": "12"}, "date": "2026-01-01T00:00:00Z", "skipped": list(skipped),
            "allocators": [{"name": "glibc", "version": "2.36"}, {"name": "prudence", "version": "1.0"}],
            "programs": [{"name": name, "version": f"{name} 1"} for name in names], "rows": list(rows)}


BOTH = (row("tuned/a", "glibc", 1.0, 100), row("tuned/a", "prudence", 2.0, 50), row("apart/b", "glibc", 1.0, 100), row("apart/b", "prudence", 8.0, 400))


class Listed(unittest.TestCase):
    def cells(self, *rows, **more):
        return {one["program"]: one for one in tables.listed(document(*rows, **more))[0]}

    def test_figures_by_the_baseline_and_means_of_groups(self):
        found = self.cells(*BOTH)
        self.assertEqual(list(found), ["tuned/a", "apart/b", "geometric mean, tuned: 1", "geometric mean, apart: 1", "geometric mean, all: 2"])
        self.assertEqual([found["tuned/a"][f"prudence, {name}"].split()[0] for name in ("CPU", "peak", "CPU × peak")], ["2.000", "0.500", "1.000"])
        self.assertEqual([found["geometric mean, all: 2"][f"prudence, {name}"].split()[0] for name in ("CPU", "peak", "CPU × peak")],
                         ["4.000", "1.414", "5.657"])
        self.assertTrue(all(one["rounds"] == 3 for one in found.values()))

    def test_a_program_without_figures_is_shown_and_in_no_mean(self):
        found = self.cells(*BOTH, row("tuned/c", "glibc", 1.0, 100), {**row("tuned/c", "prudence", 1.0, 100), "failed": "no"},
                           skipped=[{"program": "tuned/d", "why": "d is not installed"}, {"subject": "nomalloc", "why": "gone"}])
        for name, version in (("tuned/c", "tuned/c 1"), ("tuned/d", "d is not installed")):
            self.assertEqual((found[name]["prudence, CPU"], found[name]["rounds"], found[name]["version"]), ("–", 0, version))
        self.assertIn("geometric mean, tuned: 1", found)

    def test_the_way_into_the_summary(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "listed.json").write_text(json.dumps(document(*BOTH)))
            said = summary.report(Path(folder))
            self.assertEqual(len((Path(folder) / "summary/listed.csv").read_text().splitlines()), 6)
        self.assertIn("glibc 2.36, prudence 1.0.", said)
        self.assertIn("CPU at most 1.03 of glibc's | listed | **missed** in 1 of 1 |", said)


if __name__ == "__main__":
    unittest.main()
