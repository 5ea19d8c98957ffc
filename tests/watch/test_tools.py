#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 5
"""prudence-top as a user runs it without a terminal: text, JSON and CSV, and refusals; and the installed program."""

import csv
import io
import json
import os
import shutil
import subprocess
import unittest

import forged
from watching import BUILD, ROOT, STAT, TOP, Case, until
from prudence_watch import process as processes
from prudence_watch.layout import LAYOUT

NOBODY = 65534
FAST = ("--interval", "50ms")


class Tools(Case):
    def refused(self, message, *arguments, status=1):
        done = self.run_tool(TOP, *arguments, status=status)
        self.assertIn(message, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_text(self):
        watched = self.start()
        thread = watched.ask("enter")
        watched.ask("defer 3000")
        done = self.run_tool(TOP, "--pid", watched.pid, "--once", "--interval", "200ms", env=os.environ | {"COLUMNS": "120"})
        self.assertRegex(done.stdout, r"(?m)^prudence-top: watched ")
        self.assertRegex(done.stdout, r"(?m)^routes +100B +0 +3\.0k ")
        self.assertIn(f"thread 'parser' (tid {thread})", done.stdout)

    def test_json(self):
        watched = self.start()
        watched.ask("keep 10")
        watched.ask("enter")
        watched.ask("defer 30")
        sample = json.loads(self.run_tool(TOP, "--pid", watched.pid, "--once", "--json", *FAST).stdout)
        self.assertEqual((sample["format"], sample["pid"], sample["program"]), (1, watched.pid, "watched"))
        cache, = sample["caches"]
        own, = watched.stats()["caches_list"]
        for name in ("name", "objects_live", "objects_latent", "slabs_now", "allocations", "object_size"):
            self.assertEqual(cache[name], own[name])
        self.assertEqual(sample["domains"][0]["threads_inside"][0]["thread_name"], "parser")
        self.assertEqual(cache["per_second"]["allocations"], 0)
        self.assertGreater(sample["interval_seconds"], 0.04)

    def test_rates(self):
        watched = self.start()
        watched.ask("keep 1")
        watched.ask("storm")
        process = subprocess.Popen([TOP, "--pid", str(watched.pid), "--json", *FAST], stdout=subprocess.PIPE, text=True)
        samples = []

        def enough():
            """The program may have no CPU for a while."""
            samples.append(json.loads(process.stdout.readline()))
            totals = [sample["totals"] for sample in samples]
            return len(samples) >= 5 and all(any(one["per_second"][name] > 0 for one in totals) for name in (
                "allocations", "grace_periods")) and any(0 < (one["grace_period_seconds"] or 0) < 10 for one in totals)

        self.assertTrue(until(enough), samples)
        process.stdout.close()  # it ends without a word
        self.assertIn(process.wait(), (0, -13))
        for before, after in zip(samples, samples[1:]):
            rate = after["caches"][0]["per_second"]["allocations"]
            counted = (after["caches"][0]["allocations"] - before["caches"][0]["allocations"]) / after["interval_seconds"]
            self.assertAlmostEqual(rate, counted, delta=1)
            self.assertTrue(0 < after["caches"][0]["hit_rate"] <= 1)

    def test_csv(self):
        watched = self.start()
        watched.ask("more 3")
        rows = list(csv.DictReader(io.StringIO(self.run_tool(TOP, "--pid", watched.pid, "--once", "--csv", *FAST).stdout)))
        self.assertEqual({row["name"]: int(row["objects_live"]) for row in rows},
                         {"more 01": 1000, "more 02": 2000, "more 03": 3000})

    def test_names_that_terminals_and_json_would_mind(self):
        watched = self.start()
        watched.ask("name \033[31m\"\\,\xe4")
        cache, = json.loads(self.run_tool(TOP, "--pid", watched.pid, "--once", "--json", *FAST).stdout)["caches"]
        self.assertEqual(cache["name"], "\033[31m\"\\,\xe4")
        self.assertIn("?[31m\"\\,\xe4", self.run_tool(TOP, "--pid", watched.pid, "--once", *FAST,
                                                     env=os.environ | {"LC_ALL": "C.UTF-8"}).stdout)
        plain = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        for form in (), ("--json",), ("--csv",):
            self.run_tool(TOP, "--pid", watched.pid, "--once", *FAST, *form, env=plain)
        watched.ask("name a\rb\x9b31m")
        for form in (), ("--json",), ("--csv",):
            shown = self.run_tool(TOP, "--pid", watched.pid, "--once", *FAST, *form, env=os.environ | {"LC_ALL": "C.UTF-8"}).stdout
            self.assertEqual([line for line in shown.split("\n") if not line.isprintable()], [])

    def test_a_process_whose_name_a_terminal_would_obey(self):
        name = "\033[31m\n\x85"
        shutil.copy(self.folder / "watched", self.folder / name)
        watched = self.start(name)
        self.assertIn(f"prudence-top: ?[31m?? ({watched.pid})", self.run_tool(TOP, "--pid", watched.pid, "--once", *FAST).stdout)
        watched.tell("exec")
        self.assertTrue(until(lambda: "does not use Prudence" in subprocess.run(
            [TOP, "--pid", str(watched.pid), "--once", *FAST], text=True, capture_output=True, check=False).stderr))

    def test_by_name(self):
        name = f"watch-{os.getpid()}"
        shutil.copy(self.folder / "watched", self.folder / name)
        self.refused(f"there is no process of the name '{name}'", "--name", name, "--once")
        one = self.start(name)
        sample = json.loads(self.run_tool(TOP, "--name", name, "--once", "--json", *FAST).stdout)
        self.assertEqual(sample["pid"], one.pid)
        two = self.start(name)
        done = self.run_tool(TOP, "--name", name, "--once", status=1)
        self.assertIn(f"there are 2 processes of the name '{name}'", done.stderr)
        for pid in (one.pid, two.pid):
            self.assertIn(f"{pid} ({name})", done.stderr)
        self.assertRegex(self.run_tool(TOP, "--once", status=1).stderr,
                         r"\d+ processes use Prudence: .*Choose one by --pid or --name")

    def test_what_cannot_be_watched_is_named(self):
        self.refused("process 4194305 does not exist", "--pid", 4194305, "--once")
        without = subprocess.Popen(["sleep", "60"])
        self.addCleanup(without.wait)
        self.addCleanup(without.kill)
        self.assertTrue(until(lambda: processes.name_of(without.pid) == "sleep"))
        self.refused(f"process {without.pid} (sleep) does not use Prudence", "--pid", without.pid, "--once")
        watched = self.start()
        if os.geteuid() == 0:
            folder = self.folder / "for all"
            shutil.copytree(ROOT / "programs/watch/prudence_watch", folder / "share/prudence/prudence_watch", dirs_exist_ok=True)
            (folder / "bin").mkdir(exist_ok=True)
            tool = shutil.copy(BUILD / "programs/watch/installed/prudence-top", folder / "bin")
            os.chmod(tool, 0o755)
            subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
            done = self.run_tool(tool, "--pid", watched.pid, "--once", status=1, user=NOBODY, group=NOBODY, extra_groups=[],
                                 env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})
            self.assertIn(f"process {watched.pid} (watched) is of user root, and you are nobody", done.stderr)
        with forged.exported({}, layout_number=99):
            self.refused(f"the table of its figures is of layout 99, and this tool reads layout {LAYOUT}", "--pid", os.getpid(), "--once")
        self.refused("standard input and output are no terminal: ask for --once, --json or --csv", "--pid", watched.pid)

    def test_bad_arguments_are_named(self):
        for arguments, message in ((("--pid", "x"), "argument --pid: 'x' is not the number of a process"),
                                   (("--pid", "0"), "argument --pid: '0'"), (("--pid", "-3"), "--pid"),
                                   (("--pid", "1", "--name", "a"), "--name: not allowed with argument --pid"),
                                   (("--interval", "0"), "argument --interval: '0' is not a time from 10ms"),
                                   (("--interval", "1h"), "argument --interval: '1h'"),
                                   (("--interval", "nan"), "argument --interval: 'nan'"),
                                   (("--sort", "size2"), "argument --sort: invalid choice: 'size2'"),
                                   (("--json", "--csv"), "--csv: not allowed with argument --json"),
                                   (("--nothing",), "unrecognized arguments: --nothing")):
            with self.subTest(arguments):
                self.refused(message, *arguments, status=2)

    def test_output_that_cannot_be_written_is_named(self):
        watched = self.start()
        watched.ask("keep 1")
        for command in ((TOP, "--once"), (TOP, "--once", "--json"), (TOP, "--once", "--csv"), (STAT,), (STAT, "--csv")):
            for output, reason in ((">/dev/full", "standard output cannot be written: No space left on device"),
                                   (">&-", "standard output is closed")):
                with self.subTest(command=command, output=output):
                    done = self.run_tool("sh", "-c", f'exec "$0" "$@" {output}', *command, "--pid", watched.pid, *FAST, status=1)
                    self.assertEqual(done.stderr, f"{command[0].name}: {reason}\n")

    def test_it_ends_with_the_process(self):
        watched = self.start()
        top = subprocess.Popen([TOP, "--pid", str(watched.pid), "--csv", *FAST], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        top.stdout.readline()
        watched.tell("crash")
        watched.process.wait()
        _, said = top.communicate(timeout=60)
        self.assertEqual(top.returncode, 1)
        self.assertIn(f"prudence-top: process {watched.pid} has ended", said)

    def test_help_names_every_option(self):
        text = self.run_tool(TOP, "--help").stdout
        page = (BUILD / "man/prudence-top.1").read_text().replace("\\-", "-")
        for option in ("--pid", "--name", "--user", "--interval", "--sort", "--once", "--json", "--csv"):
            self.assertIn(option, text)
            self.assertIn(option, page)


if __name__ == "__main__":
    unittest.main()
