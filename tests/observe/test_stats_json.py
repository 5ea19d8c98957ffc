#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 17
"""The JSON of prudence_stats_print is JSON, and the same, in every locale and with any bytes in names."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build"))
sys.path.insert(0, str(ROOT / "tools/release"))
import source  # noqa: E402 (the path comes first)

# Decimal commas; grouping, and digits of its own; another alphabet, and no UTF-8.
LOCALES = {"de_DE.UTF-8": ("de_DE", "UTF-8"), "fa_IR.UTF-8": ("fa_IR", "UTF-8"),
           "ru_RU.KOI8-R": ("ru_RU", "KOI8-R")}

PROGRAM = r"""
#include <locale.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

int main(int argc, char **argv)
{
    if (!setlocale(LC_ALL, ""))
        return 2;
    for (int i = 1; i < argc; i++) {
        struct prudence_cache *cache = prudence_cache_create(argv[i], 100, NULL);
        for (int n = 0; n < 3; n++)
            if (!prudence_cache_alloc(cache))
                return 3;
    }
    prudence_read_lock();
    prudence_free_deferred(prudence_cache_alloc(prudence_cache_create("deferred", 100, NULL)));
    return prudence_stats_print(stdout, PRUDENCE_STATS_JSON);
}
"""

# A name, and how it reads: U+FFFD for each byte that is not UTF-8.
NAMES = [
    (b"plain", "plain"),
    ("Straße €, 𝄞 日本".encode(), "Straße €, 𝄞 日本"),
    (b"quote \" backslash \\ tab \t", "quote \" backslash \\ tab \t"),
    (b"del \x7f", "del \x7f"),
    (b"latin-1 \xfc.", "latin-1 \ufffd."),
    (b"control \x1b \xc2\x9b \xc2\xa0", "control \x1b \x9b \xa0"),
    (b"overlong \xc0\xaf \xe0\x80\x80", "overlong \ufffd\ufffd \ufffd\ufffd\ufffd"),
    (b"surrogate \xed\xa0\x80", "surrogate \ufffd\ufffd\ufffd"),
    (b"too high \xf4\x90\x80\x80 \xff", "too high \ufffd\ufffd\ufffd\ufffd \ufffd"),
    (b"cut short \xe2\x82 \xe2", "cut short \ufffd\ufffd \ufffd"),
    (b"half of a control \xc2 \xc2x \xc2", "half of a control \ufffd \ufffdx \ufffd"),
]


class StatsJson(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.path = Path(cls.directory.name)
        for name, (source, charmap) in LOCALES.items():
            subprocess.run(["localedef", "--no-archive", "-i", source, "-f", charmap, cls.path / name],
                           check=True)
        (cls.path / "program.c").write_text(PROGRAM)
        subprocess.run(["cc", cls.path / "program.c", "-o", cls.path / "program",
                        f"-I{ROOT}/include", BUILD / "libprudence.a", "-pthread"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def run_in(self, locale):
        environment = dict(os.environ, LC_ALL=locale, LOCPATH=str(self.path))
        done = subprocess.run([self.path / "program", *[name for name, _ in NAMES]],
                              env=environment, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stdout.decode("utf-8")  # strict: not UTF-8 is an error
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")  # nothing that a terminal obeys
        return json.loads(text)

    def test_who_and_when(self):
        all_of_it = self.run_in("C")
        self.assertEqual(all_of_it["program"], "program")
        self.assertEqual(all_of_it["version"], source.version(mark="-"))
        self.assertRegex(all_of_it["time"], r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$")
        self.assertGreater(all_of_it["pid"], 1)
        latent, = all_of_it["most_latent"]
        self.assertEqual({key: latent[key] for key in ("cache", "domain", "bytes")},
                         {"cache": "deferred", "domain": "default", "bytes": 112})
        self.assertEqual(latent["reader"]["name"], "program")
        self.assertEqual(len(all_of_it["most_live"]), 3)
        self.assertEqual(all_of_it["bytes_live"], 112 * 3 * len(NAMES))
        domain, = all_of_it["domains_list"]
        self.assertEqual((domain["name"], domain["kind"], domain["readers_inside"]), ("default", "memb", 1))
        reader, = all_of_it["readers_list"]
        self.assertEqual((reader["thread"], reader["nesting"], reader["domain"]), (all_of_it["pid"], 1, "default"))
        self.assertEqual(all_of_it["short_term_memory"]["num_dates"], 0)

    def test_every_locale(self):
        for locale in ["C", *LOCALES]:
            with self.subTest(locale=locale):
                caches = {cache["name"]: cache for cache in self.run_in(locale)["caches_list"]}
                for _, reads in NAMES:
                    self.assertIn(reads, caches)
                    self.assertEqual(caches[reads]["allocations"], 3)
                    self.assertAlmostEqual(caches[reads]["total_fragmentation"],
                                           caches[reads]["slab_size"] / 300, places=4)


if __name__ == "__main__":
    unittest.main()
