#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 20
"""Each line of docs/how-to/running-process.md behaves as the page says: for a process that was started without any option, and for its core
file. The process goes on after each.

gdb may neither call functions of the process nor write its registers here, except for `prudence call`: on a processor with AMX gdb 13.1 cannot write
the registers of vectors (test_call.py).

gdb needs a second for each line, so by default some sections are tried; PRUDENCE_MODELS=deep (make test-long) tries all."""

import os
import platform
import re
import shlex
import shutil
import subprocess
import unittest
from pathlib import Path

from watching import BUILD, PATIENCE, ROOT, Case, needs_gdb, until
from preload import plain_path

PAGE = (ROOT / "docs/how-to/running-process.md").read_text()
SCRIPT = ROOT / "programs/gdb/prudence-gdb.py"
LONG = unittest.skipUnless(os.environ.get("PRUDENCE_MODELS") == "deep", "make test-long runs this")


def lines_of(section):
    """Returns the code in a section of the page."""
    text = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)[1]
    return "".join(re.findall(r"^```\n(.*?)^```\n", text, re.M | re.S)).splitlines()


class RunningProcess(Case):
    @classmethod
    def setUpClass(cls):
        needs_gdb()
        super().setUpClass()
        for name in ("prudence-top", "prudence-inspect", "prudence-profile", "prudence-symbolize"):
            assert (BUILD / "bin" / name).exists()

    def setUp(self):
        self.said = self.folder / "said"
        with open(self.said, "wb") as said:
            self.watched = self.start(options="", stderr=said)
        self.watched.ask("keep 300")
        self.watched.ask("enter")
        self.watched.ask("defer 1000")

    def local(self, line):
        """The line for this process."""
        for there, here in (("/usr/local/share/prudence/prudence-gdb.py", plain_path(SCRIPT)), ("/usr/sbin/routerd", self.folder / "watched"),
                            ("/var/tmp/", f"{self.folder}/"), ("4711", self.watched.pid)):
            line = line.replace(there, str(here))
        return line

    def run_line(self, *words, writes="off"):
        gdb = ("-nx", "-iex", "set may-call-functions off", "-iex", f"set may-write-registers {writes}", "-iex", "set debuginfod enabled off", "-iex", "set style enabled off", "-iex", "set width 0")
        words = [words[0], *gdb, *words[1:]] if words[0] == "gdb" else [BUILD / "bin" / words[0], *map(str, words[1:])]
        return subprocess.run(words, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              timeout=PATIENCE, check=False).stdout

    def asked(self, section, **more):
        """Returns the output of the lines of a section, in order."""
        return "\n".join(self.run_line(*shlex.split(self.local(line)), **more) for line in lines_of(section))

    def assert_all(self, text, *patterns):
        for pattern in patterns:
            self.assertRegex(text, pattern)
        self.assertNotIn("Traceback", text)

    def working(self):
        """The process allocates all the time."""
        self.watched.ask("storm")

    def tearDown(self):
        self.assertEqual(self.watched.ask("keep 1"), "done")  # it goes on

    def test_watch_it(self):
        top, = (shlex.split(self.local(line)) for line in lines_of("Watch it"))
        self.assert_all(self.run_line(*top, "--once", "--interval", "100ms"), r"(?m)^routes +100B +300 +1\.0k")

    def test_see_what_holds_memory(self):
        self.assert_all(self.asked("See what holds memory"), r"latent: .* of cache 'routes', domain 'default': thread 'parser' \(tid \d+\) is inside", "live: .* 'routes'",
                        r"(?m)^routes +100 +300 +\d+ +1000 ", r"(?m)^0x\w+ +\d+ +\d+ +\d+ .* routes$")

    def test_see_where_readers_stay(self):
        self.working()
        self.assert_all(self.asked("See where readers stay"), r"(?m)^default +\d+ +parser +1 ",
                        r"thread \d+ is inside of domain 'default' since \d+ grace periods\n(.*\n)*#\d+ .* parse \(", "stall_trace is 1 now")

    @LONG
    def test_find_what_grows(self):
        commands = [shlex.split(self.local(line)) for line in lines_of("Find what grows")]
        self.assertIn("the process has not acted yet", self.run_line(*commands[0]))
        self.watched.ask("keep 3000")
        self.assert_all(self.run_line(*commands[1]), "written: .*first.profile")
        self.watched.ask("keep 30000")
        self.assert_all(self.run_line(*commands[2]), "written: .*second.profile")
        self.assert_all(self.run_line(*commands[3]), r"growth in", r"objects of cache 'routes', 100 bytes each, 100\.0 % of those allocated in that time",
                        r"    allocate at .*watched\.c:\d+")

    def test_ask_a_core_file(self):
        self.assertEqual(self.watched.ask("set profile 4K"), "0")
        self.watched.ask("keep 3000")
        self.assert_all(self.asked("Ask a core file"), r"(?m)^routes +100B +3\.3k", r"latent: .* of cache 'routes'", r"(?m)^0x\w+ +\d+ +\d+ +\d+ .* routes$",
                        r"thread \d+ is inside of domain 'default'(.*\n)*#\d+ .* parse \(", "written: .*core.profile")
        self.assert_all(self.run_line("prudence-profile", self.local("/var/tmp/core.profile")), r"\d+ +-  routes: ")

    def of_others(self, program):
        """The section's lines of a program, with less to wait for."""
        if not shutil.which(program):
            self.skipTest(f"there is no {program}")
        lines = [self.local(line).replace("sleep 10", "sleep 2").replace("s:10", "s:2") for line in lines_of("Ask with lldb, perf or bpftrace")]
        for line in lines:
            if line.startswith(f"{program} "):
                done = subprocess.run(shlex.split(line), text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                      timeout=PATIENCE, check=False)
                yield done.stdout

    def test_lldb(self):
        self.run_line("gdb", "-p", str(self.watched.pid), "-batch", "-ex", f"generate-core-file {self.folder}/core")
        said = list(self.of_others("lldb"))
        if "Operation not permitted" in said[0]:
            self.skipTest("lldb may not trace here")
        self.assertEqual(len(said), 2)
        for one in said:
            self.assertRegex(one, r"(?m)^. thread #2(, name = 'parser')?, (.*\n)+? +frame #\d+: 0x\w+ watched`parse\(")

    @LONG
    def test_perf(self):
        self.working()
        said = list(self.of_others("perf"))
        if "failed" in said[0] or "permitted" in said[0]:
            self.skipTest(f"perf may not record here: {said[0][-200:]}")
        self.assertRegex(said[1], r"(?m)^ +[\d.]+% .* watched ")
        self.assertRegex(said[1], r"prudence_cache_alloc")

    @LONG
    @unittest.skipIf(os.geteuid(), "bpftrace needs root")
    def test_bpftrace(self):
        self.working()
        said, = self.of_others("bpftrace")
        if "Attaching" not in said:
            self.skipTest(f"this kernel refuses: {said[-200:]}")
        self.assertRegex(said, r"@\[routes\]: \d+")

    @unittest.skipUnless(platform.machine() == "x86_64", "gdb's own call works on other processors")
    def test_call_a_function(self):
        self.assert_all(self.asked("Call a function", writes="on"), r"prudence_trim returned \d+ ", r"prudence_dump returned 0 ")
        self.assertIn("prudence 0", self.said.read_text())
        self.assert_all(self.asked("Call a function"), r"prudence: the register rbp cannot be written")

    @LONG
    def test_commands_of_gdb(self):
        """The commands print the same as prudence-inspect."""
        def said(*commands, before=("-p", str(self.watched.pid))):
            return self.run_line("gdb", *before, "-batch", "-x", SCRIPT, *(word for command in commands for word in ("-ex", f"prudence {command}")))

        for command in ("caches", "counters routes", "walk routes", "latent", "domains"):
            self.assertIn(self.run_line("prudence-inspect", "--pid", self.watched.pid, *command.split()), said(command))
        self.assert_all(said("set export", "profile", f"profile {self.folder}/none", "walk nothing", "set unknown 1", "set stall_trace 1"),
                        "an option and a value are wanted", "the name of a file is missing", "this process takes no profile", "there is no cache 'nothing'",
                        "stall_trace=1: the process sets it when it goes on")
        self.watched.ask("keep 3000")
        self.assertIn("unknown option 'unknown'", self.said.read_text())
        self.assert_all(said("set decay 1s", before=(str(self.folder / "watched"),)), "there is no running process")

    def test_a_program_that_waits_goes_on(self):
        """Which ends when its wait is interrupted."""
        source, program = self.folder / "waits.c", self.folder / "waits"
        source.write_text("#include <prudence/prudence.h>\n#include <unistd.h>\nint main(void) { prudence_free(prudence_malloc(9)); pause(); return 0; }\n")
        subprocess.run(["cc", f"-I{ROOT}/include", source, self.folder / "libprudence.so.0", f"-Wl,-rpath,{self.folder}", "-o", program], check=True)
        process = subprocess.Popen([program])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        until(lambda: "pause" in Path(f"/proc/{process.pid}/syscall").read_text() or Path(f"/proc/{process.pid}/wchan").read_text() not in ("0", ""), 2)
        for command in ("caches", "set stall_trace 1", "traces"):
            self.run_line("gdb", "-p", str(process.pid), "-batch", "-x", SCRIPT, "-ex", f"prudence {command}")
        self.run_line("prudence-inspect", "--pid", process.pid, "set", "stall_trace", "1", "--wait", "50ms")
        self.assertIsNone(process.poll())


if __name__ == "__main__":
    unittest.main()
