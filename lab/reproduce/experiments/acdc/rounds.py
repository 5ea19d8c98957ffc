# SPDX-License-Identifier: MIT
"""Which point is measured next, and until when.

Round-robin over all experiments' points, so that a slow minute strikes all alike: first until each point
has its least number of repeats; then rounds of the points that are furthest from their aim. A point that
is within its aim is not repeated, though others go on. With a budget of time, no run is begun that would
probably end after it, and the least needed points remain open.

A point: one subject at one place of an experiment's axis, and its measurements so far.

A point is repeated, each time with the next seed, until the 95 % confidence interval of each response
that its experiment is about lies within the aim, or repeats run out. `need` says how far it is from that:
half the widest interval by the allowed one, so 1 and less is within the aim.
"""

import math
import time
from statistics import fmean

from measure import statistics

SAVE_SECONDS = 30   # within a round
WIDE = 0.5          # a round takes the points with at least this share of the greatest need
SETTLED = 13        # ticks after which the memory of a trace has settled
BEGUN_WITH = 2  # repeats: with fewer there is no interval


def settled_held_bytes(samples):
    """The mean after the beginning of a trace; None without a sample of it."""
    found = [sample["held_bytes"] for sample in samples if sample["time"] > SETTLED and sample["held_bytes"] is not None]
    return fmean(found) if found else None


class Point:
    def __init__(self, experiment, subject, at, request):
        self.experiment, self.subject, self.at = experiment, subject, at
        self.precision, self.most = request.precision, request.most
        self.repeats, self.wall_seconds, self.samples, self.histograms, self.failed = [], [], None, None, None
        self.known_need = None  # of as many repeats as there are
        # A factorial design has r replications of each point, a trace the least number of runs.
        self.fixed = bool(experiment.labels) or experiment.name == "trace"
        self.least = request.replications if experiment.labels else request.least

    @property
    def key(self):
        return self.experiment.name, self.subject.name, self.at

    @property
    def next_seed(self):
        return len(self.repeats) + 1

    def add(self, responses, wall_seconds, samples=None, histograms=None):
        if self.experiment.name == "trace":
            responses = {**responses, "settled_held_bytes": settled_held_bytes(samples)}
            if not self.repeats:
                self.samples, self.histograms = samples, histograms
        self.repeats.append(responses)
        self.wall_seconds.append(wall_seconds)
        self.known_need = None

    def values(self, name):
        """Returns the values of all repeats, or None when one of them has no value."""
        found = [repeat.get(name) for repeat in self.repeats]
        return None if None in found else found

    def need(self):
        if len(self.repeats) < BEGUN_WITH:
            return math.inf
        if self.known_need is None:
            widths = [statistics.relative_width(values) for name in self.experiment.aims if (values := self.values(name))]
            self.known_need = max(widths, default=0.0) / self.precision
        return self.known_need

    def is_within_aim(self):
        return not self.failed and len(self.repeats) >= self.least and (self.fixed or self.need() <= 1)

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
        """Continues from a row of a file. Failed repeats are tried again."""
        self.repeats, self.wall_seconds = row["repeats"], row["wall_seconds"]
        self.samples, self.histograms, self.known_need = row.get("samples"), row.get("histograms"), None

    def summary(self):
        """Returns, for each response that every repeat has, mean, interval, and whether the interval is narrow enough."""
        found = {}
        for name in self.repeats[0] if self.repeats else []:
            if values := self.values(name):
                mean, half = statistics.interval(values)
                found[name] = {"mean": mean, "half_width": half, "count": len(values), "known": statistics.is_known(values, self.precision)}
        return found


class Measuring:
    """`run(point)` adds a repeat to a point or marks it failed; `save()` writes all results; `progress`
    reports the progress. `clock` is for tests."""

    def __init__(self, points, run, save, progress, minutes=None, clock=time.monotonic):
        self.points, self.run, self.save, self.clock = points, run, save, clock
        self.say, self.passing = progress.say, progress.passing
        self.began = self.saved = clock()
        self.budget = None if minutes is None else 60 * minutes

    # Forecasts

    def seconds_a_byte(self, experiment):
        """Returns the mean time of a byte for this experiment, or for all when this one has no measurement, or None."""
        for points in ([one for one in self.points if one.experiment is experiment], self.points):
            if walls := [(sum(one.wall_seconds), one.experiment.work(one.at) * len(one.wall_seconds)) for one in points if one.wall_seconds]:
                return sum(wall for wall, _ in walls) / sum(work for _, work in walls)
        return None

    def seconds_a_run(self, point):
        if point.wall_seconds:
            return sum(point.wall_seconds) / len(point.wall_seconds)
        return (self.seconds_a_byte(point.experiment) or 0) * point.experiment.work(point.at)

    def seconds_wanted(self):
        return sum(one.repeats_left() * self.seconds_a_run(one) for one in self.points)

    def seconds_at_most(self):
        """If no open point reaches its aim."""
        return sum(((one.least if one.fixed else max(one.least, one.most)) - len(one.repeats))
                   * self.seconds_a_run(one) for one in self.points if one.is_open())

    def budget_left(self):
        return float("inf") if self.budget is None else self.budget - (self.clock() - self.began)

    def progress(self):
        within = sum(one.is_within_aim() for one in self.points)
        left = min(self.seconds_wanted(), max(0, self.budget_left()))
        return (f"{within} of {len(self.points)} points within their aim, about {minutes_of(left)} left")

    def estimate(self):
        wanted, most = self.seconds_wanted(), self.seconds_at_most()
        begun = all(len(one.repeats) >= one.least for one in self.points if one.is_open())
        text = (f"about {minutes_of(wanted)} "
                + ("from here, as far as the intervals show so far" if begun else "for the least number of repeats")
                + f", at most {minutes_of(most)}")
        if self.budget is not None:
            text += f"; ends after {minutes_of(self.budget)} (--minutes)"
        return text

    # Rounds

    def first_of_each(self):
        """A point of each experiment of which nothing was measured, to forecast the others by."""
        known = {one.experiment.name for one in self.points if one.wall_seconds or one.failed}
        found = {}
        for point in self.points:
            if point.experiment.name not in known:
                found.setdefault(point.experiment.name, point)
        return list(found.values())

    def next_round(self):
        waiting = [one for one in self.points if one.is_open()]
        if few := [one for one in waiting if len(one.repeats) < one.least]:
            fewest = min(len(one.repeats) for one in few)
            return [one for one in few if len(one.repeats) == fewest]
        needs = {id(one): one.need() for one in waiting}
        widest = max(needs.values(), default=0)
        return sorted((one for one in waiting if needs[id(one)] >= WIDE * widest), key=lambda one: -needs[id(one)])

    def run_all(self, points):
        """Says whether a point ran. Points that do not fit into the budget are skipped."""
        ran = False
        for point in points:
            if self.seconds_a_run(point) > self.budget_left():
                continue
            self.passing(f"{point.experiment.name}: {point.subject.name} at {point.at}, repeat {len(point.repeats) + 1}; {self.progress()}")
            self.run(point)
            ran = True
            if self.clock() - self.saved > SAVE_SECONDS:
                self.write()
        return ran

    def write(self):
        self.save()
        self.saved = self.clock()

    def measure(self):
        """Returns why it ended: no point remains, or the time is up. Control-C ends it from outside."""
        if self.run_all(self.first_of_each()):
            self.write()
        self.say(f"estimate: {self.estimate()}")
        while points := self.next_round():
            ran = self.run_all(points)
            self.write()
            if not ran:
                return "time is up"
            self.say(self.progress())
        return "finished"


def minutes_of(seconds):
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
