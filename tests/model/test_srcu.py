#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""srcu (src/toolkit/domains/srcu.c): counters in two roles, changed so that one of them only falls.

count[role] of one CPU; `changes`, whose lowest bit is the current role; empty[role], the greatest goal
since which the counter was found at 0; the rest as in test_grace_period.py.  A case holds if no reader
uses a freed object in any execution.
"""
import sys
from tso import (Machine, Thread, add, cas, cas_max, check, fence, ghost, load, store, suite, when)

UAF = 'freed object in use'


def memory(**more):
    return {'seq': 1, 'done': 1, 'p': 1, 'ck': 0, 'freed': 0, 'changes': 0, 'count': [0, 0],
            'empty': [1, 1], **more}


# ------------------------------------------------------------------ readers
def read(atomic=True):
    enter = [add('count[r % 2]', 1)] if atomic else [load('n', 'count[r % 2]'),
                                                      store('count[r % 2]', 'n + 1')]
    return [load('r', 'changes'), enter, load('o', 'p'),
            when('o', [check('not freed', UAF)]), add('count[r % 2]', -1)]


def reader(i=0, sections=1, **kw):
    return Thread(f'reader{i}', [read(**kw) for _ in range(sections)])


def closer(fenced=True):
    """Unlink, close, take the cookie."""
    return Thread('closer', [store('p', 0), fence() if fenced else [], load('c', 'seq'),
                             store('ck', 'c + 1')])


# ------------------------------------------------------------------ drivers
START = [load('q', 'seq'), cas('seq', 'q', 'q + 1')]
GOAL = [load('goal', 'seq')]


def look(role):
    return [load('e', f'empty[{role}]'),
            when('e < goal', [load('n', f'count[{role}]'),
                              when('n == 0', [cas_max(f'empty[{role}]', 'goal')])])]


CHANGE = [load('t', 'changes'), load('a', 'empty[t % 2]'), load('b', 'empty[1 - t % 2]'),
          when('a < goal and b >= goal', [cas('changes', 't', 't + 1'), look('t % 2')])]
RECLAIM = [load('k', 'ck'), load('d', 'done'), when('k and k <= d', [ghost('freed', 1)])]


def complete(of='min'):
    return [load('a', 'empty[0]'), load('b', 'empty[1]'), cas_max('done', f'{of}(a, b)'), RECLAIM]


def driver(name='driver', rounds=1, looks=(0, 1), of='min', late=False):
    order = [look(role) for role in looks]
    if late:  # the counters are loaded before the goal
        order = [[load(f'n{role}', f'count[{role}]') for role in looks], GOAL,
                 [[when(f'n{role} == 0', [cas_max(f'empty[{role}]', 'goal')])] for role in looks]]
    else:
        order = [GOAL, fence(), order]
    return Thread(name, [[START, order, CHANGE, complete(of)] for _ in range(rounds)])


def cases():
    yield 'one reader, twice; one driver, three rounds', Machine(
        [reader(sections=2), closer(), driver(rounds=3)], memory()), None
    yield 'two readers, one driver, twice', Machine(
        [reader(0), reader(1), closer(), driver(rounds=2)], memory()), None
    yield 'two drivers', Machine(
        [reader(), closer(), driver('A'), driver('B')], memory()), None
    yield 'two drivers, the roles were changed before', Machine(
        [reader(), closer(), driver('A'), driver('B')], memory(changes=1)), None
    yield 'mutant: no fence before the cookie is loaded', Machine(
        [reader(), closer(fenced=False), driver()], memory()), UAF
    yield 'mutant: entry without a fence', Machine(
        [reader(atomic=False), closer(), driver()], memory()), UAF
    yield 'mutant: the other role is taken for empty', Machine(
        [reader(), closer(), driver(looks=(1,), of='max')], memory()), UAF
    yield 'mutant: one empty role is enough', Machine(
        [reader(), closer(), driver(of='max')], memory()), UAF
    yield 'mutant: counters loaded before the goal', Machine(
        [reader(), closer(), driver('A', late=True), driver('B', late=True)], memory()), UAF


# ------------------------------------------------- why not sums of entries and of exits
def summing(order):
    """Entries and exits counted apart, on two CPUs; a reader may leave on the other one. In one pass."""
    sums = {'entries first': ['in_[0]', 'in_[1]', 'out[0]', 'out[1]'],
            'exits first': ['out[0]', 'out[1]', 'in_[0]', 'in_[1]']}[order]
    named = [load(f's{i}', place) for i, place in enumerate(sums)]
    moved = [add('in_[0]', 1), load('o', 'p'), when('o', [check('not freed', UAF)]), add('out[1]', 1)]
    again = [add('in_[1]', 1), load('o', 'p'), when('o', [check('not freed', UAF)]), add('out[1]', 1)]
    return Machine(
        [Thread('reader0', moved), Thread('reader1', again), closer(),
         Thread('driver', [START, GOAL, fence(), named,
                           when('s0 + s1 == s2 + s3', [cas_max('done', 'goal')]), RECLAIM])],
        {**memory(), 'in_': [0, 0], 'out': [0, 0]})


def sums():
    yield 'sums, exits first', summing('exits first'), None
    yield 'mutant: sums, entries first', summing('entries first'), UAF


def main():
    return suite((case for part in (cases, sums) for case in part()), long=True)


if __name__ == '__main__':
    sys.exit(main())
