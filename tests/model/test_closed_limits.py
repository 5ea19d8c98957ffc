#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Owned caches are closed by values that fast paths compare anyway (x86-64; docs/adr/0001).

As test_busy_flag.py, but fast paths do not read `owner`. A taker of CPU 0's caches closes them first:
`from` (where pop takes objects from; 0: nothing is there) and `room` (whether push may put any; the ring's stop is
one more of its kind). A release opens both, then says that no thread is the owner. A line may be closed and no thread's:
then the next take and release open it.
"""
import sys
from test_busy_flag import LOST, TWICE, TWO, conserved, memory
from tso import (Machine, Thread, cas, check, get_cpu, ghost, jump, jump_if, let, load, mark,
                 membarrier_rseq, section, store, suite, when)

INTO_NOTHING = 'pushed into nothing'


def line(n, owner=0, **more):
    """Owned: closed."""
    return memory(n, owner=owner, **{'from': int(not owner), 'room': int(not owner), **more})


# --------------------------------------------------------------- fast paths
def pop(k, count_first=False, looks=True):
    count = [load('c', 'n'), jump_if('c == 0', f'end{k}')]
    closed = [load('f', 'from'), jump_if('not f', f'end{k}')] if looks else []
    return [f'pop{k}', section(
        f'pop{k}', [count, closed] if count_first else [closed, count],
        load('x', 'slot[c - 1]'), store('n', 'c - 1')),
        check('hold[x] == 0', TWICE), ghost('hold[x]', 'hold[x] + 1'), mark(f'popped {k}'), f'end{k}']


def push(k, x, count_first=False, by_from=False):
    """by_from: it goes where pop takes objects from, if there is room."""
    count = load('c', 'n')
    closed = [load('r', 'room'), jump_if('not r', f'end{k}')]
    return [f'push{k}', section(
        f'push{k}', [count, closed] if count_first else [closed, count],
        [load('f', 'from'), check('f', INTO_NOTHING)] if by_from else [],
        store('slot[c]', x), store('n', 'c + 1', also=(f'hold[{x}]', 0))), mark(f'pushed {k}'), f'end{k}']


# -------------------------------------------------------------------- owners
def closing():
    return [store('from', 0), store('room', 0)]


def release(early=False, late=False):
    """The owner's last write, and the release."""
    last, free = store('n', 'c - 1 if c else 0'), store('owner', 0)
    leave = [check('in0 == 1', TWO), ghost('in0', 'in0 - 1')]
    opening = [store('from', 1), store('room', 1)]
    if early:
        return [opening, last, leave, free]
    return [last, leave, free, opening] if late else [last, leave, opening, free]


def critical(**kw):
    """The owner takes one object out of CPU 0's cache and lets go."""
    return [check('in0 == 0', TWO), ghost('in0', 'in0 + 1'), load('c', 'n'), let('x', 0),
            when('c', [load('x', 'slot[c - 1]')]), check('x == 0 or hold[x] == 0', TWICE),
            ghost('hold[x]', 'hold[x] + (1 if x else 0)'), release(**kw)]


def take_remote(token, k='r', closes='before', fences=True, loser_opens=False, **kw):
    lost = [store('from', 1), store('room', 1)] if loser_opens else []
    return [cas('owner', 0, token, 'got'), jump_if('not got', f'lost{k}'),
            closing() if closes == 'before' else [],
            membarrier_rseq(0) if fences else [],
            closing() if closes == 'after' else [],
            load('o', 'owner'), when(f'o != {token}', [lost, jump(f'lost{k}')]),
            critical(**kw), mark(f'owned {k}'), f'lost{k}']


def take_local(token, k='l', closes='inside', moves=False, **kw):
    """moves: the thread may migrate; CPU 1's caches are not modelled."""
    return [f'take{k}', section(
        f'take{k}', [get_cpu('cpu'), jump_if('cpu', f'no{k}')] if moves else [],
        load('o', 'owner'), jump_if('o', f'no{k}'),
        closing() if closes == 'inside' else [], store('owner', token)),
        closing() if closes == 'after' else [],
        critical(**kw), mark(f'owned {k}'), f'no{k}']


# --------------------------------------------------------------------- cases
def one_cpu_and_remote():
    def pops(**kw):
        return Machine([Thread('fast', pop(0), pop(1), cpu=0),
                        Thread('remote', take_remote(7, **kw), cpu=1)], line(2), conserved(1, 2))

    def pushes(by_from=False, **kw):
        return Machine([Thread('fast', pop(0), push(1, 3, by_from=by_from), cpu=0, preempt=True),
                        Thread('remote', take_remote(7, **kw), cpu=1)],
                       line(2, hold=[0, 0, 0, 1]), conserved(1, 2, 3))
    broken = f'{TWICE}|{LOST}'
    yield 'pops and a remote take', pops(), None
    yield 'pop, push, preemption and a remote take', pushes(), None
    yield 'mutant: a remote take does not close', pops(closes='never'), broken
    yield 'mutant: a remote take closes after its fence', pops(closes='after'), broken
    yield 'mutant: no fence', pops(fences=False), broken
    yield 'mutant: no fence, a push', pushes(fences=False), broken
    yield 'mutant: opened before the last write', pops(early=True), broken
    yield 'mutant: pop does not look whether it is closed', Machine(
        [Thread('fast', pop(0, looks=False), pop(1), cpu=0), Thread('remote', take_remote(7), cpu=1)],
        line(2), conserved(1, 2)), broken
    yield 'mutant: push goes where pop takes from', pushes(by_from=True), INTO_NOTHING


def takes():
    def local_and_remotes(local=(), tokens=(7, 8), n=3, **kw):
        return Machine([Thread('local', take_local(5, **dict(local)), cpu=0)] +
                       [Thread(f'remote{t}', take_remote(t, **kw), cpu=i + 1)
                        for i, t in enumerate(tokens)], line(n), conserved(1, 2, 3))

    def sharing(local=(), remote=True, preempt=False, **kw):
        threads = [Thread('a', take_local(5, **dict(local)), cpu=0, preempt=preempt),
                   Thread('b', pop(0), push(1, 3), cpu=0)]
        if remote:
            threads.append(Thread('remote', take_remote(7, **kw), cpu=1))
        return Machine(threads, line(2, hold=[0, 0, 0, 1]), conserved(1, 2, 3))

    def migrant(**kw):
        return Machine([Thread('a', take_local(5, moves=True, **kw), cpu=0, migrate=(0, 1)),
                        Thread('b', pop(0), pop(1), cpu=0)], line(3), conserved(1, 2, 3))
    broken = f'{TWICE}|{LOST}'
    yield 'local take and two remote takes', local_and_remotes(), None
    yield 'local take, fast paths of its CPU and a remote take', sharing(), None
    yield 'the same, and a take that is interrupted', sharing(preempt=True), None
    yield 'mutant: a local take does not close', sharing({'closes': 'never'}, remote=False), broken
    yield 'local take that may migrate, and fast paths of the CPU', migrant(), None
    yield 'mutant: a local take closes once it owns', migrant(closes='after'), broken
    yield 'mutant: a remote take that lost opens', sharing(loser_opens=True), broken
    # A local take and its release fit between the two stores of a release that are in the wrong order.
    yield 'mutant: released before it is opened', Machine(
        [Thread('a', take_local(5), cpu=0), Thread('b', pop(0), pop(1), cpu=0),
         Thread('remote', take_remote(7, late=True), cpu=1)], line(3), conserved(1, 2, 3)), broken


def moved_owners():
    """An owner that has migrated from its CPU puts objects there and lets go, while a fast path of the CPU has begun."""
    def machine(fast):
        owner = [load('c', 'n'), store('slot[c]', 3, also=('hold[3]', 0)), store('n', 'c + 1'),
                 store('from', 1), store('room', 1), store('owner', 0)]
        return Machine([Thread('fast', fast, cpu=0), Thread('owner', owner, cpu=1)],
                       line(1, owner=5, hold=[0, 0, 1, 1]), conserved(1, 2, 3))
    broken = f'{TWICE}|{LOST}'
    yield 'an owner that has moved, and a pop', machine(pop(0)), None
    yield 'an owner that has moved, and a push', machine(push(0, 2)), None
    yield 'mutant: pop reads the count first', machine(pop(0, count_first=True)), broken
    yield 'mutant: push reads the count first', machine(push(0, 2, count_first=True)), broken


def opens_again():
    """A remote take has lost after it closed: the next take and release open the line."""
    fast = ['again', load('f', 'from'), load('r', 'room'), when('f and r', [jump('open')]),
            take_local(5), 'seen', load('o', 'owner'), jump_if('o', 'seen'), load('f', 'from'),
            load('r', 'room'), check('f and r', 'still closed'), 'open', mark('open')]
    return [('closed and nobody\'s: a take and its release open it', Machine(
        [Thread('fast', fast, cpu=0)], line(3, **{'from': 0}), conserved(1, 2, 3)), None)]


def main():
    return suite(case for part in (one_cpu_and_remote, takes, moved_owners, opens_again) for case in part())


if __name__ == '__main__':
    sys.exit(main())
