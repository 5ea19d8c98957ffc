# SPDX-License-Identifier: MIT
"""The jobs. A job is a program with the way to run it. Words in braces in a command or in its environment are
replaced for each run: {seed}, and {options}, a storm of options that follows from the seed."""

import dataclasses
import json
import os
import random
import re
import shutil
from pathlib import Path

from . import tree

SECONDS = 15           # of a torture, and of a fuzzer
PATIENCE = 900         # seconds more than it should take, after which a run hangs: other programs may have the machine
NATIVE, EMULATED = "x86-64" if os.uname().machine == "x86_64" else os.uname().machine, "aarch64, emulated"

# Options that no program's oracle knows of. Each value is as good as the others.
STORM = {
    "rseq": ("0", "1"), "membarrier": ("0", "1"), "reader_mode": ("auto", "fenced", "free"), "background": ("idle", "0", "1"), "preflush": ("0", "1"),
    "slice_extension": ("0", "1"), "cache_per_cpu": ("64K", "1M", "8M"), "cache_total": ("1M", "256M"), "retain": ("0", "64K", "2M"),
    "decay": ("0", "1ms", "100ms", "10s"), "huge_pages": ("0", "1"), "check": ("0", "1"), "hardened": ("0", "1"), "red_zones": ("0", "1"),
    "shuffle": ("0", "1"), "guard_large": ("0", "1"), "guard_first": ("0", "2", "16"), "guard_empty": ("0", "1"), "guard": ("0", "7", "100"),
    "quarantine": ("0", "64K", "1M"), "zero_on_free": ("0", "1"), "trace": ("0", "2", "16"), "profile": ("0", "4K", "1"), "stall_trace": ("0", "1"),
    "scm_expired": ("free", "deferred"), "page_size": ("4K", "16K", "64K"),
}
# Modes of fuzz_malloc, as in tools/test/fuzz.
FUZZERS = {"malloc": "annotate=0", "malloc-annotated": "", "malloc-checked": "annotate=0,check=1,trace=2,zero_on_free=1,guard=7,quarantine=16K",
           "malloc-lock": "annotate=0,rseq=0,membarrier=0", "options": ""}
# Guests: the kernels, and patterns of programs that share a boot.
KERNELS = ("stable", "6.12", "new", "16k")
IN_A_GUEST = (("torture_[a-d]*",), ("torture_[f-k]*",), ("torture_l*", "torture_p*", "torture_r*"), ("torture_[s-z]*", "shortterm_test_model*"))


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    command: list
    environment: dict = dataclasses.field(default_factory=dict)
    folder: str | None = None
    architecture: str = NATIVE
    expected: float = SECONDS          # seconds, until one has run
    limit: float = SECONDS + PATIENCE  # seconds after which it hangs
    share: float = 1.0                 # share of the time, compared with the others
    builds: str | None = None          # a folder that it builds in: one such job runs at a time
    once: bool = False                 # it does the same each time: once for each revision
    operations: str | None = None      # a pattern; the numbers that it finds in the output are added up
    seconds_from: str | None = None    # seconds of the run, without its start


def storm(seed):
    """Between one and eight options."""
    chance = random.Random(seed)
    names = chance.sample(sorted(STORM), chance.randint(1, 8))
    return ",".join(f"{name}={chance.choice(STORM[name])}" for name in names)


def load(place):
    """Another plan than the project's: a list of jobs in a file."""
    known = {field.name for field in dataclasses.fields(Job)}
    jobs = []
    for number, entry in enumerate(json.loads(Path(place).read_text())):
        strange = ", ".join(sorted(entry.keys() - known))
        if strange or not {"name", "command"} <= entry.keys():
            raise ValueError(f"job {number} has no name or no command" if not strange else f"job {number}: unknown: {strange}")
        jobs.append(Job(**entry))
    if len({job.name for job in jobs}) < len(jobs):
        raise ValueError("two jobs have the same name")
    return jobs


# --------------------------------------------------------------------------------------- the project's own

def seeded(test, more):
    names = test["environment"] | {"PRUDENCE_TORTURE_SEED": "{seed}", "PRUDENCE_TORTURE_SECONDS": str(SECONDS)}
    return names | more


# Seconds in each build for the patterns of malloc, which have no time.
SCALES = {"release": "0.5", "asan": "0.1", "tsan": "0.03"}


def torture_command(test, preset):
    """Its patterns of malloc take the seed as an argument, and a scale instead of a time."""
    command = list(test["command"])
    if not test["name"].startswith("torture_malloc_"):
        return command
    command[command.index("--scale") + 1] = SCALES[preset]
    return [*command, "--seed", "{seed}"]


def tortures(source, preset):
    times = {"torture_everything": 10}  # TORTURE_TIMES of its source
    for test in tree.tests(source, preset):
        if "torture" not in test["labels"] and not re.search(tree.SEEDED, test["name"]):
            continue
        seconds = SECONDS * times.get(test["name"], 1)
        counts = r"\b(?:steps|updates|allocations|operations|reads|ops)=(\d+)"
        one = {"command": torture_command(test, preset), "folder": test["folder"], "expected": seconds, "limit": 20 * seconds + PATIENCE, "operations": counts}
        yield Job(f"{preset}/{test['name']}", environment=seeded(test, {}), **one)
        if preset == "release" and "torture" in test["labels"]:
            yield Job(f"storm/{test['name']}", environment=seeded(test, {"PRUDENCE_OPTIONS": "{options}"}), **one)


def fuzzers(source):
    folder = source / "build/fuzz"
    for name, options in FUZZERS.items():
        target = name.partition("-")[0]
        if not (folder / "bin" / f"fuzz_{target}").exists():
            continue
        grown = folder / "corpus" / target
        grown.mkdir(parents=True, exist_ok=True)
        (folder / "findings").mkdir(exist_ok=True)
        dictionary = source / f"tests/fuzz/{target}.dict"
        command = [folder / f"bin/fuzz_{target}", f"-artifact_prefix={folder / 'findings' / name}-", "-timeout=120", "-rss_limit_mb=2048", "-max_len=1024",
                   "-seed={seed}", f"-max_total_time={SECONDS * 4}", "-print_final_stats=1", *([f"-dict={dictionary}"] if dictionary.exists() else []), grown,
                   source / "tests/fuzz/corpus" / target]
        yield Job(f"fuzz/{name}", [str(word) for word in command], {"PRUDENCE_OPTIONS": options, "ASAN_OPTIONS": "detect_stack_use_after_return=1",
                  "UBSAN_OPTIONS": "print_stacktrace=1"}, expected=SECONDS * 4, limit=SECONDS * 4 + PATIENCE, share=3,
                  operations=r"^stat::number_of_executed_units: (\d+)$")


def depths(source):
    """Models and the misuse matrix in depth, which do the same each time; histories, which do not."""
    environment = {"PRUDENCE_MODELS": "deep", "PRUDENCE_BUILD_DIR": str(source / "build"), "PRUDENCE_TORTURE_SEED": "{seed}", "PYTHONDONTWRITEBYTECODE": "1"}
    for script in (*sorted((source / "tests/model").glob("test_*.py")), source / "tests/misuse/test_misuse.py", source / "tests/linearizable/test_linearizable.py"):
        once = script.parent.name == "model"
        yield Job(f"deep/{script.stem}", ["/usr/bin/python3", str(script)], environment, expected=120, limit=4 * 3600, once=once)


def guests(source):
    if not all(shutil.which(name) for name in ("aarch64-linux-gnu-gcc", "qemu-system-aarch64", "cpio")):
        return
    seconds = 10
    for number, patterns in enumerate(IN_A_GUEST):
        for kernel in KERNELS:
            yield Job(f"aarch64-{kernel}/part {number + 1}", [str(source / "tools/test/aarch64"), "--kernel", kernel, *patterns],
                      {"PRUDENCE_TORTURE_SECONDS": str(seconds), "PRUDENCE_TORTURE_SEED": "{seed}", "PRUDENCE_GUEST_SECONDS": "3600"}, str(source), EMULATED,
                      expected=300, limit=7200, share=2, builds="aarch64", seconds_from=r"^(?:ok|skip|FAIL) .* (\d+) s$")


def of_the_tree(source):
    jobs = [job for preset in tree.PRESETS for job in tortures(source, preset)]
    return [*fuzzers(source), *jobs, *depths(source), *guests(source)]
