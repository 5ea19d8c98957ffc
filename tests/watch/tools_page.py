# SPDX-License-Identifier: MIT
"""The tables of docs/reference/tools.md, which tests write and compare."""

import subprocess

from watching import ROOT

PAGE = ROOT / "docs/reference/tools.md"


class Table:
    """The table between two comments of that name."""

    def __init__(self, name, head):
        self.mark, self.head = f"<!-- {name} -->\n", head

    def cells(self):
        """[the head, each row] as the page has them"""
        head, _, *rows = ([cell.strip() for cell in row.strip("| ").split(" | ")] for row in PAGE.read_text().split(self.mark)[1].strip().splitlines())
        return [head, *rows]

    def write(self, rows):
        before, _, after = PAGE.read_text().split(self.mark)
        lines = "".join(f"| {' | '.join(cells)} |\n" for cells in (self.head, ["---"] * len(self.head), *rows))
        PAGE.write_text(self.mark.join((before, f"\n{lines}\n", after)))


def debian(package):
    """Returns a function that returns the package and its version."""
    return lambda: f"{package} " + subprocess.run(["dpkg-query", "-Wf", "${Version}", package], text=True, capture_output=True, check=True).stdout
