#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""prudence-latent over programs on liburcu, Concurrency Kit and DPDK whose waits are known: in five flavours, across fork, a kill and exec; its
refusals, and its message when there is nothing to see, and why. The libraries are those of the system. Skipped without liburcu or the tool.
PRUDENCE_MODELS=deep (make test-long) tries all flavours, a page, and Knot DNS."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "tools"))
from preload import ld_preload  # noqa: E402 (the path comes first)
TOOL = BUILD / "bin/prudence-latent"
SOURCE = Path(__file__).resolve().parent / "program_waits.c"
FLAVOURS = {"memb": (["-DRCU_MEMBARRIER"], "-lurcu"), "mb": (["-DRCU_MB"], "-lurcu-mb"), "signal": (["-DRCU_SIGNAL"], "-lurcu-signal"),
            "bp": (["-DWITH_BP"], "-lurcu-bp"), "qsbr": (["-DWITH_QSBR"], "-lurcu-qsbr")}
LIBRARIES = [*(f"liburcu{flavour}.so" for flavour in ("", "-mb", "-signal", "-bp", "-qsbr", "-common", "-cds")), "libck.so", "librte_rcu.so"]
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"
LONG = unittest.skipUnless(DEEP, "make test-long runs this")
KNOT = shutil.which("knotd", path="/usr/sbin:/usr/bin")
QUEUED, OBJECT, EXTRA = 1100, 1000, 100000  # of the program: a tenth of 1,000 is queued twice


def compile_in(folder, name="waits", flags=("-DRCU_MEMBARRIER",), library="-lurcu"):
    program = folder / name
    subprocess.run(["cc", "-g", "-O1", *flags, SOURCE, "-o", program, library, "-lurcu-common", "-lpthread"], check=True)
    return program


class Latent(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.program = compile_in(cls.folder)

    def latent(self, *words, status=0):
        done = subprocess.run([TOOL, "--json", self.folder / "json", *words], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def found(self):
        return json.loads((self.folder / "json").read_text())["processes"]

    def check_plain(self, one):
        self.assertEqual((one["callbacks"]["queued"], one["callbacks"]["called"], one["callbacks"]["left"]), (QUEUED, QUEUED, 0))
        self.assertGreaterEqual(one["bytes"]["freed"], 1000 * OBJECT + EXTRA)
        self.assertLess(one["bytes"]["freed"], 1000 * (OBJECT + 40) + EXTRA + 5000)
        self.assertGreater(one["callbacks"]["waits"]["most_ns"], 0)
        self.assertLessEqual(one["callbacks"]["most_waiting"], QUEUED)
        self.assertEqual(one["curve"][-1]["callbacks"], 0)
        self.assertEqual(one["deferred"], 1)
        self.assertEqual(one["sleeps"]["calls"], 5)  # three, rcu_defer_barrier and the end of its thread; those of liburcu's worker are not the program's

    @LONG
    def test_follows_callbacks_in_each_flavour(self):
        for flavour, (flags, library) in FLAVOURS.items():
            with self.subTest(flavour):
                self.latent(compile_in(self.folder, flavour, flags, library), "plain")
                one, = self.found()
                self.check_plain(one)

    def test_names_places(self):
        said = self.latent(self.program, "plain")
        self.assertIn("call_rcu in queue_all", said)
        self.assertIn("program_waits.c", said)
        self.assertIn("1,100 queued, 1,100 called, 0 left", said)
        self.check_plain(self.found()[0])
        self.assertIn("prudence_free_deferred", said)
        places = {place["place"].split()[0]: place for place in self.found()[0]["places"] if place["kind"] == "call"}
        self.assertEqual({name: place["calls"] for name, place in places.items()}, {"queue_all": 1000, "end": 100})

    def test_a_child_of_fork_is_a_process_of_its_own(self):
        self.latent(self.program, "fork")
        parent, child = self.found()
        self.check_plain(parent)
        self.assertEqual((child["callbacks"]["queued"], child["callbacks"]["called"]), (11, 11))

    def test_a_kill_leaves_what_was_counted(self):
        self.latent(self.program, "kill", status=128 + 9)
        one, = self.found()
        self.assertEqual(one["callbacks"]["called"], QUEUED)

    def test_follows_what_a_script_runs(self):
        self.latent("sh", "-c", '"$0" plain; exit 7', self.program, status=7)
        one, = self.found()
        self.check_plain(one)

    @LONG
    @unittest.skipUnless(KNOT, "there is no knotd (knot)")
    def test_sees_what_a_name_server_waits_for(self):
        (self.folder / "example.zone").write_text("@ 3600 SOA a b 1 2 3 4 5\n@ NS a\na A 192.0.2.1\n")
        settings = self.folder / "knot.conf"
        settings.write_text(f"server:\n  rundir: {self.folder}\ndatabase:\n  storage: {self.folder}/db\nzone:\n  - domain: example.\n"
                            f"    file: {self.folder}/example.zone\n")
        self.latent("timeout", "-s", "INT", "5", KNOT, "-c", settings, status=124)
        self.assertIn("synchronize_rcu", [place["function"] for one in self.found() for place in one["places"]])

    def check_reclaims(self, program, word, calls, kinds):
        """`calls`: {function: calls}. All of them are the program's own, and those of these kinds free all objects."""
        self.latent(program, word)
        one, = self.found()
        self.assertLessEqual({place["place"] for place in one["places"]}, {"main", "poll_deferred", "hp"}, word)
        found = Counter()
        for place in one["places"]:
            found[place["function"]] += place["calls"]
        self.assertEqual(found, calls, word)
        self.assertEqual(one["sleeps"]["calls"], sum(place["calls"] for place in one["places"] if place["kind"] in ("barrier", "synchronize")), word)
        freed = sum(place["bytes"] for place in one["places"] if place["kind"] in kinds)
        self.assertEqual(one["reclaimed"]["bytes"], freed, word)
        self.assertGreaterEqual(freed, 100 * 1000 if kinds else 0, word)
        return one

    @unittest.skipUnless(Path("/usr/include/ck_epoch.h").exists(), "there is no Concurrency Kit (libck-dev)")
    def test_sees_what_concurrency_kit_waits_for_and_frees(self):
        program = self.folder / "reclaims"
        subprocess.run(["cc", "-O1", SOURCE.with_name("program_reclaims.c"), "-o", program, "-lck"], check=True)
        for word, calls, kinds in (("barrier", {"epoch_barrier": 1}, ["barrier"]), ("barrier_wait", {"epoch_barrier_w": 1}, ["barrier"]),
                                  ("synchronize", {"epoch_synchron.": 1, "epoch_reclaim": 1}, ["reclaim"]),
                                  ("synchronize_wait", {"epoch_synch._w.": 1, "epoch_reclaim": 1}, ["reclaim"]),
                                  ("poll", {"epoch_poll": 4}, ["reclaim"]), ("poll_deferred", {"epoch_poll_def.": 4}, []),
                                  ("hp", {"hp_free": 50, "hp_retire": 50, "hp_reclaim": 1, "hp_purge": 1}, ["defer", "reclaim", "barrier"])):
            one = self.check_reclaims(program, word, calls, kinds)
            self.assertEqual((one["deferred"], one["refused"]), (100 if word == "hp" else 0, 0))

    def compile_text(self, name, text, *flags):
        """Of C, in the folder."""
        subprocess.run(["cc", "-O1", "-x", "c", "-", "-o", self.folder / name, *flags], input=text, text=True, check=True)
        return self.folder / name

    @unittest.skipIf(subprocess.run(["pkg-config", "--exists", "libdpdk"], check=False).returncode, "there is no DPDK (libdpdk-dev)")
    def test_counts_what_dpdks_queue_took_refused_and_freed(self):
        program = self.folder / "queues"
        flags = subprocess.run(["pkg-config", "--cflags", "libdpdk"], capture_output=True, text=True, check=True).stdout.split()
        subprocess.run(["cc", "-O1", "-DALLOW_EXPERIMENTAL_API", *flags, SOURCE.with_name("program_queues.c"), "-o", program, "-lrte_rcu", "-lrte_eal"], check=True)
        done = subprocess.run([TOOL, "--json", self.folder / "json", program, "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "--log-level=1", "-m64"],
                              capture_output=True, text=True, timeout=60, env=os.environ | {"XDG_RUNTIME_DIR": str(self.folder)})
        if done.returncode == 77:
            self.skipTest(f"DPDK does not start here: {done.stderr}")
        self.assertEqual(done.returncode, 0, done.stderr)
        taken, refused, freed, reclaimed, *rest = map(int, done.stdout.split())
        self.assertEqual((taken + refused, freed + reclaimed, rest), (1100, taken, [0, 0]))
        self.assertGreater(refused, 900)
        one, = self.found()
        self.assertEqual((one["deferred"], one["refused"]), (taken, refused))
        self.assertIn(f"{taken:,} were taken, {refused:,} refused", done.stderr)
        places = {place["function"]: place for place in one["places"]}
        self.assertEqual({name: place["calls"] for name, place in places.items()},
                         {"dq_enqueue": 1100, "dq_reclaim": 1, "dq_delete": 1, "qsbr_synchron.": 1})
        for name, objects in (("dq_enqueue", freed), ("dq_reclaim", reclaimed), ("dq_delete", 0)):
            self.assertEqual(places[name]["bytes"] // 1000, objects, name)  # a block of 1,000 bytes has a few more

    def test_sees_what_a_full_defer_queue_waits_for(self):
        program = self.compile_text("full", """
            #include <urcu.h>
            #include <urcu-defer.h>
            #include <stdlib.h>
            int main(void) {
                rcu_register_thread();
                rcu_defer_register_thread();
                for (int i = 0; i < 20000; i++)
                    defer_rcu(free, malloc(1000));
                rcu_defer_unregister_thread();
                rcu_unregister_thread();
                return 0;
            }""", "-DRCU_MEMBARRIER", "-lurcu", "-lurcu-common")
        self.latent(program)
        one, = self.found()
        places = {place["function"]: place for place in one["places"]}
        self.assertEqual({name: place["calls"] for name, place in places.items()}, {"defer_rcu": 20000, "defer_unregist.": 1})
        self.assertEqual(one["deferred"], 20000)
        self.assertGreater(places["defer_rcu"]["bytes"] + places["defer_unregist."]["bytes"], 1000)
        self.assertGreater(places["defer_rcu"]["most_ns"], 0)  # a queue has room for fewer
        self.assertGreater(one["sleeps"]["calls"], 1)

    def test_sees_what_tables_and_workers_wait_for(self):
        program = self.compile_text("tables", """
            #include <stdlib.h>
            #include <urcu.h>
            #include <urcu/rculfhash.h>
            int main(void) {
                struct cds_lfht *table;
                struct call_rcu_data *worker = create_call_rcu_data(0, -1);
                rcu_register_thread();
                table = cds_lfht_new(1024, 1, 0, 0, NULL);
                cds_lfht_resize(table, 1); /* waits for readers of the buckets */
                if (cds_lfht_destroy(table, NULL))
                    abort();
                call_rcu_data_free(worker);
                create_all_cpu_call_rcu_data(0);
                free_all_cpu_call_rcu_data();
                rcu_unregister_thread();
                return 0;
            }""", "-DRCU_MEMBARRIER", "-lurcu", "-lurcu-common", "-lurcu-cds")
        self.latent(program)
        one, = self.found()
        self.assertEqual({place["function"]: (place["calls"], place["place"]) for place in one["places"]},
                         dict.fromkeys(("lfht_resize", "lfht_destroy", "call_rcu_d_free", "free_all_cpu_c."), (1, "main")))
        self.assertEqual(one["sleeps"]["calls"], 4)

    def exported(self, path):
        """Names of functions."""
        said = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        return {line.split()[2].split("@")[0] for line in said.splitlines() if len(line.split()) == 3 and line.split()[1] in "TWi"}

    def test_each_function_of_the_libraries_is_watched_or_there_is_a_reason(self):
        lines = [line.split(": ", 1) for line in SOURCE.with_name("unwatched.txt").read_text().splitlines() if line and line[0] != "#"]
        reasons = {re.compile(names.replace("FLAVOUR", "urcu_(memb|mb|signal|bp|qsbr)")): why for names, why in lines}
        watched = self.exported(BUILD / "bin/libprudence-latent.so")
        functions = set()
        for library in LIBRARIES:
            path = subprocess.run(["cc", f"-print-file-name={library}"], capture_output=True, text=True, check=True).stdout.strip()
            if Path(path).is_absolute():
                functions |= self.exported(path)
        self.assertIn("urcu_memb_call_rcu", functions)
        for name in sorted(functions - {"_init", "_fini"}):
            self.assertEqual((name in watched) + sum(bool(names.fullmatch(name)) for names in reasons), 1, name)
        if functions >= {"ck_epoch_poll", "rte_rcu_qsbr_init"}:
            self.assertEqual([names.pattern for names, why in reasons.items() if not why.startswith("since") and not any(map(names.fullmatch, functions))], [])
            self.assertEqual(watched - functions - {"free"}, set())

    def test_says_that_there_is_nothing_and_why(self):
        said = self.latent(self.program, "none", status=5)
        self.assertIn("no call was seen of those that can be", said)
        self.assertRegex(said, "/waits has liburcu.so.*, and made none of these calls")
        self.assertIn("No function of /usr/bin/env or of the libraries looks like RCU", self.latent("/usr/bin/env", "-u", "A", status=3))
        self.assertIn("Names are stripped from /usr/bin/env", self.latent("/usr/bin/env", "-u", "A", status=3))

    def test_names_rcu_of_the_programs_own(self):
        text = "void shop_rcu_postpone__(void) {} void shop_rcu_read_lock(void) {} int main(void) { shop_rcu_postpone__(); return 0; }"
        said = self.latent(self.compile_text("own", text), status=3)
        self.assertIn("/own has RCU of its own (shop_rcu_postpone). Its calls stay within the file", said)
        self.compile_text("libshop.so", text.replace("int main", "int shop"), "-shared", "-fPIC")
        said = self.latent(self.compile_text("uses", "int shop(void); int main(void) { return shop(); }", f"-L{self.folder}", "-lshop",
                                             f"-Wl,-rpath,{self.folder}"), status=3)
        self.assertIn("/libshop.so has functions that look like RCU and are not known here (shop_rcu_postpone)", said)
        said = self.latent(self.compile_text("within", "void urcu_mb_call_rcu(void *h, void *f) {} int main(void) { urcu_mb_call_rcu(0, 0); return 0; }"), status=3)
        self.assertIn("/within has liburcu within it (urcu_mb_call_rcu): link it with the shared library", said)

    def test_passes_signals_on(self):
        script = [TOOL, "--", "sh", "-c", 'trap "exit 6" HUP; echo ready; read line']
        with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
            self.assertEqual(tool.stdout.readline(), "ready\n")
            tool.send_signal(signal.SIGHUP)
            self.assertIn("no call was seen", tool.stderr.read())
            tool.wait(timeout=60)
            self.assertEqual(tool.returncode, 6)

    def test_names_what_it_cannot_watch(self):
        self.assertIn("no program 'no-such-program'", self.latent("no-such-program", status=2))
        static = self.folder / "static"
        subprocess.run(["cc", "-static", "-x", "c", "-", "-o", static], input="int main(void) { return 0; }", text=True, check=True)
        self.assertIn("linked statically", self.latent(static, status=2))

    def test_wrong_words_are_named(self):
        for words, why in ((["--every", "0", "true"], "--every 0"), (["--top", "0", "true"], "--top 0"), (["--html", "/no/such/page", "true"], "no such folder"),
                           ([], "PROGRAM")):
            done = subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn(why, done.stderr)

    @LONG
    @unittest.skipUnless(shutil.which("valgrind"), "there is no valgrind")
    def test_costs_few_instructions(self):
        """Costs of a callback such that 2 % of a CPU's time are more than 100,000 callbacks a second. A free outside of callbacks has a check of
        one word."""
        def instructions(word, preload):
            said = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={self.folder}/calls", self.program, word], capture_output=True,
                                  text=True, timeout=120, env=os.environ | {"LD_PRELOAD": preload, "PRUDENCE_LATENT": f"{self.folder}/waits"}).stderr
            return int(re.search(r"Collected : (\d+)", said)[1])
        plain, watched = (instructions("plain", preload) - instructions("none", preload) for preload in ("", ld_preload(BUILD / "bin/libprudence-latent.so")))
        self.assertLess((watched - plain) / QUEUED, 400)
        self.assertGreater(watched, plain)

    @LONG
    def test_makes_a_page(self):
        self.latent("--html", self.folder / "page.html", self.program, "plain")
        page = (self.folder / "page.html").read_text()
        self.assertIn("<svg", page)
        self.assertIn("Memory that waits", page)

    def test_the_programs_words_are_its_own(self):
        done = subprocess.run([TOOL, "--", "sh", "-c", 'echo "$0" "$1"', "--json", "--"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout, "--json --\n")


if __name__ == "__main__":
    if not TOOL.is_file() or subprocess.run(["pkg-config", "--exists", "liburcu"], check=False).returncode:
        print("there is no liburcu (liburcu-dev), or prudence-latent was not built")
        sys.exit(77)
    unittest.main()
