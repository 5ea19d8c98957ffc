# SPDX-License-Identifier: MIT
"""Runs the crates' own tests and the workloads. Finished runs are kept until the library, our crates or the compiler change."""

import argparse
import os
import re
import shutil
import subprocess
from pathlib import Path

from .. import keep
from ..command import ROOT, commit, now, processor
from . import cargo, page, plan

SKIPPED = 77
ENDED = re.compile(r"^test (\S+)(?: - .*)? \.\.\. (?:.*\b)?(ok|FAILED)$", re.M)
LAST_LINES = 40


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="crates", formatter_class=argparse.RawDescriptionHelpFormatter, description="""\
Run the own tests of the crates that rust/prudence replaces on it, then those of crates that use them, then workloads on these before and after.
Their code is not changed. Finished steps are kept in build/crates. After an interruption, call again.""",
        epilog="Without a network or cargo this is skipped (status 77), and so is --miri without a nightly compiler that has miri.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these of: " + ", ".join(one.name for one in plan.CRATES))
    parser.add_argument("--build", type=Path, metavar="DIR", help="folder of libprudence.so and of the work (build)")
    parser.add_argument("--tests-only", action="store_true", help="no workloads")
    parser.add_argument("--rounds", type=int, default=plan.ROUNDS, help=f"rounds of the workloads ({plan.ROUNDS})")
    parser.add_argument("--again", action="store_true", help="forget the results that are kept")
    parser.add_argument("--into", type=Path, metavar="DOCS", help="the folder docs, whose table and data this run replaces")
    parser.add_argument("--miri", action="store_true", help="run our own tests under miri instead, on a stand-in for the library")
    given = parser.parse_args(arguments)
    for name in given.names:
        if name not in [one.name for one in plan.CRATES]:
            parser.error(f"no crate '{name}' is known here")
    if given.rounds < 1:
        parser.error(f"--rounds {given.rounds}: at least 1 is needed")
    return given


def miri(build):
    """Replaces this process."""
    if subprocess.run(["cargo", "+nightly", "miri", "--version"], capture_output=True, check=False).returncode:
        print("crates: skipped: there is no miri (rustup component add --toolchain nightly miri rust-src)")
        return SKIPPED
    os.chdir(cargo.RUST)
    tests = [word for name in ("cache", "epoch", "hazard", "pointers", "seize", "torture_system") for word in ("--test", name)]
    os.execvpe("cargo", ["cargo", "+nightly", "miri", "test", "--offline", "--locked", *tests], {
        **os.environ, "MIRIFLAGS": "-Zmiri-strict-provenance -Zmiri-disable-isolation", "PRUDENCE_LIB_DIR": "/",
        "CARGO_TARGET_DIR": str(build / "crates/miri")})


# --------------------------------------------------------------------------------------------------------- own tests

def last_words(said):
    return "\n".join(said.splitlines()[-LAST_LINES:])


def of_tests(said):
    """Returns (names that passed, names that failed) from the output of cargo test."""
    ended = ENDED.findall(said)
    return [name for name, verdict in ended if verdict == "ok"], sorted({name for name, verdict in ended if verdict == "FAILED"})


def build_and_test(folder, arguments, env):
    """Returns (the output of the tests, None) or (None, the reason why there is none)."""
    for command, limit in ((["cargo", "test", "--no-run", *arguments], plan.BUILD_LIMIT),
                           (["cargo", "test", "--no-fail-fast", *arguments], plan.TESTS_LIMIT)):
        status, said = keep.run_session(command, env, folder, limit)
        if status is None:
            return None, f"{' '.join(command)} did not end within {limit} s:\n{last_words(said)}"
    return (said, None) if ENDED.search(said) else (None, last_words(said))


def passes_alone(folder, arguments, name, env):
    """Some tests expect that threads of theirs sleep no longer than they asked for, which a busy machine does not keep."""
    command = ["cargo", "test", *arguments, "--", "--exact", name]
    return keep.run_session(command, env, folder, plan.TESTS_LIMIT)[0] == 0


def folder_of_tests(one, work):
    if one.is_replaced:
        return cargo.make_suite(work, one)
    return work / one.name if one.replaced else cargo.make_adapter(work)


def run_tests(one, work, env):
    folder = folder_of_tests(one, work)
    if one.is_replaced:  # its collectors share the readers of a process, so concurrent tests wait for each other
        env = {**env, "RUST_TEST_THREADS": "1"}
    said, why = build_and_test(folder, one.arguments, env)
    if why is not None:
        return {"failed": why or "no test ended"}
    passed, failed = of_tests(said)
    for name in [name for name in failed if name not in one.fails]:
        if passes_alone(folder, one.arguments, name, env):
            print(f"crates: {one.name}: {name} failed with the others, and passes alone", flush=True)
            passed.append(name)
            failed.remove(name)
    ran = len(passed) + len(failed)
    if tuple(failed) != one.fails or ran < one.tests:
        return {"failed": f"{len(passed)} tests pass, of {one.tests} that should run; failed: {', '.join(failed) or 'none'}\n{last_words(said)}"}
    return {"crate": one.name, "tests": ran, "passed": len(passed)}


# ---------------------------------------------------------------------------------------------------------- workloads

def build_workloads(work, side, env):
    """The program, or None and why."""
    folder = cargo.make_workloads(work, side)
    status, said = keep.run_session(["cargo", "build", "--release"], env, folder, plan.BUILD_LIMIT)
    return (None, last_words(said)) if status != 0 else (work / f"target/release/workloads-{side}", None)


def run_workload(program, workload, env):
    status, said = keep.run_session([program, workload], env, program.parent, plan.WORKLOAD_LIMIT)
    if status != 0:
        return {"failed": f"{program.name} {workload}: status {status}\n{last_words(said)}"}
    numbers = [float(word) for word in said.splitlines()[-1].split()]  # the library may have said something before
    return dict(zip(("dropped", "made") if workload.endswith("-dropped") else ("cpu_ns", "peak_mb", "per_second"), numbers))


def workload_tasks(crates, programs, rounds, depends, env):
    """Rounds are outermost and sides innermost, so that both sides see the same machine."""
    for number in range(1, rounds + 1):
        for one in crates:
            for workload in (one.workload, f"{one.workload}-pinned", f"{one.workload}-dropped"):
                for side in plan.SIDES:
                    key = {"crate": one.name, "workload": workload, "side": side, "round": number}
                    yield keep.Task(f"{workload}-{side}-{number}", f"{workload}, {side}, round {number}", workload, {**key, **depends},
                                    lambda side=side, workload=workload, key=key: run_workload(programs[side], workload, env) | key)


# --------------------------------------------------------------------------------------------------------------- all

def machine():
    return f"{processor()}, {os.cpu_count()} CPUs"


def main(arguments, build):
    given = parse_arguments(arguments)
    build = (given.build or build).resolve()
    if given.miri:
        return miri(build)
    if not shutil.which("cargo"):
        print("crates: skipped: there is no cargo")
        return SKIPPED
    work, env = build / "crates", cargo.environment(build)
    if given.again:
        shutil.rmtree(work / "runs", ignore_errors=True)
    crates = [one for one in plan.CRATES if not given.names or one.name in given.names]
    try:
        cargo.unpack(work, [one for one in plan.CRATES], env)
    except cargo.NotFetched as error:
        print(f"crates: skipped: cargo could not fetch the crates: {error}")
        return SKIPPED
    cargo.make_stand_ins(work)
    return run_all(given, crates, work, env, cargo.identity(build))


def run_all(given, crates, work, env, depends):
    tasks = [keep.Task(one.name, f"the own tests of {one.name} {one.version}", one.name, {"version": one.version, **depends},
                       lambda one=one: run_tests(one, work, env)) for one in crates]
    tests, failed = keep.run_all("crates", tasks, work / "runs")
    runs, measured = [], [one for one in crates if one.replaced]
    if measured and not given.tests_only and not failed:
        programs = {}
        for side in plan.SIDES:
            programs[side], why = build_workloads(work, side, env)
            if why:
                print(f"crates: the workloads, {side}, are not built:\n{why}")
                return 1
        runs, failed = keep.run_all("crates", list(workload_tasks(measured, programs, given.rounds, depends, env)), work / "runs")
    document = {"program": "crates", "date": now(), "commit": commit(), "machine": machine(), "rustc": depends["rustc"],
                "rounds": given.rounds, "tests": tests, "runs": runs}
    keep.write(work / "crates.json", document, indent=1)
    print(page.text(document), end="")
    if given.into and not failed and runs and not given.names:
        page.put_into(document, given.into)
    return int(bool(failed))
