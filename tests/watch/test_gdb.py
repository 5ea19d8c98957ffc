#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 5
"""The commands for gdb describe objects in every state, of a running process and of its core file, and count as
the library does."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build"))
COMMANDS = ROOT / "programs/gdb/prudence-gdb.py"

PROGRAM = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

char *live, *cached, *safe, *fresh, *in_slab, *free_one, *neighbour, *large, *odd, *resting, *deferred;
static void *many[5000];

static struct prudence_cache *cache_of(const char *name, struct prudence_domain *domain)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};

    return prudence_cache_create(name, 100, &attr);
}

int main(void)
{
    struct prudence_domain *domain = prudence_domain_create("by hand", PRUDENCE_DOMAIN_MANUAL, NULL);
    struct prudence_cache *cache = cache_of("routes", domain), *other = cache_of("others", domain),
                          *trimmed = cache_of("trimmed", domain);
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    free_one = prudence_cache_alloc(trimmed);
    neighbour = prudence_cache_alloc(trimmed);
    prudence_cache_free(trimmed, free_one);
    prudence_trim();
    live = prudence_cache_alloc(cache);
    cached = prudence_cache_alloc(cache);
    fresh = prudence_cache_alloc(cache);
    safe = prudence_cache_alloc(other);
    large = prudence_malloc(200000);
    resting = prudence_malloc(190000);
    deferred = prudence_malloc(200000);
    prudence_free(resting);
    for (int i = 0; i < 5000; i++)
        many[i] = prudence_cache_alloc(cache);
    prudence_cache_free(cache, cached);
    for (int i = 0; i < 200; i++)
        prudence_cache_free_deferred(other, i ? prudence_cache_alloc(other) : safe);
    prudence_manual_advance(domain);
    prudence_manual_advance(domain);
    odd = prudence_cache_alloc(cache_of("odd\n\033[31m\x9b\xc2\x9b\xc3\xa9", domain));
    prudence_domain_read_lock(domain);
    for (int i = 0; i < 5000; i++)
        prudence_cache_free_deferred(cache, many[i]);
    prudence_cache_free_deferred(cache, fresh);
    prudence_free_deferred(deferred);
    in_slab = many[0];
    prudence_stats_print(stdout, PRUDENCE_STATS_JSON);
    fflush(stdout);
    abort();
}
"""


class Gdb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("gdb"):
            if os.environ.get("CI"):
                sys.exit("there is no gdb (tools/setup installs it)")
            raise unittest.SkipTest("there is no gdb")
        cls.directory = tempfile.TemporaryDirectory()
        cls.path = Path(cls.directory.name)
        (cls.path / "program.c").write_text(PROGRAM)
        subprocess.run(["cc", "-g", cls.path / "program.c", "-o", cls.path / "program", f"-I{ROOT}/include",
                        BUILD / "libprudence.so", f"-Wl,-rpath,{BUILD.resolve()}", "-pthread"], check=True)
        cls.running = cls.gdb("run", *cls.questions(), "generate-core-file core")
        cls.core = cls.gdb("core-file core", *cls.questions())
        cls.stats = json.loads(re.search(r"^\{.*\}$", cls.running, re.M)[0])

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    @classmethod
    def gdb(cls, *commands):
        words = [word for command in ("set confirm off", "set debuginfod enabled off", "set width 0", "set style enabled off",
                                      f"source {COMMANDS}", *commands) for word in ("-ex", command)]
        return subprocess.run(["gdb", "-nx", "-batch", *words, "program"], cwd=cls.path, text=True, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120).stdout

    @staticmethod
    def questions():
        asked = ("whois live", "whois live + 7", "whois cached", "whois safe", "whois fresh", "whois in_slab", "whois free_one",
                 "whois neighbour", "whois large", "whois odd", "whois large + 200703",
                 "whois large + 200704", "whois large - 1", "whois resting + 189999", "whois 4096", "whois main", "whois",
                 "caches", "counters", "counters routes", "counters nothing", "latent", "latent routes", "latent nothing", "readers",
                 "traces", "walk routes", "walk nothing", "profile none")
        return [word for question in asked for word in (f"echo === {question}\\n", f"prudence {question}")]

    def answers(self, question):
        for text in (self.running, self.core):
            found = re.search(rf"^=== {re.escape(question)}\n(.*?)(?=^=== |\Z)", text, re.M | re.S)
            self.assertIsNotNone(found, text)
            yield found[1]

    def test_each_state(self):
        for question, said in (("live", "live: allocated, and not freed"), ("live + 7", "the address is 7 bytes into it"),
                               ("cached", "cached in the object cache of CPU"), ("fresh", "latent in the latent cache of CPU"),
                               ("in_slab", "latent in its slab: cookie"), ("free_one", "free in its slab"),
                               ("neighbour", "live: "), ("large", "live: ")):
            for answer in self.answers(f"whois {question}"):
                with self.subTest(question, answer=answer):
                    self.assertIn(said, answer)
                    self.assertIn("object 0" if question == "large" else "object ", answer)

    def test_pages_next_to_large_blocks(self):
        """The first blocks have a closed page on each side, and rest closed when they are freed."""
        for question, said in (("large + 200703", "the address is 200703 bytes into it"),
                               ("large + 200704", "in no object: before the first or after the last"),
                               ("large - 1", "in no object: before the first or after the last"),
                               ("resting + 189999", "freed: a large block of 192512 bytes at 0x")):
            for answer in self.answers(f"whois {question}"):
                self.assertIn(said, answer, question)
        large, = (cache for cache in self.stats["caches_list"] if cache["name"] == "large")
        for answer in self.answers("caches"):
            self.assertRegex(answer, rf"(?m)^large +- +1 +0 +1 +2 +{large['bytes_latent']} +default$")

    def test_grace_periods(self):
        for answer in self.answers("whois safe"):
            self.assertRegex(answer, r"latent in the latent cache of CPU \d+: cookie 0x\w+, over")
        for answer in self.answers("whois in_slab"):
            self.assertRegex(answer, r"cookie 0x\w+, not over")

    def test_what_is_not_ours(self):
        for question in ("4096", "main"):
            for answer in self.answers(f"whois {question}"):
                self.assertIn("no memory of Prudence's slabs", answer)
        for answer in self.answers("whois"):
            self.assertIn("an address is missing", answer)
        for answer in self.answers("latent nothing"):
            self.assertIn("there is no cache 'nothing'", answer)

    def test_names_are_shown_within_their_line(self):
        for question in ("whois odd", "caches"):
            for answer in self.answers(question):
                self.assertIn("odd??[31m??\u00e9", answer)
                self.assertNotIn("\033", answer)

    def test_counts_are_the_librarys(self):
        for answer in self.answers("caches"):
            rows = {line.split()[0]: [int(word) for word in line.split()[2:6]] for line in answer.splitlines()[1:]
                    if not line.startswith("prudence-")}
            for cache in self.stats["caches_list"]:
                if cache["name"] not in ("routes", "others", "trimmed"):
                    continue
                live, cached, latent, slabs = rows[cache["name"]]
                self.assertEqual((live, slabs), (cache["objects_live"], cache["slabs_now"]))
                # The library counts safe objects of a ring as cached.
                self.assertEqual(cached + latent, cache["objects_cached"] + cache["objects_latent"])
            self.assertEqual(rows["routes"][2], 5001)

    def test_counters_are_the_librarys(self):
        """Counts by the library's list, which the commands read."""
        for question, names in (("counters", ("routes", "others", "trimmed")), ("counters routes", ("routes",))):
            for answer in self.answers(question):
                told = {name: {words[0]: int(words[1]) for words in map(str.split, lines.strip().splitlines())}
                        for name, lines in re.findall(r"^cache '(.*)'\n((?:  .*\n)+)", answer, re.M)}
                self.assertLessEqual(set(names), set(told))
                for cache in self.stats["caches_list"]:
                    if cache["name"] in names:
                        for counter, value in told[cache["name"]].items():
                            self.assertEqual(cache[counter], value, counter)
                self.assertGreater(told["routes"]["refills"], 0)
                self.assertGreater(len(told["routes"]), 10)
        for answer in self.answers("counters nothing"):
            self.assertIn("there is no cache 'nothing'", answer)

    def test_latent_objects_add_up(self):
        for answer in self.answers("latent routes"):
            self.assertEqual(sum(int(count) for count in re.findall(r": (\d+) objects", answer)), 5001)
            self.assertRegex(answer, r"thread \d+ is inside since \d+ grace periods \(nested 1\)")
        for answer in self.answers("latent"):
            self.assertIn("cache 'others', domain 'by hand'", answer)
        for answer in self.answers("readers"):
            self.assertRegex(answer, r"by hand +\d+ +\S+ +1 +\d+")

    def test_threads_inside_have_traces(self):
        for answer in self.answers("traces"):
            self.assertRegex(answer, r"thread \d+ is inside of domain 'by hand' since \d+ grace periods\n#0 (.*\n)*#\d+ .* main \(")

    def test_slabs_add_up(self):
        """Each object of a slab is in one column; all slabs have the objects that the cache has."""
        cache, = (cache for cache in self.stats["caches_list"] if cache["name"] == "routes")
        for answer in self.answers("walk routes"):
            rows = [[int(word) for word in line.split()[2:7]] for line in answer.splitlines() if line.startswith("0x")]
            self.assertEqual(len(rows), cache["slabs_now"])
            for objects, *parts in rows:
                self.assertEqual(objects, sum(parts))
            self.assertEqual((sum(row[1] for row in rows), sum(row[3] for row in rows)), (cache["objects_live"], 5001))
        for answer in self.answers("walk nothing"):
            self.assertIn("there is no cache 'nothing'", answer)

    def test_no_profile_is_written_where_there_is_none(self):
        for answer in self.answers("profile none"):
            self.assertIn("this process takes no profile", answer)
        self.assertFalse((self.path / "none").exists())

    def test_damaged_memory_ends_in_a_message(self):
        """Lists that lead in a circle; counts that cannot be. One after the other, each mended before the next."""
        line = "((struct cpu_cache *)((struct prudence_cache *)((char *)slab_caches.previous - (long)&((struct prudence_cache *)0)->link))->percpu)->line"
        damages = (("slab_caches.next->next", "slab_caches.next", "prudence_cache: the list changes faster than it can be read, or is damaged"),
                   ("readers_domains.next->next", "readers_domains.next", "prudence_domain: the list changes faster than it can be read, or is damaged"),
                   ("prudence_default.chunks->next", "prudence_default.chunks", "chunks of readers lead in a circle at 0x"),
                   ("posix_cpu_count", "4000000000", "it claims 4000000000 cpus; the limit is 8192"),
                   ("posix_node_count", "4000000000", "it claims 4000000000 nodes; the limit is 1024"),
                   (f"{line}.ring_mask", "~0UL", "slots of a latent cache: 4294967295; the limit is"),
                   (f"{line}.ring_tail", "1UL << 60", "objects of a latent cache: 11529"))
        commands = [command for place, value, _ in damages for command in (
            f"echo === {place}\\n", f"set var $old = {place}", f"set var {place} = {value}", "prudence latent", "prudence readers",
            "prudence whois odd", "prudence whois cached", f"set var {place} = $old")]
        said_all = self.gdb("run", *commands, "echo === mended\\n", "prudence caches").split("\n=== ")
        self.assertEqual(len(said_all), len(damages) + 2, said_all)
        for (place, _, said), answer in zip(damages, said_all[1:]):
            with self.subTest(place):
                self.assertIn(said, answer)
                self.assertNotIn("Traceback", answer)
        self.assertIn("routes", said_all[-1])


if __name__ == "__main__":
    unittest.main()
