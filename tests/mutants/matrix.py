# SPDX-License-Identifier: MIT
"""The kill matrix: each mutant of a C source against the programs whose runs reach that line, and against the test that it names.

A build with gcov says which lines each program reaches. Each mutant is a row of matrix.csv, which is added when all tests have
run. A row is done again when the mutant, the source or the test that it names has changed."""
import csv
import difflib
import functools
import itertools
import json
import re
import subprocess
import time
from collections import Counter, defaultdict
from pathlib import Path

import mutants
import trial

TABLE = mutants.ROOT / 'tests/mutants/matrix.csv'
COLUMNS = ('mutant', 'file', 'identity', 'reached', 'tried', 'killed_by')
REACHED = trial.FOLDER / 'reached'
SHORTEST = 10 # seconds that a run may take in any case
HUNG = 5      # after so many tests that hang, the other tests of a mutant are left out
OF_KERNEL = 'kernel' # a folder whose code no program of the tests has


# ------------------------------------------------------------------------------------ the rows

def read(table, chosen):
    """{name: row} of these mutants that are as they were when the row was made."""
    if not table.exists():
        return {}
    current = {mutant['name']: trial.identity(mutant) for mutant in chosen}
    with table.open(encoding='utf-8', newline='') as file:
        return {row['mutant']: row for row in csv.DictReader(file) if current.get(row['mutant']) == row['identity']}


def write(table, rows):
    with table.open('w', encoding='utf-8', newline='') as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator='\n')
        writer.writeheader()
        writer.writerows(rows)


def of_c():
    """The mutants of C sources that a test finds."""
    return [mutant for mutant in mutants.load() if 'test' in mutant and mutant['file'].endswith(('.c', '.h'))]


def layer_of(file):
    """The source's folder, without src/."""
    return Path(file).parent.as_posix().removeprefix('src/')


def by_turns(chosen):
    """Takes one mutant of each layer, then the next of each, so that every part of the order is a sample of all layers."""
    layers = defaultdict(list)
    for mutant in sorted(chosen, key=lambda mutant: trial.digest([], mutant['name'])):
        layers[layer_of(mutant['file'])].append(mutant)
    return [mutant for turn in itertools.zip_longest(*layers.values()) for mutant in turn if mutant]


# ------------------------------------------------------------------------ lines that tests reach

def lines_of(notes, folders):
    """{file: lines that have run} from gcov's JSON. Names are relative to one of the folders."""
    reached = defaultdict(set)
    for note in notes.splitlines():
        for file in json.loads(note)['files']:
            name = file['file']
            for folder in folders:
                name = name.removeprefix(f'{folder}/')
            reached[name].update(line['line_number'] for line in file['lines'] if line['count'])
    return {name: sorted(lines) for name, lines in reached.items() if lines and not name.startswith('/')}


def collect(folder, folders):
    """Lines that have run since the last call in the programs of this build."""
    counts = sorted(folder.rglob('*.gcda'))
    done = subprocess.run(['gcov', '--json-format', '--stdout', *counts], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) if counts else None
    for file in counts:
        file.unlink()
    return lines_of(done.stdout, folders) if done else {}


def with_counts(copy):
    """The build whose programs count the lines that they reach."""
    dump = trial.FOLDER / 'dump.o'
    subprocess.run(['cc', '-c', '-O1', '-fPIC', copy.source / 'tests/mutants/dump.c', '-o', dump], check=True)
    link = f'--coverage -Wl,--wrap=abort,--wrap=_exit {dump}'
    return trial.Copy(build='build-counts', options=('-DCMAKE_C_FLAGS=--coverage -fprofile-update=atomic',
                                                     f'-DCMAKE_EXE_LINKER_FLAGS={link}', f'-DCMAKE_SHARED_LINKER_FLAGS={link}'))


def programs_of(copy):
    """The tests that are a program of their name. Says so before they are built."""
    tests = subprocess.run(['ctest', '--test-dir', copy.build, '--show-only=json-v1'], check=True, stdout=subprocess.PIPE).stdout
    targets = subprocess.run(['ninja', '-C', copy.build, '-t', 'targets', 'all'], check=True, stdout=subprocess.PIPE, text=True).stdout
    return sorted({test['name'] for test in json.loads(tests)['tests']} & set(re.findall(r'^bin/(\w+):', targets, re.M)))


@functools.cache
def folder_of_results():
    """They are of these sources."""
    return REACHED / trial.digest(sorted(path for top in ('include', 'preload', 'src') for path in (mutants.ROOT / top).rglob('*.[ch]')))


def file_of(test):
    """Where the test's result is kept, which is of this text of the test."""
    return folder_of_results() / f'{test}-{trial.digest(trial.sources_of(test))}.json'


def measure(copy, counted, test, longest):
    """{'seconds': of the test, 'lines': {file: lines}, 'longest'}; seconds are None if it fails, or takes longer than that."""
    began = time.monotonic()
    passed = copy.passes(test, f'without-{test}.log', longest, deep=False)
    seconds = time.monotonic() - began
    if not passed:
        return {'seconds': None, 'lines': {}, 'longest': longest}
    counted.passes(test, f'reached-{test}.log', trial.TIMES_LONGER * longest, deep=False) # counting may make it fail
    return {'seconds': seconds, 'lines': collect(counted.build, (counted.source, '.')), 'longest': longest}


def measured(file, longest):
    """An earlier result of measure(), or None if there is none that says whether the test takes longer."""
    result = json.loads(file.read_text()) if file.exists() else None
    return result if result and (result['seconds'] is not None or result['longest'] >= longest) else None


def reached_by_all(copy, longest):
    """{test: result of measure()} of the tests that take no longer, from earlier runs if neither the sources nor the test have changed."""
    files = {test: file_of(test) for test in programs_of(copy)}
    missing = [test for test, file in files.items() if not measured(file, longest)]
    if missing:
        counted = with_counts(copy)
        if not (copy.make(missing) and counted.make(missing)):
            raise SystemExit('the tests cannot be built')
        collect(counted.build, ())
        for number, test in enumerate(missing, 1):
            files[test].parent.mkdir(parents=True, exist_ok=True)
            files[test].write_text(json.dumps(measure(copy, counted, test, longest)))
            print(f'{number}/{len(missing)} {test}', flush=True)
    results = {test: measured(file, longest) for test, file in files.items()}
    return {test: result for test, result in results.items() if result['seconds'] is not None and result['seconds'] <= longest}


def places(mutant):
    """The lines of the fault, then those of the function."""
    text = (mutants.ROOT / mutant['file']).read_text()
    edits = difflib.SequenceMatcher(None, text.splitlines(), mutants.mutated(mutant).splitlines(), autojunk=False).get_opcodes()
    yield {line for kind, first, end, _, _ in edits if kind != 'equal' for line in range(first + 1, max(end, first + 1) + 1)}
    if 'function' in mutant:
        first, last = mutants.body_of(text, mutant['function'])
        yield set(range(text.count('\n', 0, first) + 1, text.count('\n', 0, last) + 2))


def reaching(mutant, reached):
    """The tests that reach the fault. A line may be without code. Then these are the tests that reach the function, or else the file."""
    of_file = {test: set(one['lines'][mutant['file']]) for test, one in reached.items() if mutant['file'] in one['lines']}
    for lines in places(mutant):
        if found := [test for test, there in of_file.items() if there & lines]:
            return sorted(found)
    return sorted(of_file)


# ---------------------------------------------------------------------------------- the mutants

def kills(copy, test, log, longest):
    """(whether the test fails twice, whether it hangs). On a busy machine a test may fail once without a fault."""
    for _ in range(2):
        began = time.monotonic()
        if copy.passes(test, log, longest, deep=False):
            return False, False
        if time.monotonic() - began >= longest:
            return True, True
    return True, False


def try_all(copy, mutant, seconds):
    """The mutant's row; `seconds` of each test without the mutant, in the order in which they are tried."""
    killers, hung, tried = [], 0, 0
    for test, without in seconds.items():
        if hung == HUNG:
            break
        killed, hangs = kills(copy, test, trial.log_of(mutant), SHORTEST + trial.TIMES_LONGER * without)
        killers += [test] if killed else []
        hung += hangs
        tried += 1
    return {'mutant': mutant['name'], 'file': mutant['file'], 'identity': trial.identity(mutant), 'reached': len(seconds),
            'tried': tried, 'killed_by': ' '.join(sorted(killers))}


def run(chosen, longest, minutes, table=TABLE):
    """Adds the rows that are missing, until that many minutes are over."""
    everything = of_c()
    rows = read(table, everything)
    write(table, [rows[mutant['name']] for mutant in everything if mutant['name'] in rows])
    left = [mutant for mutant in by_turns(everything) if mutant['name'] not in rows and mutant in chosen]
    end = time.monotonic() + 60 * minutes
    copy = trial.Copy() if left else None
    reached = reached_by_all(copy, longest) if left else {}
    failed = 0
    for done, mutant in enumerate(left):
        if time.monotonic() > end:
            print(f'{len(left) - done} mutants are left for the next run')
            break
        seconds = {mutant['test']: reached.get(mutant['test'], {}).get('seconds') or copy.time_without(mutant['test'], False)}
        seconds |= {test: reached[test]['seconds'] for test in reaching(mutant, reached)}
        seconds = {test: without for test, without in seconds.items() if without is not None}
        with copy.fault(mutant):
            if not copy.make(seconds):
                print(f'FAIL {mutant["name"]}: does not compile', flush=True)
                failed += 1
                continue
            row = try_all(copy, mutant, seconds)
        with table.open('a', encoding='utf-8', newline='') as file:
            csv.DictWriter(file, COLUMNS, lineterminator='\n').writerow(row)
        print(f'{row["mutant"]}: {len(row["killed_by"].split())} of {row["tried"]} tests fail', flush=True)
    return 1 if failed else 0


# ----------------------------------------------------------------------------------- the report

def alone(rows):
    """{test: number of mutants that only this test kills}; of the tests that kill one."""
    killers = [row['killed_by'].split() for row in rows]
    unique = Counter(names[0] for names in killers if len(names) == 1)
    return {test: unique[test] for test in {test for names in killers for test in names}}


def sources(root):
    return [path.relative_to(root).as_posix() for path in sorted((root / 'src').rglob('*.[ch]')) if OF_KERNEL not in path.parts]


def densities(root, all_mutants, code_of):
    """(layer, lines of code, mutants) of each layer of src; code_of counts the lines of a text."""
    code, count = Counter(), Counter(layer_of(mutant['file']) for mutant in all_mutants)
    for name in sources(root):
        code[layer_of(name)] += code_of((root / name).read_text())
    return [(layer, code[layer], count[layer]) for layer in sorted(code)]


def report(code_of, table=TABLE):
    everything, chosen = mutants.load(), of_c()
    rows = list(read(table, chosen).values())
    tried = {path.stem.rpartition('-')[0] for path in folder_of_results().glob('*.json') if json.loads(path.read_text())['lines']}
    unique = {test: 0 for test in tried} | alone(rows)
    print(f'{len(rows)} of {len(chosen)} mutants of C sources are in the matrix.')
    print('\nNo test killed:', *(row['mutant'] for row in rows if not row['killed_by']), sep='\n  ')
    print('\nTests that kill nothing that no other test kills:', *sorted(test for test, kills in unique.items() if not kills), sep='\n  ')
    attacked = {mutant['file'] for mutant in everything}
    print('\nSources without a mutant:', *(name for name in sources(mutants.ROOT) if name.endswith('.c') and name not in attacked), sep='\n  ')
    print(f'\n{"layer of src":20} {"code":>6} {"mutants":>8} {"in 1,000 lines":>15}')
    for layer, code, count in densities(mutants.ROOT, everything, code_of):
        print(f'{layer:20} {code:6} {count:8} {1000 * count / code:15.1f}')
