#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Read sections in signal handlers: sequence and nesting depth in one word.

A thread enters a section, uses protected objects, and leaves.  Signals arrive
before any of its instructions (and of the handlers', so handlers nest too);
each handler has a read section of its own.  The global sequence advances when a
signal arrives, or does not: both are tried.  At every instruction boundary a
scanner may read the published word; it must find every section that is
entered and does not end yet protected: a sequence is published, and it is not
newer than the global one was when that section had been entered.
"""
import sys
from itertools import combinations_with_replacement, product

MASK, SHIFT = 0xffff, 16


# An instruction is a function of (g, l): the thread's words, a frame's registers.
def word_load(g, l):
    l['w'] = g['word']


def seq_load(g, l):
    l['s'] = g['seq']


def fresh(l):
    return l['s'] << SHIFT | 1


def packed():
    def enter(g, l):
        g['word'] = l['w'] + 1 if l['w'] else fresh(l)

    def leave(g, l):
        g['word'] = 0 if l['w'] & MASK == 1 else l['w'] - 1
    return [word_load, seq_load, enter], [word_load, leave]


def packed_sequence_first():
    enter, leave = packed()
    return [enter[1], enter[0], enter[2]], leave


def refreshed():
    """Mutant: a nested entry publishes the newer sequence."""
    def enter(g, l):
        g['word'] = l['s'] << SHIFT | (l['w'] & MASK) + 1
    return [word_load, seq_load, enter], packed()[1]


def cleared():
    """Mutant: every exit clears the word."""
    def leave(g, l):
        g['word'] = 0
    return packed()[0], [leave]


def two_stores():
    """Mutant: one word, but written in two steps."""
    def sequence(g, l):
        if not l['w']:
            g['word'] = l['s'] << SHIFT

    def depth(g, l):
        g['word'] += 1
    return [word_load, seq_load, sequence, depth], packed()[1]


def separate(nest_first, unnest_first):
    """Mutants: depth and sequence in words of their own, in every order."""
    def depth_load(g, l):
        l['n'] = g['nest']

    def nest(g, l):
        g['nest'] = l['n'] + 1

    def publish(g, l):
        if l['n'] == 0:
            g['word'] = l['s'] << SHIFT

    def unnest(g, l):
        g['nest'] = l['n'] - 1

    def unpublish(g, l):
        if l['n'] == 1:
            g['word'] = 0
    return ([depth_load, seq_load] + ([nest, publish] if nest_first else [publish, nest]),
            [depth_load] + ([unnest, unpublish] if unnest_first else [unpublish, unnest]))


def run(enter, leave, signals):
    """Executes one schedule; the faults found.  signals: {step: advance by}."""
    g, faults, clock, limits = {'word': 0, 'nest': 0, 'seq': 1}, [], [0], []
    arrivals = list(signals)

    def boundary():
        published = g['word'] >> SHIFT
        for limit in limits:
            if not published:
                faults.append('unprotected')
            elif published > limit:
                faults.append('sequence too new')
        while arrivals and arrivals[0][0] <= clock[0]:
            g['seq'] += arrivals.pop(0)[1]
            frame()

    def frame():
        regs = {}
        for op in enter:
            boundary()
            op(g, regs)
            clock[0] += 1
        limits.append(g['seq'])
        boundary()                      # the section's body: one instruction
        clock[0] += 1
        boundary()
        limits.pop()
        for i, op in enumerate(leave):
            if i:
                boundary()
            op(g, regs)
            clock[0] += 1
        boundary()

    frame()
    if g['word'] or g['nest']:
        faults.append('left published')
    return faults


def explore(make, signals=3):
    enter, leave = make
    steps = (len(enter) + len(leave) + 2) * (signals + 1)
    runs, faults = 0, set()
    for n in range(signals + 1):
        for at in combinations_with_replacement(range(steps), n):
            for by in product((0, 1), repeat=n):
                runs += 1
                faults.update(run(enter, leave, zip(at, by)))
    return runs, faults


CASES = [
    ('one word, one store', packed(), None),
    ('one word, sequence loaded first', packed_sequence_first(), None),
    ('mutant: one word, two stores', two_stores(), 'unprotected'),
    ('mutant: nested entry refreshes the sequence', refreshed(), 'sequence too new'),
    ('mutant: every exit clears the word', cleared(), 'unprotected'),
] + [(f'mutant: two words, {"depth" if a else "sequence"} first on entry, '
      f'{"depth" if b else "sequence"} first on exit', separate(a, b), 'unprotected')
     for a in (True, False) for b in (True, False)]


def main():
    failed = 0
    for name, make, expected in CASES:
        runs, faults = explore(make, 3 if expected is None else 2)
        good = expected in faults if expected else not faults
        failed |= not good
        verdict = 'violation: ' + ', '.join(sorted(faults)) if faults else 'holds'
        print(f'| {name} | {verdict} | {runs:,} | |' if '--table' in sys.argv else
              f'{"ok  " if good else "FAIL"} {name}: {verdict} ({runs:,} schedules)')
    return int(failed)


if __name__ == '__main__':
    sys.exit(main())
