# SPDX-License-Identifier: MIT
"""The findings of the thesis in 8.3 and 8.4 about ways to detect grace periods, and whether they hold in results of ours.

A finding is (place, claim of the thesis, a function of the results). The function returns whether it holds, and what
was measured. A verdict is "undecided" when draws from the repeats of each row (with repetition, as many as there are)
disagree with it in one of twenty or more, and when a run behind one of its figures was too short: see Results.
"""

import random

import numpy

from measure.verdict import quantity
from . import sources

DRAWS, AGREEMENT = 200, 0.95
# The requirements of a figure for each of its runs.
BEYOND = 10         # latencies on either side of a quantile
CALLS = 100         # callbacks, of a cost
GRACE_PERIODS = 20  # of a cost: the cost of a batch is shared
IDLE_SECONDS = 0.5  # of the CPU time in an idle second
RUNS = 5            # of a median
SHOWN = 2           # of rows that are too short, in the text of a verdict
PACED_PART = 0.6    # of a run of the load paced, in which there are calls
EQUAL = 1.25    # "the same"
BOUNDED = 2.0   # "well bounded": at the highest load by without load
TRADE_OFF = -0.5  # rank correlation of latency and cost

INDUCING = ("batch", "taskq")
OBSERVING = ("ring", "k42", "polling", "polling-percpu", "barrier", "xrcu", "krcud", "preempt")
TIMED = ("barrier", "xrcu", "krcud")
OF_TABLE_82 = ("taskq", "ring", "polling", "barrier", "xrcu", "krcud", "preempt")
OF_FIGURE_87 = ("taskq", "ring", "polling", "barrier", "xrcu", "krcud")


class NotMeasured(Exception):
    pass


class Results:
    """Medians of the repeats, or of a draw from them; and in `short` the figures among them whose runs were too short."""

    def __init__(self, rows, chance=None):
        self.short = []
        self.rows = {(row["load"], row["variant"], row["workers"], row["readers"], row["rate"]): row for row in rows if not row["batch"]}
        self.chance = chance

    def value(self, load, variant, *keys, workers=1, readers=0, rate=0):
        row = self.rows.get((load, variant, workers, readers, rate))
        found = [] if row is None else [value_of(repeat, keys) for repeat in row["repeats"]]
        found = [value for value in found if value is not None]
        if not found:
            raise NotMeasured
        if why := too_short(row, keys, len(found)):
            where = f" with {readers}" if load in ("call", "synchronize") else f" at {rate:,}/s" if rate else ""
            self.short.append(f"{load} of {variant}{where}: {why}")
        if self.chance:
            found = self.chance.choices(found, k=len(found))
        return float(numpy.median(found))

    def loads_of_call(self):
        return sorted({readers for load, _, _, readers, _ in self.rows if load == "call"})

    def most_readers(self):
        if not self.loads_of_call():
            raise NotMeasured
        return max(self.loads_of_call())

    def rates(self):
        return sorted({rate for load, *_, rate in self.rows if load == "paced"})

    def latency(self, variant, readers, quantile="p50"):
        return self.value("call", variant, "latency_ns", quantile, readers=readers)

    def switch(self, variant):
        return self.value("switch", variant, "ns")

    def cost(self, variant, rate):
        return max(least_cost(rate), self.value("paced", variant, "cost_ns", readers=1, rate=rate))

    def paced_latency(self, variant, rate):
        return self.value("paced", variant, "latency_ns", "p50", readers=1, rate=rate)


def too_short(row, keys, runs):
    """Says why the runs of a figure are too short, or returns None. The shortest run counts."""
    repeats = [repeat for repeat in row["repeats"] if "failed" not in repeat]
    if runs < RUNS:
        return f"{runs} of {RUNS} runs"
    if keys[0] == "latency_ns":
        quantile = int(keys[1][1:]) / 100
        needed = round(BEYOND / min(quantile, 1 - quantile))
        least = min(repeat["latency_ns"]["count"] for repeat in repeats)
        return f"{least} of {needed} latencies" if least < needed else None
    if keys[0] == "cost_ns":
        seconds = row["seconds"] * PACED_PART
        calls = min(repeat["calls_per_second"] * seconds for repeat in repeats)
        if calls < CALLS:
            return f"{calls:.0f} of {CALLS} callbacks"
        # A callback waits for one to two grace periods, so this is at most twice too severe.
        longest = max(repeat["latency_ns"].get("p50", 0) for repeat in repeats)
        passed = int(seconds * 1e9 / max(longest, 1))
        return f"{passed} of {GRACE_PERIODS} grace periods" if passed < GRACE_PERIODS else None
    if row["load"] == "idle" and row["seconds"] < IDLE_SECONDS:
        return f"{row['seconds']:g} of {IDLE_SECONDS} s"
    return None


def least_cost(rate):
    """Returns the least cost that can be distinguished from noise: a thousandth of the time of two places, by the calls. A lower one counts as
    this."""
    return 2e6 / rate


def value_of(repeat, keys):
    for key in keys:
        repeat = repeat.get(key) if isinstance(repeat, dict) else None
    return repeat


def time(ns):
    return quantity(ns, "ns")


def listed(values, show=time):
    return ", ".join(f"{name} {show(value)}" for name, value in sorted(values.items(), key=lambda item: item[1]))


def smallest_source(results):
    lines = {name: sources.lines(name)[1] for name in OF_TABLE_82}
    return min(lines, key=lines.get) == "taskq", listed(lines, str) + " lines"


def free_switch(results):
    found = {name: results.switch(name) for name in OF_TABLE_82}
    none = results.switch("none")
    return found["taskq"] <= none * EQUAL, f"none {time(none)}, " + listed(found)


def switch_counts(results):
    found = {name: results.switch(name) for name in ("polling", *TIMED)}
    return max(found.values()) <= EQUAL * min(found.values()), listed(found)


def switch_reads(results):
    found = {name: results.switch(name) for name in ("ring", "polling", *TIMED)}
    return min(found, key=found.get) == "ring", listed(found)


def preemption_costs(results):
    preempted = results.value("preempt", "preempt", "ns")
    switches = 2 * results.switch("preempt")
    return preempted > EQUAL * switches, f"a preempted section {time(preempted)}, its two switches alone {time(switches)}"


def idle_ltimer(results):
    found = {name: results.value("idle", name, "cpu_ns") * 1e3 for name in TIMED}
    return min(found, key=found.get) == "barrier", listed(found) + " of CPU time in an idle second"


def shortest_latency(results):
    found = {name: results.latency(name, 1) for name in OF_FIGURE_87}
    return min(found, key=found.get) == "polling", "median with one reader: " + listed(found)


def bound_of_polling(results):
    most = results.most_readers()
    idle, loaded = results.latency("polling", 0), results.latency("polling", most, "p90")
    return idle < 250e3 and loaded < 10e6, f"median {time(idle)} idle, p90 {time(loaded)} with {most} readers"


def bound_of_timed(results):
    most = results.most_readers()
    growth = {name: results.latency(name, most) / results.latency(name, 0) for name in TIMED}
    larger = all(results.latency(name, 0) > results.latency("polling", 0) for name in TIMED)
    return (larger and max(growth.values()) <= BOUNDED,
            f"median with {most} readers by that without: " + listed(growth, lambda value: f"{value:.2f}"))


def ring_takes_seconds(results):
    results.most_readers()  # there are any
    found = {readers: results.latency("ring", readers, "p90") for readers in results.loads_of_call()}
    return max(found.values()) > 1e9, "p90: " + ", ".join(f"{time(ns)} with {readers}" for readers, ns in found.items())


def taskq_grows(results):
    most = results.most_readers()
    idle, loaded = results.latency("taskq", 0), results.latency("taskq", most)
    return loaded > BOUNDED * idle, f"median {time(idle)} idle, {time(loaded)} with {most} readers"


def ranks(values):
    return numpy.argsort(numpy.argsort(values))


def trade_off(results):
    rate = 10000
    names = [*INDUCING, *OBSERVING]
    latency, cost = ([of(name, rate) for name in names] for of in (results.paced_latency, results.cost))
    found = float(numpy.corrcoef(ranks(latency), ranks(cost))[0, 1])
    return found <= TRADE_OFF, f"rank correlation of latency and cost at {rate:,} calls a second: {found:.2f}"


def batching_pays(results):
    low, high = 1000, 100000
    found = {name: results.cost(name, low) / results.cost(name, high) for name in (*INDUCING, *OBSERVING)}
    return (min(found.values()) > 1, f"cost of a callback at {low:,} by that at {high:,} a second: " + listed(found, lambda value: f"{value:.1f}"))


def returns_diminish(results):
    found = {name: (results.cost(name, 10000) / results.cost(name, 100000),
                    results.cost(name, 100000) / results.cost(name, 1000000)) for name in TIMED}
    text = ", ".join(f"{name} {one:.1f} then {two:.1f}" for name, (one, two) in found.items())
    return all(two < one for one, two in found.values()), "cheaper by, from 10,000 to 100,000 to 1,000,000 a second: " + text


def little_sensitivity(results):
    rate = 1000
    share = {name: results.cost(name, rate) * rate / 1e9 / 2 for name in (*INDUCING, *OBSERVING)}
    return (max(share.values()) < 0.01, f"of the time of the two places at {rate:,} calls a second: " + listed(share, lambda value: f"{value:.2%}"))


def queues_per_cpu(results):
    one, own = (results.value("storm", name, "ns", workers=2) for name in ("polling", "polling-percpu"))
    return own * EQUAL < one, f"two places in a storm: {time(one)} a callback with one list, {time(own)} with queues per CPU"


def ltimer_beats_poll(results):
    found = {name: results.cost(name, 10000) for name in ("barrier", "polling-percpu")}
    return found["barrier"] < found["polling-percpu"], "at 10,000 calls a second: " + listed(found)


def ltimer_beats_sched(results):
    found = {name: results.cost(name, 10000) for name in ("barrier", "ring")}
    return found["barrier"] < found["ring"], "at 10,000 calls a second: " + listed(found)


def latency_is_bought(results):
    names = ("polling-percpu", "barrier")
    latency, cost = ([of(name, 10000) for name in names] for of in (results.paced_latency, results.cost))
    return (latency[0] < latency[1] and cost[0] > EQUAL * cost[1],
            "; ".join(f"{name}: latency {time(ns)}, cost {time(paid)}" for name, ns, paid in zip(names, latency, cost)))


def observing_is_cheaper(results):
    rate = 10000
    inducing, observing = ({name: results.cost(name, rate) for name in names} for names in (INDUCING, OBSERVING))
    return (numpy.median(list(observing.values())) < min(inducing.values()),
            f"at {rate:,} calls a second: inducing: {listed(inducing)}; observing: {listed(observing)}")


def ltimer_is_cheapest(results):
    found = {name: results.cost(name, 10000) for name in OF_TABLE_82}
    return found["barrier"] <= EQUAL * min(found.values()), "at 10,000 calls a second: " + listed(found)


FINDINGS = [
    ("Table 8.1", "rcu-taskq is the smallest", smallest_source),
    ("Table 8.2", "rcu-taskq costs nothing when idle", free_switch),
    ("Table 8.2", "rcu-poll costs one local increment a switch, as X-rcu, rcu-krcud and rcu-ltimer do", switch_counts),
    ("Table 8.2", "rcu-sched costs one global read a switch", switch_reads),
    ("Table 8.2", "rcu-preempt costs something at each preemption as well", preemption_costs),
    ("8.3.2", "of X-rcu, rcu-krcud and rcu-ltimer the last has the lowest overhead on an idle system", idle_ltimer),
    ("Figure 8.7", "rcu-poll has by far the shortest latency", shortest_latency),
    ("Figure 8.8", "rcu-poll stays below 250 µs idle and 10 ms loaded", bound_of_polling),
    ("Figure 8.7", "X-rcu, rcu-ltimer and rcu-krcud have larger latencies, well bounded as the load grows", bound_of_timed),
    ("8.3.3", "rcu-sched takes seconds (its CPUs did not switch)", ring_takes_seconds),
    ("Figure 8.7", "rcu-taskq's latency grows with the load", taskq_grows),
    ("8.3.3", "longer latency means less overhead", trade_off),
    ("8.3.3", "frequent calls share the cost of a grace period", batching_pays),
    ("8.3.3", "extremely frequent calls gain less and less", returns_diminish),
    ("Figure 8.9", "a whole program is hardly sensitive to the implementation", little_sensitivity),
    ("8.3.4", "queues per CPU greatly reduce what rcu-poll's CPUs take from each other", queues_per_cpu),
    ("Table 8.3", "rcu-ltimer needs less CPU time than rcu-poll with queues per CPU", ltimer_beats_poll),
    ("Table 8.3", "rcu-ltimer needs less CPU time than rcu-sched", ltimer_beats_sched),
    ("8.3.4", "rcu-poll buys its latency with overhead", latency_is_bought),
    ("8.4", "observing quiescent states is more efficient than inducing them", observing_is_cheaper),
    ("8.4", "rcu-ltimer is the most efficient", ltimer_is_cheapest),
]


NO_CPU = "with more places than CPUs a place must get a CPU before it can switch"
# Why a finding does not hold here, where that is known.
REASONS = {
    smallest_source: "rcu-sched's guards against CPUs that are shut down, and all hooks into a kernel, are not needed here",
    free_switch: "a daemon that runs on a CPU is a request here, at which each switch looks",
    idle_ltimer: "an idle place has no tick; what is seen is the thread that counts ticks, which the timers of krcud do without",
    shortest_latency: "places switch all the time, so the ring's counters go round as fast as they are polled",
    bound_of_polling: NO_CPU,
    bound_of_timed: NO_CPU,
    ring_takes_seconds: "the scheduler of 2002 did not switch when there were as many tasks as CPUs; places do",
    little_sensitivity: "a task that has to be woken for each grace period",
}


def agrees(rows, function, holds):
    chance = random.Random(1)
    same = sum(bool(function(Results(rows, chance))[0]) == holds for _ in range(DRAWS))
    return same >= AGREEMENT * DRAWS


def check(rows):
    """Returns the place, the claim of the thesis, the verdict and the measured values for each finding."""
    found, rounds = [], min((len(row["repeats"]) for row in rows), default=0)
    for place, thesis, function in FINDINGS:
        try:
            results = Results(rows)
            holds, measured = function(results)
            holds = bool(holds)
            verdict = ("holds" if holds else "does not hold") if agrees(rows, function, holds) else "undecided"
            if results.short:
                verdict = "undecided"
                short = list(dict.fromkeys(results.short))
                more = f"; and {len(short) - SHOWN} more" if len(short) > SHOWN else ""
                measured += " (runs too short: " + "; ".join(short[:SHOWN]) + more + ")"
            if verdict == "does not hold" and function in REASONS:
                measured += f" (why: {REASONS[function]})"
        except NotMeasured:
            verdict, measured = "not measured", ""
        found.append({"subject": place, "the thesis": thesis, "verdict": verdict, "rounds": str(rounds), "here": measured})
    return found
