#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The models on the C11 memory model: builds tests/model/c11 with cargo, and runs it.

Only with PRUDENCE_MODELS=deep (make test-long) or words, because it takes a minute and reads nothing but c11/ itself; then
with the larger sizes as well. Words and flags are handed on (see c11/src/main.rs).

Needs cargo, and the crates that c11/Cargo.lock names (`make setup` fetches them). Without: skipped,
or with CI in the environment a failure.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get('PRUDENCE_BUILD_DIR', HERE.parent.parent / 'build')).resolve() / 'c11'
SKIPPED = 77
# For Debian's cargo, as in tools/setup.
ENVIRONMENT = {**os.environ, 'RUSTC_BOOTSTRAP': '1', 'CARGO_UNSTABLE_SPARSE_REGISTRY': 'true'}


def give_up(why):
    print(f'test_c11: {why}: not run', file=sys.stderr)
    return 1 if os.environ.get('CI') else SKIPPED


def main():
    deep = os.environ.get('PRUDENCE_MODELS') == 'deep'
    if not deep and not sys.argv[1:]:
        print('test_c11: make test-long runs this')
        return SKIPPED
    if not shutil.which('cargo'):
        return give_up('there is no cargo')
    cargo = ['cargo', 'build', '--quiet', '--release', '--locked', '--target-dir', str(TARGET)]
    ready = subprocess.run(['cargo', 'fetch', '--quiet', '--locked', '--offline'], cwd=HERE / 'c11',
                           env=ENVIRONMENT, stderr=subprocess.DEVNULL).returncode == 0
    if not ready:
        return give_up('the crates of tests/model/c11/Cargo.lock are missing (see tools/setup)')
    if subprocess.run([*cargo, '--offline'], cwd=HERE / 'c11', env=ENVIRONMENT).returncode:
        return 1
    flags = ['--long'] if deep else []
    return subprocess.run([TARGET / 'release/c11', *flags, *sys.argv[1:]]).returncode


if __name__ == '__main__':
    sys.exit(main())
