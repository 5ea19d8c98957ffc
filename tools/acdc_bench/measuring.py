# SPDX-License-Identifier: MIT
"""Which point is measured next, and until when.

Round-robin over all experiments' points, so that a slow minute strikes all alike: first until each point
has its least number of repeats; then rounds of the points that are furthest from their aim. A point that
is within its aim is not repeated, though others go on. With a budget of time, no run is begun that would
probably end after it, and what the budget leaves open is what was needed least.
"""

import time

SAVE_SECONDS = 30   # within a round
WIDE = 0.5          # a round takes the points with at least this share of the greatest need


class Measuring:
    """`run(point)` adds a repeat to a point or marks it failed; `save()` writes what there is; `say`
    is told about progress. `clock` is for tests."""

    def __init__(self, points, run, save, say, minutes=None, clock=time.monotonic):
        self.points, self.run, self.save, self.say, self.clock = points, run, save, say, clock
        self.began = self.saved = clock()
        self.budget = None if minutes is None else 60 * minutes

    # Forecasts

    def seconds_a_byte(self, experiment):
        """Of what was measured of this experiment, else of all; None: nothing was."""
        for points in ([one for one in self.points if one.experiment is experiment], self.points):
            if walls := [(sum(one.wall_seconds), one.experiment.work(one.at) * len(one.wall_seconds))
                         for one in points if one.wall_seconds]:
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
        return (f"{within} of {len(self.points)} points within their aim, "
                f"about {minutes_of(left)} left")

    def estimate(self):
        wanted, most = self.seconds_wanted(), self.seconds_at_most()
        begun = all(len(one.repeats) >= one.least for one in self.points if one.is_open())
        text = (f"about {minutes_of(wanted)} "
                + ("from here, as far as the intervals tell so far" if begun
                   else "for the least number of repeats")
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
        return sorted((one for one in waiting if needs[id(one)] >= WIDE * widest),
                      key=lambda one: -needs[id(one)])

    def run_all(self, points):
        """Whether one of them ran: those that do not fit into the budget are left out."""
        ran = False
        for point in points:
            if self.seconds_a_run(point) > self.budget_left():
                continue
            self.say(f"{point.experiment.name}: {point.subject.name} at {point.at}, "
                     f"repeat {len(point.repeats) + 1}; {self.progress()}", passing=True)
            self.run(point)
            ran = True
            if self.clock() - self.saved > SAVE_SECONDS:
                self.write()
        return ran

    def write(self):
        self.save()
        self.saved = self.clock()

    def measure(self):
        """Why it ended: nothing is left to do, or the time is up. Control-C ends it from outside."""
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
