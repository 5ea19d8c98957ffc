# SPDX-License-Identifier: MIT
"""How a finding of the paper is judged, in Linux (kernel_evaluate) and in a process (evaluate).

A row is one load; its two sides are compared round by round: "less" or "more" if all rounds say so by more than counts as the same, "same" if
none is beyond that, otherwise "unclear". A finding about all rows holds if no row is worse than the worst exception that the paper itself
names, and some row is better; it does not hold if a row is worse than that exception in all rounds; otherwise it is undecided. Fewer than
ROUNDS rounds decide nothing. A finding is a verdict, its figures in words, and the number of rounds that each of its rows has at least."""

import statistics

NAMED = 6         # rows that a reason names, those that matter most
SAME = 0.02       # the paper's own "equally well"
ROUNDS = 3        # that a verdict needs
# The findings of Figures 7 to 11 of the paper, and the worst exception that it names.
COUNTS_OF_THE_PAPER = [
    ("Figure 7", "hits: more for all caches", 0),
    ("Figure 8", "object-cache churns: 26 to 96.5 % fewer; once 6 % more", 0.06),
    ("Figure 9", "slab churns: 3.1 to 98.3 % fewer", 0),
    ("Figure 10", "peak slabs: 2.5 to 30.6 % fewer, or the same; once 5 % more", 0.05),
    ("Figure 11", "total fragmentation: 7 to 33 % less, or the same; once 8.7 % more", 0.087),
]
HOLDS, FAILS, UNDECIDED, MISSING = "holds", "does not hold", "undecided", "not measured"


def change(theirs, ours, none=0.0):
    """Returns the change of ours against theirs, as a share; 0 if they differ by less than `none`."""
    if theirs == ours or abs(ours - theirs) < none:
        return 0.0
    return ours / theirs - 1 if theirs else float("inf")


def word_of(changes):
    words = {"same" if abs(one) <= SAME else "less" if one < 0 else "more" for one in changes}
    return words.pop() if len(words) == 1 else "unclear"


def judge(found, allowed, missing):
    """Returns a finding. `found`: (name, changes of each round) of rows, in which less is better; `allowed`: the worst exception that the paper
    names; `missing`: why there may be no rows."""
    found = list(found)
    rounds = min((len(changes) for _, changes in found), default=0)
    words, worse, maybe = {"less": 0, "same": 0, "more": 0, "unclear": 0}, [], []
    for name, changes in found:
        words[word_of(changes)] += 1
        over = [one > max(allowed, SAME) for one in changes]
        if any(over):
            (worse if all(over) else maybe).append((statistics.median(changes), name))
    if not sum(words.values()):
        return MISSING, missing, rounds
    text = ", ".join(f"{word} in {count}" for word, count in words.items() if count) + f" of {sum(words.values())} rows"
    if worse:
        return FAILS, f"{text}; worse: {listed(worse)}", rounds
    if maybe:
        return UNDECIDED, f"{text}; rounds differ: {listed(maybe)}", rounds
    return (HOLDS, text, rounds) if words["less"] else (UNDECIDED, f"{text}: nothing is less", rounds)


def listed(found):
    """(change, name) of rows, in words; of many the largest changes."""
    few = found if len(found) <= NAMED else sorted(found, key=lambda one: -one[0])[:NAMED]
    more = f", and {len(found) - len(few)} more" if len(found) > len(few) else ""
    return ", ".join(f"{name} ({percent(middle)})" for middle, name in few) + more


def all_rounds(good):
    """The verdict of a finding that each round answers by itself."""
    good = list(good)
    if not good:
        return MISSING
    return HOLDS if all(good) else UNDECIDED if any(good) else FAILS


def at_least(least, rows):
    """Judges that the factor is at least this in every row; one row that is below it in all its rounds refutes that. `rows`: factors of each round."""
    below = [[one < least for one in row] for row in rows if row]
    if not below:
        return MISSING
    return FAILS if any(map(all, below)) else UNDECIDED if any(map(any, below)) else HOLDS


def ran_out(gone, flat, growing):
    """Judges that memory runs out, from the numbers of rounds in which it did, in which it did not grow, and in which it still grew at the end. A
    round of the last kind was too short, and answers nothing."""
    if not gone + flat + growing:
        return MISSING
    return decided(all_rounds([True] * gone + [False] * flat), gone + flat) if gone + flat else UNDECIDED


def most_at(largest, times):
    """Judges that the factor is largest at this load: each round compares it with the best of the others. `times`: {load: {round: factor}}. Returns a
    verdict and the number of rounds."""
    others = [turns for load, turns in times.items() if load != largest]
    rounds = [change(max(turns[turn] for turns in others if turn in turns), most) for turn, most in times.get(largest, {}).items()
              if any(turn in turns for turns in others)]
    if not rounds:
        return MISSING, 0
    return HOLDS if min(rounds) > SAME else FAILS if max(rounds) < -SAME else UNDECIDED, len(rounds)


def decided(verdict, rounds):
    """Returns the verdict, if there are enough rounds for one."""
    return UNDECIDED if verdict in (HOLDS, FAILS) and rounds < ROUNDS else verdict


def as_cells(lines):
    """Returns a table from (place, claim of the paper, finding)."""
    return [{"subject": place, "the paper": claim, "verdict": decided(verdict, rounds), "rounds": str(rounds), "here": text}
            for place, claim, (verdict, text, rounds) in lines]


def percent(share):
    return "from none" if share == float("inf") else f"{100 * share:+.1f} %"


def quantity(value, unit):
    """12,345,678 ns -> 12.3 ms"""
    scales = {"ns": [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")], "bytes": [(1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1, "bytes")]}[unit]
    scale, name = next((one for one in scales if abs(value) >= one[0]), scales[-1])
    return f"{value / scale:.3g} {name}"


def spread(values, show, form="{} [{}, {}]"):
    """Returns the median; and the least and the most, if their texts differ."""
    texts = [show(value) for value in (statistics.median(values), min(values), max(values))]
    return texts[0] if len(set(texts)) == 1 else form.format(*texts)
