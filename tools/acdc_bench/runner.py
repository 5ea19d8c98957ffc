# SPDX-License-Identifier: MIT
"""Runs of acdc. A point of an experiment is repeated, each time with another seed, until the 95 %
confidence interval of each of its responses lies within a tenth of the mean, or repeats run out."""

import json
import os
import subprocess
import sys
import time

from . import experiments, statistics


class Runner:
    def __init__(self, acdc, request):
        self.acdc, self.request = acdc, request
        self.terminal = sys.stderr.isatty()
        self.began = time.monotonic()

    def say(self, text, line=True):
        if self.terminal:
            print(f"\r\033[K{text}", end="\n" if line else "", file=sys.stderr, flush=True)
        elif line:
            print(text, file=sys.stderr, flush=True)

    def run(self, experiment, subject, point, seed):
        """The JSON of one run; raises RuntimeError with the reason when there is none."""
        environment = dict(os.environ)
        if options := experiment.prudence_options.get(point):
            environment["PRUDENCE_OPTIONS"] = ",".join(
                filter(None, [environment.get("PRUDENCE_OPTIONS"), options]))
        if subject.allocator:
            environment["LD_PRELOAD"] = str(subject.allocator.path)
        command = [self.acdc, "--quiet", "--json=-", *subject.options, *experiment.options,
                   *experiment.points[point], f"--seed={seed}"]
        try:
            done = subprocess.run(command, text=True, capture_output=True, env=environment,
                                  timeout=self.request.timeout)
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"not done after {self.request.timeout:g} s") from error
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise RuntimeError(said[-1] if said else f"exit {done.returncode}")
        run = json.loads(done.stdout)
        if subject.allocator and run["allocator"]["file"] != subject.allocator.path.name:
            raise RuntimeError(f'malloc came from {run["allocator"]["file"]}')
        return run

    def repeat(self, rows, experiment):
        """Round-robin over the subjects' points, so that a slow minute strikes all alike."""
        for turn in range(max([self.request.most] + [row["least"] for row, *_ in rows])):
            waiting = [row for row in rows if not self.is_done(row)]
            if not waiting:
                return
            for row, subject, point in waiting:
                self.say(f"{experiment.name}: repeat {turn + 1}, {subject.name} at {point} "
                         f"({time.monotonic() - self.began:.0f} s so far)", line=False)
                self.add_run(row, experiment, subject, point, seed=turn + 1)

    def add_run(self, row, experiment, subject, point, seed):
        try:
            run = self.run(experiment, subject, point, seed)
        except RuntimeError as failure:
            row["failed"] = str(failure)
            self.say(f"bench-acdc: {experiment.name}: {subject.name} at {point}: {failure}")
            return
        row["repeats"].append(experiments.responses(run))
        if seed == 1:
            row["samples"] = run["samples"] if experiment.name == "trace" else []

    def is_done(self, waiting):
        row, repeats = waiting[0], waiting[0]["repeats"]
        if "failed" in row or len(repeats) < row["least"]:
            return "failed" in row
        return row["fixed"] or all(
            statistics.is_known([repeat[name] for repeat in repeats], self.request.precision)
            for name in experiments.TO_BE_KNOWN if all(name in repeat for repeat in repeats))

    def new_row(self, experiment, subject, point):
        """A factorial design has r replications of each point, a trace is one run of one seed."""
        least = (1 if experiment.name == "trace" else
                 self.request.replications if experiment.labels else self.request.least)
        return {"experiment": experiment.name, "subject": subject.name, "kind": subject.kind,
                "point": point, "repeats": [], "least": least,
                "fixed": bool(experiment.labels) or experiment.name == "trace"}

    def measure(self, experiment, subjects):
        """All rows of an experiment. A row that failed once is not tried again."""
        rows = [(self.new_row(experiment, subject, point), subject, point)
                for point in experiment.points for subject in subjects]
        self.repeat(rows, experiment)
        for row, *_ in rows:
            row["responses"] = summarize(row, self.request.precision)
        self.say("", line=False)
        return [row for row, *_ in rows]


def summarize(row, precision):
    """Of each response that every repeat has: mean, interval, and whether it is known well enough."""
    repeats, found = row["repeats"], {}
    for name in repeats[0] if repeats else []:
        values = [repeat[name] for repeat in repeats if name in repeat]
        if len(values) == len(repeats):
            mean, half = statistics.interval(values)
            found[name] = {"mean": mean, "half_width": half, "count": len(values),
                           "known": statistics.is_known(values, precision)}
    return found
