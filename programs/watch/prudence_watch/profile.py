# SPDX-License-Identifier: MIT
"""prudence-profile: a heap profile as text, as a leak report, or for tools of others."""

import collections
import itertools
import sys

from . import choose, heap_text, pipe, profile_file, text, version
from .command_line import Parser
from .errors import WatchError
from .modules import Modules
from .plain_file import open_plain
from .since import Growth, growth
from .source import set_encoding, write
from .symbols import Frame

# The lists: a site's role, its objects and bytes, and the words for both.
VIEWS = {
    "in-use": ("allocates", "objects_now", "bytes_now", "in use, by the calls that allocated them"),
    "allocated": ("allocates", "objects_ever", "bytes_ever", "ever allocated, by the calls that did"),
    "latent": ("defers", "objects_now", "bytes_now", "deferred and not yet safe, by the calls that deferred them"),
    "deferred": ("defers", "objects_ever", "bytes_ever", "ever deferred, by the calls that did"),
}
CALLS = 6 # of a site, in a table


def mean_age(site):
    """Returns the mean age of the freed objects, or "-" if none was freed."""
    return text.of_seconds(site.age_us / 1e6 / site.objects_over) if site.objects_over else "-"


def calls_of(profile, files, site, most):
    """The functions that led there, the innermost first, with those that the compiler inlined."""
    calls = (files.frames(profile, call) for call in site.calls[:most])
    return list(itertools.islice(itertools.chain.from_iterable(calls), most)) or [Frame("(unknown)", "")]


def in_one_line(profile, files, site):
    return " < ".join(frame.function for frame in calls_of(profile, files, site, CALLS))


def head(profile, sites, view):
    _, objects, size, words = VIEWS[view]
    grew = isinstance(profile, Growth)
    lines = [f"process {profile.pid} ({profile.program}), prudence {profile.version}, "
             f"one sample in {text.of_bytes(profile.rate)}" + (f"; growth in {text.of_seconds(profile.seconds)}" if grew else ""),
             f"{text.of_bytes(sum(getattr(site, size) for site in sites))}{' more' if grew else ''} in "
             f"{sum(getattr(site, objects) for site in sites):.0f} objects {words}"]
    if profile.dropped:
        lines.append(f"{profile.dropped} samples are missing, because there was no memory for them")
    return lines


def sites_of(profile, view):
    role, _, size, _ = VIEWS[view]
    return sorted((site for site in profile.sites if site.role == role and getattr(site, size) > 0),
                  key=lambda site: -getattr(site, size))


def kept(site):
    """Returns the share of the objects allocated since the first profile by which their number has grown."""
    return site.objects_now / site.objects_ever if site.objects_ever > 0 else None


def top(profile, view, count):
    """Lists a line for each calling place."""
    _, objects, size, _ = VIEWS[view]
    sites, files = sites_of(profile, view), Modules()
    total = sum(getattr(site, size) for site in sites)
    age = "lifetime" if VIEWS[view][0] == "allocates" else "until safe"
    grew = isinstance(profile, Growth)
    lines = head(profile, sites, view) + ["", f"{'bytes':>10} {'%':>5} {'objects':>10} {'kept %' if grew else age:>10}  cache: calls"]
    for site in sites[:count]:
        lines.append(f"{text.of_bytes(getattr(site, size)):>10} {100 * getattr(site, size) / total:5.1f} "
                     f"{getattr(site, objects):10.0f} {text.of_share(kept(site)) if grew else mean_age(site):>10}  {site.cache}: "
                     f"{in_one_line(profile, files, site)}")
    return lines


def leaks(profile, count):
    """Lists the objects in use, with all their calls. No thread frees them after the program's end."""
    sites, files = sites_of(profile, "in-use"), Modules()
    lines = head(profile, sites, "in-use")
    for site in sites[:count]:
        each = f", {site.bytes_now / site.objects_now:.0f} bytes each" if site.objects_now else ""
        if isinstance(profile, Growth):
            each += f", {text.of_share(kept(site))} % of those allocated in that time"
        lines += ["", f"{text.of_bytes(site.bytes_now)} in {site.objects_now:.0f} objects of cache '{site.cache}'{each}, allocated by:"]
        lines += [f"    {frame}" for frame in calls_of(profile, files, site, None)]
    return lines


def ages(profile, view, count):
    """How long objects lived, or waited: shares by power of two."""
    sites = [site for site in sites_of(profile, "allocated" if VIEWS[view][0] == "allocates" else "deferred")
             if site.objects_over]
    files = Modules()
    lines = head(profile, sites_of(profile, view), view)
    for site in sites[:count]:
        lines += ["", f"{site.cache}: {in_one_line(profile, files, site)}: "
                  f"{site.objects_over:.0f} objects, {mean_age(site)} on average"]
        for place, objects in sorted(site.ages.items()):
            share = objects / site.objects_over
            lines.append(f"{'from ' + text.of_seconds(1e-9 * 2**place):>15} {100 * share:5.1f} % {'#' * round(50 * share)}")
    return lines


def folded(profile, view):
    """Lists each stack once with its bytes: the functions from the outermost to the innermost, between semicolons."""
    stacks, files = collections.Counter(), Modules()
    for site in sites_of(profile, view):
        names = [text.printable(frame.function).replace(";", ":") for frame in calls_of(profile, files, site, None)]
        stacks[";".join(reversed(names))] += getattr(site, VIEWS[view][2])
    return [f"{stack} {size}" for stack, size in stacks.items()]


def for_pprof(profile, _):
    from . import pprof # python3-protobuf is needed for nothing else
    return pprof.converted(profile)


def in_lines(lines):
    """The bytes of a file. Paths have the bytes that the profile has."""
    return "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")


# Functions by the name in --format: each makes the bytes of a file with a view of a profile.
FORMATS = {
    "pprof": for_pprof,
    "folded": lambda profile, view: in_lines(folded(profile, view)),
    "heap": lambda profile, view: in_lines(heap_text.converted(profile, VIEWS[view][0])),
}


def arguments(words):
    parser = Parser(
        prog="prudence-profile", description="Shows a heap profile that a program wrote (option profile), or turns it "
        "into a format of other tools. Figures are estimates from samples.")
    version.add_option(parser)
    parser.add_argument("file", help="a profile that prudence_profile_dump or the option profile_file wrote")
    parser.add_argument("--since", metavar="FIRST", help="show growth since FIRST, an earlier profile of the process, or one of another run")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--top", action="store_true", help="a line for each calling place (the default)")
    what.add_argument("--leaks", action="store_true", help="objects in use, with all calls that led to them")
    what.add_argument("--ages", action="store_true", help="how long objects lived, or waited until they were safe")
    what.add_argument("-o", "--output", metavar="OUT", help="write OUT for another tool")
    parser.add_argument("--format", choices=FORMATS, help="the format of OUT, for go tool pprof (pprof, the default), for flamegraph.pl, "
                        "inferno-flamegraph and speedscope (folded), or for google-pprof and jeprof (heap)")
    parser.add_argument("--view", choices=VIEWS, default="in-use", metavar="VIEW", help="figure for --top, --ages, folded and heap, one of " +
                        f"{', '.join(VIEWS)} (default: in-use)")
    parser.add_argument("-n", "--count", type=choose.count, default=20, help="calling places at most (default: 20)")
    wanted = parser.parse_args(words)
    if wanted.format and not wanted.output:
        parser.error("--format is the format of --output, which is missing")
    return wanted


def write_file(path, converted):
    try:
        with open(path, "wb") as file:
            file.write(converted)
    except OSError as error:
        raise WatchError(f"{path}: {error.strerror}") from None


def read(path):
    try:
        with open_plain(path) as file:
            return profile_file.read(file)
    except OSError as error:
        raise WatchError(f"{path}: {error.strerror}") from None
    except profile_file.BadProfile as error:
        raise WatchError(f"{path}: {error}") from None


def run(words):
    """The program. Returns its exit status."""
    wanted = arguments(words)
    set_encoding(False)
    try:
        profile = growth(read(wanted.since), read(wanted.file)) if wanted.since else read(wanted.file)
        if wanted.output:
            write_file(wanted.output, FORMATS[wanted.format or "pprof"](profile, wanted.view))
            return 0
        lines = (leaks(profile, wanted.count) if wanted.leaks else
                 ages(profile, wanted.view, wanted.count) if wanted.ages else top(profile, wanted.view, wanted.count))
        write("\n".join(map(text.printable, lines)))
    except WatchError as error:
        print(text.printable(f"prudence-profile: {error}"), file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"prudence-profile: {error} (Debian: python3-protobuf)", file=sys.stderr)
        return 1
    except BrokenPipeError:
        pipe.end()
    return 0
