#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (it goes further each time)
# ctest: cost 8
"""Whatever a process, a profile or a program's file says, the tools report the fault in one line, or show what a terminal, a CSV or
JSON reader and Prometheus can take. Mutations of real ones.

    test_fuzz.py                       some hundred of each, always the same
    test_fuzz.py fuzz SECONDS [SEED]   others for as long; an input that fails is kept in build/fuzz/findings
"""

import contextlib
import csv
import io
import itertools
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from watching import BUILD, ROOT, Watched

try:
    from prometheus_client import CollectorRegistry, exposition
    from prudence_watch import openmetrics, pprof  # noqa: F401 (pprof needs a package)
except ImportError as missing:
    if os.environ.get("CI"):
        sys.exit(f"{missing} (tools/setup installs it)")
    print(f"{missing} (Debian: python3-prometheus-client, python3-protobuf): skipped")
    sys.exit(77)

import fuzzing
from prudence_watch import bounds, commands, elf, profile, profile_file, screen, symbols, text
from prudence_watch.errors import WatchError
from prudence_watch.figures import Watch
from prudence_watch.source import Source

DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"  # make test-long
ROUNDS = {"process": 400, "profile": 500, "elf": 600} if DEEP else {"process": 60, "profile": 250, "elf": 300}
LONGEST = 20  # seconds of CPU time for one input
MEMORY = 2 << 30  # bytes of addresses


def compiled(folder, source, name, *more):
    subprocess.run(["cc", "-g", "-O1", f"-I{ROOT}/include", ROOT / "tests/watch" / source, "-o", folder / name, *more,
                    BUILD / "libprudence.so", f"-Wl,-rpath,{BUILD}", "-pthread"], check=True)
    return folder / name


class Target:
    """The fuzzing of a format. `seed` makes the mutated bytes; if `read` does not raise, its result has to hold."""

    def __init__(self, folder):
        self.folder = folder


class Process(Target):
    def __init__(self, folder):
        super().__init__(folder)
        watched = Watched(compiled(folder, "watched.c", "watched"), "background=0")
        try:
            for line in ("keep 300", "more 3", "enter", "defer 3000", "name \033\r\x9b"):
                watched.ask(line)
            self.recorded = fuzzing.record(watched.pid)
        finally:
            watched.end()

    def mutated(self, draw):
        which, (starts, found, seen) = draw.randrange(3), self.recorded
        return starts, found if which == 0 else fuzzing.damaged(draw, found), seen if which == 1 else fuzzing.damaged(draw, seen)

    @staticmethod
    def kept(given):
        return repr(given).encode()

    def read(self, given):
        with mock.patch.multiple(bounds, PER_SAMPLE=dict.fromkeys(bounds.PER_SAMPLE, 3000), SECONDS=600):
            source = Source(Watch(fuzzing.Recording(*given)))
            source.look()
            for _ in range(2):
                self.show(source.sample(), source.history, source.watch.counters)
            for command in fuzzing.COMMANDS:
                lines = source.watch.within_bounds(lambda command=command: list(command(source.watch)))
                assert all(line.isprintable() for line in commands.shown(lines))

    @staticmethod
    def show(sample, history, counters):
        line = text.json_line(sample)
        assert line.isprintable() and json.loads(line)["pid"] == sample["pid"]
        rows = [text.csv_head(), *text.csv_lines(sample)]
        assert all(row.isprintable() for row in rows) and len(list(csv.reader(io.StringIO("\n".join(rows))))) == len(rows)
        for width, height in ((80, None), (200, 30)):
            assert all(line.isprintable() for _, line in screen.lines(sample, history, screen.View(), width, height))
        registry = CollectorRegistry()
        registry.register(mock.Mock(collect=lambda: openmetrics.metrics_of(sample, counters), spec=["collect"]))
        assert all(line.isprintable() for line in exposition.generate_latest(registry).decode().split("\n"))


class Profile(Target):
    def __init__(self, folder):
        super().__init__(folder)
        path = folder / "profile"
        subprocess.run([compiled(folder, "profiled.c", "profiled", "-fno-optimize-sibling-calls"), path], check=True,
                       env=os.environ | {"PRUDENCE_OPTIONS": "profile=256K"})
        self.text = path.read_bytes()

    def mutated(self, draw):
        return fuzzing.mutated_text(draw, self.text)

    @staticmethod
    def kept(given):
        return given

    def read(self, given):
        try:
            found = profile_file.read(io.BytesIO(given))
        except profile_file.BadProfile as error:
            raise WatchError(str(error)) from error
        with mock.patch.object(symbols, "is_trusted", return_value=False):  # no processes of addr2line
            for lines in (profile.leaks(found, 20), *(view(found, name, 20) for view in (profile.top, profile.ages) for name in profile.VIEWS)):
                assert all(text.printable(line).isprintable() for line in lines)
            for convert, name in itertools.product(profile.FORMATS.values(), profile.VIEWS):
                convert(found, name)


class Program(Target):
    def __init__(self, folder):
        super().__init__(folder)
        self.data = compiled(folder, "profiled.c", "program").read_bytes()
        self.path = folder / "mutated"

    def mutated(self, draw):
        data = self.data[:draw.randrange(len(self.data))] if draw.random() < 0.1 else self.data
        return fuzzing.mutated_bytes(draw, data or b"\x7f")

    @staticmethod
    def kept(given):
        return given

    def read(self, given):
        self.path.write_bytes(given)
        left = [bounds.SYMBOLS]

        def spend(count):
            left[0] -= count
            return left[0] >= 0

        try:
            found = elf.Elf(self.path, spend)
        except (elf.BadElf, OSError) as error:
            raise WatchError(str(error)) from error
        for offset in (0, 1, 0x1139, 0x1200, 1 << 40, bounds.WORD):
            found.function_at(offset)
        assert len(found.build_id) <= 2 * elf.BUILD_ID_MOST


TARGETS = {"process": Process, "profile": Profile, "elf": Program}


@contextlib.contextmanager
def guarded():
    """Neither for long nor with much memory."""
    def too_long(*_):
        raise AssertionError(f"more than {LONGEST} s of CPU time")

    before, limits = signal.signal(signal.SIGVTALRM, too_long), resource.getrlimit(resource.RLIMIT_AS)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, limits[1]))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGVTALRM, before)


def try_one(target, given):
    """Returns whether it was refused."""
    try:
        with guarded():
            target.read(given)
    except WatchError as error:
        assert len(str(error)) < 1000 and len(text.printable(str(error)).splitlines()) <= 1, error
        return True
    return False


class Fuzz(unittest.TestCase):
    def rounds(self, name):
        with tempfile.TemporaryDirectory(prefix="prudence-fuzz-") as folder:
            target, refused = TARGETS[name](Path(folder)), 0
            for seed in range(ROUNDS[name]):
                with self.subTest(seed=seed):
                    refused += try_one(target, target.mutated(random.Random(seed)))
        # Mutations that nothing notices, or that all are refused at the first check, would test nothing.
        self.assertGreater(refused, ROUNDS[name] / 20)
        self.assertLess(refused, ROUNDS[name] * 19 / 20)

    def test_process(self):
        self.rounds("process")

    def test_profile(self):
        self.rounds("profile")

    def test_elf(self):
        self.rounds("elf")


def fuzz(seconds, seed):
    """Runs as `tools/test/fuzz` does. Returns the exit status."""
    findings, failed = BUILD / "fuzz/findings", 0
    with tempfile.TemporaryDirectory(prefix="prudence-fuzz-") as folder:
        for name, kind in TARGETS.items():
            target, end, count = kind(Path(folder)), time.monotonic() + seconds / len(TARGETS), 0
            while time.monotonic() < end:
                count += 1
                given = target.mutated(random.Random(f"{seed} {count}"))
                try:
                    try_one(target, given)
                except Exception as error:
                    findings.mkdir(parents=True, exist_ok=True)
                    kept = findings / f"tools-{name}-{seed}-{count}"
                    kept.write_bytes(target.kept(given))
                    print(f"fuzz: {name}: {type(error).__name__}: {error}: {kept}", file=sys.stderr)
                    failed += 1
            print(f"fuzz: {name}: {count} inputs, seed {seed}")
    return failed != 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["fuzz"]:
        sys.exit(fuzz(float(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else str(random.SystemRandom().getrandbits(32))))
    unittest.main()
