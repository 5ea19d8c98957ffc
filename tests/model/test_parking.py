#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Readers that are parked while they stay outside, so that no scan reads them (src/core/gp/user/parking.c).

One reader's slot: word; attention (1: parked, so an entry goes the slow way); and in its chunk's summary the
two bits of `state`: 1, scans read it; 2, touched: it was woken since the parker began.  Memory and
property as in test_grace_period.py.  A signal handler that reads is a nested section at one place of the
entry; every place is a case.
"""
import sys
from test_grace_period import (BARRIER, FENCED, FREE, GOAL, MODE, START, UAF, closer, memory, reclaim, scan)
from tso import (Machine, Thread, cas, cas_max, check, exchange, fence, fence_if, let, load, mark,
                 membarrier, store, suite, when)

LOOKED_AT, TOUCHED = 1, 2


# ------------------------------------------------------------------ readers
def wake(plain=False, untouched=False, early=False):
    """The slow way of an entry: seen by scans again, fence, and only then no attention any more.
    plain: by stores alone, and no fence."""
    state = LOOKED_AT if untouched else LOOKED_AT | TOUCHED
    seen = [store('state', state)] if plain else [exchange('state', state, 'x'), fence()]
    awake = store('att', 0) if plain else exchange('att', 0, 'y')
    return [mark('woken'), [awake, seen] if early else [seen, awake]]


def use():
    return [load('o', 'p'), when('o', [check('not freed', UAF)])]


def handler(blind=False, **how):
    """A nested section; it finds the word published, and searches for itself whether it is parked."""
    return [[] if blind else [load('h', 'att'), when('h', wake(**how))], use()]


def section(fenced, interrupted=None, early_look=False, blind=False, **how):
    """interrupted: the place of the entry at which a handler reads, from the word's store on."""
    look = [load('a', 'att')]
    woken = wake(**how)
    entry = [[load('s', 'seq'), look if early_look else [], store('word[0]', 's')]]
    entry += [[] if early_look else look]
    if interrupted is None:
        entry += [when('a', woken)]
    else:
        entry += [when('a', [woken[0], [part for part in split(woken[1], interrupted - 2, blind, how)]])]
    entry += [fence_if(int(fenced and not how.get('plain')))]
    if interrupted in (0, 1):
        entry.insert(interrupted + 1, handler(blind, **how))
    return [entry, use(), store('word[0]', 0)]


def split(parts, at, blind, how):
    for i, part in enumerate(parts):
        yield part
        if i == at:
            yield handler(blind, **how)


def reader(fenced, sections=1, **how):
    return Thread('reader0', [section(fenced, **how) for _ in range(sections)])


# ------------------------------------------------------------------- parker
def park(barrier=True, word=True, recheck=True, touched=True, late=False):
    attention = exchange('att', 1, 'y')
    begin = cas('state', LOOKED_AT | TOUCHED, LOOKED_AT)
    out = [load('x', 'state'), when(f'x == {LOOKED_AT}', [cas('state', LOOKED_AT, 0, 'ok'),
                                                           when('ok', [mark('parked')])])] if touched else \
        [exchange('state', 0, 'x'), mark('parked')]
    if recheck:
        out = [load('b', 'att'), when('b', out)]
    out = [load('w', 'word[0]'), when('w == 0', out)] if word else out
    return [begin, [] if late else attention, membarrier('reader0') if barrier else [],
            attention if late else [], out]


def parker(rounds=1, **how):
    return Thread('parker', [park(**how) for _ in range(rounds)])


# ------------------------------------------------------------------- driver
LOOK = [load('st', 'state')]


def driver(before=(), behind=LOOK, rounds=1):
    seen = [let('low', 'goal'), when(f'st & {LOOKED_AT}', scan()[1:-1]), cas_max('done', 'low')]
    return Thread('driver', [[START, before, GOAL, MODE, BARRIER, behind, seen, reclaim()]
                             for _ in range(rounds)])


# -------------------------------------------------------------------- asker
def asker(first=(), word=True, look_first=False, bits=True, bits_first=False, rounds=1):
    """A thread that asks the reader to fence, instead of a membarrier (at_once.c). The mark is the question, and is
    gone when it is answered. A reader that is not read is not asked; it fences when it wakes, behind this fence."""
    words = [load('w', 'word[0]'), when('w and w < goal', let('low', 'w'))] if word else []
    end = [cas_max('done', 'low'), mark('told'), reclaim()]
    wait = [let('low', 'goal'), words if look_first else [], load('b', 'att'),
            when('not b', [[] if look_first else words, end])]
    ask = [[] if first else exchange('att', 1, 'm'), wait]
    outside = [let('low', 'goal'), end]
    begin = [LOOK if bits_first else [], GOAL, fence(), LOOK if bits and not bits_first else []]
    rest = [when(f'st & {LOOKED_AT}', ask), when(f'not (st & {LOOKED_AT})', outside)] if bits else ask
    return Thread('asker', [[START, first, begin, rest] for _ in range(rounds)])


def answers_inside():
    """A handler that reads in the middle of a section answers, while that section has found the object."""
    return Thread('reader0', [[load('s', 'seq'), store('word[0]', 's'), load('a', 'att'), when('a', wake())],
                              load('q', 'p'), handler(), when('q', [check('not freed', UAF)]),
                              store('word[0]', 0)])


def machine(*others, mode=FREE, reads=None, drives=None, att=0, state=LOOKED_AT, sections=1):
    return Machine([reads or reader(mode == FENCED, sections), closer(), *others, drives or driver()],
                   memory(mode=mode, att=att, state=state))


def cases():
    for mode, text in (FREE, 'fence-free'), (FENCED, 'fenced'):
        yield f'parked while it enters, {text}', machine(parker(), mode=mode), None
        yield f'a first entry, {text}', machine(mode=mode, att=1, state=0), None
        yield f'a first entry of a slot that is looked at, {text}', machine(
            parker(), mode=mode, att=1), None
        yield f'a first entry while another parks, {text}', machine(
            parker(), mode=mode, att=1, state=LOOKED_AT | TOUCHED), None
    yield 'parked twice, woken in between', machine(parker(2), att=0, sections=2), None
    for place in range(5):
        reads = reader(False, interrupted=place)
        if place > 1:
            yield f'a handler reads while its thread wakes, {place}', machine(
                reads=reads, att=1, state=0), None
        else:
            yield f'a handler reads at place {place} of an entry', machine(parker(), reads=reads), None

    asks = asker(bits=False)
    yield 'asked to fence', machine(drives=asks, sections=2), None
    yield 'asked to fence, twice', machine(drives=asker(bits=False, rounds=2), sections=2), None
    yield 'asked to fence, marked before', machine(drives=asks, att=1, sections=2), None
    yield 'asked to fence, with a parker', machine(parker(), drives=asker()), None
    yield 'asked to fence, or parked', machine(drives=asker(), att=1, state=0), None
    yield 'asked to fence, with a driver', machine(driver(), drives=asks), None
    yield 'asked to fence, answered inside', machine(drives=asks, reads=answers_inside()), None
    for place in 0, 1:
        yield f'asked to fence, a handler reads at place {place} of an entry', machine(
            drives=asks, reads=reader(False, interrupted=place)), None

    def broken(text, *others, **how):
        return 'mutant: ' + text, machine(*others, **how), UAF
    yield broken('parked without a membarrier', parker(barrier=False))
    yield broken('parked without a membarrier, fenced readers', parker(barrier=False), mode=FENCED)
    yield broken('attention after the membarrier', parker(late=True))
    yield broken('parked whatever the word says', parker(word=False))
    yield broken('parked though it was woken meanwhile', parker(touched=False))
    yield broken('who wakes does not say so', parker(), reads=reader(False, untouched=True))
    yield broken('attention not looked at again', parker(2, recheck=False), sections=2)
    yield broken('attention looked at before the word is published', parker(),
                 reads=reader(False, early_look=True))
    yield broken('woken by a plain store', reads=reader(True, plain=True), att=1, state=0, mode=FENCED)
    yield broken('the summary is read before the goal', Thread('starter', START), att=1, state=0,
                 drives=driver(before=LOOK, behind=()))
    yield broken('a handler does not look whether it is parked', parker(),
                 reads=reader(False, interrupted=0, blind=True))
    yield broken('attention gone before the reader is seen', reads=reader(False, interrupted=2, early=True),
                 att=1, state=0)
    yield broken('asked before the goal is loaded', Thread('starter', START), sections=2, drives=asker(
        bits=False, first=[exchange('att', 1, 'm')]))
    yield broken('an answer, and nobody looks at the word', drives=asker(bits=False, word=False),
                 reads=answers_inside())
    yield broken('the word looked at before the answer', drives=asker(bits=False, look_first=True),
                 reads=answers_inside())
    yield broken('whom to ask is read before the goal', Thread('starter', START), att=1, state=0,
                 drives=asker(bits_first=True))


if __name__ == '__main__':
    sys.exit(suite(cases(), long=True))
