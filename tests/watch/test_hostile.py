#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 5
"""The data of a process about itself may be false: the tools then name the fault in one line, in bounded time and memory. A process is taken by
its name only if it is the user's own. No name reaches a terminal, a row or a metric with codes that these would obey."""

import contextlib
import csv
import io
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import unittest
from types import SimpleNamespace
from unittest import mock

import forged
import fuzzing
from forged import CACHE, CACHES, CHUNK, CPUS, DEFAULT, OTHERS
from watching import STAT, TOP, Case, until
from prudence_watch import bounds, choose, note, patience, text
from prudence_watch import process as processes
from prudence_watch.errors import Ended, WatchError
from prudence_watch.figures import NEEDED, Watch
from prudence_watch.layout import LAYOUT, Layout
from prudence_watch.source import Source

NOBODY = 65534
ONCE = ("--once", "--interval", "50ms")
ODD = "a\x1b[31m\r\n\x9b\u202e\u2028,\"b"


class Forged(Case):
    @classmethod
    def setUpClass(cls):
        """No program is compiled."""

    def sampled(self, figures, **instead):
        with forged.exported(forged.description(figures, **instead)):
            with contextlib.closing(processes.Process(os.getpid())) as process:
                return Source(Watch(process)).sample()

    def refused(self, message, figures=None, **instead):
        with self.assertRaisesRegex(WatchError, rf"^process {os.getpid()} \(.*\): .*{message}") as caught:
            self.sampled(figures or forged.figures(), **instead)
        self.assertLess(len(str(caught.exception)), 300)


class Descriptions(Forged):
    def test_a_sound_one_is_taken(self):
        domain, = self.sampled(forged.figures())["domains"]
        self.assertEqual((domain["kind"], domain["readers"]), ("forged", 0))

    def test_rows(self):
        for row, message in ((("number", "", 2), "its name is none"), (("number", "c\xe4", 2), "its name is none"), (("number", "a b", 2), "its name is none"),
                             (("number", "percpu_stride", 0), "0 is no number from 1"), (("number", "stack_count_bits", 64), "64 is no number from 1 to 63"),
                             (("number", "grace_period_step", 0), "0 is no number from 1"), (("number", "leaf_shift", 64), "64 is no number"),
                             (("address", "slab_caches", 1 << 63), "is no number from 0"), (("member", "list.next", 65537, 8), "65537 is no number from 0 to 65536"),
                             (("member", "list.next", 0, 0), "0 is no number from 1 to 65536"),
                             (("counter", "hits", "cpu_cache.counts.hits", "Hits."), "none of a counter"),
                             (("counter", "cache.hits_total", "cpu_cache.counts.hits", "Hits."), "none of a counter"),
                             (("counter", "process.cache_hits", "hits", "Hits."), "none of a counter"),
                             (("counter", "cache.hits", "cpu_cache.line.hits", "Hits."), "no counter can be there"),
                             (("counter", "domain.hits", "cpu_cache.counts.hits", "Hits."), "no counter can be there"),
                             (("counter", "process.hits", ",", "Hits."), "no counter can be there"), (("counter", "cache.hits", "cpu_cache.counts.hits", ""), "it says nothing")):
            with self.subTest(row), self.assertRaisesRegex(WatchError, message):
                Layout("0.3.0", [row])

    def test_tables(self):
        of = forged.figures()
        for more, message in (({"layout_number": LAYOUT + 1}, f"of layout {LAYOUT + 1}, and this tool reads layout {LAYOUT}"), ({"name": "others"}, "does not begin with its name"),
                              ({"version": ""}, "has no version"), ({"sizes": (8, 0, 0, 0)}, "rows of 8 bytes for each number"),
                              ({"sizes": (0, 0, 4096, 0)}, "rows of 4096 bytes for each member")):
            with self.subTest(message), forged.exported(forged.description(of), **more), self.assertRaisesRegex(WatchError, message):
                processes.Process(os.getpid())

    def test_modules_that_are_none(self):
        """Headers and notes that end early, or lead elsewhere."""
        sound = forged.module(forged.description(forged.figures()), 0)
        for place, size in ((0, 64), (64, 112), (forged.NOTE, 32)):
            for at in range(place, place + size, 4):
                for value in (0, 1, 0x7fffffff, 0xffffffff):
                    data = bytearray(sound)
                    data[at:at + 4] = value.to_bytes(4, "little")
                    memory = fuzzing.Recorded({0: bytes(data)})
                    table = note.table_in(memory, 0)
                    self.assertTrue(table is None or 0 <= table <= bounds.WORD)

    def test_members_lie_in_their_structures(self):
        self.refused("has 'prudence_domain.stalls' end 264 bytes into a structure of 256", member_prudence_domain__stalls=(256, 8))
        self.refused("has 'reader_chunk.slots' end 65600 bytes into a structure of 65536", member_reader_chunk__slots=(64, 65536))
        self.refused("has 16 bytes for 'prudence_domain.stalls', whose limit is 8", member_prudence_domain__stalls=(0, 16))
        self.refused("has 64 bytes for", member_prudence_domain__shared__sequence=(0, 64))

    def test_what_is_missing_is_named(self):
        of = forged.add_caches(forged.figures(), 2)
        of.set(CACHE + 256 + 56, 0)  # one of large blocks
        of.set(OTHERS + 16, of.base + CHUNK)
        of.set(DEFAULT + 88, of.base + CHUNK, of.base + CPUS + 512)
        of.set(CPUS + 512, 1, of.base + CPUS)
        of.set(CHUNK, 0, 1)
        of.set(CHUNK + 64, 1025, 4711, 1024)
        for row in forged.description(of):
            kind, name = row.split()
            if kind == "counter" and name not in NEEDED:
                continue
            with self.subTest(name):
                self.refused(f"the table of its figures lacks '{name}'", of, **{f"{kind} {name}".replace(" ", "_", 1).replace(".", "__"): None})

    def test_many_copies(self):
        of = forged.figures()
        with forged.exported(forged.description(of), times=40), self.assertRaisesRegex(WatchError, "more copies of the library than the limit, 16"):
            processes.Process(os.getpid())

    def test_the_tool_says_it_in_a_line(self):
        of = forged.figures()
        for instead, message in (({"number_percpu_stride": 0}, "a row of the table of its figures cannot be: 'number percpu_stride 0'"),
                                 ({"number_grace_period_step": None}, "the table of its figures lacks 'grace_period_step'"),
                                 ({"number_\x1b]0;title\x07": 1}, "a row of the table of its figures cannot be: "),
                                 ({"address_prudence_default": 8}, "its memory cannot be read")):
            with self.subTest(message), forged.exported(forged.description(of, **instead)):
                for tool in ((TOP, *ONCE), (TOP, *ONCE, "--json"), (STAT, "--interval", "50ms", "--count", "1")):
                    done = self.run_tool(*tool, "--pid", os.getpid(), status=1)
                    self.assertRegex(done.stderr, rf"^prudence-(top|stat): process {os.getpid()} \(.*\): {re.escape(message)}[^\n]*\n$", tool)
                    self.assertNotIn("\x1b", done.stderr)


class Figures(Forged):
    def test_structures_of_any_size(self):
        of = forged.add_caches(forged.figures(), 1)
        of.set(forged.COUNTS, 8192)
        self.refused("it claims a structure of 8388608 bytes; the limit is", of, number_percpu_stride=1024)
        of.set(forged.COUNTS, 8193)
        self.refused("it claims 8193 cpus; the limit is 8192", of)
        of.set(forged.COUNTS, 2, 0)
        self.refused("it claims 0 nodes; the limit is 1024", of)
        of.set(forged.COUNTS, 2, 1)
        self.refused("has 'cpu_cache.counts.merges' where it cannot be", of, number_percpu_stride=80)
        self.refused("has 'cpu_cache.counts.merges' where it cannot be", of, member_cpu_cache__counts__merges=(76, 8))

    def test_addresses_beyond_all_memory(self):
        for value in (1 << 63, (1 << 64) - 1, (1 << 63) - 4, 1):
            of = forged.figures()
            of.set(DEFAULT + 88, value)
            self.refused("its memory cannot be read", of)
            of = forged.figures()
            of.set(CACHES, value)
            self.refused("the list changes faster than it can be read, or is damaged", of)

    def test_lists_and_chunks_in_a_circle(self):
        of = forged.figures()
        of.set(CACHES, of.base + CACHE)
        of.set(CACHE, of.base + CACHE, of.base + CACHES, 1)
        self.refused("the list changes faster than it can be read, or is damaged", of)
        of = forged.figures()
        of.set(DEFAULT + 88, of.base + CHUNK)
        of.set(CHUNK, of.base + CHUNK)
        self.refused("chunks of readers lead in a circle", of)

    def test_threads_without_number(self):
        of = forged.figures()
        of.set(DEFAULT + 88, of.base + CHUNK)
        of.set(CHUNK, 0, 1 << 60)
        for at in range(127):
            of.set(CHUNK + 64 + at * 128, 1 << 20 | 1, 4711)
        with mock.patch.dict(bounds.PER_SAMPLE, {"threads inside sections": 100}):
            self.refused("it claims more threads inside sections than the limit, 100", of)

    def test_caches_without_number(self):
        of = forged.add_caches(forged.figures(), 9)
        self.assertEqual(self.sampled(of)["caches"], [])  # nothing was ever allocated from them
        with mock.patch.dict(bounds.PER_SAMPLE, {"caches": 8}):
            self.refused("it claims more caches than the limit, 8", of)

    def test_numbers_of_any_size(self):
        """Sums, rates and shares of the largest ones are shown, too."""
        of = forged.add_caches(forged.figures(), 1)
        of.set(CACHE + 80, *[-1] * 4)
        of.set(CACHE + forged.BODY + 8, *[-1] * 11)
        of.set(CPUS, *[-1] * 64)
        of.set(OTHERS, *[-1] * 16)
        of.set(OTHERS + 16, 0)
        sample = self.sampled(of)
        json.loads(text.json_line(sample))
        self.assertEqual(len(list(text.csv_lines(sample))), 1)
        cache, = sample["caches"]
        self.assertGreaterEqual(min(value for value in cache.values() if isinstance(value, (int, float))), 0)

    def test_memory_that_is_no_more(self):
        """Between two reads grace periods."""
        of = forged.figures()
        with forged.exported(forged.description(of)):
            process = processes.Process(os.getpid())
            self.addCleanup(process.close)
            source = Source(Watch(process))
            source.look()
            source.watch.copies[0].layout.addresses["prudence_default"] = 8
            with self.assertRaisesRegex(WatchError, "its memory cannot be read"):
                source.look()

    def test_a_sample_has_a_time_limit(self):
        of = forged.figures()
        with mock.patch.object(bounds, "SECONDS", 0):
            self.refused("a sample of it takes more than 0 s", of)

    def test_memory_that_does_not_answer(self):
        """A thread is abandoned, and another one only when that has ended."""
        answers, begun = threading.Event(), []

        def work():
            begun.append(1)
            answers.wait()

        with mock.patch.object(bounds, "SECONDS", -0.45):
            with self.assertRaisesRegex(WatchError, "process 7: the memory of the process could not be read"):
                patience.within("process 7", work)
            with self.assertRaisesRegex(WatchError, "process 7: an earlier read of memory has still not ended"):
                patience.within("process 7", work)
        self.assertEqual(len(begun), 1)
        answers.set()
        patience.stuck.join()
        self.assertEqual(patience.within("process 7", lambda: 5), 5)
        with self.assertRaises(KeyError):
            patience.within("process 7", lambda: {}[1])


class Names(Forged):
    def test_no_output_obeys_them(self):
        cache = dict.fromkeys(text.CSV_OF_CACHE, 1) | {"name": ODD, "domain": ODD, "per_second": dict.fromkeys(
            ("allocations", "deferred_frees", "object_cache_churns", "slab_churns"), 1.0)}
        sample = {"time": "now", "pid": 1, "program": ODD, "caches": [cache]}
        row, = text.csv_lines(sample)
        self.assertTrue(row.isprintable())
        fields, = csv.reader(io.StringIO(row + "\n", newline=""), strict=True)
        self.assertEqual(fields[2:4], ["a?[31m?????,\"b"] * 2)
        line = text.json_line(sample)
        self.assertTrue(line.isprintable())
        self.assertEqual(json.loads(line)["program"], ODD)

    def test_metrics(self):
        try:
            from prudence_watch import openmetrics
        except ImportError as error:
            self.skipTest(error)
        sample = self.sampled(forged.figures())
        sample["program"] = sample["domains"][0]["name"] = ODD
        labels = [str(one.labels) for family in openmetrics.metrics_of(sample, lambda _: {"odd": ODD}) for one in family.samples]
        self.assertEqual([one for one in labels if "\\x1b" in one or "\\x9b" in one or "\\r" in one], [])

    def test_many_processes_are_named_in_part(self):
        with mock.patch.object(choose, "watchable", return_value=list(range(1, 30000))), self.assertRaises(WatchError) as caught:
            choose.the_only(0)
        self.assertRegex(str(caught.exception), r"^29999 processes .* and 29991 more\. Choose")
        self.assertLess(len(str(caught.exception)), 400)


class Clients(Forged):
    def test_a_scrape_says_that_the_process_cannot_be_watched(self):
        try:
            from prudence_watch import openmetrics
        except ImportError as error:
            self.skipTest(error)
        of, told = forged.figures(), []
        with forged.exported(forged.description(of)):
            find = choose.Finder(SimpleNamespace(pid=os.getpid(), user=None, name=None)).open
            collector = openmetrics.Collector(find(), find, told.append)
            values = [{family.name: family.samples[0].value for family in collector.collect() if family.name == "prudence_up"}]
            of.set(DEFAULT + 88, 1 << 63)
            values += [[(family.name, family.samples[0].value) for family in collector.collect()] for _ in range(2)]
        self.assertEqual(values, [{"prudence_up": 1}, *[[("prudence_up", 0)]] * 2])
        self.assertEqual(len(told), 1)
        self.assertIn("its memory cannot be read", told[0])


class Users(Case):
    def named(self, name):
        shutil.copy(self.folder / "watched", self.folder / name)
        return name

    def said(self, *arguments, tool=TOP, status=1):
        return self.run_tool(tool, *arguments, status=status)

    @unittest.skipIf(os.geteuid() != 0, "only root may be another user")
    def test_another_users_process_is_not_taken_for_ones_own(self):
        name = self.named(f"own-{os.getpid()}")
        other = self.start(name, user=NOBODY, group=NOBODY, extra_groups=[])
        for tool, more in ((TOP, ONCE), (STAT, ("--count", "1")), (STAT, ("--listen", "0"))):
            done = self.said("--name", name, *more, tool=tool)
            self.assertIn(f"no process of the name '{name}' is of user root: there is {other.pid} of nobody. Choose it by --pid or --user", done.stderr)
        for which in (("--pid", other.pid), ("--name", name, "--user", "nobody"), ("--name", name, "--user", NOBODY)):
            self.assertEqual(json.loads(self.said(*which, *ONCE, "--json", status=0).stdout)["pid"], other.pid)
        own = self.start(name)
        self.assertEqual(json.loads(self.said("--name", name, *ONCE, "--json", status=0).stdout)["pid"], own.pid)
        self.assertIn("no process of daemon that may be read uses Prudence", self.said(*ONCE, "--user", "daemon").stderr)
        self.assertNotIn(other.pid, processes.watchable(0))
        self.assertIn(other.pid, processes.watchable(NOBODY))

    @unittest.skipIf(os.geteuid() != 0, "only root may be another user")
    def test_another_users_process_does_not_follow_ones_own(self):
        """Neither by its name nor by its number."""
        name = self.named(f"next-{os.getpid()}")
        own = self.start(name)
        for options in ({"pid": None, "name": name}, {"pid": own.pid, "name": None}):
            finder = choose.Finder(SimpleNamespace(user=None, **options))
            finder.open().process.close()
            self.assertEqual(finder.user, 0)
            with mock.patch.object(processes, "uid_of", return_value=NOBODY), self.assertRaisesRegex(WatchError, "of another user|is of user root"):
                with mock.patch.object(choose, "by_name", return_value=own.pid):
                    finder.open()
        with self.assertRaisesRegex(Ended, "is of another user than nobody now"):
            processes.Process(own.pid, NOBODY)

    @unittest.skipIf(os.geteuid() != 0, "only root may be another user")
    def test_a_setuid_program_is_of_several_users(self):
        program = subprocess.Popen(["setpriv", f"--ruid={NOBODY}", "sleep", "60"])
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        self.assertTrue(until(lambda: processes.name_of(program.pid) == "sleep"))
        self.assertEqual(processes.uid_of(program.pid), processes.SEVERAL)
        self.assertEqual(processes.user_name(processes.SEVERAL), "several users")
        self.assertEqual(processes.uid_of(1 << 23), processes.SEVERAL)

    def test_bad_users(self):
        watched = self.start()
        self.assertIn("argument --user: there is no user 'no such one'", self.said("--user", "no such one", *ONCE, status=2).stderr)
        self.assertIn("argument --user: not allowed with argument --pid", self.said("--user", "0", "--pid", watched.pid, *ONCE, status=2).stderr)

    def test_clients_without_number(self):
        """Connections beyond some are closed; the others are served, and so are later ones."""
        watched = self.start()
        server = subprocess.Popen([STAT, "--pid", str(watched.pid), "--listen", "0"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        port = int(re.search(r":(\d+)/metrics", server.stderr.readline())[1])
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(bounds.CLIENTS + 20)]
        for one in idle:
            one.setblocking(False)
            self.addCleanup(one.close)

        def hung_up():
            count = 0
            for one in idle:
                try:
                    count += one.recv(1) == b""
                except BlockingIOError:
                    pass
                except ConnectionResetError:
                    count += 1
            return count

        self.assertTrue(until(lambda: hung_up() >= 20))
        self.assertLessEqual(len(os.listdir(f"/proc/{server.pid}/task")), bounds.CLIENTS + 4)
        for one in idle:
            one.close()

        def answered():
            with socket.create_connection(("127.0.0.1", port)) as one:
                one.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
                try:
                    return b"prudence_up 1" in b"".join(iter(lambda: one.recv(65536), b""))
                except ConnectionResetError:
                    return False

        self.assertTrue(until(answered))

    def test_a_socket_whose_queue_is_full(self):
        watched, path = self.start(), str(self.folder / "full.sock")
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as waiting:
            listener.bind(path)
            listener.listen(0)
            waiting.setblocking(False)
            waiting.connect(path)
            done = self.said("--pid", watched.pid, "--listen", path, tool=STAT)
            self.assertIn(f"'{path}' is already in use", done.stderr)


if __name__ == "__main__":
    unittest.main()
