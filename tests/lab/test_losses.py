#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""lab/run/losses: what it reads in a cell, which figures are lost, each form of a table, and the page."""

import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "lab"))
from measure import losses  # noqa: E402 (the path comes first)
from measure.page import Refused  # noqa: E402


def factor(ours, peer, better=losses.LESS):
    return round(losses.worse_by(losses.cell(ours, better), losses.cell(peer, better), better), 3)


class Cells(unittest.TestCase):
    def check(self, text, low, middle, high):
        found = losses.cell(text)
        for name, wanted in (("low", low), ("middle", middle), ("high", high)):
            self.assertAlmostEqual(getattr(found, name), wanted, msg=text)

    def test_numbers_and_spreads(self):
        self.check("1,234.5", 1234.5, 1234.5, 1234.5)
        self.check("13,351.6 [12,140.2, 13,745.9]", 12140.2, 13351.6, 13745.9)
        self.check("0.46 (0.09 to 0.58)", 0.09, 0.46, 0.58)
        self.check("1,589 ± 136", 1453, 1589, 1725)
        self.check("95.6 % [95.4 %, 95.7 %] (94.8 %)", 95.4, 95.6, 95.7)
        self.check("4.4 µs", 4.4e-6, 4.4e-6, 4.4e-6)
        self.assertIsNone(losses.cell("–"))


class Rule(unittest.TestCase):
    def test_worse_by_more_than_counts_as_the_same(self):
        self.assertEqual((factor("1.020", "1.000"), factor("1.030", "1.000")), (0, 1.03))
        self.assertEqual((factor("10.0", "20.0", losses.MORE), factor("20.0", "10.0", losses.MORE)), (2, 0))

    def test_in_all_rounds(self):
        self.assertEqual((factor("3.0 [1.9, 4.0]", "1.0 [0.5, 1.9]"), factor("3.0 [2.0, 4.0]", "1.0 [0.5, 1.9]")), (0, 3))

    def test_a_zero_is_the_smallest_number_that_its_cell_can_show(self):
        self.assertEqual((factor("5", "0"), factor("0.5", "0.0"), factor("0.0", "0.0")), (5, 5, 0))

    def test_the_last_digit_may_be_rounded(self):
        self.assertEqual((factor("0.02", "0.01"), factor("0.03", "0.01")), (0, 3))

    def test_hits_count_as_misses(self):
        self.assertEqual(factor("96.0 %", "98.0 %", losses.HITS), 2)


class Forms(unittest.TestCase):
    def lost(self, compare, *rows):
        return [(one["row"], one["figure"], one["peer"], round(one["factor"], 2)) for one in losses.losses_of("t", compare(list(rows)))[0]]

    def test_rows(self):
        compare = losses.by_rows("prudence", "(?!prudence).*", {"ns": losses.LESS, "MB/s": losses.MORE}, ("bytes",))
        rows = [{"bytes": size, "subject": name, "ns": ns, "MB/s": speed} for size, name, ns, speed in (
            ("16", "prudence", "20", "5"), ("16", "prudence-heap", "1", "99"), ("16", "a", "10", "1"), ("16", "b", "5", "10"), ("64", "a", "1", "1"))]
        self.assertEqual(self.lost(compare, *rows), [("bytes 16", "ns", "b", 4), ("bytes 16", "MB/s", "b", 2)])

    def test_columns_with_several_figures(self):
        compare = losses.by_columns("prudence", "classic|urcu", ("CPU", "wall", "MB"), ("load",))
        self.assertEqual(self.lost(compare, {"load": "l", "prudence": "4 (9), 7", "classic": "2 (9), 90", "urcu": "8 (3), –"}),
                         [("l", "CPU", "classic", 2), ("l", "wall", "urcu", 3)])

    def test_changes(self):
        self.assertEqual(self.lost(losses.changes(("ns", "MB")), {"subject": "s", "ns": "10 → 30 [29, 31]", "MB": "9 → 1"}), [("s", "ns", "the baseline", 3)])
        self.assertEqual(self.lost(losses.changes(("ns",), arrow=" / ", mine=0), {"subject": "s", "ns": "30 / 10"}), [("s", "ns", "the baseline", 3)])

    def test_ratios(self):
        self.assertEqual(self.lost(losses.ratios(("time", "peak"), ("program",), "best"), {"program": "p", "time": "1.50 (scudo)", "peak": "0.90 (glibc)"}),
                         [("p", "time", "scudo", 1.5)])

    def test_programs_by_glibc(self):
        row = {"program": "p", **{f"{name}, {figure}": "1.000" for name in ("prudence", "tcmalloc") for figure in ("CPU", "peak", "CPU × peak")}, "rounds": "5"}
        self.assertEqual(self.lost(losses.listed, row | {"prudence, CPU": "1.500", "tcmalloc, peak": "0.500"}), [("p", "CPU", "glibc", 1.5), ("p", "peak", "tcmalloc", 2)])

    def test_adopted(self):
        row = {"subject": "s", "before": "", "after": "", "after ÷ before": "0.50 [0.40, 0.60]"}
        self.assertEqual(self.lost(losses.adopted, row | {"what": "updates ↑"}, row | {"what": "memory ↓"}, row | {"what": "its own tests"}),
                         [("s", "updates", "before", 2)])

    def test_too_few_rounds_are_no_loss(self):
        row = {"subject": "s", "ns": "10 → 30"}
        self.assertEqual([len(self.lost(losses.changes(("ns",)), row | {"rounds": rounds})) for rounds in ("2", "3", "")], [0, 1, 1])


class Page(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.docs = Path(folder.name)
        (self.docs / "results/data/bench").mkdir(parents=True)
        (self.docs / "results-losses.md").write_text("# L\n\n## The worst\n\n| table |\n|---|\n\n## After\n")
        self.put("readers", "writers,subject,mode,ns\n0,prudence,,9\n0,urcu+glibc,,3\n1,prudence,,8\n1,urcu+glibc,,4\n2,prudence,,1\n2,urcu+glibc,,4\n")

    def put(self, name, text):
        (self.docs / f"results/data/bench/{name}.csv").write_text(text)

    def test_the_worst_row_of_each_figure(self):
        self.put("recycle", 'subject,sizes,ns,"peak, MB"\nprudence,512,7,1\nurcu+glibc,512,1,1\n')
        self.assertEqual(losses.write(self.docs), (3, 2))
        lines = (self.docs / "results-losses.md").read_text().splitlines()
        self.assertEqual(lines[6:9], ["| [bench/recycle](results/data/bench/recycle.csv) | ns | 1/1 | sizes 512 | 7, 1 (urcu+glibc) | 7.00 |",
                                      "| [bench/readers](results/data/bench/readers.csv) | ns | 2/3 | writers 0 | 9, 3 (urcu+glibc) | 3.00 |", ""])
        self.assertEqual(lines[9], "## After")
        self.assertEqual(len((self.docs / "results/data/losses.csv").read_text().splitlines()), 4)
        with unittest.mock.patch.object(losses, "SHOWN", 1):
            losses.write(self.docs)
        self.assertNotIn("bench/readers", (self.docs / "results-losses.md").read_text())

    def test_a_table_that_nobody_said_how_to_read(self):
        self.put("new", "a\n1\n")
        with self.assertRaisesRegex(Refused, "new.csv: neither in TABLES nor in NOT_COMPARED"):
            losses.write(self.docs)


if __name__ == "__main__":
    unittest.main()
