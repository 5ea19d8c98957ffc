#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Hazard pointers: names, polls of objects, whole grace periods by names, claims, and the mode (src/core/gp/user/hazard*.c).

Memory and property as in test_grace_period.py: p = 1 while the object can be reached. name[i] is reader i's slot: 1 names the
object, 2 another one, 0 nothing. fenced is the mode that readers read, mode the one that polling threads read.
"""
import re
import sys
from test_grace_period import BARRIER, FENCED, FREE, GOAL, MODE, START, UAF, close, closer, enter, memory, scan
from tso import (Machine, Thread, add, cas, cas_max, check, fence, fence_if, ghost, let, load, mark, membarrier, store,
                 suite, when)


HELD = 'not (out and thread == 0)'  # a record is not free while a slot of it is out


# ------------------------------------------------------------------ readers
def name(i, early=False):
    """Names the object; then fences, if the slot says so."""
    look, write = load('f', 'fenced'), store(f'name[{i}]', 1)
    return [[look, write] if early else [write, look], fence_if('f')]


def protect(i=0, again=True, first=False, **how):
    """first: the link is read before the name is written, and not again."""
    use = when('o', [check('not freed', UAF), mark('used')])
    look = load('o', 'p')
    if first:
        return [look, when('o', [name(i, **how), use]), store(f'name[{i}]', 0)]
    return [load('o', 'p'), when('o', [name(i, **how), look if again else [], use]), store(f'name[{i}]', 0)]


def reader(i=0, times=1, **how):
    return Thread(f'reader{i}', [protect(i, **how) for _ in range(times)])


def hazards(fenced=0, **more):
    return memory(name=[0, 0], fenced=fenced, mode=FENCED if fenced else FREE, **more)


# ------------------------------------------------------------------ polls of objects
def skip_or_make(slack=0, mode_first=False, raised=True, raise_always=False, early=False):
    """The barrier, unless one covers the cookie k. Only membarriers are remembered."""
    raise_it = cas_max('fgoal', 'goal')
    after = raise_it if raise_always else when(f'md % 4 != {FENCED}', [raise_it]) if raised else []
    return [load('g', 'fgoal'), when(f'g < k - {slack}', [[] if mode_first else MODE, raise_it if early else [],
                                                         BARRIER, after])]


def names(slots=(0,)):
    return [let('named', 0), [[load('n', f'name[{i}]'), let('named', 'named or n == 1')] for i in slots]]


def poll(slots=(0,), barrier=True, look_first=False, mode_first=False, request=START, **how):
    """An object of a detached batch whose cookie is known."""
    made = [] if not barrier else skip_or_make(mode_first=mode_first, **how)
    return [load('k', 'ck'), when('k', [
        request, MODE if mode_first else [], GOAL, names(slots) if look_first else [], made,
        [] if look_first else names(slots), when('not named', [mark('safe'), ghost('freed', 1)])])]


def poller(label='poller', times=1, **how):
    return Thread(label, [poll(**how) for _ in range(times)])


# ------------------------------------------------------------- whole grace periods
def round_(looks=2, barrier=True, slots=(0,), goal_late=False, follow=False):
    """Names seen after the barrier; the grace period is over when none is there as it was. follow: nor in a higher slot (of two)."""
    seen = [load(f's{i}', f'name[{i}]') for i in slots]
    look = [[load('n', f'name[{i}]'), when(f'n != s{i}', [let(f's{i}', 0)])] for i in slots]
    if follow:
        look = [load('n', 'name[0]'), when('s0 and n != s0', [load('n', 'name[1]'), when('n == s0', [let('s1', 's0')]), let('s0', 0)]),
                load('n', 'name[1]'), when('n != s1', [let('s1', 0)])]
    begin = [[] if goal_late else GOAL, MODE, BARRIER if barrier else [], GOAL if goal_late else []]
    none = ' and '.join(f'not s{i}' for i in slots)
    end = when(none, [cas_max('done', 'goal'), load('k', 'ck'), load('d', 'done'),
                      when('k and k <= d', [mark('over'), ghost('freed', 1)])])
    return [START, begin, seen, end, [[look, end] for _ in range(looks - 1)]]


def driver(**how):
    return Thread('driver', round_(**how))


def other_name():
    """Names the object, uses it, and names another one."""
    return Thread('reader0', [protect()[:-1], store('name[0]', 2)])


# ---------------------------------------------- from a section to a name (sets, src/toolkit/domains/set.c)
def mover(leaves_first=False):
    """Finds the object in a section, names it, leaves the section, and goes on."""
    use, leave, write = check('not freed', UAF), store('word[0]', 0), store('name[0]', 1)
    steps = [leave, write] if leaves_first else [write, leave]
    return Thread('reader0', [enter(0), load('o', 'p'), when('o', [use, steps, use, mark('moved')], [leave]),
                              store('name[0]', 0)])


def outliver(names_first=False):
    """Polls once the grace period of sections is over."""
    look = names()
    return Thread('poller', [START, GOAL, MODE, BARRIER, look if names_first else [], scan(),
                             [] if names_first else look, load('k', 'ck'), load('d', 'done'),
                             when('k and k <= d and not named', [mark('safe'), ghost('freed', 1)])])


def cases():
    for fenced, text in (0, 'fence-free'), (1, 'fenced'):
        yield f'polled, {text}', Machine([reader(times=2), closer(), poller(times=2)], hazards(fenced)), None
        yield f'polled by two, {text}', Machine(
            [reader(), closer(), poller('A'), poller('B')], hazards(fenced)), None
        yield f'two slots, {text}', Machine(
            [reader(0), reader(1), closer(), poller(slots=(0, 1))], hazards(fenced)), None
        yield f'a grace period with names, {text}', Machine(
            [reader(times=2), closer(), driver()], hazards(fenced)), None
        yield f'a grace period when another name is there, {text}', Machine(
            [other_name(), closer(), driver()], hazards(fenced)), None
        yield f'a grace period and a poll, {text}', Machine(
            [reader(), closer(), driver(), poller()], hazards(fenced)), None

    # The mode: to fenced, readers first; to fence-free, pollers first.
    to_fenced = [store('fenced', 1), membarrier(), store('mode', FENCED)]
    to_free = [store('mode', FREE), store('fenced', 0)]
    yield 'to fenced', Machine([reader(), closer(), poller(), Thread('switch', to_fenced)], hazards()), None
    yield 'to fence-free', Machine([reader(), closer(), poller(), Thread('switch', to_free)], hazards(1)), None
    yield 'to fence-free between two polls', Machine(
        [reader(), closer(), Thread('poller', poll(), to_free, poll())], hazards(1)), None

    for fenced, text in (0, 'fence-free'), (1, 'fenced'):
        yield f'from a section to a name, {text}', Machine([mover(), closer(), outliver()], hazards(fenced)), None

    # A claim: `used` covers the slot; the fence of the claim stands for the barrier that missed it.
    def claimed(register, *looked):
        return Machine([Thread('reader0', register, protect()), closer(), Thread('poller', [
            load('k', 'ck'), when('k', [looked, let('named', 0), when('u', names()),
                                        when('not named', [mark('safe'), ghost('freed', 1)])])])],
                       hazards(used=0))
    RMW = [add('used', 1), fence()]
    LOOK = load('u', 'used')
    yield 'a slot that is claimed late', claimed(RMW, START, GOAL, MODE, BARRIER, LOOK), None
    yield 'a slot that is claimed late, at once', claimed(RMW, START, GOAL, fence(), LOOK, when('u', [MODE, BARRIER])), None

    # A claim while the mode changes: the slot is made fence-free, fence, check again; the switch fences too.
    def claim_and_switch(again=True, fenced=True):
        follow = [load('m', 'of_new'), store('fenced', 'm'), fence(),
                  [load('m', 'of_new'), when('m', [store('fenced', 1)])] if again else []]
        switch = [store('of_new', 1), fence() if fenced else [], store('fenced', 1), membarrier(),
                  store('mode', FENCED)]
        return Machine([Thread('reader0', follow, protect()), closer(), Thread('switch', switch),
                        Thread('poller', poll())], {**hazards(), 'of_new': 0})
    yield 'a claim while the mode changes', claim_and_switch(), None

    # A name that moves up a row: the higher slot is written first, and checks go up (hazard_names.c).
    def moved_up(*threads, fenced=0, up=True):
        write = [store('name[1]', 1), store('name[0]', 2)]
        reader0 = [load('o', 'p'), when('o', [name(0), load('o', 'p'), when('o', [
            write if up else write[::-1], mark('moved'), check('not freed', UAF)])]), store('name[1]', 0)]
        return Machine([Thread('reader0', reader0), closer(), *threads], hazards(fenced))
    for fenced, text in (0, 'fence-free'), (1, 'fenced'):
        yield f'a name moves up, {text}', moved_up(poller(slots=(0, 1)), fenced=fenced), None
        yield f'a grace period follows a name up, {text}', moved_up(
            Thread('driver', round_(slots=(0, 1), follow=True)), fenced=fenced), None

    # A record whose thread has ended with a slot out (-1, or -2 in its next life: hazard_slots.c). Two threads see the last
    # slot back, and a third claims the record, gives a slot away, and ends.
    def orphan(next_life):
        empty = [load('t', 'thread'), when('t < 0', [load('m', 'movable'), load('r', 'returned'), when('m == 0 or r == m', [
            cas('thread', 't', 0)])])]
        claim = [cas('thread', 0, 7, 'mine'), when('mine', [store('movable', 0), store('returned', 0), store('movable', 1),
                                                           fence(), ghost('out', 1), store('thread', next_life), fence()])]
        return Machine([Thread('A', empty), Thread('B', empty), Thread('owner', claim)],
                       {**hazards(), 'thread': -1, 'movable': 1, 'returned': 1, 'out': 0}, HELD)
    yield 'a record is free once in each of its lives', orphan(-2), None
    yield 'mutant: every life of an orphan looks the same', orphan(-1), re.escape(HELD)

    def broken(text, *threads, fenced=0, **more):
        return 'mutant: ' + text, Machine([*threads], hazards(fenced, **more)), UAF
    yield broken('the link is not looked at again', reader(again=False), closer(), poller())
    yield broken('the link is looked at before the name is there', reader(first=True), closer(), poller())
    yield broken('no barrier', reader(), closer(), poller(barrier=False))
    yield broken('the names are looked at before the barrier', reader(), closer(), poller(look_first=True))
    yield broken('one slot of two is looked at', reader(0), reader(1), closer(), poller())
    yield broken('the slot is asked for its mode before the name is there', reader(early=True), closer(), poller(),
                 Thread('switch', to_fenced))
    yield broken('to fenced without a membarrier', reader(), closer(), poller(),
                 Thread('switch', [store('fenced', 1), store('mode', FENCED)]))
    yield broken('to fence-free, readers first', reader(), closer(), poller(),
                 Thread('switch', to_free[::-1]), fenced=1)
    yield broken('a barrier of one grace period before the cookie serves', reader(), closer(),
                 poller('A', slack=1), Thread('starter', START))
    yield broken('the barrier is remembered before it is made', reader(), closer(), poller('A', early=True),
                 poller('B', early=True))
    yield broken('no fence before the cookie', reader(), closer(fenced=False), poller(request=[]), driver())
    yield broken('a grace period without a barrier', reader(), closer(), driver(barrier=False))
    yield ('mutant: a claim without a fence, used looked at before the barrier', claimed(
        [store('used', 1)], START, GOAL, LOOK, MODE, BARRIER), UAF)
    yield ('mutant: a claim does not look at the mode again', claim_and_switch(again=False), UAF)
    yield broken('names are looked at before the section is over', mover(), closer(), outliver(names_first=True))
    yield broken('the section is left before the name is there', mover(leaves_first=True), closer(), outliver())
    yield 'mutant: looks at a row go down', moved_up(poller(slots=(1, 0))), UAF
    yield 'mutant: the lower slot of a row is written first', moved_up(poller(slots=(0, 1)), up=False), UAF
    yield 'mutant: a grace period does not follow a name up', moved_up(Thread('driver', round_(slots=(0, 1)))), UAF
    # Two slots, one copied from the other: the rule in <prudence/hazard.h> that forbids it.
    copied = [name(0), load('o', 'p'), when('o', [store('name[1]', 1), store('name[0]', 0), mark('copied'),
                                                 check('not freed', UAF)]), store('name[1]', 0)]
    yield ('mutant: protected because another slot does', Machine(
        [Thread('reader0', copied), closer(), poller(slots=(1, 0))], hazards()), UAF)


if __name__ == '__main__':
    sys.exit(suite(cases(), long=True))
