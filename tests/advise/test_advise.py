#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (it measures; test_errors.py reads what it refuses)
# ctest: cost 25
"""prudence-advise as a user runs it: each command, refusals, and the installed program.

Answers and refusals are made in this process, because Python and numpy take longer to start than to answer. PRUDENCE_MODELS=deep (make
test-long) also draws the pages, which takes most of a minute of CPU time; else their figures are made and not drawn. Nothing here has a
limit of time of its own: ctest's is the only one.
"""

import contextlib
import io
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
ADVISE = BUILD / "bin/prudence-advise"
sys.path.insert(0, str(Path(__file__).parent))
sys.path[:0] = [str(ROOT / "programs/advise"), str(ROOT / "programs/watch")]
import invented_hashes  # noqa: E402 (the path comes first)
import invented_machine  # noqa: E402
from prudence_advise import check, cli, errors, machine, mechanisms  # noqa: E402

if not ADVISE.exists():
    print("prudence-advise was not built (-DPRUDENCE_BUILD_ADVISE=ON): skipped")
    sys.exit(77)

DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"
PLACES = cli.Places(BUILD / "bin", ROOT / "programs/common")
LOAD = ("--threads=8", "--updates=2%")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="prudence-advise-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.machine = self.folder / "machine.json"
        self.machine.write_text(json.dumps(invented_machine.document()))

    def environment(self):
        return {"XDG_CACHE_HOME": str(self.folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}

    def run_program(self, *arguments, program=ADVISE):
        return subprocess.run([program, *map(str, arguments)], text=True, capture_output=True, env=os.environ | self.environment(),
                              check=False)

    def advise(self, *arguments):
        """Runs it in this process."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), mock.patch.dict(os.environ, self.environment()):
            try:
                status = cli.run([str(one) for one in arguments], PLACES)
            except SystemExit as left:
                status = left.code or 0
        return SimpleNamespace(returncode=status, stdout=out.getvalue(), stderr=err.getvalue())

    def of_this_machine(self):
        document = invented_machine.document(max(2, len(os.sched_getaffinity(0))), 1)
        document["host"] |= {"cpu": machine.processor(), "cpus": len(os.sched_getaffinity(0))}
        return document

    def answer(self, *arguments):
        done = self.advise(*LOAD, f"--calibration={self.machine}", "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refused(self, message, *arguments, status=2):
        done = self.advise(*arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual(done.stdout, "")


class Advice(Case):
    def test_a_read_mostly_load(self):
        done = self.advise("--threads", "64", "--updates", "2%", "--ops-per-section", "3", "--live", "1e6", "--cpus", "64",
                           f"--calibration={self.machine}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\ARCU pays: [\d.]+x \([\d.]+ to [\d.]+\) the operations of the reader-writer lock")
        self.assertIn("1. RCU with Prudence", done.stdout)
        self.assertIn("Assumed: 64 CPUs; this machine has 8", done.stdout)
        self.assertIn("64 threads, 2 % updates, 3 operations a section", done.stdout)

    def test_one_thread_keeps_its_mutex(self):
        answer = self.answer("--threads=1", "--current=mutex", "--between=1ms")
        self.assertEqual(answer["choice"], "mutex")
        done = self.advise("--threads=1", "--updates=0.5", "--current=mutex", "--between=1ms", "--calibration",
                           self.machine)
        self.assertTrue(done.stdout.startswith("Keep the mutex"), done.stdout)

    def test_json_has_the_whole_answer(self):
        answer = self.answer("--buckets=64", "--data=plain")
        self.assertEqual(answer["format"], 1)
        self.assertEqual({row["name"] for row in answer["ranking"]},
                         {"mutex", "spinlock", "rwlock", "buckets", "brlock", "seqlock", "rcu", "hazard"})
        rates = [row["operations_per_second"]["median"] for row in answer["ranking"]]
        self.assertEqual(rates, sorted(rates, reverse=True))
        for row in answer["ranking"]:
            self.assertLessEqual(row["gain"]["low"], row["gain"]["median"])
            self.assertLessEqual(row["gain"]["median"], row["gain"]["high"])
            self.assertGreater(row["memory_bytes"], 0)
            self.assertTrue(row["of_ideal"] <= 1.001 and 0 <= row["waiting"] < 1)
        now = next(row for row in answer["ranking"] if row["name"] == "rwlock")
        self.assertEqual(now["gain"], {"median": 1.0, "low": 1.0, "high": 1.0})
        for limit in answer["breakeven"].values():
            self.assertTrue(0 <= limit["low"] <= limit["median"] <= limit["high"] <= 1)
        self.assertGreater(answer["rcu"]["objects_in_flight"], 0)

    def test_the_same_answer_twice(self):
        self.assertEqual(self.answer(), self.answer())

    def test_what_is_unsuitable_comes_last_and_says_why(self):
        last = self.answer()["ranking"][-1]
        self.assertEqual(last["name"], "seqlock")
        self.assertIn("freed", last["unsuitable"])
        blocking = {row["name"]: row["unsuitable"] for row in self.answer("--blocking")["ranking"]}
        self.assertIsNone(blocking["rcu"])
        self.assertIn("may not block", blocking["spinlock"])

    def test_fresh_data_gets_a_warning(self):
        for row in self.answer("--fresh")["ranking"]:
            self.assertEqual("mark obsolete objects" in " ".join(row["reasons"]), row["name"] in ("rcu", "hazard"))

    def test_a_reader_that_stays(self):
        """RCU is skipped as soon as it keeps more than latent_limit; then hazard pointers are advised, and not before."""
        rate = next(row for row in self.answer("--between=0")["ranking"] if row["name"] == "rcu")["operations_per_second"]["median"]
        fills = 1e9 * (32 << 20) / (rate * 0.02 * 64)  # ns
        for stays, choice in ((0, "rcu"), (0.99 * fills, "rcu"), (1.01 * fills, "hazard")):
            answer = self.answer("--between=0", f"--stays={round(stays)}ns")
            rows = {row["name"]: row for row in answer["ranking"]}
            self.assertEqual((answer["choice"], rows["rcu"]["unsuitable"] is None), (choice, choice == "rcu"))
            self.assertEqual(answer["breakeven"] == {}, choice == "hazard")
            for name, words in (("hazard", "keeps only the objects that it has named"), ("mutex", "an update waits for a reader that stays")):
                self.assertEqual(words in " ".join(rows[name]["reasons"]), stays > 0, name)
        self.assertIn(" keeps 33.9 MB of deferred objects, and latent_limit is 33.6 MB", rows["rcu"]["unsuitable"])
        self.assertIsNone(next(row for row in self.answer("--between=0", "--stays=1s", "--latent-limit=0")["ranking"]
                               if row["name"] == "rcu")["unsuitable"])
        said = self.advise(*LOAD, "--between=0", "--stays=1s", f"--calibration={self.machine}").stdout
        self.assertTrue(said.startswith("Use hazard pointers of Prudence: "), said)
        self.assertIn(" RCU is left out: a reader that stays for 1 s keeps", said.splitlines()[0])
        self.assertIn("-. RCU with Prudence: a reader that stays for 1 s keeps", said)
        for stays in (0, 1):
            rows = {row["name"]: row for row in self.answer("--data=plain", f"--stays={stays}us")["ranking"]}
            self.assertEqual(rows["seqlock"]["unsuitable"] is None, stays == 0)

    def test_spread_of_the_calibration_is_that_of_the_answer(self):
        narrow = self.answer()["ranking"][0]["gain"]
        self.machine.write_text(json.dumps(invented_machine.document(share=0.4)))
        wide = self.answer()["ranking"][0]["gain"]
        self.assertGreater(wide["high"] - wide["low"], 2 * (narrow["high"] - narrow["low"]))

    def test_units(self):
        one = self.answer("--lookup=1us", "--size=4K", "--updates=0.02")
        self.assertEqual((one["load"]["lookup"], one["load"]["size"], one["load"]["updates"]), (1000, 4096, 0.02))


class Refusals(Case):
    def test_bad_values_name_the_option_and_the_value(self):
        for option, value, message in (
                ("--threads", "0", "argument --threads: '0' is not a whole number from 1 to 100000"),
                ("--threads", "many", "argument --threads: 'many' is not a whole number"),
                ("--threads", "2.5", "argument --threads: '2.5' is not a whole number"),
                ("--threads", "nan", "argument --threads: 'nan'"), ("--threads", "-1", "--threads"),
                ("--threads", "1e400", "argument --threads: '1e400'"),
                ("--updates", "2", "argument --updates: '2' is not a share from 0 to 100%"),
                ("--updates", "101%", "argument --updates: '101%'"), ("--updates", "x", "argument --updates: 'x'"),
                ("--updates", "", "argument --updates: ''"), ("--updates", "1.2.3%", "argument --updates: '1.2.3%'"),
                ("--lookup", "3 days", "argument --lookup: '3 days' is not a time from 0 ns to 1 s"),
                ("--lookup", "2s", "argument --lookup: '2s'"), ("--size", "0", "argument --size: '0'"),
                ("--live", "0.1", "argument --live: '0.1'"), ("--ops-per-section", "0", "--ops-per-section"),
                ("--buckets", "-3", "--buckets"), ("--cpus", "1e9", "argument --cpus: '1e9'"),
                ("--far", "0", "argument --far: '0' is not a time from 1 ns"),
                ("--current", "luck", "argument --current: invalid choice: 'luck'"),
                ("--data", "odd", "argument --data: invalid choice: 'odd'")):
            with self.subTest(option=option, value=value):
                others = [one for one in LOAD if not one.startswith(option)]
                self.refused(message, *others, f"{option}={value}")

    def test_what_is_missing(self):
        self.refused("required: --threads, --updates")
        self.refused("required: --updates", "--threads=2")

    def test_contradictions(self):
        self.refused("--nodes 4 is more than --cpus 2", *LOAD, "--cpus=2", "--nodes=4")
        self.refused("--current buckets needs --buckets", *LOAD, "--current=buckets")
        self.refused("then a section takes no time", *LOAD, "--lookup=0", "--between=0")
        self.refused("a seqlock has one counter", *LOAD, "--buckets=2", "--current=seqlock")

    def test_unknown_words(self):
        self.refused("unknown command 'guess': advise, calibrate, check, figures, hash, record", "guess")
        self.refused("unrecognized arguments: --thread", *LOAD, "--thread=2")

    def test_bad_calibrations(self):
        def refused(message, text):
            self.machine.write_text(text)
            self.refused(message, *LOAD, f"--calibration={self.machine}", status=1)
        document = invented_machine.document()
        refused("it is not JSON", "{")
        refused("it is not a calibration of prudence-calibrate", "[]")
        refused("its format is 2, and this program reads 1", json.dumps(document | {"format": 2}))
        costs = dict(document["costs"])
        del costs["mutex"]
        refused("it lacks mutex", json.dumps(document | {"costs": costs}))
        for bad in (1, {}, {"cpus": 0, "load": {"threads": 1}, "rates": {}}, {"cpus": 2, "load": {"threads": 1}, "rates": {"rcu": 0}},
                    {"cpus": 2, "load": {"threads": "x"}, "rates": {}}):
            refused("check 1: it lacks", json.dumps(document | {"checks": [bad]}))
        later = {"cpus": 8, "load": {"threads": 8, "later": 1}, "rates": {"rcu": 1}}
        refused("a check of another version", json.dumps(document | {"checks": [later]}))
        refused("clock: 'median' is not a number of nanoseconds above 0",
                json.dumps(document | {"costs": document["costs"] | {"clock": {"median": 0, "q1": 1, "q3": 1}}}))
        self.refused("/nowhere: No such file", *LOAD, "--calibration=/nowhere", status=1)

    def test_other_commands(self):
        self.refused("PROGRAM is missing", "record")
        self.refused("does not end in .svg, .png or .pdf", "calibrate", "--picture=x.gif")
        self.refused("--repeats: '2'", "calibrate", "--repeats=2")
        self.refused("No such file", "calibrate", "--show", f"--file={self.folder}/none", status=1)


class Calibrate(Case):
    def test_measures_shows_and_draws(self):
        kept = self.folder / "cache/prudence/calibration.json"
        done = self.run_program("calibrate", "--repeats=3", "--seconds=0.0001", f"--picture={self.folder}/costs.svg")
        self.assertEqual(done.returncode, 0, done.stderr)
        for row in ("instruction", "atomic increment", "clock read", "mutex", "read section, fence-free", "hazard pointer, fence-free",
                    "grace period, fenced", "grace period, qsbr", "t_f", "t_c"):
            self.assertIn(row, done.stdout)
        self.assertIn("<svg", (self.folder / "costs.svg").read_text())
        document = json.loads(kept.read_text())
        self.assertEqual(document["host"]["cpus"], len(os.sched_getaffinity(0)))
        for name, cost in document["costs"].items():
            ordered = [cost[key] for key in ("min", "q1", "median", "q3", "max")]
            self.assertEqual(ordered, sorted(ordered), name)
            self.assertGreater(cost["min"], 0, name)
        shown = self.advise("calibrate", "--show", "--json")
        self.assertEqual(json.loads(shown.stdout), document)
        # Advice uses the kept check, and does not measure again.
        before = kept.stat().st_mtime_ns
        done = self.advise(*LOAD)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(kept.stat().st_mtime_ns, before)

    def test_another_machines_calibration_is_not_used(self):
        kept = self.folder / "cache/prudence/calibration.json"
        kept.parent.mkdir(parents=True)
        kept.write_text(self.machine.read_text())
        with mock.patch.object(machine, "measure", return_value=self.of_this_machine()) as measured:
            done = self.advise(*LOAD)
        self.assertEqual((done.returncode, measured.call_count), (0, 1), done.stderr)
        self.assertIn("is of another machine", done.stderr)
        self.assertNotEqual(json.loads(kept.read_text())["host"]["cpu"], "Invented")

    def test_a_cache_that_cannot_be_written_is_no_failure(self):
        (self.folder / "cache").write_text("a file")
        done = self.advise("calibrate", "--repeats=3", "--seconds=0.0001")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the calibration is not kept", done.stderr)

    def test_the_program_refuses(self):
        program = BUILD / "bin/prudence-calibrate"
        for arguments, message in ((["--repeats=x"], "--repeats: 'x' is not a number"),
                                   (["--seconds=0"], "--seconds: '0' is not"), (["word"], "'word'")):
            done = self.run_program(*arguments, program=program)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)

    @unittest.skipUnless(shutil.which("taskset"), "needs taskset")
    def test_one_cpu(self):
        cpu = min(os.sched_getaffinity(0))
        done = self.run_program("-c", str(cpu), BUILD / "bin/prudence-calibrate", "--repeats=3", "--seconds=0.0001",
                           program="taskset")
        document = json.loads(done.stdout)
        self.assertEqual((document["transfers"], document["host"]["cpus"]), ([], 1))
        self.machine.write_text(json.dumps(document))
        self.assertIn("one CPU could be measured", " ".join(self.answer("--cpus=4")["assumed"]))


class Check(Case):
    def check(self, *arguments):
        done = self.advise("check", f"--calibration={self.machine}", "--threads=2", "--updates=10%", "--repeats=1",
                           "--seconds=0.03", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_each_mechanism_runs_the_load(self):
        answer = json.loads(self.check("--buckets=8", "--ops-per-section=3", "--json"))
        self.assertEqual({row["name"] for row in answer["rows"]},
                         {"mutex", "spinlock", "rwlock", "brlock", "buckets", "seqlock", "rcu", "hazard"})
        for row in answer["rows"]:
            self.assertGreater(row["least"], 0)
            self.assertAlmostEqual(row["ratio"], row["measured"] / row["expected"]["median"])
            for key in ("waiting", "beside_reader"):
                self.assertEqual(key in row, row["name"] in ("rcu", "hazard"))
            if "beside_reader" in row:  # the object that the reader has waits at least
                self.assertGreaterEqual(row["beside_reader"]["waiting"], 1)
                self.assertEqual(row["beside_reader"]["bytes"], 64 * row["beside_reader"]["waiting"])

    def kept_after(self, others, *arguments):
        """The checks in the calibration after one that found the model's rates, half of it for brlock."""
        kept = self.folder / "cache/prudence/calibration.json"
        machine.save(self.of_this_machine(), kept)
        rows = [{"name": "rcu", "measured": 1e6}, {"name": "brlock", "measured": 5e5}]
        with mock.patch.object(check, "compare", return_value={"others": others, "cpus": 2, "rows": rows}):
            done = self.advise("check", "--threads=2", "--updates=10%", "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(kept.read_text()).get("checks", []), done.stderr

    def test_what_is_found_is_kept_for_later_answers(self):
        checks, said = self.kept_after(0.01)
        self.assertEqual((len(checks), checks[0]["rates"], said), (1, {"rcu": 1e6, "brlock": 5e5}, ""))
        self.assertEqual(mechanisms.Load(**checks[0]["load"]).updates, 0.1)
        answer = json.loads(self.advise("--threads=2", "--updates=2%", "--json").stdout)
        self.assertEqual(answer["model_error"]["here"], True)
        # The check outlives a calibration of the same machine, and not one of another.
        with mock.patch.object(machine, "measure", return_value=self.of_this_machine()):
            self.assertEqual(self.advise("calibrate").returncode, 0)
        kept = self.folder / "cache/prudence/calibration.json"
        self.assertEqual(json.loads(kept.read_text())["checks"], checks)

    def test_what_is_not_kept_says_why(self):
        checks, said = self.kept_after(0.3)
        self.assertEqual(checks, [])
        self.assertIn("other programs had 30 % of the CPUs' time", said)
        for option in ("--cpus=64", "--far=200ns", f"--calibration={self.machine}"):
            checks, said = self.kept_after(0.01, option)
            self.assertEqual(checks, [])
            self.assertIn("not those of this machine's own calibration", said)

    def test_a_disturbed_run_is_done_again(self):
        runs = [check.Sample(1.0, 0, 0.5), check.Sample(2.0, 0, 0.05), check.Sample(3.0, 0, 0.0)]
        with mock.patch.object(check, "run", side_effect=runs):
            self.assertEqual(check.undisturbed("x", "mutex", None, 0.1).rate, 2.0)
        with mock.patch.object(check, "run", side_effect=[check.Sample(float(n), 0, 0.5 - n / 100) for n in range(check.TRIES)]):
            self.assertEqual(check.undisturbed("x", "mutex", None, 0.1).rate, check.TRIES - 1)

    def test_as_a_table(self):
        said = self.check("--size=3", "--updates=1", "--live=1")
        self.assertIn("RCU with Prudence", said)
        self.assertEqual(said.count("With a reader that stayed for the whole run: "), 2)
        self.assertIn("Rank correlation", said)

    def sections(self, *arguments):
        """A second, with a mutex; the median of some runs, because the CPU may have become faster after work was measured out."""
        found = []
        for _ in range(9):
            done = self.run_program("mutex", *arguments, program=BUILD / "bin/prudence-trial")
            self.assertEqual(done.returncode, 0, done.stderr)
            found.append(float(done.stdout.split()[0]))
        self.assertGreater(min(found), 0)
        return statistics.median(found)

    def test_work_takes_the_time_that_was_asked_for(self):
        self.assertLess(self.sections("--lookup=100000", "--between=100000", "--seconds=0.02"), 1.3 * 5000)

    def test_a_run_that_is_shorter_than_a_section(self):
        """100 sections a second; earlier work does not count, and one is waited for."""
        self.assertLess(self.sections("--threads=2", "--lookup=10000000", "--seconds=0.00001"), 2.6 * 100)

    def test_refusals(self):
        self.refused("--repeats: '0'", "check", *LOAD, "--repeats=0")
        self.refused("at most 1024 threads", "check", "--threads=2000", "--updates=0")
        for arguments, message in (([], "MECHANISM is missing"), (["luck"], "'luck' is not one of mutex"),
                                   (["rcu", "--updates=x"], "--updates: 'x'"), (["rcu", "--size=4"], "--size: '4'"),
                                   (["rcu", "mutex"], "'mutex' is not one of"),
                                   (["mutex", "--stays"], "--stays is for rcu and hazard, not for mutex")):
            done = self.run_program(*arguments, program=BUILD / "bin/prudence-trial")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)


def without_drawing():
    """A picture's figure is made, and an empty one is on the page: drawing takes nearly all of the time."""
    from prudence_advise import pictures

    def empty(figure):
        pictures.plt.close(figure)
        return "<svg/>"
    return contextlib.nullcontext() if DEEP else mock.patch.object(pictures, "svg", empty)


class Hash(Case):
    def setUp(self):
        super().setUp()
        self.measured = self.folder / "measured.json"
        self.measured.write_text(json.dumps(invented_hashes.document(cpus=2)))

    def run_trial(self, name, length):
        done = self.run_program(name, f"--threads={1 if name == 'ideal' else 2}", "--updates=0.5", f"--seconds={length}", "--lambda=100",
                                "--buckets=64", program=BUILD / "bin/prudence-hash-trial")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [float(word) for word in done.stdout.split()]

    def test_each_mechanism_runs(self):
        for name in ("ideal", "rcu", "prudence", "hazard", "brlock", "bkt", "bktcl", "bktrw", "globalrw", "global"):
            defers = name in ("rcu", "prudence", "hazard")
            for length in (0.01, 0.1, 1, 10):  # longer where other programs have the CPUs
                rate, waiting, grace_periods, share = self.run_trial(name, length)
                self.assertTrue(rate > 0 and share >= 0, name)
                if not defers or waiting + grace_periods > 0:
                    break
            self.assertEqual(waiting + grace_periods > 0, defers, name)

    def test_a_page_from_what_was_kept(self):
        page, again = self.folder / "hash.html", self.folder / "again.json"
        with without_drawing():
            done = self.advise("hash", f"--read={self.measured}", f"--output={page}", f"--save={again}", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        for one in json.loads(done.stdout):
            self.assertEqual(set(one), {"figure", "line", "claim", "verdict", "seen", "reason"})
        text = page.read_text()
        self.assertEqual(text.count("<svg"), 11)
        for number in ("2.3 to 2.8", "2.12 and 2.13", *(f"8.{i}" for i in range(1, 7)), "D.1", "D.2", "D.3"):
            self.assertRegex(text, rf"\(Figures? {number}[):]")
        for words in ("It is about 4 CPUs; 2 could be measured.", "L6335", "L6334", "memory of locks"):
            self.assertIn(words, text)
        self.assertNotIn("Other programs ran", text)
        self.assertEqual(json.loads(again.read_text()), json.loads(self.measured.read_text()))

    def test_refusals(self):
        self.refused("/nowhere: No such file", "hash", "--read=/nowhere", status=1)
        self.refused("it was not saved by prudence-advise hash", "hash", f"--read={self.machine}", status=1)
        self.refused("--repeats: '0'", "hash", "--repeats=0")
        for option in ("--save", "--output"):  # before it measures
            self.refused("/nowhere/x: No such file", "hash", "--repeats=1000", "--seconds=1", f"{option}=/nowhere/x", status=1)
        self.measured.write_text(json.dumps(invented_hashes.document(cpus=2) | {"format": 9}))
        self.refused("its format is 9, and this program reads 1", "hash", f"--read={self.measured}", status=1)
        cpus = len(os.sched_getaffinity(0)) + 1
        self.machine.write_text(json.dumps(invented_machine.document(cpus, 1)))
        self.refused(f"the calibration is of {cpus} CPUs", "hash", f"--calibration={self.machine}", status=1)
        for arguments, message in ((["ideal", "--threads=2"], "ideal does not lock"), (["bkt", "--buckets=48"], "a power of two"),
                                   (["luck"], "'luck' is not"), ([], "MECHANISM is missing"), (["bkt", "global"], "one mechanism")):
            done = self.run_program(*arguments, program=BUILD / "bin/prudence-hash-trial")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)


class Figures(Case):
    def test_one_page(self):
        page = self.folder / "figures.html"
        with without_drawing():
            done = self.advise("figures", f"--output={page}", f"--calibration={self.machine}")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = page.read_text()
        self.assertGreaterEqual(text.count("<svg"), 8)
        for words in ("Figures 7.3 to 7.7", "Figures 7.8 to 7.10", "Figures 7.11 to 7.25", "Invented", "Our grace periods"):
            self.assertIn(words, text)
        self.assertNotIn("http://prudence", text)

    def test_a_folder_that_is_not_there(self):
        self.refused("No such file or directory", "figures", "--output=/nowhere/x.html",
                     f"--calibration={self.machine}", status=1)


PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, buckets[16];
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static int open_now;
static void use_table(int write)
{
    (write ? pthread_rwlock_wrlock : pthread_rwlock_rdlock)(&table);
    pthread_rwlock_unlock(&table);
}
static void *work(void *unused)
{
    pthread_mutex_lock(&gate);
    while (!open_now)
        pthread_cond_wait(&opened, &gate);
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < 10000; i++) {
        use_table(i % 100 == 0);
        if (pthread_mutex_trylock(&buckets[i % 16]) == 0)
            pthread_mutex_unlock(&buckets[i % 16]);
    }
    return unused;
}
int main(int argc, char **argv)
{
    pthread_t threads[3];
    for (int i = 0; i < 16; i++)
        pthread_mutex_init(&buckets[i], NULL);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    pthread_mutex_lock(&gate);
    open_now = 1;
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 100; i++) {
        pthread_mutex_t *own = malloc(sizeof *own);
        pthread_mutex_init(own, NULL);
        pthread_mutex_lock(own);
        pthread_mutex_unlock(own);
        pthread_mutex_destroy(own);
        free(own);
    }
    write(1, "output\n", 7);
    if (argc > 1 && !strcmp(argv[1], "fork")) {
        if (fork() == 0) {
            for (int i = 0; i < 1000; i++)
                use_table(0);
            exit(0);
        }
        wait(NULL);
    }
    if (argc > 1 && !strcmp(argv[1], "abort"))
        abort();
    return argc > 1 && !strcmp(argv[1], "fail") ? 7 : 0;
}
"""


@unittest.skipUnless(shutil.which("cc"), "needs a C compiler")
class Record(Case):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="prudence-record-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.program = Path(folder.name) / "program"
        source = cls.program.with_suffix(".c")
        source.write_text(PROGRAM)
        subprocess.run(["cc", "-g", "-O1", "-pthread", "-fno-optimize-sibling-calls", "-o", cls.program, source], check=True)

    def record(self, *arguments, status=0):
        file = self.folder / "answer.json"
        done = self.run_program("record", "--json", f"--output={file}", f"--calibration={self.machine}", "--",
                           self.program, *arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "output\n")
        return json.loads(file.read_text()) if file.exists() else done.stderr

    def of_kind(self, answer, kind, acquisitions):
        found = [row for row in answer["locks"] if row["kind"] == kind and row["acquisitions"] == acquisitions]
        self.assertEqual(len(found), 1, answer["locks"])
        return found[0]

    def test_counts_are_exact(self):
        answer = self.record()
        table = self.of_kind(answer, "rwlock", 30000)
        self.assertEqual((table["locks"], table["threads"], table["updates"]), (1, 3, 0.01))
        self.assertIn("use_table", table["place"])
        # A lock that is asked for by trylock may be busy. Destroyed locks, though at one address, are all of one place.
        buckets = [row for row in answer["locks"] if row["locks"] == 16]
        self.assertTrue(len(buckets) == 1 and 0 < buckets[0]["acquisitions"] <= 30000)
        own = self.of_kind(answer, "mutex", 100)
        self.assertEqual((own["threads"], own["candidate"]), (1, False))
        gate = self.of_kind(answer, "mutex", 4)
        self.assertEqual(gate["locks"], 1)
        self.assertEqual([outcome["updates"] for outcome in gate["outcomes"]], [0.0, 0.01, 0.1])
        self.assertEqual((answer["processes"], answer["not_counted"]), (1, 0))

    def test_forked_children_count(self):
        answer = self.record("fork")
        self.of_kind(answer, "rwlock", 31000)
        self.assertEqual(answer["processes"], 2)

    def test_the_programs_status_is_kept(self):
        self.record("fail", status=7)

    def test_a_program_that_dies_leaves_no_record(self):
        self.assertIn("wrote no record", self.record("abort", status=1))

    def test_text_goes_next_to_the_programs_output(self):
        done = self.run_program("--record", f"--calibration={self.machine}", self.program)
        self.assertEqual((done.returncode, done.stdout), (0, "output\n"))
        self.assertIn("acquisitions by 3 threads, 1 % of them updates", done.stderr)
        self.assertRegex(done.stderr, r"places that lock, \w+ candidates? for RCU")

    def test_a_program_that_is_not_there(self):
        self.refused("/nowhere/x: No such file", "record", f"--calibration={self.machine}", "/nowhere/x", status=127)

    def test_an_answer_that_cannot_be_written(self):
        ran = self.folder / "ran"
        self.refused("/nowhere/x: No such file", "record", "--output=/nowhere/x", f"--calibration={self.machine}", "touch", ran, status=1)
        self.assertFalse(ran.exists())

    def test_a_program_without_locks(self):
        done = self.run_program("record", f"--calibration={self.machine}", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("0 places that lock", done.stderr)


class Installed(Case):
    def test_it_runs_where_it_is_installed_and_moved_to(self):
        place, moved = self.folder / "usr", self.folder / "moved"
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", place], text=True, capture_output=True, check=False)
        if done.returncode:
            self.skipTest(f"not everything is built: {done.stderr.strip().splitlines()[-1]}")
        place.rename(moved)
        done = self.run_program(*LOAD, f"--calibration={self.machine}", program=moved / "bin/prudence-advise")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_program("calibrate", "--repeats=3", "--seconds=0.0001", program=moved / "bin/prudence-advise")
        self.assertEqual(done.returncode, 0, done.stderr)
        package = moved / "share/prudence/prudence_advise"
        self.assertEqual({one.name for one in package.iterdir()} - {"__pycache__"},
                         {one.name for one in (ROOT / "programs/advise/prudence_advise").iterdir()} - {"__pycache__"})
        if DEEP:
            done = self.run_program("figures", f"--output={self.folder}/page.html", f"--calibration={self.machine}",
                                    program=moved / "bin/prudence-advise")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((moved / "share/man/man1/prudence-advise.1").is_file())

    def test_help_of_each_command(self):
        for arguments in ([], ["calibrate"], ["check"], ["figures"], ["hash"], ["record"]):
            done = self.advise(*arguments, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("usage: prudence-advise", done.stdout)

    def test_interrupted(self):
        running = subprocess.Popen([ADVISE, "calibrate", "--repeats=1001"], stderr=subprocess.PIPE, text=True,
                                   stdout=subprocess.DEVNULL, start_new_session=True,
                                   env=os.environ | {"XDG_CACHE_HOME": str(self.folder)})
        while not subprocess.run(["pgrep", "-g", str(running.pid), "prudence-calib"], check=False,
                                 capture_output=True).stdout:
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGINT)
        _, said = running.communicate()
        self.assertEqual(running.returncode, 130)
        self.assertIn("interrupted", said)
        self.assertNotIn("Traceback", said)


if __name__ == "__main__":
    unittest.main()
