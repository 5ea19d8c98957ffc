# SPDX-License-Identifier: MIT
"""Decides whether our structures reach their goals, from the rows of prudence-structures.

Lookups: at least as fast as the best peer. Updates: at least twice as fast as the best peer of RCU. Memory: the least of all. Each for
each load: keys, draw, objects, threads and share of updates."""

import dataclasses
import statistics

from ..verdict import ROUNDS

OURS = {"hash": "prudence", "map": "map", "routes": "routes", "routes6": "routes6"}
LOAD = ("family", "keys", "draw", "hits", "walk", "writers", "size", "threads", "updates")
UPDATES_FACTOR = 2
REACHED, MISSED, UNDECIDED = "reached", "missed", "undecided"


def values(row, *path):
    """Returns the values of each repeat under these keys."""
    found = []
    for repeat in row["repeats"]:
        for key in path:
            repeat = repeat.get(key) if isinstance(repeat, dict) else None
        if isinstance(repeat, (int, float)):
            found.append(repeat)
    return found


def lookup_times(row):
    """Returns the time of one operation in the loop if all operations are lookups; otherwise the time of the operations that were timed alone."""
    return values(row, "ns") if row["updates"] == 0 else values(row, "lookups", "mean_ns")


def update_times(row):
    return values(row, "ns") if row["updates"] == 100 else values(row, "updates", "mean_ns")


def memory(row):
    return values(row, "peak_bytes_per_object")


@dataclasses.dataclass(frozen=True)
class Verdict:
    word: str
    ours: float
    peer: str
    theirs: float
    factor: float

    @property
    def times(self):
        """Returns the ratios to the best peer."""
        return self.theirs / self.ours

    def __str__(self):
        wanted = f" of {self.factor:g}" if self.factor != 1 else ""
        by = f" by {100 * (self.factor / self.times - 1):.0f} %" if self.word == MISSED else ""
        return f"{self.word}{by}: {self.times:.2f}{wanted} ({number(self.ours)}; {self.peer} {number(self.theirs)})"


def number(value):
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def quartiles(some):
    return statistics.quantiles(some, n=4, method="inclusive")[::2] if len(some) > 1 else (some[0], some[0])


def judge(ours, peers, factor=1):
    """`peers`: name -> values; less is better. None where there is nothing to compare. Undecided: the medians miss the goal, but the
    quartiles of the repeats overlap it; or either side has fewer than ROUNDS repeats."""
    peers = {name: some for name, some in peers.items() if some and statistics.median(some) > 0}
    if not ours or not peers or statistics.median(ours) <= 0:
        return None
    peer = min(peers, key=lambda name: statistics.median(peers[name]))
    mine, theirs = statistics.median(ours), statistics.median(peers[peer])
    if min(len(ours), len(peers[peer])) < ROUNDS:
        word = UNDECIDED
    elif mine * factor <= theirs:
        word = REACHED
    elif quartiles(ours)[0] * factor <= quartiles(peers[peer])[1]:
        word = UNDECIDED
    else:
        word = MISSED
    return Verdict(word, mine, peer, theirs, factor)


GOALS = [
    ("lookups", lookup_times, ("rcu", "lock"), 1),
    ("updates", update_times, ("rcu",), UPDATES_FACTOR),
    ("memory", memory, ("rcu", "lock"), 1),
]


def loads(rows):
    """load -> the rows that were measured with it, in order."""
    found = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in LOAD), []).append(row)
    return found


def check(rows):
    """[(load as a dictionary, {goal: Verdict or None})], where one of ours and a peer were measured."""
    checked = []
    for load, some in loads(rows).items():
        ours = next((row for row in some if row["subject"] == OURS.get(row["family"])), None)
        peers = [row for row in some if row["kind"] != "ours"]
        if not ours or not peers:
            continue
        checked.append((dict(zip(LOAD, load)), {
            goal: judge(of(ours), {row["subject"]: of(row) for row in peers if row["kind"] in kinds}, factor)
            for goal, of, kinds, factor in GOALS}))
    return checked


def summary(checked):
    """Counts, for each family and goal, the loads that reach the goal, and finds the worst that does not."""
    lines = []
    for family in dict.fromkeys(load["family"] for load, _ in checked):
        for goal, *_, factor in GOALS:
            found = [(load, verdicts[goal]) for load, verdicts in checked if load["family"] == family and verdicts[goal]]
            missed = [one for one in found if one[1].word == MISSED]
            line = {"family": family, "goal": goal, "factor": factor, "loads": len(found)}
            line |= {word: sum(verdict.word == word for _, verdict in found) for word in (REACHED, UNDECIDED, MISSED)}
            line["worst"] = min(missed, key=lambda one: one[1].times) if missed else None
            lines.append(line)
    return lines
