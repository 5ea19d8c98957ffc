# SPDX-License-Identifier: MIT
"""prudence-inspect: shows the memory of a process or a core file."""

import argparse
import re

from . import bounds, choose, commands, heap_profile, pipe, text, version
from .ask import set_option
from .command_line import Parser
from .errors import WatchError
from .source import set_encoding, write

EXAMPLE = """\
examples:
  prudence-inspect --pid 4711 dump
  prudence-inspect --name server walk routes
  prudence-inspect --core core.4711 latent
"""


def address(argument):
    if not re.fullmatch(r"0x[0-9a-fA-F]{1,16}|[0-9]{1,19}", argument):
        raise argparse.ArgumentTypeError(f"'{argument}' is no address (as 0x7ffff7a04157)")
    return int(argument, 0) if argument.startswith("0x") else int(argument)


def write_profile(watch, path):
    """Lines; the profile is in the file when they are over."""
    lines = list(heap_profile.Profile(watch.copies[0]).lines(watch.process))
    try:
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise WatchError(f"{path}: {error.strerror}") from None
    yield f"written: {path}"


def parser():
    made = Parser(
        prog="prudence-inspect", usage="%(prog)s [OPTION...] COMMAND ...",
        description="Shows the memory of a process that uses Prudence, or of its core file. The process does not take part, and needs no option.",
        epilog=EXAMPLE)
    version.add_option(made)
    choose.add_target(made, core=True)
    asked = made.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name, run, says):
        one = asked.add_parser(name, help=says, description=says[0].upper() + says[1:] + ".")
        one.set_defaults(run=run)
        return one

    add("dump", lambda watch, _: commands.dump(watch), "print a summary: which caches hold memory, and which reader keeps it")
    add("caches", lambda watch, _: commands.caches(watch), "list all caches, with their live, cached and latent objects")
    for name, run, says in (("counters", commands.counters, "list the counters of a cache, or of each one"),
                            ("latent", commands.latent, "show where deferred objects are, and what they wait for"),
                            ("walk", commands.walk, "list each slab of a cache, or of all caches, with its objects")):
        add(name, lambda watch, options, run=run: run(watch, options.cache), says).add_argument("cache", nargs="?", metavar="CACHE")
    add("domains", lambda watch, _: commands.domains(watch), "list all domains with their counters")
    add("readers", lambda watch, _: commands.readers(watch), "list the threads that are inside a read-side critical section")
    add("whois", lambda watch, options: commands.whois(watch, options.address),
        "explain an address: its cache, slab and object, and where that object is").add_argument("address", type=address, metavar="ADDRESS")
    add("profile", lambda watch, options: write_profile(watch, options.file),
        "write the heap profile for prudence-profile").add_argument("file", metavar="FILE")
    one = add("set", lambda watch, options: set_option(watch, options.option, options.value, options.wait), "set an option of the running process")
    one.add_argument("option", metavar="OPTION")
    one.add_argument("value", metavar="VALUE")
    one.add_argument("--wait", type=choose.seconds, metavar="TIME", default=2.0, help="for the answer, as 500ms or 2s (default: 2s)")
    return made


def run(arguments):
    options = choose.parse(parser(), arguments)
    set_encoding(for_programs=False)
    try:
        if options.core and options.command == "set":
            raise WatchError("a core file has no process whose options could be set")
        watch = choose.Finder(options).open()
        for line in commands.shown(watch.within_bounds(lambda: list(options.run(watch, options)), max(bounds.COMMAND_SECONDS, bounds.COPIES * getattr(options, "wait", 0)))):
            write(line)
    except WatchError as error:
        return text.printable(f"prudence-inspect: {error}")
    except BrokenPipeError:
        pipe.end()
    except KeyboardInterrupt:
        return 130
    return 0
