# SPDX-License-Identifier: MIT
"""The programs of a revision, built from its own sources in a tree of its own."""

import io
import shutil
import subprocess
import tarfile


class Failed(Exception):
    """A revision that cannot be had; the text says why."""


def command(*arguments, **more):
    done = subprocess.run(arguments, text=True, capture_output=True, check=False, **more)
    if done.returncode:
        raise Failed(f"`{' '.join(map(str, arguments))}` failed:\n"
                     + (done.stdout + done.stderr).strip()[-2000:])
    return done.stdout


def commit_of(root, revision):
    """Its full name. Raises Failed: there is no such revision."""
    try:
        return command("git", "-C", root, "rev-parse", "--verify", "--quiet",
                       revision + "^{commit}").strip()
    except Failed:
        raise Failed(f"BASE: '{revision}' is not a revision of this repository") from None


def build(root, commit, folder, say):
    """The build directory of that commit below `folder`; one that is there already is used again."""
    tree = folder / commit[:12]
    build_folder = tree / "build"
    if (tree / "complete").exists():
        return build_folder
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    archive = subprocess.run(["git", "-C", root, "archive", commit], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as sources:
        sources.extractall(tree)
    say(f"building {commit[:12]} in {tree}")
    command("cmake", "--preset", "release", "-DPRUDENCE_BUILD_TESTS=OFF", cwd=tree)
    command("cmake", "--build", "--preset", "release", cwd=tree)
    (tree / "complete").touch()
    return build_folder
