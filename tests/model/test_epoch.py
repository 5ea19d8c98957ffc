#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Pins that move to the newest epoch (prudence_epoch_repin), and functions that notify a thread that it is blocking
(src/core/gp/user/kick.c).

The first part has the words of test_grace_period.py. In the second, kick = 1 while the thread's function is set, kicking counts
the threads that are calling, kicked = 1 once the section was notified of; gone is the observer's: the owner went on.
"""
import os
import sys
from test_grace_period import FENCED, FREE, UAF, adaptive, closer, driver, enter, memory, read, switch
from tso import Machine, Thread, add, cas, check, fence, ghost, jump_if, load, mark, store, suite, when


# ------------------------------------------------------------------------------------------------------- repin
def use(found='o'):
    return when(found, [check('not freed', UAF)])


def repin(by_zero=False, ahead=0):
    """No fence, and no load of the mode: until the new word is in memory, the old one is, which keeps more."""
    return [load('n', 'seq'), when('n != s', [store('word[0]', 0) if by_zero else [], store('word[0]', f'n + {ahead}'),
                                              mark('moved')])]


def pinned(kept=False, **kw):
    """Reads twice under one pin, which moves in between. The observer's: the pointer of before is not used after."""
    after = [use()] if kept else [load('o', 'p'), use()]
    return Thread('reader0', enter(0), load('o', 'p'), use(), repin(**kw), after, store('word[0]', 0))


def repins():
    for mode, text in (FREE, 'fence-free'), (FENCED, 'fenced'):
        yield f'repin, {text}', Machine([pinned(), closer(), driver(rounds=2)], memory(mode=mode)), None
        if mode == FENCED or os.environ.get('PRUDENCE_MODELS') == 'deep':
            yield f'repin, two drivers, {text}', Machine(
                [pinned(), closer(), driver('A'), driver('B')], memory(mode=mode)), None
    yield 'repin with another reader', Machine(
        [pinned(), Thread('reader1', read(1)), closer(), driver(readers=(0, 1))], memory()), None
    yield 'repin, to fenced and back', Machine([pinned(), closer(), adaptive(switch())], memory()), None
    yield 'mutant: repin leaves and enters without a fence where readers fence', Machine(
        [pinned(by_zero=True), closer(), driver(rounds=2)], memory(mode=FENCED)), UAF
    yield 'mutant: repin to an epoch that has not begun', Machine(
        [pinned(ahead=1), closer(), driver(rounds=2)], memory()), UAF
    yield 'mutant: a pointer kept across repin (another pin is open)', Machine(
        [pinned(kept=True), closer(), driver(rounds=2)], memory()), UAF


# ------------------------------------------------------------------------------------------------------- kicks
LATE, TWICE = 'called after the end', 'told twice'


def caller(name, counted_first=True, atomic=True, once=True):
    count = [add('kicking', 1)] if atomic else [load('n', 'kicking'), store('kicking', 'n + 1')]
    found = [load('k', 'kick')]
    claim = [cas('kicked', 0, 1, 'got')] if once else [load('t', 'kicked'), store('kicked', 1), when(
        't == 0', [load('got', 'one')], [load('got', 'zero')])]
    call = [claim, when('got', [check('not gone', LATE), check('not told', TWICE), ghost('told', 1)])]
    return Thread(name, count + found if counted_first else found + count, when('k', call), add('kicking', -1))


def owner(fenced=True, waits=True):
    wait = ['again', load('n', 'kicking'), jump_if('n', 'again')]
    return Thread('owner', store('kick', 0), fence() if fenced else [], wait if waits else [], ghost('gone', 1))


def kicks():
    def machine(*callers, **kw):
        return Machine([owner(**kw), *callers], {'kick': 1, 'kicking': 0, 'kicked': 0, 'one': 1, 'zero': 0, 'gone': 0, 'told': 0})
    yield 'kick, one caller', machine(caller('A')), None
    yield 'kick, two callers', machine(caller('A'), caller('B')), None
    yield 'mutant: kick, the function is loaded before the caller counts itself', machine(
        caller('A', counted_first=False)), LATE
    yield 'mutant: kick, the caller does not fence', machine(caller('A', atomic=False)), LATE
    yield 'mutant: kick, the owner does not fence', machine(caller('A'), fenced=False), LATE
    yield 'mutant: kick, the owner does not wait', machine(caller('A'), waits=False), LATE
    yield 'mutant: kick, claimed by a load and a store', machine(caller('A', once=False), caller('B', once=False)), TWICE


def main():
    return suite((case for part in (repins, kicks) for case in part()), long=True)


if __name__ == '__main__':
    sys.exit(main())
