# SPDX-License-Identifier: MIT
"""A copy of the tree, and its build: the tree may be edited while the soak runs, and every run knows its revision."""

import filecmp
import json
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PRESETS = ("release", "asan", "tsan")
# Tests against a model that make random choices; one run takes seconds.
SEEDED = r"^(inline_)?[a-z]+_test_([a-z_]*_)?(model|random_walk)(_|$)"
# CMake's targets of all that is run.
TARGETS = rf"{SEEDED}|^(torture_|linearizable_history$|misuse_program_)"
LIBRARIES = ("prudence", "prudence-malloc")


class Failed(Exception):
    """The tree cannot be built; its text says why."""


def revision():
    """Returns the revision; a plus means that uncommitted changes are in it, too."""
    done = subprocess.run(["git", "describe", "--always", "--abbrev=10", "--dirty=+"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def copy(source):
    """Copies the files that git knows, or would add. An unchanged file keeps its date."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    for place in [place for place in source.rglob("*") if place.is_file() and "build" not in place.relative_to(source).parts]:
        if not (ROOT / place.relative_to(source)).is_file():
            place.unlink()
    for name in names:
        original, same = ROOT / name, source / name
        if original.is_file() and not (same.exists() and filecmp.cmp(original, same, shallow=False)):
            same.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(original, same)


def folder_of(source, preset):
    return source / "build" if preset == "release" else source / "build" / preset


def call(command, folder, log):
    log.write(f"$ {' '.join(map(str, command))}\n".encode())
    log.flush()
    if subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT).returncode:
        raise Failed(f"{' '.join(map(str, command[:4]))} failed: {log.name}")


def build(source, say):
    """Builds all that the plan runs. The output is in build.log next to the copy."""
    with open(source.parent / "build.log", "wb") as log:
        for preset in PRESETS:
            say(f"builds {preset}")
            folder = folder_of(source, preset)
            call(["cmake", "--preset", preset], source, log)
            listed = subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], capture_output=True, text=True).stdout
            names = {line.split(":")[0].removeprefix("bin/") for line in listed.splitlines() if line.startswith("bin/")}
            libraries = LIBRARIES if preset == "release" else ()
            call(["ninja", "-C", folder, *sorted(name for name in names if re.search(TARGETS, name)), *libraries], source, log)
        if shutil.which("clang"):
            say("builds the fuzzers")
            call(["cmake", "--preset", "fuzz"], source, log)
            call(["cmake", "--build", "--preset", "fuzz"], source, log)


def tests(source, preset):
    """CTest's, of which the program is there: name, command, environment, labels, seconds that it may take."""
    done = subprocess.run(["ctest", "--test-dir", folder_of(source, preset), "--show-only=json-v1"], capture_output=True, text=True)
    for test in json.loads(done.stdout or '{"tests": []}')["tests"]:
        properties = {one["name"]: one["value"] for one in test.get("properties", [])}
        if "command" in test:
            yield {"name": test["name"], "command": test["command"], "labels": properties.get("LABELS", []),
                   "environment": dict(entry.split("=", 1) for entry in properties.get("ENVIRONMENT", [])),
                   "folder": properties.get("WORKING_DIRECTORY")}


def share(source):
    """Debian's packages and kernels for guests, if they were fetched: the copy uses those of the tree."""
    for name in ("aarch64/apt", "aarch64/packages", "aarch64/root", "aarch64/fetched", "guests"):
        original, same = ROOT / "build" / name, source / "build" / name
        if original.exists() and not same.exists():
            same.parent.mkdir(parents=True, exist_ok=True)
            same.symlink_to(original)
