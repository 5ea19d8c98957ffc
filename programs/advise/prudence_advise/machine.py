# SPDX-License-Identifier: MIT
"""The costs of operations on a machine: measured by prudence-calibrate, kept in a file, and read as numbers with spread."""

import json
import math
import os
import subprocess
from pathlib import Path

import numpy

from .model import Latencies

FORMAT = 1
QUARTILES_OF_NORMAL = 1.349  # quartiles of a normal distribution are this many deviations apart
FAR_PER_NEAR = (2.0, 3.0, 4.0)  # a transfer between nodes, if only one node could be measured: an estimate
NEAR = (40.0, 60.0, 90.0)  # a transfer on a node, ns, if only one CPU could be measured: an estimate
# Names that advice needs; others may be missing.
NEEDED = ("instruction", "clock", "atomic_increment", "fence", "mutex", "spinlock", "read_lock", "write_lock",
          "sequence_read", "hazard_free", "hazard_pair", "reader_free", "reader_fenced", "pair_free", "pair_fenced")


class BadCalibration(Exception):
    """The file cannot be used; the text says which and why."""


def default_path():
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # in a container the user may have neither HOME nor a line in /etc/passwd
        raise BadCalibration("this user has no home, where the calibration would be: set XDG_CACHE_HOME") from None
    return Path(cache) / "prudence" / "calibration.json"


def load(path):
    try:
        document = json.loads(Path(path).read_text())
    except OSError as error:
        raise BadCalibration(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise BadCalibration(f"{path}: it is not JSON ({error})") from error
    check(document, path)
    return document


def check(document, path):
    if not isinstance(document, dict) or document.get("program") != "prudence-calibrate":
        raise BadCalibration(f"{path}: it is not a calibration of prudence-calibrate")
    if document.get("format") != FORMAT:
        raise BadCalibration(f"{path}: its format is {document.get('format')}, and this program reads {FORMAT}")
    costs = document.get("costs", {})
    missing = [name for name in NEEDED if name not in costs]
    if missing:
        raise BadCalibration(f"{path}: it lacks {', '.join(missing)}")
    for name, cost in [*costs.items(), *((f"transfer {one.get('a')} to {one.get('b')}", one)
                                         for one in document.get("transfers", []))]:
        for key in ("median", "q1", "q3"):
            if not isinstance(cost.get(key), (int, float)) or not cost[key] > 0 or not math.isfinite(cost[key]):
                raise BadCalibration(f"{path}: {name}: '{key}' is not a number of nanoseconds above 0")
    for number, one in enumerate(document.get("checks", []), 1):
        if not is_check(one):
            raise BadCalibration(f"{path}: check {number}: it lacks a load, CPUs, or rates above 0")


def is_check(one):
    """Says whether this is a result that `prudence-advise check` keeps."""
    if not isinstance(one, dict) or not isinstance(one.get("cpus"), int) or one["cpus"] < 1:
        return False
    load, rates = one.get("load"), one.get("rates")
    if not isinstance(load, dict) or not isinstance(rates, dict) or "threads" not in load:
        return False
    numbers = [*load.values(), *rates.values()]
    return (all(isinstance(number, (int, float)) and math.isfinite(number) and number >= 0 for number in numbers)
            and all(rate > 0 for rate in rates.values()) and load["threads"] >= 1)


def measure(programs, repeats=21, seconds=0.001):
    """Runs prudence-calibrate; its document."""
    program = programs / "prudence-calibrate"
    try:
        done = subprocess.run([program, f"--repeats={repeats}", f"--seconds={seconds}"], text=True,
                              capture_output=True, check=False)
    except OSError as error:
        raise BadCalibration(f"{program}: {error.strerror}") from error
    if done.returncode:
        raise BadCalibration(f"prudence-calibrate failed: {done.stderr.strip()}")
    document = json.loads(done.stdout)
    check(document, program)
    return document


def save(document, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(document, indent=1) + "\n")
    unfinished.replace(path)


def is_of_this_machine(document):
    """Says whether the calibration was measured on this processor with this number of CPUs."""
    host = document.get("host", {})
    return host.get("cpus") == len(os.sched_getaffinity(0)) and host.get("cpu") in ("unknown", processor())


def processor():
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return "unknown"


def distance(one, other):
    """How far two CPUs of the topology are apart."""
    if one["node"] != other["node"]:
        return "other node"
    if one["core"] >= 0 and (one["core"], one["package"]) == (other["core"], other["package"]):
        return "same core"
    if one["cache"] >= 0 and one["cache"] == other["cache"]:
        return "same cache"
    return "same node"


def transfers_by_distance(document):
    """Distance -> the measured pairs of CPUs."""
    places = {place["cpu"]: place for place in document.get("topology", [])}
    found = {}
    for one in document.get("transfers", []):
        if one["a"] in places and one["b"] in places:
            found.setdefault(distance(places[one["a"]], places[one["b"]]), []).append(one)
    return found


class Machine:
    """Costs in ns. Each is an array: the median, then `draws` values that the measured quartiles make likely."""

    def __init__(self, document, cpus=None, nodes=None, far=None, draws=0, seed=1):
        self.document = document
        self.draws = draws
        self.random = numpy.random.default_rng(seed)
        self.assumed = []
        self.costs = {name: self.spread(one["q1"], one["median"], one["q3"])
                      for name, one in document["costs"].items()}
        places = document.get("topology", [])
        self.cpus = cpus or max(1, len(places))
        self.nodes = nodes or max(1, len({place["node"] for place in places}))
        if cpus and len(places) and cpus != len(places):
            self.assumed.append(f"{cpus} CPUs; this machine has {len(places)}, and transfers cost as much as here")
        by_distance = transfers_by_distance(document)
        self.near = self.near_transfer(by_distance)
        self.far = self.far_transfer(by_distance, far)

    def spread(self, low, median, high):
        deviation = math.log(high / low) / QUARTILES_OF_NORMAL
        return numpy.concatenate([[median], median * numpy.exp(deviation * self.random.standard_normal(self.draws))])

    def __getitem__(self, name):
        return self.costs[name]

    def get(self, *names):
        """The first of these that was measured."""
        return next((self.costs[name] for name in names if name in self.costs), None)

    def pooled(self, pairs):
        return self.spread(*(float(numpy.median([one[key] for one in pairs])) for key in ("q1", "median", "q3")))

    def near_transfer(self, by_distance):
        pairs = [one for kind, ones in by_distance.items() if kind in ("same cache", "same node") for one in ones]
        pairs = pairs or by_distance.get("same core") or by_distance.get("other node")
        if pairs:
            return self.pooled(pairs)
        self.assumed.append(f"a line from another CPU takes {NEAR[1]:.0f} ns: one CPU could be measured")
        return self.spread(*NEAR)

    def far_transfer(self, by_distance, far):
        if far:
            self.assumed.append(f"a line from another node takes {far:g} ns, as given")
            return self.spread(far, far, far)
        if "other node" in by_distance:
            return self.pooled(by_distance["other node"])
        if self.nodes > 1:
            self.assumed.append(f"a line from another node takes {FAR_PER_NEAR[1]:g} times one from the same node: "
                                "only one node could be measured (--far gives it)")
        return self.near * self.spread(*FAR_PER_NEAR)

    def other(self, active):
        """A line from one of the other CPUs, if `active` run threads, spread evenly over the nodes."""
        if active <= 1:
            return 0.0 * self.near
        on_node = max(1.0, active / min(self.nodes, active))
        near = (on_node - 1) / (active - 1)
        return near * self.near + (1 - near) * self.far

    def line(self, active):
        """A line that any of `active` CPUs had last, this one included: 7.1 less its two accesses of t_f."""
        return self.other(active) * (active - 1) / active

    def membarrier(self, active):
        """Returns the cost where `active` CPUs run the process: each except the own is interrupted, so it is taken to grow with them."""
        alone = self.get("membarrier")
        if alone is None:
            return self.get("fence") * 0 + 50e3  # by visits to each CPU (ADR 2)
        shared = self.get("membarrier_beside")
        if shared is None or active <= 1:
            return alone
        return alone + numpy.maximum(shared - alone, 0) * (active - 1)

    def latencies(self):
        """t_f, t_m, t_s and t_c of the thesis, medians: its cache is one that is not on the core, so t_f is the second level."""
        fast = self.get("load_l2", "load_l1", "instruction")[0]
        return Latencies(fast, self.near[0], self.far[0] if self.nodes > 1 else self.near[0], self["clock"][0])
