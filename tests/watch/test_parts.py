#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The parts of the tools that watch, each alone: lists that change while they are read, rates, numbers as text, the screen's
lines. No process is watched."""

import time
import unittest
import unittest.mock
from types import SimpleNamespace

from watching import BUILD, ROOT
from prudence_watch import bounds, choose, figures, rates, screen, text
from prudence_watch.errors import WatchError
from prudence_watch.figures import Copy
from prudence_watch.layout import Layout, Record

ROWS = [("number", "grace_period_step", 1024), ("address", "head", 0x1000), ("address", "slab_caches", 0x1000), *(("member", *row) for row in (
    ("list.next", 0, 8), ("list.previous", 8, 8), ("thing", 0, 32), ("thing.number", 0, 8), ("thing.link", 8, 16), ("thing.part", 24, 8),
    ("transfer_batch.next", 0, 8), ("transfer_batch.count", 8, 4), ("reader_slot.reader.word", 0, 8), ("reader_slot.thread", 8, 4),
    ("reader_slot.stall_word", 16, 8), ("reader_slot.stall_since", 24, 8)))]
LAYOUT = Layout("0.3.0", ROWS)
HEAD, A, B = 0x1000, 0x2000, 0x3000


def words(*values):
    return b"".join(value.to_bytes(8, "little") for value in values)


class Memory:
    """Reads a process that is not there."""

    def __init__(self, **pages):
        self.budget = bounds.Budget()
        self.pages = {int(name[1:], 16): contents for name, contents in pages.items()}

    def read(self, address, size):
        for start, contents in self.pages.items():
            if start <= address and address + size <= start + len(contents):
                return contents[address - start:address - start + size]
        raise OSError("no memory")

    def word(self, address):
        return int.from_bytes(self.read(address, 8), "little")


def target(memory):
    return SimpleNamespace(memory=memory, stands=False, now=lambda: 0, thread_name=lambda thread: "")


class Changing(Memory):
    """The list changes before the read of the given number."""

    def __init__(self, changes, **pages):
        super().__init__(**pages)
        self.changes, self.reads = changes, 0

    def read(self, address, size):
        self.reads += 1
        for page, contents in self.changes.get(self.reads, {}).items():
            self.pages[int(page[1:], 16)] = contents
        return super().read(address, size)


@unittest.mock.patch.dict(figures.LISTS, {"thing": "caches"})
@unittest.mock.patch.dict(figures.MADE_OF, {"thing": ("number", "part")})
class Lists(unittest.TestCase):
    def things(self, head, a, b):
        memory = Memory(x1000=words(*head, 0, 0), x2000=words(*a, 0), x3000=words(*b, 0))
        copy = Copy(target(memory), LAYOUT)
        found = []
        copy.walk(HEAD, "thing", "number", found)
        return [address for address, _ in found]

    def test_a_list(self):
        self.assertEqual(self.things((A + 8, B + 8), (1, B + 8, HEAD), (2, HEAD, A + 8)), [A, B])

    def test_lists_that_changed_meanwhile(self):
        for what, head, a, b in (("a link does not lead back", (A + 8, B + 8), (1, B + 8, HEAD), (2, HEAD, HEAD)),
                                 ("numbers do not grow", (A + 8, B + 8), (2, B + 8, HEAD), (1, HEAD, A + 8)),
                                 ("it leads into itself", (A + 8, B + 8), (1, B + 8, HEAD), (2, B + 8, A + 8))):
            with self.subTest(what), self.assertRaises(ValueError):
                self.things(head, a, b)
        with self.assertRaises(OSError):
            self.things((A + 8, B + 8), (1, 0x9000, HEAD), (2, HEAD, A + 8))

    def test_what_is_on_its_list_still(self):
        def is_listed(head, before, now):
            layout = LAYOUT
            copy = Copy(target(Memory(x1000=words(*head), x2000=words(*now))), layout)
            return copy.is_listed(A, "thing", Record(layout, "thing", words(*before)))

        thing = (1, HEAD, HEAD, 5)
        self.assertTrue(is_listed((A + 8, A + 8), thing, thing))
        self.assertFalse(is_listed((HEAD, HEAD), thing, thing))  # off the list, and as it was
        self.assertFalse(is_listed((A + 8, A + 8), thing, (2, HEAD, HEAD, 5)))  # another one
        self.assertFalse(is_listed((A + 8, A + 8), thing, (1, HEAD, HEAD, 6)))  # it was half of each when it was read

    def listed(self, changes):
        """Reads the list A, B, which changes during the read. The reads: the head, A, B."""
        memory = Changing(changes, x1000=words(A + 8, B + 8), x2000=words(1, B + 8, HEAD, 0), x3000=words(2, HEAD, A + 8, 0))
        copy = Copy(target(memory), LAYOUT)
        return [address for address, _ in copy.list_of("head", "thing", "number")], memory.reads

    def test_a_walk_goes_on_from_the_last_that_is_still_listed(self):
        self.assertEqual(self.listed({}), ([A, B], 3))
        without_b = {"x1000": words(A + 8, A + 8), "x2000": words(1, HEAD, HEAD, 0)}
        found, reads = self.listed({3: without_b | {"x3000": b""}})
        self.assertEqual((found, reads), ([A], 7))  # is A listed: three reads; the word after it: one; A is not read once more
        without_a = {"x1000": words(B + 8, B + 8), "x3000": words(2, HEAD, HEAD, 0)}
        self.assertEqual(self.listed({3: without_a | {"x2000": b""}})[0], [B])
        self.assertEqual(self.listed({3: without_a | {"x2000": words(1, 0, 0, 0)}})[0], [B])
        nothing = {"x1000": words(HEAD, HEAD), "x2000": b"", "x3000": b""}
        self.assertEqual(self.listed({3: nothing})[0], [])

    def test_one_that_always_changes_is_given_up(self):
        copy = Copy(target(Memory(x1000=words(A + 8, 0))), LAYOUT)
        with self.assertRaisesRegex(WatchError, "changes faster than it can be read"):
            copy.list_of("slab_caches", "thing", "number")

    def test_objects_on_their_way_to_a_node(self):
        copy = Copy(target(Memory(x2000=words(B, 15), x3000=words(0, 3))), LAYOUT)
        self.assertEqual((copy.handed_over(0), copy.handed_over(A)), (0, 18))


class Readers(unittest.TestCase):
    def reader(self, word, stall_word, since, now=1024 * 20):
        layout = LAYOUT
        copy = Copy(SimpleNamespace(memory=None, now=time.monotonic_ns, thread_name=lambda thread: f"thread {thread}"), layout)
        return copy.reader(Record(layout, "reader_slot", words(word, 7, stall_word, since)), now)

    def test_sections(self):
        since = time.monotonic_ns() - 5 * 10 ** 9
        inside = self.reader(1024 * 17 + 2, 1024 * 17, since)
        self.assertEqual((inside["nesting"], inside["thread_name"], inside["grace_periods_begun"]), (2, "thread 7", 3))
        self.assertAlmostEqual(inside["inside_seconds"], 5, delta=1)
        self.assertEqual(self.reader(1024 * 18 + 1, 1024 * 17, since)["inside_seconds"], 0)  # another section is that old
        outside = self.reader(0, 1024 * 17, since)
        self.assertEqual((outside["nesting"], outside["inside_seconds"], outside["grace_periods_begun"]), (0, 0, 0))


class Rates(unittest.TestCase):
    def test_hit_rate(self):
        now = {"allocations": 1000, "hits": 100}
        self.assertEqual(rates.hit_rate(now, {"allocations": 50, "hits": 45}), 0.9)
        self.assertEqual(rates.hit_rate(now, {"allocations": 0, "hits": 0}), 0.1)
        self.assertIsNone(rates.hit_rate({"allocations": 0, "hits": 0}, {"allocations": 0, "hits": 0}))

    def test_length_of_grace_periods(self):
        """Half of the checks saw one under way, of 1000 a second: half a millisecond each."""
        periods = rates.GracePeriods()
        self.assertIsNone(periods.seconds(1000))
        for look in range(100):
            periods.look(look % 2)
        self.assertEqual(periods.seconds(1000), (0.0005, False))
        self.assertIsNone(periods.seconds(0))
        periods.restart()
        periods.look(0)
        periods.look(0)
        self.assertEqual(periods.seconds(1000), (0.0005, True))  # less than that


class Text(unittest.TestCase):
    def test_numbers(self):
        for shown, wanted in ((text.of_bytes(1023), "1023B"), (text.of_bytes(1536), "1.5K"), (text.of_bytes(2 ** 60), "1024P"),
                              (text.of_count(999), "999"), (text.of_count(1234), "1.2k"), (text.of_count(123456), "123k"),
                              (text.of_seconds(41.23), "41.2 s"), (text.of_seconds(0.0012), "1.2 ms"), (text.of_seconds(2e-8), "20 ns"),
                              (text.of_share(None), "-"), (text.of_share(0.9876), "98.8")):
            self.assertEqual(shown, wanted)

    def test_sparklines(self):
        self.assertEqual(text.sparkline([0, 1, 2, 4, 8], 6), " ▁▂▃▅█")
        self.assertEqual(text.sparkline([0, 0], 2), "▁▁")
        self.assertEqual(text.sparkline(range(100), 3, plain=True), "###")
        self.assertEqual(text.sparkline([], 3), "   ")
        self.assertEqual(text.sparkline([1], 0), "")

    def test_names_fit(self):
        self.assertEqual(text.fit("abc", 5), "abc  ")
        self.assertEqual(text.fit("abc", 5, left=False), "  abc")
        self.assertEqual(text.fit("abcdef", 3), "abc")
        self.assertEqual(text.fit("路由表", 5), "路由 ")  # two columns each
        self.assertEqual(text.fit("a\033\nb\u0301", 6), "a??b? ")


class Screen(unittest.TestCase):
    def test_only_readers_that_stay_are_shown(self):
        def reader(seconds):
            return {"thread": 1, "thread_name": "t", "inside_seconds": seconds, "grace_periods_begun": 1}

        sample = {"domains": [{"name": "default", "threads_inside": [reader(0.01), reader(2), reader(41), reader(3), reader(4)]}]}
        self.assertEqual([reader["inside_seconds"] for _, reader in screen.readers_in_the_way(sample)], [41, 4, 3, 2])
        lines = [line for _, line in screen.reader_lines(sample)]
        self.assertEqual(len(lines), 4)
        self.assertIn("blocking for 41.0 s", lines[0])
        self.assertIn("and 1 more", lines[3])

    def test_rates_stay_in_a_narrow_terminal(self):
        for sort in screen.COLUMNS:
            for width in range(1, 200):
                shown = screen.columns_shown(screen.View(sort=sort), width)
                self.assertLessEqual(screen.width_of(shown), max(width, screen.COLUMNS[0].width))
                names = {column.name for column in shown}
                if width >= 80:
                    self.assertLessEqual({"name", "live", "latent", "allocations", "deferrals", "churns", sort.name}, names, width)
            self.assertEqual(len(screen.columns_shown(screen.View(sort=sort), 120)), len(screen.COLUMNS))

    def test_every_key_and_column_is_named_once(self):
        keys = [column.key for column in screen.COLUMNS]
        self.assertEqual(len(set(keys) | set("qr ")), len(keys) + 3)
        self.assertEqual(len(screen.BY_NAME), len(keys))
        page = (BUILD / "man/prudence-top.1").read_text().replace("\\-", "-").replace("\n", " ")
        for column in screen.COLUMNS:
            self.assertRegex(page, rf"[ ,]{column.name}\b")


class Choice(unittest.TestCase):
    def test_the_only_process(self):
        finder = choose.Finder(SimpleNamespace(pid=None, name=None, user=None))
        for found, message in (([], "no process of yours that may be read uses Prudence"), ([1, 2], "2 processes use Prudence: 1 ")):
            with unittest.mock.patch.object(choose, "watchable", return_value=found), self.assertRaisesRegex(WatchError, message):
                finder.chosen()
        with unittest.mock.patch.object(choose, "watchable", return_value=[7]):
            self.assertEqual(finder.chosen(), 7)


if __name__ == "__main__":
    unittest.main()
