# SPDX-License-Identifier: MIT
"""QEMU's RCU (util/rcu.c), under memory maps, the block layer and devices. Its unit tests and a PC are built. storm.c flips a map as the memory code
does, without a guest; moves.c changes the maps of a machine that runs one."""

import os
import shutil
from pathlib import Path

from adopt.program import NOBODY, Measure, Program

HERE = Path(__file__).resolve().parent / "qemu"
TESTS = ("rcutorture", "test-rcu-list", "test-rcu-simpleq", "test-rcu-slist", "test-rcu-tailq", "test-qht", "test-logging")
QUICK = ("--tap", "-m", "quick")
REFUSED = (*(("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups") if os.geteuid() == 0 else ()), "prlimit", "--nproc=1")
LIBRARIES = ("libqemuutil.a", "libevent-loop-base.a", "libqom.fa")
CONFIGURE = ("--without-default-features", "--enable-malloc-trim", "--disable-docs", "--disable-werror", "--disable-install-blobs", "--disable-user",
             "--disable-tools", "--target-list=x86_64-softmmu", "--without-default-devices", "--with-devices-x86_64=storm")


class QEMU(Program):
    name, title, package, suite, mark = "qemu", "QEMU (RCU)", "qemu", "bookworm", "configure"
    packages = ("meson", "ninja-build", "python3-venv", "libglib2.0-dev", "libpixman-1-dev", "flex", "bison")
    before = ("A thread waits until 30 callbacks have come, or five times 10 ms, then for readers, and runs all callbacks under the big lock.")
    after = ("Callbacks wait in an external domain that polls QEMU's readers; all that are ready take the big lock once. Small objects of g_free_rcu come from "
             "a cache and need no callback.")
    watched_cost = "move_cpu_us"
    measures = (Measure("free_p50_us", "from flip to free, half of them", "µs", better="less"),
                Measure("free_p999_us", "from flip to free, p99.9", "µs", better="less"),
                Measure("stall_p99_us", "p99 of the main loop's waits for the big lock, in a storm", "µs", better="less"),
                Measure("flip_cpu_us", "CPU time of a flip, in a storm", "µs", better="less"),
                Measure("peak_mb", "peak memory of a storm", "MB", better="less"),
                Measure("after_mb", "memory two seconds after it", "MB", better="less"),
                Measure("replace_ns", "replacing a small object (g_free_rcu)", "ns", better="less"),
                Measure("small_mb", "memory that these leave waiting", "MB", better="less"),
                Measure("move_p999_us", "p99.9 of a move of a device's memory in a machine", "µs", better="less"),
                Measure("guest_p999_us", "p99.9 of a guest's access to a port meanwhile", "µs", better="less"),
                Measure("moves", "such moves in a storm", "per s", better="more"),
                Measure("move_cpu_us", "CPU time of one, but the guest's", "µs", better="less"),
                Measure("machine_peak_mb", "the machine's peak memory in it", "MB", better="less"),
                Measure("machine_after_mb", "the machine's memory two seconds after it", "MB", better="less"))

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
        side.run(["cc", "-O2", "-g", HERE / "moves.c", "-o", out / "moves"])
        side.run(["cc", "-c", HERE / "guest.S", "-o", out / "guest.o"])
        side.run(["objcopy", "-O", "binary", "-j", ".text", out / "guest.o", out / "guest"])

    def tests(self, side):
        own = {name: [side.folder / "out/tests/unit" / name, *QUICK] for name in TESTS}
        return side.tap(own | {"threads refused": [*REFUSED, *own["test-logging"]]}, timeout=600)

    def measure(self, side, seconds):
        out = side.folder / "out"
        machine = [out / "moves", out / "qemu-system-x86_64", out / "guest", seconds]
        return side.figures([out / "storm", seconds], timeout=seconds * 10 + 300) | side.figures(machine, timeout=seconds * 10 + 300)


PROGRAM = QEMU()
