# SPDX-License-Identifier: MIT
"""The end of a program whose reader has ended: by SIGPIPE and without a word, as the system's commands end. Python turns the signal into an
error, because programs that write to sockets must outlive it."""

import os
import signal
import sys


def end():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)


def flush():
    """Before Python flushes at the end, and complains."""
    try:
        if sys.stdout:
            sys.stdout.flush()
    except BrokenPipeError:
        end()
