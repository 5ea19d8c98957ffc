# SPDX-License-Identifier: MIT
"""A copy of the tree and the build in it, into which faults are put one at a time, and the tests that run there."""
import contextlib
import filecmp
import functools
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import mutants

ROOT = mutants.ROOT
FOLDER = ROOT / 'build/mutants'
LOGS = FOLDER / 'logs'
LIBRARIES = ['prudence', 'prudence_static', 'prudence-malloc', 'prudence-malloc-static'] # the libraries of a script's programs
PROGRAMS = {'environment_test_environment': [f'environment_{kind}' for kind in ('malloc', 'inline', 'static', 'interpose')],
            'misuse_test_calls': ['misuse_program_calls'], # those that scripts run
            'misuse_test_misuse': ['misuse_program_misuse', 'misuse_program_misuse_inline'],
            'lab_test_report_variants': ['prudence-variants'],
            'linking_test_probes': ['os_test_lock_waits'],
            'linking_test_linkers': ['machine'],
            'preload_test_nested_calls': [f'preload_program_nested{kind}' for kind in ('', '_prudence', '_static')],
            'repo_test_mix': ['prudence-mix'],
            'advise_test_calibrate': ['prudence-calibrate'],
            'lab_test_bench_latency': ['prudence-bench'],
            'lab_test_bench_pairs': ['prudence-bench', 'prudence-bench-static'],
            'lab_test_bench_steps': ['prudence-bench'],
            'preload_test_faults': ['preload_program_faults'],
            'preload_test_harmless': ['preload_program_harmless'],
            'preload_test_sandbox': ['preload_program_sandbox', 'preload_program_sandbox_static']}
OPTIONS = ('-DCMAKE_BUILD_TYPE=Release', '-DPRUDENCE_BUILD_TESTS=ON', '-DPRUDENCE_BUILD_BENCH=ON', '-DPRUDENCE_BUILD_ACDC=ON',
           '-DPRUDENCE_BUILD_ADVISE=ON')
# Seconds: a test that hangs has found the mutant, too. But a busy machine is slow, so the limit follows the time without a mutant.
LONGEST, TIMES_LONGER = 120, 10


class Copy:
    """The copy of the tree; each `suffix` has a separate one. `build` is the folder of the build, with options of CMake."""

    def __init__(self, suffix='', build='build', options=()):
        self.source, self.build = FOLDER / f'source{suffix}', FOLDER / f'{build}{suffix}'
        LOGS.mkdir(parents=True, exist_ok=True)
        self.update()
        self.configure(options)

    def forget_what_is_gone(self, names):
        """The build takes every source that it finds, so a file that was moved must not stay; nor may it be in a folder's place."""
        kept = {self.source / name for name in names if (ROOT / name).is_file() or (ROOT / name).is_symlink()}
        for path in sorted(self.source.rglob('*'), reverse=True): # files in a folder come before the folder
            if path.is_dir() and not path.is_symlink():
                if not any(path.iterdir()):
                    path.rmdir()
            elif path not in kept:
                path.unlink()

    def update(self):
        """Copies the files that git knows, or would add. An unchanged file keeps its date."""
        names = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], cwd=ROOT, check=True,
                               stdout=subprocess.PIPE, text=True).stdout.splitlines()
        self.forget_what_is_gone(names)
        for name in names:
            original, copy = ROOT / name, self.source / name
            if original.is_symlink(): # of a folder, as the crate's copy of src/ is
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.unlink(missing_ok=True)
                copy.symlink_to(original.readlink())
                continue
            if not original.is_file() or (copy.exists() and filecmp.cmp(original, copy, shallow=False)):
                continue
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(original, copy)

    def configure(self, options):
        launcher = [f'-DCMAKE_C_COMPILER_LAUNCHER={ccache}' for ccache in mutants.launcher()]
        subprocess.run(['cmake', '-S', self.source, '-B', self.build, '-G', 'Ninja', *OPTIONS, *launcher, *options],
                       check=True, stdout=subprocess.DEVNULL)

    def script_of(self, test):
        """Returns the script of a test that is written in Python, or None for a program."""
        layer, _, behaviour = test.partition('_')
        script = self.source / 'tests' / layer / f'{behaviour}.py'
        return script if script.exists() else None

    def make(self, tests):
        """Builds what these tests need, and says whether that succeeds."""
        targets = sorted({target for test in tests for target in (LIBRARIES + PROGRAMS.get(test, []) if self.script_of(test) else [test])})
        done = subprocess.run(['cmake', '--build', self.build, '--target', *targets], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            print(done.stdout)
        return done.returncode == 0

    def passes(self, test, log, longest=20 * LONGEST, deep=True):
        """Says whether the test passes. The output goes to that file of the logs. `deep`: as make test-long runs it."""
        script = self.script_of(test)
        own = {'PRUDENCE_BUILD_DIR': str(self.build)} | ({'PRUDENCE_MODELS': 'deep'} if deep else {})
        with open(LOGS / log, 'wb') as out, subprocess.Popen([sys.executable, script] if script else [self.build / 'bin' / test],
                                                             stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                                             start_new_session=True, env={**os.environ, **own}) as running:
            try:
                return running.wait(longest) == 0
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL) # with the programs that it has started
                out.write(b'\nended: it took too long\n')
                return False

    @functools.cache
    def time_without(self, test, deep):
        """Seconds that the test takes without a mutant; None: it fails."""
        if not self.make([test]):
            return None
        start = time.monotonic()
        return time.monotonic() - start if self.passes(test, f'without-{test}.log', deep=deep) else None

    @contextlib.contextmanager
    def fault(self, mutant):
        """Has the mutant in the copy."""
        target = self.source / mutant['file']
        target.write_text(mutants.mutated(mutant))
        try:
            yield
        finally:
            shutil.copyfile(ROOT / mutant['file'], target)


def log_of(mutant):
    return re.sub(r'\W+', '-', mutant['name']) + '.log'


def digest(files, first=''):
    """A name for what these files say now."""
    digested = hashlib.sha256(first.encode())
    for file in files:
        digested.update(file.read_bytes() if file.is_file() else b'')
    return digested.hexdigest()[:16]


def sources_of(test):
    layer, _, behaviour = test.removeprefix('inline_').removesuffix('_on_malloc').partition('_')
    return [*sorted((ROOT / 'tests').glob(f'**/{layer}/{behaviour}.*')), *sorted((ROOT / 'tests/torture').glob(f'{test}.c'))]


def identity(mutant):
    """Identifies a result by the fault, the source with the fault, and the test."""
    return digest([ROOT / mutant['file'], *sources_of(mutant['test'])], json.dumps(mutant, sort_keys=True))
