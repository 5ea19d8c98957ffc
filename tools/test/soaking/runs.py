# SPDX-License-Identifier: MIT
"""A run of a program: begun in a session of its own, with its output in a file, and ended as a whole.

Programs fork, make sessions, stop each other and ignore signals. So a mark in the environment shows which processes belong to a
run. They are ended by SIGKILL, also those of an earlier soak that was killed itself.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

MARK = "SOAK_RUN"
SKIPPED = 77
TAIL = 200_000  # bytes of a program's output that are searched


def marked(mark):
    """Processes whose mark begins so."""
    wanted = f"{MARK}={mark}".encode()
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            if any(entry.startswith(wanted) for entry in place.read_bytes().split(b"\0")):
                yield int(place.parent.name)
        except OSError:
            pass  # it has ended, or is another user's


def end_all(mark):
    """Repeats until no process remains, because one may fork during the search."""
    for _ in range(100):
        found = [process for process in marked(mark) if process != os.getpid()]
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                pass
        if not found:
            return
        time.sleep(0.02)


def stacks(mark, log):
    """Returns the stacks of the threads of a run that hangs."""
    if not shutil.which("gdb"):
        return
    for process in sorted(marked(mark)):
        log.write(f"\n--- process {process}\n".encode())
        log.flush()
        try:
            subprocess.run(["gdb", "-batch", "-nx", "-ex", "thread apply all bt 12", "-p", str(process)], stdin=subprocess.DEVNULL, stdout=log,
                           stderr=subprocess.STDOUT, timeout=60)
        except (subprocess.TimeoutExpired, OSError):
            pass


def last_bytes(place, begin):
    """Returns the end of the first line after `begin`; that line is not the program's."""
    with open(place, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(begin, file.tell() - TAIL))
        return file.read().decode(errors="replace")


def added_up(pattern, text):
    """Returns the numbers that a pattern finds in the output of a program, or None."""
    found = re.findall(pattern, text, re.M) if pattern else []
    return sum(int(number) for number in found) if found else None


def filled(text, values):
    for name, value in values.items():
        text = text.replace("{" + name + "}", str(value))
    return text


def begin(job, values, mark, log):
    """(process, bytes before its output, why there is no process). Its command stands first in its log."""
    command = [filled(word, values) for word in job.command]
    environment = {name: filled(value, values) for name, value in job.environment.items()}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PRUDENCE_", "LD_", "MAKE", "GLIBC_"))}
    settings = [f"{name}={value}" for name, value in sorted(environment.items())]
    log.write(f"{shlex.join(['env', *settings, *command])}\n\n".encode())
    log.flush()
    own = log.tell()  # it shares the position from now on
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                                env=inherited | environment | {MARK: mark}, cwd=job.folder), own, ""
    except OSError as error:
        log.write(f"{error}\n".encode())
        return None, own, str(error)


def wait_for(child, deadline, stop):
    """(status, usage of it and of the processes that it waited for); None: it takes too long, or the soak stops."""
    pause = 0.001
    while time.monotonic() < deadline and not stop.is_set():
        process, status, usage = os.wait4(child.pid, os.WNOHANG)
        if process:
            return status, usage
        time.sleep(pause)
        pause = min(pause * 2, 0.2)
    return None


def end(child, mark, log, hangs):
    if hangs:
        stacks(mark, log)
    end_all(mark)
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass  # the mark has found it
    return os.wait4(child.pid, 0)[1:]


def run(job, values, mark, place, stop):
    """Returns the result, or None if the soak stopped before the end. `place` has the output. No process of the run remains."""
    begun = time.monotonic()
    with open(place, "wb") as log:
        child, own, error = begin(job, values, mark, log)
        if not child:
            return {"result": "failed", "status": error, "seconds": 0.0, "wall": 0.0, "cpu": 0.0, "operations": None}
        ended = wait_for(child, begun + job.limit, stop)
        hangs = not ended and not stop.is_set()
        status, usage = ended or end(child, mark, log, hangs)
        end_all(mark)  # the processes that it left
        child.returncode = os.waitstatus_to_exitcode(status)
    if not ended and not hangs:
        return None
    result = "hangs" if hangs else {0: "ok", SKIPPED: "skipped"}.get(child.returncode, "failed")
    wall, text = round(time.monotonic() - begun, 2), last_bytes(place, own)
    return {"result": result, "status": child.returncode, "wall": wall, "cpu": round(usage.ru_utime + usage.ru_stime, 2),
            "seconds": float(added_up(job.seconds_from, text) or 0) if job.seconds_from else wall, "operations": added_up(job.operations, text)}
