# SPDX-License-Identifier: MIT
# ctest: long (torture tests do the same on our own calls)
# ctest: processors 2
"""stress-ng: the memory stressors, which verify written data; with threads, forks and small limits."""

import re

from support import Failed, Program

STRESSORS = {
    "malloc": ("--malloc", 4, "--malloc-bytes", "64m", "--malloc-max", 20000),
    "malloc with threads": ("--malloc", 1, "--malloc-pthreads", 4, "--malloc-bytes", "64m"),
    "malloc touched": ("--malloc", 2, "--malloc-touch", "--malloc-thresh", "64k",
                                   "--malloc-bytes", "64m"),
    "brk and mremap": ("--brk", 1, "--brk-notouch", "--mremap", 1, "--mremap-bytes", "16m"),
    "fork, clone and vfork": ("--fork", 1, "--clone", 1, "--clone-max", 16, "--vfork", 1),
    "threads": ("--pthread", 2, "--pthread-max", 64),
    "searches and sorts": ("--qsort", 1, "--qsort-size", 20000, "--hsearch", 1, "--tsearch", 1,
                           "--tsearch-size", 20000, "--tree", 1, "--tree-size", 20000),
}


class StressNg(Program):
    packages = ("stress-ng",)
    wanted = ("stress-ng",)
    least = 100  # its workers leave by _exit: seen mapped, not counted

    def test_stressors(self):
        for what in STRESSORS.values():
            done = self.run_program("stress-ng", *what, "--verify", "--timeout", f"{self.pick(1, 20)}s",
                                    "--temp-path", self.data, "--metrics-brief", watch=True)
            counts = re.findall(r"metrc: \[\d+\] +([a-z]+) +(\d+) ", done.stdout + done.stderr)
            if not counts or any(int(count) == 0 for _, count in counts):
                raise Failed(f"stress-ng has done nothing: {counts}")
        self.note(", ".join(STRESSORS))
