#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""lab/run/publish with parts that are made up: runs that count are kept for their sources and machine, and reach the pages."""

import contextlib
import csv
import io
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "lab"))
from measure import command, keep, publish  # noqa: E402 (the path comes first)

REAL_PARTS = publish.PARTS
PAGE = "# Results\n\n## Measured together\n\nWords.\n\n| part |\n|---|\n\n## After\n"
MEASURES = ("sh", "-c", "echo x >>runs && mkdir -p {report}/summary && echo a,b >{report}/summary/batches.csv")
PARTS = (publish.Part("pairs", 10, (MEASURES,), (("summary", "bench"),)), publish.Part("counted", 10, (("true",),), counts=True),
         publish.Part("long", 200, (("true",),)))


class Parts(unittest.TestCase):
    def test_lab_run_all_knows_its_parts(self):
        said = subprocess.run([ROOT / "lab/run/all", "--help"], capture_output=True, text=True, check=True).stdout
        used = {word for part in REAL_PARTS for command in part.commands if "lab/run/all" in command for word in command[command.index("lab/run/all") + 1:]}
        self.assertIn("listed", used)
        self.assertEqual(used - set(said.partition("Parts: ")[2].split()), set())


class Publish(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in ("src", "include", "docs/results/data/bench"):
            (self.root / name).mkdir(parents=True)
        self.put("docs/results.md", PAGE)
        self.put("docs/results-losses.md", "## The worst\n\n| table |\n|---|\n| old |\n")
        self.put("docs/results/data/bench/destroy.csv", "subject,p50,p99,max\nprudence,9,9,9\nurcu+glibc,1,9,9\n")
        self.put("include/a.h", "")
        self.put("build/CMakeCache.txt", "")
        self.git("init", "-q")
        self.commit("src/a.c", "1")
        self.busy = 0.0
        for where, name, value in ((publish, "ROOT", self.root), (command, "ROOT", self.root), (publish, "PARTS", PARTS),
                                   (keep, "others_between", lambda *_: self.busy)):
            patched = unittest.mock.patch.object(where, name, value)
            patched.start()
            self.addCleanup(patched.stop)

    def put(self, name, text):
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x", *words], check=True, cwd=self.root)

    def commit(self, name, text):
        self.put(name, text)
        self.git("add", "-A")
        self.git("commit", "-qm", text)

    def run_it(self, *words):
        """(status, output)"""
        out = io.StringIO()
        real = subprocess.run

        def without_a_build(words, **given):
            return None if words[0] == "cmake" else real(words, **given)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), unittest.mock.patch.object(subprocess, "run", without_a_build):
            try:
                status = publish.main(words, self.root / "build")
            except SystemExit as ended:
                status = ended.code
        return status, out.getvalue()

    def runs(self):
        place = self.root / "runs"
        return len(place.read_text().split()) if place.exists() else 0

    def test_parts_are_kept_for_the_sources_that_they_measured(self):
        self.assertEqual(self.run_it("--part", "pairs")[0], 0)
        self.assertEqual(self.run_it("--part", "pairs")[0], 0)
        self.assertEqual(self.runs(), 1)
        self.commit("docs/results/a.csv", "a table")
        self.commit("src/README.md", "words")
        self.run_it("--part", "pairs")
        self.assertEqual(self.runs(), 1)
        self.commit("src/a.c", "2")
        self.run_it("--part", "pairs")
        self.assertEqual(self.runs(), 2)
        with unittest.mock.patch("os.cpu_count", lambda: 99):
            self.run_it("--part", "pairs")
        self.assertEqual(self.runs(), 3)

    def test_sources_that_no_commit_has_are_refused(self):
        self.put("src/a.c", "changed")
        status, said = self.run_it()
        self.assertEqual((status, self.runs()), (2, 0))
        self.assertIn("not committed: M src/a.c", said)

    def test_a_part_during_other_programs_does_not_count(self):
        self.busy = 0.5
        status, said = self.run_it("--part", "pairs,counted")
        self.assertEqual(status, 1)
        self.assertIn("other programs used 0.50 CPUs", said)
        self.assertIn("missing: pairs\n", said)
        self.assertEqual(self.run_it("--part", "pairs", "--others", "1")[0], 0)

    def test_versions_and_what_was_left_out_are_published(self):
        self.put("lab/run/all", """#!/bin/sh
            echo '{"host": {}, "rows": [], "allocators": [{"name": "scudo", "version": "14"}], "skipped": [{"subject": "tcmalloc", "why": "gone"}]}' \
                >"$PRUDENCE_BENCH_REPORT/$1.json"
            """)
        (self.root / "lab/run/all").chmod(0o755)
        with unittest.mock.patch.object(publish, "PARTS", (publish.of_bench("malloc", 1, "malloc"),)):
            self.assertEqual(self.run_it("--into", str(self.root / "docs"))[0], 0)
        self.assertRegex((self.root / "docs/results/data/published.csv").read_text(), r"left out,versions,sources\nmalloc,.*,tcmalloc,scudo 14,\w{12}\n")
        self.assertRegex((self.root / "docs/results.md").read_text(), r"\| malloc \| .* \| tcmalloc \|\n")

    def test_another_machine_goes_on_with_the_parts_that_the_pages_lack(self):
        docs = self.root / "docs"
        table = docs / "results/data/bench/targets.csv"
        table.write_text("target,verdict\nof sources before,old\n")

        def writes(*names):
            rows = "".join(f"{name} is fast,{name}\\n" for name in names)
            return publish.Part(names[0], 1, (("sh", "-c", "mkdir -p {report}/summary && "
                                               f"printf 'target,part\\n{rows}' >{{report}}/summary/targets.csv", "lab/run/all", *names),),
                                (("summary", "bench"),))
        with unittest.mock.patch.object(publish, "PARTS", (writes("pairs", "floors"), writes("crowd"))):
            self.run_it("--part", "pairs", "--into", str(docs))
            with unittest.mock.patch.object(publish, "processor", lambda: "another"):
                self.assertRegex(self.run_it("--list")[1], r"pairs +1 minutes   on the pages, measured on 2.*\ncrowd +1 minutes   missing")
                self.assertEqual(self.run_it("--into", str(docs))[1].splitlines()[-2:], [f"2 parts are in {docs}", "publish: all parts are measured"])
        self.assertEqual(table.read_text(), "target,part\ncrowd is fast,crowd\npairs is fast,pairs\nfloors is fast,floors\n")
        with (docs / "results/data/published.csv").open() as file:
            self.assertEqual([(line["part"], line["processor"] == "another") for line in csv.DictReader(file)], [("pairs", False), ("crowd", True)])

    def test_parts_of_other_sources_leave_the_pages(self):
        docs = str(self.root / "docs")
        self.run_it("--part", "pairs", "--into", docs)
        self.commit("src/a.c", "2")
        self.assertIn("1 parts are in", self.run_it("--part", "counted", "--into", docs)[1])
        self.assertEqual(self.run_it("--list")[1].count("missing"), 2)

    def test_tables_of_a_part_that_does_not_count_stay_where_they_are(self):
        self.busy = 0.5
        self.run_it("--into", str(self.root / "docs"))
        self.assertFalse((self.root / "docs/results/data/bench/batches.csv").exists())

    def test_a_command_that_fails_is_named(self):
        with unittest.mock.patch.object(publish, "PARTS", (publish.Part("pairs", 1, (("sh", "-c", "echo why; exit 3"),)),)):
            status, said = self.run_it()
        self.assertEqual(status, 1)
        self.assertIn("exit 3: status 3\nwhy", said)

    def test_no_part_begins_that_would_not_end_in_time(self):
        _, said = self.run_it("--hours", "0.2")
        self.assertIn("missing: counted, long", said)
        _, said = self.run_it("--list")
        self.assertRegex(said, r"pairs +10 minutes   measured on 2")
        self.assertRegex(said, r"long +200 minutes   missing")

    def test_tables_and_conditions_reach_the_pages(self):
        docs = self.root / "docs"
        status, said = self.run_it("--into", str(docs))
        self.assertEqual(status, 0, said)
        self.assertEqual((docs / "results/data/bench/batches.csv").read_text(), "a,b\n")
        page = (docs / "results.md").read_text()
        self.assertRegex(page, r"Words\.\n\n\| part \| date .*\n\|[-|]+\n\| pairs \| 2.*\n\| counted \| 2.*\n\n## After\n")
        self.assertEqual(len((docs / "results/data/published.csv").read_text().splitlines()), 3)
        self.assertRegex((docs / "results-losses.md").read_text(), r"bench/destroy.csv\) \| p50 \| 1/1 .* 9\.00 \|")
        self.put("docs/results.md", "no table")
        status, said = self.run_it("--into", str(docs))
        self.assertEqual(status, 2)
        self.assertIn("has 0 tables under 'Measured together'", said)


if __name__ == "__main__":
    unittest.main()
