#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (it tests reports of measurements; none of it is in the library)
"""lab/run/report of prudence-bench, and lab/run/all: the legend covers no curve, the table is not cut, versions are whole, a busy machine
is named, the summary's tables are CSV files too, and a part that does not exist is refused."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tests/repo")]
import chromium_view  # noqa: E402 (the path comes first)
from measure import bench  # noqa: E402

SUBJECTS = ("prudence", "classic", "urcu+glibc", "urcu+jemalloc", "urcu+mimalloc", "urcu+tcmalloc", "ck-epoch+glibc", "ck-epoch+jemalloc")


def row(subject="prudence", wall=10.0, cpu=9.0):
    ours = subject in ("prudence", "classic")
    name = subject.partition("+")[2] or "glibc"
    return {"scenario": "endurance", "subject": subject, "size": 512, "threads": 2, "readers": 0, "batch": 1, "limit": 1 << 30,
            "versions": {"library": "prudence" if ours else "malloc" if subject.startswith("plain") else "liburcu-memb",
                         "library_version": "" if subject.startswith("plain") else "1.2", "allocator": {"name": name, "version": "3.4"}},
            "ns_per_pair_wall": wall, "ns_per_pair_cpu": cpu, "pairs_per_second": 1e9 / wall, "peak_rss_bytes": 5 << 20, "latent_peak_bytes": 1 << 20,
            "out_of_memory": not ours, "measured_seconds": 1.0,
            "counters": {"hits": 123456789, "allocations": 123456999, "object_cache_churns": 1234567, "slab_churns": 234567} if ours else {},
            "repeats": [{"samples": [[ms, (5 << 20) + (0 if ours else ms << 20), 0, ms * 1000] for ms in range(0, 1000, 10)]}]}


def document(rows, others=0.0):
    return {"program": "prudence-bench", "prudence": "0", "date": "2026-01-01T00:00:00Z", "others_cpus": others, "skipped": [], "rows": rows,
            "host": {"cpu": "x", "cpus": 2, "system": "Linux", "kernel": "6", "libc": "2", "compiler": "12", "huge_pages": "madvise"}}


class Pictures(unittest.TestCase):
    def test_the_legend_covers_no_curve(self):
        figure = bench.draw_endurance([row(subject) for subject in SUBJECTS])
        figure.canvas.draw()
        legend = figure.legends[0].get_window_extent()
        for axes in figure.axes:
            self.assertFalse(legend.overlaps(axes.get_tightbbox(figure.canvas.get_renderer())), axes.get_title())
        self.assertEqual(len(figure.legends[0].get_texts()), len(SUBJECTS))


class Versions(unittest.TestCase):
    def test_plain_malloc_has_no_library(self):
        self.assertEqual(bench.version(row("plain+jemalloc")), "jemalloc 3.4")
        self.assertEqual(bench.version(row("urcu+jemalloc")), "liburcu-memb 1.2, jemalloc 3.4")
        self.assertEqual(bench.version(row()), "prudence 1.2")


class Warnings(unittest.TestCase):
    def test_others(self):
        self.assertIn("up to 0.8 CPUs", bench.warnings_of(document([row()], 0.8))[0])
        self.assertEqual(bench.warnings_of(document([row()], 0.05)), [])

    def test_wall_time_without_cpu_time(self):
        said = bench.warnings_of(document([row(), row("classic", 204.0, 9.6)]))
        self.assertEqual(len(said), 1)
        self.assertIn("1 of 2 rows", said[0])
        self.assertIn("classic, 204.0 ns for 9.6 ns of CPU", said[0])

    def test_more_threads_than_cpus_wait_anyway(self):
        waiting = row(wall=204.0, cpu=9.6) | {"threads": 4}
        self.assertEqual(bench.warnings_of(document([waiting])), [])

    def test_prudence_bench_says_what_others_used(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "pairs.json"
            subprocess.run([BUILD / "bin/prudence-bench", "pairs", "--pairs", "1000", "--subject", "prudence", "--json", file], check=True,
                           capture_output=True, timeout=100)
            self.assertGreaterEqual(json.loads(file.read_text())["others_cpus"], 0)


class Page(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = Path(folder.name) / "endurance.json"
        file.write_text(json.dumps(document([row(subject) for subject in SUBJECTS], 0.8)))
        done = subprocess.run([ROOT / "lab/run/report", file], check=True, capture_output=True, text=True, timeout=100)
        self.page, self.said = file.with_suffix(".html"), done.stderr

    def test_warns_and_is_not_cut_at_1200_pixels(self):
        self.assertIn("The machine was busy", self.said)
        self.assertIn('class="warning">The machine was busy', self.page.read_text())
        found = chromium_view.layout(self.page)
        self.assertEqual((found["cut"], found["empty"], found["pictures"]), ([], 0, 1))
        self.assertLessEqual(found["wide"], 1200)
        # A table that is cut would be seen.
        self.page.write_text(self.page.read_text().replace("th, td {", "th, td { white-space: nowrap; min-width: 9rem;"))
        self.assertTrue(chromium_view.layout(self.page)["cut"])


class Summary(unittest.TestCase):
    def test_a_part_is_a_table_of_the_page_and_a_csv(self):
        repeats = [{}] * 3
        readers = [row(subject, wall) | {"threads": 0, "reader_mode": mode, "repeats": repeats} for subject, wall, mode in
                   (("prudence-free", 0.97, "fence-free"), ("urcu+glibc", 1.03, "–"), ("prudence-fenced", 51.0, "fenced"), ("urcu-mb+glibc", 50.0, "–"))]
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "readers.json").write_text(json.dumps(document(readers)))
            page = subprocess.run([ROOT / "lab/run/report", folder], check=True, capture_output=True, text=True, timeout=100).stdout
            tables = {path.stem: path.read_text() for path in Path(folder, "summary").iterdir()}
        self.assertEqual(set(tables), {"targets", "readers"})
        self.assertIn("## Reader lock + unlock, ns\n\n| writers | subject | mode | ns |\n|---|---|---|---|\n| 0 | prudence-free | fence-free | 0.97 |\n", page)
        self.assertIn("writers,subject,mode,ns\n0,prudence-free,fence-free,0.97\n", tables["readers"])
        self.assertIn("fenced than mb | readers | **missed** in 1 of 2 | 3 |", page)
        self.assertIn("missed in 1 of 2,3\n", tables["targets"])
        self.assertNotIn("storm", page)  # a part that was not measured has no target

    def test_ways_to_read_are_of_three_parts(self):
        def pair(readers, cpu):
            return row("hazard", cpu=cpu) | {"threads": 1, "readers": readers}

        parts = {"reading": [pair(0, 5), pair(1, 6)], "readers": [row("hazard", cpu=1.5) | {"threads": 0}],
                 "stall": [row("hazard", cpu=40) | {"stay_ms": stay, "latent_peak_bytes": stay * 10**6} for stay in (10, 100)]}
        with tempfile.TemporaryDirectory() as folder:
            for part, rows in parts.items():
                Path(folder, f"{part}.json").write_text(json.dumps(document(rows)))
            subprocess.run([ROOT / "lab/run/report", folder], check=True, capture_output=True, timeout=100)
            lines = Path(folder, "summary/reading.csv").read_text().splitlines()
        self.assertEqual(lines[1], "hazard,,1.50,–,5.00,6.00,40.00,100.0")

    def test_floors(self):
        ratio = {"subject": "plain+glibc", "ratio": 0.751, "min": 0.7, "max": 0.809}
        rows = [row("floor-loop", cpu=0.4) | {"order": "tight", "rounds": 9, "by_plain": {"single": ratio}}]
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "floors.json").write_text(json.dumps(document(rows)))
            subprocess.run([ROOT / "lab/run/report", folder], check=True, capture_output=True, timeout=100)
            lines = Path(folder, "summary/floors.csv").read_text().splitlines()
        self.assertEqual(lines, ['order,bytes,subject,batch,ns CPU,"÷ plain, one at a time","÷ plain, batches of 1,024",rounds',
                                 'tight,512,floor-loop,1,0.40,"0.75 [0.70, 0.81]",–,9'])


class Bench(unittest.TestCase):
    def call(self, *arguments):
        return subprocess.run([ROOT / "lab/run/all", *arguments], capture_output=True, text=True, timeout=100, check=False)

    def test_help_measures_nothing(self):
        for word in ("--help", "-h"):
            done = self.call(word)
            self.assertEqual(done.returncode, 0)
            self.assertIn("Parts: readers reading pairs", done.stdout)
            self.assertNotIn("written", done.stdout)

    def test_an_unknown_part_is_named(self):
        done = self.call("pairs", "pears")
        self.assertEqual(done.returncode, 2)
        self.assertIn("bench: 'pears' is none of: readers reading pairs", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_every_part_is_known(self):
        text = (ROOT / "lab/run/all").read_text()
        known = text.partition("known=(")[2].partition(")")[0].split()
        measured = [line.split()[1] for line in text.splitlines() if line.startswith(("measure ", "run "))]
        self.assertEqual(set(measured), set(known))


if __name__ == "__main__":
    unittest.main()
