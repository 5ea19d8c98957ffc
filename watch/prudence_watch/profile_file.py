# SPDX-License-Identifier: MIT
"""A profile as prudence_profile_dump writes it (src/runtime/profile_dump.c): lines of text, read whole."""

import dataclasses
import json

FORMAT = 1


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
    """What one calling place did to one cache. Objects are fractions: a sample stands for 1/p of them."""
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
    mappings: tuple

    def mapping_of(self, address):
        return next((one for one in self.mappings if one.start <= address < one.end), None)


def read_site(lines):
    """The site that begins with the first of `lines`, and has three of them."""
    role, now, bytes_now, ever, bytes_ever, age, cache = lines[0].split(" ", 6)
    ages, calls = lines[1].split(), lines[2].split()
    if ages[0] != "ages" or calls[0] != "calls":
        raise ValueError
    pairs = (one.split(":") for one in ages[1:])
    return Site(role, json.loads(cache), int(now), int(bytes_now), int(ever), int(bytes_ever), int(age),
                {int(place): int(objects) for place, objects in pairs}, tuple(int(call, 16) for call in calls[1:]))


def in_objects(site, unit):
    return dataclasses.replace(site, objects_now=site.objects_now / unit, objects_ever=site.objects_ever / unit,
                               ages={place: objects / unit for place, objects in site.ages.items()})


def merged(sites):
    """Two threads may have made the same site at the same time."""
    sums = {}
    for site in sites:
        key = site.role, site.cache, site.calls
        same = sums.get(key)
        sums[key] = site if not same else dataclasses.replace(
            site, objects_now=site.objects_now + same.objects_now, bytes_now=site.bytes_now + same.bytes_now,
            objects_ever=site.objects_ever + same.objects_ever, bytes_ever=site.bytes_ever + same.bytes_ever,
            age_us=site.age_us + same.age_us,
            ages={place: site.ages.get(place, 0) + same.ages.get(place, 0) for place in {*site.ages, *same.ages}})
    return tuple(sums.values())


def read_mapping(line):
    """None: no file stands behind it."""
    words = line.split(maxsplit=5)
    if len(words) < 6 or not words[5].startswith("/"):
        return None
    start, end = words[0].split("-")
    return Mapping(int(start, 16), int(end, 16), int(words[2], 16), words[5].removesuffix(" (deleted)"))


def read(text):
    """The profile. BadProfile: with the reason."""
    *lines, rest = text.split("\n") # names may have what splitlines() takes for the end of a line
    if not lines or not lines[0].startswith("prudence profile "):
        raise BadProfile("this is no profile of prudence_profile_dump")
    if lines[0] != f"prudence profile {FORMAT}":
        raise BadProfile(f"this is '{lines[0]}', and only format {FORMAT} is known")
    if rest or lines[-1] != "end":
        raise BadProfile("the file is cut: the process is still writing it, or could not")
    try:
        first = next(i for i, line in enumerate(lines) if line.startswith(("allocates ", "defers ", "mappings")))
        head = dict(line.split(" ", 1) for line in lines[1:first])
        last = lines.index("mappings")
        pid, program = head["program"].split(" ", 1)
        sites = (in_objects(read_site(lines[i:i + 3]), int(head["unit"])) for i in range(first, last, 3))
        mappings = (read_mapping(line) for line in lines[last + 1:-1])
        return Profile(head["version"], int(pid), json.loads(program), int(head["time"]), int(head["rate"]), int(head["dropped"]),
                       merged(sites), tuple(one for one in mappings if one))
    except (ValueError, KeyError, IndexError, StopIteration) as error:
        raise BadProfile(f"a line cannot be understood ({error})") from error
