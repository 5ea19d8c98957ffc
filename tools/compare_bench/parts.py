# SPDX-License-Identifier: MIT
"""What is run of each revision, and the figures that come of it: less is better in all of them.

Each revision is measured by its own programs. What one of the two does not know (an option, a row) is
not compared.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

NOT_FIGURES = {"collection", "threads", "objects", "size", "extension", "rounds"}


class Failed(Exception):
    """A run that failed; the text says what it said."""


class Part:
    """A call of prudence-bench."""

    def __init__(self, name, arguments, keys, figures, needs=None):
        self.name = name
        self.arguments = arguments
        self.keys = keys  # what tells its rows apart
        self.figures = figures  # None: every number that is not a key
        self.needs = needs  # an option that old revisions do not have

    def figures_of(self, row):
        names = self.figures or [name for name, value in row.items()
                                 if isinstance(value, (int, float)) and name not in NOT_FIGURES]
        return {name: row[name] for name in names if row.get(name)}

    def run(self, build):
        """{(part, row, figure): value} of one run."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "results.json"
            done = subprocess.run([build / "bin/prudence-bench", *self.arguments, "--json", file],
                                  text=True, capture_output=True, check=False,
                                  env=dict(os.environ, PRUDENCE_BUILD_DIR=str(build)))
            if not file.exists():
                raise Failed(f"{self.name}: {done.stderr.strip() or done.returncode}")
            rows = json.loads(file.read_text())["rows"]
        found = {}
        for row in rows:
            label = " ".join(str(row[key]) + SUFFIXES.get(key, "") for key in self.keys
                             if row.get(key) not in (None, ""))
            found |= {(self.name, label, figure): value
                      for figure, value in self.figures_of(row).items()}
        return found


SUFFIXES = {"size": " B", "threads": "w", "readers": "r", "workers": "w", "live": " live",
            "objects": " objects"}


def parts(quick):
    seconds = "0.01" if quick else "0.05"
    sizes = "64" if quick else "64,512,4096"
    crew = "1" if quick else "1,2"
    ours = "prudence" if quick else "prudence,prudence-heap,plain+prudence"
    pair_keys = ("subject", "size", "threads", "readers", "order", "live")
    pair_figures = ("ns_per_pair_wall", "peak_rss_bytes")
    return [
        Part("pairs", ["pairs", "--seconds", seconds, "--size", sizes, "--threads", crew,
                       "--readers", "0,1", "--subject", ours],
             ("subject", "size", "threads", "readers"), pair_figures),
        Part("pairs in order", ["pairs", "--seconds", seconds, "--size", sizes, "--threads", "1",
                                "--readers", "0", "--order", "in-order,random", "--live", "1024",
                                "--subject", ours], pair_keys, pair_figures, needs="--order"),
        Part("malloc", ["malloc", "--subject", "prudence", "--repeat", "1", "--pause", "0",
                        "--scale", "0.02" if quick else "0.2",
                        *(["--program", "larson,mix"] if quick else [])],
             ("program",), ("wall_seconds", "cpu_seconds", "peak_rss_bytes")),
        # --flavour, and the key of that name: what older revisions say for --variant
        Part("rcu", ["rcu", "--flavour", "memb,qsbr", "--seconds", seconds, "--workers", "1",
                     "--readers", "0,1"],
             ("load", "variant", "flavour", "workers", "readers", "batch"), ("ns", "peak_rss_bytes")),
        Part("scm", ["scm", "--rounds", "20" if quick else "300", "--threads", crew, "--objects",
                     "100" if quick else "100,1000"],
             ("collection", "threads", "objects"), None),
    ]


def knows(build, part):
    if not part.needs:
        return True
    page = subprocess.run([build / "bin/prudence-bench", part.arguments[0], "--help"], text=True,
                          capture_output=True, check=False).stdout
    return part.needs in page
