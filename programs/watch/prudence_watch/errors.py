# SPDX-License-Identifier: MIT
"""The errors with which a tool ends, and their messages."""


class WatchError(Exception):
    """Something that a user did or met; its text says all."""


class Ended(WatchError):
    """The process is no more, or runs another program."""
