# SPDX-License-Identifier: MIT
"""Open vSwitch's userspace datapath: flows and their actions, which ovsrcu_postpone frees. Only its library and ovstest are built; flows.c puts
and deletes flows without ports. Debian 12's 3.1 has no tarball at the mirrors any more: unstable's is taken."""

import os
import re
import shlex
from pathlib import Path

from adopt.program import Failed, Measure, Program

HERE = Path(__file__).resolve().parent / "openvswitch"
CLASSIFIER = ("empty", "destroy-null", "single-rule", "rule-replacement", "many-rules-in-one-list", "many-rules-in-one-table",
              "many-rules-in-two-tables", "many-rules-in-five-tables")
TESTS = (("test-rcu",), ("test-barrier",), ("test-cmap", "check", "1"), ("test-ccmap", "check", "1"), ("test-classifier", "stress-prefixes"),
         *(("test-classifier", *version, one) for one in CLASSIFIER for version in ((), ("--versioned",))))
GENERATED = ("aclocal.m4", "configure", "config.h.in", "Makefile.in")  # in the order of their making: else make wants automake


class OpenVSwitch(Program):
    name, title, package, suite, mark = "openvswitch", "Open vSwitch", "openvswitch", "sid", "configure.ac"
    before = "ovsrcu_postpone: sets of callbacks that one thread calls after a grace period."
    after = "Flows, their actions and texts are objects of any size of an external domain, which polls the threads' sequence numbers."
    watched_cost = "cpu_us"
    measures = (Measure("pairs", "flows deleted and set up", "per s", better="more"),
                Measure("p50_us", "median of such a pair", "µs", better="less"),
                Measure("p999_us", "p99.9 of such a pair, with quiescing", "µs", better="less"),
                Measure("cpu_us", "CPU time of the process for a pair", "µs", better="less"),
                Measure("storm_s", "a storm of 100,000 flows", "s", better="less"),
                Measure("peak_mb", "peak memory", "MB", better="less"),
                Measure("after_mb", "memory two seconds after the storm", "MB", better="less"))

    def build(self, side):
        flags = side.flags()
        if not (side.source / "Makefile").is_file():
            for name in GENERATED:
                (side.source / name).touch()
            side.run(["./configure", "--disable-ssl", "--disable-libcapng", "--disable-afxdp", "CFLAGS=-O2 -g"],
                     environment={"PYTHON3": "/usr/bin/python3", "CPPFLAGS": " ".join(flags), "LIBS": " ".join(flags)})
        side.run(["make", "--eval", "adopt-built: ; $(MAKE) $(BUILT_SOURCES)", "adopt-built"])
        side.run(["make", f"-j{os.cpu_count()}", "tests/ovstest"])
        side.run(["cc", "-O2", "-g", "-pthread", "-Iinclude", "-Ilib", "-I.", HERE / "flows.c", "-o", side.folder / "flows",
                  "lib/.libs/libopenvswitch.a", *flags, *self.libraries(side)])

    def libraries(self, side):
        """Returns the libraries that libopenvswitch.a was configured to need."""
        said = side.run(["make", "--eval", "adopt-libs: ; @echo $(lib_libopenvswitch_la_LIBADD) $(LIBS) $(CAPNG_LDADD)", "-s", "adopt-libs"])
        return [word for word in shlex.split(said) if word.startswith("-l")] + ["-lm"]

    def tests(self, side):
        checks = {" ".join(words): lambda words=words: side.run(["tests/ovstest", *words], timeout=900) for words in TESTS}
        passed, failed = 0, []
        for name, check in (checks | {"nothing left": lambda: self.nothing_left(side)}).items():
            try:
                check()
                passed += 1
            except Failed:
                failed.append(name)
        return {"passed": passed, "failed": failed, "skipped": 0}

    def nothing_left(self, side):
        """All flows are deleted at the end: no object of ours is live. Without our library there is only the end."""
        said = side.run([side.folder / "flows", 0.1], timeout=300, environment={"PRUDENCE_OPTIONS": "stats=1"})
        if side.patched and re.findall(r"^objects_live +(\d+)$", said, re.M) != ["0"]:
            raise Failed("objects are live at the end")

    def measure(self, side, seconds):
        return side.figures([side.folder / "flows", seconds], timeout=seconds * 10 + 300)


PROGRAM = OpenVSwitch()
