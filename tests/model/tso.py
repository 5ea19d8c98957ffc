#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An exhaustive explorer of x86-TSO with membarrier, rseq and a scheduler.

A *machine* is a set of threads on CPUs and a shared memory.  Every interleaving
of their operations, of the drains of the store buffers, and (where asked) of
preemption and migration is visited once; the search is breadth first, so the
trace of a violation is a shortest one, and two runs print the same.

The model
  * Each CPU has one FIFO store buffer.  A store enters the buffer of the CPU
    its thread runs on; its oldest entry may reach memory at any moment.  A load
    takes the newest entry of its own CPU's buffer, else memory.
  * fence, the atomic operations and a context switch need an empty buffer: the
    drains before them are explored one by one.
  * membarrier is one IPI per target CPU, in order.  An IPI needs the buffer of
    the caller and of the target to be empty: that is the remote drain.
  * A restartable section is a range of operations whose last one is its commit.
    A thread whose next operation lies in the range is inside, and goes to the
    abort label when its CPU gets a membarrier_rseq, when it is switched out or
    migrated, or (`preempt`) at any moment.
  * Two threads on one CPU share its buffer; a switch changes which of them runs.

Programs are (nested) lists of the operations below; a bare string is a label.
Operands are ints or Python expressions in the thread's registers ('goal + 1').
A shared variable is named, 'slot[n - 1]' being an element of an array; memory
is given as {'seq': 1, 'slot': [0, 0]}.  `check`, `ghost` and `final` may read
shared memory directly: they are the observer, not the program, and see what has
reached memory.  `ghost` writes there at once, past the buffers: a free recorded
by it is the earliest one the hardware could perform.

The search stays small, and loses no behaviour, because operations that no other thread can
notice (register work, jumps, fences over an empty buffer, loads of a variable
that no other thread writes) run together with the operation before them, and
registers that are never read again are forgotten.

A case that is expected to hold must also have executed every `ghost` and `mark`
of its programs: a free that never happens proves nothing.
"""
import ast
import gc
import os
import re
import sys
import time
from collections import deque
from copy import copy
from itertools import count

_fresh = count()


# ---------------------------------------------------------------- operations
class Op:
    """An operation: kind, target register or variable, operands, target label."""
    __slots__ = ('kind', 'reg', 'var', 'a', 'b', 'to', 'text', 'abort', 'also')

    def __init__(self, kind, text, reg=None, var=None, a=None, b=None, to=None):
        self.kind, self.text, self.reg, self.var = kind, text, reg, var
        self.a, self.b, self.to, self.abort, self.also = a, b, to, None, None


def load(reg, var):
    return Op('load', f'{reg} = {var}', reg=reg, var=var)


def store(var, value, also=None):
    """also = (variable, value): a ghost recorded at the same moment."""
    op = Op('store', f'{var} = {value}', var=var, a=value)
    op.also = also
    return op


def fence():
    return Op('fence', 'fence', a=1)


def fence_if(cond):
    return Op('fence', f'fence if {cond}', a=cond)


def add(var, k, reg=None):
    """Atomic add; reg receives the new value."""
    return Op('add', f'add {var}, {k}', reg=reg, var=var, a=k)


def cas(var, old, new, reg=None):
    """Compare and swap; reg receives 1 or 0."""
    return Op('cas', f'cas {var}: {old} -> {new}', reg=reg, var=var, a=old, b=new)


def cas_max(var, value):
    """The usual CAS loop, as one operation: var = max(var, value)."""
    return Op('max', f'{var} = max({var}, {value})', var=var, a=value)


def exchange(var, value, reg):
    return Op('xchg', f'{reg} = exchange {var}, {value}', reg=reg, var=var, a=value)


def let(reg, value):
    return Op('let', f'let {reg} = {value}', reg=reg, a=value)


def jump(label):
    return Op('jump', f'jump {label}', a=1, to=label)


def jump_if(cond, label):
    return Op('jump', f'jump {label} if {cond}', a=cond, to=label)


class When:
    """Structured form of jump_if; lists that hold one may be used repeatedly."""

    def __init__(self, cond, then, otherwise=()):
        self.cond, self.then, self.otherwise = cond, then, otherwise

    def expand(self):
        n = next(_fresh)
        out = [jump_if(f'not ({self.cond})', f'.else{n}'), self.then]
        if self.otherwise:
            out += [jump(f'.end{n}'), f'.else{n}', self.otherwise, f'.end{n}']
        else:
            out += [f'.else{n}']
        return out


when = When


def membarrier(*cpus):
    """Sends an IPI for each CPU named (default: every other thread's), in order."""
    return Op('membarrier', 'membarrier', a=cpus)


def membarrier_rseq(cpu):
    return Op('ipi_rseq', f'membarrier_rseq(cpu {cpu})', a=cpu)


def section(abort, *ops):
    """A restartable section; the last operation is its commit."""
    ops = [copy(x) for x in _flatten(ops)]
    for op in ops:
        if isinstance(op, Op):
            op.abort = abort
    return ops


def get_cpu(reg):
    return Op('cpu', f'{reg} = cpu id', reg=reg)


def check(cond, text):
    """The property: cond holds whenever this operation executes."""
    return Op('check', f'check: {text}', a=cond, b=text)


def ghost(var, value):
    return Op('ghost', f'({var} = {value})', var=var, a=value)


def mark(text):
    """Must be reached by some execution of a case that holds."""
    return Op('mark', f'mark: {text}')


def _flatten(items):
    for x in items:
        if isinstance(x, (list, tuple)):
            yield from _flatten(x)
        elif isinstance(x, When):
            yield from _flatten(x.expand())
        else:
            yield x


class Thread:
    """name, program, home CPU (default: one of its own), CPUs it may migrate to,
    and whether its sections may be aborted at any moment."""

    def __init__(self, name, *program, cpu=None, migrate=(), preempt=False):
        self.name, self.cpu, self.migrate = name, cpu, tuple(migrate)
        self.preempt, self.ops, self.labels = preempt, [], {}
        for x in _flatten(program):
            if isinstance(x, str):
                if x in self.labels:
                    raise ValueError(f'{name}: label {x} twice')
                self.labels[x] = len(self.ops)
            else:
                self.ops.append(x)


# ---------------------------------------------------------------- assembling
class _Names(ast.NodeTransformer):
    """Turns names into r[i] (registers) or, where allowed, m[i] (memory)."""

    def __init__(self, regs, mem):
        self.regs, self.mem, self.used = regs, mem, set()

    def visit_Name(self, node):
        if node.id in self.regs:
            self.used.add(node.id)
            return ast.parse(f'r[{self.regs[node.id]}]', mode='eval').body
        if node.id in ('min', 'max', 'sum'):
            return node
        if self.mem is None or node.id not in self.mem:
            raise NameError(node.id)
        base, size = self.mem[node.id]
        return ast.parse(f'm[{base}]' if size is None else
                         f'm[{base}:{base + size}]', mode='eval').body


class Code:
    """A thread, compiled: op kinds and closures by pc."""

    def __init__(self, thread, where, cpu_of, cpus, reduce):
        self.name, self.labels = thread.name, thread.labels
        self.regs, self.where = {}, where
        self.ops, renumber, self.reduce = [], {}, reduce
        for pc, op in enumerate(thread.ops):
            renumber[pc] = len(self.ops)
            if op.kind != 'membarrier':
                self.ops.append(op)
                continue
            mine = cpu_of[thread.name]
            for c in ([cpu_of.get(x, x) for x in op.a] or
                      [c for c in range(cpus) if c != mine]):
                ipi = Op('ipi', f'membarrier: IPI to cpu {c}', a=c)
                ipi.abort = op.abort
                self.ops.append(ipi)
        renumber[len(thread.ops)] = self.end = len(self.ops)
        self.labels = {k: renumber[v] for k, v in thread.labels.items()}
        for op in self.ops:
            if op.reg is not None:
                self.regs.setdefault(op.reg, len(self.regs))
        self.abort = [self.labels[o.abort] if o.abort else None for o in self.ops] + [None]
        self.kind = [o.kind for o in self.ops] + ['end']
        self.uses = []
        self.fn = [self._compile(o) for o in self.ops]
        self.also = [o.also and self._also(*o.also, u) for o, u in zip(self.ops, self.uses)]
        self.to = [self.labels[o.to] if o.to else None for o in self.ops]
        self.reg = [self.regs[o.reg] if o.reg is not None else None for o in self.ops]
        self.dead = self._liveness()
        self.local = [False] * (self.end + 1)

    def _expr(self, text, observer, used):
        names = _Names(self.regs, self.where if observer else None)
        tree = names.visit(ast.parse(str(text), mode='eval'))
        used |= names.used
        return eval('lambda m, r: ' + ast.unparse(tree))

    def _address(self, var, observer, used):
        """An index into memory: a number, or a function of the registers."""
        name, _, index = var.partition('[')
        base, size = self.where[name]
        if not index:
            return base, None
        if index[:-1].isdigit():
            return base + int(index[:-1]), None
        f = self._expr(index[:-1], observer, used)
        return None, lambda m, r: base + f(m, r)

    def _compile(self, op):
        used, obs = set(), op.kind in ('check', 'ghost')
        var = self._address(op.var, obs, used) if op.var else (None, None)
        if op.kind in ('ipi', 'ipi_rseq', 'cpu', 'mark'):
            if op.kind == 'ipi_rseq':
                a = self._expr(op.a, False, used)
            else:
                a = op.a
            b = None
        else:
            a = None if op.a is None else self._expr(op.a, obs, used)
            b = None if op.b is None or op.kind == 'check' else self._expr(op.b, obs, used)
        self.uses.append(used)
        return var[0], var[1], a, b

    def _also(self, var, value, used):
        at, ix = self._address(var, True, used)
        return at, ix, self._expr(value, True, used)

    def succ(self, pc):
        out = [] if self.kind[pc] == 'jump' and self.ops[pc].a == 1 else [pc + 1]
        return out + [t for t in (self.to[pc], self.abort[pc]) if t is not None]

    def _liveness(self):
        """Registers to forget on arrival at each pc."""
        live = [set() for _ in range(self.end + 1)]
        changed = True
        while changed:
            changed = False
            for pc in reversed(range(self.end)):
                new = set().union(*(live[s] for s in self.succ(pc)))
                new.discard(self.ops[pc].reg)
                new |= self.uses[pc]
                if self.abort[pc] is not None:
                    new |= live[self.abort[pc]]
                if new != live[pc]:
                    live[pc], changed = new, True
        return [tuple(i for n, i in self.regs.items() if n not in s) for s in live]


# ---------------------------------------------------------------- exploring
class Violation(Exception):
    pass


class Machine:
    """threads, initial memory, and a condition (or a list) on every final memory."""

    def __init__(self, threads, memory, final=(), reduce=True):
        self.threads, self.memory = threads, memory
        self.names, mem, self.where = [], [], {}
        for name, v in memory.items():
            vals = v if isinstance(v, list) else [v]
            self.where[name] = (len(mem), len(vals) if isinstance(v, list) else None)
            self.names += [f'{name}[{i}]' for i in range(len(vals))] \
                if isinstance(v, list) else [name]
            mem += vals
        self.cpu0 = []
        for t in threads:
            self.cpu0.append(t.cpu if t.cpu is not None else
                             max(self.cpu0 + [x.cpu for x in threads
                                              if x.cpu is not None], default=-1) + 1)
        cpus = max(self.cpu0 + [c for t in threads for c in t.migrate]) + 1
        cpu_of = {t.name: c for t, c in zip(threads, self.cpu0)}
        self.codes = [Code(t, self.where, cpu_of, cpus, reduce) for t in threads]
        self.migrate = [t.migrate for t in threads]
        self.preempt = [t.preempt for t in threads]
        self.scheduled = len(set(self.cpu0)) < len(threads) or any(self.migrate)
        self.ncpu, self.mem0, self.reduce = cpus, tuple(mem), reduce
        self.finals = set()
        self.final = [(f, eval('lambda m, r: ' + ast.unparse(
            _Names({}, self.where).visit(ast.parse(f, mode='eval')))))
            for f in ([final] if isinstance(final, str) else final)]
        self._mark_local()
        self.covered = set()

    def _mark_local(self):
        """Operations that no other thread can notice, and that notice no other."""
        writers = {}
        for t, code in enumerate(self.codes):
            for op in code.ops:
                for var in ([op.var] if op.var and op.kind != 'load' else []) + \
                        ([op.also[0]] if op.also else []):
                    writers.setdefault(var.partition('[')[0], set()).add(t)
        for t, code in enumerate(self.codes):
            for pc, op in enumerate(code.ops):
                code.local[pc] = op.kind in ('let', 'jump', 'mark') or (
                    op.kind == 'load' and
                    not writers.get(op.var.partition('[')[0], set()) - {t})

    def settle(self, t, m, b, r, pc):
        """Runs the local operations from pc on; forgets dead registers."""
        code = self.codes[t]
        if not self.reduce:
            return r, pc
        local, kinds, fns = code.local, code.kind, code.fn
        for _ in range(1000):
            k = kinds[pc]
            if local[pc]:
                at, ix, a, _b = fns[pc]
                if k == 'jump':
                    pc = code.to[pc] if a(m, r) else pc + 1
                    continue
                if k == 'mark':
                    self.covered.add((t, code.ops[pc].text))
                else:
                    if k == 'let':
                        v = a(m, r)
                    else:
                        v = _read(m, b, at if ix is None else ix(m, r))
                    i = code.reg[pc]
                    r = r[:i] + (v,) + r[i + 1:]
                pc += 1
            elif k == 'fence' and (not b or not fns[pc][2](m, r)):
                pc += 1
            else:
                break
        else:
            raise RuntimeError(f'{code.name}: a loop of local operations')
        dead = code.dead[pc]
        if dead:
            r = list(r)
            for i in dead:
                r[i] = None
            r = tuple(r)
        return r, pc

    def initial(self):
        run = [-1] * self.ncpu
        for t in reversed(range(len(self.codes))):
            run[self.cpu0[t]] = t
        regs, pcs = [], []
        for t, code in enumerate(self.codes):
            r, pc = self.settle(t, self.mem0, (), (None,) * len(code.regs), 0)
            regs.append(r)
            pcs.append(pc)
        return (self.mem0, ((),) * self.ncpu, tuple(pcs), tuple(regs),
                tuple(run), tuple(self.cpu0))

    def _abort(self, t, m, pcs, regs):
        """Sends t to its abort label if it is inside a section."""
        to = self.codes[t].abort[pcs[t]]
        if to is None:
            return pcs, regs
        r, pc = self.settle(t, m, (), regs[t], to)
        return _put(pcs, t, pc), _put(regs, t, r)

    def step(self, s, t):
        """The state after t's next operation, or None if it is blocked."""
        m, bufs, pcs, regs, run, where = s
        code, pc, c = self.codes[t], pcs[t], where[t]
        k = code.kind[pc]
        if k == 'end':
            return None
        b, r = bufs[c], regs[t]
        at, ix, a, b2 = code.fn[pc]
        if ix is not None:
            at = ix(m, r)
        v, to = None, pc + 1
        if k == 'load':
            v = _read(m, b, at)
        elif k == 'store':
            b = b + ((at, a(m, r)),)
            if code.also[pc]:
                at, ix, a = code.also[pc]
                m = _put(m, at if ix is None else ix(m, r), a(m, r))
        elif k == 'check':
            if not a(m, r):
                raise Violation(code.ops[pc].b)
        elif k == 'ghost':
            m = _put(m, at, a(m, r))
            self.covered.add((t, code.ops[pc].text))
        elif k == 'cpu':
            v = c
        elif k == 'let':
            v = a(m, r)
        elif k == 'mark':
            self.covered.add((t, code.ops[pc].text))
        elif k == 'jump':
            to = code.to[pc] if a(m, r) else to
        elif k == 'fence' and not a(m, r):
            pass
        elif b:
            return None
        elif k == 'ipi' or k == 'ipi_rseq':
            target = a if k == 'ipi' else a(m, r)
            if bufs[target]:
                return None
            if k == 'ipi_rseq' and run[target] not in (-1, t):
                pcs, regs = self._abort(run[target], m, pcs, regs)
        elif k == 'cas':
            v = int(m[at] == a(m, r))
            if v:
                m = _put(m, at, b2(m, r))
        elif k == 'add':
            v = m[at] + a(m, r)
            m = _put(m, at, v)
        elif k == 'max':
            m = _put(m, at, max(m[at], a(m, r)))
        elif k == 'xchg':
            v = m[at]
            m = _put(m, at, a(m, r))
        i = code.reg[pc]
        if i is not None:
            r = r[:i] + (v,) + r[i + 1:]
        r, pc = self.settle(t, m, b, r, to)
        if b is not bufs[c]:
            bufs = _put(bufs, c, b)
        return (m, bufs, _put(pcs, t, pc), _put(regs, t, r), run, where)

    def drain(self, s, c):
        m, bufs, pcs, regs, run, where = s
        at, v = bufs[c][0]
        b, m = bufs[c][1:], _put(m, at, v)
        t = run[c]
        if not b and t >= 0 and self.codes[t].kind[pcs[t]] == 'fence':
            r, pc = self.settle(t, m, b, regs[t], pcs[t])
            pcs, regs = _put(pcs, t, pc), _put(regs, t, r)
        return (m, _put(bufs, c, b), pcs, regs, run, where)

    def schedule(self, s):
        """Context switches, migrations and spurious aborts: (state, text)."""
        m, bufs, pcs, regs, run, where = s
        for t, code in enumerate(self.codes):
            c = where[t]
            running = run[c] == t
            if self.preempt[t] and running and not bufs[c] and \
                    code.abort[pcs[t]] is not None:
                p, r = self._abort(t, m, pcs, regs)
                yield (m, bufs, p, r, run, where), f'{code.name} is preempted'
            if not self.scheduled or code.kind[pcs[t]] == 'end':
                continue
            if not running and not bufs[c]:
                p, r = (pcs, regs) if run[c] < 0 else self._abort(run[c], m, pcs, regs)
                yield (m, bufs, p, r, _put(run, c, t), where), f'cpu {c} switches to {code.name}'
            if running and bufs[c]:
                continue
            for c2 in self.migrate[t]:
                if c2 != c:
                    p, r, ru = pcs, regs, run
                    if running:
                        p, r = self._abort(t, m, pcs, regs)
                        ru = _put(run, c, -1)
                    yield (m, bufs, p, r, ru, _put(where, t, c2)), \
                        f'{code.name} migrates to cpu {c2}'

    def explore(self, limit=3_000_000):
        """(states, None), or (states, (reason, trace)) at the first violation."""
        gc.disable()  # nothing here is cyclic, and it would search all states again and again
        states = _States(self)
        start = states.pack(self.initial())
        parent = {start: None}
        queue = deque([start])
        moving = self.scheduled or any(self.preempt)
        ends = tuple(code.end for code in self.codes)
        while queue:
            s = queue.popleft()
            moved = False
            for c in states.draining(s):
                n = states.drain(s, c)
                moved = True
                if n not in parent:
                    parent[n] = (s, c, 'drain')
                    queue.append(n)
            for t, c in states.running[s[1]]:
                try:
                    n = states.step(s, t, c)
                except Violation as v:
                    trace = self.trace(states, parent, s)
                    trace.append(f'{self.codes[t].name}: VIOLATION: {v}')
                    return len(parent), (str(v), trace)
                if n is not None:
                    moved = True
                    if n not in parent:
                        parent[n] = (s, t, 'step')
                        queue.append(n)
            if moving:
                for n, text in self.schedule(states.unpack(s)):
                    n = states.pack(n)
                    moved = True
                    if n not in parent:
                        parent[n] = (s, -1, text)
                        queue.append(n)
            if not moved:
                m, _, pcs, *_ = states.unpack(s)
                why = None if pcs == ends else 'stuck'
                self.finals.add(m)
                for text, f in self.final:
                    if not why and not f(m, ()):
                        why = f'at the end: {text}'
                if why:
                    return len(parent), (why, self.trace(states, parent, s) + [
                        f'VIOLATION: {why}', 'memory: ' + ', '.join(
                            f'{n}={v}' for n, v in zip(self.names, m))])
            if len(parent) > limit:
                raise RuntimeError(f'more than {limit} states')
        return len(parent), None

    def trace(self, states, parent, packed):
        """One line a step, with the value that a load or a store had."""
        out = []
        while parent[packed]:
            before, t, text = parent[packed]
            prev, s = states.unpack(before), states.unpack(packed)
            if text == 'drain':
                at, v = prev[1][t][0]
                text = f'cpu {t}: {self.names[at]}={v} reaches memory'
            elif text == 'step':
                code, pc = self.codes[t], prev[2][t]
                i, new, old = code.reg[pc], s[1][s[5][t]], prev[1][s[5][t]]
                val = s[3][t][i] if i is not None else \
                    new[-1][1] if len(new) > len(old) else None
                text = f'{code.name}: {code.ops[pc].text}' + \
                    (f'   [{val}]' if val is not None else '')
            out.append(text)
            packed = before
        return out[::-1]

    def uncovered(self):
        """ghost and mark operations that no execution reached."""
        return [f'{code.name}: {op.text}' for t, code in enumerate(self.codes)
                for pc, op in enumerate(code.ops)
                if op.kind in ('ghost', 'mark') and (t, op.text) not in self.covered]


class _Numbers(dict):
    """Numbers things as they come; `things` are those numbered."""

    def __init__(self):
        self.things = []

    def __missing__(self, thing):
        self[thing] = n = len(self.things)
        self.things.append(thing)
        return n


class _States:
    """States as tuples of small numbers: of the memory, of which thread runs where, of each CPU's buffer, of each
    thread (program counter and registers). What a step or a drain does depends on few of them, and is
    remembered by those: the same one is met in many states."""
    WHOLE = ()  # it must be worked out for each state

    def __init__(self, machine):
        self.machine, self.cpus = machine, range(machine.ncpu)
        self.memories, self.placings, self.threads = _Numbers(), _Numbers(), _Numbers()
        self.buffers = _Numbers()
        self.buffers[()]  # number 0
        self.first = 2 + machine.ncpu  # the first thread's place
        self.running = []  # of each placing: (thread, CPU), threads in order
        self.steps, self.drains = {}, {}

    def pack(self, s):
        m, bufs, pcs, regs, run, where = s
        placing = self.placings[run, where]
        if placing == len(self.running):
            self.running.append([(t, c) for t, c in enumerate(where) if run[c] == t])
        return (self.memories[m], placing, *[self.buffers[b] for b in bufs],
                *[self.threads[thread] for thread in zip(pcs, regs)])

    def unpack(self, s):
        run, where = self.placings.things[s[1]]
        threads = [self.threads.things[n] for n in s[self.first:]]
        return (self.memories.things[s[0]],
                tuple([self.buffers.things[n] for n in s[2:self.first]]),
                tuple([pc for pc, _ in threads]), tuple([r for _, r in threads]), run, where)

    def draining(self, s):
        return [c for c in self.cpus if s[2 + c]]

    def drain(self, s, c):
        """The state when the oldest entry of c's buffer has reached memory."""
        t = self.placings.things[s[1]][0][c]
        key = (c, t, s[0], s[2 + c], s[self.first + t] if t >= 0 else -1)
        move = self.drains.get(key)
        if move is None:
            m, bufs, pcs, regs, _, _ = self.machine.drain(self.unpack(s), c)
            move = self.drains[key] = (self.memories[m], self.buffers[bufs[c]],
                                       self.threads[pcs[t], regs[t]] if t >= 0 else -1)
        n = list(s)
        n[0], n[2 + c], thread = move
        if t >= 0:
            n[self.first + t] = thread
        return tuple(n)

    def step(self, s, t, c):
        """The state after the next operation of t, which runs on c, or None if it is blocked."""
        key = (t, c, s[0], s[2 + c], s[self.first + t])
        if key in self.steps:
            move = self.steps[key]
        else:
            move = self.steps[key] = self._learn(s, t, c)
        if move is None:
            return None
        if move is self.WHOLE:
            n = self.machine.step(self.unpack(s), t)
            return n and self.pack(n)
        n = list(s)
        n[0], n[2 + c], n[self.first + t], empty = move
        return None if empty and s[empty] else tuple(n)

    def _learn(self, s, t, c):
        """None: blocked; else new memory, buffer and thread, and which other buffer must be empty (0:
        none)."""
        whole = self.unpack(s)
        code, pc = self.machine.codes[t], whole[2][t]
        empty = 0
        if code.kind[pc] == 'ipi_rseq':
            return self.WHOLE  # it may abort another thread
        if code.kind[pc] == 'ipi':
            target = code.fn[pc][2]
            if target != c:
                empty = 2 + target
                whole = (whole[0], _put(whole[1], target, ()), *whole[2:])
        n = self.machine.step(whole, t)
        return n and (self.memories[n[0]], self.buffers[n[1][c]], self.threads[n[2][t], n[3][t]], empty)


def _put(t, i, v):
    return t[:i] + (v,) + t[i + 1:]


def _read(m, b, at):
    for k, v in reversed(b):
        if k == at:
            return v
    return m[at]


# ---------------------------------------------------------------- test suites
IDLE = 'never executed'


def suite(cases, long=False):
    """Runs (name, machine, expected) triples: expected is None if the case must
    hold, else a pattern that the reason of the violation must match, so that a
    mutant is caught for the reason it was written for.  A machine may be given
    as a function that makes it.  Expected IDLE: a mutant that breaks nothing, but
    never does what the case is about.  Arguments: -v prints the traces, --table a
    Markdown table, any other one selects cases whose name contains it.  A `long` suite reads
    nothing but itself, so without words it runs under PRUDENCE_MODELS=deep (make test-long) alone.
    Returns the exit status."""
    if long and not sys.argv[1:] and os.environ.get('PRUDENCE_MODELS') != 'deep':
        print('make test-long runs this')
        return 77
    flags = [a for a in sys.argv[1:] if a.startswith('-')]
    only = [a for a in sys.argv[1:] if not a.startswith('-')]
    failed, begin, total = [], time.monotonic(), 0
    for name, machine, expected in cases:
        if only and not any(o in name for o in only):
            continue
        machine = machine() if callable(machine) else machine
        t0 = time.monotonic()
        states, bad = machine.explore()
        took = time.monotonic() - t0
        total += states
        missing = machine.uncovered() if not bad and expected in (None, IDLE) else []
        good = bool(missing) if expected == IDLE else \
            bool(re.search(expected, bad[0])) if bad and expected else \
            not bad and not expected and not missing
        verdict = f'violation: {bad[0]}' if bad else 'holds'
        if '--table' in flags:
            print(f'| {name} | {verdict} | {states:,} | {took:.1f} |', flush=True)
        else:
            print(f'{"ok  " if good else "FAIL"} {name}: {verdict}'
                  f' ({states:,} states, {took:.1f} s)', flush=True)
        for line in missing:
            print(f'     never executed: {line}')
        if bad and ('-v' in flags or not good):
            print(*(f'     {line}' for line in bad[1]), sep='\n')
        if not good:
            failed.append(name)
    print(f'{total:,} states in {time.monotonic() - begin:.1f} s;',
          f'FAILED: {failed}' if failed else 'all as expected', file=sys.stderr)
    return 1 if failed else 0
