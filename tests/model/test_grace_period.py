#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The grace period protocol: reader entry, cookie, driver, mode switch, re-scan.

Shared words: seq, the global sequence; word[i], reader i's own word (0: idle);
done, the completed sequence; mode; fgoal, the greatest goal whose barrier is
over (`fenced_goal`).  p = 1 while the object can be reached; ck is its cookie,
0 before it has one; freed is the observer's.  A case holds if no reader uses a
freed object in any execution.
"""
import os
import sys
from tso import (IDLE, Machine, Thread, add, cas, cas_max, check, fence, fence_if, ghost,
                 jump_if, let, load, mark, membarrier, membarrier_rseq, section,
                 store, suite, when)

FREE, SWITCHING, FENCED = 0, 1, 2
UAF = 'freed object in use'


def memory(**more):
    return {'seq': 1, 'done': 1, 'word': [0, 0], 'p': 1, 'ck': 0, 'freed': 0,
            'mode': FREE, 'fgoal': 1, **more}


# ------------------------------------------------------------------ readers
def enter(i, early_mode=False):
    mode = [load('md', 'mode')]
    publish = [load('s', 'seq'), store(f'word[{i}]', 's')]
    return [mode + publish if early_mode else publish + mode, fence_if('md % 4 != 0')]


def read(i, p='p', freed='freed', **kw):
    return [enter(i, **kw), load('o', p),
            when('o', [check(f'not {freed}', UAF)]), store(f'word[{i}]', 0)]


def reader(i=0, sections=1, **kw):
    return Thread(f'reader{i}', [read(i, **kw) for _ in range(sections)])


# ------------------------------------------------------------------ cookies
def close(fenced=True, plus=1, p='p', ck='ck'):
    """Unlink, close, take the cookie."""
    return [store(p, 0), fence() if fenced else [], load('c', 'seq'),
            store(ck, f'c + {plus}')]


def closer(**kw):
    return Thread('closer', close(**kw))


# ------------------------------------------------------------------ drivers
START = [load('q', 'seq'), cas('seq', 'q', 'q + 1')]
GOAL = [load('goal', 'seq')]


def scan(readers=(0,), ignore=False, goal='goal'):
    """completed = max(completed, min(goal, the readers' words))."""
    return [let('low', goal), [[load('w', f'word[{i}]'),
            let('low', 'low if w == 0 else min(low, w)')] for i in readers],
            cas_max('done', goal if ignore else 'low')]


def reclaim(ck='ck', freed='freed', slack=0):
    return [load('k', ck), load('d', 'done'), when(f'k and k <= d + {slack}', [ghost(freed, 1)])]


MODE = [load('md', 'mode')]
# After the goal comes a membarrier, except in the stable fenced mode.
BARRIER = when(f'md % 4 == {FENCED}', [fence()], [membarrier()])


def driver(name='driver', rounds=1, readers=(0,), ignore=False,
           order=(GOAL, MODE, BARRIER), slack=0):
    return Thread(name, [[START, order, scan(readers, ignore), reclaim(slack=slack)]
                         for _ in range(rounds)])


def flipper(*states):
    return Thread('flipper', [store('mode', s) for s in states])


def basic():
    G_LAST, M_FIRST = (MODE, BARRIER, GOAL), (MODE, GOAL, BARRIER)
    yield 'one driver, fence-free', Machine(
        [reader(sections=2), closer(), driver(rounds=2)], memory()), None
    yield 'one driver, fenced', Machine(
        [reader(sections=2), closer(), driver(rounds=2)], memory(mode=FENCED)), None
    yield 'two drivers, fence-free', Machine(
        [reader(), closer(), driver('A'), driver('B')], memory()), None
    yield 'two drivers, fenced', Machine(
        [reader(), closer(), driver('A'), driver('B')], memory(mode=FENCED)), None
    yield 'two readers, fence-free', Machine(
        [reader(0), reader(1), closer(), driver(readers=(0, 1))], memory()), None
    yield 'mutant: no fence before the cookie is loaded', Machine(
        [reader(), closer(fenced=False), driver()], memory()), UAF
    yield 'mutant: cookie = sequence, not + 1', Machine(
        [reader(), closer(plus=0), driver()], memory()), UAF
    yield 'mutant: completed = goal, whoever reads', Machine(
        [reader(), closer(), driver(ignore=True)], memory()), UAF
    yield 'mutant: goal after the membarrier', Machine(
        [reader(), closer(), driver('A', order=G_LAST), driver('B', order=G_LAST)],
        memory()), UAF
    yield 'mutant: no barrier', Machine(
        [reader(), closer(), driver(order=GOAL)], memory()), UAF
    yield 'mutant: poll off by one', Machine(
        [reader(), closer(), driver(slack=1)], memory()), UAF
    yield 'mutant: goal from the old value, before the start', Machine(
        [reader(), Thread('A', close(), START, let('goal', 'q'), MODE, BARRIER, scan(),
                          reclaim())], memory()), IDLE
    yield 'mutant: mode read before the goal', Machine(
        [reader(), closer(), driver('A', order=M_FIRST), driver('B', order=M_FIRST),
         flipper(FREE)], memory(mode=FENCED)), UAF


# ------------------------------------------------------------- mode switches
def switch(states=(SWITCHING, None, FENCED), fenced=True):
    """To fenced: set the mode, membarrier (None), only then let drivers skip it."""
    return [store('mode', x) if x is not None else membarrier() if fenced else []
            for x in states]


def gp():
    return [START, GOAL, MODE, BARRIER, scan(), reclaim()]


def adaptive(to_fenced, back=True):
    """The driver that switches: to fenced, a GP, back to fence-free, a GP."""
    return Thread('adaptive', to_fenced, gp(),
                  [store('mode', FREE), gp()] if back else [])


def switches():
    plain = driver('B')
    yield 'to fenced and back, adaptive driver', Machine(
        [reader(sections=2), closer(), adaptive(switch())], memory()), None
    yield 'to fenced, adaptive driver and another', Machine(
        [reader(), closer(), adaptive(switch(), back=False), plain], memory()), None
    yield 'to fence-free under two drivers', Machine(
        [reader(), closer(), driver('A'), plain, flipper(FREE)],
        memory(mode=FENCED)), None
    yield 'to fenced: its membarrier serves the goal loaded before it', Machine(
        [reader(sections=2), closer(), Thread('B', START),
         Thread('adaptive', START, GOAL, switch(), scan(), reclaim())], memory()), None
    def given_up(*steps):
        return Machine([reader(), closer(), Thread('B', START), Thread(
            'adaptive', START, store('mode', SWITCHING), membarrier(), steps,
            scan(), reclaim())], memory())
    yield 'to fenced, goal loaded behind its membarrier, then given up', \
        given_up(GOAL, store('mode', FREE)), None
    yield 'mutant: to fenced, given up before the goal is loaded', \
        given_up(store('mode', FREE), GOAL), UAF
    yield 'mutant: to fenced without the membarrier', Machine(
        [reader(), closer(), adaptive(switch(fenced=False))], memory()), UAF
    yield 'mutant: no SWITCHING state, another driver skips too early', Machine(
        [reader(), closer(), plain, Thread('switcher', switch((FENCED, None)))],
        memory()), UAF
    yield 'mutant: reader tests the mode before it publishes', Machine(
        [reader(early_mode=True), closer(), adaptive(switch(), back=False)],
        memory()), UAF
    # Two switchers: the first one's membarrier must not vouch for a later switch.
    # The mode word is state + 4 * version; only a new SWITCHING is a new version.
    again = [load('x', 'mode'),
             when('x == 1', [store('mode', FREE), cas('mode', FREE, SWITCHING)])]
    yield 'mutant: two switchers, no version in the mode word', Machine(
        [reader(), closer(), Thread('switcher', again),
         Thread('adaptive', store('mode', SWITCHING), membarrier('reader0'),
                cas('mode', SWITCHING, FENCED), gp())], memory()), UAF
    again = [load('x', 'mode'), when('x == 1', [
        cas('mode', 'x', 4), cas('mode', 4, 5), mark('switched back and forth')])]
    yield 'two switchers, versioned mode word', Machine(
        [reader(), closer(), Thread('switcher', again),
         Thread('adaptive', store('mode', 1), membarrier('reader0'),
                cas('mode', 1, 2), gp())], memory()), None


# ----------------------------------------------- re-scan without a membarrier
def rescan(start=True, slack=0, early=False, reload=False, mode_first=False,
           words_first=False, goal='goal', note=False, crossed=None):
    """A driver that skips the barrier if fgoal covers its goal."""
    raise_it = cas_max('fgoal', 'goal')
    words = scan()[1:-1]
    return [START if start else [], MODE if mode_first else [], GOAL,
            words_first and [let('low', 'goal'), words] or [],
            load('f', 'fgoal'),
            when(f'f < goal - {slack}',
                 [[] if mode_first else MODE, raise_it if early else [], BARRIER,
                  [] if early else raise_it,
                  [ghost('was', 'md + 1')] if note else [],
                  let('low', 'goal'), words],
                 [mark('barrier skipped'),
                  [load('k', 'was'), load('x', 'mode'), when(
                      f'k == {crossed} + 1 and x != {crossed}',
                      [mark('barrier skipped across a flip')])]
                  if crossed is not None else [], GOAL if reload else [],
                  [] if words_first else [let('low', goal), words]]),
            cas_max('done', 'low'), reclaim()]


def rescans():
    def pair(mem, *more, a=None, crossed=None, **kw):
        return Machine([reader(), closer(), Thread('A', a or rescan(note=crossed is not None,
                                                           **kw)),
                        Thread('B', rescan(start=False, crossed=crossed, **kw)), *more],
                       {**mem, 'was': 0})
    yield 're-scan, fence-free', pair(memory()), None
    yield 're-scan with fgoal as the goal, fence-free', pair(memory(), goal='f'), None
    yield 're-scan, fenced', pair(memory(mode=FENCED)), None
    # `crossed`: the run must contain a skip that rests on a barrier of that mode
    # after the mode has changed.
    yield 're-scan, fence-free to fenced', pair(
        memory(), a=[rescan(note=True), switch()], crossed=FREE), None
    yield 're-scan, fenced to fence-free', pair(
        memory(mode=FENCED), flipper(FREE), crossed=FENCED), None
    yield 're-scan, fenced to fence-free and back', pair(
        memory(mode=FENCED), crossed=FENCED,
        a=[rescan(note=True), store('mode', FREE), switch()]), None
    if '--deep' in sys.argv or os.environ.get('PRUDENCE_MODELS') == 'deep':
        yield 're-scan, fence-free to fenced, switcher on its own', pair(
            memory(), Thread('switcher', switch()), crossed=FREE), None
        yield 're-scan, fenced to fence-free and back, switcher on its own', pair(
            memory(mode=FENCED), Thread('switcher', store('mode', FREE), switch()),
            crossed=FENCED), None
    yield 'mutant: re-scan, fgoal raised before the barrier', pair(
        memory(), early=True), UAF
    yield 'mutant: re-scan, fgoal one behind the goal', pair(memory(), slack=1), UAF
    yield 'mutant: re-scan, goal loaded again after the test', pair(
        memory(), reload=True), UAF
    yield 'mutant: re-scan, words read before fgoal', pair(
        memory(), words_first=True), UAF
    yield 'mutant: re-scan across a flip, mode read before the goal', Machine(
        [reader(), closer(), Thread('A', rescan(mode_first=True)),
         Thread('starter', START), flipper(FREE)], memory(mode=FENCED)), UAF


# ---------------------------------------------------------- late registration
def registrations():
    """`used` is the high-water mark of the readers' slots, 0 at first."""
    RMW, PLAIN = [add('used', 1), fence()], [store('used', 1)]
    LOOK = load('u', 'used')
    one = [let('low', 'goal'), when('u', scan()[1:-1]), cas_max('done', 'low'), reclaim()]

    def machine(register, *gp, mode=FREE):
        return Machine([Thread('reader', register, read(0)), closer(),
                        Thread('A', START, gp, one), Thread('B', START)],
                       memory(mode=mode, used=0))
    for mode, text in (FREE, 'fence-free'), (FENCED, 'fenced'):
        yield f'late reader: RMW + fence, used after the barrier, {text}', machine(
            RMW, GOAL, MODE, BARRIER, LOOK, mode=mode), None
    yield 'late reader: no fence, used after the barrier, fence-free', machine(
        PLAIN, GOAL, MODE, BARRIER, LOOK), None
    yield 'late reader: no fence, used after the barrier, fenced', machine(
        PLAIN, GOAL, MODE, BARRIER, LOOK, mode=FENCED), None
    yield 'late reader: RMW + fence, used between goal and barrier', machine(
        RMW, GOAL, LOOK, MODE, BARRIER), None
    def skipping(before):
        """B skips the barrier on A's fgoal, and reads `used` before or after."""
        return Machine([Thread('reader', PLAIN, read(0)), closer(),
                        Thread('A', START, GOAL, membarrier(), cas_max('fgoal', 'goal')),
                        Thread('B', GOAL, LOOK if before else [], load('f', 'fgoal'),
                               when('f >= goal', [[] if before else LOOK, one]))],
                       memory(used=0))
    yield 'late reader: no fence, re-scan with used after fgoal', skipping(False), None
    yield 'mutant: late reader, no fence, re-scan with used before fgoal', \
        skipping(True), UAF
    yield 'mutant: late reader, no fence, used before the barrier', machine(
        PLAIN, GOAL, LOOK, MODE, BARRIER), UAF
    yield 'mutant: late reader, RMW + fence, used before the goal', machine(
        RMW, LOOK, GOAL, MODE, BARRIER), UAF


# ------------------------------------------------------------------- at once
def at_once():
    """gp_try: begins and ends a grace period without a membarrier. It checks the readers' slots (`used`: reader 0 is
    registered), and where they fence at their words instead. The object is closed by the same thread, or by another."""
    REGISTER = [add('used', 1), fence()]
    CLAIMED = [load('u', 'used'), let('inside', 'u')]
    WORDS = [load('w', 'word[0]'), let('inside', 'w')]
    FREE_MODE = [load('md', 'mode'), let('inside', f'md % 4 != {FENCED}')]
    FENCED_WORDS = [FREE_MODE, when('not inside', WORDS)]

    def attempt(look, goal=(GOAL, fence()), end=cas_max('done', 'goal')):
        return [START, goal, look, when('not inside', [end, mark('at once'), reclaim()])]

    def late(goal=(GOAL, fence()), look=CLAIMED, register=REGISTER, mode=FREE):
        return Machine([Thread('reader', register, read(0)), closer(), Thread('A', attempt(look, goal)),
                        Thread('B', START)], memory(used=0, mode=mode))

    def outside(look=FENCED_WORDS, *more, mode=FENCED, own=False, sections=1, **kw):
        return Machine([reader(sections=sections), *([] if own else [closer()]),
                        Thread('A', close() if own else [], attempt(look, **kw)), *more], memory(mode=mode))
    yield 'at once: a reader that registers late', late(), None
    yield 'at once: readers that fence', outside(sections=2, own=True), None
    yield 'at once: readers that fence, another closes', outside(), None
    yield 'at once: with a driver', outside(FENCED_WORDS, driver('B'), own=True), None
    yield 'at once: during a switch to fence-free', outside(
        FENCED_WORDS, flipper(FREE), Thread('B', START)), None
    yield 'mutant: at once, registered without a fence', late(register=store('used', 1)), UAF
    yield 'mutant: at once, slots before the goal', late(goal=(CLAIMED, GOAL, fence()), look=[]), UAF
    yield 'mutant: at once, readers that do not fence', outside(WORDS, mode=FREE, own=True), UAF
    yield 'mutant: at once, a registered reader is not seen', outside(let('inside', 0), own=True), UAF
    yield 'mutant: at once, mode read before the goal', outside(
        when('not inside', WORDS), flipper(FREE), Thread('B', START),
        goal=(FREE_MODE, GOAL, fence())), UAF

    def twice(begin):
        """Two objects, one after the other: the second's cookie must not be over already."""
        rounds = [[store(f'p[{i}]', 0), fence(), load('c', 'seq'), begin, let('goal', 'c + 1'), fence(), WORDS,
                   when('not inside', cas_max('done', 'goal')), load('d', 'done'),
                   when('goal <= d', ghost(f'freed[{i}]', 1))] for i in (0, 1)]
        look = [enter(0), load('o', 'p[1]'), when('o', [check('not freed[1]', UAF)]),
                store('word[0]', 0)]
        return Machine([Thread('reader', look), Thread('writer', rounds)],
                       memory(mode=FENCED, p=[1, 1], freed=[0, 0]))
    yield 'at once: two after each other', twice(START), None
    yield 'mutant: at once, completed and not begun', twice([]), UAF


# ---------------------------------------------------------------- latent slab
def latent_slabs():
    """Two objects of one slab, deferred one after the other; bit i is object i."""
    both = [enter(0), [[load('o', f'p[{i}]'), when('o', [check(f'not freed[{i}]', UAF)])]
                       for i in (0, 1)], store('word[0]', 0)]

    def free(bits):
        return [when(f'{bits} & {1 << i}', [ghost(f'freed[{i}]', 1)]) for i in (0, 1)]

    def merge(fenced=True, all_bits=False):
        """Merge `waiting` when safe; then `next` becomes `waiting`."""
        return [load('d', 'done'),
                when('wait and ck <= d',
                     [free('(wait | nxt)' if all_bits else 'wait'), let('wait', 0),
                      let('nxt', 0) if all_bits else []]),
                when('not wait and nxt',
                     [let('wait', 'nxt'), let('nxt', 0), fence() if fenced else [],
                      load('c', 'seq'), let('ck', 'c + 1')])]

    def defer(i, one_cookie=False, **kw):
        bit = 1 << i
        if one_cookie:
            return [store(f'p[{i}]', 0), fence(),
                    when('wait', [let('wait', f'wait | {bit}')],
                         [let('wait', bit), load('c', 'seq'), let('ck', 'c + 1')])]
        return [store(f'p[{i}]', 0), let('nxt', f'nxt | {bit}'), merge(**kw)]

    def machine(**kw):
        polls = {k: v for k, v in kw.items() if k != 'one_cookie'}
        return Machine([Thread('reader', both),
                        Thread('driver', [[START, GOAL, membarrier(), scan()]] * 2),
                        Thread('deferrer', let('wait', 0), let('nxt', 0), let('ck', 0),
                               defer(0, **kw), defer(1, **kw), merge(**polls),
                               merge(**polls))],
                       memory(p=[1, 1], freed=[0, 0]))
    yield 'latent slab, two bitmaps', machine(), None
    yield 'mutant: latent slab, one cookie kept', machine(one_cookie=True), UAF
    yield 'mutant: latent slab, no fence before the cookie', machine(fenced=False), UAF
    yield 'mutant: latent slab, next merged with waiting', machine(all_bits=True), UAF

    def visit(n, bit=0, early=False):
        """A holding of the node lock; the books are in memory."""
        take = [load('c', 'seq')]
        return [take if early else [],
                f'spin{n}', cas('lock', 0, 1, 'got'), jump_if('not got', f'spin{n}'),
                load('w', 'wait'), load('x', 'nxt'), load('d', 'done'), load('k', 'ck'),
                let('x', f'x | {bit}'),
                when('w and k <= d', [free('w'), let('w', 0)]),
                when('not w and x', [[] if early else [fence(), take], let('w', 'x'),
                                     let('x', 0), store('ck', 'c + 1')]),
                store('wait', 'w'), store('nxt', 'x'), store('lock', 0)]

    def two(early):
        look = [enter(0), load('o', 'p[1]'), when('o', [check('not freed[1]', UAF)]),
                store('word[0]', 0)]
        return Machine([Thread('reader', look),
                        Thread('X', visit(0, 1), visit(1, early=early)),
                        Thread('Y', store('p[1]', 0), visit(0, 2), visit(1)),
                        Thread('driver', [[START, GOAL, membarrier('reader'), scan()]
                                          for _ in range(2)])],
                       memory(p=[0, 1], freed=[0, 0], lock=0, wait=0, nxt=0))
    yield 'latent slab, two threads under the node lock', two(False), None
    yield 'mutant: latent slab, cookie loaded before the lock', two(True), UAF


# ---------------------------------------------------------------- local close
def local_closes():
    """Two threads of one CPU share its batch: object 1 is unlinked and pushed by one,
    object 0 is there from the start; the other owns the CPU's line and closes."""
    push = [store('p', 0), 'again', section(
        'again', load('o', 'owner'), jump_if('o', 'busy'), load('n', 'n'),
        store('slot[n]', 1), store('n', 'n + 1')), mark('pushed'), 'busy']

    def close_local(early):
        cookie = [fence(), load('c', 'seq')]
        return [cookie if early else [], 'take',
                section('take', load('o', 'owner'), jump_if('o', 'no'), store('owner', 5)),
                load('n', 'n'), let('x', -1), let('y', -1),
                when('n > 0', [load('x', 'slot[0]')]), when('n > 1', [load('y', 'slot[1]')]),
                store('n', 0), [] if early else cookie,
                when('x == 1 or y == 1', [store('ck', 'c + 1')]), store('owner', 0), 'no']

    def machine(early=False):
        return Machine(
            [Thread('pusher', push, cpu=0), Thread('closer', close_local(early), cpu=0),
             reader(), Thread('driver', START, GOAL, membarrier('reader0'), scan(), reclaim())],
            memory(owner=0, n=1, slot=[0, 0]))
    yield 'local close of a batch that two threads push to', machine(), None
    yield 'mutant: local close, cookie before detach', machine(early=True), UAF


# --------------------------------------------------------------- remote close
def remote_closes():
    """Pusher on CPU 0 (restartable section), closed by another CPU.  Object 0 is
    in the batch from the start; the pusher unlinks and defers object 1."""
    push = [store('p', 0), 'again', section(
        'again', load('o', 'owner'), jump_if('o', 'busy'), load('n', 'n'),
        store('slot[n]', 1), store('n', 'n + 1')), mark('pushed'), 'busy']

    def close_remote(own, fence_cpu, early):
        cookie = [fence(), load('c', 'seq')]
        return [cookie if early == 'before owning' else [],
                cas('owner', 0, 1) if own else [], membarrier_rseq(0) if fence_cpu else [],
                cookie if early == 'owned' else [],
                load('n', 'n'), let('x', -1), let('y', -1),
                when('n > 0', [load('x', 'slot[0]')]), when('n > 1', [load('y', 'slot[1]')]),
                store('n', 0), [] if early else cookie,
                [when(f'{v} >= 0', [check(f'not closed[{v}]', 'object in two batches'),
                                    ghost(f'closed[{v}]', 1)]) for v in 'xy'],
                when('x == 1 or y == 1', [store('ck', 'c + 1')]), store('owner', 0)]

    def machine(own=True, fence_cpu=True, early=None, times=2, rounds=1):
        return Machine(
            [Thread('pusher', push), reader(),
             Thread('closer', [close_remote(own, fence_cpu, early) for _ in range(times)]),
             Thread('driver', [[START, GOAL, membarrier('reader0'), scan(), reclaim()]
                               for _ in range(rounds)])],
            memory(owner=0, n=1, slot=[0, 0], closed=[0, 0]))
    yield 'remote close, twice', machine(), None
    yield 'remote close, cookie once the CPU is owned and fenced', machine(
        early='owned'), None
    yield 'mutant: remote close, cookie before the CPU is owned', machine(
        early='before owning', times=1), UAF
    yield 'mutant: remote close, CPU not fenced', machine(fence_cpu=False), 'two batches'
    yield 'mutant: remote close, CPU fenced but not owned', machine(own=False), \
        'two batches'


def main():
    return suite((case for part in (basic, switches, rescans, registrations, at_once,
                                    latent_slabs, local_closes, remote_closes) for case in part()), long=True)


if __name__ == '__main__':
    sys.exit(main())
