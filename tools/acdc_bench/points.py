# SPDX-License-Identifier: MIT
"""A point: one subject at one place of an experiment's axis, and what was measured of it so far.

A point is repeated, each time with the next seed, until the 95 % confidence interval of each response
that its experiment is about lies within the aim, or repeats run out. `need` says how far it is from that:
half the widest interval by what is allowed, so 1 and less is within the aim.
"""

import math

from . import statistics

BEGUN_WITH = 2  # repeats: with fewer there is no interval


class Point:
    def __init__(self, experiment, subject, at, request):
        self.experiment, self.subject, self.at = experiment, subject, at
        self.precision, self.most = request.precision, request.most
        self.repeats, self.wall_seconds, self.samples, self.histograms, self.failed = [], [], None, None, None
        self.known_need = None  # of as many repeats as there are
        # A factorial design has r replications of each point, a trace is one run of one seed.
        self.fixed = bool(experiment.labels) or experiment.name == "trace"
        self.least = (1 if experiment.name == "trace" else
                      request.replications if experiment.labels else request.least)

    @property
    def key(self):
        return self.experiment.name, self.subject.name, self.at

    @property
    def next_seed(self):
        return len(self.repeats) + 1

    def add(self, responses, wall_seconds, samples=None, histograms=None):
        if self.experiment.name == "trace" and not self.repeats:
            self.samples, self.histograms = samples, histograms
        self.repeats.append(responses)
        self.wall_seconds.append(wall_seconds)
        self.known_need = None

    def values(self, name):
        """Of all repeats; None when one of them does not have it."""
        found = [repeat.get(name) for repeat in self.repeats]
        return None if None in found else found

    def need(self):
        if len(self.repeats) < BEGUN_WITH:
            return math.inf
        if self.known_need is None:
            widths = [statistics.relative_width(values) for name in self.experiment.aims
                      if (values := self.values(name))]
            self.known_need = max(widths, default=0.0) / self.precision
        return self.known_need

    def is_within_aim(self):
        return not self.failed and len(self.repeats) >= self.least and (
            self.fixed or self.need() <= 1)

    def is_open(self):
        if self.failed or self.is_within_aim():
            return False
        return len(self.repeats) < (self.least if self.fixed else max(self.least, self.most))

    def repeats_left(self):
        """A forecast: an interval shrinks with the root of the repeats."""
        done = len(self.repeats)
        if not self.is_open():
            return 0
        if self.fixed or done < max(BEGUN_WITH, self.least):
            return self.least - done
        return max(1, min(math.ceil(done * self.need() ** 2), self.most) - done)

    def as_row(self):
        row = {"experiment": self.experiment.name, "subject": self.subject.name,
               "kind": self.subject.kind, "point": self.at, "repeats": self.repeats,
               "wall_seconds": self.wall_seconds, "least": self.least, "fixed": self.fixed,
               "within_aim": self.is_within_aim(), "responses": self.summary()}
        if self.samples is not None:
            row["samples"] = self.samples
        if self.histograms is not None:
            row["histograms"] = self.histograms
        if self.failed:
            row["failed"] = self.failed
        return row

    def take_from(self, row):
        """Goes on from a row of a file. What failed then is tried again."""
        self.repeats, self.wall_seconds = row["repeats"], row["wall_seconds"]
        self.samples, self.histograms, self.known_need = row.get("samples"), row.get("histograms"), None

    def summary(self):
        """Of each response that every repeat has: mean, interval, and whether it is known well enough."""
        found = {}
        for name in self.repeats[0] if self.repeats else []:
            if values := self.values(name):
                mean, half = statistics.interval(values)
                found[name] = {"mean": mean, "half_width": half, "count": len(values),
                               "known": statistics.is_known(values, self.precision)}
        return found
