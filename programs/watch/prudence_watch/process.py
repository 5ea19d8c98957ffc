# SPDX-License-Identifier: MIT
"""Processes that have the library: finding them, and reading their memory.

Memory is read through /proc/PID/mem, opened for reading once. The descriptor belongs to the program that runs then: when that
ends, or another takes its place (exec), or another process gets its number, reads give nothing more. So a watcher never
takes another process for its own.

Any process may call itself as it likes, so one is searched for by its name among those of one user alone.
"""

import os
import pwd
import time
from pathlib import Path

from . import bounds
from .errors import Ended, WatchError
from .memory import Memory, Target
from .note import table_in

PROC = Path("/proc")
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
SEVERAL = -1  # instead of a user: the process has rights of more than one, or is over


def user_name(uid):
    if uid == SEVERAL:
        return "several users"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def name_of(pid):
    """Returns the name that the system has for the process (15 bytes)."""
    try:
        return (PROC / str(pid) / "comm").read_bytes().decode(errors="replace").strip("\n")
    except OSError:
        return ""


def names_of(pid):
    """Returns the names by which --name finds the process: the system's, and that of the program's file."""
    names = {name_of(pid)}
    try:
        names.add(Path(os.readlink(PROC / str(pid) / "exe")).name.removesuffix(" (deleted)"))
    except OSError:
        pass
    return names - {""}


def uid_of(pid):
    """The user whose program it runs, with this user's rights alone: a setuid program has another effective user, who alone could read
    its folder in /proc."""
    try:
        for line in (PROC / str(pid) / "status").read_text(errors="replace").splitlines():
            if line.startswith("Uid:"):
                real, effective = line.split()[1:3]
                return int(real) if real == effective else SEVERAL
    except OSError:
        pass
    return SEVERAL


def inner_pid(pid):
    """Its own number, in its own namespace."""
    try:
        for line in (PROC / str(pid) / "status").read_text(errors="replace").splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    except OSError:
        pass
    return pid


class Modules:
    """The programs and libraries that a process has mapped."""

    def __init__(self, pid):
        self.starts = []  # (address, file) of each mapping of a file's first page
        with (PROC / str(pid) / "maps").open(errors="replace") as maps:
            for line in maps:
                words = line.split(maxsplit=5)
                if len(words) == 6 and words[1].startswith("r") and not words[2].strip("0") and words[5].startswith("/"):
                    self.starts.append((int(words[0].split("-")[0], 16), (words[3], words[4])))


def why_not(pid, own=None):
    """Why the system does not let this user read the process."""
    own = os.geteuid() if own is None else own
    try:
        uid = (PROC / str(pid)).stat().st_uid
    except OSError:
        return f"process {pid} does not exist"
    who = f"process {pid} ({name_of(pid)})"
    if uid != own and own != 0:
        return f"{who} is of user {user_name(uid)}, and you are {user_name(own)}: run this as {user_name(uid)}, or as root"
    scope = YAMA.read_text().strip() if YAMA.exists() else "0"
    if scope != "0":
        return (f"{who} may not be read: kernel.yama.ptrace_scope is {scope}, which forbids a process to read others of its own user. "
                "Run this as root, or allow it: sysctl kernel.yama.ptrace_scope=0")
    return (f"{who} may not be read: it has forbidden that (setuid, or PR_SET_DUMPABLE), or it is in a container whose user you "
            "are not. Run this as root, outside of the container")


class LiveMemory(Memory):
    """The memory of the program that a process runs now."""

    def __init__(self, pid):
        super().__init__()
        self.pid = pid
        try:
            self.fd = os.open(PROC / str(pid) / "mem", os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError:
            raise WatchError(why_not(pid)) from None
        except (FileNotFoundError, ProcessLookupError):
            raise WatchError(f"process {pid} does not exist") from None

    def close(self):
        os.close(self.fd)

    def at(self, address, size):
        part = os.pread(self.fd, size, address)
        if not part:
            raise Ended(f"process {self.pid} has ended, or runs another program")
        return part


class Process(Target):
    """A process that has the library."""

    def __init__(self, pid, user=None):
        """user: whose it has to be; None: anyone's. It is asked for when the memory is open, which that of another program cannot
        become then."""
        super().__init__(LiveMemory(pid), pid, name_of(pid), f"process {pid}")
        try:
            self.user = uid_of(pid)
            if user is not None and self.user != user:
                raise Ended(f"process {pid} is of another user than {user_name(user)} now")
            self._find()
        except BaseException:
            self.close()
            raise

    def _find(self):
        try:
            starts = [start for start, _ in Modules(self.pid).starts]
        except PermissionError:
            raise WatchError(why_not(self.pid)) from None
        except OSError:
            raise Ended(f"process {self.pid} has ended") from None
        self.find(starts)
        self.inner_pid = inner_pid(self.pid)

    def check(self):
        """Checks, before each sample, that the process runs the same program."""
        self.threads = None
        super().check()

    def resident(self):
        try:
            pages = (PROC / str(self.pid) / "statm").read_text().split()[1]
        except (OSError, IndexError):
            raise Ended(f"process {self.pid} has ended") from None
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def outer_thread(self, thread):
        """The number here of a thread that has this number in the process's own namespace."""
        if self.inner_pid == self.pid:
            return thread
        if self.threads is None:
            tasks = PROC / str(self.pid) / "task"
            self.threads = {inner_pid(f"{self.pid}/task/{task.name}"): task.name for task in tasks.iterdir()} if tasks.exists() else {}
        return self.threads.get(thread, 0)

    def now(self):
        return time.monotonic_ns()

    def mappings(self):
        with (PROC / str(self.pid) / "maps").open(errors="replace") as maps:
            return [line.rstrip("\n") for line in maps]

    def thread_name(self, thread):
        return name_of(f"{self.pid}/task/{self.outer_thread(thread)}")


def processes():
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            yield int(entry.name)


def has_library(pid, known):
    """Says whether a process has the library. known: earlier answers for files, by device and number."""
    modules, memory = Modules(pid), None
    try:
        for start, file in modules.starts:
            if file not in known:
                memory = memory or LiveMemory(pid)
                known[file] = table_in(memory, start) is not None
            if known[file]:
                return True
    finally:
        if memory:
            memory.close()
    return False


def watchable(user):
    """The processes of a user that have the library, and may be read."""
    found, known = [], {}
    for pid in processes():
        try:
            if uid_of(pid) == user and pid != os.getpid() and has_library(pid, known):
                found.append(pid)
        except (OSError, WatchError):
            continue
    return sorted(found)


def of_name(name):
    """All users' processes of that name: (number, user)."""
    return sorted((pid, uid_of(pid)) for pid in processes() if name in names_of(pid) and pid != os.getpid())
