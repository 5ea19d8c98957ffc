# SPDX-License-Identifier: MIT
"""Processes that let themselves be watched: finding them, and reading their memory.

Memory is read through /proc/PID/mem, opened for reading once. The descriptor belongs to the program that runs then: when that
ends, or another takes its place (exec), or another process gets its number, reads give nothing more. So a watcher never
takes another process for its own.

Any process may call itself as it likes, so one is looked for by its name among those of one user alone.
"""

import contextlib
import errno
import os
import pwd
from pathlib import Path

from . import bounds
from .errors import Ended, WatchError
from .layout import MOST, NAME, Layout

PROC = Path("/proc")
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
GDB_SCRIPTS = tuple(Path(__file__).resolve().parents[at] / name for at, name in ((1, "prudence-gdb.py"), (2, "gdb/prudence-gdb.py")))
WORD = 8
SEVERAL = -1  # instead of a user: the process has rights of more than one, or is over


def user_name(uid):
    if uid == SEVERAL:
        return "several users"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def name_of(pid):
    """What the system calls it (15 bytes)."""
    try:
        return (PROC / str(pid) / "comm").read_bytes().decode(errors="replace").strip("\n")
    except OSError:
        return ""


def names_of(pid):
    """By which --name finds it: the system's name, and that of its program's file."""
    names = {name_of(pid)}
    try:
        names.add(Path(os.readlink(PROC / str(pid) / "exe")).name.removesuffix(" (deleted)"))
    except OSError:
        pass
    return names - {""}


def uid_of(pid):
    """The user whose program it runs, with this user's rights alone: a setuid program has another effective user, who alone could be told of
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


def mappings_of(pid):
    """Addresses of all descriptions in the process: one of each copy of the library. Of too many one too many is told."""
    found = []
    with (PROC / str(pid) / "maps").open(errors="replace") as maps:
        for line in maps:
            words = line.split(maxsplit=5)
            if len(words) == 6 and words[5].startswith(f"/memfd:{NAME} "):
                found.append(int(words[0].split("-")[0], 16))
            if len(found) > bounds.COPIES:
                break
    return found


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


def line_to_watch(pid):
    """For a shell: what switches the option on in a process that runs."""
    script = next((path for path in GDB_SCRIPTS if path.exists()), GDB_SCRIPTS[0])
    return f"gdb -p {pid} -batch -x {script} -ex 'prudence set export 1'"


class Memory:
    """The memory of the program that a process runs now. `budget`: what may be read of it; a sample sets a new one."""

    def __init__(self, pid):
        self.pid, self.budget = pid, bounds.Budget()
        try:
            self.fd = os.open(PROC / str(pid) / "mem", os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError:
            raise WatchError(why_not(pid)) from None
        except (FileNotFoundError, ProcessLookupError):
            raise WatchError(f"process {pid} does not exist") from None

    def close(self):
        os.close(self.fd)

    def read(self, address, size):
        """Exactly so many bytes. OSError: there is no memory; Ended: there is no program; WatchError: that is too much."""
        parts = []
        self.budget.spend("reads of its memory")
        if size > bounds.READ:
            raise WatchError(f"it has a structure of {size} bytes, or says so, and {bounds.READ} are the most")
        if not 0 <= address <= bounds.ADDRESS - size:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
        while size:
            part = self.at(address, size)
            if not part:
                raise Ended(f"process {self.pid} has ended, or runs another program")
            parts.append(part)
            address, size = address + len(part), size - len(part)
        return b"".join(parts)

    def at(self, address, size):
        return os.pread(self.fd, size, address)

    def word(self, address):
        return int.from_bytes(self.read(address, WORD), "little")


class Process:
    """A process that lets itself be watched. `copies`: the layout of each copy of the library in it."""

    def __init__(self, pid, user=None):
        """user: whose it has to be; None: anyone's. It is asked for when the memory is open, which that of another program cannot
        become then."""
        self.pid = pid
        self.memory = Memory(pid)
        try:
            self.user = uid_of(pid)
            if user is not None and self.user != user:
                raise Ended(f"process {pid} is of another user than {user_name(user)} now")
            self._find()
        except BaseException:
            self.memory.close()
            raise

    def close(self):
        self.memory.close()

    def _find(self):
        self.name = name_of(self.pid)
        try:
            self.mappings = mappings_of(self.pid)
        except PermissionError:
            raise WatchError(why_not(self.pid)) from None
        except OSError:
            raise Ended(f"process {self.pid} has ended") from None
        with self.named():
            if len(self.mappings) > bounds.COPIES:
                raise WatchError(f"it has more than {bounds.COPIES} copies of the library, or says so")
            layouts = [Layout(self._description(mapping)) for mapping in self.mappings]
            pids = [layout.number("pid") for layout in layouts]
        self.inner_pid = inner_pid(self.pid)
        self.copies = [layout for layout, pid in zip(layouts, pids) if pid == self.inner_pid]
        if layouts and not self.copies:
            raise WatchError(f"process {self.pid} ({self.name}) uses the memory of another process "
                             f"({pids[0]}, as it calls itself): watch that one")
        if not layouts:
            raise WatchError(f"process {self.pid} ({self.name}) does not let itself be watched: it does not use Prudence, or its option "
                             f"'export' is off. Switch it on: {line_to_watch(self.pid)}; or start the program with PRUDENCE_OPTIONS=export=1")

    @contextlib.contextmanager
    def named(self):
        """What is found wrong with what the process says of itself gets the process's name. What it ends with has that already."""
        try:
            yield
        except Ended:
            raise
        except WatchError as error:
            raise WatchError(f"process {self.pid} ({self.name}): {error}") from None

    def _description(self, mapping):
        try:
            return self.memory.read(mapping, MOST).split(b"\0")[0].decode(errors="replace")
        except OSError:
            raise Ended(f"process {self.pid} has switched its option 'export' off") from None

    def check(self):
        """That the process still wants to be watched. Before each sample."""
        self.threads = None
        for mapping in self.mappings:
            try:
                self.memory.read(mapping, len(NAME))
            except OSError:
                raise Ended(f"process {self.pid} ({self.name}) has switched its option 'export' off") from None

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

    def thread_name(self, thread):
        return name_of(f"{self.pid}/task/{self.outer_thread(thread)}")


def processes():
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            yield int(entry.name)


def watchable(user):
    """The processes of a user that let themselves be watched."""
    found = []
    for pid in processes():
        try:
            if uid_of(pid) == user and mappings_of(pid):
                found.append(pid)
        except OSError:
            continue
    return sorted(found)


def of_name(name):
    """All users' processes of that name: (number, user)."""
    return sorted((pid, uid_of(pid)) for pid in processes() if name in names_of(pid) and pid != os.getpid())
