#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 10
"""Probes for tracers (docs/man/prudence-probes.7): each is in every form of the library, with arguments; gdb stops at each, and what it
sees adds up to the process's own statistics; and the scripts for bpftrace see the same process by the kernel's uprobes.

A missing tool (the header that makes probes, gdb, bpftrace, or the right to trace) skips that part, with a line that says so.
"""

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"  # make test-long
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "tools"))
from preload import ld_preload  # noqa: E402 (the path comes first)
MALLOC = BUILD / "libprudence-malloc.so"
# No thread of the library: one that meets a breakpoint as the process ends is lost to gdb, and so are the calls.
OPTIONS = "stall_timeout=20ms,wait_max=30ms,latent_limit=1M,limit=48M,decay=0,background=0"
PROBES = {**dict.fromkeys("refill flush preflush premovement grow shrink".split(), 3),
          **dict.fromkeys("pressure_wait pressure_done throttle_wait throttle_done gp_start".split(), 3),
          **dict.fromkeys("expire collect overhead lock_wait lock_taken".split(), 3),
          **dict.fromkeys("merge close overflow gp_end stall".split(), 4)}


def setUpModule():
    global folder
    folder = tempfile.TemporaryDirectory()
    for name, library in ("shared", ["-L", BUILD, "-lprudence", f"-Wl,-rpath,{BUILD}"]), ("static", [BUILD / "libprudence.a"]):
        subprocess.run(["cc", "-O2", "-g", f"-I{ROOT}/include", HERE / "program_probes.c", *library, "-o",
                        Path(folder.name, name), "-pthread"], check=True)
    # A program with probes of its own, in front of the library and behind it: one base serves the notes of both.
    own = Path(folder.name, "own.c")
    own.write_text("#include <sys/sdt.h>\nvoid own(void);\nvoid own(void) { DTRACE_PROBE(mine, here); }\n")
    subprocess.run(["cc", "-c", own, "-o", Path(folder.name, "own.o")], check=True)
    for name, order in ("first", ["own.o", "lib"]), ("last", ["lib", "own.o"]):
        files = [f"-Wl,--whole-archive,{BUILD}/libprudence.a,--no-whole-archive" if one == "lib" else Path(folder.name, one)
                 for one in order]
        subprocess.run(["cc", "-O2", f"-I{ROOT}/include", HERE / "program_probes.c", *files, "-o", Path(folder.name, name),
                        "-pthread"], check=True)


def forms():
    return [BUILD / "libprudence.so", MALLOC, *(Path(folder.name, name) for name in ("static", "first", "last"))]


def tearDownModule():
    folder.cleanup()


def notes_of(file):
    """Returns for each probe the arguments of its places, as text; and the base that the notes name."""
    text = subprocess.run(["readelf", "-nW", file], check=True, text=True, capture_output=True).stdout
    found = re.findall(r"Provider: prudence\s+Name: (\w+)\s+Location: \S+, Base: (\S+), Semaphore: 0x0+\n\s+Arguments:(.*)", text)
    places = collections.defaultdict(list)
    for name, _, arguments in found:
        places[name].append(arguments.split())
    return places, {base for _, base, _ in found}


class Notes(unittest.TestCase):
    def test_every_probe_is_in_every_form(self):
        for file in forms():
            places, bases = notes_of(file)
            self.assertEqual({name: len(arguments[0]) for name, arguments in places.items()}, PROBES, file)
            self.assertEqual(len(bases), 1, file)
            self.assertNotEqual(int(bases.pop(), 16), 0, file)

    def test_arguments_are_in_registers_and_of_one_type(self):
        """perf loses constants and operands with a scaled index, and refuses a place whose types differ from those of the place before."""
        for file in forms():
            for name, places in notes_of(file)[0].items():
                for arguments in places:
                    self.assertTrue(all(re.fullmatch(r"-?8@(%r\w+|x\d+)", one) for one in arguments), f"{file}: {name}: {arguments}")
                types = {tuple(one.split("@")[0] for one in arguments) for arguments in places}
                self.assertEqual(len(types), 1, f"{file}: {name}: {places}")

    def test_the_page_lists_them(self):
        page = (ROOT / "docs/man/prudence-probes.7").read_text()
        listed = dict((name.replace("\\", ""), len(arguments.replace("\\fR", "").split(", ")))
                      for name, arguments in re.findall(r"^\.BI (\w+) \" \(([^)]*)\)\"", page, re.M))
        self.assertEqual(listed, PROBES)


def environment(preload):
    names = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return {**names, "PRUDENCE_OPTIONS": OPTIONS, **({"LD_PRELOAD": ld_preload(preload)} if preload else {})}


@unittest.skipUnless(shutil.which("gdb"), "gdb is not installed: the output of probes is not checked")
class Traced(unittest.TestCase):
    def traced(self, program, preload=None):
        """Returns the program's output, the events that gdb saw, and the stacks that it walked."""
        set_preload = ["-ex", f"set environment LD_PRELOAD {ld_preload(preload)}"] if preload else []
        done = subprocess.run(["gdb", "-q", "-batch", "-nx", "-ex", "set startup-with-shell off", *set_preload, "-x", HERE / "probes_gdb.py",
                               Path(folder.name, program)], text=True, timeout=300, env=environment(None),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        found = [re.findall(rf"^{line}$", done, re.M) for line in (r"(\{.*\})", "SEEN (.*)", "STACKS (.*)")]
        if not all(found[1:]):
            if "ptrace" in done:
                self.skipTest("gdb may not trace here")
            self.fail(done)
        return [one and json.loads(one[0]) for one in found]


class Stacks(Traced):
    """Tracers find callers by frame pointers alone. They must find the real calls, up to the program's own function."""

    def reach_the_program(self, program, preload=None):
        reached = set()
        for name, walked, calls, file in self.traced(program, preload)[2]:
            self.assertEqual([hex(one) for one in walked], [hex(one) for one in calls], f"{name}, which {file} caused")
            if file.endswith("/program_probes.c"):
                reached.add(name)
        self.assertEqual(reached, set(PROBES) - {"preflush", "lock_wait", "lock_taken"})

    def test_shared(self):
        self.reach_the_program("shared")

    def test_static(self):
        self.reach_the_program("static")

    def test_preloaded(self):
        self.reach_the_program("shared", MALLOC)


@unittest.skipUnless(DEEP, "make test-long attaches gdb and bpftrace")
class Arguments(Traced):
    def adds_up(self, program, preload=None):
        says, saw, _ = self.traced(program, preload)
        calls, sums = collections.Counter(), collections.Counter()
        for name, *values, label in saw:
            key = name, label
            calls[key] += 1
            sums[key] += values[3] if name == "gp_end" else values[2]
            if name in ("merge", "close", "overflow"):
                self.assertEqual(values[3] % 1024, 0, "no cookie")
        self.assertEqual(calls["refill", "moved"], says["refills"])
        for probe, figure in {"refill": "refilled", "flush": "flushed", "merge": "merged", "overflow": "overflowed"}.items():
            self.assertEqual(sums[probe, "moved"], says[figure], probe)
            self.assertGreater(sums[probe, "moved"], 0, probe)
        for probe, figure in {"premovement": "premoved", "grow": "grows", "shrink": "shrinks"}.items():
            self.assertEqual(calls[probe, "moved"], says[figure], probe)
            self.assertGreater(calls[probe, "moved"], 0, probe)
        self.assertGreater(sums["close", "moved"], 0)
        for domain in "default", "by hand":
            self.assertEqual(sums["gp_end", domain], says[domain])
            self.assertGreater(says[domain], 0)
            self.assertIn(calls["gp_start", domain] - sums["gp_end", domain], (0, 1, 2))
        self.assertEqual(calls["stall", "default"], says["default stalls"])
        stalls = [values for name, *values, _ in saw if name == "stall"]
        self.assertTrue(all(thread > 1 and 20e6 <= stayed < 300e9 for _, _, thread, stayed in stalls) and stalls)
        for wait in "pressure", "throttle":
            begun, ended = ([label for name, *_, label in saw if name == f"{wait}_{what}"] for what in ("wait", "done"))
            self.assertEqual(collections.Counter(begun), collections.Counter(ended))
            self.assertTrue(begun)
        self.assertIn(0, [values[2] for name, *values, label in saw if name == "throttle_done" and label == "throttled"])
        self.assertEqual(sum(count for (name, _), count in calls.items() if name == "pressure_wait"), says["pressure_waits"])
        self.short_term_adds_up(says, saw)

    def short_term_adds_up(self, says, saw):
        """Each object has had a date on each clock; ended clocks are further clocks. All were collected, page by page."""
        expired, collected, overhead = collections.Counter(), 0, collections.Counter()
        for name, _, _, *value, label in saw:
            if name == "expire":
                expired[label] += value[0]
            elif name == "collect":
                self.assertEqual(label, "scm-descriptors")
                collected += value[0]
            elif name == "overhead":
                overhead[label] += value[0]
        self.assertEqual(expired, {"local clock": says["short_term"], "global time": says["short_term"],
                                   "further clock": 2 * says["short_term"], "real-time clock": says["short_term"]})
        self.assertEqual(collected, sum(expired.values()))
        self.assertGreater(says["overhead"], 0)
        self.assertEqual(overhead, {"books": says["overhead"], "counts": 0, "descriptors": 0})

    def test_threads_that_wait_for_a_lock(self):
        _, saw, stacks = self.traced(BUILD / "bin/os_test_lock_waits")
        waits, taken = ([values for name, *values, label in saw if name == wanted and label == "short-term memory"]
                        for wanted in ("lock_wait", "lock_taken"))
        self.assertEqual(len(waits), 6) # two threads in three rounds
        self.assertEqual(len({lock for lock, *_ in [*waits, *taken]}), 1)
        self.assertEqual([slept for _, _, slept in taken], [1] * 6)
        self.assertEqual({name for name, *_ in stacks}, {"lock_wait", "lock_taken"})
        for name, walked, calls, file in stacks:
            self.assertEqual((walked, Path(file).name), (calls, "test_lock_waits.c"), name)

    def test_shared(self):
        self.adds_up("shared")

    def test_static_behind_probes_of_the_program(self):
        self.adds_up("first")

    def test_preloaded(self):
        self.adds_up("shared", MALLOC)


def can_trace():
    if not shutil.which("bpftrace"):
        return "bpftrace is not installed"
    if os.geteuid():
        return "bpftrace needs root"
    trial = subprocess.run(["bpftrace", "-e", f"uprobe:{BUILD}/libprudence.so:prudence_version {{ exit(); }} BEGIN {{ exit(); }}"],
                           text=True, timeout=60, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return "" if trial.returncode == 0 else f"this kernel refuses: {trial.stdout.strip().splitlines()[-1:]}"


REFUSED = can_trace()


@unittest.skipIf(REFUSED, f"{REFUSED}: the scripts for bpftrace are not tried")
@unittest.skipUnless(DEEP, "make test-long attaches gdb and bpftrace")
class Scripts(unittest.TestCase):
    EXPECTED = {"moves": [r"@refilled\[moved\]: \d{3}", r"@flushed\[moved\]: \d{3}", r"@grows\[moved\]: \d", r"@shrinks\[moved\]: \d",
                          r"@overflows\[moved\]: \d"],
                "grace-periods": [r"@microseconds\[by hand\]:", r"@grace_periods\[default\]: \d"],
                "waits": [r"@throttle_ns_of\[\w+, \d+, throttled, in vain\]: \d{8}", r"@pressure_us\[", r"@throttle_from\[\n +\w+"],
                "short-term": [r"@expired\[local clock\]: \d+", r"@collected: \d+", r"@overhead\[books\]: \d+"],
                "locks": [r"@waits\[short-term memory\]: \d+", r"@us\[short-term memory\]:"],
                "stalls": [r"\d\d:\d\d:\d\d default +\d+ +\d\d+ ms"]}

    def traced(self, seconds):
        """Returns the output of each script for a process that it was attached to for about this long."""
        program = subprocess.Popen([Path(folder.name, "shared"), "again"], env=environment(None), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        tracers = {}
        try:
            for name in self.EXPECTED:
                tracers[name] = subprocess.Popen(
                    ["bpftrace", "-B", "line", "-p", str(program.pid), ROOT / f"programs/watch/bpftrace/prudence-{name}.bt"],
                    text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            time.sleep(seconds)
            for tracer in tracers.values():
                tracer.send_signal(signal.SIGINT)
            return {name: tracer.communicate(timeout=60)[0] for name, tracer in tracers.items()}
        finally:
            for one in [program, *tracers.values()]:
                one.kill()
                one.wait()

    def test_lines_of_the_page(self):
        """The stacks that perf records and that bpftrace counts lead from the probe to the program's main."""
        page = (ROOT / "docs/how-to/probes.md").read_text()
        with tempfile.TemporaryDirectory() as home, subprocess.Popen([Path(folder.name, "shared"), "again"], env=environment(None), stdout=subprocess.DEVNULL,
                                                                     stderr=subprocess.DEVNULL) as program:
            def said(section):
                code = re.search(rf"^## {section}\n.*?^```\n(.*?)^```", page, re.M | re.S)[1]
                code = code.replace("PID", str(program.pid)).replace("/usr/local/lib", str(BUILD)).replace("sleep 10", "sleep 2").replace("bpftrace ", "timeout -s INT 20 bpftrace ")
                shown = Path(home, "shown")
                with shown.open("w") as output: # into a pipe perf would write its file
                    subprocess.run(["bash", "-c", code], cwd=home, env=environment(None) | {"HOME": home}, timeout=120, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, check=False)
                return shown.read_text()
            try:
                self.assertRegex(said("Ask your own question"), r"@\[moved, \n +slab_grow\+\d+\n(.*\n)*? +main\+\d+")
                if not shutil.which("perf"):
                    self.skipTest("perf is not installed: its lines are not tried")
                self.assertRegex(said("Record with perf"), r"sdt_prudence:grow: .* arg1=\d+ arg2=\d+ arg3=\d+\s*\n\s+[0-9a-f]+ slab_grow\+.*\n(\s+[0-9a-f]+ .*\n)*?\s+[0-9a-f]+ main\+")
            finally:
                program.kill()

    def test_scripts_see_a_process(self):
        for seconds in 5, 20, 60: # to attach takes long on a busy machine
            said = self.traced(seconds)
            missing = [f"{name}: {pattern}" for name, patterns in self.EXPECTED.items() for pattern in patterns
                       if not re.search(pattern, said[name])]
            if not missing:
                return
        self.fail(f"{missing}\n{said}")


if __name__ == "__main__":
    if not notes_of(BUILD / "libprudence.so")[0] and not Path("/usr/include/sys/sdt.h").exists() and \
            not list(Path("/usr/include").glob("*/sys/sdt.h")):
        print("<sys/sdt.h> is not there (Debian: systemtap-sdt-dev): the library has no probes", file=sys.stderr)
        sys.exit(77)
    unittest.main()
