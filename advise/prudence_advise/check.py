# SPDX-License-Identifier: MIT
"""The model against this machine: the load as a program, under each mechanism, beside what the model expects."""

import subprocess
import sys

import numpy

from . import advice, mechanisms
from .machine import BadCalibration

TRIED = ("mutex", "spinlock", "rwlock", "brlock", "buckets", "seqlock", "rcu")


def command(programs, name, load, seconds):
    return [programs / "prudence-trial", name, f"--threads={load.threads}", f"--updates={load.updates}",
            f"--operations={load.operations}", f"--lookup={round(load.lookup)}", f"--update={round(load.update)}",
            f"--between={round(load.between)}", f"--live={round(load.live)}", f"--size={max(8, load.size)}",
            f"--buckets={load.buckets}", f"--seconds={seconds}"]


def measure(programs, names, load, repeats, seconds):
    """Operations a second and waiting objects of each mechanism, which take turns: name -> samples."""
    found = {name: [] for name in names}
    for _ in range(repeats):
        for name in names:
            try:
                done = subprocess.run(command(programs, name, load, seconds), text=True, capture_output=True,
                                      check=False)
            except OSError as error:
                raise BadCalibration(f"{programs / 'prudence-trial'}: {error.strerror}") from error
            if done.returncode:
                raise BadCalibration(f"prudence-trial {name}: {done.stderr.strip()}")
            found[name].append([float(word) for word in done.stdout.split()])
    return found


def ranks(values):
    return numpy.argsort(numpy.argsort(values))


def compare(programs, machine, load, repeats, seconds):
    names = [name for name in TRIED if name != "buckets" or load.buckets > 1]
    samples = measure(programs, names, load, repeats, seconds)
    rows = []
    for name in names:
        rate, _, cost = mechanisms.evaluate(mechanisms.BY_NAME[name], machine, load)
        rates, waiting = zip(*samples[name])
        expected = advice.interval(rate * load.operations * 1e9)
        median = float(numpy.median(rates))
        rows.append({"name": name, "title": advice.TITLES[name], "expected": expected, "measured": median,
                     "least": min(rates), "most": max(rates), "ratio": median / expected["median"]})
        if name == "rcu":
            rows[-1] |= {"waiting": float(numpy.median(waiting)),
                         "waiting_expected": advice.value(cost.details["objects_in_flight"])}
    rows.sort(key=lambda row: -row["measured"])
    order = numpy.corrcoef(ranks([row["measured"] for row in rows]),
                           ranks([row["expected"]["median"] for row in rows]))[0, 1]
    return {"program": "prudence-advise check", "format": 1, "repeats": repeats, "seconds": seconds, "rows": rows,
            "rank_correlation": float(order)}


def text(answer):
    lines = [f"{'operations a second':<42}{'measured':>10}{'least to most':>22}{'model':>10}{'measured / model':>18}"]
    for row in answer["rows"]:
        spread = f"{advice.rate_text(row['least'])} to {advice.rate_text(row['most'])}"
        lines.append(f"{row['title']:<42}{advice.rate_text(row['measured']):>10}{spread:>22}"
                     f"{advice.rate_text(row['expected']['median']):>10}{row['ratio']:>18.2f}")
    ours = next(row for row in answer["rows"] if row["name"] == "rcu")
    lines += ["", f"RCU: {ours['waiting']:.0f} objects waited for a grace period (median of looks), the model says "
              f"{ours['waiting_expected']:.0f}.", f"Rank correlation of both orders: {answer['rank_correlation']:.2f}"]
    return "\n".join(lines)


def warn(load, machine):
    if load.threads > machine.cpus:
        print(f"prudence-advise: {load.threads} threads on {machine.cpus} CPUs: threads lose their CPU while they hold "
              "locks, which the model leaves out", file=sys.stderr)
