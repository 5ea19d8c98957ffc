#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 30
"""The models on the C11 memory model: builds tests/model/c11 with cargo, and runs it.

Needs cargo, and the crates that c11/Cargo.lock names (`make setup` fetches them). Without: skipped,
or with CI in the environment a failure. PRUDENCE_MODELS=deep runs the larger sizes as well. Words
and flags are handed on (see c11/src/main.rs).
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get('PRUDENCE_BUILD_DIR', HERE.parent.parent / 'build')) / 'c11'
SKIPPED = 77
# For Debian's cargo, as in tools/setup.
ENVIRONMENT = {**os.environ, 'RUSTC_BOOTSTRAP': '1', 'CARGO_UNSTABLE_SPARSE_REGISTRY': 'true'}


def give_up(why):
    print(f'test_c11: {why}: not run', file=sys.stderr)
    return 1 if os.environ.get('CI') else SKIPPED


def main():
    if not shutil.which('cargo'):
        return give_up('there is no cargo')
    cargo = ['cargo', 'build', '--quiet', '--release', '--locked', '--target-dir', str(TARGET)]
    ready = subprocess.run(['cargo', 'fetch', '--quiet', '--locked', '--offline'], cwd=HERE / 'c11',
                           env=ENVIRONMENT, stderr=subprocess.DEVNULL).returncode == 0
    if not ready:
        return give_up('the crates of tests/model/c11/Cargo.lock are missing (see tools/setup)')
    if subprocess.run([*cargo, '--offline'], cwd=HERE / 'c11', env=ENVIRONMENT).returncode:
        return 1
    flags = ['--long'] if os.environ.get('PRUDENCE_MODELS') == 'deep' else []
    return subprocess.run([TARGET / 'release/c11', *flags, *sys.argv[1:]]).returncode


if __name__ == '__main__':
    sys.exit(main())
