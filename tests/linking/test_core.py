#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The archive of the core alone (src/README.md): programs that use it link and run, others do not link or learn why."""

import os
import platform
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
CORE = BUILD / "libprudence-core.a"
MOST = 270 << 10  # bytes of text
PROGRAM = r"""
#include <errno.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>
#include <stdio.h>

static void end(void *object, void *context)
{
    (void)object, (void)context;
}

int main(void)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .destructor = end};
    struct prudence_cache *cache = prudence_cache_create("objects", 64, NULL);
    struct prudence_stats stats;
    void *block = prudence_malloc(100000);

    for (int i = 0; i < 10000; i++)
        prudence_free_deferred(prudence_cache_alloc(cache));
    prudence_read_lock();
    prudence_read_unlock();
    prudence_free(block);
    if (prudence_cache_barrier(cache) || prudence_stats(&stats) || stats.deferred_frees != 10000)
        return 1;
    if (prudence_cache_create("ended", 64, &attr) || prudence_option_set("check", "1") != ENOENT ||
        prudence_option_set("decay", "1s"))
        return 2;
    puts(stats.percpu);
    return prudence_cache_destroy(cache);
}
"""
CALLS = '#include <prudence/call.h>\nint main(void) { prudence_barrier(); return 0; }\n'
LINKS = (), ("-static",), ("-static-pie", "-fPIE"), ("-flto",)


class Core(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def link(self, text, *flags):
        source, program = self.folder / "program.c", self.folder / "program"
        source.write_text(text)
        return subprocess.run(["cc", "-O2", f"-I{ROOT}/include", *flags, source, CORE, "-pthread", "-o", program], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT), program

    def test_a_program_with_the_core(self):
        machine = subprocess.run([BUILD / "bin/machine"], text=True, stdout=subprocess.PIPE).stdout
        for flags in LINKS:
            linked, program = self.link(PROGRAM, *flags)
            self.assertEqual(linked.returncode, 0, linked.stdout)
            done = subprocess.run([program], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("cache 'ended': this library has no destructors", done.stderr)
            self.assertIn("unknown option 'check'", done.stderr)
            if "sequences=1" in machine.split():
                self.assertEqual(done.stdout, "rseq\n", flags)

    def test_a_program_with_callbacks_does_not_link(self):
        linked, _ = self.link(CALLS)
        self.assertIn("prudence_barrier", linked.stdout)
        self.assertNotEqual(linked.returncode, 0)

    @unittest.skipUnless(platform.machine() == "x86_64", "other processors' code has other sizes")
    def test_it_is_small(self):
        text = int(subprocess.run(["size", CORE], check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()[1].split()[0])
        self.assertLessEqual(text, MOST)


if __name__ == "__main__":
    unittest.main()
