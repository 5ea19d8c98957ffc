# SPDX-License-Identifier: MIT
"""Subtracts one profile from a later one, calling place by calling place."""

import dataclasses

from .errors import WatchError
from .profile_file import Profile, Site, merged


def place(profile, call):
    """A call by file and place, which is the same in two runs of a program."""
    mapping = profile.mapping_of(call - 1)
    return (mapping.path, call - mapping.start + mapping.offset) if mapping else ("", call)


def by_places(profile):
    """The sites by their keys. A file that was loaded at several addresses, one after the other, has one place at each of them."""
    return merged(profile.sites, lambda site: (site.role, site.cache, *(place(profile, call) for call in site.calls)))


def without(site, before):
    """The difference of all figures. Fewer objects than before are a negative number."""
    ages = {age: objects - before.ages.get(age, 0) for age, objects in site.ages.items()}
    return dataclasses.replace(
        site, objects_now=site.objects_now - before.objects_now, bytes_now=site.bytes_now - before.bytes_now,
        objects_ever=site.objects_ever - before.objects_ever, bytes_ever=site.bytes_ever - before.bytes_ever,
        age_us=max(0, site.age_us - before.age_us), ages={age: objects for age, objects in ages.items() if objects > 0})


@dataclasses.dataclass(frozen=True)
class Growth(Profile):
    """A profile of the time since another one."""
    seconds: float = 0


def growth(first: Profile, second: Profile):
    """WatchError: the first was written later."""
    if first.time_ns > second.time_ns:
        raise WatchError("--since: FIRST was written after FILE; name the older profile first")
    before, none = by_places(first), Site("", "", 0, 0, 0, 0, 0, {}, ())
    sites = tuple(without(site, before.get(key, none)) for key, site in by_places(second).items())
    values = {field.name: getattr(second, field.name) for field in dataclasses.fields(second)}
    return Growth(**values | {"sites": sites, "dropped": max(0, second.dropped - first.dropped)}, seconds=(second.time_ns - first.time_ns) / 1e9)
