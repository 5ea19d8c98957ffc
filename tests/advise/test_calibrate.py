#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""prudence-calibrate takes and lets go of each lock whose cost it says: a preloaded library counts the calls."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
PROGRAM = BUILD / "bin/prudence-calibrate"
if not PROGRAM.exists():
    print("prudence-calibrate was not built (-DPRUDENCE_BUILD_ADVISE=ON): skipped")
    sys.exit(77)

FUNCTIONS = {f"pthread_{name}": f"pthread_{kind}_t" for name, kind in (
    ("spin_lock", "spinlock"), ("spin_unlock", "spinlock"), ("mutex_lock", "mutex"), ("mutex_unlock", "mutex"),
    ("rwlock_rdlock", "rwlock"), ("rwlock_wrlock", "rwlock"), ("rwlock_unlock", "rwlock"))}
COUNTED = """
static unsigned long of_%(name)s;
int %(name)s(%(kind)s *lock)
{
    static int (*real)(%(kind)s *);

    if (!real)
        real = (int (*)(%(kind)s *))dlsym(RTLD_NEXT, "%(name)s");
    __atomic_fetch_add(&of_%(name)s, 1, __ATOMIC_RELAXED);
    return real(lock);
}
__attribute__((destructor)) static void print_%(name)s(void)
{
    FILE *file = fopen(getenv("COUNTS"), "a");

    fprintf(file, "%(name)s %%lu\\n", of_%(name)s);
    fclose(file);
}
"""
OPERATIONS = 100  # of a lock, at least, in three samples of 0.1 ms each


class Locks(unittest.TestCase):
    def test_each_is_taken(self):
        with tempfile.TemporaryDirectory() as folder:
            source, library, counts = Path(folder) / "counts.c", Path(folder) / "counts.so", Path(folder) / "counts"
            source.write_text("#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n" +
                              "".join(COUNTED % {"name": name, "kind": kind} for name, kind in FUNCTIONS.items()))
            subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
            subprocess.run([PROGRAM, "--repeats=3", "--seconds=0.0001"], check=True, capture_output=True,
                           env={**os.environ, "LD_PRELOAD": str(library), "COUNTS": str(counts)})
            made = dict.fromkeys(FUNCTIONS, 0)
            for line in counts.read_text().splitlines():
                name, count = line.split()
                made[name] += int(count)
        for name, count in made.items():
            self.assertGreater(count, OPERATIONS, name)
        self.assertEqual(made["pthread_spin_lock"], made["pthread_spin_unlock"])
        self.assertEqual(made["pthread_rwlock_rdlock"] + made["pthread_rwlock_wrlock"], made["pthread_rwlock_unlock"])


if __name__ == "__main__":
    unittest.main()
