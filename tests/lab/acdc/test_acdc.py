#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""acdc as a program: the counts against the formulas, refusals, the output."""

import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "tools/release"))
import source  # noqa: E402 (the path comes first)
ACDC = BUILD / "bin/acdc"
ALL_MODELS = [["persistent"], ["none"], ["deferred"], ["deferred", "--reclaimer=liburcu"],
              ["short-term"], ["short-term", "--collection=eager"]]
WORD = (1 << 64) - 1


def acdc(*options, **more):
    return subprocess.run([ACDC, *options], text=True, errors="replace", capture_output=True, timeout=200, **more)


def measure(*options):
    done = acdc("--json=-", *options)
    if done.returncode:
        raise AssertionError(f"{options}: {done.stderr}")
    return json.loads(done.stdout)


MODELS = [model for model in ALL_MODELS
          if "was built without" not in acdc("--model", *model, "-d1", "-Q").stderr]


# ------------------------------------------------------- the formulas once more, in another language

def mix(value):
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9 & WORD
    value = (value ^ value >> 27) * 0x94d049bb133111eb & WORD
    return value ^ value >> 31


class Chance:
    def __init__(self, seed, stream):
        self.state = mix((mix(seed) + stream) & WORD)

    def next(self):
        self.state = (self.state + 0x9e3779b97f4a7c15) & WORD
        return mix(self.state)

    def below(self, bound):
        return self.next() * bound >> 64


class Expected:
    """The counts that one run must have: the thesis' Algorithms 1, 2 and 4 without any memory."""

    def __init__(self, threads=1, duration=100, quantum=1 << 18, sizes=(4, 8), livenesses=(1, 10),
                 multiplier=1, objects=0, share=0, receivers=0, tree=0, seed=1):
        self.rounds = self.objects = self.bytes = self.shared = 0
        self.by_class = {size: [0, 0] for size in range(sizes[0], sizes[1] + 1)}
        self.by_liveness = dict.fromkeys(range(livenesses[0], livenesses[1] + 1), 0)
        for number in range(threads):
            chance, time, allocated = Chance(seed, number), 0, 0
            while time < duration:
                size_class = sizes[0] + chance.below(sizes[1] - sizes[0] + 1)
                liveness = livenesses[0] + chance.below(livenesses[1] - livenesses[0] + 1)
                chance.below(100)  # list or tree
                count = objects or ((sizes[1] - size_class + 1) ** 2 *
                                    (livenesses[1] - liveness + 1) ** 2 * multiplier
                                    // (threads * livenesses[1]))
                sharing = count * share // 100
                for turn in range(count):
                    if turn == sharing and sharing:
                        self.choose(chance, threads, receivers)
                    size = 1 << size_class
                    if size_class < sizes[1]:
                        size += chance.below(size)
                    allocated += size
                    self.bytes += size
                    self.by_class[size_class][1] += size
                if sharing == count and sharing:
                    self.choose(chance, threads, receivers)
                self.by_class[size_class][0] += count
                self.by_liveness[liveness] += count
                self.rounds += 1
                self.objects += count
                self.shared += sharing
                if allocated >= quantum:
                    time, allocated = time + 1, 0

    @staticmethod
    def choose(chance, threads, receivers):
        for _ in range(1 + (threads - 1) * receivers // 100):  # the group's seed, and the others
            chance.next()


class Counts(unittest.TestCase):
    def check(self, run, expected):
        counts = run["counts"]
        self.assertEqual(counts["rounds"], expected.rounds)
        self.assertEqual(counts["allocated_objects"], expected.objects)
        self.assertEqual(counts["allocated_bytes"], expected.bytes)
        self.assertEqual(counts["freed_objects"], expected.objects)
        self.assertEqual(counts["freed_bytes"], expected.bytes)
        self.assertEqual(counts["shared_objects"], expected.shared)
        self.assertEqual(run["operations"]["allocate"]["count"], expected.objects)
        self.assertEqual({row["size_class"]: [row["objects"], row["bytes"]]
                          for row in run["sizes"]}, expected.by_class)
        self.assertEqual({row["liveness"]: row["objects"] for row in run["livenesses"]},
                         expected.by_liveness)

    def test_exactly_the_formulas_in_every_model(self):
        expected = Expected(threads=3, duration=12, quantum=20000, sizes=(3, 12), multiplier=2,
                            share=20, receivers=100, seed=7)
        for model in MODELS:
            with self.subTest(model=model):
                self.check(measure("-n3", "-d12", "-t20000", "-s3", "-S12", "--multiplier=2", "-O",
                                   "-R20", "-r7", "--model", *model), expected)

    def test_many_settings(self):
        for options, settings in (
                ([], {"duration": 100}),
                (["-d5", "-t1"], {"duration": 5, "quantum": 1}),
                (["-d20", "-s3", "-S3"], {"duration": 20, "sizes": (3, 3)}),
                (["-d9", "-l4", "-L4", "-r99"], {"duration": 9, "livenesses": (4, 4), "seed": 99}),
                (["-d9", "-F17", "-b40", "-D3"], {"duration": 9, "objects": 17, "tree": 40}),
                (["-d9", "-n2", "-O", "-R100", "-T0", "-A"],
                 {"duration": 9, "threads": 2, "share": 100}),
                (["-d3", "-n100", "--multiplier=100", "-t2^14", "-O", "-R50", "-T25"],
                 {"duration": 3, "threads": 100, "multiplier": 100, "quantum": 1 << 14,
                  "share": 50, "receivers": 25})):
            with self.subTest(options=options):
                self.check(measure(*options), Expected(**settings))

    def test_one_thread_is_the_same_in_all_figures(self):
        options = ("-d30", "-O", "-A", "-b50", "-D2", "--samples=30")

        def figures():
            run = measure(*options)
            return [run["counts"], run["sizes"], run["livenesses"],
                    [(row["time"], row["live_objects"], row["live_bytes"])
                     for row in run["samples"]]]
        first = figures()
        self.assertEqual(len(first[3]), 30)
        self.assertEqual(figures(), first)

    def test_another_seed_is_another_run(self):
        one, other = measure("-d5", "-r1"), measure("-d5", "-r2")
        self.assertNotEqual(one["counts"], other["counts"])

    def test_live_memory_is_what_the_lifetimes_say(self):
        """A size and a liveness: this much is live after each tick, from the first lifetime on."""
        run = measure("-d20", "-F10", "-s6", "-S6", "-l3", "-L3", "-D1", "-t6400")
        live = [row["live_bytes"] for row in run["samples"]]
        self.assertEqual(live, [6400, 12800, 19200] + [19200] * 17)
        self.assertEqual(run["memory"]["steady_live_bytes"], 19200)

    def test_deferred_share(self):
        for share in (0, 25, 100):
            run = measure("-d10", "--model=deferred", f"--deferred-share={share}")
            deferred, freed = (run["operations"].get(name, {"count": 0})["count"]
                               for name in ("defer", "free"))
            self.assertEqual(run["counts"]["deferred_objects"], deferred)
            self.assertAlmostEqual(deferred, (deferred + freed) * share / 100, delta=1)

    def test_refreshes_and_ticks(self):
        """A local object of liveness l is refreshed at each of its first max(1, l - 1) ticks."""
        if ["short-term"] not in MODELS:
            self.skipTest("built without short-term memory")
        run = measure("-d20", "-F10", "-s6", "-S6", "-l3", "-L3", "-t6400", "--model=short-term")
        self.assertEqual(run["operations"]["tick"]["count"], 20)
        self.assertEqual(run["operations"]["refresh"]["count"], 100 * (20 + 19))


class Refused(unittest.TestCase):
    def refused(self, text, *options):
        done = acdc(*options)
        self.assertEqual(done.returncode, 64, options)
        self.assertIn(text, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_values(self):
        for option in ("--threads=0", "--threads=4097", "--threads=x", "--threads=", "--threads=-1",
                       "--duration=0", "--time-quantum=0", "--max-drift=-1", "--seed=a",
                       "--min-size=31", "--max-size=99", "--min-liveness=0", "--max-liveness=0",
                       "--deallocation-delay=-1", "--multiplier=0", "--objects=0",
                       "--list-share=101", "--tree-share=-1", "--think=x", "--write-ratio=200",
                       "--write-iterations=0", "--share-ratio=101", "--receiver-ratio=1e9",
                       "--timed=x", "--samples=-2", "--deferred-share=101", "--time-quantum=2^64"):
            name, _, value = option.partition("=")
            self.refused(f"{name}: '{value}' is not a number from", option)

    def test_names(self):
        self.refused("--model: 'fast' is not persistent, short-term, deferred or none",
                     "--model=fast")
        self.refused("--reclaimer: 'x' is not prudence or liburcu", "--reclaimer=x")
        self.refused("--collection: 'x' is not lazy or eager", "--collection=x")
        self.refused("'size' is not an option", "size")
        self.refused("unrecognized option '--size=1'", "--size=1")

    def test_combinations(self):
        for text, *options in (
                ("--min-size 9 is above --max-size 8", "-s9"),
                ("--min-liveness 11 is above --max-liveness 10", "-l11"),
                ("--list-share 60 and --tree-share 60 do not add up to 100", "-q60", "-b60"),
                ("--multiplier and --objects", "--multiplier=2", "--objects=3"),
                ("--multiplier 1 is too small for --threads 1000", "-n1000"),
                ("--share-ratio needs --shared", "-R10"),
                ("--receiver-ratio needs --shared", "-T10"),
                ("--false-sharing needs --shared and --access", "--false-sharing", "-O"),
                ("--write-ratio needs --access", "-w10"),
                ("--write-iterations needs --access", "-i1"),
                ("--reclaimer needs --model deferred", "--reclaimer=prudence"),
                ("--deferred-share needs --model deferred", "--deferred-share=1"),
                ("--collection needs --model short-term", "--collection=lazy"),
                ("only one of them can be -", "--json=-", "--csv=-")):
            self.refused(text, *options)

    def test_scripts_for_the_public_tool(self):
        run = measure("--original", "-a", "-d20", "-w20", "-i2", "-R30", "-T50", "-F50", "-s6", "-l3")
        self.assertEqual(run["counts"]["shared_objects"], 0)
        self.assertEqual(run["counts"]["allocated_bytes"], 64 * run["counts"]["allocated_objects"])
        self.assertTrue(run["settings"]["original"])
        self.assertFalse(measure("-d1")["settings"]["original"])

    def test_what_the_old_tool_divided_by(self):
        """Duration twice the liveness, and no receivers."""
        run = measure("-d20", "-L10", "-O", "-T0", "-n2")
        self.assertEqual(run["counts"]["received_objects"], run["counts"]["shared_objects"])


class Written(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_table(self):
        done = acdc("-d20", "-O", "-A", "-n2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in ("acdc: persistent memory: malloc and free; malloc is that of", "allocate",
                     "objects shared", "live, on average", "resident, peak", "objects by size",
                     "objects by liveness"):
            self.assertIn(text, done.stdout)
        self.assertEqual(acdc("-d20", "-Q").stdout, "")

    def test_files(self):
        paths = {name: self.folder / name for name in ("json", "csv", "csv-samples")}
        done = acdc("-d20", "-Q", *(f"--{name}={path}" for name, path in paths.items()))
        self.assertEqual(done.returncode, 0, done.stderr)
        run = json.loads(paths["json"].read_text())
        (row,) = csv.DictReader(io.StringIO(paths["csv"].read_text()))
        self.assertEqual(row["settings.threads"], "1")
        self.assertEqual(int(row["counts.allocated_objects"]), run["counts"]["allocated_objects"])
        self.assertEqual(row["settings.access"], "0")
        samples = list(csv.DictReader(io.StringIO(paths["csv-samples"].read_text())))
        self.assertEqual([int(row["live_bytes"]) for row in samples],
                         [row["live_bytes"] for row in run["samples"]])
        self.assertTrue(all(int(row["resident_bytes"]) > 0 for row in samples))

    def test_operations_are_timed(self):
        run = measure("-d20", "--timed=4", "-A")
        for operation in run["operations"].values():
            self.assertAlmostEqual(operation["timed"], operation["count"] / 4,
                                   delta=operation["count"] / 4)
            self.assertGreater(operation["mean_ns"], 0)
            if "cycles" in operation:
                cycles = operation["cycles"]
                self.assertLessEqual(cycles["min"], cycles["mean"])
                self.assertLessEqual(cycles["p50"], cycles["p99"])
                self.assertLessEqual(cycles["p99"], cycles["max"])
        self.assertEqual(measure("-d5", "--timed=0")["operations"]["allocate"]["timed"], 0)

    def test_samples_are_no_more_than_asked(self):
        self.assertEqual(measure("-d20", "--samples=0")["samples"], [])
        self.assertIsNone(measure("-d20", "--samples=0")["memory"]["steady_live_bytes"])
        self.assertEqual([row["time"] for row in measure("-d20", "--samples=5")["samples"]],
                         [4, 8, 12, 16, 20])
        self.assertIsNone(measure("-d9")["memory"]["steady_live_bytes"])

    def test_a_file_that_cannot_be_written(self):
        done = acdc("-d1", f"--json={self.folder}/none/x")
        self.assertEqual(done.returncode, 1)
        self.assertIn("acdc: --json: ", done.stderr)

    def test_out_of_memory(self):
        done = subprocess.run(
            ["bash", "-c", 'ulimit -v 400000; exec "$0" -F1000 -s20 -S20 -t1G -d5 -Q', ACDC],
            text=True, capture_output=True, timeout=100)
        self.assertEqual(done.returncode, 1)
        self.assertIn("acdc: out of memory after", done.stderr)

    def test_version_and_help(self):
        self.assertEqual(acdc("--version").stdout, f"acdc {source.version(mark='-')}\n")
        text = acdc("--help").stdout
        page = (BUILD / "man/acdc.1").read_text().replace("\\-", "-")
        for option in {word.split("=")[0].strip(",") for word in text.split()
                       if word.startswith("--")} - {"--help", "--usage", "--version"}:
            self.assertIn(option, page)

    def test_what_scripts_of_the_old_tool_say(self):
        self.assertEqual(acdc("-a", "-d5", "-N1000", "-C1000", "-H1000", "-A", "-Q").returncode, 0)
        # Passes the arguments of the old tool's run script.
        old = acdc("-P", "jemalloc", "-a", "-d5", "-W", "-v", "-v", "-r", "1")
        self.assertEqual(old.returncode, 0, old.stderr)
        self.assertIn("jemalloc: 1 thread", old.stdout)
        samples = old.stdout.split("samples of memory\n")[1].splitlines()
        self.assertEqual(samples[0].split(",")[0], "time")
        self.assertGreater(len(samples), 2)

    def test_label(self):
        for label in "mimalloc 3", "größer":
            settings = json.loads(acdc("-d5", "-P", label, "--json", "-").stdout)["settings"]
            self.assertEqual(settings["label"], label)
        self.assertNotIn("label", json.loads(acdc("-d5", "--json", "-").stdout)["settings"])
        for label in "", "a,b", 'a"b', "a\nb", b"\xff":
            refused = acdc("-d5", "-P", label)
            self.assertEqual(refused.returncode, 64)
            self.assertIn("--label", refused.stderr)
        refused = acdc("-d5", "-v", "-Q")
        self.assertIn("--verbose and --quiet", refused.stderr)


if __name__ == "__main__":
    unittest.main()
