#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 45
"""The library's own sources, explored: every schedule within a bound of the cases in source/*_cases.c, which
must hold (or break, where they are about the explorer itself). With PRUDENCE_MODELS=deep (make test-long) or words, also those
of the mutants in tests/mutants/mutants.toml that name a case, which must be found.

    test_source.py [-v] [--table] [WORD...]     words select cases and mutants by name; -v: the schedule
                                                that finds a mutant

PRUDENCE_MODELS=deep also explores further. Skipped where there is no gcc, whose instrumentation for
ThreadSanitizer the explorer stands behind; with CI in the environment that is a failure.
"""
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / 'tests/mutants'))
import mutants  # noqa: E402

BUILD = Path(os.environ.get('PRUDENCE_BUILD_DIR', ROOT / 'build')).resolve() / 'source-model'
SKIPPED = 77

CASES = [ROOT / f'tests/model/source/{name}_cases.c' for name in ('litmus', 'gp', 'slab', 'bias', 'structure', 'hash', 'map', 'map_values',
                                                               'hash_values', 'routes', 'lock')]
EXPLORER = [ROOT / f'tests/model/source/{name}.c' for name in ('explorer', 'tsan', 'system')]
EXPLORED = [*sorted((ROOT / 'src/core/gp/user').glob('*.c')), *sorted((ROOT / 'src/toolkit/callbacks').glob('callback_*.c')),
            *(path for path in sorted((ROOT / 'src/toolkit/domains').glob('*.c')) if path.stem != 'named'), ROOT / 'src/whole/domains.c',
            *sorted((ROOT / 'src/core/slab').rglob('*.c')),
            *(path for path in sorted((ROOT / 'src/tables').glob('*.c')) if path.stem not in ('views', 'bindings')),
            *(ROOT / f'src/core/os/posix/{name}.c'
              for name in ('bias', 'copy', 'in_flight', 'lock', 'locked', 'membarrier', 'percpu', 'rseq_area', 'race_detector', 'valid_attr')),
            ROOT / 'tests/model/source/caches.c', *CASES]
INCLUDES = ['include', 'src', 'src/core', 'src/core/os/posix', 'src/core/gp/user', 'tests/model/source']
FLAGS = ['-std=gnu11', '-O2', '-g1', '-fno-pie']
# The explorer itself is not explored, but sees the headers as the explored sources do.
PLAIN = ['-D__SANITIZE_THREAD__=1', '-U_FORTIFY_SOURCE']
INSTRUMENTED = ['-fsanitize=thread', '-Wno-tsan', '-D_GNU_SOURCE=', '-include', 'shim.h']

# caches.c has sections of its own.
WRAPPED = ['-Wl,--wrap=prudence_domain_read_lock', '-Wl,--wrap=prudence_domain_read_unlock']

WORKERS = ThreadPoolExecutor(max_workers=2)


def compiler():
    gcc = shutil.which('gcc')
    return gcc and [*mutants.launcher(), gcc]


def compile_one(source, target, flags, first=None, directory=ROOT):
    """first: a folder whose headers are used before the source's own."""
    includes = [root / name for root in (first, ROOT) if root for name in INCLUDES]
    target.parent.mkdir(parents=True, exist_ok=True)
    # The library's own warnings are its own build's.
    warnings = ['-Wall', '-Wextra', '-Werror'] if 'tests' in source.parts else ['-w']
    command = [*compiler(), *FLAGS, *warnings, *flags, *(f'-I{path}' for path in includes), '-c', str(source),
               '-o', str(target)]
    subprocess.run(command, check=True, cwd=directory)
    return target


def link(objects, program, errors=None):
    """Functions that no case calls may be missing: a function of os.h, say, that is new."""
    subprocess.run(['gcc', '-no-pie', '-Wl,--warn-unresolved-symbols', *WRAPPED, '-o', program, *objects], check=True,
                   stderr=errors)
    return program


def object_of(source, directory=BUILD / 'objects'):
    return directory / (str(source.relative_to(ROOT)).replace('/', '-') + '.o')


def build():
    jobs = [WORKERS.submit(compile_one, source, object_of(source), flags)
            for sources, flags in ((EXPLORER, PLAIN), (EXPLORED, INSTRUMENTED)) for source in sources]
    return link([job.result() for job in jobs], BUILD / 'explore')


def build_mutant(mutant):
    """For a mutant of a header, the file of the case and `also` are compiled anew, because they use the inline functions."""
    directory = BUILD / 'mutants' / re.sub(r'\W+', '-', mutant['name'])
    shutil.rmtree(directory, ignore_errors=True)
    changed = directory / mutant['file']
    changed.parent.mkdir(parents=True)
    changed.write_text(mutants.mutated(mutant))
    replaced = {ROOT / mutant['file']: changed}
    if changed.suffix == '.h':
        cases = [source for source in CASES if f'"{mutant["case"]}"' in source.read_text()]
        replaced = {source: source for source in [*(ROOT / name for name in mutant.get('also', [])), *cases]}
    objects = []
    for source in EXPLORER + EXPLORED:
        if source in replaced:
            objects.append(compile_one(replaced[source], object_of(source, directory),
                                       INSTRUMENTED, directory))
        else:
            objects.append(object_of(source))
    return link(objects, directory / 'explore', subprocess.DEVNULL)


DEEP = os.environ.get('PRUDENCE_MODELS') == 'deep'


def explore(program, case, further=DEEP):
    deep = ['deep'] if further else []
    done = subprocess.run([program, case, *deep], stdout=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()
    verdict = lines[-1] if lines else f'crashed ({done.returncode}); is a function of os.h missing in system.c?'
    return done.returncode, verdict, lines[:-1]


def in_source(program, lines):
    """The schedule, with places instead of addresses of code."""
    places = sorted({place for line in lines for place in re.findall(r'at (0x\w+)', line)})
    found = subprocess.run(['addr2line', '-s', '-e', program, *places], stdout=subprocess.PIPE, text=True)
    names = dict(zip(places, found.stdout.split('\n')))
    return [re.sub(r'at (0x\w+)', lambda m: 'at ' + names.get(m[1], m[1]), line) for line in lines]


def check_case(program, name):
    status, verdict, schedule = explore(program, name)
    breaks = name.startswith('breaks-')
    return status == (1 if breaks else 0), name, verdict, in_source(program, schedule) if status else []


def check_mutant(mutant):
    name = 'mutant: ' + mutant['name']
    try:
        program = build_mutant(mutant)
    except mutants.DoesNotApply as error:
        return False, name, str(error), []
    except subprocess.CalledProcessError:
        return False, name, 'does not compile', []
    status, verdict, schedule = explore(program, mutant['case'], further=True)
    return status == 1, name, f'{mutant["case"]}: {verdict}', in_source(program, schedule)


def tell(jobs):
    """Prints their results, and returns how many failed."""
    failed = 0
    for job in jobs:
        good, name, verdict, schedule = job.result()
        failed += not good
        if '--table' in sys.argv:
            print(f'| {name} | {verdict} |')
            continue
        if not good or '-v' in sys.argv:
            print('\n'.join(schedule))
        print('ok  ' if good else 'FAIL', f'{name}: {verdict}', flush=True)
    return failed


def main():
    words = [word for word in sys.argv[1:] if not word.startswith('-')]
    if not compiler():
        print('test_source: there is no gcc: not run', file=sys.stderr)
        return 1 if os.environ.get('CI') else SKIPPED

    def wanted(name):
        return not words or any(word in name for word in words)
    try:
        program = build()
    except subprocess.CalledProcessError:
        print('FAIL the sources do not compile')
        return 1
    names = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    cases = [WORKERS.submit(check_case, program, name) for name in names if wanted(name)]
    if tell(cases):
        print('with cases that fail, mutants prove nothing: not run')
        return 1
    faults = [WORKERS.submit(check_mutant, mutant) for mutant in mutants.load()
              if 'case' in mutant and (DEEP or words) and wanted(mutant['name'])]
    return 1 if tell(faults) or not cases + faults else 0


if __name__ == '__main__':
    sys.exit(main())
