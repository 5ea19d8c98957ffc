# SPDX-License-Identifier: MIT
"""Samples of a process, one after the other, each with the changes since the one before."""

import os
import sys
import time

from .errors import WatchError
from .rates import GracePeriods, History

LOOK = 0.05  # seconds between checks of grace periods


class Source:
    def __init__(self, watch):
        self.watch, self.history, self.grace_periods = watch, History(), GracePeriods()

    def started(self):
        """Takes the first sample. Changes are seen between two samples."""
        self.sample()
        return self

    def look(self):
        """Now and then between two samples."""
        self.grace_periods.look(self.watch.grace_periods_under_way())

    def sample(self):
        sample = self.history.add(self.watch.sample())
        totals, seconds = sample["totals"], sample["interval_seconds"]
        ended = self.watch.grace_periods_ended_since()
        length = self.grace_periods.seconds(ended / seconds if seconds else 0)
        totals["grace_period_seconds"], totals["grace_period_seconds_is_bound"] = length or (None, False)
        self.grace_periods.restart()
        return sample

    def sample_after(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(max(0, min(LOOK, end - time.monotonic())))
            self.look()
        return self.sample()


def set_encoding(for_programs):
    """Sets the encoding of standard output. Programs read UTF-8. A terminal gets a '?' for a character that the terminal cannot show."""
    if not sys.stdout:
        return  # it is closed: write() says so
    if for_programs:
        sys.stdout.reconfigure(encoding="utf-8")
    else:
        sys.stdout.reconfigure(errors="replace")


def write(line):
    """A line on standard output, at once."""
    if not sys.stdout:
        raise WatchError("standard output is closed")
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for buffered output, or Python's end complains
        if isinstance(error, BrokenPipeError):
            raise
        raise WatchError(f"standard output cannot be written: {error.strerror}") from None
