# SPDX-License-Identifier: MIT
"""The command line of lab/reproduce/kernel-evaluate: kernels, disks, one boot for each run, one document of all runs.

A finished run is kept in FOLDER/runs with its dependencies (kernel, load, program). A run whose file fits is not made again."""

import dataclasses
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import keep, report
from measure.arguments import Parser
from measure.command import ROOT, commit, now
from . import figures, plan

KERNELS = ROOT / "build/kernel"


@dataclasses.dataclass(frozen=True)
class Mode:
    kind: str               # of kernel (tools/kernel/tree)
    what: str               # for --help
    one_cpu: bool = False   # whatever --cpus says
    clock: bool = False     # the host's, so nothing else may run
    once: bool = False      # a further round would say the same
    memory: int = 0         # MB, at least
    others: bool = True     # also loads that are not the paper's
    own: bool = False       # only loads of kernel/tree/load.c


MODES = {
    "instructions": Mode("evaluate", "one emulated CPU that counts them", one_cpu=True, others=False),
    "latency": Mode("evaluate", "how long each operation of one thread takes, counted likewise; only loads of our own", one_cpu=True, own=True),
    "latency_wall": Mode("evaluate", "the same on several CPUs at once, by the host's clock", clock=True, own=True),
    "counts": Mode("evaluate-stats", "SLUB counts too"),
    "locks": Mode("evaluate-locks", "of nodes: how often they are taken"),
    "wall": Mode("evaluate", "CPUs emulated at once, by the host's clock; one guest at a time", clock=True, others=False),
    "checked": Mode("debug-evaluate-stress", "lockdep and KASAN must not complain; figures do not count", once=True, memory=2048),
}
PROGRAMS = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "cpio": "cpio", "mmdebstrap": "mmdebstrap",
            "mkfs.ext4": "e2fsprogs", "flex": "flex", "bison": "bison", "bc": "bc", "gcc": "build-essential"}
DISKS_MB = 16384  # more than all disks have
OUT_OF_MEMORY = ("Out of memory", "deadlocked on memory")  # as the kernel says it
COMPLAINTS = (*OUT_OF_MEMORY, "WARNING:", "BUG:", "Oops", "INFO: rcu", "INFO: task", "INFO: trying", "DEBUG_LOCKS", "Killed process")


def die(text):
    sys.exit(f"kernel-evaluate: {text}")


def parse_arguments(arguments):
    parser = Parser("kernel-evaluate", "The paper's evaluation: its loads in a Linux whose caches are SLUB's or Prudence's, the same transactions on a fresh boot.")
    parser.add_names("--load", plan.LOADS, "only these of " + ", ".join(plan.LOADS) + "; attack takes hours, and runs only if it is named",
                     [name for name, load in plan.LOADS.items() if not load.asked])
    parser.add_names("--mode", MODES, ", ".join(f"{name} ({mode.what})" for name, mode in MODES.items()) + "; all is the default")
    parser.add_names("--side", plan.SIDES, f"of {', '.join(plan.SIDES)}: kfree_rcu is SLUB with kfree_rcu for call_rcu, slub_lists is SLUB with per-CPU lists of "
                     f"{plan.LIST} objects, nocbs and normal have RCU with {plan.NOCBS} and {plan.NORMAL}, no_preflush and no_hasten are Prudence without pre-flush, and with grace periods that wait for ticks "
                     f"({','.join(plan.PAIR)})", list(plan.PAIR))
    parser.add_number("--scale", 0.001, 1000, "how many transactions; with 1, a cache has 5,000 to 200,000 pairs, the paper's over a million (1)", float, 1.0,
                      metavar="X")
    parser.add_number("--rounds", 1, 100, "boots of each load and side, in turn (2)", default=2)
    parser.add_number("--cpus", 1, 16, "of all modes but instructions and latency; emulated in turn by one thread, in mode wall by one each (2)", default=2)
    parser.add_number("--nodes", 1, 2, "of all modes but instructions and latency (1)", default=1, wanted="1 or 2")
    parser.add_number("--memory", 128, 65536, "of the guest (1024)", default=1024, metavar="MB")
    parser.add_number("--jobs", 1, 64, "guests at a time, each of which is one thread of this machine; figures do not change by it (1)", default=1)
    parser.add_number("--timeout", 1, 86400, "a run that takes longer has failed (1800)", default=1800, metavar="SECONDS")
    parser.add_argument("--folder", metavar="FOLDER", type=Path, default=ROOT / "build/report/kernel-evaluate",
                        help="for runs (build/report/kernel-evaluate); all of them together in FOLDER.json")
    parser.add_argument("--kmalloc", action="store_true", help="with kernels in which kmalloc's caches move, too, and kfree_rcu defers their objects "
                        "(CONFIG_PRUDENCE_KMALLOC); use another --folder")
    parser.add_argument("--list", action="store_true", help="list loads, and end")
    request = parser.parse_args(arguments)
    if request.cpus % request.nodes or request.memory % request.nodes:
        parser.error(f"--cpus {request.cpus} and --memory {request.memory} must be multiples of --nodes {request.nodes}")
    return request


def missing_programs():
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    return [f"{name} (package {package})" for name, package in PROGRAMS.items() if not shutil.which(name, path=path)]


# ----------------------------------------------------------------------------------------- requirements of runs

def call(*command, **more):
    done = subprocess.run(command, text=True, check=False, cwd=ROOT, **more)
    if done.returncode:
        die(f"{' '.join(map(str, command))} failed ({done.returncode})")
    return done.stdout


def kind_of(mode, request):
    return MODES[mode].kind + "-kmalloc" * request.kmalloc


def make_inputs(request, work):
    """Kernels, disks and the program; `work` is removed at the end."""
    for mode in request.mode:
        call("tools/kernel/tree", "build", env={**os.environ, "KIND": kind_of(mode, request)})
    programs = Path(call("tools/kernel/fetch", "programs", stdout=subprocess.PIPE).strip())
    call("tools/kernel/fetch", "qemu", stdout=subprocess.PIPE)  # once, before several guests want it
    call("gcc", "-O2", "-static", "-pthread", "-o", work / "load", "kernel/tree/load.c")
    call("truncate", "-s", "4G", work / "work")
    call("mkfs.ext4", "-q", "-F", work / "work", env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"})
    call("tar", "--sort=name", "--owner=0", "--group=0", "-cf", work / "archive", "-C", KERNELS / "6.1-tree/source", "include")
    call("truncate", "-s", "%2M", work / "archive")
    return [programs / "disk", work / "work", work / "archive"]


def kernel_of(mode, request):
    return KERNELS / f"6.1-tree/build-{kind_of(mode, request)}/arch/x86/boot/bzImage"


def machine_of(mode, load, request):
    """CPUs, nodes and memory of a guest."""
    one = MODES[mode].one_cpu
    cpus = 1 if one else request.cpus
    return {"cpus": cpus, "nodes": 1 if one else request.nodes, "memory": max(request.memory, MODES[mode].memory, cpus * load.cpu_mb)}


def append_of(side):
    """To the kernel's command line."""
    return f"{plan.BOTH} {plan.SIDES[side].append}"


def identity_of(mode, load, side, request, work):
    """Returns everything on which a run depends, except the round."""
    digest = hashlib.sha256()
    for file in (kernel_of(mode, request), work / "load", ROOT / "tools/kernel/boot"):
        digest.update(file.read_bytes())
    digest.update(append_of(side).encode())
    digest.update(plan.script_of(load, side, request.scale, mode).encode())
    return {"digest": digest.hexdigest(), **machine_of(mode, load, request)}


# -------------------------------------------------------------------------------------------------- a run

def boot(mode, load, side, turn, request, work, disks, place):
    """Returns the output of the guest as figures. For counts, a run that ends without memory is a result, too. A run that is repeated says the
    same to the instruction, so rounds differ in their random numbers."""
    script = work / f"script-{place.stem}"
    script.write_text(plan.script_of(load, side, request.scale, mode))
    machine = machine_of(mode, load, request)
    devices = ["-machine", "nvdimm=on", "-m", f"slots={len(disks)},maxmem={machine['memory'] + DISKS_MB}M"]
    for i, disk in enumerate(reversed(disks)):  # the guest's first is the last named
        devices += ["-object", f"memory-backend-file,id=disk{i},mem-path={disk},size={disk.stat().st_size},share=off",
                    "-device", f"nvdimm,memdev=disk{i},node=0"]
    console = place.with_suffix(".console")
    environment = {
        **os.environ, "FILES": str(work / "load"), "APPEND": append_of(side), "CONSOLE": str(console),
        "VMLINUZ": str(kernel_of(mode, request)), "TIMEOUT": str(request.timeout), **{name.upper(): str(value) for name, value in machine.items()},
        **({"CX16": "1"} if MODES[mode].clock else {"ICOUNT": "1", "SEED": str(turn + 1)})}
    # The emulated CPU has cmpxchg16b, because Debian's SLUB uses it (docs/adr/0084).
    status, printed = keep.run_session(["tools/kernel/boot", "6.1-tree", str(script), "-cpu", "max,-la57", *devices], environment, ROOT)
    said = console.read_text(errors="replace") if console.exists() else ""
    complaints = [line for word in COMPLAINTS for line in said.splitlines() if word in line]
    if mode == "checked" and not status and plan.LOCKDEP_LASTED not in printed:
        complaints.append("lockdep did not last until the end")
    if mode == "counts" and complaints and all(any(words in line for words in OUT_OF_MEMORY) for line in complaints):
        return {"out_of_memory": True}
    if status or complaints:
        return {"failed": "\n".join([*complaints[:5], *printed.splitlines()[-8:]])}
    try:
        return figures.read(printed, mode)
    except figures.Incomplete as why:
        return {"failed": f"{why} ({console})"}


def runs_of(request):
    """Rounds outermost, sides innermost, so that both sides meet the same disturbance."""
    return [(mode, load, side, turn) for turn in range(request.rounds) for mode in request.mode if not (turn and MODES[mode].once)
            for load in request.load if has(mode, plan.LOADS[load]) for side in request.side]


def has(name, load):
    """Returns whether the mode of that name has the load. tools/kernel/tree figures counts the instructions of loads that are not the paper's,
    exactly."""
    mode = MODES[name]
    return (load.paper or mode.others) and (load.own or not mode.own) and (not load.modes or name in load.modes)


def run_once(mode, load, side, turn, request, work, disks, place):
    run = boot(mode, load, side, turn, request, work, disks, place)
    return run if "failed" in run else run | {"mode": mode, "load": load.name, "side": side, "round": turn,
                                              "transactions": plan.transactions_of(load, request.scale)}


def run_all(request, work, disks):
    """Guests whose clock is the host's come last, and one at a time."""
    by_clock = [mode for mode in request.mode if MODES[mode].clock]
    runs, failed = run_modes(request, [mode for mode in request.mode if mode not in by_clock], request.jobs, work, disks)
    more, failed_too = run_modes(request, by_clock, 1, work, disks)
    return runs + more, failed + failed_too


def run_modes(request, modes, jobs, work, disks):
    """Returns (runs, skipped runs)."""
    folder, tasks = request.folder / "runs", []
    for mode, name, side, turn in runs_of(request):
        if mode not in modes:
            continue
        identity = identity_of(mode, plan.LOADS[name], side, request, work)
        file = f"{mode}-{identity['cpus']}x{identity['nodes']}-{name}-{side}-{turn}"
        run = functools.partial(run_once, mode, plan.LOADS[name], side, turn, request, work, disks, folder / f"{file}.json")
        tasks.append(keep.Task(file, f"{mode}, {name}, {side}, round {turn + 1}", (mode, name), identity, run))
    runs, failed = keep.run_all("kernel-evaluate", tasks, folder, jobs)
    return ([run | {"cpus": run["identity"]["cpus"], "nodes": run["identity"]["nodes"]} for run in runs],
            [{"subject": title, "why": "the run failed"} for title, _ in failed])


def document_of(request, runs, failed):
    release = KERNELS / "6.1-tree/release"
    compiler = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=False).stdout.strip()
    return {"program": "kernel-evaluate", "date": now(), "prudence": commit(),
            "scale": request.scale, "memory": request.memory,
            "host": {"cpu": "QEMU without KVM on " + platform.machine(), "cpus": os.cpu_count(), "system": "Linux",
                     "kernel": release.read_text().strip() if release.exists() else "unknown", "libc": platform.libc_ver()[1], "compiler": compiler,
                     "huge_pages": "none"},
            "skipped": failed, "runs": runs}


def main(arguments, _=None):
    request = parse_arguments(arguments)
    if request.list:
        for load in plan.LOADS.values():
            print(f"{load.name:12} {plan.transactions_of(load, request.scale):>9,} x {load.unit:16} {load.title}")
        return 0
    missing = missing_programs()
    if missing:
        die("not installed: " + ", ".join(missing) + ". Run: tools/setup --fuzz")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        runs, failed = run_all(request, work, make_inputs(request, work))
    if not runs:
        die("no run succeeded")
    target = request.folder.with_suffix(".json")
    keep.write(target, document_of(request, runs, failed))
    print(f"kernel-evaluate: {len(runs)} runs in {target}", file=sys.stderr)
    report.main([str(target)])
    return 1 if failed else 0
