# SPDX-License-Identifier: MIT
"""MariaDB's lock-free hash and its allocator (mysys/lf_*.c), which the server uses for metadata locks, table definitions and transactions. Only
these libraries and their unit tests are built. storm.c drives the hash as sessions do."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

from adopt.program import Failed, Measure, Program

HERE = Path(__file__).resolve().parent / "mariadb"
# waiting_threads hangs now and then on either side: its threads miss a broadcast.
TESTS = ("lf", "bitmap", "my_malloc", "queues")
OFF = ("ARCHIVE", "ROCKSDB", "MROONGA", "SPIDER", "CONNECT", "COLUMNSTORE", "SPHINX", "S3", "FEDERATED", "SEQUENCE", "BLACKHOLE", "EXAMPLE", "OQGRAPH")
LIBRARIES = ("mysys/libmysys.a", "dbug/libdbug.a", "mysys/libmysys.a", "strings/libstrings.a")


class MariaDB(Program):
    name, title, package, suite, mark = "mariadb", "MariaDB (lock-free hash)", "mariadb", "bookworm", "CMakeLists.txt"
    packages = ("cmake", "bison", "libncurses-dev", "libssl-dev", "zlib1g-dev")
    before = ("Pins, which are hazard pointers of 4 a session, and a pool: each hundredth free looks at the pins of all sessions; elements that are "
              "free stay in the pool until the server ends.")
    after = "Elements come from a cache of a hazard domain; a session's pins are a row of hazard slots."
    measures = (Measure("mops", "searches, inserts and deletes", "million per s", better="more"),
                Measure("cpu_ns", "CPU time of one", "ns", better="less"),
                Measure("delete_p999_us", "p99.9 of a delete", "µs", better="less"),
                Measure("peak_mb", "peak memory of a storm", "MB", better="less"),
                Measure("after_mb", "memory two seconds after it", "MB", better="less"))

    def build(self, side):
        out = side.folder / "out"
        out.mkdir(exist_ok=True)
        off = [f"-DPLUGIN_{one}=NO" for one in OFF]
        if not (out / "Makefile").is_file():
            side.run(["cmake", side.source, "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DWITH_SSL=system", "-DWITH_UNIT_TESTS=ON", *off], folder=out)
        side.run(["make", f"-j{os.cpu_count()}", *(f"{one}-t" for one in TESTS)], folder=out)
        flags = shlex.split(side.run(["pkg-config", "--cflags", "--libs", "prudence"])) if side.patched else []
        side.run(["cc", "-O2", "-g", "-pthread", f"-I{side.source}/include", f"-I{out}/include", HERE / "storm.c", "-o", out / "storm",
                  *(out / one for one in LIBRARIES), *flags, "-lz", "-ldl", "-lm"])

    def tests(self, side):
        passed, failed = 0, []
        for name in TESTS:
            try:
                said = side.run([side.folder / f"out/unittest/mysys/{name}-t"], timeout=600)
            except Failed:
                failed.append(name)
                continue
            passed += len(re.findall(r"^ok \d+", said, re.M))
            failed += [f"{name} {number}" for number in re.findall(r"^not ok (\d+)", said, re.M)]
        return {"passed": passed, "failed": failed, "skipped": 0}

    def measure(self, side, seconds):
        done = subprocess.run([side.folder / "out/storm", str(seconds)], env=side.environment, capture_output=True, text=True, timeout=seconds * 10 + 120,
                              check=False)
        if done.returncode:
            raise Failed(f"storm ended with {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)


PROGRAM = MariaDB()
