# SPDX-License-Identifier: MIT
"""The source archive that packages are made from: the files that git tracks, without debian/."""

import gzip
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def number(root=ROOT):
    """The version of CMakeLists.txt."""
    return re.search(r"^project\(prudence VERSION (\S+)", (root / "CMakeLists.txt").read_text(), re.M)[1]


def released(root=ROOT):
    """The versions that CHANGELOG.md says were released."""
    return re.findall(r"^## (\d\S*) \(", (root / "CHANGELOG.md").read_text(), re.M)


def version(root=ROOT, mark="~"):
    """The version, marked while it is not released. ~ is the mark that packages and archives have, - that of semantic versions."""
    return number(root) + ("" if number(root) in released(root) else f"{mark}dev")


def revision():
    """Returns a revision that has the committed tree, with changes of tracked files that are not committed yet."""
    stash = subprocess.run(["git", "stash", "create"], cwd=ROOT, check=True, text=True, capture_output=True).stdout.strip()
    return stash or "HEAD"


def tar_of(*paths):
    """The bytes of a tar archive of these paths, in a folder prudence-VERSION."""
    return subprocess.run(["git", "archive", f"--prefix=prudence-{version()}/", revision(), "--", *paths], cwd=ROOT, check=True,
                          stdout=subprocess.PIPE).stdout


def write_archive(path):
    path.write_bytes(gzip.compress(tar_of(".", ":!debian"), mtime=0))
    return path


def unpack(archive, folder):
    """Returns the unpacked folder."""
    subprocess.run(["tar", "-C", folder, "-xf", archive], check=True)
    return folder / f"prudence-{version()}"
