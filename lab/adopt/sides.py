# SPDX-License-Identifier: MIT
"""A side of a program: its sources below build/adopt/NAME, as they are or with our patch. The build stays until the patch, the module of the
program or the library changes; after a change of the patch only dependent files are compiled again."""

import dataclasses
import fcntl
import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import debian_source
from measure import keep
from measure.command import ROOT

from .program import Failed, Missing

HERE = ROOT / "lab/adopt"
LINES = 250          # that a patch may add and remove
LAST_LINES = 30      # of a log, in a message
NOTHING_SEEN = 3     # status of prudence-latent
STEP_LIMIT = 5400    # seconds that a command may take unless it says so


def digest(*paths):
    found = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and file.suffix != ".pyc":
                found.update(str(file.relative_to(path.parent)).encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:16]


def patch_of(program):
    place = HERE / "patches" / f"{program.name}.patch"
    return place if place.is_file() else None


def changed_lines(patch):
    return sum(line[:1] in "+-" and line[:3] not in ("+++", "---") for line in patch.read_text().splitlines())


# ---------------------------------------------------------------------------------------------------------- the library

@functools.cache
def installed(build):
    """The folder below which libprudence is installed as a user would, from the release build, by one run at a time."""
    if not (build / "libprudence.so").is_file():
        raise Failed(f"{build} has no libprudence.so (make build)")
    prefix, mark = build / "adopt/prudence", build / "adopt/prudence.digest"
    current = digest(build / "libprudence.so", ROOT / "include")
    with open(build / "adopt/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.is_file() or mark.read_text() != current:
            shutil.rmtree(prefix, ignore_errors=True)
            done = subprocess.run(["cmake", "--install", build, "--prefix", prefix], capture_output=True, text=True, check=False)
            if done.returncode:
                raise Failed(f"cmake --install: {done.stderr.strip()}")
            mark.write_text(current)
    return prefix


def environment_of(build):
    prefix = installed(build)
    return os.environ | {"PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig", "LD_LIBRARY_PATH": f"{prefix}/lib"}


# ------------------------------------------------------------------------------------------------------------- sources

def missing_packages(program):
    said = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n", *program.packages], capture_output=True, text=True, check=False).stdout
    there = {line.split()[1] for line in said.splitlines() if line.startswith("installed ")}
    return [name for name in program.packages if name not in there]


def fetch(program, folder):
    """The unpacked source."""
    source = debian_source.fetch(folder / "source", program.package, program.suite, program.upstream, program.mark)
    if source is None:
        raise Missing(f"Debian's source package {program.package} cannot be fetched")
    return source


def apply(patch, source, *options):
    done = subprocess.run(["patch", "-p1", "--forward", "--batch", *options, "-i", patch], cwd=source, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{patch.name} does not apply to {source.name}:\n{done.stdout}")


def change_patch(source, patch, applied):
    """`applied` is the copy of the patch that the sources have. One that fails leaves them as they are without it."""
    if applied.is_file() and applied.read_bytes() == patch.read_bytes():
        return
    if applied.is_file():
        apply(applied, source, "--reverse")
        applied.unlink()
    apply(patch, source, "--dry-run")
    apply(patch, source)
    shutil.copyfile(patch, applied)


# --------------------------------------------------------------------------------------------------------------- a side

@dataclasses.dataclass
class Side:
    program: object
    patched: bool
    build_folder: Path   # of Prudence
    reports: Path | None = None  # folder for reports of prudence-latent, which then runs the measured program

    def __post_init__(self):
        self.folder = self.build_folder / "adopt" / self.program.name / self.name
        self.source = self.folder / "source" if self.program.package else HERE / "programs" / self.program.name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = self.folder / "log"

    @property
    def name(self):
        return "after" if self.patched else "before"

    @property
    def environment(self):
        return environment_of(self.build_folder)

    def watched(self, command):
        """Returns the measured command, run by prudence-latent if reports are wanted."""
        if not self.reports:
            return list(command)
        number = len(list(self.reports.iterdir()))
        (self.reports / f"{number}.json").touch()
        return [self.build_folder / "bin/prudence-latent", "--json", self.reports / f"{number}.json", "--", *command]

    def run(self, command, timeout=STEP_LIMIT, environment=None, folder=None):
        """Returns the output, which is also in the log. No process outlives an interruption."""
        words = [str(word) for word in command]
        status, said = keep.run_session(words, self.environment | (environment or {}), folder or self.source, timeout)
        with self.log.open("a") as log:
            log.write(f"$ {' '.join(words)}\n{said}\n")
        if status is None:
            raise Failed(f"{' '.join(words)} did not end within {timeout} s: {self.log}")
        if status:
            last = "\n".join(said.splitlines()[-LAST_LINES:])
            raise Failed(f"{' '.join(words)} ended with {status}: {self.log}\n{last}")
        return said

    def flags(self, *packages):
        """For compiler and linker: of these packages, and of libprudence on the side that has the patch."""
        wanted = [*packages, *(["prudence"] if self.patched else [])]
        return shlex.split(self.run(["pkg-config", "--cflags", "--libs", *wanted])) if wanted else []

    def tap(self, commands, timeout):
        """Returns the result of Program.tests, for {name: command} whose lines begin with "ok NUMBER" and "not ok NUMBER"."""
        passed, failed = 0, []
        for name, command in commands.items():
            try:
                said = self.run(command, timeout)
            except Failed:
                failed.append(name)
                continue
            passed += len(re.findall(r"^ok \d+", said, re.M))
            failed += [f"{name} {number}" for number in re.findall(r"^not ok (\d+)", said, re.M)]
        return {"passed": passed, "failed": failed, "skipped": 0}

    def figures(self, command, timeout):
        """The JSON that a driver prints, alone, on standard output."""
        words = [str(word) for word in self.watched(command)]
        try:
            done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=timeout, check=False)
            if done.returncode and not (self.reports and done.returncode == NOTHING_SEEN):
                raise Failed(f"{words[0]} ended with {done.returncode}: {done.stderr}")
            return json.loads(done.stdout)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{words[0]} did not end within {timeout} s") from error
        except json.JSONDecodeError as error:
            raise Failed(f"{words[0]} printed no JSON: {done.stdout!r}") from error

    def identity(self):
        """Returns everything on which the results of this side depend."""
        module = HERE / "programs" / f"{self.program.name}.py"
        more = HERE / "programs" / self.program.name
        paths = [module, HERE / "programs/driver.h", *(HERE / one for one in self.program.uses), *([more] if more.is_dir() else []), *([HERE / "patches" / self.program.shared_patch] if self.program.shared_patch else [])]
        if self.patched:
            paths += [self.build_folder / "libprudence.so", *filter(None, [patch_of(self.program)])]
        return {"side": self.name, "digest": digest(*paths)}

    def prepare(self):
        """Sources with their patches."""
        if not self.program.package:
            return
        if not (self.source / self.program.mark).is_file():
            fresh = fetch(self.program, self.folder.parent)
            shutil.rmtree(self.source, ignore_errors=True)
            subprocess.run(["cp", "-a", "--reflink=auto", fresh, self.source], check=True)
        if self.program.shared_patch:
            change_patch(self.source, HERE / "patches" / self.program.shared_patch, self.folder / "shared.patch")
        if self.patched and patch_of(self.program):
            change_patch(self.source, patch_of(self.program), self.folder / "applied.patch")

    def make(self):
        """Builds it unless it is built."""
        mark, current = self.folder / "built", self.identity()["digest"]
        if mark.is_file() and mark.read_text() == current:
            return
        mark.unlink(missing_ok=True)
        self.prepare()
        self.program.build(self)
        mark.write_text(current)
