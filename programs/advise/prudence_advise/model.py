# SPDX-License-Identifier: MIT
"""The cost model of P. E. McKenney, "Exploiting Deferred Destruction" (2004), chapter 7: equations 7.1 to 7.30.

The cost of an acquisition of a lock, or of an update under RCU, follows from the cache lines that it moves: each access
costs `fast` where the CPU has the line, `medium` where the line is on the CPU's node, and `slow` where it is on another
node. Contention is low, so no CPU waits for another. Nothing here is measured; `machine.py` has this machine's
latencies, `ours.py` the same model of Prudence's grace periods.

Each function names its equation and where the thesis has it (the line in its text, as L5527). Three equations stand
there with a fault, or not at all; the docstring says which form this is, and tests/advise/test_model.py derives it.

A machine is `nodes` (n) times `cpus` (m) of each node. Equations for machines without nodes (the thesis: SMMP) take
`cpus` alone. Times have any unit, as long as it is the same for all.
"""

import math
from dataclasses import dataclass

import numpy
import scipy


@dataclass(frozen=True)
class Latencies:
    """Table 7.1 (L5466): t_f, t_m, t_s and t_c."""

    fast: float  # the CPU's own cache has the line
    medium: float  # a cache or the memory of the CPU's node has it
    slow: float  # another node has it
    clock: float = 0.0  # a read of the fine-grained clock

    @classmethod
    def of_ratio(cls, ratio, clock=0.0):
        """The uniform memory hierarchy (L5535): t_f = 1, t_m = sqrt(r), t_s = r; the clock in units of t_f."""
        return cls(1.0, math.sqrt(ratio), ratio, clock)


# ------------------------------------------------------------------------------------ spinlock

def spinlock(nodes, cpus, t):
    """7.1 (L5527): acquire and release a lock that each CPU had last with the same probability."""
    n, m = nodes, cpus
    return ((n - 1) * m * t.slow + (m - 1) * t.medium + (n * m + 1) * t.fast) / (n * m)


def spinlock_smp(cpus, t):
    """7.2 (L5531): the same without nodes. Tends to t_s with many CPUs."""
    n = cpus
    return ((n - 1) * t.slow + (n + 1) * t.fast) / n


def spinlock_normalized(nodes, cpus, ratio):
    """7.3 (L5537): 7.1 in units of t_f, t_s = r and t_m = sqrt(r)."""
    return spinlock(nodes, cpus, Latencies.of_ratio(ratio))


def spinlock_smp_normalized(cpus, ratio):
    """7.4 (L5539): 7.2 in units of t_f."""
    return spinlock_smp(cpus, Latencies.of_ratio(ratio))


# ------------------------------------------------------------- distributed reader-writer lock ("drw", "brlock")

def distributed_weight(nodes, cpus, updates):
    """The common denominator D = 1 + (nm - 1) f (L5577): the sections that may have touched a CPU's part since this CPU did."""
    return 1 + (nodes * cpus - 1) * updates


def distributed_read_acquire(nodes, cpus, updates, t):
    """7.5 (L5588): a reader takes its own CPU's lock."""
    n, m, f = nodes, cpus, updates
    return ((n * m - m) * f * t.slow + (m - 1) * f * t.medium + t.fast) / distributed_weight(n, m, f)


def distributed_read(nodes, cpus, updates, t):
    """7.6 (L5593): a reader takes its own CPU's lock and gives it back."""
    return distributed_read_acquire(nodes, cpus, updates, t) + t.fast


def distributed_write_near(nodes, cpus, updates, t):
    """7.7 (L5608): a writer takes the lock of another CPU of its node."""
    n, m, f = nodes, cpus, updates
    return ((n - 1) * m * f * t.slow + (1 + (m - 2) * f) * t.medium + f * t.fast) / distributed_weight(n, m, f)


def distributed_write_far(nodes, cpus, updates, t):
    """7.8 (L5619): a writer takes the lock of a CPU of another node."""
    n, m, f = nodes, cpus, updates
    return (((1 + (n * m - m - 1) * f) * t.slow + (m - 1) * f * t.medium + f * t.fast)
            / distributed_weight(n, m, f))


def distributed_write(nodes, cpus, t):
    """7.9 (L5628): a writer takes the gate and every CPU's lock, and gives them back.

    The thesis' text has lost the denominator nm; with it the equation is the sum of its parts. It does not depend on
    the share of updates: a likelier case for the writer's own lock is less likely for the others.
    """
    n, m = nodes, cpus
    return ((n * n * m * m + (1 - m) * n * m - m) * t.slow + ((m - 1) * n * m + m - 1) * t.medium
            + (n * n * m * m + 2 * n * m + 1) * t.fast) / (n * m)


def distributed(nodes, cpus, updates, t):
    """7.10 (L5630, not printed): an acquisition and release, of which a share of `updates` is exclusive.

    The text says that the read part is 7.7. It is 7.6: only that gives 7.11.
    """
    return ((1 - updates) * distributed_read(nodes, cpus, updates, t)
            + updates * distributed_write(nodes, cpus, t))


def distributed_smp(cpus, updates, t):
    """7.11 (L5635): 7.10 without nodes. Tends to n f t_s with many CPUs and slow memory."""
    n, f = cpus, updates
    return ((((n ** 3 - 2 * n ** 2 + 1) * f ** 2 + (2 * n ** 2 - n - 1) * f) * t.slow
             + ((n ** 3 - 1) * f ** 2 + (2 * n ** 2 - n + 1) * f + 2 * n) * t.fast)
            / ((n ** 2 - n) * f + n))


def distributed_normalized(nodes, cpus, updates, ratio):
    """7.12 (L5639, not printed): 7.10 in units of t_f, t_s = r and t_m = sqrt(r)."""
    return distributed(nodes, cpus, updates, Latencies.of_ratio(ratio))


def distributed_smp_normalized(cpus, updates, ratio):
    """7.13 (L5642): 7.11 in units of t_f."""
    return distributed_smp(cpus, updates, Latencies.of_ratio(ratio))


# --------------------------------------------------------------------------------- RCU of DYNIX/ptx 4.4

def rcu_tick(nodes, cpus, t):
    """7.14 (L5669), C_h: the scheduling clock's interrupt on each CPU."""
    return nodes * cpus * (t.clock + 3 * t.fast)


def rcu_grace_period(nodes, cpus, t):
    """7.15 (L5672), C_g: one grace period."""
    n, m = nodes, cpus
    return ((3 * n + 2 * n * m - m) * t.slow + (2 * n * m + m - 1) * t.medium + (7 * n * m + 1) * t.fast)


def rcu_batch(t):
    """7.16 (L5674), C_b: a CPU that has callbacks in this grace period."""
    return 3 * t.slow


def rcu_callback(t):
    """7.17 (L5676), C_c: a callback; all that one more in a batch costs."""
    return 7 * t.fast


def rcu_isolated(nodes, cpus, t):
    """7.18 (L5685), C_wc: a lone callback at worst, where one CPU of a node passes a quiescent state each tick."""
    n, m = nodes, cpus
    return ((3 * n + 2 * n * m - m + 3) * t.slow + (2 * n * m + m - 1) * t.medium
            + (3 * n * m * m + 7 * n * m + 8) * t.fast + n * m * m * t.clock)


def occupied_cpus(nodes, cpus, callbacks):
    """7.22 (L5708), N_b(k): on how many CPUs k callbacks are expected, each being on any CPU."""
    everywhere = nodes * cpus
    return everywhere * (1 - (1 - 1 / everywhere) ** callbacks)


def rcu_of_count(nodes, cpus, callbacks, t):
    """7.21 and 7.23 (L5704, L5715), C_k: the cost of each of k callbacks of one grace period."""
    return (rcu_tick(nodes, cpus, t) + rcu_grace_period(nodes, cpus, t)
            + occupied_cpus(nodes, cpus, callbacks) * rcu_batch(t) + callbacks * rcu_callback(t)) / callbacks


def poisson_mean(of_count, rate):
    """7.19 and 7.20 (L5692, L5699): the mean of of_count(k), k being Poisson-distributed with mean `rate`, and not 0.

    Sums the terms whose weight a double can distinguish from 0: these are around `rate`, so e^rate never overflows.
    """
    spread = 12 * math.sqrt(rate) + 40
    counts = numpy.arange(max(1, math.floor(rate - spread)), math.ceil(rate + spread) + 1)
    weights = numpy.exp(scipy.special.xlogy(counts, rate) - scipy.special.gammaln(counts + 1) - rate)
    return float(numpy.sum(weights * of_count(counts)) / -math.expm1(-rate))


def mean_inverse_count(rate, share=1.0):
    """The series of 7.28 in closed form: the sum of share^k rate^k / (k! k), over k >= 1, divided by e^rate - 1.

    With share 1 it is the mean of 1/k. The sum is Ei(x) - ln x - gamma with x = share * rate. Ei(x) overflows long before
    the quotient does, so beyond 40 its asymptotic series is taken, whose smallest term is e^-x.
    """
    x = share * rate
    if x == 0:
        return 1.0 if rate == 0 else 0.0
    if x < 1e-3 or rate < 1e-3:
        # Ei(x) - ln x - gamma would cancel; five terms have all digits where x is small.
        series = sum(x ** k / (math.factorial(k) * k) for k in range(1, 6))
        return series / math.expm1(rate)
    if x < 40:
        return float(scipy.special.expi(x) - math.log(x) - numpy.euler_gamma) / math.expm1(rate) if rate < 700 else 0.0
    term, total = 1 / x, 0.0
    for k in range(1, 200):
        total += term
        if k >= x or term < 1e-17 * total:
            break
        term *= k / x
    rest = (math.log(x) + numpy.euler_gamma) * math.exp(-x) if x < 700 else 0.0
    return (total - rest) * math.exp(x - rate) / -math.expm1(-rate)


def rcu_typical(nodes, cpus, rate, t):
    """7.24 and 7.25 (L5721, L5726), C_typ: an update's part of the grace periods, `rate` (lambda) updates in each.

    The printed 7.25 has lost its sum and its denominator e^lambda - 1; substitution has both. `rate` is of the whole
    machine. It is the mean over grace periods, each counted once, as in the thesis. Rate 0 is the limit: one callback
    alone in its grace period. An infinite rate leaves the callback.
    """
    if math.isinf(rate):
        return rcu_callback(t)
    everywhere = nodes * cpus
    fixed = rcu_tick(nodes, cpus, t) + rcu_grace_period(nodes, cpus, t)
    # N_b(0) is 0, so of (1 - q^k) / k, too, only the two sums remain; they cancel where there is one callback.
    alone = mean_inverse_count(rate)
    if rate == 0:
        return fixed + rcu_batch(t) + rcu_callback(t)
    batches = everywhere * (alone - mean_inverse_count(rate, 1 - 1 / everywhere))
    return fixed * alone + batches * rcu_batch(t) + rcu_callback(t)


def rcu_typical_normalized(nodes, cpus, rate, ratio, clock=0.0):
    """7.25 as it is printed, in units of t_f; `clock` (t_c) in the same units."""
    return rcu_typical(nodes, cpus, rate, Latencies.of_ratio(ratio, clock))


# ----------------------------------------------------------------------------------------- convergence

def series_term(base, addend, factor, index):
    """7.26 (L5730): a term of the series that 7.25 is: base^k (addend + factor^k) / (k! k)."""
    return base ** index * (addend + factor ** index) / (math.factorial(index) * index)


def series_term_split(base, addend, factor, index):
    """7.27 (L5734): the same in two addends, each of which is a multiple of a term of 7.28."""
    return addend * plain_term(base, index) + plain_term(base * factor, index)


def plain_term(base, index):
    """7.28 (L5740): C^k / (k! k)."""
    return base ** index / (math.factorial(index) * index)


def term_ratio(base, index):
    """7.29 (L5745): term k through term k + 1 of 7.28: (k + 1)^2 / (k C). More than 2 once k > max(2 C, 2)."""
    return (index + 1) ** 2 / (index * base)


def tail_bound(base, index):
    """7.30 (L5749): the bound of all terms of 7.28 from k > max(2 C, 2) on: a geometric series of ratio 1/2."""
    if index <= max(2 * base, 2):
        raise ValueError(f"the bound holds beyond term {max(2 * base, 2):g}, not at {index}")
    return 2 * plain_term(base, index)


# ------------------------------------------------------------------------------------------ breakevens

def rcu(nodes, cpus, updates, rate, t, lock=None):
    """An access under RCU, a share of `updates` being updates: readers pay nothing (7.2.4, L5753).

    `lock`: the cost of the updater's own lock. The thesis does not say whether its figures include one. Only with a
    spinlock there does it agree with the four breakevens that section 8.2 names (tests/advise/test_model.py): the default.
    """
    own = spinlock(nodes, cpus, t) if lock is None else lock
    return updates * (rcu_typical(nodes, cpus, rate, t) + own)


def breakeven(first, second, most=1.0):
    """The share of updates from 0 to `most` up to which first(f) costs less than second(f).

    0 where `first` never does; `most` where it always does. Where the curves meet more than once it is the first time.
    """
    shares = numpy.concatenate([[0.0], numpy.logspace(-7, 0, 400) * most])
    difference = numpy.array([first(share) - second(share) for share in shares])
    lost = numpy.nonzero(difference >= 0)[0]
    if not len(lost):
        return most
    if lost[0] == 0:
        return 0.0
    low, high = shares[lost[0] - 1], shares[lost[0]]
    return float(scipy.optimize.brentq(lambda share: first(share) - second(share), low, high))
