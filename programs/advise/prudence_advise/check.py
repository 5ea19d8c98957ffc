# SPDX-License-Identifier: MIT
"""The model against this machine: the load as a program, under each mechanism, compared with the model's expectation."""

import os
import resource
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy

from . import advice, mechanisms
from .machine import BadCalibration

DISTURBED = 0.1  # of the CPUs' time that other programs had in a run: more, and it is done again
TRIES = 5
TRIED = ("mutex", "spinlock", "rwlock", "brlock", "buckets", "seqlock", "rcu", "hazard")
BESIDE_READER = ("rcu", "hazard")  # whose readers may stay while others update


def command(programs, name, load, seconds, *more):
    return [programs / "prudence-trial", name, f"--threads={load.threads}", f"--updates={load.updates}",
            f"--operations={load.operations}", f"--lookup={round(load.lookup)}", f"--update={round(load.update)}",
            f"--between={round(load.between)}", f"--live={round(load.live)}", f"--size={max(8, load.size)}",
            f"--buckets={load.buckets}", f"--seconds={seconds}", *more]


@dataclass
class Sample:
    rate: float  # operations a second
    waiting: float  # objects
    others: float  # the share of the CPUs' time that other programs took from it


def busy_seconds():
    """CPU time that was used on the CPUs of this process, by all."""
    mine = {f"cpu{cpu}" for cpu in os.sched_getaffinity(0)}
    lines = [line.split() for line in Path("/proc/stat").read_text().splitlines() if line.startswith("cpu")]
    # user, nice, system, idle, iowait, irq, softirq, steal
    ticks = [int(word) for words in lines if words[0] in mine for word in (*words[1:4], *words[6:9])]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(programs, name, load, seconds, *more):
    busy, own, begun = busy_seconds(), own_seconds(), os.times().elapsed
    try:
        done = subprocess.run(command(programs, name, load, seconds, *more), text=True, capture_output=True, check=False)
    except OSError as error:
        raise BadCalibration(f"{programs / 'prudence-trial'}: {error.strerror}") from error
    if done.returncode:
        raise BadCalibration(f"prudence-trial {name}: {done.stderr.strip()}")
    rate, waiting = (float(word) for word in done.stdout.split())
    took, cpus = max(1e-3, os.times().elapsed - begun), len(os.sched_getaffinity(0))
    wanted = min(load.threads, cpus)
    theirs = busy_seconds() - busy - (own_seconds() - own) - (cpus - wanted) * took  # CPUs that it does not want are theirs
    return Sample(rate, waiting, max(0.0, theirs) / (took * wanted))


def undisturbed(programs, name, load, seconds):
    """Returns a run during which other programs did little, or else the least disturbed one."""
    best = run(programs, name, load, seconds)
    for _ in range(TRIES - 1):
        if best.others <= DISTURBED:
            break
        best = min(best, run(programs, name, load, seconds), key=lambda one: one.others)
    return best


def measure(programs, names, load, repeats, seconds):
    """Samples of each mechanism, which take turns, by name; and of those whose readers may stay, together with one that does."""
    found, staying = {name: [] for name in names}, {name: [] for name in BESIDE_READER}
    for _ in range(repeats):
        for name in names:
            found[name].append(undisturbed(programs, name, load, seconds))
        for name in staying:
            staying[name].append(run(programs, name, load, seconds, "--stays"))
    return found, staying


def of_staying(samples, load):
    """Describes runs with a reader that stays by the highest number of waiting objects and the rates."""
    waiting = float(numpy.median([one.waiting for one in samples]))
    return {"waiting": waiting, "bytes": waiting * max(8, load.size), "measured": float(numpy.median([one.rate for one in samples]))}


def ranks(values):
    return numpy.argsort(numpy.argsort(values))


def compare(programs, machine, load, repeats, seconds):
    names = [name for name in TRIED if name != "buckets" or load.buckets > 1]
    samples, staying = measure(programs, names, load, repeats, seconds)
    rows = []
    for name in names:
        rate, _, cost = mechanisms.evaluate(mechanisms.BY_NAME[name], machine, load)
        rates = [one.rate for one in samples[name]]
        expected = advice.interval(rate * load.operations * 1e9)
        median = float(numpy.median(rates))
        rows.append({"name": name, "title": advice.TITLES[name], "expected": expected, "measured": median,
                     "least": min(rates), "most": max(rates), "ratio": median / expected["median"]})
        if name in BESIDE_READER:
            rows[-1] |= {"waiting": float(numpy.median([one.waiting for one in samples[name]])),
                         "waiting_expected": advice.value(cost.details["objects_in_flight"]),
                         "beside_reader": of_staying(staying[name], load)}
    rows.sort(key=lambda row: -row["measured"])
    order = numpy.corrcoef(ranks([row["measured"] for row in rows]),
                           ranks([row["expected"]["median"] for row in rows]))[0, 1]
    return {"program": "prudence-advise check", "format": 1, "repeats": repeats, "seconds": seconds, "cpus": machine.cpus, "rows": rows,
            "others": float(numpy.median([one.others for ones in samples.values() for one in ones])),
            "rank_correlation": float(order)}


def text(answer):
    lines = [f"{'operations a second':<42}{'measured':>11}{'least to most':>26}{'model':>11}{'measured / model':>18}"]
    for row in answer["rows"]:
        spread = f"{advice.rate_text(row['least'])} to {advice.rate_text(row['most'])}"
        lines.append(f"{row['title']:<42}{advice.rate_text(row['measured']):>11}{spread:>26}"
                     f"{advice.rate_text(row['expected']['median']):>11}{row['ratio']:>18.2f}")
    lines.append("")
    for row in (one for one in answer["rows"] if one["name"] in BESIDE_READER):
        stayed = row["beside_reader"]
        lines += [f"{row['title']}: {row['waiting']:.0f} objects waited for a grace period (median of samples), the model says "
                  f"{row['waiting_expected']:.0f}.",
                  f"    With a reader that stayed for the whole run: {stayed['waiting']:.0f} ({advice.bytes_text(stayed['bytes'])}), "
                  f"{advice.rate_text(stayed['measured'])}."]
    lines.append(f"Rank correlation of both orders: {answer['rank_correlation']:.2f}")
    return "\n".join(lines)
