# SPDX-License-Identifier: MIT
"""QEMU's RCU (util/rcu.c), under memory maps, the block layer and devices. Only its unit tests are built. storm.c flips a map as the memory code
does."""

import os
import shutil
from pathlib import Path

from adopt.program import Measure, Program

HERE = Path(__file__).resolve().parent / "qemu"
TESTS = ("rcutorture", "test-rcu-list", "test-rcu-simpleq", "test-rcu-slist", "test-rcu-tailq", "test-qht", "test-logging")
QUICK = ("--tap", "-m", "quick")
LIBRARIES = ("libqemuutil.a", "libevent-loop-base.a", "libqom.fa")
CONFIGURE = ("--without-default-features", "--enable-malloc-trim", "--disable-docs", "--disable-werror", "--disable-install-blobs", "--disable-user",
             "--disable-tools", "--target-list=x86_64-softmmu", "--without-default-devices", "--with-devices-x86_64=storm")


class QEMU(Program):
    name, title, package, suite, mark = "qemu", "QEMU (RCU)", "qemu", "bookworm", "configure"
    packages = ("meson", "ninja-build", "python3-venv", "libglib2.0-dev", "libpixman-1-dev", "flex", "bison")
    before = ("A thread waits until 30 callbacks have come, or five times 10 ms, then for readers, and runs all callbacks under the big lock.")
    after = ("Callbacks wait in an external domain that polls QEMU's readers, and take the big lock one by one; small objects of g_free_rcu come from "
             "a cache and need no callback.")
    measures = (Measure("free_p50_us", "from flip to free, half of them", "µs", better="less"),
                Measure("free_p999_us", "from flip to free, p99.9", "µs", better="less"),
                Measure("stall_p99_us", "p99 of the main loop's waits for the big lock, in a storm", "µs", better="less"),
                Measure("flip_cpu_us", "CPU time of a flip, in a storm", "µs", better="less"),
                Measure("peak_mb", "peak memory of a storm", "MB", better="less"),
                Measure("after_mb", "memory two seconds after it", "MB", better="less"),
                Measure("replace_ns", "replacing a small object (g_free_rcu)", "ns", better="less"),
                Measure("small_mb", "memory that these leave waiting", "MB", better="less"))

    def build(self, side):
        out = side.folder / "out"
        out.mkdir(exist_ok=True)
        shutil.copyfile(HERE / "devices.mak", side.source / "configs/devices/x86_64-softmmu/storm.mak")
        if not (out / "build.ninja").is_file():
            side.run([side.source / "configure", *CONFIGURE, *(["--enable-prudence"] if side.patched else [])], folder=out)
        side.run(["ninja", f"-j{os.cpu_count()}", *(f"tests/unit/{one}" for one in TESTS), "tests/bench/qht-bench", "qemu-system-x86_64"], folder=out)
        side.run(["cc", "-O2", "-g", "-pthread", "-D_GNU_SOURCE", f"-I{side.source}/include", f"-I{side.source}/linux-headers", f"-I{out}",
                  f"-I{out}/qapi", HERE / "storm.c", "-o", out / "storm", "-Wl,--start-group", *(out / one for one in LIBRARIES), "-Wl,--end-group",
                  *side.flags("glib-2.0", "gthread-2.0"), "-lm"])

    def tests(self, side):
        return side.tap({name: [side.folder / "out/tests/unit" / name, *QUICK] for name in TESTS}, timeout=600)

    def measure(self, side, seconds):
        return side.figures([side.folder / "out/storm", seconds], timeout=seconds * 10 + 300)


PROGRAM = QEMU()
