# SPDX-License-Identifier: MIT
"""A profile as the heap text of gperftools, which google-pprof and jemalloc's jeprof read: a line for each calling place, then the mappings,
by which the reader finds the names. jemalloc's own layout (heap_v2) is read by jeprof alone."""

from .bounds import TIME

FIGURES = ("objects_now", "bytes_now", "objects_ever", "bytes_ever")


def counts(sites):
    """Adds up the sites' figures. The format has no negative number, so a figure that shrank is 0."""
    return "{}: {} [{}: {}]".format(*(min(round(sum(max(0, getattr(site, figure)) for site in sites)), TIME) for figure in FIGURES))


def addresses(site):
    """The readers take the first address for one within the call, and the others for return addresses."""
    return " ".join(f"{call - (at == 0):#x}" for at, call in enumerate(site.calls)) or "0x0"


def converted(profile, role):
    """The lines for one role. `heapprofile` says that the figures are not to be scaled: they count objects that were not sampled, too."""
    sites = [site for site in profile.sites if site.role == role]
    yield f"heap profile: {counts(sites)} @ heapprofile"
    for site in sites:
        yield f"{counts([site])} @ {addresses(site)}"
    yield from ("", "MAPPED_LIBRARIES:")
    for one in profile.mappings:
        yield f"{one.start:08x}-{one.end:08x} r-xp {one.offset:08x} 00:00 0 {one.path}"
