#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""adopt/: patches of at most 250 lines, each with a module and a page; sides of a made-up program are patched, built, tested and measured;
finished parts are kept; failed or missing parts are named; the report says better and worse."""

import contextlib
import io
import json
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tools")]
from adopt import dns_server, page, run, sides  # noqa: E402 (the path comes first)
from adopt.program import Failed, Measure, Missing, Program  # noqa: E402

PATCHES = sorted((ROOT / "adopt/patches").glob("*.patch"))
PATCH = "--- a/file\n+++ b/file\n@@ -1 +1 @@\n-{}\n+{}\n"


class Patches(unittest.TestCase):
    def test_are_small_and_whole(self):
        for patch in PATCHES:
            with self.subTest(patch.name):
                self.assertLessEqual(sides.changed_lines(patch), sides.LINES)
                told = subprocess.run(["git", "apply", "--numstat", patch], capture_output=True, text=True, check=False, cwd="/")
                self.assertEqual((told.returncode, told.stderr), (0, ""))
                self.assertNotRegex(patch.read_text(), r"(?m)^\+.*[ \t]$")

    def test_each_belongs_to_a_program(self):
        known = run.programs()
        shared = {one.shared_patch for one in known.values()}
        self.assertEqual([], [patch.name for patch in PATCHES if patch.stem not in known and patch.name not in shared])

    def test_each_program_is_described(self):
        for name, program in run.programs().items():
            with self.subTest(name):
                self.assertEqual(program.name, name)
                self.assertTrue(program.title and program.before and program.after and program.measures)
                self.assertIn(program.watched_cost, ["", *(one.key for one in program.measures)])
                self.assertTrue(sides.patch_of(program) or not program.package)
                self.assertTrue(all((ROOT / "lab/adopt" / one).is_file() for one in program.uses))
                self.assertTrue((ROOT / f"docs/explanation/adopt-{name.replace('_', '-')}.md").is_file())


class Servers(unittest.TestCase):
    def test_an_update_that_is_refused_fails_its_round_alone(self):
        """The frame knows its own Failed, not that of tools/dns_load.py."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.bind(("127.0.0.1", 0))
            updates = dns_server.Updates(server.getsockname()[1])

            def refuse():
                message, client = server.recvfrom(4096)
                server.sendto(message[:2] + b"\x80\x05", client)

            answer = threading.Thread(target=refuse)
            answer.start()
            with self.assertRaisesRegex(Failed, "refused with code 5"):
                updates.make_one()
            answer.join()


class Made(Program):
    name, title, package, mark = "made", "Made up", "made", "file"
    before, after = "it waits", "it does not"
    measures = (Measure("time", "time", "µs", better="less"), Measure("rate", "rate", "per s", better="more"))
    watched_cost = "time"

    def __init__(self):
        self.calls = []

    def build(self, side):
        self.calls.append(f"build {side.name} {side.run(['cat', 'file']).strip()}")

    def tests(self, side):
        self.calls.append(f"tests {side.name}")
        return {"passed": 3, "failed": ["slow"], "skipped": 0}

    def measure(self, side, seconds):
        self.calls.append(f"measure {side.name}")
        return {"time": 5.0 if side.patched else 10.0, "rate": 90.0 if side.patched else 100.0}


class Sides(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.here, self.build, self.made = Path(folder.name) / "adopt", Path(folder.name) / "build", Made()
        for name, text in (("programs/made.py", "1"), ("patches/made.patch", PATCH.format("old", "new"))):
            place = self.here / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        source = Path(folder.name) / "source/made-1"
        source.mkdir(parents=True)
        (source / "file").write_text("old\n")
        self.build.mkdir()
        (self.build / "libprudence.so").write_text("1")
        for what in (mock.patch.object(sides, "HERE", self.here), mock.patch.object(sides.debian_source, "fetch", lambda *_: source),
                     mock.patch.object(sides, "environment_of", lambda _: {"PATH": "/usr/bin:/bin"}),
                     mock.patch.object(run, "programs", lambda: {"made": self.made})):
            what.start()
            self.addCleanup(what.stop)

    def adopt(self, *words, status=0):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            self.assertEqual(run.main(["--rounds", "2", *words], self.build), status, said.getvalue())
        return said.getvalue()

    def test_take_turns_and_are_kept(self):
        self.adopt()
        self.assertEqual(self.made.calls, ["build before old", "build after new", "tests before", "tests after", *["measure before", "measure after"] * 2])
        self.made.calls.clear()
        self.adopt()
        self.assertEqual(self.made.calls, [])

    def test_again_forgets_the_chosen_step_alone(self):
        self.adopt()
        self.made.calls.clear()
        self.adopt("--again", "--only", "measure", "--rounds", "1")
        self.assertEqual(self.made.calls, ["measure before", "measure after"])
        self.made.calls.clear()
        self.adopt("--only", "test", "--only", "measure", "--rounds", "1")
        self.assertEqual(self.made.calls, [])

    def test_a_changed_patch_is_applied_anew_to_one_side(self):
        self.adopt("--only", "build")
        (self.here / "patches/made.patch").write_text(PATCH.format("old", "newer"))
        self.made.calls.clear()
        self.adopt("--only", "build")
        self.assertEqual(self.made.calls, ["build after newer"])

    def test_a_patch_that_does_not_apply_is_named(self):
        self.adopt("--only", "patch")
        (self.here / "patches/made.patch").write_text(PATCH.format("other", "new"))
        self.assertIn("made.patch does not apply", self.adopt("--only", "patch", status=1))
        (self.here / "patches/made.patch").write_text(PATCH.format("old", "new"))
        self.adopt("--only", "patch")

    def test_what_fails_is_named_and_tried_again(self):
        with mock.patch.object(self.made, "tests", side_effect=Failed("no such test")):
            self.assertIn("no such test", self.adopt(status=1))
        self.made.calls.clear()
        self.adopt()
        self.assertEqual(self.made.calls, ["tests before", "tests after"])

    def test_a_test_that_the_patch_breaks_is_named(self):
        with mock.patch.object(self.made, "tests", lambda side: {"passed": 2, "failed": ["slow", *(["new"] if side.patched else [])], "skipped": 0}):
            said = self.adopt(status=1)
        self.assertIn("these pass before: new", said)

    def test_a_command_that_fails_shows_its_last_lines(self):
        with mock.patch.object(self.made, "build", lambda side: side.run(["sh", "-c", "echo why; exit 3"])):
            said = self.adopt(status=1)
        self.assertIn("ended with 3", said)
        self.assertIn("why", said)

    def test_figures_of_a_driver_are_json(self):
        def measured(*command, timeout=20):
            with mock.patch.object(self.made, "measure", lambda side, _: side.figures(command, timeout)):
                return self.adopt("--only", "measure", status=1)
        self.assertIn("a round has no time, rate", measured("sh", "-c", "echo {}"))
        self.assertIn("ended with 4: why", measured("sh", "-c", "echo why >&2; exit 4"))
        self.assertIn("printed no JSON", measured("sh", "-c", "echo many"))
        self.assertIn("did not end within 0.1 s", measured("sleep", "20", timeout=0.1))

    def test_watches_the_program_as_it_is(self):
        """prudence-latent is a script here, which reports one process, and that nothing was seen."""
        tool = self.build / "bin/prudence-latent"
        tool.parent.mkdir()
        (tool.parent / "libprudence-latent.so").write_text("1")
        process = dict.fromkeys(run.WATCHED, 1) | {"curve": [2]}
        tool.write_text(f"#!/bin/sh\necho '{json.dumps({'processes': [process]})}' >\"$2\"\nshift 3\n\"$@\"\nexit 3\n")
        tool.chmod(0o755)
        with mock.patch.object(self.made, "measure", lambda side, _: side.figures(["sh", "-c", 'echo "{\\"time\\": 2}"'], 20)):
            self.adopt("--only", "watch")
        self.assertEqual(self.made.calls, ["build before old"])
        runs = [json.loads((self.build / f"adopt/made/runs/watched-{how}-2.json").read_text()) for how in ("without", "with")]
        self.assertEqual([(one["watched"], one["cost"]) for one in runs], [(False, 2), (True, 2)])
        self.assertEqual([one["processes"] for one in runs], [[], [dict.fromkeys(run.WATCHED, 1)]])

    def test_endures_on_both_sides_at_once(self):
        both = threading.Barrier(2, timeout=20)
        self.assertIn("no load for a longer time", self.adopt("--only", "endure", status=run.SKIPPED))
        with mock.patch.object(self.made, "long_load", "it waits"), \
                mock.patch.object(self.made, "endure", lambda side, seconds: (both.wait() >= 0 and [1, 2], int(seconds))):
            self.adopt("--only", "endure", "--seconds", "3")
        runs = [json.loads((self.build / f"adopt/made/runs/endured-{side}.json").read_text()) for side in ("before", "after")]
        self.assertEqual([(one["side"], one["bytes"], one["done"]) for one in runs], [("before", [1, 2], 3), ("after", [1, 2], 3)])

    def test_lines_of_tests_are_counted(self):
        side = sides.Side(self.made, False, self.build)
        side.source.mkdir()
        self.assertEqual(side.tap({"good": ["printf", "ok 1\nnot ok 2\nok 3 - it\n"], "bad": ["false"]}, 20),
                         {"passed": 2, "failed": ["good 2", "bad"], "skipped": 0})

    def test_what_is_missing_is_named(self):
        self.made.packages = ("no-such-package",)
        self.assertIn("no-such-package", self.adopt(status=run.SKIPPED))
        self.made.packages = ()
        with mock.patch.object(sides.debian_source, "fetch", lambda *_: None):
            self.assertIn("cannot be fetched", self.adopt(status=run.SKIPPED))

    def test_a_round_without_a_measure_fails(self):
        with mock.patch.object(self.made, "measure", lambda *_: {"time": 1}):
            self.assertIn("a round has no rate", self.adopt("--only", "measure", status=1))

    def test_wrong_words_are_named(self):
        for words, why in ((["other"], "no program 'other'"), (["--rounds", "0"], "--rounds 0"), (["--into", "docs"], "--report"),
                           (["--only", "fly"], "'fly'")):
            said = io.StringIO()
            with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
                run.main(words, self.build)
            self.assertIn(why, said.getvalue())

    def test_nothing_measured_has_no_report(self):
        with mock.patch.object(run, "document_of", lambda *_: {"runs": []}):
            self.assertIn("nothing has been measured", self.adopt("--report", status=1))


def document(*rounds):
    """Makes runs of (before, after), each (time, rate)."""
    runs = [{"kind": "round", "program": "made", "side": side, "round": number, "values": dict(zip(("time", "rate"), values)), "others_cpus": 0}
            for number, both in enumerate(rounds) for side, values in zip(("before", "after"), both)]
    tests = [{"kind": "tests", "program": "made", "side": side, "passed": 3, "failing": failed, "skipped": 0}
             for side, failed in (("before", []), ("after", ["slow"]))]
    return {"date": "today", "commit": "1", "host": {"cpu": "x", "cpus": 2, "system": "Linux", "kernel": "6", "libc": "2", "compiler": "12",
                                                     "huge_pages": "no"}, "runs": runs + tests, "skipped": [], "others_cpus": 0}


class Page(unittest.TestCase):
    def words(self, *rounds):
        return [line["verdict"] for line in page.measure_cells(document(*rounds), Made())]

    def test_says_better_and_worse(self):
        rounds = ((10, 100), (5, 90)), ((10, 100), (6, 80)), ((10, 100), (5, 80))
        self.assertEqual(self.words(*rounds), ["better", "worse"])
        self.assertEqual(self.words(*rounds[:2]), ["unclear", "unclear"])  # of two rounds
        self.assertEqual(self.words(((10, 100), (10.1, 100)), ((10, 100), (9.9, 130)), ((10, 100), (10, 100))), ["the same", "unclear"])
        self.assertEqual(self.words(*[((0, 100), (5, 100))] * 3), ["–", "the same"])
        self.assertEqual(self.words(*[((0, 100), (5, 100))] * 2, ((10, 100), (5, 100))), ["unclear", "the same"])

    def test_names_tests_that_fail_on_one_side(self):
        line, = page.tests_cells(document(), Made())
        self.assertEqual((line["before"], line["after"]), ("3 passed", "3 passed, 1 failed (slow)"))

    def test_is_written_with_its_table(self):
        from measure.page import Report
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            (place / "results/data").mkdir(parents=True)
            (place / "results-adopt.md").write_text("# A\n\n## Where Prudence loses\n\nText.\n\n| a |\n|---|\n| b |\n")
            made = Report(place / "adopt.json", into=place)
            self.assertEqual(page.report(document(((10, 100), (5, 90)), ((10, 100), (6, 80)), ((10, 100), (5.5, 85))), made, {"made": Made()}), "1 better, 1 worse, of 2 figures.")
            self.assertIn("Made up", (place / "adopt.html").read_text())
            shown = (place / "results-adopt.md").read_text()
            self.assertIn("| Made up | rate, per s ↑ | 100 | 85 |", shown)
            self.assertNotIn("time, µs", shown)
            self.assertEqual(shown.count("Made up"), 1)
            data = (place / "results/data/adopt/adopt.csv").read_text()
            self.assertEqual(data.count("Made up"), 3)
            self.assertIn('"time, µs ↓",10,"5.5 [5, 6]","0.55 [0.50, 0.60]",better', data)

    def test_shows_what_became_worse(self):
        rows = [{"subject": "Made up", "what": what, "before": "1 [0, 2]", "after": "1", "after ÷ before": "1.00", "verdict": verdict}
                for what, verdict in (("time", "unclear"), ("speed", "better"), ("memory", "worse"))]
        self.assertEqual(page.losses(rows), [{"subject": "Made up", "what": "memory", "before": "1", "after": "1"}])

    def test_rows_of_programs_that_were_not_measured_stay(self):
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder) / "adopt.csv"
            table.write_text("subject,what\nLast,kept\nMade up,old\nGone,kept\n")
            last = mock.Mock(title="Last")
            rows = page.with_kept_rows(table, [{"subject": "Made up", "what": "new"}], {"made": Made(), "last": last})
        self.assertEqual([tuple(line.values()) for line in rows], [("Made up", "new"), ("Last", "kept"), ("Gone", "kept")])

    def test_says_what_waited_and_what_watching_cost(self):
        waits = {"median_ns": 2e6, "p99_ns": 3e6, "most_ns": 4e6}
        process = {"seconds": 2, "callbacks": {"queued": 10, "most_waiting": 4, "waits": waits}, "bytes": {"most": 5000},
                   "sleeps": {"calls": 6, "ns": 1e9}, "deferred": 8, "refused": 4, "reclaimed": {}}
        found = document()
        found["runs"] += [{"kind": "watched", "program": "made", "watched": watched, "round": 1, "cost": cost, "processes": [process] * watched, "others_cpus": 0.1}
                          for watched, cost in ((False, 100), (True, 101))]
        line, = page.watched_cells(found, {"made": Made()})
        self.assertEqual(list(line.values()), ["Made up", "5", "4", "2", "3", "5", "3", "50", "4", "2", "1.010"])
        found["runs"][-1]["others_cpus"] = 1
        self.assertEqual(page.watched_cells(found, {"made": Made()})[0]["CPU time with it ÷ without"], "busy")
        self.assertEqual(page.watched_cells(document(), {"made": Made()}), [])

    def test_watched_rounds_alone_have_a_report(self):
        from measure.page import Report
        found = document()
        found["runs"] = [{"kind": "watched", "program": "made", "watched": watched, "round": 1, "cost": 1, "processes": [], "others_cpus": 0} for watched in (False, True)]
        with tempfile.TemporaryDirectory() as folder:
            page.report(found, Report(Path(folder) / "adopt.json"), {"made": Made()})
            self.assertIn("Made up", (Path(folder) / "adopt.html").read_text())

    def test_says_how_memory_grew(self):
        from measure.page import Report
        found = document()
        for side, last in (("after", 4e6), ("before", 6e6)):
            found["runs"].append({"kind": "endured", "program": "made", "side": side, "seconds_asked": 120, "bytes": [1e6, 5e6, 4e6, last], "done": 1000})
        lines = page.endured_cells(found, {"made": Made()})
        self.assertEqual([list(line.values()) for line in lines],
                         [["Made up", "before", "2", "1,000", "6", "6", "50"], ["Made up", "after", "2", "1,000", "5", "4", "0"]])
        with tempfile.TemporaryDirectory() as folder:
            made = Report(Path(folder) / "adopt.json")
            page.report(found, made, {"made": Made()})
            self.assertTrue((Path(folder) / "adopt-made-endured.svg").is_file())
            self.assertIn("Made up,before,2", (Path(folder) / "adopt/endured.csv").read_text())

    def test_a_measure_says_which_way_is_better(self):
        with self.assertRaises(ValueError):
            Measure("a", "a", "s", better="up")


if __name__ == "__main__":
    unittest.main()
