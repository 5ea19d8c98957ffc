# SPDX-License-Identifier: MIT
"""The plan of the measurements: experiments, and subjects, which are memory models over an allocator that is preloaded.

Each experiment varies one or more factors of acdc, and reads responses from its JSON.

Sizes, liveness, ratios and quanta are those of the thesis' tables 6.2 to 6.8. Scaled are threads, to
the CPUs at hand (the thesis had 24), and the duration, where 200 or 2,000 ticks would take minutes a run.
A round of ACDC allocates so much more as there are fewer threads. Where a quantum is less than a round the
heap does not follow it, so the factorial designs' quanta are scaled with the threads: four times the thesis'.
"""

import subprocess
from dataclasses import dataclass, field

from measure import allocators

REFRESH = ("refresh", "global_refresh", "tick", "global_tick")
MALLOC = ("allocate", "free", "defer")
OPERATIONS = (*REFRESH, *MALLOC, "held_bytes")  # calls are timed, which takes time: throughput says nothing
THROUGHPUT = ("seconds", "bytes_per_cpu_second")
MEMORY = ("bytes_per_cpu_second", "resident_bytes")
TICKS = ("tick", "global_tick")  # few: one interrupted call in a hundred is skipped, not in a thousand

DEFAULTS = {"--threads": 1, "--duration": 100, "--time-quantum": 1 << 18}  # acdc's own


@dataclass
class Experiment:
    name: str
    title: str
    figures: str             # of the thesis
    kinds: tuple             # of subjects
    aims: tuple              # responses that are to be known within the aim
    options: list            # of every run
    axis: str                # name of the variable, for people
    points: dict             # value on the axis -> more options
    log: bool = False        # the axis has powers of two
    labels: dict = field(default_factory=dict)  # factorial: label -> meaning of its levels
    prudence_options: dict = field(default_factory=dict)  # of a point, in addition to acdc's own

    def work(self, at):
        """Bytes that all threads allocate in a run."""
        said = dict(DEFAULTS)
        for option in [*self.options, *self.points[at]]:
            name, _, value = option.partition("=")
            if name in said:
                said[name] = 1 << int(value[2:]) if value.startswith("2^") else int(value)
        return said["--threads"] * said["--duration"] * said["--time-quantum"]


def operation(run, name):
    """Cycles (nanoseconds where there is no time-stamp counter), without interrupted calls."""
    times = run["operations"].get(name, {})
    values = times.get("cycles") or times.get("nanoseconds")
    return values["mean_99" if name in TICKS else "mean_99_9"] if values else None


def responses(run):
    """Returns all values that are read from one run; missing ones are skipped."""
    found = {name: operation(run, name) for name in REFRESH + MALLOC}
    memory = run["memory"]
    found |= {"seconds": run["seconds"], "bytes_per_second": run["bytes_per_second"],
              "bytes_per_cpu_second": run["bytes_per_second"] * run["seconds"] / run["cpu_seconds"],
              "held_bytes": memory["steady_held_bytes"], "live_bytes": memory["steady_live_bytes"],
              "resident_bytes": memory["steady_resident_bytes"],
              "live_objects": memory["steady_live_objects"]}
    return {name: value for name, value in found.items() if value is not None}


def sharing(percent):
    return ["--shared", f"--share-ratio={percent}"]


def sizes(most):
    return ["--min-size=3", f"--max-size={most}"]


def factorial(name, title, figures, kinds, labels, options):
    """Points "A-B+...". `labels`: each factor's name, its two levels, and the option that sets them: one of
    acdc, or of Prudence ("name=")."""
    points, prudence_options = {}, {}
    for number in range(2 ** len(labels)):
        key, chosen, ours = "", [], []
        for i, (label, (_, levels, option)) in enumerate(labels.items()):
            high = number >> i & 1
            key += label + "-+"[high]
            (chosen if option.startswith("--") else ours).append(f"{option}{levels[high]}")
        points[key], prudence_options[key] = chosen, ",".join(ours)
    return Experiment(name, title, figures, kinds, OPERATIONS, options, "factors", points,
                      labels={label: f"{what}: {levels[0]}, {levels[1]}" for label, (what, levels, _) in labels.items()},
                      prudence_options=prudence_options)


def experiments(short, cpus):
    """`short`: the same with fewer points and less time each: a few minutes in all."""
    pair = (1, max(2, cpus))
    threads = (1, 2, 4) if short else sorted({1, 2, 3, 4, 6, 8, 12})
    ticks = 40 if short else 200
    thread_levels = ("threads", pair, "--threads=")
    liveness_levels = ("longest liveness", (10, 30), "--max-liveness=")
    quantum_levels = ("time quantum", ("2^20", "2^22"), "--time-quantum=")
    secondary = [*sizes(16), *sharing(10), f"--duration={ticks}", "--timed=8"]
    powers = range(14, 21, 3) if short else range(12, 25)
    heap_powers = range(12, 20, 3) if short else range(12, 20)
    yield factorial(
        "factorial", "Which factors matter to short-term memory", "6.1 to 6.4, tables 6.2 and 6.3",
        ("short-term-lazy",), {
            "A": thread_levels,
            # The thesis' B is the size of a descriptor page, which is fixed in ours.
            "B": ("an expired object goes", ("free", "deferred"), "scm_expired="),
            "C": liveness_levels,
            "D": ("collection", ("lazy", "eager"), "--collection="),
            "E": quantum_levels}, secondary)
    yield factorial(
        "factorial-malloc", "Which factors matter to malloc and free", "6.1 to 6.4, of allocators",
        ("persistent",), {"A": thread_levels, "C": liveness_levels, "E": quantum_levels}, secondary)
    yield Experiment(
        "threads", "Scalability", "6.5 to 6.7, table 6.4", ("short-term", "persistent"), OPERATIONS,
        [*sizes(12), *sharing(20), f"--duration={ticks}", "--time-quantum=2^15", "--timed=4"],
        "threads", {n: [f"--threads={n}"] for n in threads})
    yield Experiment(
        "quantum", "Time threshold", "6.8 and 6.9, table 6.5", ("short-term", "persistent"), OPERATIONS,
        [*sizes(12), *sharing(20), f"--threads={pair[1]}", "--timed=8"],
        "time quantum, bytes",
        {1 << p: [f"--time-quantum=2^{p}", f"--duration={ticks_of(p, ticks)}"] for p in powers},
        log=True)
    yield Experiment(
        "throughput-quantum", "Throughput by the size of the heap", "6.10, table 6.6",
        ("persistent", "short-term", "deferred", "none"), THROUGHPUT,
        [*sizes(12), *sharing(10), f"--threads={pair[1]}", "--timed=0", "--samples=0", "--think=4"],
        "time quantum, bytes",
        {1 << p: [f"--time-quantum=2^{p}", f"--duration={ticks}"] for p in heap_powers}, log=True)
    yield Experiment(
        "throughput-threads", "Throughput by threads", "6.11, table 6.7",
        ("persistent", "short-term", "deferred", "none"), THROUGHPUT,
        [*sizes(12), *sharing(10), f"--time-quantum={'2^15' if short else '2^18'}", f"--duration={ticks}", "--timed=0", "--samples=0", "--think=4"],
        "threads", {n: [f"--threads={n}"] for n in (threads if short else range(1, 9))})
    yield Experiment(
        "trace", "Approximation overhead: memory over time", "6.12, table 6.8",
        ("persistent", "short-term", "deferred"), THROUGHPUT,
        [*sizes(12), *sharing(10), "--threads=1", f"--duration={60 if short else 100}", f"--time-quantum={'2^16' if short else '2^20'}", "--timed=0"],
        "time", {"all": []})
    yield Experiment(
        "original", "Throughput and memory by the rules of the public tool", "none: the public tool's own options",
        ("persistent",), MEMORY, ["--original", f"--duration={60 if short else 300}", "--timed=0"],
        "deallocation delay, ticks", {delay: [f"--deallocation-delay={delay}"] for delay in (0, 10)})


def ticks_of(power, ticks):
    """Fewer ticks of a large quantum, but some lifetimes in any case."""
    return max(40, min(ticks, (1 << 28) >> power))


@dataclass
class Subject:
    name: str
    kind: str               # persistent, deferred, short-term or none
    options: list = field(default_factory=list)
    allocator: allocators.Allocator = None  # None: not preloaded
    ours: bool = False

    def missing(self, acdc):
        """Why this cannot be measured, or None."""
        done = subprocess.run([acdc, *self.options, "--duration=1", "--quiet"], text=True, capture_output=True, timeout=60)
        return None if done.returncode == 0 else done.stderr.strip().removeprefix("acdc: ")


def subjects(found):
    """All of them, over the allocators `found`."""
    return [
        Subject("none", "none", ["--model=none"]),
        *(Subject(f"persistent+{one.name}", "persistent", ["--model=persistent"], one, one.name == "prudence") for one in found),
        Subject("deferred-prudence", "deferred", ["--model=deferred"], ours=True),
        *(Subject(f"deferred-liburcu+{one.name}", "deferred", ["--model=deferred", "--reclaimer=liburcu"], one)
          for one in found if one.name != "prudence"),
        Subject("short-term-lazy", "short-term", ["--model=short-term", "--collection=lazy"], ours=True),
        Subject("short-term-eager", "short-term", ["--model=short-term", "--collection=eager"], ours=True),
    ]
