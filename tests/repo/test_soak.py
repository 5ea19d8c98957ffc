#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (a tool that runs for hours)
"""tools/test/soak with programs that are made up: the soak loses no run and counts none twice, however it ends. Findings are kept, and no
process remains."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build"))
sys.path[:0] = str(ROOT / "tools"), str(ROOT / "tools/test")
from preload import ld_preload  # noqa: E402 (the path comes first)
from soaking import plan, runs, totals  # noqa: E402

PATIENCE = 60  # seconds until a test gives up; none waits for it if all is well


def shell(script, name="x86/one", **more):
    return {"name": name, "command": ["/bin/sh", "-c", script], **more}


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it does not happen")
        time.sleep(0.02)


class Soak(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.folder = self.root / "kept"

    def command(self, jobs, *words):
        (self.root / "plan.json").write_text(json.dumps(jobs))
        return [str(ROOT / "tools/test/soak"), "--plan", str(self.root / "plan.json"), "--folder", str(self.folder), "--nice", "0", "--jobs", "1", *words]

    def soak(self, jobs, *words):
        done = subprocess.run(self.command(jobs, *words), capture_output=True, text=True, timeout=PATIENCE)
        return done.returncode, done.stdout + done.stderr

    def kept(self):
        return [json.loads(line) for line in (self.folder / "runs").read_text().splitlines()][1:]

    def seeds(self, program="x86/one"):
        return [run["seed"] for run in self.kept() if run["program"] == program]

    def begin_run(self, script):
        """A soak whose one program has begun, and waits."""
        job = shell(f"echo $$ >{self.root}/begun; {script}")
        child = subprocess.Popen(self.command([job]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        until(lambda: (self.root / "begun").exists() and (self.root / "begun").read_text())
        return child, int((self.root / "begun").read_text())

    # ------------------------------------------------------------------------------------ kept results

    def test_seeds_are_stepped_and_kept(self):
        job = shell("echo ops={seed}0 $SEED", environment={"SEED": "{seed}"}, operations=r"ops=(\d+)")
        self.assertEqual(self.soak([job], "--runs", "2")[0], 0)
        self.assertEqual(self.soak([job], "--runs", "1")[0], 0)
        self.assertEqual(self.seeds(), [1, 2, 3])
        self.assertEqual(totals.of_runs(self.kept())["x86/one"]["operations"], 10 + 20 + 30)
        self.assertIn("ops=30 3", (self.folder / "logs/x86-one.log").read_text())

    def test_a_run_that_was_interrupted_is_tried_again(self):
        for number, how in enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGKILL)):
            with self.subTest(how=how):
                (self.root / "begun").unlink(missing_ok=True)
                soak, process = self.begin_run("trap '' TERM INT; (trap '' TERM; setsid sleep 1000) & sleep 1000; sleep 1000")
                soak.send_signal(how)
                status = soak.wait(PATIENCE)
                self.assertEqual(status, -how if how == signal.SIGKILL else 0)
                self.assertEqual(self.seeds(), list(range(1, number + 1)))
                self.assertEqual(self.soak([shell("true")], "--runs", "1")[0], 0)
                self.assertEqual(self.seeds(), list(range(1, number + 2)))
                until(lambda process=process: not Path(f"/proc/{process}").exists() or "zombie" in Path(f"/proc/{process}/status").read_text())
                self.assertEqual(list(runs.marked(self.journal() + ":")), [])

    def journal(self):
        return json.loads((self.folder / "runs").read_text().splitlines()[0])["journal"]

    def test_a_line_that_was_not_finished_is_no_run(self):
        self.soak([shell("true")], "--runs", "2")
        with open(self.folder / "runs", "a") as file:
            file.write('{"program": "x86/one", "se')
        self.assertEqual(self.soak([shell("true")], "--runs", "1")[0], 0)
        self.assertEqual(self.seeds(), [1, 2, 3])

    def test_a_line_that_is_no_run_is_named(self):
        self.soak([shell("true")], "--runs", "1")
        for line in ("something else", "[1]", '{"program": 1}'):
            with self.subTest(line=line):
                before = (self.folder / "runs").read_text()
                (self.folder / "runs").write_text(before + line + "\n")
                status, said = self.soak([shell("true")], "--runs", "1")
                self.assertEqual(status, 2)
                self.assertIn("runs:3: this line is no run", said)
                self.assertEqual((self.folder / "runs").read_text(), before + line + "\n")
                (self.folder / "runs").write_text(before)

    def test_one_soak_has_the_journal(self):
        soak, _ = self.begin_run("sleep 1000")
        status, said = self.soak([shell("true")], "--runs", "1")
        self.assertEqual(status, 2)
        self.assertIn("another soak is under way", said)
        soak.terminate()
        soak.wait(PATIENCE)

    # ------------------------------------------------------------------------------------- findings

    def test_a_finding_keeps_its_log_and_the_others_go_on(self):
        jobs = [shell("echo what went wrong, seed {seed}; exit 3", "x86/bad", share=1e9), shell("true")] # its turn comes whatever a run took
        status, said = self.soak(jobs, "--runs", "8")
        self.assertEqual(status, 1)
        self.assertEqual(self.seeds("x86/bad"), [1, 2, 3]) # then it rests
        self.assertEqual(len(self.seeds()), 5)
        log = (self.folder / "findings/x86-bad-2-plan.log").read_text()
        self.assertIn("what went wrong, seed 2", log)
        self.assertRegex(said, "FINDING: .*x86-bad-2-plan.log")
        self.assertEqual(self.soak(jobs, "--runs", "1")[0], 1) # nothing new was found, but the finding is known
        self.assertEqual(self.soak([jobs[1]], "--runs", "1")[0], 0)

    def test_a_program_that_dies_of_a_signal_is_a_finding(self):
        self.assertEqual(self.soak([shell("kill -SEGV $$")], "--runs", "1")[0], 1)
        self.assertEqual(self.kept()[0]["status"], -signal.SIGSEGV)

    def test_a_program_that_is_not_there_is_a_finding(self):
        self.assertEqual(self.soak([{"name": "x86/one", "command": ["/nowhere"]}], "--runs", "1")[0], 1)

    def test_a_run_that_hangs_is_ended_with_all_its_processes(self):
        script = f"trap '' TERM; (trap '' TERM; echo $$ >{self.root}/begun; setsid sleep 1000) & kill -STOP $$"
        status, _ = self.soak([shell(script, limit=1.0)], "--runs", "1")
        self.assertEqual(status, 1)
        self.assertEqual(self.kept()[0]["result"], "hangs")
        self.assertEqual(list(runs.marked(self.journal() + ":")), [])

    def test_what_a_run_leaves_is_ended(self):
        self.assertEqual(self.soak([shell("setsid sleep 1000 >/dev/null 2>&1 &")], "--runs", "1")[0], 0)
        self.assertEqual(list(runs.marked(self.journal() + ":")), [])

    def test_skipped_runs_are_no_hours(self):
        self.assertEqual(self.soak([shell("exit 77"), shell("true", "x86/two")], "--runs", "4")[0], 0)
        self.assertEqual(len(self.seeds()), 1)
        found = totals.of_runs(self.kept())["x86/one"]
        self.assertEqual((found["runs"], found["seconds"], found["skipped"]), (0, 0, 1))

    def test_what_does_the_same_each_time_runs_once(self):
        self.soak([shell("true", once=True), shell("true", "x86/two")], "--runs", "4")
        self.assertEqual(len(self.seeds()), 1)
        self.assertEqual(self.soak([shell("true", once=True)], "--runs", "4")[0], 0)
        self.assertEqual(len(self.seeds()), 1)

    def test_time_is_shared_and_bounded(self):
        jobs = [shell("true", "x86/long", expected=100000), shell("true", "x86/short", expected=0)]
        self.soak(jobs, "--minutes", "10", "--runs", "5")
        self.assertEqual(self.seeds("x86/long"), [])
        self.assertEqual(len(self.seeds("x86/short")), 5)
        self.assertEqual(self.soak([shell("true", "x86/longest", expected=100000)], "--minutes", "0")[0], 0)
        self.assertEqual(self.seeds("x86/longest"), [1]) # each call does something

    def test_jobs_that_build_in_one_folder_take_turns(self):
        script = f"mkdir {self.root}/built || exit 3; sleep 0.05; rmdir {self.root}/built"
        jobs = [shell(script, f"x86/{name}", builds="here") for name in "abc"] + [shell("sleep 0.05", "x86/other")]
        status, said = self.soak(jobs, "--jobs", "4", "--runs", "12")
        self.assertEqual(status, 0, said)
        self.assertEqual(len(self.kept()), 12)

    def test_bad_arguments(self):
        for words in (["--minutes", "-1"], ["--minutes", "nan"], ["--jobs", "0"], ["--nice", "20"], ["--minutes", "1", "--hours", "1"], ["--strange"]):
            with self.subTest(words=words):
                self.assertEqual(self.soak([shell("true")], *words)[0], 2)
        self.assertEqual(self.soak([shell("true")], "nobody")[0], 2)
        for jobs in ([{"name": "a"}], [shell("true", strange=1)], [shell("true"), shell("true")]):
            self.assertEqual(self.soak(jobs)[0], 2)


class Totals(unittest.TestCase):
    def run_of(self, program, result="ok", seconds=3600.0, seed=1, **more):
        return {"program": program, "architecture": "x86-64", "seed": seed, "revision": "r", "begun": "2026", "result": result, "seconds": seconds,
                "wall": seconds, "cpu": seconds, "operations": None, **more}

    def test_clean_time_begins_after_the_last_finding(self):
        found = totals.of_runs([self.run_of("a"), self.run_of("a", "hangs"), self.run_of("a", seed=7)])["a"]
        self.assertEqual((found["runs"], found["findings"], found["seconds"], found["clean"], found["seed"]), (3, 1, 3 * 3600, 3600, 7))

    def test_a_journal_replaces_its_own_totals_and_no_others(self):
        with tempfile.TemporaryDirectory() as folder:
            totals.KEPT, before = Path(folder) / "kept.json", totals.KEPT
            self.addCleanup(setattr, totals, "KEPT", before)
            one = unittest.mock.Mock(id="a", runs=[self.run_of("release/p")])
            two = unittest.mock.Mock(id="b", runs=[self.run_of("asan/p", "failed", log="l")])
            totals.keep(one, "here")
            totals.keep(one, "here")
            kept = totals.keep(two, "there")
            page = "\n".join(totals.lines_of(kept))
        self.assertIn("x86-64: 2.00 hours (2.00 of CPU time) in 2 runs; 1 findings; 1.00 hours after", page)
        rows = totals.table(totals.together(entry["programs"] for entry in kept["journals"].values())).splitlines()
        self.assertEqual(rows[1].split(), ["x86-64", "p", "asan,", "release", "2", "2.00", "2.00", "–", "1", "1"])
        self.assertIn("| 2026 | asan/p 1 | r | failed | not examined yet |", page)


class Storms(unittest.TestCase):
    def test_every_value_is_one_that_the_library_knows(self):
        for name, values in plan.STORM.items():
            for value in values:
                done = subprocess.run(["/bin/true"], capture_output=True, text=True, env={
                    "LD_PRELOAD": ld_preload(BUILD / "libprudence-malloc.so"), "PRUDENCE_OPTIONS": f"{name}={value}"})
                self.assertEqual((done.returncode, done.stderr), (0, ""), f"{name}={value}")

    def test_a_seed_has_its_storm(self):
        storms = [plan.storm(seed) for seed in range(200)]
        self.assertEqual(storms, [plan.storm(seed) for seed in range(200)])
        self.assertEqual({name for storm in storms for name in re.findall(r"(\w+)=", storm)}, set(plan.STORM))


if __name__ == "__main__":
    unittest.main()
