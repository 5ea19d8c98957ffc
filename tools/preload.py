# SPDX-License-Identifier: MIT
"""LD_PRELOAD. The loader splits its value at spaces and colons, so a link without them stands for a path that has one."""

import atexit
import functools
import os
import re
import shutil
import tempfile
from pathlib import Path

SPLITS = re.compile("[ :]")


def plain_base():
    """A folder for temporary ones, without a space or a colon in its path, which words of pkg-config and of LD_PRELOAD do not take."""
    for base in tempfile.gettempdir(), "/tmp", "/var/tmp":
        if not SPLITS.search(base) and os.access(base, os.W_OK | os.X_OK):
            return base
    raise OSError("neither TMPDIR, /tmp nor /var/tmp is a folder without a space or a colon that can be written: set TMPDIR")


def make_folder():
    """Makes a temporary folder whose files LD_PRELOAD can name. Every user may read it, because some programs give up root's rights."""
    folder = Path(tempfile.mkdtemp(prefix="prudence-", dir=plain_base()))
    folder.chmod(0o755)
    return folder


@functools.cache
def link_to(path):
    """In a folder of its own, because two libraries may have one name."""
    folder = make_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    link = folder / Path(path).name
    link.symlink_to(Path(path).absolute())
    return str(link)


def plain_path(path):
    """Returns the path, or a link to it if spaces and colons would split it."""
    return link_to(str(path)) if SPLITS.search(str(path)) else str(path)


def ld_preload(*libraries):
    """Returns the value for these libraries."""
    return ":".join(plain_path(one) for one in libraries)
