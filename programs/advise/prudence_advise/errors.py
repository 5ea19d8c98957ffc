# SPDX-License-Identifier: MIT
"""Computes how far the model was off where `prudence-advise check` measured it, and widens a printed interval by that.

A check is kept in the calibration (`checks`) as the load and the rates that were measured, and not as a quotient: the model of today is
asked again. So a new calibration, or a corrected model, needs no new check. A load is compared with checks of its kind only (one thread,
a CPU for each thread, or more threads than CPUs), because their errors have other causes. If this machine has no check of a kind, those of the
machine of ADR 68 are used (reference.json).
"""

import dataclasses
import functools
import json
from pathlib import Path

from . import machine as machines
from . import mechanisms

KEPT = 32  # checks, the newest
REFERENCE = Path(__file__).with_name("reference.json")
STAND_INS = {"hazard": ("rcu", "seqlock"), "buckets": ("spinlock",)}  # where a mechanism itself was not measured
NONE = (1.0, 1.0)


def kind(threads, cpus):
    if threads <= 1:
        return "one thread"
    return "a CPU for each thread" if threads <= cpus else "more threads than CPUs"


def with_check(document, load, cpus, rates, date):
    """The calibration with one more check; one of the same load is replaced. `rates`: operations a second, by name."""
    fields = dataclasses.asdict(load)
    others = [one for one in document.get("checks", []) if one["load"] != fields]
    return document | {"checks": [*others, {"date": date, "cpus": cpus, "load": fields, "rates": rates}][-KEPT:]}


def ratios_of(document, check):
    """Measured through modelled, by name."""
    on = machines.Machine(document, cpus=check["cpus"])
    try:
        load = mechanisms.Load(**check["load"])
    except TypeError as error:
        raise machines.BadCalibration(f"the calibration has a check of another version ({error}): calibrate again") from None
    return {name: rate / float(mechanisms.evaluate(mechanisms.BY_NAME[name], on, load)[0].flat[0] * load.operations * 1e9)
            for name, rate in check["rates"].items() if name in mechanisms.BY_NAME}


def ratios_of_kind(document, wanted):
    return [ratios_of(document, one) for one in document.get("checks", [])
            if kind(one["load"]["threads"], one["cpus"]) == wanted]


@functools.cache
def reference():
    return json.loads(REFERENCE.read_text())


class Errors:
    """The ratios of measured to modelled rates, by name, for each check of loads of one kind."""

    def __init__(self, document, threads, cpus):
        self.kind = kind(threads, cpus)
        self.checks = ratios_of_kind(document, self.kind)
        self.here = bool(self.checks)
        measured = document if self.here else reference()
        self.cpus = max(one["cpus"] for one in measured["checks"] if kind(one["load"]["threads"], one["cpus"]) == self.kind)
        if not self.here:
            self.checks = ratios_of_kind(reference(), self.kind)

    def ratios(self, name):
        """A list for each check: the ratio of the mechanism, or, if no check has it, of those that stand for it."""
        names = (name,) if any(name in one for one in self.checks) else STAND_INS.get(name, ())
        return [[one[each] for each in names if each in one] for one in self.checks]

    def measured_here(self, name):
        """Says whether the mechanism itself was measured, and not one that stands for it."""
        return self.here and any(name in one for one in self.checks)

    def span(self, name):
        """Returns the factors between which the true rate lies by measurement; the model itself, 1, is among them."""
        return around_one(ratio for ratios in self.ratios(name) for ratio in ratios)

    def span_between(self, first, second):
        """Returns the same for the ratio of two rates. An error that both have in one check does not count."""
        if first == second:
            return NONE
        pairs = [(one, other) for ones, others in zip(self.ratios(first), self.ratios(second)) for one in ones for other in others]
        return around_one(one / other for one, other in pairs)


def around_one(ratios):
    found = [1.0, *ratios]
    return min(found), max(found)
