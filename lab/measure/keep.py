# SPDX-License-Identifier: MIT
"""Runs that are kept: each is a file with its dependencies, so a measurement that was interrupted continues where it ended. A run whose
file fits is not made again; one that fails is reported, the others go on, and the next call tries it again."""

import dataclasses
import json
import math
import os
import resource
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable

from .command import Progress


@dataclasses.dataclass(frozen=True)
class Task:
    name: str        # of its file
    title: str       # in messages
    kind: object     # tasks of one kind take equally long
    identity: dict   # the values that its result depends on
    run: Callable[[], dict]  # returns the result; one with "failed" says why there is none
    seconds: float | None = None  # that it may take, until one of its kind has run
    most_others: float = math.inf  # CPUs that other programs may use meanwhile, or the result does not count


def write(place, document, indent=None):
    """Writes atomically: a reader finds the former file or this one, whatever happens. A path that is no file (/dev/stdout) is written directly."""
    if place.exists() and not place.is_file():
        place.write_text(json.dumps(document, indent=indent) + "\n")
        return
    fresh = place.with_name(place.name + ".new")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=indent) + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, place)


def kept(place, identity):
    """The run that is there already, if it depends on the same things."""
    try:
        found = json.loads(place.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return found if found.get("identity") == identity else None


def seconds_left(tasks, took):
    """Estimates from tasks of the same kind, else from the task's own estimate, else from the mean of all tasks. Returns None when none has run."""
    every = [seconds for many in took.values() for seconds in many]
    mean = sum(every) / len(every) if every else None
    found = [sum(took[one.kind]) / len(took[one.kind]) if one.kind in took else one.seconds or mean for one in tasks]
    return None if None in found else sum(found)


# ------------------------------------------------------------------------------------- others on this machine

def busy_seconds():
    """(CPU time of the whole machine, that of this process and of the children it waited for, the clock)"""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _, _, irq, softirq, steal = ticks
    own = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK"), own, time.monotonic()


def others_between(begun, ended):
    """How many CPUs other programs kept busy between two results of busy_seconds."""
    machine, own, clock = (after - before for before, after in zip(begun, ended))
    return max(0.0, machine - own) / max(clock, 1e-3)


# ----------------------------------------------------------------------------------------------------- sessions

def end_session(leader):
    """Ends all processes of that session: they may be grandchildren, in groups of their own."""
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(place.read_text().rpartition(")")[2].split()[3]) == leader:
                os.kill(int(place.parent.name), signal.SIGTERM)
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended


@dataclasses.dataclass
class Sessions:
    """The running sessions of all threads. One that begins after they were ended is ended by the thread that began it."""
    leaders: set = dataclasses.field(default_factory=set)
    ended: bool = False

    def end(self):
        self.ended = True
        for leader in list(self.leaders):
            end_session(leader)


SESSIONS = Sessions()


def run_session(command, environment, folder, timeout=None):
    """Returns (status, output). Status None means that it took longer than `timeout` seconds. None of its processes outlives an interruption."""
    with subprocess.Popen(command, cwd=folder, env=environment, text=True, errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as child:
        SESSIONS.leaders.add(child.pid)
        try:
            if SESSIONS.ended:
                end_session(child.pid)
            said = child.communicate(timeout=timeout)[0]
        except subprocess.TimeoutExpired:
            end_session(child.pid)
            return None, child.communicate()[0]
        except BaseException:
            end_session(child.pid)
            raise
        finally:
            SESSIONS.leaders.discard(child.pid)
        return child.returncode, said


# ------------------------------------------------------------------------------------------------------- all runs

def run_one(task):
    begun, busy = time.monotonic(), busy_seconds()
    try:
        run = task.run()
    except BaseException:
        SESSIONS.end()
        raise
    others = others_between(busy, busy_seconds())
    if "failed" not in run and others > task.most_others:
        run = {"failed": f"does not count: other programs used {others:.2f} CPUs meanwhile (at most {task.most_others})"}
    return run if "failed" in run else run | {"identity": task.identity, "seconds": time.monotonic() - begun, "load_average": os.getloadavg()[0],
                                              "others_cpus": others}


def run_all(program, tasks, folder, jobs=1):
    """(runs, [(title, why it failed)]); results stay in `folder`. `jobs` tasks run at a time; "others_cpus" counts the other ones, too."""
    say = Progress(program).say

    def find_or_run(i):
        if SESSIONS.ended:
            return {"failed": "interrupted"}
        task, place = tasks[i], folder / f"{tasks[i].name}.json"
        run = kept(place, task.identity)
        if not run:
            left = seconds_left(tasks[i:], took.copy())
            say(f"{i + 1} of {len(tasks)}: {task.title}" + (f"; some {left / jobs / 60:.0f} minutes left" if left is not None else ""))
            run = run_one(task)
            if "failed" in run:
                if not SESSIONS.ended:
                    say(f"FAILED: {task.title}\n{run['failed']}")
                return run
            write(place, run)
        took.setdefault(task.kind, []).append(run["seconds"])
        return run

    took = {}
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with ThreadPoolExecutor(jobs) as pool:  # whose end waits for all
            try:
                found = list(pool.map(find_or_run, range(len(tasks))))
            except BaseException:
                SESSIONS.end()
                raise
    finally:
        SESSIONS.ended = False
    return ([run for run in found if "failed" not in run], [(task.title, run["failed"]) for task, run in zip(tasks, found) if "failed" in run])
