# SPDX-License-Identifier: MIT
"""What is measured: a memory model, over an allocator that is preloaded."""

import subprocess
from dataclasses import dataclass, field

from malloc_bench import allocators


@dataclass
class Subject:
    name: str
    kind: str               # persistent, deferred, short-term or none
    options: list = field(default_factory=list)
    allocator: allocators.Allocator = None  # None: not preloaded
    ours: bool = False

    def missing(self, acdc):
        """Why this cannot be measured, or None."""
        done = subprocess.run([acdc, *self.options, "--duration=1", "--quiet"], text=True,
                              capture_output=True, timeout=60)
        return None if done.returncode == 0 else done.stderr.strip().removeprefix("acdc: ")


def subjects(found):
    """All of them, over the allocators `found`."""
    return [
        Subject("none", "none", ["--model=none"]),
        *(Subject(f"persistent+{one.name}", "persistent", ["--model=persistent"], one,
                  one.name == "prudence") for one in found),
        Subject("deferred-prudence", "deferred", ["--model=deferred"], ours=True),
        *(Subject(f"deferred-liburcu+{one.name}", "deferred",
                  ["--model=deferred", "--reclaimer=liburcu"], one)
          for one in found if one.name != "prudence"),
        Subject("short-term-lazy", "short-term", ["--model=short-term", "--collection=lazy"],
                ours=True),
        Subject("short-term-eager", "short-term", ["--model=short-term", "--collection=eager"],
                ours=True),
    ]
