# SPDX-License-Identifier: MIT
"""A profile as prudence_profile_dump writes it (src/observe/profile_dump.c): lines of text, read one by one. Whoever wrote it may have
written anything."""

import bisect
import dataclasses
import functools
import json

from . import bounds
from .bounds import hexadecimal, whole

FORMAT = 1
HEAD = ("version", "program", "time", "rate", "unit", "dropped")


class BadProfile(Exception):
    """The file is no profile, or not a whole one."""


@dataclasses.dataclass(frozen=True)
class Mapping:
    """Addresses of the process that a file stands behind."""
    start: int
    end: int
    offset: int
    path: str


@dataclasses.dataclass(frozen=True)
class Site:
    """The allocations of one calling place from one cache. Objects are fractions: a sample stands for 1/p of them."""
    role: str # "allocates" or "defers"
    cache: str
    objects_now: float
    bytes_now: int
    objects_ever: float
    bytes_ever: int
    age_us: int # added up, of all objects that were
    ages: dict # the logarithm of nanoseconds: objects
    calls: tuple # return addresses, innermost first

    @property
    def objects_over(self):
        return sum(self.ages.values())


@dataclasses.dataclass(frozen=True)
class Profile:
    version: str
    pid: int
    program: str
    time_ns: int
    rate: int
    dropped: int
    sites: tuple
    mappings: tuple # by their addresses

    @functools.cached_property
    def starts(self):
        return [one.start for one in self.mappings]

    def mapping_of(self, address):
        at = bisect.bisect_right(self.starts, address) - 1
        return self.mappings[at] if at >= 0 and address < self.mappings[at].end else None


class Lines:
    """Reads the lines of a binary file, one at a time."""

    def __init__(self, file):
        self.file, self.left = file, bounds.PROFILE

    def next(self):
        line = self.file.readline(min(bounds.LINE, self.left))
        self.left -= len(line)
        if line.endswith(b"\n"):
            return line[:-1].decode(errors="surrogateescape")
        if not self.left:
            raise BadProfile(f"it has more than {bounds.PROFILE} bytes")
        if len(line) == bounds.LINE:
            raise BadProfile(f"it has a line of more than {bounds.LINE} bytes")
        raise BadProfile("the file is cut: the process is still writing it, or could not")


def string(text):
    """Reads a string as JSON writes it. Accepts nothing else of JSON."""
    if not text.startswith('"'):
        raise ValueError("a string does not begin with a quote")
    return json.loads(text)


def read_ages(words):
    pairs = [word.split(":") for word in words]
    ages = {whole(place, bounds.AGES - 1): whole(objects) for place, objects in pairs}
    if len(ages) < len(pairs):
        raise ValueError("an age is there twice")
    return ages


def read_site(first, lines):
    """The site that begins with this line, and has two more."""
    role, now, bytes_now, ever, bytes_ever, age, cache = first.split(" ", 6)
    ages, calls = lines.next().split(" "), lines.next().split(" ")
    if ages[0] != "ages" or calls[0] != "calls" or len(calls) > 1 + bounds.CALLS:
        raise ValueError("a calling place has other lines")
    return Site(role, string(cache)[:bounds.TEXT], whole(now), whole(bytes_now), whole(ever), whole(bytes_ever), whole(age),
                read_ages(ages[1:]), tuple(hexadecimal(call, least=1) for call in calls[1:]))


def in_objects(site, unit):
    return dataclasses.replace(site, objects_now=site.objects_now / unit, objects_ever=site.objects_ever / unit,
                               ages={place: objects / unit for place, objects in site.ages.items()})


def merged(sites, key):
    """Adds up the sites that have the same key. Sorts by the key's text, whose hashes no program can choose: of numbers one could make all
    the same, and each site be compared with all others."""
    sums = {}
    for site in sites:
        name = repr(key(site))
        same = sums.get(name)
        sums[name] = site if not same else dataclasses.replace(
            site, objects_now=site.objects_now + same.objects_now, bytes_now=site.bytes_now + same.bytes_now,
            objects_ever=site.objects_ever + same.objects_ever, bytes_ever=site.bytes_ever + same.bytes_ever,
            age_us=site.age_us + same.age_us,
            ages={place: site.ages.get(place, 0) + same.ages.get(place, 0) for place in {*site.ages, *same.ages}})
    return sums


def read_mapping(line):
    """None: no file stands behind it."""
    words = line.split(maxsplit=5)
    if len(words) < 5 or "\0" in line:
        raise ValueError("a mapping has too few words")
    start, end = words[0].split("-")
    mapping = Mapping(hexadecimal(start), hexadecimal(end), hexadecimal(words[2]), words[5].removesuffix(" (deleted)").removesuffix(" (unloaded)") if len(words) > 5 else "")
    return mapping if mapping.path.startswith("/") else None


def read_head(lines):
    """Its values by their names, and the first line after it."""
    head = {}
    while True:
        line = lines.next()
        if line == "mappings" or line.startswith(("allocates ", "defers ")):
            return head, line
        name, value = line.split(" ", 1)
        if name not in HEAD or name in head:
            raise ValueError(f"'{name[:bounds.SHOWN]}' is no line of a head, or is there twice")
        head[name] = value


def read_sites(line, lines):
    """Up to the line that ends them."""
    sites = []
    while line != "mappings":
        if not line.startswith(("allocates ", "defers ")):
            raise ValueError(f"'{line[:bounds.SHOWN]}' is no calling place")
        if len(sites) == bounds.SITES:
            raise BadProfile(f"it has more than {bounds.SITES} calling places")
        sites.append(read_site(line, lines))
        line = lines.next()
    return sites


def read_mappings(lines):
    """Reads the mappings of files, up to the line that ends the profile."""
    found = []
    while (line := lines.next()) != "end":
        mapping = read_mapping(line)
        if mapping and len(found) == bounds.MAPPINGS:
            raise BadProfile(f"it has more than {bounds.MAPPINGS} mappings of files")
        if mapping:
            found.append(mapping)
    return tuple(sorted(found, key=lambda one: one.start))


def read_lines(lines):
    head, line = read_head(lines)
    pid, program = head["program"].split(" ", 1)
    unit = whole(head["unit"], least=1)
    # Two threads may have made the same site at the same time.
    sites = merged((in_objects(site, unit) for site in read_sites(line, lines)), lambda site: (site.role, site.calls, site.cache))
    return Profile(head["version"][:bounds.TEXT], whole(pid), string(program), whole(head["time"], bounds.TIME), whole(head["rate"], bounds.TIME),
                   whole(head["dropped"]), tuple(sites.values()), read_mappings(lines))


def read(file):
    """The profile in a binary file. BadProfile: with the reason."""
    first = file.readline(len(f"prudence profile {FORMAT}\n") + bounds.SHOWN).rstrip(b"\n").decode(errors="replace")
    if not first.startswith("prudence profile "):
        raise BadProfile("this is no profile of prudence_profile_dump")
    if first != f"prudence profile {FORMAT}":
        raise BadProfile(f"this is '{first}', and only format {FORMAT} is known")
    try:
        profile = read_lines(Lines(file))
    except KeyError as error:
        raise BadProfile(f"its head has no line {error}") from error
    except ValueError as error:
        raise BadProfile(f"a line cannot be understood ({error})") from error
    if file.read(1):
        raise BadProfile("there is more behind its last line")
    return profile
