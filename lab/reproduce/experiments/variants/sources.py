# SPDX-License-Identifier: MIT
"""The parts of each variant (Table 8.1), and its references when there are no callbacks (Table 8.2, by hand)."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
FOLDER = "lab/bench/variants"
# The variant's own file, and the files that it needs; the first is no other variant's.
FILES = {
    "induced": ("induced.c", ("runs.c",)), "batch": ("batch.c", ("induced.c", "runs.c")), "taskq": ("taskq.c", ("runs.c",)),
    "ring": ("ring.c", ()), "k42": ("k42.c", ()), "polling": ("polling.c", ()),
    "polling-percpu": ("polling_percpu.c", ("batches.c",)), "barrier": ("barrier.c", ("batches.c",)),
    "xrcu": ("xrcu.c", ("batches.c",)), "krcud": ("krcud.c", ("batches.c", "daemons.c")),
    "preempt": ("preempt.c", ("batches.c", "daemons.c")), "single": ("single.c", ()),
}
# Lines of the patches: for all architectures, for one.
THESIS = {"taskq": "237 / 237", "polling": "378 / 378", "xrcu": "424 / 424", "ring": "575 / 333",
          "krcud": "603 / 603", "preempt": "682 / 682", "barrier": "742 / 514"}
# Memory that a switch refers to while there are no callbacks, and the work that runs by time.
IDLE = {
    "memb": ("–", "–"), "qsbr": ("4 local, 1 global read", "–"), "urcu-memb": ("–", "–"), "urcu-mb": ("–", "–"),
    "urcu-qsbr": ("1 local, 1 global read", "–"),
    "induced": ("2 local", "–"), "batch": ("3 local", "–"), "taskq": ("2 local", "–"),
    "ring": ("1 global read", "–"), "k42": ("2 atomic local, 4 local, 1 global read", "–"),
    "polling": ("2 local, 1 global read", "–"), "polling-percpu": ("4 local, 2 global reads", "–"),
    "barrier": ("2 local, 1 global read", "each tick (1 ms): 3 local, 2 global reads"),
    "xrcu": ("2 local, 1 global read", "each 5 ticks, each place: 3 local, 2 global reads"),
    "krcud": ("1 local", "only with callbacks: each 5 ticks, all daemons"),
    "preempt": ("2 local", "only with callbacks: each 5 ticks, all daemons"),
    "single": ("1 local", "–"),
}
COMMENT = re.compile(r'/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.S)


# Sources of the folder that are of no historical variant: the frame, the loads, ours and liburcu.
OTHERS = {"variants.c", "main.c", "loads.c", "paced.c", "ours.c", "urcu_memb.c", "urcu_mb.c", "urcu_qsbr.c"}


def count(name):
    """Lines with code."""
    text = COMMENT.sub(lambda match: match[1] or "", (ROOT / FOLDER / name).read_text())
    return sum(bool(line.strip()) for line in text.splitlines())


def lines(variant):
    """Counts the lines of its own file, and those with shared files."""
    own, shared = FILES[variant]
    return count(own), count(own) + sum(count(name) for name in shared)
