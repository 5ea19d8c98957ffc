#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 5
"""Figures that are read from a process from outside are those that it would give, whatever it does at that time; and processes that cannot be
read are named: other users' processes, and those that end or run another program."""

import ctypes
import errno
import os
import shutil
import signal
import subprocess
import unittest
from unittest import mock

from watching import BUILD, Case, until
from preload import ld_preload
from prudence_watch import process as processes
from prudence_watch.errors import Ended, WatchError
from prudence_watch.figures import Watch
from prudence_watch.process import Process

libc = ctypes.CDLL(None)
NOBODY = 65534


class Export(Case):
    def watch(self, pid):
        process = Process(pid)
        self.addCleanup(process.close)
        return Watch(process)

    def refused(self, pid, *messages):
        with self.assertRaises(WatchError) as caught:
            Process(pid)
        for message in (str(pid), *messages):
            self.assertIn(message, str(caught.exception))

    def compare(self, watched, sample):
        """Compares with the figures of the process, which does nothing at that time."""
        stats = watched.stats()
        own = {cache["name"]: cache for cache in stats["caches_list"]}
        self.assertEqual({cache["name"] for cache in sample["caches"]}, set(own))
        for cache in sample["caches"]:
            for name, value in own[cache["name"]].items():
                if name == "total_fragmentation":
                    self.assertAlmostEqual(cache[name], value, 3)
                else:
                    self.assertEqual(cache[name], value, name)
        for name in ("allocations", "hits", "deferred_frees", "slabs_now", "objects_live", "objects_latent", "bytes_latent",
                     "bytes_live", "bytes_cached", "latent_limit", "stalls", "pressure_waits", "throttle_waits", "call_waits", "call_overruns"):
            self.assertEqual(sample["totals"][name], stats[name], name)
        self.assertEqual(sample["totals"]["bytes_slabs"], stats["slab_bytes"])
        self.assertEqual(sample["totals"]["bytes_retained"], stats["retained_bytes"])
        self.assertEqual(sample["totals"]["bytes_metadata"], stats["metadata_bytes"])
        for domain, its_own in zip(sample["domains"], stats["domains_list"], strict=True):
            for name in ("name", "kind", "readers", "readers_inside", "scans", "membarriers", "stalls", "bytes_called"):
                self.assertEqual(domain[name], its_own[name], name)

    def test_figures_are_those_of_the_process(self):
        watched = self.start(options="background=0,decay=1000s")
        watch = self.watch(watched.pid)
        self.compare(watched, watch.sample())
        watched.ask("keep 3000")
        watched.ask("free 500")
        watched.ask("safe 200")
        thread = int(watched.ask("enter"))
        watched.ask("defer 20000")
        sample = watch.sample()
        self.compare(watched, sample)
        figures = {cache["name"]: cache for cache in sample["caches"]}
        self.assertEqual(figures["routes"]["objects_latent"], 20000)
        self.assertEqual(figures["routes"]["frees"], 500)
        self.assertEqual(figures["safe"]["objects_live"], 0)
        self.assertGreater(figures["safe"]["objects_cached"], 100)
        self.assertGreater(sample["totals"]["bytes_resident"], sample["totals"]["bytes_slabs"] // 2)
        reader, = sample["domains"][0]["threads_inside"]
        self.assertEqual((reader["thread"], reader["thread_name"], reader["nesting"]), (thread, "parser", 1))
        self.assertGreater(reader["inside_seconds"], 0)
        self.assertLess(reader["inside_seconds"], 1000)
        self.assertGreater(reader["grace_periods_begun"], 0)
        watched.ask("leave")
        sample = watch.sample()
        self.compare(watched, sample)
        self.assertEqual(sample["caches"][0]["objects_latent"], 0)
        self.assertEqual(sample["domains"][0]["threads_inside"], [])

    def test_caches_and_domains_that_come_and_go(self):
        watched = self.start()
        for _ in range(3):
            watched.ask("churn")
        watch, short = self.watch(watched.pid), 0
        watched.ask("keep 100")
        for _ in range(300):
            sample = watch.sample()
            caches = {cache["name"]: cache for cache in sample["caches"]}
            self.assertEqual(caches["routes"]["objects_live"], 100)
            self.assertLessEqual(set(caches), {"routes", "short"})
            for cache in sample["caches"]:
                self.assertLess(cache["allocations"], 400)
                self.assertIn(cache["object_size"], (100, 200))
                self.assertIn(cache["domain"], ("default", "short"))
            short += len(sample["caches"]) - 1
        self.assertGreater(short, 0)

    def test_a_storm(self):
        """Counters only grow, and sums do not stray further than by a few microseconds."""
        watched = self.start()
        for _ in range(2):
            watched.ask("storm")
        watch, before = self.watch(watched.pid), None
        self.assertTrue(until(lambda: watch.sample()["caches"]))
        for _ in range(300):
            cache = watch.sample()["caches"][0]
            for name in ("allocations", "frees", "deferred_frees", "refills", "merged_objects", "grows"):
                if before:
                    self.assertGreaterEqual(cache[name], before[name], name)
            before = cache
        self.assertTrue(until(lambda: watch.sample()["caches"][0]["allocations"] > 1000000))

    def test_every_way_of_linking(self):
        self.compile("static", BUILD / "libprudence.a")
        static = self.start("static")
        static.ask("keep 10")
        self.compare(static, self.watch(static.pid).sample())
        preload = BUILD / "libprudence-malloc.so"
        sleep = subprocess.Popen(["sleep", "60"], env=os.environ | {"LD_PRELOAD": ld_preload(preload)})
        self.addCleanup(sleep.wait)
        self.addCleanup(sleep.kill)
        self.assertTrue(until(lambda: sleep.pid in processes.watchable(os.geteuid())))
        self.assertGreater(self.watch(sleep.pid).sample()["totals"]["allocations"], 0)

    def test_two_copies_of_the_library(self):
        """Each has its note, and both are shown."""
        both = subprocess.Popen([self.folder / "watched"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | {
            "LD_PRELOAD": ld_preload(BUILD / "libprudence-malloc.so")})
        self.addCleanup(both.communicate)
        self.addCleanup(both.kill)
        self.assertEqual(both.stdout.readline(), "ready\n")
        both.stdin.write("keep 5\n")
        both.stdin.flush()
        both.stdout.readline()
        names = {cache["name"] for cache in self.watch(both.pid).sample()["caches"]}
        self.assertIn("routes", names)
        self.assertGreater(len(names), 1)

    def test_the_option_of_earlier_versions_is_accepted(self):
        watched = self.start(options="export=SIGUSR1")
        for value in ("1", "0", "SIGHUP"):
            self.assertEqual(watched.ask(f"set export {value}"), "0")
        self.assertEqual(watched.ask("set export 2"), str(errno.EINVAL))
        self.watch(watched.pid).sample()

    def test_a_process_that_stands_still(self):
        """The process does nothing for the tool that watches."""
        watched = self.start(options="background=0")
        watched.ask("keep 300")
        watched.process.send_signal(signal.SIGSTOP)
        self.assertEqual(self.watch(watched.pid).sample()["totals"]["objects_live"], 300)
        watched.process.send_signal(signal.SIGCONT)
        self.assertEqual(watched.ask("keep 1"), "done")

    def test_fork(self):
        watched = self.start()
        before = self.watch(watched.pid)
        watched.ask("keep 10")
        child = int(watched.ask("fork"))
        watched.ask("keep 20")
        self.assertEqual(self.watch(child).sample()["totals"]["objects_live"], 30)
        self.assertEqual(before.sample()["totals"]["objects_live"], 10)
        self.assertEqual(before.sample()["pid"], watched.pid)

    def test_a_copy_without_handlers(self):
        """The process has memory of its own."""
        watched = self.start()
        watched.ask("keep 10")
        child = int(watched.ask("copy"))
        for pid in (child, watched.pid):
            self.assertEqual(self.watch(pid).sample()["totals"]["objects_live"], 10)

    @unittest.skipIf(os.geteuid() != 0, "only root may make a namespace of processes")
    def test_a_container(self):
        """Numbers of processes and threads differ inside and outside."""
        name = f"inner-{os.getpid()}"
        shutil.copy(self.folder / "watched", self.folder / name)
        outer = self.start(name, before=("unshare", "--pid", "--fork", "--kill-child"))
        thread = int(outer.ask("enter"))
        (pid, _), = processes.of_name(name)
        self.assertNotEqual(processes.inner_pid(pid), pid)
        sample = self.watch(pid).sample()
        reader, = sample["domains"][0]["threads_inside"]
        self.assertEqual((sample["pid"], reader["thread"], reader["thread_name"]), (pid, thread, "parser"))

    def test_exec(self):
        watched = self.start()
        watch = self.watch(watched.pid)
        watched.tell("exec")
        self.assertTrue(until(lambda: processes.name_of(watched.pid) == "sleep"))
        with self.assertRaisesRegex(Ended, f"process {watched.pid} has ended, or runs another program"):
            watch.sample()
        self.refused(watched.pid, "sleep", "does not use Prudence")

    def test_crash(self):
        watched = self.start()
        watch = self.watch(watched.pid)
        watch.sample()
        watched.tell("crash")
        watched.process.wait()
        with self.assertRaisesRegex(Ended, f"process {watched.pid} has ended"):
            watch.sample()
        self.refused(watched.pid, "does not exist")
        self.assertNotIn(watched.pid, processes.watchable(os.geteuid()))

    def test_who_may_not_is_told_why(self):
        watched = self.start()
        mine = os.geteuid()
        other = NOBODY if mine != NOBODY else 1
        self.assertIn(f"of user {processes.user_name(mine)}, and you are {processes.user_name(other)}", processes.why_not(watched.pid, other))
        self.assertIn("PR_SET_DUMPABLE", processes.why_not(watched.pid, mine))
        self.assertIn("does not exist", processes.why_not(2 ** 22 + 1, mine))
        scope = self.folder / "ptrace_scope"
        scope.write_text("1\n")
        with mock.patch.object(processes, "YAMA", scope):
            self.assertIn("kernel.yama.ptrace_scope is 1", processes.why_not(watched.pid, mine))
            self.assertIn("sysctl kernel.yama.ptrace_scope=0", processes.why_not(watched.pid, mine))

    @unittest.skipIf(os.geteuid() != 0, "only root may be another user")
    def test_another_users_process(self):
        watched = self.start()
        hidden = self.start(user=NOBODY, group=NOBODY, extra_groups=[])
        reader = os.fork()
        if reader == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            libc.prctl(4, 1, 0, 0, 0)
            try:
                self.refused(watched.pid, "of user root, and you are nobody")
                self.watch(hidden.pid).sample()
                self.assertEqual(hidden.ask("hide"), "0")
                self.refused(hidden.pid, "PR_SET_DUMPABLE")
            except BaseException as error:
                os.write(2, f"{error}\n".encode())
                os._exit(1)
            os._exit(0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1]), 0)


class Consistency(unittest.TestCase):
    def test_words_are_read_whole(self):
        """The kernel copies aligned words of a process's memory whole, though they change at the same time. The writer stores whole words:
        it copies little at a time, because the C library may copy much byte by byte (rep movsb)."""
        code = ("import ctypes, sys\n"
                "words = (ctypes.c_uint64 * 4096)()\n"
                "start = ctypes.addressof(words)\n"
                "print(start, flush=True)\n"
                "while True:\n"
                "    for value in bytes(256), b'\\xff' * 256:\n"
                "        for at in range(start, start + 32768, 256):\n"
                "            ctypes.memmove(at, value, 256)\n")
        writer = subprocess.Popen(["/usr/bin/python3", "-c", code], stdout=subprocess.PIPE, text=True)
        self.addCleanup(writer.communicate)
        self.addCleanup(writer.kill)
        address = int(writer.stdout.readline())
        memory = processes.LiveMemory(writer.pid)
        self.addCleanup(memory.close)
        mixed = 0
        for _ in range(300):
            data = memory.read(address, 32768)
            words = {data[at:at + 8] for at in range(0, len(data), 8)}
            self.assertLessEqual(words, {bytes(8), b"\xff" * 8})
            mixed += len(words) == 2
        if os.cpu_count() > 1:
            self.assertGreater(mixed, 0)


if __name__ == "__main__":
    unittest.main()
