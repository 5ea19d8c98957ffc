# SPDX-License-Identifier: MIT
"""The part of the command line that the tools share: which process, and how often."""

import argparse
import re

from .figures import Watch
from .layout import WatchError
from .process import Process, name_of, of_name, watchable

LEAST, MOST_SECONDS = 0.01, 86400


def pid(text):
    if not re.fullmatch(r"[1-9][0-9]{0,9}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not the number of a process")
    return int(text)


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


def add_options(parser, interval):
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--pid", type=pid, metavar="N", help="the process of this number")
    which.add_argument("--name", metavar="NAME", help="the process of this name (default: the only one that lets itself be watched)")
    parser.add_argument("--interval", type=seconds, metavar="TIME", default=interval,
                        help=f"between samples, as 500ms or 2s (default: {interval:g}s)")


def described(pids):
    return ", ".join(f"{one} ({name_of(one)})" for one in pids)


def chosen(options):
    """The number of the process that is meant."""
    if options.pid:
        return options.pid
    if options.name is not None:
        found = of_name(options.name)
        if not found:
            raise WatchError(f"there is no process of the name '{options.name}'")
        if len(found) > 1:
            raise WatchError(f"there are {len(found)} processes of the name '{options.name}': {described(found)}. Choose one by --pid")
        return found[0]
    found = watchable()
    if not found:
        raise WatchError("no process of yours lets itself be watched: start one with PRUDENCE_OPTIONS=export=1")
    if len(found) > 1:
        raise WatchError(f"{len(found)} processes let themselves be watched: {described(found)}. Choose one by --pid or --name")
    return found[0]


def open_watch(options):
    return Watch(Process(chosen(options)))
