# SPDX-License-Identifier: MIT
"""What rounds of two revisions say about a figure.

Both revisions ran in each round, one behind the other, so a round gives one ratio (new by old), from
which a slow minute of the machine has gone. The interval is that of the median of the ratios, by
SciPy's bootstrap over the rounds.
"""

import numpy
import scipy.stats

WORSE, BETTER, SAME, UNDECIDED = "worse", "better", "same", "undecided"
RESAMPLES = 4999


def interval(ratios, confidence):
    """(median, low, high). Low and high are None for so few rounds that all of them on one side of the
    true median would be no rare thing: of n rounds that happens once in 2^(n-1) times.
    """
    median = float(numpy.median(ratios))
    if 0.5 ** (len(ratios) - 1) > 1 - confidence:
        return median, None, None
    found = scipy.stats.bootstrap((numpy.asarray(ratios),), numpy.median, n_resamples=RESAMPLES,
                                  confidence_level=confidence, method="percentile",
                                  random_state=1).confidence_interval
    return median, float(found.low), float(found.high)


def verdict(low, high, least):
    """A change counts when the whole interval lies beyond `least` (0.03: 3 %) of no change."""
    if low is None:
        return UNDECIDED
    if low > 1 + least:
        return WORSE
    if high < 1 - least:
        return BETTER
    return SAME if low >= 1 - least and high <= 1 + least else UNDECIDED


def compare(base, new, confidence, least):
    """`base`, `new`: of each round {key: value}. A row for each key that both have in all rounds."""
    rows = []
    for key in base[0]:
        if not all(key in round_ for round_ in [*base, *new]):
            continue
        ratios = [b[key] / a[key] for a, b in zip(base, new)]
        median, low, high = interval(ratios, confidence)
        part, row, figure = key
        rows.append({"part": part, "row": row, "figure": figure, "ratio": median, "low": low,
                     "high": high, "verdict": verdict(low, high, least),
                     "base": float(numpy.median([a[key] for a in base])),
                     "new": float(numpy.median([b[key] for b in new])), "ratios": ratios})
    return rows
