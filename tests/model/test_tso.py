#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The explorer itself: known litmus tests, sections, scheduling, reductions."""
import sys
from test_busy_flag import ownership
from test_grace_period import basic
from tso import (Machine, Thread, add, cas, cas_max, check, exchange, fence, fence_if,
                 get_cpu, ghost, jump_if, load, membarrier, membarrier_rseq, section,
                 store, suite)

ENDS = 'at the end'


def litmus():
    """Classic two-thread tests; 'seen' is the record of the weak outcome."""
    def sb(a, b):
        return Machine([Thread('a', store('x', 1), a, load('r', 'y'), ghost('ra', 'r')),
                        Thread('b', store('y', 1), b, load('r', 'x'), ghost('rb', 'r'))],
                       {'x': 0, 'y': 0, 'ra': 2, 'rb': 2}, 'ra or rb')
    yield 'store buffering is visible', sb([], []), ENDS
    yield 'store buffering, one fence', sb(fence(), []), ENDS
    yield 'store buffering, fences', sb(fence(), fence()), None
    yield 'store buffering, conditional fences off', sb(fence_if('0'), fence_if('0')), ENDS
    yield 'store buffering, atomic operations fence', \
        sb(cas('x', 9, 9), cas_max('y', 0)), None
    yield 'store buffering, membarrier on one side', sb(membarrier(), []), None
    yield 'membarrier before the store does not help', Machine(
        [Thread('a', membarrier(), store('x', 1), load('r', 'y'), ghost('ra', 'r')),
         Thread('b', store('y', 1), load('r', 'x'), ghost('rb', 'r'))],
        {'x': 0, 'y': 0, 'ra': 2, 'rb': 2}, 'ra or rb'), ENDS
    yield 'message passing needs no fence', Machine(
        [Thread('a', store('x', 1), store('y', 1)),
         Thread('b', load('f', 'y'), load('d', 'x'), check('d or not f', 'stale'))],
        {'x': 0, 'y': 0}), None
    yield 'load buffering does not happen', Machine(
        [Thread('a', load('r', 'x'), store('y', 1), ghost('ra', 'r')),
         Thread('b', load('r', 'y'), store('x', 1), ghost('rb', 'r'))],
        {'x': 0, 'y': 0, 'ra': 2, 'rb': 2}, 'not (ra and rb)'), None
    yield 'a thread reads its own stores', Machine(
        [Thread('a', store('x', 1), store('x', 2), load('r', 'x'),
                check('r != 1', 'older store')), Thread('b', store('x', 3))],
        {'x': 0}), None
    yield 'atomic adds do not get lost', Machine(
        [Thread(n, add('x', 1, 'v'), add('x', 1)) for n in 'ab'], {'x': 0}, 'x == 4'), None
    yield 'plain increments do', Machine(
        [Thread(n, load('v', 'x'), store('x', 'v + 1')) for n in 'ab'],
        {'x': 0}, 'x == 2'), ENDS
    yield 'exchange hands a value to one', Machine(
        [Thread(n, exchange('x', 0, 'v'), ghost('got', 'got + v')) for n in 'ab'],
        {'x': 1, 'got': 0}, 'got == 1'), None


def sections():
    """An increment in a section: atomic against threads of the same CPU only."""
    inc = ['again', section('again', load('v', 'x'), store('x', 'v + 1'))]
    plain = [load('v', 'x'), store('x', 'v + 1')]

    def machine(program, cpus, **kw):
        return Machine([Thread(n, program, cpu=c, **kw) for n, c in zip('ab', cpus)],
                       {'x': 0}, 'x == 2')
    yield 'section, two threads on one CPU', machine(inc, (0, 0)), None
    yield 'no section, two threads on one CPU', machine(plain, (0, 0)), ENDS
    yield 'section, two CPUs', machine(inc, (0, 1)), ENDS
    yield 'section, preempted at any moment', machine(inc, (0, 0), preempt=True), None
    yield 'section, migrated: no longer one CPU', machine(inc, (0, 0), migrate=(0, 1)), ENDS
    late = Machine([Thread('a', section('out', load('v', 'stop'), jump_if('v', 'out'),
                                        store('x', 1)), 'out', cpu=0),
                    Thread('b', store('stop', 1), membarrier_rseq(0), load('v', 'x'),
                           ghost('seen', 'v'))],
                   {'stop': 0, 'x': 0, 'seen': 2}, 'x == seen')
    yield 'no commit after membarrier_rseq', late, None
    yield 'a plain membarrier lets it commit', Machine(
        [Thread('a', section('out', load('v', 'stop'), jump_if('v', 'out'),
                             store('x', 1)), 'out', cpu=0),
         Thread('b', store('stop', 1), membarrier(), load('v', 'x'), ghost('seen', 'v'))],
        {'stop': 0, 'x': 0, 'seen': 2}, 'x == seen'), ENDS
    yield 'the CPU id is the current one', Machine(
        [Thread('a', get_cpu('c'), ghost('id', 'c'), cpu=0, migrate=(0, 1))],
        {'id': 0}, 'id == 0'), ENDS
    yield 'a spin that nobody ends is not a final state', Machine(
        [Thread('a', 'spin', load('v', 'x'), jump_if('v == 0', 'spin')),
         Thread('b', store('x', 1))], {'x': 0}, 'x == 1'), None


def reductions():
    """With and without the reductions: the same verdicts, the same final memories."""
    bad, small = 0, [c for c in basic() if c[0] in ('one driver, fenced',
                                                    'mutant: no barrier')]
    for name, machine, _ in [*litmus(), *sections(), *ownership(), *small]:
        full = Machine(machine.threads, machine.memory, [f for f, _ in machine.final],
                       reduce=False)
        n, a = machine.explore()
        n_full, b = full.explore()
        if bool(a) != bool(b) or (not a and machine.finals != full.finals) or n > n_full:
            print(f'FAIL reductions change {name}: {a} / {b}')
            bad = 1
    return bad


def main():
    return suite(case for part in (litmus, sections) for case in part()) | reductions()


if __name__ == '__main__':
    sys.exit(main())
