# SPDX-License-Identifier: MIT
"""Files for reading, whose names may come from others: nothing but a regular file is opened. A FIFO would be waited for, and to open a
device may do something."""

import errno
import os
import stat


def open_plain(path):
    """A binary file, or OSError."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # it has become another one
        os.close(fd)
        raise OSError(errno.EINVAL, "it is no regular file")
    return os.fdopen(fd, "rb")
