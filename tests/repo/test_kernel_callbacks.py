#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tools/kernel/callbacks --caches shows how a cache frees, in two sources."""

import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

BY_CALLBACK = """
static void epi_rcu_free(struct rcu_head *head) { kmem_cache_free(epi_cache, head); }
void f(void) { call_rcu(&epi->rcu, epi_rcu_free); }
"""
CREATE = 'void g(void) {{ epi_cache = kmem_cache_create("eventpoll_epi", 1, 0, {}, NULL); }}\n'


class Caches(unittest.TestCase):
    def row(self, *texts):
        with tempfile.TemporaryDirectory() as folder:
            roots = []
            for i, text in enumerate(texts):
                root = Path(folder, str(i))
                (root / "fs").mkdir(parents=True)
                (root / "Makefile").write_text(f"VERSION = 9\nPATCHLEVEL = {i}\n")
                (root / "fs/eventpoll.c").write_text(text)
                roots.append(root)
            run = subprocess.run([ROOT / "tools/kernel/callbacks", roots[0], "--caches", *roots[1:]], capture_output=True, text=True, check=True)
        self.assertIn("| filp | no such cache |", run.stdout)
        return next(line for line in run.stdout.splitlines() if line.startswith("| eventpoll_epi "))

    def test_a_callback_and_then_kfree_rcu(self):
        self.assertEqual(self.row(BY_CALLBACK + CREATE.format("0"), "void f(void) { kfree_rcu(epi, rcu); }\n" + CREATE.format("0")),
                         "| eventpoll_epi | `call_rcu`: `epi_rcu_free` | `kfree_rcu` |")

    def test_a_type_safe_cache_frees_at_once(self):
        self.assertEqual(self.row(CREATE.format("SLAB_PANIC | SLAB_TYPESAFE_BY_RCU")),
                         "| eventpoll_epi | at once (`SLAB_TYPESAFE_BY_RCU`) |")

    def test_another_cache_that_is_type_safe_does_not_count(self):
        self.assertEqual(self.row(CREATE.format("0") + 'void h(void) { x = kmem_cache_create("x", 1, 0, SLAB_TYPESAFE_BY_RCU, NULL); }\n'),
                         "| eventpoll_epi | neither call_rcu nor kfree_rcu |")


if __name__ == "__main__":
    unittest.main()
