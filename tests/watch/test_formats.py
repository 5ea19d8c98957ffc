#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The table of docs/reference/tools.md has each program that reads a format of ours in a test, and each format has such a program.

    test_formats.py         says whether the page has these rows
    test_formats.py page    runs the tests, and writes the table with the versions that passed
"""

import dataclasses
import os
import re
import subprocess
import sys
import unittest

from watching import ROOT
from prudence_watch import profile
from tools_page import Table, debian

FOLDER = ROOT / "tests/watch"
TABLE = Table("formats", ("format", "reader", "version", "growth (`--since`)", "test"))
YES, NONE = "yes", "–"


def go():
    return subprocess.run(["go", "version"], text=True, capture_output=True, check=True).stdout.split()[2]


def go_module(name):
    return lambda: f"{name} " + re.search(rf"(?m)^\t\S+/{re.escape(name)} (v\S+)$", (FOLDER / "readers/go.mod").read_text())[1]


def pinned(name):
    return lambda: re.search(rf'"{name}@([0-9.]+)"', (FOLDER / "test_profile.py").read_text())[1]


@dataclasses.dataclass(frozen=True)
class Reader:
    format: str
    name: str
    version: object  # a function
    growth: str
    test: str  # of test_profile.py or test_stat.py

    @property
    def file(self):
        return f"test_{self.test.split('.')[0].lower()}.py"

    def row(self, version):
        return self.format, self.name, version, self.growth, f"`{self.test.split('.')[1]}`"


READERS = (
    Reader("`pprof`", "`go tool pprof`", go, YES, "Profile.test_pprof_opens_it"),
    Reader("`pprof`", "speedscope", pinned("speedscope"), "no: it refuses figures below zero", "Profile.test_speedscope_opens_folded_stacks_and_pprof"),
    Reader("`folded`", "`flamegraph.pl`", debian("libdevel-nytprof-perl"), YES, "Profile.test_flamegraph_opens_folded_stacks"),
    Reader("`folded`", "`inferno-flamegraph`", pinned("inferno"), YES, "Profile.test_inferno_opens_folded_stacks"),
    Reader("`folded`", "speedscope", pinned("speedscope"), YES, "Profile.test_speedscope_opens_folded_stacks_and_pprof"),
    Reader("`heap`", "`google-pprof`", debian("google-perftools"), YES, "Profile.test_google_pprof_and_jeprof_open_heap_text"),
    Reader("`heap`", "`jeprof`", debian("libjemalloc-dev"), YES, "Profile.test_google_pprof_and_jeprof_open_heap_text"),
    Reader("metrics as text", "`promtool check metrics`", debian("prometheus"), NONE, "Stat.test_promtool"),
    Reader("metrics as text", "prometheus_client", debian("python3-prometheus-client"), NONE, "Stat.test_metrics"),
    Reader("metrics as text", "expfmt", go_module("prometheus/common"), NONE, "Stat.test_parser_of_go"),
    Reader("metrics as text", "node_exporter's textfile collector", debian("prometheus-node-exporter"), NONE, "Stat.test_textfile_collector_of_node_exporter"),
    Reader("OpenMetrics", "prometheus_client", debian("python3-prometheus-client"), NONE, "Stat.test_metrics"),
    Reader("OpenMetrics", "a scrape by Prometheus", debian("prometheus"), NONE, "Stat.test_a_scrape"),
    Reader("dashboard", "Grafana's own types", go_module("grafana/grafana-foundation-sdk/go"), NONE, "Stat.test_the_dashboard_is_one_of_grafanas"),
    Reader("dashboard", "Prometheus, for each query", debian("prometheus"), NONE, "Stat.test_each_query_of_the_dashboard_has_an_answer"),
)


def write_page():
    """Each test has to pass: one that is skipped says nothing of a version."""
    for file in sorted({reader.file for reader in READERS}):
        tests = sorted({reader.test for reader in READERS if reader.file == file})
        done = subprocess.run([sys.executable, FOLDER / file, *tests], text=True, capture_output=True, check=False, env=os.environ | {"PRUDENCE_MODELS": "deep"})
        if done.returncode or not re.search(r"(?m)^OK$", done.stderr):
            print(f"{file} {' '.join(tests)}: not every test passes\n{done.stderr}")
            return 1
    TABLE.write([reader.row(reader.version()) for reader in READERS])
    return 0


class Formats(unittest.TestCase):
    def test_the_page_has_each_reader(self):
        """The versions are those with which the tests passed, and another machine may have others."""
        head, *rows = TABLE.cells()
        self.assertEqual(tuple(head), TABLE.head)
        self.assertEqual([(*row[:2], *row[3:]) for row in rows], [(*cells[:2], *cells[3:]) for cells in (reader.row("") for reader in READERS)],
                         "write it anew: tests/watch/test_formats.py page")
        self.assertEqual([row for row in rows if not re.search(r"\d", row[2])], [])

    def test_each_test_is_there(self):
        for reader in READERS:
            self.assertIn(f"def {reader.test.split('.')[1]}(self)", (FOLDER / reader.file).read_text())

    def test_each_format_has_a_reader(self):
        self.assertLessEqual({f"`{name}`" for name in profile.FORMATS}, {reader.format for reader in READERS})


if __name__ == "__main__":
    if sys.argv[1:] == ["page"]:
        sys.exit(write_page())
    unittest.main()
