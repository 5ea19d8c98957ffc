# SPDX-License-Identifier: MIT
"""The heap profile of a process, read from its memory, in the form that the process would write itself (src/observe/profile_dump.c)."""

import json
import struct
import time

from . import bounds
from .errors import WatchError
from .figures import signed
from .heap import Heap, bounded
from .text import printable

MOST_NS = 1e22  # a sum that cannot be


def not_below_zero(value):
    return max(0, signed(value))


class Profile(Heap):
    def trace(self, depot, place):
        """The return addresses of a trace, the innermost first."""
        if not place:
            return []
        first = depot + self.layout.number("depot_words") + place * 8
        count = bounded(self.memory.number(first + self.layout.offset("trace.count"), 4), bounds.CALLS, "calls of a trace")
        return self.memory.words(first + self.layout.number("trace_frames"), count)

    def site_lines(self, site, depot):
        """The three lines of a calling place."""
        age_ns = struct.unpack("<d", struct.pack("<Q", site["age"]))[0]
        first, end = self.layout.place("profile_site.ages", bounds.AGES * 8)
        ages = self.memory.words(site.address + first, (end - first) // 8)
        yield (f"{'defers' if site['role'] else 'allocates'} {not_below_zero(site['now.objects'])} {not_below_zero(site['now.bytes'])} "
               f"{site['ever.objects']} {site['ever.bytes']} {int(age_ns / 1000) if 0 <= age_ns < MOST_NS else 0} "
               f"{json.dumps(printable(site.text('cache')))}")
        yield "".join(["ages", *(f" {at}:{objects}" for at, objects in enumerate(ages) if objects)])
        yield "".join(["calls", *(f" {call:x}" for call in self.trace(depot, site["trace"]))])

    def lines(self, target):
        rate, lists = self.copy.variable("sampling_rate"), self.copy.variable("site_lists")
        if not rate or not lists:
            raise WatchError("this process takes no profile: begin one by 'prudence-inspect --pid N set profile 1'")
        depot, following = self.copy.variable("depot"), self.layout.offset("profile_site.next")
        yield from ("prudence profile 1", f"version {self.layout.version}", f"program {target.pid} {json.dumps(printable(target.name))}",
                    f"time {time.time_ns()}", f"rate {rate}", f"unit {self.layout.number('sampling_unit')}",
                    f"dropped {self.copy.variable('samples_dropped')}")
        for first in self.memory.words(lists, self.layout.number("site_buckets")):
            for place in self.chain(first, lambda place: self.memory.word(place + following), "sites of a profile"):
                yield from self.site_lines(self.record("profile_site", place), depot)
        yield from ("mappings", *target.mappings(), "end")
