# SPDX-License-Identifier: MIT
"""Explains why nothing was seen of a program: which functions of its own, or of its libraries, have names of RCU."""

import os
import re
import subprocess

from prudence_watch.modules import Modules

KNOWN = ("those functions of liburcu 0.11 and newer, of Concurrency Kit's library and of DPDK's librte_rcu that defer, wait or reclaim, where a program "
         "takes them from a shared library")
# A word for the scheme, and one for its action. Threads, readers and registrations say nothing of waiting.
SCHEME = r"rcu|epoch|hazard|hazptr|qsbr|quiesce|smr"
VERB = r"call|synchroni[sz]e|barrier|postpone|defer|retire|reclaim|free"
WORDS = re.compile(rf"(?=.*(?:{SCHEME}))(?=.*(?:{VERB}))(?!.*(?:fork|callback_|_callback))", re.I)
LIBURCU = re.compile(r"urcu_(?:memb|mb|signal|bp|qsbr)_(?:call_rcu|synchronize_rcu|defer_rcu)")
WATCHED = re.compile(r"lib(?:urcu(?:-(?:mb|signal|bp|qsbr))?|ck|rte_rcu)\.so")
LIBC = re.compile(r"lib(?:c|glib-2\.0|urcu-c(?:ommon|ds))\.so")
FEW = 10  # functions: a stripped file keeps those of the start
SHOWN = 6


def libraries(program):
    """The files that the loader would map for it."""
    try:
        said = subprocess.run([program], env=os.environ | {"LD_TRACE_LOADED_OBJECTS": "1", "LD_PRELOAD": ""}, capture_output=True, text=True,
                              timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return re.findall(r" => (/.+) \(0x", said)


def names_of(path, modules):
    elf = modules.module(path).elf
    return sorted({name.split(".")[0].rstrip("_") for name in elf.functions() if WORDS.match(name)}) if elf else []


def listed(names):
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def reasons(program, modules):
    """Returns sentences, or None if nothing resembles RCU."""
    mapped = libraries(program)
    used = [os.path.basename(path) for path in mapped if WATCHED.match(os.path.basename(path))]
    own = names_of(program, modules)
    if used:
        yield f"{program} has {listed(used)}, and made none of these calls while it ran."
    if any(LIBURCU.fullmatch(name) for name in own):
        yield f"{program} has liburcu within it ({listed(own)}): link it with the shared library, and its calls are seen."
    elif own:
        yield f"{program} has RCU of its own ({listed(own)}). Its calls stay within the file, so nothing can be put before them."
    for path in mapped:
        names = [] if LIBC.match(os.path.basename(path)) or os.path.basename(path) in used else names_of(path, modules)
        if names:
            yield f"{path} has functions that look like RCU and are not known here ({listed(names)})."


def lines(programs):
    """`programs`: the files that ran."""
    modules = Modules()
    yield f"no call was seen of those that can be: {KNOWN}."
    found = [reason for program in programs for reason in reasons(program, modules)]
    yield from found
    if not found:
        stripped = [program for program in programs if not (elf := modules.module(program).elf) or len(elf.names) < FEW]
        yield f"No function of {listed(programs)} or of the libraries looks like RCU."
        if stripped:
            yield f"Names are stripped from {listed(stripped)}, so there may be some."
