#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 20
"""Histories of the program's tables are linearizable: recorded by linearizable_history, checked by Porcupine (checker/main.go). Those
of broken tables are refused.

    test_linearizable.py [WORD...]       words select subjects

Needs go, and the module that checker/go.sum names (`make setup` fetches it). Without: skipped, or with CI in the
environment a failure. PRUDENCE_MODELS=deep records ten times as many.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get('PRUDENCE_BUILD_DIR', HERE.parent.parent / 'build')).resolve()
FOLDER = BUILD / 'linearizable'
HISTORIES = 30 if os.environ.get('PRUDENCE_MODELS') == 'deep' else 3
TRIES = 20  # of a broken table, until the fault shows
OPERATIONS = '2500'  # of each thread
SKIPPED = 77
# Nothing is fetched, and no other version of go is asked for.
ENVIRONMENT = {**os.environ, 'GOFLAGS': '-mod=readonly', 'GOPROXY': 'off', 'GOTOOLCHAIN': 'local'}


def give_up(why):
    print(f'test_linearizable: {why}: not run', file=sys.stderr)
    return 1 if os.environ.get('CI') else SKIPPED


def record(subject, seed):
    history = FOLDER / f'{subject}-{seed}.txt'
    with open(history, 'w') as file:
        subprocess.run([BUILD / 'bin/linearizable_history', subject, str(seed), OPERATIONS], stdout=file, check=True)
    return history


def check(histories):
    return subprocess.run([FOLDER / 'checker', *histories], stdout=subprocess.PIPE, text=True)


def is_refused(subject):
    for seed in range(TRIES):
        done = check([record(subject, seed)])
        if done.returncode == 1:
            print(done.stdout.split('\n')[0])
            return True
        if done.returncode:
            break
    return False


def is_accepted(subject):
    done = check([record(subject, seed) for seed in range(HISTORIES)])
    print(done.stdout, end='')
    return done.returncode == 0


def main():
    if not shutil.which('go'):
        return give_up('there is no go')
    FOLDER.mkdir(parents=True, exist_ok=True)
    built = subprocess.run(['go', 'build', '-o', FOLDER / 'checker', '.'], cwd=HERE / 'checker', env=ENVIRONMENT)
    if built.returncode:
        return give_up('the checker cannot be built: is the module of checker/go.sum missing (see tools/setup)?')
    listed = subprocess.run([BUILD / 'bin/linearizable_history'], stdout=subprocess.PIPE, text=True, check=True)
    subjects = [name for name in listed.stdout.split() if not sys.argv[1:] or any(word in name for word in sys.argv[1:])]
    failed = 0
    for subject in subjects:
        good = is_refused(subject) if subject.startswith('broken-') else is_accepted(subject)
        print('ok  ' if good else 'FAIL', subject, flush=True)
        failed += not good
    return 1 if failed or not subjects else 0


if __name__ == '__main__':
    sys.exit(main())
