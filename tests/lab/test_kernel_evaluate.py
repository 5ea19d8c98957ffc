#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (it tests reports of measurements; none of it is in the library)
"""lab/reproduce/kernel-evaluate without a boot: refusals, reading the output of a guest, going on after an interruption, verdicts, its report."""

import contextlib
import copy
import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "lab/reproduce"), str(ROOT / "tests/repo")]
from measure import keep  # noqa: E402 (the path comes first)
from experiments.kernel_evaluate import figures, page, plan, run as evaluate, verdict  # noqa: E402

TWO = verdict.Machine(2, 1)
SIZES = "object_size 200 slab_size 256 objs_per_slab 16 order 0"


def guest(allocations=50000, refills=500, slabs=40, ours=False, peak=640, busy=1000000, churns=3):
    """Returns the output of the guest; `ours`: filp is Prudence's."""
    theirs = 0 if ours else allocations
    text = [f"SLUB before filp {SIZES} total_objects 64 alloc_fastpath 100 alloc_slowpath 0 free_fastpath 60 free_slowpath 0 alloc_slab 4 free_slab 0",
            "LOAD wall_ns 2000000 busy_ns %d status 0" % busy, f"PEAK filp kb {peak // 4 + 16 * ours} objects_latent 7", "PEAK memory kb 4000",
            f"SLUB after filp {SIZES} total_objects 64 alloc_fastpath {100 + theirs - theirs // 10} alloc_slowpath {theirs // 10} free_fastpath {60 + theirs} "
            f"free_slowpath 0 alloc_from_partial {(refills - slabs) * (not ours)} cpu_partial_drain {refills * (not ours)} alloc_slab {4 + slabs * (not ours)} "
            f"free_slab {slabs * (not ours)}"]
    if ours:
        text.insert(1, "CACHE before filp allocations 0")
        text.insert(1, "TOTALS before page_bytes 0")
        text += [f"CACHE after filp object_size 200 object_stride 256 slab_size 4096 allocations {allocations} hits {allocations - refills} "
                 f"hits_after_merge 50 frees 0 deferred_frees {allocations} object_cache_churns {churns} slab_churns 2 slabs_now 20 slabs_peak 9000 "
                 "objects_live 0", "TOTALS after page_bytes 81920"]
    return "\n".join(text) + "\n"


def run_of(text, side, load="postmark", mode="counts", turn=0, cpus=2, nodes=1):
    return figures.read(text) | {"side": side, "load": load, "mode": mode, "round": turn, "cpus": cpus, "nodes": nodes, "transactions": 100}


def both(ours, turns=2, **more):
    """Runs of both sides. `ours` changes the output of Prudence's guest; one of a round, or of all."""
    runs = []
    for turn in range(turns):
        change = ours[turn] if isinstance(ours, list) else ours
        runs += [run_of(guest(), "slub", turn=turn, **more), run_of(guest(ours=True, **change), "prudence", turn=turn, **more)]
    return runs


class Arguments(unittest.TestCase):
    def refused(self, *arguments):
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
            evaluate.main(arguments)
        self.assertEqual(end.exception.code, 2)
        return said.getvalue()

    def test_names_what_is_wrong(self):
        self.assertIn("--load: 'netperf' is none of postmark", self.refused("--load", "postmark,netperf"))
        self.assertIn("--mode: 'time' is none of", self.refused("--mode", "time"))
        self.assertIn("'0' is not a number from 1", self.refused("--rounds", "0"))
        self.assertIn("'0' is not a number from 1", self.refused("--jobs", "0"))
        self.assertIn("multiples of --nodes 2", self.refused("--cpus", "3", "--nodes", "2"))

    def test_names_the_program_and_the_package_that_are_missing(self):
        with mock.patch.object(evaluate.shutil, "which", lambda name, path: None if name == "mkfs.ext4" else name), \
                self.assertRaises(SystemExit) as end:
            evaluate.main([])
        self.assertEqual(end.exception.code, "kernel-evaluate: not installed: mkfs.ext4 (package e2fsprogs). Run: tools/setup --fuzz")

    def test_with_kmalloc_kernels_are_other_ones(self):
        for more, wanted in ((), "build-evaluate-stats/"), (("--kmalloc",), "build-evaluate-stats-kmalloc/"):
            self.assertIn(wanted, str(evaluate.kernel_of("counts", evaluate.parse_arguments(more))))

    def test_lists_loads(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(evaluate.main(["--list", "--scale", "0.5"]), 0)
        self.assertIn("4,000 x transaction", said.getvalue())

    def test_every_client_gets_the_same_share(self):
        for load in plan.LOADS.values():
            for scale in (0.001, 0.77, 3):
                count = plan.transactions_of(load, scale)
                self.assertTrue(count >= load.shares and count % load.shares == 0)
                self.assertNotRegex(plan.script_of(load, "slub_lists", scale, "counts"), r"\{(n|share)\}")

    def test_scripts_are_shell(self):
        for load in plan.LOADS.values():
            for text in (*(plan.script_of(load, "slub", 1, mode) for mode in evaluate.MODES), load.prepare, load.command):
                subprocess.run(["sh", "-n"], input=text, text=True, check=True)


class Reading(unittest.TestCase):
    def test_of_slub(self):
        found = figures.of_slub(figures.read(guest()), "filp")
        self.assertEqual((found["allocations"], found["frees"], found["hits"], found["fast_hits"]), (50000, 50000, 49500, 45000))
        self.assertEqual((found["object_cache_churns"], found["slab_churns"], found["peak_kb"], found["kb"]), (500, 40, 160, 16))

    def test_of_prudence_memory_is_that_of_both(self):
        run = figures.read(guest(ours=True))
        found = figures.of_prudence(run, "filp")
        self.assertEqual((found["hits"], found["fast_hits"], found["deferred"], found["peak_kb"], found["kb"]), (49500, 49450, 50000, 160 + 16, 80 + 16))
        self.assertEqual(figures.deferred_share(run), 1)

    def test_peaks_are_of_the_load(self):
        """Prudence's `slabs_peak` counts since boot, so it says nothing of a load; and a run of counts without samples has failed."""
        run = figures.read(guest(ours=True, peak=320), "counts")
        self.assertEqual(figures.of_prudence(run, "filp")["peak_kb"], 80 + 16)
        self.assertEqual(run["at_peak"]["filp"], {"objects_latent": 7})
        with self.assertRaisesRegex(figures.Incomplete, "no line PEAK"):
            figures.read(guest().replace("PEAK", "peak"), "counts")

    def test_the_guest_samples_the_slabs_of_both_allocators(self):
        """Files that stand for the kernel's; the command makes Prudence's figures grow."""
        with tempfile.TemporaryDirectory() as folder:
            slub, ours = Path(folder, "slub/filp"), Path(folder, "prudence")
            slub.mkdir(parents=True)
            ours.mkdir()
            for name, value in {"objs_per_slab": 16, "order": 1, "total_objects": 64}.items():
                (slub / name).write_text(f"{value} N0={value}\n")
            (ours / "totals").write_text("page_bytes               4096\n")
            line = "filp                   5    960    256   32    2 : tunables    0    0    0 : slabdata %6d %6d      0 : prudence %8d 0 99 5 5 0 0 0 0"
            shown = "slabinfo - version: 2.1\n# name\nfilp_of_others 9 9 9 9 9\n" + line + "\nothers 9 9 9 9 9\n"
            (ours / "slabinfo").write_text(shown % (1, 1, 1))
            (ours / "filp").write_text("object_size 200\nslab_size 8192\nslabs_now 1\n")
            subprocess.run(["gcc", "-O1", "-Werror", "-pthread", f'-DSLUB="{folder}/slub"', f'-DPRUDENCE="{folder}/prudence"', "-o", f"{folder}/load",
                            ROOT / "kernel/tree/load.c"], check=True)
            grow = f"printf '{shown % (30, 30, 30)}'".replace("\n", "\\n") + f" >{ours}/slabinfo"
            said = subprocess.run([f"{folder}/load", "measure", "1", "0", "sh", "-c", grow], capture_output=True, text=True, check=True).stdout
        # 4 slabs of SLUB's, 30 of ours, each 8 KB; and where Prudence's objects were then
        self.assertIn("PEAK filp kb 272 objects_live 5 objects_latent 30 objects_cached 0\n", said)
        self.assertIn("SLUB after filp objs_per_slab 16 order 1 total_objects 64\n", said)
        self.assertIn("CACHE after filp object_size 200 slab_size 8192 slabs_now 1\n", said)
        self.assertNotIn("CACHE after totals", said)

    def test_of_locks(self):
        """Returns the text of /proc/lock_stat for a result of the guest's script."""
        stat = """\
lock_stat version 0.4
                              class name    con-bounces    contentions   waittime-min   waittime-max waittime-total   waittime-avg    acq-bounces   acquisitions   holdtime-min   holdtime-max holdtime-total   holdtime-avg

                           &n->list_lock:            21             22           0.10           2.30          45.60           1.20            333           4444           0.10          20.30        5555.60           1.20
                           -------------
                           &n->list_lock             22          [<ffffffff8118a8a5>] get_partial_node+0x45/0x250
                      &n->list_lock_else:             1              1           0.10           2.30          45.60           1.20              1              1           0.10          20.30        5555.60           1.20
"""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "stat").write_text(stat)
            script = plan.script_of(plan.LOADS["epoll"], "slub", 1, "locks")
            self.assertLess(script.index(">/tmp/lock_stat\nexit"), script.index("load measure"))  # without the reading of figures
            command = next(line for line in script.splitlines() if line.startswith("sed"))
            said = subprocess.run(["busybox", "sh", "-c", command.replace("/guest/tmp/lock_stat", f"{folder}/stat")], capture_output=True, text=True, check=True).stdout
        self.assertEqual(figures.read(guest() + said, "locks")["locks"], {"&n->list_lock": {"contended": 22, "moved": 333, "taken": 4444}})
        with self.assertRaisesRegex(figures.Incomplete, "no line LOCK"):
            figures.read(guest(), "locks")

    def test_of_latency(self):
        """Returns the output of the load itself; a run without it has failed."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["gcc", "-O1", "-Werror", "-pthread", "-o", f"{folder}/load", ROOT / "kernel/tree/load.c"], check=True)
            for load in (load for load in plan.LOADS.values() if load.own):
                command = ["sh", "-c", f"cd {folder} && ./load latency {load.name} 200"]
                said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                found = figures.read(guest() + said, "latency")["latency"]
                self.assertTrue(0 < found["p50_ns"] <= found["p99_ns"] <= found["p9999_ns"] <= found["most_ns"], found)
                self.assertIn(f"./load latency {load.name} 40", plan.script_of(load, "slub", 40 / load.transactions, "latency"))
        with self.assertRaisesRegex(figures.Incomplete, "no line LATENCY"):
            figures.read(guest(), "latency")

    def test_says_what_is_missing(self):
        for text, why in ((guest().replace("LOAD", "load"), "no line LOAD"), (guest().replace("status 0", "status 3"), "status 3"),
                          (guest().replace("SLUB after", "SLUB later"), "figures after"),
                          (guest().replace("total_objects 64 ", "total_inp input: Generic Explorer Mouse "), "damaged: .*Generic"),
                          (guest().replace("alloc_slab 4 free_slab 0", "alloc_slab"), "damaged: .*alloc_slab")):
            with self.assertRaisesRegex(figures.Incomplete, why):
                figures.read(text)


class Verdicts(unittest.TestCase):
    def judged(self, metric, allowed, ours, **more):
        return verdict.judge(verdict.rows(both(ours, **more), TWO, 1), metric, allowed)

    def test_fewer_misses(self):
        self.assertEqual(self.judged(verdict.misses, 0, {"refills": 50})[0], "holds")
        self.assertEqual(self.judged(verdict.misses, 0, {"refills": 900})[0], "does not hold")
        self.assertIn("postmark filp (+80.0 %)", self.judged(verdict.misses, 0, {"refills": 900})[1])

    def test_rounds_that_differ(self):
        self.assertEqual(self.judged(verdict.misses, 0, [{"refills": 50}, {"refills": 900}])[0], "undecided")

    def test_the_same_everywhere_proves_nothing(self):
        self.assertEqual(self.judged(verdict.misses, 0, {"refills": 500})[0], "undecided")

    def test_an_exception_of_the_paper_is_allowed(self):
        self.assertEqual(self.judged(verdict.peak, 0.2, {"peak": 640})[0], "undecided")
        self.assertEqual(self.judged(verdict.peak, 0.05, {"peak": 640})[0], "does not hold")
        self.assertEqual(self.judged(verdict.peak, 0.05, {"peak": 320})[0], "holds")

    def test_few_pairs_are_left_out(self):
        self.assertEqual(self.judged(verdict.misses, 0, {"allocations": 4999})[0], "not measured")

    def test_throughput(self):
        def said(*busy):
            runs = [run for turn, one in enumerate(busy) for run in
                    (run_of(guest(busy=1000), "slub", mode="instructions", turn=turn, cpus=1),
                     run_of(guest(ours=True, busy=one), "prudence", mode="instructions", turn=turn, cpus=1))]
            return [line["verdict"] for line in verdict.of_instructions(runs)[:2]]
        self.assertEqual(said(800, 810, 820), ["holds", "holds"])
        self.assertEqual(said(950, 960, 970), ["holds", "does not hold"])
        self.assertEqual(said(1030, 1040, 1050), ["does not hold", "does not hold"])
        self.assertEqual(said(970, 1030, 970), ["undecided", "does not hold"])
        self.assertEqual(said(990, 995, 990), ["undecided", "does not hold"])  # 1 % is the same
        self.assertEqual(said(800, 810), ["undecided", "undecided"])
        self.assertEqual(said(), ["not measured", "not measured"])

    def test_latency_by_each_peer(self):
        """In all rounds, in some, in none; with peers that were measured; on one CPU and on several."""
        def run(side, p999, turn, load="epoll", mode="latency", cpus=1):
            return {"mode": mode, "load": load, "side": side, "round": turn, "cpus": cpus, "nodes": 1,
                    "latency": {"p999_ns": p999, "most_ns": 300 - p999}}  # the slowest is the other way round
        for pair in plan.PEERS:
            for ours, word, slowest in (((50, 60, 55), "holds", "does not hold"), ((50, 60), "undecided", "undecided"),
                                        ((200, 250, 220), "does not hold", "holds"),
                                        ((50, 200, 50), "undecided", "undecided"), ((100, 100, 100), "undecided", "undecided")):
                for mode, cpus, where in (("latency", 1, "one emulated CPU"), ("latency_wall", 4, "4 CPUs")):
                    runs = [run(side, value, turn, mode=mode, cpus=cpus) for turn, one in enumerate(ours) for side, value in zip(pair, (100, one))]
                    self.assertEqual({line["the paper"]: line["verdict"] for line in verdict.of_latency(runs)},
                                     {f"one operation in a thousand is faster than {pair[0]}, one thread, {where}": word,
                                      f"the slowest operation is faster than {pair[0]}, one thread, {where}": slowest})
        self.assertEqual(verdict.of_latency([run("slub", 100, 0)]), [])

    def test_latency_without_hastening_has_a_table_and_no_verdict(self):
        figures = dict.fromkeys(("p50_ns", "p99_ns", "p999_ns", "p9999_ns", "most_ns"), 100)
        runs = [{"mode": "latency", "load": "epoll", "side": side, "round": 0, "cpus": 1, "nodes": 1, "latency": figures} for side in plan.HASTENED]
        tables = {name: rows for name, _, rows in page.latency_sections(runs) if rows}
        self.assertEqual(list(tables), ["latency-no-hasten"])
        self.assertEqual(tables["latency-no-hasten"][0]["99 %"], "100 → 100")
        self.assertEqual(verdict.of_latency(runs), [])

    def gone(self, turn, side="slub", **more):
        return {"out_of_memory": True, "mode": "counts", "load": "attack", "side": side, "round": turn, "cpus": 2, "nodes": 1, "transactions": 1} | more

    def attacked(self, load="attack", operations=plan.LOADS["attack"].transactions, ours=0):
        """Three rounds of both sides; ours needs this many KB more."""
        return [run | {"transactions": operations, "peak_kb": run["peak_kb"] + ours * (run["side"] == "prudence")} for run in both({}, 3, load=load)]

    def test_memory_under_the_attack(self):
        for ours, word in ((0, "undecided"), (-1000, "holds"), (1000, "does not hold")):
            self.assertEqual(verdict.less_memory(self.attacked(ours=ours), TWO)[0], word)
        self.assertEqual(verdict.less_memory([], TWO)[0], "not measured")
        for side, word in (("slub", "holds"), ("prudence", "does not hold")):  # a side that ran out and one that ended
            ended = [run for run in self.attacked() if run["side"] != side]
            self.assertEqual(verdict.less_memory([*ended, self.gone(0, side), self.gone(1, side)], TWO)[0], word)
            self.assertEqual(verdict.less_memory([self.gone(0, side)], TWO)[0], "not measured")

    def test_memory_that_ran_out_is_a_finding(self):
        """All of SLUB's rounds ran out of memory, some did, none did, none that was long enough did, there is none."""
        runs, short = self.attacked(), self.attacked("open_close", 200000)
        ours = [run for run in runs if run["side"] == "prudence"]
        all_gone = [self.gone(turn) for turn in range(3)]
        for found, gone, word in ((ours, all_gone, "holds"), (ours + short, all_gone, "holds"), (runs, [self.gone(2)], "undecided"),
                                     (runs, [], "does not hold"), (short, [], "undecided"), (self.attacked(operations=100), [], "undecided"),
                                     ([], [], "not measured"), ([], [self.gone(turn, load="open_close") for turn in range(3)], "holds"), ([], all_gone[:2], "undecided")):
            self.assertEqual(verdict.exhausts(found + gone, TWO)[0], word)
        for other in (self.gone(9, "prudence"), self.gone(9, load="epoll"), self.gone(9, cpus=4), self.gone(9, mode="checked")):
            self.assertEqual(verdict.exhausts([*runs, other], TWO)[0], "does not hold")

    def test_the_attack_has_the_papers_memory_and_length(self):
        """The load is in no run that does not name it, and in no other mode."""
        def request(*more):
            return evaluate.parse_arguments(["--cpus", "4", *more])
        self.assertNotIn("attack", request().load)
        self.assertEqual({mode for mode, *_ in evaluate.runs_of(request("--load", "attack"))}, {"counts"})
        self.assertEqual(evaluate.machine_of("counts", plan.LOADS["attack"], request())["memory"], 4 * 4032)
        self.assertEqual(round(plan.LOADS["attack"].transactions * 4307 / 1e9), 196)


SLUB = {"allocations": 1000, "hits": 900, "object_cache_churns": 100, "slab_churns": 100, "peak_kb": 100, "kb": 100}
OURS = {"allocations": 1000, "hits": 950, "object_cache_churns": 50, "slab_churns": 50, "peak_kb": 90, "kb": 90}


class EachRow(unittest.TestCase):
    """Each row of the tables holds for figures as the paper has them, and does not when its own figure changes; then no other changes."""

    def fails(self, ours=(), shares=(), gains=(), memory=(), rounds=3):
        """The rows that do not hold: place and claim."""
        shares = {load: paper for load, (_, paper) in verdict.DEFERRED.items()} | dict(shares)
        gains = {load: paper for load, (_, paper) in verdict.THROUGHPUT.items()} | dict(gains)
        row = verdict.Row("postmark", "filp", [SLUB] * rounds, [OURS | dict(ours)] * rounds)
        memory = {"exhausts": "holds", "less_memory": "holds"} | dict(memory)
        with mock.patch.multiple(verdict, rows=lambda *_: [row], shares=lambda runs, machine, load: [shares[load]] * rounds,
                                 improvement=lambda runs, load: [gains[load]] * rounds, exhausts=lambda *_: (memory["exhausts"], "", rounds),
                                 less_memory=lambda *_: (memory["less_memory"], "", rounds)):
            lines = verdict.of_counts([], TWO, 1) + verdict.of_instructions([])
        self.assertEqual({line["rounds"] for line in lines}, {str(rounds)})
        return [f"{line['subject']}: {line['the paper']}" for line in lines if line["verdict"] != "holds"]

    def one(self, words, **changes):
        found = self.fails(**changes)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(words), found)

    def test_as_the_paper_has_it(self):
        self.assertEqual(self.fails(), [])
        self.assertEqual(len(self.fails(rounds=2)), 19)  # undecided

    def test_counts(self):
        for place, ours in (("Figure 7:", {"hits": 800}), ("Figure 8:", {"object_cache_churns": 110}), ("Figure 9:", {"slab_churns": 110}),
                            ("Figure 10:", {"peak_kb": 110}), ("Figure 11:", {"kb": 110})):
            self.one(place, ours=ours)

    def test_shares(self):
        for load, (name, paper) in verdict.DEFERRED.items():
            for share in (0.7 * paper, 1.3 * paper):
                self.one(f"Figure 12: {name}", shares={load: share})

    def test_throughput(self):
        for load, (name, paper) in verdict.THROUGHPUT.items():
            self.one(f"Figure 13: {name} is faster by", gains={load: 0.9 * paper})
            self.assertEqual(len(self.fails(gains={load: -0.03})), 2)

    def test_memory(self):
        self.one("3.4: opening and closing files exhausts", memory={"exhausts": "does not hold"})
        self.one("3.4: Prudence needs less", memory={"less_memory": "does not hold"})


class Disturbance(unittest.TestCase):
    def test_caches_that_the_storm_uses_are_left_out(self):
        for side, ours in (("slub", False), ("prudence", True)):
            for storm, names in ((10, ["filp"]), (50000, [])):
                texts = guest(ours=ours), guest(refills=900, ours=ours), guest(allocations=storm, ours=ours)
                found = verdict.disturbed_caches([run_of(text, side, load) for load, text in zip(plan.DISTURBANCE, texts)], TWO, side, 1)
                self.assertEqual(list(found), names)
                for (alone, stormy), in found.values():
                    self.assertEqual((alone["hits"], stormy["hits"]), (49500, 49100))

    def test_the_storm_is_as_long_alone(self):
        for scale in (0.1, 1, 3):
            count, storm = (plan.transactions_of(plan.LOADS[name], scale) for name in plan.DISTURBANCE[1:])
            text = (ROOT / "kernel/tree/load.c").read_text()
            self.assertEqual(storm, count * int(re.search(r"#define STORM +(\d+)", text)[1]))

    def test_a_load_that_is_not_the_papers_is_in_none_of_its_findings(self):
        self.assertEqual(verdict.rows(both({}, load=plan.DISTURBANCE[0]), TWO, 1), [])


class Runs(unittest.TestCase):
    def request(self, folder, *more):
        return evaluate.parse_arguments(["--folder", str(Path(folder) / "evaluate"), "--load", "epoll", "--mode", "counts", "--rounds", "1", *more])

    def run_all(self, request, results, identity="a"):
        """(runs, failures, boots)"""
        results = iter(results)
        with mock.patch.object(evaluate, "boot", side_effect=lambda *_: copy.deepcopy(next(results))) as boots, \
                mock.patch.object(evaluate, "identity_of", lambda *_: {"digest": identity, "cpus": 2, "nodes": 1}), \
                contextlib.redirect_stderr(io.StringIO()) as said:
            return (*evaluate.run_all(request, Path("."), []), boots.call_count, said.getvalue())

    def test_what_is_finished_is_not_run_again(self):
        run, failure = figures.read(guest()), {"failed": "BUG: of this test"}
        with tempfile.TemporaryDirectory() as folder:
            request = self.request(folder)
            runs, failed, boots, said = self.run_all(request, [run, failure])
            self.assertEqual((len(runs), [one["subject"] for one in failed], boots), (1, ["counts, epoll, prudence, round 1"], 2))
            self.assertIn("BUG: of this test", said)
            runs, failed, boots, said = self.run_all(request, [run])
            self.assertEqual(([one["side"] for one in runs], failed, boots), (["slub", "prudence"], [], 1))
            self.assertIn("2 of 2: counts, epoll, prudence, round 1; some 0 minutes left", said)
            self.assertEqual(self.run_all(request, [run, run], "another kernel")[2], 2)

    def test_guests_at_a_time(self):
        """Each waits until the other has begun; results stand in the order of the plan."""
        began = threading.Barrier(2)

        def boot(_, __, side, *___):
            began.wait(100)
            return figures.read(guest(ours=side == "prudence"))
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(evaluate, "boot", boot), \
                mock.patch.object(evaluate, "identity_of", lambda *_: {"cpus": 2, "nodes": 1}), contextlib.redirect_stderr(io.StringIO()):
            runs, failed = evaluate.run_all(self.request(folder, "--jobs", "2"), Path("."), [])
        self.assertEqual(([run["side"] for run in runs], failed), (["slub", "prudence"], []))

    def test_an_interruption_ends_all_guests(self):
        def interrupt():
            while len(keep.SESSIONS.leaders) < 2:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
        tasks = [keep.Task(f"{i}", f"{i}", "sleep", {}, lambda: {"failed": str(keep.run_session(["sleep", "100"], dict(os.environ), "."))})
                 for i in range(3)]
        threading.Thread(target=interrupt).start()
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(KeyboardInterrupt):
            keep.run_all("kernel-evaluate", tasks, Path(folder), 2)
        self.assertNotIn("FAILED", said.getvalue())
        self.assertNotIn("3 of 3", said.getvalue())
        self.assertLess(time.monotonic() - begun, 90)  # none slept to its end

    def test_an_interruption_leaves_nothing_behind(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(KeyboardInterrupt), \
                mock.patch.object(subprocess.Popen, "communicate", self.interrupt(Path(folder) / "grandchild")):
            keep.run_session(["sh", "-c", f"timeout 100 sleep 100 & echo $! >{folder}/grandchild.new; "
                                         f"mv {folder}/grandchild.new {folder}/grandchild; wait"], dict(os.environ), folder)
        for _ in range(1000):  # it ends soon
            if not self.runs(self.grandchild):
                return
            time.sleep(0.01)
        self.fail(f"{self.grandchild} runs")

    def runs(self, process):
        try:
            return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False

    def interrupt(self, file):
        def wait(*_, **__):
            while not file.exists():
                time.sleep(0.01)
            self.grandchild = int(file.read_text())
            self.assertTrue(self.runs(self.grandchild))
            raise KeyboardInterrupt
        return wait

    def test_sides_alternate_and_rounds_are_outermost(self):
        request = self.request("x", "--rounds", "2")
        self.assertEqual([(side, turn) for *_, side, turn in evaluate.runs_of(request)],
                         [("slub", 0), ("prudence", 0), ("slub", 1), ("prudence", 1)])
        self.assertEqual(evaluate.runs_of(self.request("x", "--load", "names", "--mode", "instructions")), [])
        self.assertEqual([turn for *_, turn in evaluate.runs_of(self.request("x", "--mode", "checked", "--rounds", "3"))], [0, 0])

    def test_guests_by_the_hosts_clock_come_last_and_one_at_a_time(self):
        running, most, order = [0], {}, []

        def boot(mode, *_):
            running[0] += 1
            most[mode] = max(most.get(mode, 0), running[0])
            order.append(mode)
            time.sleep(0.05)
            running[0] -= 1
            return figures.read(guest())
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(evaluate, "boot", boot), \
                mock.patch.object(evaluate, "identity_of", lambda *_: {"cpus": 2, "nodes": 1}), contextlib.redirect_stderr(io.StringIO()):
            runs, failed = evaluate.run_all(self.request(folder, "--jobs", "2", "--mode", "wall,counts", "--rounds", "2"), Path("."), [])
        self.assertEqual((len(runs), failed, order), (8, [], ["counts"] * 4 + ["wall"] * 4))
        self.assertEqual(most["wall"], 1)

    def test_modes_choose_loads(self):
        def chosen(mode):
            return {load for _, load, _, _ in evaluate.runs_of(self.request("x", "--load", ",".join(plan.LOADS), "--mode", mode))}
        for mode in ("latency", "latency_wall"):
            self.assertEqual(chosen(mode), {"open_close", "tcp_crr", "epoll", "names", "names_storm"})
        self.assertEqual(chosen("instructions"), set(plan.PAPER))
        self.assertEqual(chosen("counts"), set(plan.LOADS))

    def test_machines_of_modes(self):
        request = self.request("x", "--cpus", "4", "--nodes", "2")
        self.assertEqual(evaluate.machine_of("instructions", plan.LOADS["epoll"], request), {"cpus": 1, "nodes": 1, "memory": 1024})
        self.assertEqual(evaluate.machine_of("wall", plan.LOADS["epoll"], request), {"cpus": 4, "nodes": 2, "memory": 1024})
        self.assertEqual(evaluate.machine_of("checked", plan.LOADS["epoll"], request), {"cpus": 4, "nodes": 2, "memory": 2048})

    def test_memory_that_ran_out_is_a_result_of_counts(self):
        """And a failure in another mode, as any other complaint is one in counts."""
        for said, mode, result in (("Out of memory: Killed process 71 (load)", "counts", {"out_of_memory": True}),
                                   ("Kernel panic - not syncing: System is deadlocked on memory", "counts", {"out_of_memory": True}),
                                   ("Out of memory: Killed process 71 (load)", "checked", None), ("WARNING: of this test", "counts", None),
                                   ("Out of memory: Killed process 71 (load)\nBUG: of this test", "counts", None)):
            def session(_, environment, __, said=said):
                Path(environment["CONSOLE"]).write_text(f"[   3.1] {said}\n")
                return 1, ""
            with tempfile.TemporaryDirectory() as folder, mock.patch.object(evaluate.keep, "run_session", session):
                run = evaluate.boot(mode, plan.LOADS["epoll"], "slub", 0, self.request(folder), Path(folder), [], Path(folder) / "run.json")
            self.assertEqual(run if result else "failed" in run, result or True)

    def test_lockdep_has_to_last(self):
        """The last line of the guest's script, with the text of /proc/lockdep_stats."""
        script = plan.script_of(plan.LOADS["epoll"], "slub", 1, "checked")
        command = next(line for line in script.splitlines() if line.startswith("sed"))
        for said, failed in ((" debug_locks:                             1\n", False), (" debug_locks:                             0\n", True)):
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "stats").write_text(said)
                printed = subprocess.run(["busybox", "sh", "-c", command.replace("/proc/lockdep_stats", f"{folder}/stats")],
                                         capture_output=True, text=True, check=True).stdout
                with mock.patch.object(evaluate.keep, "run_session", lambda *_: (0, guest() + printed)):
                    run = evaluate.boot("checked", plan.LOADS["epoll"], "slub", 0, self.request(folder), Path(folder), [], Path(folder) / "run.json")
            self.assertEqual("failed" in run, failed)


class Report(unittest.TestCase):
    def test_report(self):
        runs = both({"refills": 50}, 3) + both({}, mode="instructions", cpus=1) + both({}, 3, load="open_close") + both({"refills": 900}, 3, cpus=4, nodes=2)
        runs += [run_of(guest(refills=600, slabs=30), "slub_lists", cpus=cpus, mode=mode, turn=turn) for turn in range(2) for cpus, mode in ((2, "counts"), (1, "instructions"))]
        runs += [run_of(guest().replace("cpu_partial_drain", "other"), "kfree_rcu", turn=turn) for turn in range(2)]
        lock = "LOCK %s 1 2 0 0 0 0 30 400 0 0 0 0\n"
        runs += [run_of(guest() + lock % "&n->list_lock", "slub", mode="locks"),
                 run_of(guest(ours=True) + lock % "&n->list_lock" + lock % "prudence_node" + lock % "&zone->lock", "prudence", mode="locks")]
        runs.append(run_of(guest(ours=True) + lock.replace("400", "700").replace("30", "90") % "prudence_node", "no_preflush", mode="locks"))
        late = "LATENCY p50_ns 4000 p90_ns 4100 p99_ns 4200 p999_ns %d p9999_ns 90000 most_ns 95000\n"
        runs += [run_of(guest(ours=ours) + late % most, side, "epoll", "latency", cpus=1) for ours, side, most in ((False, "slub", 8000), (True, "prudence", 6000))]
        runs += both({}, mode="wall") + both({}, mode="checked") + [run_of(guest(ours=True, refills=700), side, turn=turn) for turn in range(2)
                                                                  for side in ("no_preflush", "no_hasten")]
        document = {"program": "kernel-evaluate", "date": "2026-01-01T00:00:00Z", "prudence": "0", "scale": 1, "memory": 1024, "runs": runs,
                    "host": dict.fromkeys(("cpu", "cpus", "system", "kernel", "libc", "compiler", "huge_pages"), "x"), "skipped": []}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "evaluate.json"
            file.write_text(json.dumps(document))
            text = subprocess.run([ROOT / "lab/run/report", file], check=True, capture_output=True, text=True, timeout=100).stdout
            tables = {path.stem: [" | ".join(row) for row in csv.reader(path.read_text().splitlines())] for path in file.with_suffix("").iterdir()}
            page = file.with_suffix(".html").read_text()

        def has(name, start):
            self.assertTrue(any(row.startswith(start) for row in tables[name]), (start, tables[name]))

        place = [row.startswith("postmark: filp | 2 CPUs | 50,000 | 99.00 % (90.0 %) → 99.90 % |") for row in tables["caches"]].index(True)
        self.assertIn("98.20 %", tables["caches"][place + 1])  # the other machine is the next row
        has("findings", "Figure 7 | hits: more for all caches | holds (3) | does not hold (3)")
        has("findings-2-cpus", "Figure 7 | hits: more for all caches | holds | 3 | less in 1")
        has("findings-instructions", "Figure 13 | PostgreSQL is faster | not measured |")
        self.assertIn("Findings of the paper. 2 CPUs: 3 holds, ", text)
        self.assertIn("; 4 CPUs, 2 nodes: ", text)
        has("other-sides", "postmark: slub_lists | 1 CPU, instructions | +0.0 % |")
        has("other-sides", "postmark: slub_lists | 2 CPUs |  | 99.00 % → 98.80 % | 500 → 600 | 40 → 30 |")
        has("other-sides", "postmark: kfree_rcu | 2 CPUs |  | 99.00 % → 99.00 % |  | 40 → 40 |")  # its kernel did not count drains
        self.assertIn("| 2 CPUs | 7,000.0 → 8,000.0 | 900.0 → 600.0 | 20.0 → 40.0 | 0.0 → 4,000.0 | 1", tables["locks-no-preflush"][1])
        self.assertIn("| 2 CPUs | 4,000.0 → 8,000.0 | 300.0 → 600.0 | 20.0 → 40.0 | 0.0 → 4,000.0 | 1", tables["locks"][1])
        self.assertIn("| 2 CPUs | 0.00 → 0.00 | +0.0 % | 2", tables["wall"][1])
        has("latency", "epoll | 4,000 → 4,000 | 4,200 → 4,200 | 8,000 → 6,000 | 90,000 → 90,000 | 95,000 → 95,000 | 1")
        for name in ("no-preflush", "no-hasten"):
            has(name, "postmark: filp | 2 CPUs |  | 700 → 50 |")
        has("checked", "prudence | 2 CPUs | postmark")
        self.assertIn("Findings of the paper (2 CPUs)", page)

    def test_refuses_another_document(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "other.json"
            file.write_text(json.dumps({"program": "prudence-bench", "runs": []}))
            done = subprocess.run([ROOT / "lab/run/report", file], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is a report of", done.stderr)


if __name__ == "__main__":
    unittest.main()
