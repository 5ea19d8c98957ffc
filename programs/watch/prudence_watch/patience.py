# SPDX-License-Identifier: MIT
"""Work that a process which is watched could keep from ending.

A read of another process's memory may wait for that process: its pages can come from a file system of its own
(FUSE). No signal but SIGKILL ends such a wait. So a thread does the work, and is abandoned when its
time is over. The threads are daemons: Python's end does not wait for them.
"""

import threading

from . import bounds
from .errors import WatchError

stuck = None  # the thread that was abandoned last. There is one at most, or a hostile process would get one for each sample


def within(what, work, seconds=None):
    """Returns or raises the result of work(). WatchError: it takes more than that time (bounds.SECONDS), or that before it still does."""
    global stuck
    seconds = bounds.SECONDS if seconds is None else seconds
    answer, error = [], []

    def run():
        try:
            answer.append(work())
        except BaseException as raised:  # it belongs to the thread that waits
            error.append(raised)

    if stuck and stuck.is_alive():
        raise WatchError(f"{what}: an earlier read of memory has still not ended")
    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    worker.join(seconds + 0.5)  # a budget ends what does not wait before that, with a better message
    if worker.is_alive():
        stuck = worker
        raise WatchError(f"{what}: the memory of the process could not be read within {seconds:g} s (it may serve that memory itself)")
    if error:
        raise error[0]
    return answer[0]
