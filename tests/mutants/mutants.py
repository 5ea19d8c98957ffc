# SPDX-License-Identifier: MIT
"""The list of mutants (mutants.toml), how one is applied to a source, and what is put before the compiler."""
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class DoesNotApply(Exception):
    """The source has changed: the mutant must follow it."""


def launcher():
    """[ccache], if that is installed and can write the cache folder; else it would fail each compilation."""
    ccache = shutil.which('ccache')
    if not ccache:
        return []
    folder = Path(subprocess.run([ccache, '--get-config', 'cache_dir'], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return [ccache] if os.access(there, os.W_OK) else []


def load():
    with open(ROOT / 'tests/mutants/mutants.toml', 'rb') as file:
        return tomllib.load(file)['mutant']


def body_of(text, function):
    """Where the function's definition begins and ends: a name in a line that does not end with ';', to the
    closing brace in the first column."""
    for match in re.finditer(rf'^\w[^;{{}}]*?\b{re.escape(function)}\([^;{{}}]*?\)\n{{', text, re.M):
        return match.start(), text.index('\n}', match.end())
    raise DoesNotApply(f'there is no function {function}')


def mutated(mutant, source=ROOT):
    """The text of the mutant's file with the fault in it."""
    text = (source / mutant['file']).read_text()
    first, last = body_of(text, mutant['function']) if 'function' in mutant else (0, len(text))
    scope = text[first:last]
    for wanted, instead in mutant['edits']:
        # However the lines are broken today.
        pattern = r'\s+'.join(re.escape(word) for word in wanted.split())
        if len(re.findall(pattern, scope)) != 1:
            raise DoesNotApply(f'{mutant["name"]}: not there exactly once: {wanted}')
        scope = re.sub(pattern, lambda _: instead, scope)
    return text[:first] + scope + text[last:]
