# SPDX-License-Identifier: MIT
"""Confidence intervals, and the allocation of variation of a 2^k r factorial design: by NumPy and SciPy."""

import functools
import itertools
import math

import numpy
import scipy.linalg
import scipy.stats


@functools.cache
def student(freedom, confidence):
    return float(scipy.stats.t.ppf((1 + confidence) / 2, freedom))


def interval(values, confidence=0.95):
    """Mean and half width of its confidence interval (Student's t); None for fewer than two."""
    mean = float(numpy.mean(values))
    if len(values) < 2:
        return mean, None
    return mean, float(scipy.stats.sem(values)) * student(len(values) - 1, confidence)


def median_interval(values, confidence, resamples=4999):
    """(median, low, high), by a bootstrap. Low and high are None for so few values that all of them on one side of the true median would be no
    rare thing: of n values that happens once in 2^(n-1) times."""
    median = float(numpy.median(values))
    if 0.5 ** (len(values) - 1) > 1 - confidence:
        return median, None, None
    found = scipy.stats.bootstrap((numpy.asarray(values),), numpy.median, n_resamples=resamples, confidence_level=confidence, method="percentile",
                                  random_state=1).confidence_interval
    return median, float(found.low), float(found.high)


def relative_width(values, confidence=0.95):
    """Half of the interval by the mean; infinite when there is none."""
    mean, half = interval(values, confidence)
    if half is None or (mean == 0 and half > 0):
        return math.inf
    return half / abs(mean) if half else 0.0


def is_known(values, precision, confidence=0.95):
    """Says whether the interval is within `precision` (0.1: 10 %) of the mean."""
    return relative_width(values, confidence) <= precision


def combinations(labels):
    """The effects in the order of the sign table's columns: I, A, B, AB, C, AC, BC, ABC, ..."""
    return ["".join(label for i, label in enumerate(labels) if number >> i & 1) for number in range(2 ** len(labels))]


def levels(labels):
    """The rows of the sign table: of each label False (-) or True (+), the first label fastest."""
    return [dict(zip(labels, reversed(signs))) for signs in itertools.product((False, True), repeat=len(labels))]


def allocation_of_variation(labels, responses):
    """The share of the total variation that each effect explains, and the error's (Jain, chapter 18).

    `responses`: for each row of levels(labels) the r replications. The sign table with its columns in
    the order of combinations() is a Hadamard matrix, except for the sign of columns of odd order.
    """
    responses = numpy.asarray(responses, dtype=float)
    rows, replications = responses.shape
    means = responses.mean(axis=1)
    effects = scipy.linalg.hadamard(rows) @ means / rows
    explained = rows * replications * effects ** 2
    error = float(((responses - means[:, None]) ** 2).sum())
    total = float(explained[1:].sum()) + error
    if total == 0:
        return {name: 0.0 for name in combinations(labels)[1:]} | {"error": 0.0}
    shares = dict(zip(combinations(labels)[1:], (float(one) / total for one in explained[1:])))
    return shares | {"error": error / total}


def slope(xs, ys):
    """Returns the slope of the straight line through the logarithms: 0 is constant, 1 is proportional."""
    return float(scipy.stats.linregress(numpy.log2(xs), numpy.log2(ys)).slope)
