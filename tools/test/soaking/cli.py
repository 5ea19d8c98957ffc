# SPDX-License-Identifier: MIT
"""The command: chooses the next run, keeps its result, and prints the progress.

Next is the job that has had the least time for its share, in this journal. So a soak that is begun anew goes on where
the last one was, and a longer one does more of everything. A finding ends nothing: its log is kept, the others go on, and the
command ends with 1, as every later one does with this journal and revision. A job with three findings at one revision rests until the
revision changes.
"""

import argparse
import datetime
import os
import shutil
import signal
import sys
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

from . import journal, plan, runs, totals, tree

ENOUGH = 3  # findings of a job at one revision


def arguments(words):
    parser = argparse.ArgumentParser(prog="soak", description="Torture, storms of options, fuzzers, models in depth, and guests, until the time is "
                                     "over or Control-C. The next call goes on where this one was.")
    parser.add_argument("--minutes", type=float, metavar="N", help="start no run that would end later than N minutes from now")
    parser.add_argument("--hours", type=float, metavar="N", help="start no run that would end later than N hours from now")
    parser.add_argument("--runs", type=int, metavar="N", help="stop after N runs")
    parser.add_argument("--jobs", type=int, metavar="N", default=max(1, (os.cpu_count() or 1) // 2), help="runs at a time (%(default)s)")
    parser.add_argument("--nice", type=int, metavar="N", default=10, help="priority, 0 to 19 (%(default)s)")
    parser.add_argument("--folder", type=Path, default=tree.ROOT / "build/soak", help="folder of the runs (%(default)s)")
    parser.add_argument("--plan", type=Path, metavar="FILE", help="other jobs than the project's: a JSON list (tools/test/soaking/plan.py, Job)")
    parser.add_argument("--no-build", action="store_true", help="use the build and the revision of the last soak")
    parser.add_argument("--list", action="store_true", help="name the jobs and run none")
    parser.add_argument("--table", action="store_true", help="print the totals of the runs in this folder, and run none")
    parser.add_argument("--page", action="store_true", help="write docs/results-soak.md from this folder's runs and those that were kept, and run none")
    parser.add_argument("jobs_wanted", nargs="*", metavar="WORD", help="only jobs whose name has one of these")
    given = parser.parse_args(words)
    for name, least, most in (("minutes", 0, None), ("hours", 0, None), ("jobs", 1, None), ("runs", 1, None), ("nice", 0, 19)):
        value = getattr(given, name)
        if value is not None and (not value >= least or (most is not None and value > most)):
            parser.error(f"--{name}: {value} is below {least}" if not value >= least else f"--{name}: {value} is above {most}")
    if given.minutes is not None and given.hours is not None:
        parser.error("--minutes or --hours, not both")
    given.seconds = given.minutes * 60 if given.minutes is not None else given.hours * 3600 if given.hours is not None else None
    return given


def say(text):
    print(f"soak: {text}", flush=True)


def time_of(seconds):
    return f"{seconds // 3600:.0f}:{seconds % 3600 // 60:02.0f}:{seconds % 60:02.0f}"


class Soak:
    """Jobs, the journal, and the remaining time. All of it belongs to the first thread; others only run programs."""

    def __init__(self, jobs, kept, revision, given):
        self.jobs, self.kept, self.revision, self.given = jobs, kept, revision, given
        self.begun, self.stop = time.monotonic(), threading.Event()
        self.logs = kept.folder / "logs"
        self.logs.mkdir(exist_ok=True)
        self.used, self.took, self.found, self.over, self.seeds = {}, {}, {}, set(), {}
        committed = totals.load()["journals"] if given.plan is None else {}
        for entry in committed.values():
            for name, one in entry["programs"].items():
                self.seeds[name] = max(self.seeds.get(name, 0), one["seed"])
        for one in kept.runs:
            self.note(one)
        self.new = []

    def note(self, one):
        """Notes a run that has ended, in this call or an earlier one."""
        name = one["program"]
        self.used[name] = self.used.get(name, 0) + one["wall"]
        self.took[name] = one["wall"]
        self.seeds[name] = max(self.seeds.get(name, 0), one["seed"])
        if one.get("revision") == self.revision:
            found = self.found[name] = self.found.get(name, 0) + (one["result"] in totals.FOUND)
            once = next((job.once for job in self.jobs if job.name == name), False)
            if found >= ENOUGH or one["result"] == "skipped" or once:
                self.over.add(name)

    def left(self):
        return None if self.given.seconds is None else self.given.seconds - (time.monotonic() - self.begun)

    def next(self, busy):
        """Returns None if nothing more fits, or if all remaining jobs run already. The first run fits in any case, so that each call does
        something."""
        left, first = self.left(), not self.new and not busy
        if len(self.new) + len(busy) >= (self.given.runs or sys.maxsize):
            return None
        names, folders = {job.name for job in busy}, {job.builds for job in busy} - {None}
        fits = [job for job in self.jobs if job.name not in self.over | names and job.builds not in folders and
                (left is None or self.took.get(job.name, job.expected) <= left)]
        if not fits and first:
            fits = sorted((job for job in self.jobs if job.name not in self.over), key=lambda job: self.took.get(job.name, job.expected))[:1]
        return min(fits, key=lambda job: self.used.get(job.name, 0) / job.share, default=None)

    def run(self, job, seed):
        values = {"seed": seed, "options": plan.storm(seed), "work": str(self.kept.folder)}
        mark = f"{self.kept.id}:{job.name}:{seed};"
        place = self.logs / f"{job.name.replace('/', '-').replace(' ', '-')}.log"
        begun = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        came = runs.run(job, values, mark, place, self.stop)
        return came and {"program": job.name, "architecture": job.architecture, "seed": seed, "revision": self.revision, "begun": begun, **came}, place

    def keep(self, one, place):
        """The log of a finding first: a finding without a log would be worth nothing."""
        if one["result"] in totals.FOUND:
            log = self.kept.findings / f"{place.stem}-{one['seed']}-{self.revision}.log"
            shutil.copyfile(place, log)
            one["log"] = log.name
        self.kept.add(one)
        self.new.append(one)
        self.note(one)
        self.progress(one)

    def progress(self, one):
        found = sum(run["result"] in totals.FOUND for run in self.new)
        time_ = time_of(time.monotonic() - self.begun) + (f" of {time_of(self.given.seconds)}" if self.given.seconds is not None else "")
        operations = f", {one['operations']:,} operations" if one["operations"] else ""
        say(f"{time_}, run {len(self.new)}, {found} findings: {one['program']}, seed {one['seed']}: {one['result']}, {one['seconds']:.0f} s{operations}")
        if one["result"] in totals.FOUND:
            say(f"FINDING: {self.kept.findings / one['log']}")

    def go_on(self):
        running = {}
        with ThreadPoolExecutor(self.given.jobs) as pool:
            try:
                while True:
                    while len(running) < self.given.jobs and (job := self.next(list(running.values()))):
                        running[pool.submit(self.run, job, self.seeds.get(job.name, 0) + 1)] = job
                    if not running:
                        return
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        del running[future]
                        self.keep(*future.result())
            except BaseException:
                self.stop.set()  # running ones are ended, and their seeds tried again
                raise


def machine():
    model = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), os.uname().machine)
    return f"{os.cpu_count()} CPUs, {model}, Linux {os.uname().release.split('-')[0]}"


def jobs_of(given):
    """Builds the requirements of the project's jobs. Returns (jobs, revision)."""
    if given.plan:
        return plan.load(given.plan), "plan"
    source = given.folder / "source"
    named = given.folder / "revision"
    if not given.no_build:
        revision = tree.revision()
        source.mkdir(parents=True, exist_ok=True)
        tree.copy(source)
        tree.share(source)
        tree.build(source, say)
        named.write_text(revision + "\n")
    if not named.exists():
        raise tree.Failed(f"nothing was built in {given.folder}; leave out --no-build")
    return plan.of_the_tree(source), named.read_text().strip()


def summary(soak):
    print(totals.table(totals.of_runs(soak.kept.runs)))
    for sentence in totals.sentences(totals.of_runs(soak.kept.runs)):
        say(sentence)
    resting = sorted(job.name for job in soak.jobs if soak.found.get(job.name))
    if resting:
        say(f"FINDINGS at {soak.revision}: {', '.join(resting)}; logs in {soak.kept.findings}")
    return 1 if resting else 0


def soak(given, kept):
    if given.table:
        print(totals.table(totals.of_runs(kept.runs)))
        return 0
    if given.page:
        totals.write_page(totals.keep(kept, machine()))
        return 0
    jobs, revision = jobs_of(given)
    jobs = [job for job in jobs if not given.jobs_wanted or any(word in job.name for word in given.jobs_wanted)]
    if not jobs:
        say("no job has such a name")
        return 2
    if given.list:
        print("\n".join(job.name for job in jobs))
        return 0
    os.nice(given.nice)
    runs.end_all(f"{kept.id}:")  # ends processes of a soak that was killed
    one = Soak(jobs, kept, revision, given)
    say(f"{len(jobs)} jobs at {revision}, {given.jobs} at a time; {len(kept.runs)} runs are kept in {kept.place}")
    try:
        one.go_on()
    except KeyboardInterrupt:
        say("interrupted; finished runs are kept, and the next call continues from there")
    return summary(one)


def main(words):
    given = arguments(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Control-C
    try:
        return soak(given, journal.Journal(given.folder.resolve()))
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except (journal.Broken, tree.Failed, ValueError, OSError) as error:
        print(f"soak: {error}", file=sys.stderr)
        return 2
