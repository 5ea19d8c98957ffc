#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 15
"""Options of a running process are set by writing into its memory (prudence-inspect set): the process acts at its next slow path and answers; one that does
nothing acts later. Several tools at once, garbage, fork, and processes that cannot be asked."""

import contextlib
import json
import os
import random
import re
import signal
import struct
import subprocess
import threading
import unittest

from watching import BUILD, INSPECT, PATIENCE, ROOT, Case, until
from preload import ld_preload
from prudence_watch import ask, bounds
from prudence_watch.figures import Watch
from prudence_watch.process import Process

NOBODY = 65534
LATER = "the process has not acted yet. It will when it next allocates or defers past its caches"


@contextlib.contextmanager
def deadline(watched):
    """Ends a process that hangs, so that its answers end, too."""
    timer = threading.Timer(PATIENCE / 3, watched.process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Ask(Case):
    def setUp(self):
        self.said = self.folder / "said"

    def started(self, name="watched", options="background=0", **more):
        """A process whose standard error is kept."""
        with open(self.said, "wb") as said:
            return self.start(name, options=options, stderr=said, **more)

    def inspect(self, watched, *arguments, status=0, **more):
        done = self.run_tool(INSPECT, "--pid", watched.pid, *arguments, status=status, **more)
        return done.stderr if status else done.stdout

    def storming(self, *arguments, **more):
        watched = self.started(*arguments, **more)
        watched.ask("storm")
        return watched

    def assert_set(self, watched):
        self.assertEqual(self.inspect(watched, "set", "stall_trace", "1"), "stall_trace is 1 now\n")

    def test_answers(self):
        watched = self.storming()
        self.assert_set(watched)
        for option, value, message in (("nothing", "1", "nothing=1: No such file or directory; the process says more on its standard error"),
                                       ("decay", "soon", "Invalid argument"), ("check", "1", "Device or resource busy")):
            self.assertIn(message, self.inspect(watched, "set", option, value, status=1))
        self.assertRegex(self.said.read_text(), r"unknown option 'nothing'(.*\n)*.*option 'decay': bad value 'soon'(.*\n)*.*option 'check' can be set only before")
        for option, value in (("x" * 32, "1"), ("decay", "1" * 160)):
            self.assertRegex(self.inspect(watched, "set", option, value, status=1), r"the option's (name|value) has more than (31|159) bytes")

    def test_a_profile_is_begun_and_read(self):
        watched = self.started()
        watched.ask("keep 300")
        watched.ask("storm")
        self.assertEqual(self.inspect(watched, "set", "profile", "4K"), "profile is 4K now\n")
        watched.ask("keep 3000")
        self.inspect(watched, "profile", self.folder / "profile")
        self.assertRegex((self.folder / "profile").read_text(), r'(?m)^allocates \d+ \d+ \d+ \d+ \d+ "routes"$')

    def test_a_process_that_does_nothing_acts_later(self):
        """On each of several requests, in their order; and on no more than it has room for."""
        watched = self.started()
        watched.ask("keep 300")
        for option, value in (("stall_trace", "1"), *((f"unknown{at}", "1") for at in range(7))):
            self.assertIn(LATER, self.inspect(watched, "set", option, value, "--wait", "20ms"))
        self.assertIn("8 requests wait already", self.inspect(watched, "set", "stall_trace", "0", "--wait", "20ms", status=1))
        self.assertEqual(self.said.read_text(), "")
        watched.ask("keep 3000")
        said = self.said.read_text()
        self.assertEqual([line.split("'")[1] for line in said.splitlines()], [f"unknown{at}" for at in range(7)])
        watched.ask("keep 3000")
        self.assertEqual(self.said.read_text(), said)
        watched.ask("storm")
        self.assert_set(watched)

    def test_a_process_that_stands_still(self):
        watched = self.storming()
        watched.process.send_signal(signal.SIGSTOP)
        self.assertIn(LATER, self.inspect(watched, "set", "unknown", "1", "--wait", "50ms"))
        watched.process.send_signal(signal.SIGCONT)
        self.assertTrue(until(lambda: "unknown option 'unknown'" in self.said.read_text()))

    def test_several_at_once(self):
        watched = self.storming()
        for _ in range(3):
            tools = [subprocess.Popen([INSPECT, "--pid", str(watched.pid), "set", "decay", f"{10 + at}s", "--wait", "20s"], text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT) for at in range(8)]
            self.assertEqual([tool.communicate()[0] for tool in tools], [f"decay is {10 + at}s now\n" for at in range(8)])
        self.assert_set(watched)

    def test_two_that_write_the_same_request(self):
        """Each takes the place to be free, and overwrites the other one's request."""
        watched = self.storming()
        place, answers = self.asking(watched, "decay", "1s").free_place(), []

        def work(value):
            for _ in range(50):
                request = self.asking(watched, "decay", value)
                request.free_place = lambda: place
                answers.append(request.carry_out(30))

        threads = [threading.Thread(target=work, args=(value,)) for value in ("11s", "12s")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [0] * 100)
        self.assertEqual(self.said.read_text(), "")

    def asking(self, watched, option, value):
        """A request that is not sent yet."""
        process, memory = Process(watched.pid), ask.WritableMemory(watched.pid)
        self.addCleanup(process.close)
        self.addCleanup(memory.close)
        process.memory.budget = bounds.Budget(60)
        copy, = Watch(process).copies
        return ask.Request(copy, memory, watched.pid, option, value)

    def test_garbage(self):
        watched = self.storming()
        request, draw = self.asking(watched, "decay", "1s"), random.Random(1)
        memory, layout = request.memory, request.layout
        first, size = layout.address("requests"), layout.size("request") * layout.number("requests")
        for _ in range(300):
            memory.write(first, draw.randbytes(size))
            memory.write(layout.address("asked"), struct.pack("<Q", draw.getrandbits(64)))
        self.assertTrue(until(lambda: self.inspect(watched, "set", "stall_trace", "1", "--wait", "20s") == "stall_trace is 1 now\n"))
        self.assertEqual(json.loads(watched.ask("stats"))["caches_list"][0]["name"], "routes")

    def test_a_child_does_not_act(self):
        watched = self.started()
        watched.ask("keep 300")
        self.assertIn(LATER, self.inspect(watched, "set", "unknown", "1", "--wait", "20ms"))
        for how in ("fork", "copy"):
            watched.ask(how)
            watched.ask("keep 3000")  # in the child
        self.assertEqual(self.said.read_text(), "")

    def loading(self, **more):
        """A process that loads a library, whose constructor waits for the thread that obeys."""
        source, library = self.folder / "loaded.c", self.folder / "loaded.so"
        source.write_text("void loads_construct(void);\n__attribute__((constructor)) static void begin(void) { loads_construct(); }\n")
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
        subprocess.run(["cc", f"-I{ROOT}/include", ROOT / "tests/watch/loads.c", "-o", self.folder / "loads", self.folder / "libprudence.so.0", "-rdynamic",
                        f"-Wl,-rpath,{self.folder}", "-pthread", "-ldl"], check=True)
        return self.started("loads", arguments=[library], **more)

    def test_a_report_does_not_wait_for_the_loader(self):
        watched = self.loading(options="background=0,stall_trace=1")
        with deadline(watched):
            self.assertEqual(watched.ask("dump"), "done")
        said = self.said.read_text()
        self.assertRegex(said, rf"#\d+ 0x[0-9a-f]+ in pause\+0x[0-9a-f]+ \(\S+/libc\.so\.6\+0x[0-9a-f]+\)\n")
        self.assertRegex(said, rf"#\d+ 0x[0-9a-f]+ \({self.folder}/loads\+0x[0-9a-f]+\)\n")

    def test_the_loader_is_not_waited_for(self):
        """The thread that obeys may hold what a constructor of a library waits for, which is being loaded. Traces come later, when it is loaded."""
        watched, profile = self.loading(), self.folder / "later"
        for option, value in (("profile", "1K"), ("stall_trace", "1")):
            self.assertIn(LATER, self.inspect(watched, "set", option, value, "--wait", "20ms"))
        with deadline(watched):
            self.assertEqual(watched.ask("keep 3000"), "done")
        self.assertEqual(watched.ask("loaded"), "done")

        def traced():
            watched.ask("keep 3000")
            self.inspect(watched, "profile", profile)
            return re.search(r"(?m)^calls [0-9a-f]", profile.read_text())

        self.assertTrue(until(traced))

    def test_few_system_calls(self):
        watched = self.storming(options="sandbox=1")
        self.assert_set(watched)
        self.assertIn("Device or resource busy", self.inspect(watched, "set", "sandbox", "0", status=1))

    def test_a_static_program(self):
        self.compile("static", "-static", BUILD / "libprudence.a")
        subprocess.run(["strip", self.folder / "static"], check=True)
        watched = self.storming("static")
        self.assert_set(watched)
        self.assertEqual(self.inspect(watched, "set", "profile", "64K"), "profile is 64K now\n")

    def test_malloc(self):
        """Two copies: each has its own options, and acts for itself."""
        watched = self.storming(before=("env", f"LD_PRELOAD={ld_preload(BUILD / 'libprudence-malloc.so')}"))
        watched.ask("more 1")
        said = self.inspect(watched, "set", "stall_trace", "1", "--wait", "100ms")
        self.assertEqual(len(said.splitlines()), 2)
        self.assertRegex(said, r"stall_trace is 1 now in copy \d of the library\n")

    @unittest.skipIf(os.geteuid() != 0, "only root may be another user")
    def test_another_users_process(self):
        watched = self.storming()
        code = f"import sys; sys.path.insert(0, {str(BUILD.parent / 'programs/watch')!r}); from prudence_watch import ask; ask.WritableMemory({watched.pid})"
        done = subprocess.run(["/usr/bin/python3", "-Bc", code], text=True, capture_output=True, check=False, user=NOBODY, group=NOBODY, extra_groups=[])
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "is of user root, and you are nobody|Permission denied|No module")

    def test_a_core_file_cannot_be_asked(self):
        done = self.run_tool(INSPECT, "--core", "core", "set", "decay", "1s", status=1)
        self.assertIn("a core file has no process whose options could be set", done.stderr)


if __name__ == "__main__":
    unittest.main()
