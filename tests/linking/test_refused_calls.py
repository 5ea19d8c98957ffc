#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 20
"""Whatever the system refuses, at start, later or at exit: allocations return NULL with ENOMEM, and no process ends.

One system call at a time fails with one error (strace injects it), each call in each thread, by its number. A plan that `make test`
leaves out runs in `make test-long`. Calls before the library's first one are the dynamic loader's, and are not touched."""

import collections
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "tools"))
from preload import ld_preload  # noqa: E402 (the path comes first)
MALLOC = BUILD / "libprudence-malloc.so"
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"  # make test-long
PLANS = 10**6 if DEEP else 20 # of each program

# Answers of a filter of system calls to any call, and errors of single ones.
ANY = ("EPERM", "ENOSYS")
MORE = {"mmap": ("ENOMEM", "EAGAIN"), "munmap": ("ENOMEM",), "mremap": ("ENOMEM", "EAGAIN"), "mprotect": ("ENOMEM",),
        "madvise": ("EINVAL", "EAGAIN", "ENOMEM"), "openat": ("EMFILE", "ENOENT"), "read": ("EIO", "EINTR"), "close": ("EIO",),
        "clone3": ("EAGAIN",), "clone": ("EAGAIN",), "membarrier": ("EINVAL",), "write": ("EIO",)}
# The C library itself ends the process, waits for ever or loses the thread, with or without us; brk has no errors.
LEFT_OUT = {"brk", "execve", "exit", "exit_group", "futex", "wait4", "rt_sigreturn", "set_robust_list", "restart_syscall"}


class Refused(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = Path(cls.folder.name)
        cls.programs = {"linked": folder / "linked", "preloaded": folder / "preloaded"}
        flags = [os.environ.get("CC", "cc"), "-O1", "-fno-builtin", "-pthread", HERE / "program_refused.c"]
        subprocess.run([*flags, f"-I{ROOT / 'include'}", "-o", cls.programs["linked"], BUILD / "libprudence.so",
                        f"-Wl,-rpath,{BUILD}"], check=True)
        subprocess.run([*flags, "-DPLAIN", "-o", cls.programs["preloaded"]], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def start(self, which, before=(), **arguments):
        """Runs the program; `before` is the command that runs it. Only the program has our malloc."""
        names = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "PRUDENCE_OPTIONS")}
        preload = ["env", f"LD_PRELOAD={ld_preload(MALLOC)}"] if which == "preloaded" else []
        if before and preload:
            before, preload = [*before, "-E", f"LD_PRELOAD={ld_preload(MALLOC)}"], []
        return subprocess.run([*map(str, before), *preload, self.programs[which]], env=names, timeout=100,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **arguments)

    def calls(self, which):
        """[(name, number)] of the calls of any thread from the library's first one on; numbers count a thread's calls of that name,
        and none is that of an earlier call of the first thread, which would fail as well."""
        log = Path(self.folder.name) / f"{which}.log"
        done = self.start(which, ["strace", "-f", "-qq", "-o", log])
        if done.returncode:
            self.skipTest(f"strace: {done.stderr}")
        seen, found, begun = collections.Counter(), {}, {}
        for line in log.read_text().splitlines():
            match = re.match(r"(\d+) +(\w+)\(", line)
            if not match:
                continue
            thread, name = match.groups()
            seen[thread, name] += 1
            if not begun and name in ("fstat", "newfstatat") and f"{name}(2," in line:
                begun = {name: count for (_, name), count in seen.items()} | {name: seen[thread, name] - 1} # asks about descriptor 2
            if begun and name not in LEFT_OUT and seen[thread, name] > begun.get(name, 0):
                found[name, seen[thread, name]] = True
        self.assertTrue(begun)
        return list(found)

    def inject(self, which, name, number, error):
        try:
            done = self.start(which, ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject={name}:error={error}:when={number}"])
        except subprocess.TimeoutExpired:
            return f"{which}: call {number} of {name} fails with {error}: hangs"
        said = done.stderr.strip().splitlines()
        good = done.returncode == 0 and (done.stdout == "done\n" or name == "write")
        return None if good else f"{which}: call {number} of {name} fails with {error}: exit {done.returncode}, {said[:3]}"

    def test_each_call_fails(self):
        if not shutil.which("strace"):
            self.skipTest("no strace")
        plans = [(which, name, number, error) for which in self.programs for name, number in self.calls(which)
                 for error in (*ANY, *MORE.get(name, ()))]
        kept = plans[::max(1, len(plans) // (2 * PLANS))]
        with ThreadPoolExecutor(2) as pool:
            wrong = [text for text in pool.map(lambda plan: self.inject(*plan), kept) if text]
        print(f"{len(kept)} of {len(plans)} plans, {len(wrong)} wrong")
        self.assertFalse(wrong, "\n".join(wrong))

    def test_little_address_space(self):
        """Steps from the need of the dynamic loader to the need of the program."""
        step = 16 << 10 if DEEP else 100 << 10
        for which in self.programs:
            reached = 0
            for size in range(2 << 20, 12 << 20, step):
                done = self.start(which, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)))
                if done.returncode in (125, 127) or "error while loading" in done.stderr or done.returncode == -11 and not reached:
                    continue # env, or the loader, has too little
                reached += 1
                self.assertEqual((done.returncode, done.stdout), (0, "done\n"), f"{which}: {size} bytes: {done.stderr}")
            self.assertGreater(reached, 10)


if __name__ == "__main__":
    unittest.main()
