# SPDX-License-Identifier: MIT
"""What a tool says and ends with."""


class WatchError(Exception):
    """Something that a user did or met; its text says all."""


class Ended(WatchError):
    """The process is no more, or runs another program."""
