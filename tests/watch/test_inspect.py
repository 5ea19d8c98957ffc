#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 30
"""prudence-inspect finds the library however it was linked, stripped, in a process that stands still and in a core file, and its output about
slabs, objects and readers adds up to the process's own figures."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from watching import BUILD, FILTERS, INSPECT, ROOT, TOP, Case, until
from preload import ld_preload
from prudence_watch import core as cores

LINKERS = ("bfd", "gold", "lld", "mold")
FLAGS = ("-static", "-static-pie", "-pie", "-no-pie") if os.environ.get("PRUDENCE_MODELS") == "deep" else ("-static", "-pie")  # deep: make test-long


def columns(answer):
    """Rows of a table by their first column."""
    return {line.split()[0]: line.split()[1:] for line in answer.splitlines()[1:]}


class Inspect(Case):
    def inspect(self, *arguments, status=0, **more):
        done = self.run_tool(INSPECT, *arguments, status=status, **more)
        return done.stderr if status else done.stdout

    def assert_routes(self, answer):
        self.assertEqual(columns(answer)["routes"][1::2], ["300", "1000", "112000"])

    # ---------------------------------------------------------------------------------------- finding it

    def link(self, linker, flag):
        """A stripped program with the static library; None: this linker is not there, or knows no such program."""
        name = f"{linker}{flag}"
        made = subprocess.run(["cc", "-O1", flag, f"-fuse-ld={linker}", "-Wl,--gc-sections", f"-I{ROOT}/include", ROOT / "tests/watch/watched.c",
                               BUILD / "libprudence.a", "-pthread", "-o", self.folder / name], capture_output=True, text=True, check=False)
        if made.returncode:
            self.assertTrue(not shutil.which(f"ld.{linker}") or (linker, flag) == ("gold", "-static-pie"), made.stderr)
            return None
        subprocess.run(["strip", self.folder / name], check=True)
        return name

    def test_every_linker(self):
        """Also in core files, whose pages of files were skipped."""
        found = 0
        for linker in LINKERS:
            for flag in FLAGS:
                name = self.link(linker, flag)
                if not name:
                    continue
                found += 1
                with self.subTest(name):
                    watched = self.busy(name)
                    self.assert_routes(self.inspect("--pid", watched.pid, "caches"))
                    self.assert_routes(self.inspect("--core", self.core_of(watched, FILTERS[found % 2]), "caches"))
        self.assertGreater(found, 3)

    def test_a_stripped_library(self):
        """Which has been deleted since the program began, as after an upgrade."""
        folder = self.folder / "stripped"
        folder.mkdir()
        library = folder / "libprudence.so.0"
        shutil.copy(BUILD / "libprudence.so", library)
        subprocess.run(["strip", library], check=True)
        self.compile("stripped/watched", library, f"-Wl,-rpath,{folder}")
        watched = self.busy("stripped/watched")
        core = self.core_of(watched)
        library.rename(folder / "moved")
        self.assert_routes(self.inspect("--pid", watched.pid, "caches"))
        self.assertRegex(self.inspect("--core", core, "caches", status=1),
                         rf"it has no pages of '{re.escape(str(library))}', and that file is not here: name a folder that has it by --binaries\n$")
        shutil.copy(BUILD / "libprudence-malloc.so", library)
        self.assertRegex(self.inspect("--core", core, "caches", status=1), "is not the file that the process ran")
        library.unlink()
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        shutil.copy(folder / "moved", elsewhere / "libprudence.so.0")
        shutil.copy(folder / "watched", elsewhere / "watched")
        memory = cores.CoreMemory(str(core))
        self.addCleanup(memory.close)
        for path in {one.path for one in memory.mapped if Path(one.path).exists()}:
            shutil.copy(path, elsewhere)
        self.assert_routes(self.inspect("--core", core, "--binaries", elsewhere, "caches"))

    def test_notes_that_were_moved(self):
        """patchelf moves notes when it changes a path, so the note no longer leads to the table."""
        if not shutil.which("patchelf"):
            self.skipTest("there is no patchelf")
        library = self.folder / "moved" / "libprudence.so.0"
        library.parent.mkdir()
        shutil.copy(BUILD / "libprudence.so", library)
        self.compile("moved/watched", library, "-Wl,-rpath,/short")
        programs = [library.parent / "watched", *(self.folder / name for flag in ("-pie", "-no-pie") if (name := self.link("bfd", flag)))]
        subprocess.run(["patchelf", "--set-rpath", library.parent, library, *programs], check=True)
        for program in programs:
            with self.subTest(program.name):
                watched = self.busy(str(program.relative_to(self.folder)))
                self.assert_routes(self.inspect("--pid", watched.pid, "caches"))
                self.assert_routes(self.inspect("--core", self.core_of(watched), "caches"))

    def test_two_copies(self):
        watched = self.start(before=("env", f"LD_PRELOAD={ld_preload(BUILD / 'libprudence-malloc.so')}"))
        watched.ask("keep 5")
        said = self.inspect("--pid", watched.pid, "caches")
        self.assertEqual(len(re.findall(r"(?m)^caches of copy \d of the library", said)), 2)
        self.assertRegex(said, r"which is malloc\n")
        self.assertRegex(said, r"(?m)^routes ")

    def test_a_core_of_the_kernel(self):
        watched = self.start(before=("sh", "-c", 'ulimit -c unlimited; cd "$1"; exec "$2"', "sh", self.folder, self.folder / "crashes"))
        watched.ask("keep 300")
        watched.tell("dump core")
        watched.process.wait()
        found = [path for path in (self.folder / "core", self.folder / f"core.{watched.pid}") if path.exists()]
        if not found:
            self.skipTest("this system puts core files elsewhere (kernel.core_pattern)")
        self.assertEqual(columns(self.inspect("--core", found[0], "caches"))["routes"][1], "300")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        shutil.copy(cls.folder / "watched", cls.folder / "crashes")

    def test_no_core_files(self):
        for content, message in ((b"", "is no core file"), (b"\x7fELF" + bytes(200), "is no core file: it does not begin as one"),
                                 ((BUILD / "libprudence.so").read_bytes(), "is no core file: it does not begin as one")):
            path = self.folder / "none"
            path.write_bytes(content)
            self.assertIn(message, self.inspect("--core", path, "caches", status=1))
        self.assertIn("No such file", self.inspect("--core", self.folder / "missing", "caches", status=1))
        self.assertIn("it is no regular file", self.inspect("--core", "/dev/zero", "caches", status=1))

    # --------------------------------------------------------------------------------------- output

    def test_sums_are_the_processs(self):
        watched = self.busy()
        own = watched.stats()
        routes, = own["caches_list"]
        rows = [line.split() for line in self.inspect("--pid", watched.pid, "walk", "routes").splitlines()[1:]]
        objects, live, cached, latent, free = (sum(int(row[at]) for row in rows) for at in (2, 3, 4, 5, 6))
        self.assertEqual((len(rows), live, latent, cached), (routes["slabs_now"], routes["objects_live"], routes["objects_latent"], routes["objects_cached"]))
        self.assertEqual(objects, live + cached + latent + free)
        said = self.inspect("--pid", watched.pid, "latent", "routes")
        self.assertEqual(sum(map(int, re.findall(r": (\d+) objects", said))), routes["objects_latent"])
        counted = dict(re.findall(r"(?m)^  (\w+) +(\d+) ", self.inspect("--pid", watched.pid, "counters", "routes")))
        self.assertEqual(counted, {name: str(routes[name]) for name in counted})
        self.assertGreater(len(counted), 10)
        domain = columns(self.inspect("--pid", watched.pid, "domains"))["default"]
        self.assertEqual(domain[1:3], [str(own["domains_list"][0][name]) for name in ("readers", "readers_inside")])
        address = rows[0][0]
        self.assertRegex(self.inspect("--pid", watched.pid, "whois", address), r"cache 'routes' \(objects of 100 bytes\), domain 'default'\nslab 0x")

    def test_the_summary_is_as_the_process_writes_it(self):
        with open(self.folder / "said", "w+b") as said:
            watched = self.busy(options="background=0,dump=SIGUSR2", stderr=said)
            until(lambda: re.search(r" [\d.]+ m?s\n", self.inspect("--pid", watched.pid, "readers")))
            watched.process.send_signal(signal.SIGUSR2)
            self.assertTrue(until(lambda: "live:" in (self.folder / "said").read_text()))
            own = (self.folder / "said").read_text()
        outside = self.inspect("--pid", watched.pid, "dump")
        for line in ("slabs and large blocks: .*; retained", "latent: .* critical section", "live: .*"):
            self.assertEqual(re.search(line, outside)[0], re.search(line, own)[0])

    def test_the_reader_of_a_set_is_a_members(self):
        watched = self.busy()
        watched.ask("set of 100")
        self.assertRegex(self.inspect("--pid", watched.pid, "dump"), r"(?m)^latent: .* of cache 'of a set', domain 'a set': thread 'parser' \(tid \d+\) is inside a "
                         r"read-side critical section of 'default'")

    def test_a_process_that_stops_anywhere(self):
        """Also with a lock of the library, or half way through a change."""
        watched = self.start(options="background=0")
        watched.ask("storm")
        watched.ask("storm")
        self.assertTrue(until(lambda: "routes" in self.inspect("--pid", watched.pid, "caches")))
        for _ in range(20):
            watched.process.send_signal(signal.SIGSTOP)
            self.assertTrue(until(lambda: " T " in Path(f"/proc/{watched.pid}/stat").read_text()))
            for command in ("caches",), ("walk",), ("latent", "routes"), ("dump",):
                self.assertIn("routes", self.inspect("--pid", watched.pid, *command))
            watched.process.send_signal(signal.SIGCONT)
            time.sleep(0.01)

    def test_a_profile(self):
        """Its sites are those that the process writes."""
        path, own = self.folder / "outside.profile", self.folder / "own.profile"
        watched = self.start(options=f"background=0,profile=4K,profile_signal=SIGUSR1,profile_file={own}")
        watched.ask("keep 3000")
        self.assertEqual(self.inspect("--pid", watched.pid, "profile", path), f"written: {path}\n")
        watched.process.send_signal(signal.SIGUSR1)
        self.assertTrue(until(lambda: own.exists() and own.read_text().endswith("\nend\n")))

        def sites(text):
            return sorted(re.findall(r"(?m)^(?:allocates|defers) .*\nages.*\ncalls.*$", text))

        self.assertEqual(sites(path.read_text()), sites(own.read_text()))
        self.assertGreater(len(sites(own.read_text())), 0)
        self.assertRegex(self.run_tool(BUILD / "bin/prudence-profile", path).stdout, r"routes")
        without = self.start()
        self.assertIn("this process takes no profile", self.inspect("--pid", without.pid, "profile", path, status=1))

    def test_top_reads_a_core_file(self):
        watched = self.busy()
        core = self.core_of(watched)
        sample = json.loads(self.run_tool(TOP, "--core", core, "--json").stdout)
        self.assertEqual((sample["pid"], sample["program"]), (watched.pid, "watched"))
        self.assertEqual(sample["totals"]["objects_latent"], 1000)
        self.assertRegex(self.run_tool(TOP, "--core", core).stdout, r"(?m)^routes +100B +300 +1\.0k")
        reader, = sample["domains"][0]["threads_inside"]
        self.assertGreater(reader["grace_periods_begun"], 0)

    def test_bad_arguments_are_named(self):
        watched = self.start()
        for arguments, message in ((("--pid", watched.pid), "the following arguments are required: COMMAND"), (("--pid", watched.pid, "whois", "main"), "'main' is no address"),
                                   (("--pid", watched.pid, "--binaries", "/", "caches"), "--binaries: only allowed with argument --core"),
                                   (("--core", "x", "--user", "0", "caches"), "--user: not allowed with argument --core"), (("--pid", watched.pid, "nothing"), "invalid choice")):
            with self.subTest(arguments):
                self.assertIn(message, self.inspect(*arguments, status=2))
        for command in ("counters", "walk", "latent"):
            self.assertIn("there is no cache 'nothing'", self.inspect("--pid", watched.pid, command, "nothing", status=1))
        self.assertEqual(self.inspect("--pid", watched.pid, "whois", "4096"), "0x1000: no memory of Prudence's slabs\n")


if __name__ == "__main__":
    unittest.main()
