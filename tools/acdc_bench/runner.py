# SPDX-License-Identifier: MIT
"""Runs acdc once for a point, and says what goes on."""

import json
import os
import subprocess
import sys
import time

from . import experiments


class Runner:
    def __init__(self, acdc, timeout):
        self.acdc, self.timeout = acdc, timeout
        self.terminal = sys.stderr.isatty()

    def say(self, text, passing=False):
        """`passing`: shown until the next line comes, and on a terminal only."""
        if self.terminal:
            print(f"\r\033[K{text}", end="" if passing else "\n", file=sys.stderr, flush=True)
        elif not passing:
            print(f"bench-acdc: {text}", file=sys.stderr, flush=True)

    def acdc_says(self, point):
        """The JSON of one run; raises RuntimeError with the reason when there is none."""
        experiment, subject = point.experiment, point.subject
        environment = dict(os.environ)
        if options := experiment.prudence_options.get(point.at):
            environment["PRUDENCE_OPTIONS"] = ",".join(
                filter(None, [environment.get("PRUDENCE_OPTIONS"), options]))
        if subject.allocator:
            environment["LD_PRELOAD"] = str(subject.allocator.path)
        command = [self.acdc, "--quiet", "--json=-", *subject.options, *experiment.options,
                   *experiment.points[point.at], f"--seed={point.next_seed}"]
        try:
            done = subprocess.run(command, text=True, capture_output=True, env=environment,
                                  timeout=self.timeout)
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"not done after {self.timeout:g} s") from error
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise RuntimeError(said[-1] if said else f"exit {done.returncode}")
        run = json.loads(done.stdout)
        if subject.allocator and run["allocator"]["file"] != subject.allocator.path.name:
            raise RuntimeError(f'malloc came from {run["allocator"]["file"]}')
        return run

    def run(self, point):
        """Adds a repeat. A point that failed once is not tried again."""
        began = time.monotonic()
        try:
            run = self.acdc_says(point)
        except RuntimeError as failure:
            point.failed = str(failure)
            self.say(f"{point.experiment.name}: {point.subject.name} at {point.at}: {failure}")
            return
        point.add(experiments.responses(run), time.monotonic() - began, run["samples"],
                  {name: run[name] for name in ("sizes", "livenesses")})
