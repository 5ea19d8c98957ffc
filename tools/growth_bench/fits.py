# SPDX-License-Identifier: MIT
"""Which curve the points of a figure lie on: flat, logarithmic or linear.

Least squares of relative errors (SciPy), since costs differ by orders of magnitude from one end to the
other. The simplest curve wins whose error is near that of the best one.
"""

import numpy
import scipy.optimize

IRREGULAR = 0.3  # mean relative error beyond which no curve is claimed
FLAT_WITHIN = 1.15  # largest by smallest: that is flat, whatever the curve
NEAR = 1.25  # a simpler curve may have an error so many times that of the best
CLOSE_ENOUGH = 0.05  # mean relative error that no curve needs to be better than

CURVES = {
    "flat": lambda x, a: a + 0 * x,
    "log": lambda x, a, b: a + b * numpy.log10(x),
    "linear": lambda x, a, b: a + b * x,
}


def fit_one(curve, xs, ys):
    """(parameters, mean relative error)"""
    count = curve.__code__.co_argcount - 1
    start = [float(ys[0])] + [0.0] * (count - 1)
    try:
        found, _ = scipy.optimize.curve_fit(curve, xs, ys, p0=start, sigma=ys)
    except RuntimeError:
        return start, float("inf")
    errors = (curve(xs, *found) - ys) / ys
    return [float(one) for one in found], float(numpy.sqrt(numpy.mean(errors ** 2)))


def fit(xs, ys):
    """{"curve", "a", "b", "error"} of two points or more."""
    xs, ys = numpy.asarray(xs, dtype=float), numpy.asarray(ys, dtype=float)
    found = {name: fit_one(curve, xs, ys) for name, curve in CURVES.items()}
    best = min(error for _, error in found.values())
    if ys.max() <= FLAT_WITHIN * ys.min() or len(xs) < 3:
        name = "flat" if ys.max() <= FLAT_WITHIN * ys.min() else "linear"
    else:
        name = next(name for name, (_, error) in found.items()
                    if error <= max(NEAR * best, CLOSE_ENOUGH))
    parameters, error = found[name]
    if error > IRREGULAR:
        name = "irregular"
    return {"curve": name, "a": parameters[0], "b": parameters[1] if len(parameters) > 1 else 0.0,
            "error": error}


def text_of(value, unit):
    """12,345,678 ns -> 12.3 ms"""
    scales = {"ns": [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")],
              "bytes": [(1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1, "bytes")]}[unit]
    scale, name = next((one for one in scales if abs(value) >= one[0]), scales[-1])
    return f"{value / scale:.3g} {name}"


def sentence(what, axis, unit, xs, ys, found):
    ends = (f"{text_of(ys[0], unit)} at {xs[0]:,} {axis}, {text_of(ys[-1], unit)} at "
            f"{xs[-1]:,}")
    if found["curve"] == "irregular":
        return f"{what} follows none of these curves: {ends}."
    if found["curve"] == "flat" or found["b"] < 0:
        return f"{what} does not grow: {ends}."
    more = text_of(found["b"], unit)
    if found["curve"] == "log":
        return f"{what} grows with the logarithm, {more} with each tenfold: {ends}."
    return f"{what} grows linearly, {more} for each: {ends}."
