#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A library of the program, not the program, is linked with libprudence-malloc. Then libc comes before it in look-up order, and it
registers its fork handlers all the same: a child of fork does not count as made by _Fork. With each linker."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
LINKERS = [linker for linker in ("bfd", "gold", "lld", "mold") if shutil.which(f"ld.{linker}")]

# Forks while there is another thread. The child waits, and so notices if it was made without the handlers.
LIBRARY = r"""
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
static void *stay(void *unused)
{
    prudence_read_lock();
    prudence_read_unlock();
    for (;;)
        pause();
    return unused;
}
int fork_with_a_thread(void)
{
    pthread_t thread;
    int status = -1;
    pid_t child;

    prudence_free(prudence_malloc(100));
    if (pthread_create(&thread, NULL, stay, NULL))
        abort();
    child = fork();
    if (child == 0) {
        prudence_read_lock();
        prudence_read_unlock();
        prudence_synchronize();
        _exit(0);
    }
    waitpid(child, &status, 0);
    return status;
}
"""
PROGRAM = r"""
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
extern int fork_with_a_thread(void);
static int print(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    printf("loaded: %s\n", info->dlpi_name);
    fflush(stdout);
    return 0;
}
int main(void)
{
    dl_iterate_phdr(print, NULL);
    return fork_with_a_thread() != 0;
}
"""


def call(*command, **more):
    names = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "PRUDENCE_OPTIONS")}
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, env=names, **more)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


class ForkOrder(unittest.TestCase):
    def build(self, folder, linker):
        flags = ["-O2", "-Wall", "-Werror", f"-I{ROOT}/include", f"-fuse-ld={linker}", "-pthread", f"-L{BUILD}", f"-Wl,-rpath,{BUILD}:{folder}",
                 f"-Wl,-rpath-link,{BUILD}"]
        library, program = folder / "libowner.so", folder / "program"
        call("gcc", "-shared", "-fPIC", "-xc", "-", "-xnone", *flags, "-lprudence-malloc", "-o", library, input=LIBRARY)
        call("gcc", "-xc", "-", "-xnone", *flags, library, "-o", program, input=PROGRAM)
        return program

    def test_libc_comes_first(self):
        self.assertTrue(LINKERS)
        for linker in LINKERS:
            with self.subTest(linker=linker), tempfile.TemporaryDirectory(prefix="prudence-fork-order-") as folder:
                said = call(self.build(Path(folder), linker))
                self.assertLess(said.index("/libc.so"), said.index("/libprudence-malloc.so"))
                self.assertNotIn("prudence:", said)


if __name__ == "__main__":
    if len(LINKERS) < 4 and os.environ.get("CI"):
        sys.exit("a linker is missing (tools/setup installs all)")
    unittest.main()
