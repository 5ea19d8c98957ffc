# SPDX-License-Identifier: MIT
"""Numbers as a person types them. Each is a type for argparse that names refused text."""

import argparse
import math
import re

TIMES = {"": 1, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse(text, pattern, units, what):
    match = re.fullmatch(rf"([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*({pattern})", text.strip())
    try:
        number = float(match[1]) * units[match[2]]
    except (TypeError, ValueError):
        raise argparse.ArgumentTypeError(f"'{text}' is not {what}") from None
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"'{text}' is not {what}")
    return number


def count(least, most):
    what = f"a whole number from {least} to {most:g}"

    def of(text):
        number = parse(text, "|".join(SIZES), SIZES, what)
        if number != int(number) or not least <= number <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not {what}")
        return int(number)
    return of


def share(text):
    """2% or 0.02."""
    what = "a share from 0 to 100% (as 2% or 0.02)"
    number = parse(text, "%?", {"": 1.0, "%": 0.01}, what)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not {what}")
    return number


def time(least=0.0, most=1e12):
    """100, 100ns, 2us, 1ms: nanoseconds."""
    what = f"a time from {least:g} ns to {most / 1e9:g} s (as 100ns, 2us, 1ms)"

    def of(text):
        number = parse(text, "|".join(TIMES), TIMES, what)
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not {what}")
        return number
    return of


def seconds(text):
    return time(1e3, 1e10)(text if re.search("[a-z]", text) else text + "s") / 1e9
