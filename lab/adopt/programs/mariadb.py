# SPDX-License-Identifier: MIT
"""MariaDB's lock-free hash and its allocator (mysys/lf_*.c), which the server uses for metadata locks, table definitions and transactions. Only
these libraries and their unit tests are built. storm.c drives the hash as sessions do."""

import os
from pathlib import Path

from adopt.program import Measure, Program

HERE = Path(__file__).resolve().parent / "mariadb"
# waiting_threads hangs now and then on either side: its threads miss a broadcast.
TESTS = ("lf", "bitmap", "my_malloc", "queues")
OFF = ("ARCHIVE", "ROCKSDB", "MROONGA", "SPIDER", "CONNECT", "COLUMNSTORE", "SPHINX", "S3", "FEDERATED", "SEQUENCE", "BLACKHOLE", "EXAMPLE", "OQGRAPH")
LIBRARIES = ("mysys/libmysys.a", "dbug/libdbug.a", "mysys/libmysys.a", "strings/libstrings.a")


class MariaDB(Program):
    name, title, package, suite, mark = "mariadb", "MariaDB (lock-free hash)", "mariadb", "bookworm", "CMakeLists.txt"
    packages = ("cmake", "bison", "libncurses-dev", "libssl-dev", "zlib1g-dev")
    before = ("Pins, which are hazard pointers of 4 a session, and a pool: each hundredth free scans the pins of all sessions; elements that are "
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
        side.run(["cc", "-O2", "-g", "-pthread", f"-I{side.source}/include", f"-I{out}/include", HERE / "storm.c", "-o", out / "storm",
                  *(out / one for one in LIBRARIES), *side.flags(), "-lz", "-ldl", "-lm"])

    def tests(self, side):
        return side.tap({name: [side.folder / f"out/unittest/mysys/{name}-t"] for name in TESTS}, timeout=600)

    def measure(self, side, seconds):
        return side.figures([side.folder / "out/storm", seconds], timeout=seconds * 10 + 120)


PROGRAM = MariaDB()
