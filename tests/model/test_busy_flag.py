#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Ownership of a CPU's caches: restartable fast paths, local take, remote take.

CPU 0 has `owner` (0, or the token of the thread that owns the caches), a count
n, and slots holding objects 1, 2, ...; hold[x] counts the threads that have
object x, node[x] the times it was flushed to the node, in0 who is inside the
owner's critical section (all three are the observer's).  At the end every
object must be in exactly one place.
"""
import sys
from tso import (Machine, Thread, cas, check, get_cpu, ghost, jump, jump_if, load,
                 let, mark, membarrier_rseq, section, store, suite, when)

TWO, TWICE, LOST = 'two owners', 'handed out twice', 'at the end'


def memory(n, **more):
    slot = [1, 2, 3][:n] + [0] * (3 - n)
    return {'owner': 0, 'n': n, 'slot': slot, 'hold': [0] * 4, 'in0': 0, **more}


def conserved(*objects):
    """Every object is held once, or is in exactly one slot below the count."""
    return [f'hold[{x}] + ' + ' + '.join(
        f'(n > {i} and slot[{i}] == {x})' for i in range(3)) + ' == 1' for x in objects]


# --------------------------------------------------------------- fast paths
def pop(k, own=True):
    """Take one object, unless the CPU is owned or its cache is empty."""
    return [f'pop{k}', section(
        f'pop{k}', [load('o', 'owner'), jump_if('o', f'end{k}')] if own else [],
        load('c', 'n'), jump_if('c == 0', f'end{k}'), load('x', 'slot[c - 1]'),
        store('n', 'c - 1')),
        check('hold[x] == 0', TWICE), ghost('hold[x]', 'hold[x] + 1'), f'end{k}']


def push(k, x):
    """Give object x back; if the CPU is owned, keep it."""
    return [f'push{k}', section(
        f'push{k}', load('o', 'owner'), jump_if('o', f'end{k}'), load('c', 'n'),
        store('slot[c]', x), store('n', 'c + 1', also=(f'hold[{x}]', 0))), f'end{k}']


# -------------------------------------------------------------------- owners
def critical(early_release=False):
    """The owner takes one object out of CPU 0's cache and lets go."""
    release = store('owner', 0)
    leave = [check('in0 == 1', TWO), ghost('in0', 'in0 - 1')]
    work = [load('c', 'n'), let('x', 0)]
    last = store('n', 'c - 1 if c else 0')
    taken = [check('x == 0 or hold[x] == 0', TWICE),
             ghost('hold[x]', 'hold[x] + (1 if x else 0)')]
    return [check('in0 == 0', TWO), ghost('in0', 'in0 + 1'), work,
            when('c', [load('x', 'slot[c - 1]')]), taken,
            [leave, release, last] if early_release else [last, leave, release]]


def take_remote(token, k='r', barrier='after', recheck=True, how='cas',
                clears=False, **kw):
    """CAS, membarrier RSEQ, recheck."""
    own = [cas('owner', 0, token, 'got')] if how == 'cas' else \
        [load('got', 'owner'), let('got', 'not got'), jump_if('not got', f'lost{k}'),
         store('owner', token)]
    return [membarrier_rseq(0) if barrier == 'before' else [],
            own, jump_if('not got', f'lost{k}'),
            membarrier_rseq(0) if barrier == 'after' else [],
            [load('o', 'owner'),
             when(f'o != {token}', [[store('owner', 0)] if clears else [],
                                    jump(f'lost{k}')])] if recheck else [],
            critical(**kw), f'lost{k}']


def take_local(token, k='l', **kw):
    """Committed inside a section, on the CPU that the thread is on."""
    return [f'take{k}', section(
        f'take{k}', load('o', 'owner'), jump_if('o', f'no{k}'), store('owner', token)),
        critical(**kw), f'no{k}']


def ownership():
    def fast_and_remote(n=2, **kw):
        return Machine([Thread('fast', pop(0), pop(1), cpu=0),
                        Thread('remote', take_remote(7, **kw), cpu=1)],
                       memory(n), conserved(1, 2))

    def pushers(**kw):
        return Machine([Thread('fast', pop(0), push(1, 3), cpu=0, preempt=True),
                        Thread('remote', take_remote(7, **kw), cpu=1)],
                       memory(2, hold=[0, 0, 0, 1]), conserved(1, 2, 3))

    def local_and_remotes(tokens=(7, 8), **kw):
        return Machine([Thread('local', take_local(5), cpu=0)] +
                       [Thread(f'remote{t}{i}', take_remote(t, **kw), cpu=i + 1)
                        for i, t in enumerate(tokens)],
                       memory(3), conserved(1, 2, 3))
    yield 'pops and a remote take', fast_and_remote(), None
    yield 'pop, push, preemption and a remote take', pushers(), None
    yield 'local take and two remote takes', local_and_remotes(), None
    yield 'mutant: no membarrier after the CAS', fast_and_remote(barrier=None), \
        f'{TWICE}|{LOST}'
    yield 'mutant: membarrier before the CAS', fast_and_remote(barrier='before'), \
        f'{TWICE}|{LOST}'
    yield 'mutant: push against a remote take without membarrier', \
        pushers(barrier=None), f'{TWICE}|{LOST}'
    yield 'local take, one remote twice with one token, another remote', Machine(
        [Thread('local', take_local(5), cpu=0),
         Thread('remote7', take_remote(7, 'x'), take_remote(7, 'y'), cpu=1),
         Thread('remote8', take_remote(8), cpu=2)], memory(3), conserved(1, 2, 3)), None
    yield 'mutant: a remote take that lost clears the owner', \
        local_and_remotes(clears=True), TWO
    yield 'mutant: no recheck', local_and_remotes(recheck=False), TWO
    yield 'mutant: all remotes use one token', local_and_remotes(tokens=(7, 7)), TWO
    yield 'mutant: remote take by a plain store', local_and_remotes(how='store'), TWO
    yield 'mutant: released before the last write', \
        fast_and_remote(early_release=True), f'{TWICE}|{LOST}'
    yield 'mutant: fast path does not look at the owner', Machine(
        [Thread('fast', pop(0, own=False), pop(1, own=False), cpu=0),
         Thread('remote', take_remote(7), cpu=1)], memory(2), conserved(1, 2)), \
        f'{TWICE}|{LOST}'


# ------------------------------------------------- several threads on one CPU
def sharing():
    def pair(a, b, remote=True, n=3, **kw):
        threads = [Thread('a', a, cpu=0, **kw), Thread('b', b, cpu=0)]
        if remote:
            threads.append(Thread('remote', take_remote(7), cpu=1))
        return Machine(threads, memory(n), conserved(*range(1, n + 1)))

    yield 'two threads on a CPU pop, and a remote take', pair(pop(0), pop(1)), None
    yield 'two threads on a CPU, local take and pop, and a remote take', \
        pair(take_local(5), pop(1)), None
    yield 'two local takes on a CPU, and a remote take', \
        pair(take_local(5), take_local(6)), None

    yield 'all of it: pop, push, local take, preemption, two remote takes', Machine(
        [Thread('a', pop(0), push(1, 3), cpu=0, preempt=True),
         Thread('b', take_local(5), pop(1), cpu=0),
         Thread('remote7', take_remote(7), cpu=1), Thread('remote8', take_remote(8), cpu=2)],
        memory(2, hold=[0, 0, 0, 1]), conserved(1, 2, 3)), None

    # A local take may migrate: the CPU id must be the section's own.  CPU 1's
    # caches are not modelled; a take there is just not a take of CPU 0.
    def migrant(stale):
        look = [load('o', 'owner'), jump_if('o', 'no')]
        here = [get_cpu('cpu'), jump_if('cpu != 0', 'no')]
        take = [here, look, store('owner', 5)] if stale else \
            [section('take', here, look, store('owner', 5))]
        return ['take', take, critical(), 'no']

    def machine(stale):
        return Machine([Thread('migrant', migrant(stale), cpu=0, migrate=(0, 1)),
                        Thread('b', take_local(6), cpu=0),
                        Thread('remote', take_remote(7), cpu=1)],
                       memory(3), conserved(1, 2, 3))
    yield 'local take that may migrate', machine(False), None
    yield 'mutant: local take outside a section (stale CPU id)', machine(True), TWO


# ------------------------------------------- the idle helper's latent objects
def idle_helper():
    """A latent ring of objects 1, 2 at head..tail.  The helper saw the head (and
    that object's cookie) earlier, and takes that one object by a section that
    commits the head; an owner merges everything that is there."""
    def helper(own=True, expected=True, k=2):
        return [[load('want', 'head'), f'help{i}', section(
            f'help{i}', [load('o', 'owner'), jump_if('o', f'end{i}')] if own else [],
            load('t', 'tail'), jump_if('want >= t', f'end{i}'),
            [load('h', 'head'), jump_if('h != want', f'end{i}')] if expected else [],
            load('x', 'slot[want]'), store('head', 'want + 1')),
            check('hold[x] == 0', TWICE), ghost('hold[x]', 'hold[x] + 1'), f'end{i}']
            for i in range(k)]

    def merge():
        """The owner's part: head..tail to the object cache."""
        return [check('in0 == 0', TWO), ghost('in0', 1),
                load('h', 'head'), load('t', 'tail'), store('head', 't'),
                'next', jump_if('h >= t', 'merged'), load('x', 'slot[h]'),
                check('hold[x] == 0', TWICE), ghost('hold[x]', 'hold[x] + 1'),
                let('h', 'h + 1'), jump('next'), 'merged',
                ghost('in0', 0), store('owner', 0)]

    def push_latent():
        return ['push', section('push', load('o', 'owner'), jump_if('o', 'kept'),
                                load('t', 'tail'), store('slot[t]', 3),
                                store('tail', 't + 1')), mark('pushed'), 'kept']

    def remote(barrier=True):
        return [cas('owner', 0, 7, 'got'), jump_if('not got', 'lost'),
                membarrier_rseq(0) if barrier else [],
                load('o', 'owner'), jump_if('o != 7', 'lost'), merge(), 'lost']

    def local():
        return ['take', section('take', load('o', 'owner'), jump_if('o', 'no'),
                                store('owner', 5)), merge(), 'no']

    def machine(threads):
        return Machine(threads, dict(owner=0, head=0, tail=2, slot=[1, 2, 0],
                                     hold=[0] * 4, in0=0),
                       ['hold[1] + (head <= 0) == 1', 'hold[2] + (head <= 1) == 1',
                        'hold[3] + (head <= 2 and tail == 3) <= 1'])

    def with_remote(barrier=True, **kw):
        return machine([Thread('helper', helper(**kw), cpu=0),
                        Thread('remote', remote(barrier), cpu=1)])

    def with_local(**kw):
        return machine([Thread('helper', helper(**kw), cpu=0),
                        Thread('local', push_latent(), local(), cpu=0)])
    yield 'idle helper and a remote owner that merges', with_remote(), None
    yield 'idle helper, a push and a local owner on its CPU', with_local(), None
    yield 'mutant: idle helper does not look at the owner', \
        with_remote(own=False), f'{TWICE}|{LOST}'
    yield 'mutant: idle helper does not compare the head', \
        with_local(expected=False), f'{TWICE}|{LOST}'
    yield 'mutant: idle helper and an owner without membarrier', \
        with_remote(barrier=False), f'{TWICE}|{LOST}'


def main():
    return suite(case for part in (ownership, sharing, idle_helper) for case in part())


if __name__ == '__main__':
    sys.exit(main())
