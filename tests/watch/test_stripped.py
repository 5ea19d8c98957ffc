#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 20
"""Each command of the tools and of gdb answers from a stripped library, as packages have it: shared or in a static program, of a process and of its
core file. A command that fails, and one that only reads, leaves the process as it was."""

import hashlib
import mmap
import re
import subprocess
import urllib.request
from pathlib import Path

from watching import BUILD, INSPECT, PATIENCE, ROOT, STAT, TOP, Case, needs_gdb, until
from prudence_watch import inspect

SCRIPT = ROOT / "programs/gdb/prudence-gdb.py"
PAGE = mmap.PAGESIZE
WRITES = {"set", "call"}  # the commands that write into the process (test_ask.py, test_call.py)
READS = {
    "dump": r"(?m)^latent: .* of cache 'routes', domain 'default': thread '(parser|\?)' \(tid \d+\) is inside",
    "caches": r"(?m)^routes +100 +300 +\d+ +1000 +\d+ +112000 +default$",
    "counters routes": r"cache 'routes'\n(  .*\n)*?  refills +[1-9]",
    "latent routes": r"cache 'routes', domain 'default'\n  CPU \d+: \d+ objects, ",
    "walk routes": r"(?m)^0x\w+ +\d+ +\d+ +\d+ .* routes$",
    "domains": r"(?m)^default +memb +1 +1 ",
    "readers": r"(?m)^default +\d+ +(parser|-) +1 +1 ",
    "whois {slab}": r"cache 'routes' \(objects of 100 bytes\), domain 'default'\nslab 0x",
    "profile {folder}/profile": r"written: .*/profile\n",
}
OF_GDB = {**READS, "traces": r"thread \d+ is inside of domain 'default' since 1 grace periods\n#0 "}
# The forms that the help of each tool lists.
LIVE_FORMS = {
    (TOP, "--once"): r"(?m)^routes +100B +300 +1\.0k",
    (TOP, "--once", "--csv"): r",watched,routes,0,\d+,default,100,300,1000,",
    (TOP, "--once", "--json"): r'"objects_latent": ?1000',
    (STAT, "--count", "1", "--csv"): r",watched,routes,0,\d+,default,100,300,1000,",
    (STAT, "--count", "1", "--json"): r'"objects_latent": ?1000',
}
CORE_FORMS = {command: answer for command, answer in LIVE_FORMS.items() if command[0] == TOP}
# What fails, and why.
REFUSED = (
    ((INSPECT, "counters", "nothing"), "there is no cache 'nothing'"),
    ((INSPECT, "latent", "nothing"), "there is no cache 'nothing'"),
    ((INSPECT, "walk", "nothing"), "there is no cache 'nothing'"),
    ((INSPECT, "whois", "main"), "'main' is no address"),
    ((INSPECT, "profile", "/nowhere/at/all"), "/nowhere/at/all: No such file or directory"),
    ((INSPECT, "set", "x" * 32, "1"), "the option's name has more than 31 bytes"),
    ((INSPECT, "nothing"), "invalid choice"),
    ((TOP,), "standard input and output are no terminal"),
    ((STAT, "--listen", "256.0.0.1:0"), "prudence-stat: "),
)
REFUSED_BY_GDB = {
    "counters nothing": "there is no cache 'nothing'",
    "latent nothing": "there is no cache 'nothing'",
    "walk nothing": "there is no cache 'nothing'",
    "whois": "an address is missing",
    "profile": "the name of a file is missing",
    "profile /nowhere/at/all": "No such file or directory",
    "set stall_trace": "an option and a value are wanted",
    "call": "a function and at most six numbers are wanted",
    "call nothing": "nothing'|on x86-64 alone",
    "call prudence_trim": "the register rbp cannot be written|on x86-64 alone",
}


class Stripped(Case):
    @classmethod
    def setUpClass(cls):
        needs_gdb()
        super().setUpClass()
        folder = cls.folder / "static"
        folder.mkdir()
        cls.compile("static/watched", "-static", BUILD / "libprudence.a")
        for file in (cls.folder / "libprudence.so.0", folder / "watched"):
            subprocess.run(["strip", file], check=True)
            assert not re.search(r" \.(symtab|debug_)", subprocess.run(["readelf", "-SW", file], text=True, capture_output=True, check=True).stdout)

    def gdb(self, *target, commands):
        """Returns the answer to each command of gdb. gdb may not write registers."""
        words = [word for command in commands for word in ("-ex", "echo \\n=== \\n", "-ex", f"prudence {command}")]
        done = subprocess.run(["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set style enabled off", "-iex", "set width 0",
                               "-iex", "set may-write-registers off", *map(str, target), "-x", SCRIPT, *words],
                              text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False)
        return done.stdout.split("\n=== \n")[1:]

    def assert_answers(self, target, of_gdb, forms):
        slab = self.run_tool(INSPECT, *target, "walk", "routes").stdout.splitlines()[1].split()[0]

        def local(command):
            return command.format(slab=slab, folder=self.folder)

        for command, answer in READS.items():
            with self.subTest(command):
                self.assertRegex(self.run_tool(INSPECT, *target, *local(command).split()).stdout, answer)
        self.assertRegex(self.run_tool(BUILD / "bin/prudence-profile", self.folder / "profile").stdout, r"routes: (allocate <|\S+/static/watched\+0x)")
        for command, answer in forms.items():
            with self.subTest(command):
                self.assertRegex(self.run_tool(command[0], *target, *command[1:]).stdout, answer)
        for (command, answer), said in zip(OF_GDB.items(), self.gdb(*of_gdb, commands=map(local, OF_GDB)), strict=True):
            with self.subTest(f"gdb: {command}"):
                self.assertRegex(said, answer)

    def metrics(self, watched):
        server = subprocess.Popen([STAT, "--pid", str(watched.pid), "--listen", "0"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        with urllib.request.urlopen(server.stderr.readline().split()[-1], timeout=PATIENCE) as answer:
            return answer.read().decode()

    def assert_all_answer(self, name):
        watched = self.busy(name, options="background=0,profile=4K")
        core = self.core_of(watched)
        self.assert_answers(("--pid", watched.pid), ("-p", watched.pid), LIVE_FORMS)
        self.assertRegex(self.metrics(watched), r'(?m)^prudence_cache_latent_objects\{cache="routes",.*\} 1000')
        self.assert_answers(("--core", core), (self.folder / name, core), CORE_FORMS)

    def test_a_shared_library(self):
        self.assert_all_answer("watched")

    def test_a_static_program(self):
        self.assert_all_answer("static/watched")

    def test_no_command_is_missing_in_the_tables(self):
        """Also those of gdb: it has the same and traces."""
        known = {command.split()[0] for command in READS}
        asked, = (action.choices for action in inspect.parser()._actions if action.dest == "command")
        self.assertEqual(set(asked) - WRITES, known)
        listed = subprocess.run(["gdb", "-nx", "-batch", "-x", SCRIPT, "-ex", "help prudence"], text=True, capture_output=True, check=True).stdout
        self.assertEqual(set(re.findall(r"(?m)^prudence (\w+) --", listed)) - WRITES, known | {"traces"})
        forms = {tool: {word for command in LIVE_FORMS if command[0] == tool for word in command[1:]} for tool in (TOP, STAT)}
        for tool, others in ((TOP, set()), (STAT, {"--listen"})):  # metrics()
            shown = set(re.findall(r"--(?:once|json|csv|listen|count)\b", self.run_tool(tool, "--help").stdout))
            self.assertEqual(shown - others, {form for form in forms[tool] if form.startswith("--")})

    # ------------------------------------------------------------------------------------- the process

    def waiting(self):
        """A process whose threads wait for ever."""
        watched = self.busy(options="background=0,profile=4K")
        self.assertTrue(until(lambda: all("(sleeping)" in does[0] for _, does in self.state(watched, memory=False)[0].values())))
        return watched

    def state(self, watched, memory=True):
        """Returns what each thread does, and by default the digest of each page that the process has written."""
        folder, kept = Path(f"/proc/{watched.pid}"), r"(?m)^(?:State|TracerPid|SigPnd|ShdPnd|SigBlk|SigIgn|SigCgt):.*$"
        threads = {task.name: ((task / "syscall").read_text(), re.findall(kept, (task / "status").read_text())) for task in (folder / "task").iterdir()}
        pages = {}
        if memory:
            with open(folder / "mem", "rb") as file, open(folder / "pagemap", "rb") as pagemap:
                for start, end in re.findall(r"(?m)^(\w+)-(\w+) rw", (folder / "maps").read_text()):
                    pages |= self.written(file, pagemap, int(start, 16), int(end, 16))
        return threads, pages

    @staticmethod
    def written(file, pagemap, start, end):
        """A page that has zeros may come and go: the system drops it when it needs memory."""
        pagemap.seek(start // PAGE * 8)
        entries, found = pagemap.read((end - start) // PAGE * 8), {}
        for at in range(0, len(entries), 8):
            if entries[at + 7] >> 6:  # present or swapped
                file.seek(start + at // 8 * PAGE)
                content = file.read(PAGE)
                if any(content):
                    found[hex(start + at // 8 * PAGE)] = hashlib.sha256(content).hexdigest()[:8]
        return found

    def test_a_command_leaves_the_process_as_it_was(self):
        watched = self.waiting()
        before = self.state(watched)
        self.assertGreater(len(before[1]), 20)
        for command, why in REFUSED:
            with self.subTest(command):
                tool, *words = command
                done = subprocess.run([tool, "--pid", str(watched.pid), *words], text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False)
                self.assertIn(done.returncode, (1, 2))
                self.assertIn(why, done.stderr)
                self.assertEqual(self.state(watched), before)
        for command in READS:
            with self.subTest(command):
                self.run_tool(INSPECT, "--pid", watched.pid, *command.format(slab=4096, folder=self.folder).split())
                self.assertEqual(self.state(watched), before)
        for command in LIVE_FORMS:
            with self.subTest(command):
                self.run_tool(command[0], "--pid", watched.pid, *command[1:])
                self.assertEqual(self.state(watched), before)

    def test_a_command_of_gdb_leaves_the_process_as_it_was(self):
        """The process goes on, and no system call of its threads ends early."""
        watched = self.waiting()
        before = self.state(watched, memory=False)
        for command, said in zip(REFUSED_BY_GDB, self.gdb("-p", watched.pid, commands=REFUSED_BY_GDB), strict=True):
            with self.subTest(command):
                self.assertRegex(said, REFUSED_BY_GDB[command])
        until(lambda: self.state(watched, memory=False) == before)  # its threads return to their system calls
        self.assertEqual(self.state(watched, memory=False), before)
        self.assertEqual(watched.ask("keep 1"), "done")
        self.assertEqual(watched.ask("leave"), "done")


if __name__ == "__main__":
    import unittest
    unittest.main()
