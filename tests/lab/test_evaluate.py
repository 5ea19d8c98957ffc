#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (it tests reports of measurements; none of it is in the library)
"""lab/reproduce/evaluate without long runs: refusals, the plan, figures from the output of programs, verdicts, kept and failed runs, questions to
servers, its page as a browser lays it out."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "lab/reproduce"), str(ROOT / "tests/repo"), str(ROOT / "tools")]
import chromium_view  # noqa: E402 (the path comes first)
import debian_source  # noqa: E402
import dns_load  # noqa: E402
from measure import keep, report, verdict as verdicts  # noqa: E402
from experiments.evaluate import figures, page as pages, plan, run as evaluate, servers, verdict  # noqa: E402

DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"  # make test-long
HOST = {"cpu": "x", "cpus": 2, "system": "Linux", "kernel": "6", "libc": "2", "compiler": "12", "huge_pages": "madvise"}


# --------------------------------------------------------------------------------------------- output of programs

def counters(hits=9900, churns=10, slab_churns=5, slabs=20, f_t=1.5):
    return {"allocations": 10000, "hits": hits, "object_cache_churns": churns, "slab_churns": slab_churns, "slabs_peak": slabs,
            "objects_live": 10, "total_fragmentation": f_t}


def bench_row(scenario, subject, ns=10.0, mb=5.0, growth=0.0, ran_out=False, counted=None, **more):
    ours = subject in ("prudence", "classic")
    return {"scenario": scenario, "subject": subject, "size": 512, "threads": 2, "readers": 0, "batch": 1, "limit": 1 << 30,
            "versions": {"library": "prudence" if ours else "ck", "library_version": "1", "allocator": {"name": "glibc", "version": "2"}},
            "ns_per_pair_wall": ns, "ns_per_pair_cpu": ns, "pairs_per_second": 1e9 / ns, "peak_rss_bytes": int((mb + 3) * 1e6), "baseline_rss_bytes": 3000000,
            "latent_peak_bytes": 1000, "rss_growth_bytes": int(growth * 1e6), "out_of_memory": ran_out, "measured_seconds": 1.0, "reader_errors": 0,
            "counters": counted or (counters() if ours else {}),
            "repeats": [{"samples": [[0, 5000000, 0, 0], [500, 6000000, 0, 100], [1000, 6000000, 0, 200]]}]} | more


def run_of(part, program, rows, turn=0, allocator=""):
    return {"part": part, "round": turn, "allocator": allocator, "others_cpus": 0.0, "load_average": 0.1, "seconds": 1.0,
            "document": {"program": program, "host": HOST, "rows": rows}}


def endurance(turn=0, ours=None, theirs=None):
    return run_of("endurance", "prudence-bench", [bench_row("endurance", "prudence", **(ours or {})),
                                                  bench_row("endurance", "classic", **({"ns": 100.0, "mb": 300.0, "growth": 100.0} | (theirs or {}))),
                                                  bench_row("endurance", "ck-epoch+glibc", ns=40.0, mb=2.0)], turn)


def pairs(turn=0, at_4096=100.0, at_64=50.0):
    rows = [bench_row("pairs", "prudence", size=size) for size in (64, 4096)]
    return run_of("pairs", "prudence-bench", rows + [bench_row("pairs", "classic", ns=at_64, size=64), bench_row("pairs", "classic", ns=at_4096, size=4096)], turn)


def tree(turn=0, ours=10.0):
    rows = [bench_row("tree", name, ns=ns, updates=share) for share in (1, 100)
            for name, ns in (("prudence", ours), ("classic", 11.0), ("ck-epoch+jemalloc", 15.0))]
    return run_of("tree", "prudence-bench", rows, turn)


def tree_by_updates(over_jemalloc=(15, 30), over_mimalloc=(11, 20), turn=0):
    """`over_`: ns of epochs over it with few and with many updates."""
    rows = [bench_row("tree", name, ns=ns[place], updates=share) for place, share in enumerate((1, 100))
            for name, ns in (("prudence", (10, 10)), ("classic", (11, 11)), ("ck-epoch+jemalloc", over_jemalloc), ("ck-epoch+mimalloc", over_mimalloc))]
    return [run_of("tree", "prudence-bench", rows, turn)]


def store(turn=0):
    rows = [{"subject": name, "updates": 50, "ns": ns, "all_cpu_ns": ns, "peak_bytes_per_object": 60.0, "repeats": [{}]}
            for name, ns in (("prudence", 100.0), ("rculfhash", 200.0))]
    return run_of("store-glibc", "prudence-structures", rows, turn, "glibc")


def server(turn=0):
    said = {"ns": 1000.0, "cpu_ns": 900.0, "us_p50": 100.0, "us_p99": 200.0, "us_p99_updating": 300.0, "us_update": 3000.0, "rss_mb": 10.0, "lost": 0.0}
    return [run_of(f"knot-{side}", "server", [{"load": "Knot DNS", "subject": side, "figures": said | {"us_update": slow}}], turn)
            for side, slow in (("liburcu", 9000.0), ("prudence", 3000.0))]


def mix(cached=0, **hits):
    """Counts of one mix; hits of subjects of 10,000 allocations."""
    names = {"classic": 9000, "throttled-10": 9400, "throttled-20": 9300, "prudence": 9450, "+preflush": 9100, "+spares": 9999} | hits
    counted = {name: counters(hits=count) | {"bytes_left": 30, "bytes_live": 10} for name, count in names.items()}
    return run_of("mix", "prudence-mix", [one | {"mix": "file", "period": 500, "cached": cached, "subject": name, "repeats": [one] * 3}
                                          for name, one in counted.items()])


def thrice(runs):
    """Each round comes three times."""
    return [run | {"round": 10 * run["round"] + i} for run in runs for i in range(3)]


def all_runs():
    return [run for turn in range(2) for run in (endurance(turn), pairs(turn), tree(turn), store(turn), *server(turn))]


def document(runs, **more):
    return {"program": "evaluate", "date": "2026-01-01T00:00:00Z", "prudence": "0", "quick": True, "rounds": 2, "host": HOST, "versions": ["ck 1"],
            "parts": [{"name": part.name, "title": part.title, "command": " ".join(part.arguments())} for part in plan.parts(True)],
            "others_cpus": 0.0, "load_average": 0.1, "skipped": [], "runs": runs} | more


class Arguments(unittest.TestCase):
    def refused(self, *arguments):
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
            evaluate.parse_arguments(arguments)
        self.assertEqual(end.exception.code, 2)
        return said.getvalue()

    def test_names_what_is_wrong(self):
        self.assertIn("--part: 'pears' is none of mix, endurance", self.refused("--part", "pairs,pears"))
        self.assertIn("'0' is not a number from 1", self.refused("--rounds", "0"))

    def test_quick_and_long_runs_do_not_meet(self):
        (_, quick), (_, whole) = evaluate.parse_arguments(["--quick"]), evaluate.parse_arguments([])
        self.assertEqual((quick.rounds, whole.rounds), (plan.QUICK_ROUNDS, plan.FULL_ROUNDS))
        self.assertNotEqual(quick.folder, whole.folder)

    def test_names_the_program_that_is_missing(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
            evaluate.main([], Path(folder))
        self.assertIn("prudence-bench is missing: run `make build`", said.getvalue())


class Document(unittest.TestCase):
    def test_servers_alone_have_a_host(self):
        """Servers do not report it; the page names the machine."""
        programs = mock.Mock(allocators={"glibc": None}, build=Path("build"))
        with mock.patch.object(evaluate.allocators, "probe", lambda *_: {"host": HOST}):
            made = evaluate.document_of(evaluate.parse_arguments(["--quick"])[1], programs, [one | {"others_cpus": 0, "load_average": 0} for one in server()], [], [])
        self.assertEqual(made["host"], HOST)


class Plan(unittest.TestCase):
    def test_rounds_are_outermost_and_counts_that_repeat_come_once(self):
        self.assertEqual([(turn, part.name) for turn, part in plan.rounds(True, ["mix", "pairs", "tree"], 2)],
                         [(0, "mix"), (0, "pairs"), (0, "tree"), (1, "pairs"), (1, "tree")])

    def test_the_quick_form_fits_into_ten_minutes(self):
        names = [part.name for part in plan.parts(True)]
        self.assertLess(sum(part.seconds for _, part in plan.rounds(True, names, plan.QUICK_ROUNDS)), 600)

    def test_every_part_is_in_the_report(self):
        for part in plan.parts(False):
            self.assertTrue(part.name == "mix" or any(part.name.startswith(name) for name, *_ in pages.GROUPS), part.name)


class Figures(unittest.TestCase):
    def test_of_bench(self):
        rows = figures.rows_of([endurance()])
        ours = figures.find(rows, "lists, 512 B", "prudence")
        self.assertEqual((ours.median("ns"), ours.median("mb"), ours.median("hits"), ours.median("slabs")), (10.0, 5.0, 0.99, 20))
        self.assertEqual(figures.find(rows, "lists, 512 B", "ck-epoch+glibc").values("hits"), [])

    def test_loads_have_names(self):
        rows = [bench_row("recycle", "prudence"), bench_row("recycle", "prudence", mixed=True), *tree()["document"]["rows"][:1]]
        self.assertEqual(figures.loads_of(figures.rows_of([run_of("x", "prudence-bench", rows)])),
                         ["hand over, 512 B", "hand over, 16 sizes", "tree, 1 % updates"])

    def test_a_cache_that_was_hardly_used_says_nothing(self):
        self.assertEqual(figures.of_counters(counters() | {"allocations": figures.FEW - 1}), {})

    def test_of_mix(self):
        """The default is a subject, and pre-flush is one of its own; a setting that no user has is none."""
        rows = figures.rows_of([mix()])
        self.assertEqual([(one.load, one.subject) for one in rows],
                         [("mix file, 500 steps, cache by demand", name) for name in ("classic", "throttled-10", "throttled-20", "prudence", "prudence, pre-flush")])
        self.assertEqual(rows[0].median("f_t"), 3)
        self.assertEqual(figures.loads_of(figures.rows_of([mix(cached=64)])), ["mix file, 500 steps, cache 64"])

    def test_of_structures(self):
        rows = figures.rows_of([store()])
        self.assertEqual([one.subject for one in rows], ["prudence", "rculfhash+glibc"])

    def test_a_subject_that_failed_is_shown_and_the_others_go_on(self):
        run = tree()
        run["document"]["rows"][2] = {"scenario": "tree", "subject": "ck-epoch+jemalloc", "size": 64, "updates": 1, "failed": "ended by signal 11"}
        rows = figures.rows_of([run])
        self.assertEqual(figures.find(rows, "tree, 1 % updates", "ck-epoch+jemalloc").failed, ["ended by signal 11"])
        said = pages.cells_of(rows)
        self.assertIn("tree, 1 % updates (failed: ended by signal 11)", [line["load"] for line in said])
        self.assertEqual(verdict.times(rows, "tree, 1 % updates"), [1.1])

    def test_fragmentation_where_what_is_live_is_chance_says_nothing(self):
        ours = figures.rows_of([run_of("recycle", "prudence-bench", [bench_row("recycle", "prudence"), bench_row("recycle", "prudence", mixed=True)])])
        self.assertEqual([("f_t" in row.rounds[0], "slabs" in row.rounds[0]) for row in ours], [(False, True), (False, False)])

    def test_readers_that_saw_freed_memory_are_a_failure(self):
        run = run_of("tree", "prudence-bench", [bench_row("tree", "prudence", updates=1, reader_errors=3)])
        self.assertEqual(figures.rows_of([run])[0].failed, ["readers saw freed memory 3 times"])

    def test_only_rounds_that_both_have_are_compared(self):
        runs = [tree(0), tree(1)]
        del runs[1]["document"]["rows"][1]
        self.assertEqual(len(figures.of_both(figures.rows_of(runs), "tree, 1 % updates", "classic", "prudence", "ns")), 1)


class Verdicts(unittest.TestCase):
    def verdicts(self, runs, place):
        return [line["verdict"] for line in verdict.check(figures.rows_of(thrice(runs))) if line["subject"] == place]

    def test_fewer_than_three_rounds_decide_nothing(self):
        for count, words in ((1, {"undecided"}), (2, {"undecided"}), (3, {"holds", "does not hold", "undecided"})):
            runs = [run for turn in range(count) for run in (endurance(turn), pairs(turn, at_4096=30.0), *tree_by_updates(turn=turn))]
            found = [line for line in verdict.check(figures.rows_of(runs)) if line["verdict"] != "not measured"]
            self.assertEqual({line["verdict"] for line in found}, words)
            self.assertEqual({line["rounds"] for line in found}, {str(count)})

    def test_nothing_was_measured(self):
        self.assertEqual({line["verdict"] for line in verdict.check([])}, {"not measured"})

    def test_memory(self):
        """A run that ended while memory still grew was too short to refute."""
        self.assertEqual(self.verdicts([endurance()], "Figure 3"), ["undecided", "holds", "holds"])
        self.assertEqual(self.verdicts([endurance(theirs={"growth": 0.0})], "Figure 3"), ["does not hold", "does not hold", "holds"])
        self.assertEqual(self.verdicts([endurance(theirs={"growth": 0.0}), endurance(1, theirs={"ran_out": True})], "Figure 3")[0], "undecided")
        self.assertEqual(self.verdicts([endurance(), endurance(1, theirs={"ran_out": True})], "Figure 3")[0], "holds")
        self.assertEqual(self.verdicts([endurance(theirs={"ran_out": True})], "Figure 3"), ["holds", "holds", "holds"])
        self.assertEqual(self.verdicts([endurance(ours={"growth": 2.0})], "Figure 3")[2], "does not hold")
        self.assertEqual(self.verdicts([endurance(0), endurance(1, ours={"growth": 2.0})], "Figure 3")[2], "undecided")

    def test_pairs(self):
        self.assertEqual(self.verdicts([pairs()], "Figure 6"), ["holds", "holds", "holds"])
        self.assertEqual(self.verdicts([pairs(at_4096=30.0)], "Figure 6"), ["holds", "does not hold", "does not hold"])
        self.assertEqual(self.verdicts([pairs(), pairs(1, at_4096=30.0)], "Figure 6"), ["holds", "undecided", "undecided"])
        self.assertEqual(self.verdicts([pairs(at_4096=5.0)], "Figure 6")[0], "does not hold")

    def test_the_size_that_gains_most_is_that_of_all_rounds(self):
        """Rounds that overlap, and sizes that gain as much, are undecided."""
        self.assertEqual(self.verdicts([pairs(0), pairs(1, at_4096=110.0)], "Figure 6")[2], "holds")
        self.assertEqual(self.verdicts([pairs(0), pairs(1), pairs(2, at_4096=40.0)], "Figure 6")[2], "undecided")
        self.assertEqual(self.verdicts([pairs(at_4096=50.5)], "Figure 6")[2], "undecided")
        self.assertEqual(self.verdicts([pairs(at_4096=49.5)], "Figure 6")[2], "undecided")
        self.assertEqual(self.verdicts([pairs(0, at_4096=40.0), pairs(1, at_4096=45.0)], "Figure 6")[2], "does not hold")
        only = run_of("pairs", "prudence-bench", [bench_row("pairs", "prudence", size=4096), bench_row("pairs", "classic", ns=99.0, size=4096)])
        self.assertEqual(self.verdicts([only], "Figure 6")[2], "not measured")

    def mixes(self, runs, default=True):
        return {line["subject"]: line["verdict"] for line in verdict.check_mixes(figures.rows_of(runs), default)}

    def test_mixes_are_compared_with_the_queue_that_misses_least(self):
        rows = figures.rows_of([mix()])
        self.assertEqual(verdict.callbacks_of(rows, rows[0].load), "throttled-10")
        self.assertEqual(self.mixes([mix()])["Figure 7"], "holds")
        self.assertEqual(self.mixes([mix(prudence=9300)])["Figure 7"], "does not hold")  # better than classic, worse than throttled-10
        self.assertEqual(self.mixes([mix(classic=9500)])["Figure 7"], "does not hold")
        self.assertEqual(self.mixes([mix(**{"+preflush": 9999, "prudence": 9300})])["Figure 7"], "does not hold")  # not the default

    def test_default_and_fixed_caches_have_verdicts_of_their_own(self):
        runs = [mix(), mix(cached=64, prudence=9000)]
        self.assertEqual((self.mixes(runs)["Figure 7"], self.mixes(runs, False)["Figure 7"]), ("holds", "does not hold"))
        self.assertEqual(self.verdicts(runs, "Figure 7"), ["not measured"])  # they are no loads by the clock

    def test_a_table_of_mixes_names_what_was_judged_and_what_failed(self):
        run = mix()
        run["document"]["rows"][3] = {"mix": "file", "period": 500, "cached": 0, "subject": "prudence", "failed": "no memory"}
        cells = pages.mix_cells(figures.rows_of([run]), True)
        self.assertEqual([(line["subject"], line["misses, of a million"]) for line in cells],
                         [("classic", "100,000"), ("throttled-10 (compared)", "60,000"), ("throttled-20", "70,000"), ("prudence", "failed: no memory"),
                          ("prudence, pre-flush", "90,000")])

    def counted(self, ours, rounds=1):
        return [run_of("tree", "prudence-bench", [bench_row("tree", "prudence", updates=1, counted=one), bench_row("tree", "classic", updates=1)], turn)
                for turn, one in enumerate([ours] * rounds if isinstance(ours, dict) else ours)]

    def test_counts(self):
        for place, better, worse in (("Figure 7", {"hits": 9990}, {"hits": 9000}), ("Figure 8", {"churns": 5}, {"churns": 20}),
                                     ("Figure 9", {"slab_churns": 0}, {"slab_churns": 20}), ("Figure 10", {"slabs": 10}, {"slabs": 22}),
                                     ("Figure 11", {"f_t": 1.2}, {"f_t": 2.0})):
            self.assertEqual(self.verdicts(self.counted(counters(**better)), place), ["holds"], place)
            self.assertEqual(self.verdicts(self.counted(counters(**worse)), place), ["does not hold"], place)
            self.assertEqual(self.verdicts(self.counted([counters(**better), counters(**worse)]), place), ["undecided"], place)

    def test_an_exception_of_the_paper_is_allowed(self):
        self.assertEqual(self.verdicts(self.counted(counters(f_t=1.62)), "Figure 11"), ["undecided"])  # 8 % more, and nothing is less
        self.assertEqual(self.verdicts(self.counted(counters(f_t=1.64)), "Figure 11"), ["does not hold"])

    def test_applications(self):
        self.assertEqual(self.verdicts([tree()], "Figure 13"), ["holds"])
        self.assertEqual(self.verdicts([tree(ours=12.0)], "Figure 13"), ["does not hold"])
        self.assertEqual(self.verdicts([tree(), tree(1, ours=12.0)], "Figure 13"), ["undecided"])
        self.assertEqual(self.verdicts([tree(ours=12.0)], "Too Epic")[0], "holds")
        self.assertEqual(self.verdicts([tree(ours=16.0)], "Too Epic")[0], "does not hold")
        slow = tree(1)
        slow["document"]["rows"][0]["ns_per_pair_wall"] = 16.0  # at 1 % updates, in one round of two
        self.assertEqual(self.verdicts([tree(), slow], "Too Epic")[0], "undecided")

    def test_batches_are_the_cause_if_epochs_lose_more_with_more_updates(self):
        """Over each allocator."""
        for over_jemalloc, over_mimalloc, word in (((15, 30), (11, 20), "holds"), ((30, 15), (11, 20), "does not hold"), ((15, 30), (20, 11), "does not hold"),
                                                   ((15, 15), (11, 11), "undecided")):
            self.assertEqual(self.verdicts(tree_by_updates(over_jemalloc, over_mimalloc), "Too Epic"), ["holds", word])

    def test_many_rows_are_not_all_named(self):
        verdict, text, _ = verdicts.judge([(f"row {i}", [i / 10]) for i in range(1, 21)], 0, "")
        self.assertEqual(verdict, "does not hold")
        self.assertIn("row 20 (+200.0 %)", text)
        self.assertIn("and 14 more", text)

    def test_where_prudence_loses(self):
        lost = {(load, what): (peer, count, of) for load, what, peer, _, count, of in verdict.losses(figures.rows_of(all_runs()))}
        self.assertEqual(lost, {("lists, 512 B", "memory"): ("ck-epoch+glibc", 1, 2)})
        run = tree()
        run["document"]["rows"][0] |= {"ns_per_pair_wall": 30.0}  # by the clock alone
        self.assertEqual([what for _, what, *_ in verdict.losses(figures.rows_of([run]))], ["time, but not CPU time"])
        rows = figures.rows_of([tree(), tree(1, ours=12.0)])  # in one round of two
        self.assertEqual(list(verdict.losses(rows)), [])


class Kept(unittest.TestCase):
    def run_all(self, folder, results, identity="a"):
        """Returns (runs, failures, how many ran, output); a result that is an exception is raised."""
        ran = []

        def run(one):
            ran.append(one)
            if isinstance(one, BaseException):
                raise one
            return dict(one)
        tasks = [keep.Task(f"task-{i}", f"task {i}", "kind", {"of": identity}, lambda one=one: run(one)) for i, one in enumerate(results)]
        with contextlib.redirect_stderr(io.StringIO()) as said:
            try:
                found = keep.run_all("evaluate", tasks, Path(folder))
            except KeyboardInterrupt:
                found = "interrupted", []
        return (*found, len(ran), said.getvalue())

    def test_an_interrupted_evaluation_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.run_all(folder, [{"x": 0}, KeyboardInterrupt(), {"x": 2}])[0::2][0], "interrupted")
            runs, failed, ran, said = self.run_all(folder, [{"x": 0}, {"x": 1}, {"x": 2}])
            self.assertEqual(([run["x"] for run in runs], failed, ran), ([0, 1, 2], [], 2))
            self.assertIn("evaluate: 2 of 3: task 1; some 0 minutes left", said)
            self.assertEqual(self.run_all(folder, [{"x": 3}] * 3, "another build")[2], 3)

    def test_a_failure_is_said_and_tried_again(self):
        with tempfile.TemporaryDirectory() as folder:
            runs, failed, ran, said = self.run_all(folder, [{"failed": "no memory"}, {"x": 1}])
            self.assertEqual(([run["x"] for run in runs], failed, ran), ([1], [("task 0", "no memory")], 2))
            self.assertIn("FAILED: task 0\nno memory", said)
            self.assertEqual(self.run_all(folder, [{"x": 0}, {"x": 1}])[2], 1)

    def test_a_file_that_was_cut_off_is_made_again(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_all(folder, [{"x": 0}])
            (Path(folder) / "task-0.json").write_text('{"x": ')
            self.assertEqual(self.run_all(folder, [{"x": 0}])[2], 1)

    def test_a_forecast_of_its_own_until_one_has_run(self):
        task = keep.Task("a", "a", "kind", {}, dict, 100)
        self.assertEqual(keep.seconds_left([task, task], {}), 200)
        self.assertEqual(keep.seconds_left([task, task], {"kind": [10]}), 20)
        self.assertIsNone(keep.seconds_left([keep.Task("a", "a", "kind", {}, dict)], {}))

    def test_a_program_that_hangs_or_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(keep.run_session(["sh", "-c", "echo so far; sleep 100"], {"PATH": "/usr/bin:/bin"}, folder, 0.2), (None, "so far\n"))

    def test_others_are_what_this_process_did_not_use(self):
        self.assertEqual(keep.others_between((100.0, 10.0, 0.0), (110.0, 14.0, 10.0)), 0.6)
        self.assertEqual(keep.others_between((100.0, 10.0, 0.0), (101.0, 14.0, 10.0)), 0.0)

    def test_a_part_that_writes_nothing_has_failed(self):
        programs = mock.Mock(spec=evaluate.Programs, build=Path("/nowhere"), allocators={})
        programs.is_server.return_value = False
        part = next(plan.parts(True))
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(keep, "run_session", return_value=(3, "one\nlast words\n")):
            self.assertEqual(evaluate.Programs.run(programs, part, folder), {"failed": "status 3: one\nlast words"})
        programs.run.side_effect = servers.Failed("it does not answer")
        self.assertEqual(evaluate.run_part(programs, part, 0, "."), {"failed": "it does not answer"})


class Servers(unittest.TestCase):
    def test_an_update_as_the_standard_has_it(self):
        name = b"\x01u\x07example\x04test\x00"
        zone = b"\x07example\x04test\x00"
        self.assertEqual(dns_load.update_message(0x1234, "u", "10.0.0.9"),
                         b"\x12\x34\x28\x00\x00\x01\x00\x00\x00\x02\x00\x00" + zone + b"\x00\x06\x00\x01" + name + b"\x00\x01\x00\xff\x00\x00\x00\x00\x00\x00" +
                         name + b"\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x0a\x00\x00\x09")

    SAID = "".join(f"> NOERROR h{i}.example.test A 0.000{i:03}\n" for i in range(100, 200)) + "> T h1.example.test A\n" \
           "  Queries lost:         1 (0.5%)\n  Queries per second:   50000.0\n"

    def test_what_dnsperf_says(self):
        updates = mock.Mock(seconds=[0.001, 0.003], lost=2)
        found = servers.figures_of(self.SAID, 0.5, self.SAID, updates, 12345678)
        self.assertAlmostEqual(found["ns"], 20000)
        self.assertAlmostEqual(found["cpu_ns"], 5e6)
        self.assertAlmostEqual(found["us_p50"], 150)
        self.assertAlmostEqual(found["us_p99"], 199)
        self.assertAlmostEqual(found["us_update"], 2000)
        self.assertEqual(found["lost"], 4)

    def test_a_server_that_does_not_answer_has_failed(self):
        with self.assertRaisesRegex(servers.Failed, "0 and 100 answers, 0 updates"):
            servers.figures_of("", 0.5, self.SAID, mock.Mock(seconds=[]), 1)

    def test_one_that_is_not_built_says_so(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(servers.shutil, "which", return_value="dnsperf"):
            found = servers.Servers(ROOT, Path(folder), Path(folder))
            self.assertIn("--build-servers", found.why_not("knot", "liburcu"))
            found.problems["knot", "liburcu"] = "no source of knot"
            self.assertEqual(found.why_not("knot", "liburcu"), "no source of knot")

    def test_sources_come_from_where_packages_come(self):
        policy = (" 500 http://mirror/debian-security bookworm-security/main amd64 Packages\n 500 http://mirror/debian bookworm/main amd64 Packages\n")
        self.assertEqual(debian_source.lines_of(policy, None), ["deb-src http://mirror/debian bookworm main",
                                                                "deb-src http://mirror/debian-security bookworm-security main"])
        self.assertEqual(debian_source.lines_of(policy, "next"), ["deb-src http://mirror/debian next main"])


class Report(unittest.TestCase):
    def make(self, folder, found):
        file = Path(folder) / "evaluate.json"
        file.write_text(json.dumps(found))
        subprocess.run([ROOT / "lab/run/report", file], check=True, capture_output=True, timeout=100)
        return file.with_suffix(".html"), file.with_suffix("")

    def test_page_and_tables(self):
        found = document(all_runs(), others_cpus=0.7, skipped=[{"subject": "bind-liburcu", "why": "it is not built <"}])
        with tempfile.TemporaryDirectory() as folder:
            page, tables = self.make(folder, found)
            html = page.read_text()
            for words in ("up to 0.7 CPUs", "The quick form", "Where Prudence loses", "Knot DNS", "bind-liburcu", "Against every peer: memory",
                          "by 3.9 times at least", "5.0×", "rculfhash+glibc"):
                self.assertIn(words, html)
            for name, words in (("findings", "by 3.9 times at least"), ("findings", "5.0×"), ("losses", "lists, 512 B"), ("knot", "subject,load,ns,"),
                                ("peers-memory-store", "rculfhash+glibc"), ("pairs", 'prudence,"pairs, 64 B",10.0,')):
                self.assertIn(words, (tables / f"{name}.csv").read_text())
            self.assertIn("it is not built &lt;", html)
            self.assertNotIn("http", html.replace("http://www.w3.org", "").replace("http://creativecommons", "").replace("http://purl.org", "")
                             .replace("https://matplotlib.org", ""))  # it stands alone
            laid_out = chromium_view.layout(page)
            self.assertEqual((laid_out["cut"], laid_out["empty"]), ([], 0))
            self.assertEqual(laid_out["pictures"], html.count("<svg"))
            self.assertLessEqual(laid_out["wide"], 1200)

    @unittest.skipUnless(DEEP, "make test-long runs this")
    def test_one_part_alone(self):
        for run in (endurance(), pairs(), tree(), store(), server()[0]):
            rows = figures.rows_of([run])
            parts = list(pages.parts_of(document([run]), rows))
            self.assertEqual(sum(bool(part["pictures"]) for part in parts), {"endurance": 2, "pairs": 2, "tree": 3}.get(run["part"], 1), run["part"])

    def test_the_legend_is_not_cut(self):
        names = [f"{peer}+{one}" for peer in ("rculfhash", "ck-epoch") for one in ("glibc", "jemalloc", "mimalloc", "tcmalloc")]
        rows = figures.rows_of([run_of("tree", "prudence-bench", [bench_row("tree", name, updates=1) for name in ["prudence", "prudence-heap", "classic", *names]])])
        for figure in (pages.bars(rows, ("ns", "cpu_ns", "mb")), pages.tree_picture(rows)):
            figure.canvas.draw()
            legend, whole = figure.legends[0].get_window_extent(), figure.bbox
            self.assertTrue(whole.x0 <= legend.x0 and legend.x1 <= whole.x1 and whole.y0 <= legend.y0, legend)
            self.assertFalse(any(legend.overlaps(axes.get_tightbbox(figure.canvas.get_renderer())) for axes in figure.axes))

    PAGE = "# Ours\n\nWords.\n\n## Findings of the paper\n\nBefore.\n\n| a | b |\n|---|---|\n| old | 1 |\n\nAfter.\n\n## What this does not show\n\nMuch.\n"

    def into(self, runs, page):
        """Returns (output, {table: text}, the page) of --into a folder with that page, and with one table that was there before."""
        with tempfile.TemporaryDirectory() as folder:
            docs, file = Path(folder) / "docs", Path(folder) / "x.json"
            (docs / "results/data/evaluate").mkdir(parents=True)
            (docs / "results/data/evaluate/pairs.csv").write_text("old\n")
            if page:
                (docs / "results-evaluate.md").write_text(page)
            file.write_text(json.dumps(document(runs)))
            said = ""
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                try:
                    report.main([str(file), "--into", str(docs)])
                except SystemExit as end:
                    said = str(end.code)
            return (said, {table.stem: table.read_text() for table in docs.rglob("*.csv")},
                    (docs / "results-evaluate.md").read_text() if page else None)

    @unittest.skipUnless(DEEP, "make test-long runs this")
    def test_tables_are_replaced_by_what_was_measured(self):
        found = document([pairs(), mix()])
        tables = pages.tables_of(figures.rows_of(found["runs"]), list(pages.parts_of(found, figures.rows_of(found["runs"]))))
        measured = [set(pages.tables_measured(document([one]), tables)) for one in (pairs(), mix(), run_of("recycle", "prudence-bench", []))]
        self.assertEqual(measured, [{"pairs"}, {"findings-mixes-default", "findings-mixes-fixed", "mixes-default"}, set()])  # recycle-mixed is missing
        _, tables, page = self.into([mix()], self.PAGE)
        self.assertEqual((page, tables["pairs"], "classic" in tables["mixes-default"]), (self.PAGE, "old\n", True))
        _, tables, page = self.into([run_of(part.name, "prudence-bench", []) for part in plan.parts(True)] + all_runs(), self.PAGE)
        self.assertIn("prudence,", tables["pairs"])
        self.assertTrue(page.startswith("# Ours\n\nWords.\n\n## Findings of the paper\n\nBefore.\n\n|  | the paper | verdict |\n|---|---|---|\n| Figure 3 |"), page)
        self.assertTrue(page.endswith(" |\n\nAfter.\n\n## What this does not show\n\nMuch.\n"), page)
        self.assertNotIn("| old |", page)

    def test_a_page_without_the_table_changes_nothing(self):
        for page, words in ((None, "results-evaluate.md"), ("# Ours\n", "has 0 tables under 'Findings of the paper'"), (self.PAGE + self.PAGE, "has 2 tables")):
            said, tables, after = self.into([pairs()], page)
            self.assertRegex(said, f"^report: --into .*: .*{words}")
            self.assertEqual((tables, after), ({"pairs": "old\n"}, page))

    def test_refuses_what_is_not_its_own(self):
        done = subprocess.run([ROOT / "lab/run/report", ROOT / "CMakePresets.json"], capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("CMakePresets.json has no rows or runs of a measurement that there is a report of", done.stderr)
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
            report.main([str(ROOT / "LICENSE")])
        self.assertIn("LICENSE: FILE needs an ending", said.getvalue())


if __name__ == "__main__":
    unittest.main()
