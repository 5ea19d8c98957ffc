# SPDX-License-Identifier: MIT
"""Folders in which cargo finds a crate of the registry with a stand-in for its dependencies. The crate's code is not changed."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from ..command import ROOT
from ..keep import run_session
from . import plan, suites

RUST = ROOT / "rust"
SECTION = re.compile(r"^\[")
BENCHMARK, TESTS_NEED = re.compile(r"^\[\[bench"), re.compile(r"^\[dev-dependencies\.([\w-]+)\]")


class NotFetched(Exception):
    """There is no network, or no such crate."""


def digest(paths):
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def environment(build):
    return {**os.environ, "CARGO_TARGET_DIR": str(build / "crates/target"), "PRUDENCE_LIB_DIR": str(build), "LD_LIBRARY_PATH": str(build),
            "RUSTFLAGS": "--cap-lints warn", "RUST_BACKTRACE": "0"}


def identity(build):
    """Returns everything on which results depend, in addition to a crate and its version."""
    said = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    sources = [path for path in RUST.rglob("*") if path.suffix in (".rs", ".toml") and "tests" not in path.parts]
    return {"rustc": said, "sources": digest(sources), "library": digest([build / "libprudence.so"])}


def write(place, text):
    """Leaves a file that has the text already as it is, so that cargo does not compile again."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.is_file() or place.read_text() != text:
        place.write_text(text)


def make_stand_ins(work):
    for name, one in plan.STAND_INS.items():
        features = "".join(f"{feature} = []\n" for feature in one.features)
        write(work / name / "Cargo.toml", f'[package]\nname = "{name}"\nversion = "{one.version}"\nedition = "2021"\n[dependencies]\n'
              f"prudence = {{ path = {json.dumps(str(RUST / 'prudence'))} }}\n[features]\n{features}")
        write(work / name / "src/lib.rs", f"pub use prudence::{one.module}::*;\n")


def patches(*names):
    return "[patch.crates-io]\n" + "".join(f'{name} = {{ path = "../{name}" }}\n' for name in names) + "[workspace]\n"


def without(text, names):
    """A Cargo.toml without benchmarks, and without the named dependencies of tests."""
    lines, dropped = [], False
    for line in text.splitlines(keepends=True):
        if SECTION.match(line):
            needed = TESTS_NEED.match(line)
            dropped = bool(BENCHMARK.match(line) or (needed and needed[1] in names))
        if not dropped:
            lines.append(line)
    return "".join(lines)


def unpack(work, crates, env):
    """Gets the crates' code, once for each version."""
    if all((work / one.folder / ".version").is_file() and (work / one.folder / ".version").read_text() == one.version for one in crates):
        return
    folder = work / "fetch"
    needs = "".join(f'{one.name} = "={one.version}"\n' for one in crates)
    write(folder / "Cargo.toml", f'[package]\nname = "fetch"\nversion = "0.0.0"\n[dependencies]\n{needs}[workspace]\n')
    write(folder / "src/lib.rs", "")
    status, said = run_session(["cargo", "vendor", "--quiet"], env, folder, plan.BUILD_LIMIT)
    if status != 0:
        raise NotFetched(said)
    for one in crates:
        target = work / one.folder
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder / "vendor" / one.name, target)
        text = without((target / "Cargo.toml").read_text(), one.without)
        (target / "Cargo.toml").write_text(f"{text}\n{patches(one.replaced)}" if one.replaced else text)
        (target / "Cargo.lock").unlink(missing_ok=True)
        (target / ".version").write_text(one.version)


def make_adapter(work):
    """A copy of our adapter for allocator-api2, because cargo leaves a Cargo.lock."""
    source, target = RUST / "prudence-allocator-api2", work / "adapter"
    for path in (path for path in source.rglob("*") if path.is_file()):
        text = path.read_text().replace('"../prudence"', json.dumps(str(RUST / "prudence")))
        write(target / path.relative_to(source), text)
    return target


def make_suite(work, one):
    return suites.make(work, one, write)


def make_workloads(work, side):
    """The program of workloads: on the crates as they are, or with both stand-ins."""
    lines = "".join(f'{one.name} = {{ version = "={one.version}", features = {json.dumps(one.features)} }}\n'
                    for one in plan.CRATES if one.replaced)
    folder = work / f"workloads-{side}"
    write(folder / "Cargo.toml", f'[package]\nname = "workloads-{side}"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n{lines}'
          f'crossbeam-epoch = "0.9"\nprudence = {{ path = {json.dumps(str(RUST / "prudence"))} }}\n'
          + (patches(*plan.STAND_INS) if side == "after" else "[workspace]\n"))
    write(folder / "src/main.rs", (Path(__file__).parent / "main.rs").read_text())
    return folder
