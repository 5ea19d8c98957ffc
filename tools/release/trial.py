# SPDX-License-Identifier: MIT
"""The findings of a trial of packages in a root: results of tests, and files that are new or changed after the purge."""

import hashlib
import os
import re
import stat
from pathlib import Path

# Files that apt, dpkg and depmod write, whatever is installed and purged.
STATE = re.compile(r"/(var/(cache|lib/(apt|dpkg|systemd)|log|tmp)|etc/ld\.so\.cache|tmp|root|proc|dev|sys|run)(/|$)|"
                   r"/(usr/)?lib/modules/[^/]+/modules\.")


def failures(log, tests):
    """Lines that say which of autopkgtest's tests did not pass: each must be in the summary at the end of its log, as PASS."""
    summary = re.search(r"^autopkgtest \[.*summary\n(.*)", log, re.M | re.S)
    if not summary:
        return ["autopkgtest wrote no summary"]
    said = dict(re.findall(r"^(\S+) +(\S.*)", summary[1], re.M))
    return [f"test {test}: {said.get(test, 'did not run')}" for test in tests if said.get(test) != "PASS"]


def what(path):
    """Type, mode and owner of a file, and its content or where it points to."""
    status = path.lstat()
    content = ""
    if stat.S_ISREG(status.st_mode):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    elif stat.S_ISLNK(status.st_mode):
        content = os.readlink(path)
    return stat.filemode(status.st_mode), f"{status.st_uid}:{status.st_gid}", content


def files_of(root):
    """Returns {path: what()} of all files and folders that packages may leave behind or change."""
    found = {}
    for folder, folders, files in os.walk(root):
        inside = "/" + os.path.relpath(folder, root) if folder != str(root) else ""
        folders[:] = [name for name in folders if not STATE.match(f"{inside}/{name}") and name != "__pycache__"]
        for name in (*folders, *files):
            if not STATE.match(f"{inside}/{name}"):
                found[f"{inside}/{name}"] = what(Path(folder, name))
    return found


def traces(before, after):
    """Lines that say how two results of files_of() differ."""
    lines = [f"{path} remains" for path in sorted(after.keys() - before.keys())]
    lines += [f"{path} is gone" for path in sorted(before.keys() - after.keys())]
    for path in sorted(before.keys() & after.keys()):
        for name, was, now in zip(("mode", "owner", "content"), before[path], after[path]):
            if was != now:
                lines.append(f"{path} has another {name}: {was[:12]}, then {now[:12]}")
    return lines
