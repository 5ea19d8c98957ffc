# SPDX-License-Identifier: MIT
"""The part of the command line that the tools share: which process, and how often."""

import argparse
import os
import pwd
import re

from . import bounds
from .core import Core
from .errors import WatchError
from .figures import Watch
from .patience import within
from .process import Process, name_of, of_name, user_name, watchable

LEAST, MOST_SECONDS = 0.01, 86400


def pid(text):
    if not re.fullmatch(r"[1-9][0-9]{0,9}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not the number of a process")
    return int(text)


def user(text):
    if re.fullmatch(r"[0-9]{1,10}", text):
        return int(text)
    try:
        return pwd.getpwnam(text).pw_uid
    except KeyError:
        raise argparse.ArgumentTypeError(f"there is no user '{text}'") from None


def seconds(text):
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ms|s|)", text)
    value = float(match[1]) / (1000 if match[2] == "ms" else 1) if match else 0
    if not LEAST <= value <= MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time from 10ms to {MOST_SECONDS}s (as 500ms, 1s or 0.5)")
    return value


def count(text):
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 to 999999999")
    return int(text)


def add_target(parser, core):
    """Which process; core: or which core file."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--pid", type=pid, metavar="N", help="the process of this number").completer = \
        lambda **_: {str(one): name_of(one) for one in watchable(os.geteuid())}
    which.add_argument("--name", metavar="NAME", help="the process of this name (default: the only one that uses Prudence)").completer = \
        lambda **_: [name_of(one) for one in watchable(os.geteuid())]
    if core:
        which.add_argument("--core", metavar="FILE", help="no process, but this core file")
        parser.add_argument("--binaries", metavar="FOLDER", help="folder with the programs and libraries of a core file from another machine: by "
                            "their whole path, or all in this folder")
    parser.add_argument("--user", type=user, metavar="USER", help="only consider processes of this user (default: yours)")


def add_options(parser, interval, core=False):
    add_target(parser, core)
    parser.add_argument("--interval", type=seconds, metavar="TIME", default=interval,
                        help=f"between samples, as 500ms or 2s (default: {interval:g}s)")


def parse(parser, arguments):
    options = parser.parse_args(arguments)
    core = getattr(options, "core", None)
    for given, name in ((options.pid, "--pid"), (core, "--core")):
        if given and options.user is not None:
            parser.error(f"argument --user: not allowed with argument {name}")
    if not core and getattr(options, "binaries", None):
        parser.error("argument --binaries: only allowed with argument --core")
    return options


def described(pids):
    some = ", ".join(f"{one} ({name_of(one)})" for one in pids[:bounds.NAMED])
    return some if len(pids) <= bounds.NAMED else f"{some} and {len(pids) - bounds.NAMED} more"


def by_name(name, uid):
    found = of_name(name)
    own = [pid for pid, owner in found if owner == uid]
    if not found:
        raise WatchError(f"there is no process of the name '{name}'")
    if not own:
        others = ", ".join(f"{pid} of {user_name(owner)}" for pid, owner in found[:bounds.NAMED])
        raise WatchError(f"no process of the name '{name}' is of user {user_name(uid)}: there is {others}. Choose it by --pid or --user")
    if len(own) > 1:
        raise WatchError(f"there are {len(own)} processes of the name '{name}': {described(own)}. Choose one by --pid")
    return own[0]


def the_only(uid):
    found = watchable(uid)
    if not found:
        whose = "yours" if uid == os.geteuid() else user_name(uid)
        raise WatchError(f"no process of {whose} that may be read uses Prudence")
    if len(found) > 1:
        raise WatchError(f"{len(found)} processes use Prudence: {described(found)}. Choose one by --pid or --name")
    return found[0]


class Finder:
    """Finds the process that fits the options, as often as it is asked: the process may end, and then another may be chosen. But never one of another
    user: a process chooses its own name, and its number may pass to another."""

    def __init__(self, options):
        self.options, self.user = options, options.user
        if self.user is None and not options.pid:
            self.user = os.geteuid()

    def chosen(self):
        """Returns the number of the process that fits."""
        if self.options.pid:
            return self.options.pid
        return the_only(self.user) if self.options.name is None else by_name(self.options.name, self.user)

    def process(self):
        found = Process(self.chosen(), self.user)
        self.user = found.user if self.user is None else self.user
        return found

    def target(self):
        if getattr(self.options, "core", None):
            return Core(self.options.core, self.options.binaries)
        return within("searching the process", self.process)

    def open(self):
        return Watch(self.target())
