# SPDX-License-Identifier: MIT
"""The output of prudence-inspect and of the commands for gdb: lines of text about a process, read from memory."""

from datetime import datetime, timezone

from . import bounds
from .errors import WatchError
from .heap import Heap
from .text import printable

LATENT_SHOWN, LIVE_SHOWN = 5, 3


def table(head, rows):
    """Lines of columns: the first is aligned at its start, the others at their end."""
    rows = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        yield "  ".join(cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths))).rstrip()


def titled(watch, what):
    """Each copy of the library, after a line that names it if there are several."""
    for number, copy in enumerate(watch.copies):
        if len(watch.copies) > 1:
            yield copy, [f"{what} of copy {number} of the library" + (", which is malloc" if copy.layout.address("malloc") else "")]
        else:
            yield copy, []


def check_known(known, name):
    if name is not None and not known:
        raise WatchError(f"there is no cache '{name}'")


def caches(watch):
    """All slab caches that were ever used, with their live, cached and latent objects."""
    for copy, title in titled(watch, "caches"):
        rows = []
        for cache, figures in copy.caches():
            if figures["allocations"] or figures["slabs_now"]:
                rows.append((figures["name"], figures["object_size"] if cache["percpu"] else "-", figures["objects_live"], figures["objects_cached"],
                             figures["objects_latent"], figures["slabs_now"], figures["bytes_latent"], figures["domain"]))
        yield from title
        yield from table(("cache", "size", "live", "cached", "latent", "slabs", "latent bytes", "domain"), rows)


def counters(watch, name=None):
    """Lists the counters of a cache, or of each cache that was ever used."""
    known = False
    for copy, title in titled(watch, "counters"):
        yield from title
        meanings = copy.layout.counters_of("cache")
        for _, figures in copy.caches():
            if name is not None and figures["name"] != name:
                continue
            known = True
            if name is not None or any(figures[counter] for counter in meanings):
                yield f"cache '{figures['name']}'"
                yield from (f"  {counter:<22} {figures[counter]:>12}  {of.meaning}" for counter, of in meanings.items())
    check_known(known, name)


def walk(watch, name=None):
    """Each slab of a cache, or of all caches, with its objects."""
    known = False
    for copy, title in titled(watch, "slabs"):
        heap, rows = Heap(copy), []
        for cache in heap.caches(name):
            known = True
            rows.extend(heap.walk(cache))
        yield from title
        yield from table(("pages", "bytes", "objects", "live", "cached", "latent", "free", "node", "cache"), rows)
    check_known(known, name)


def latent(watch, name=None):
    """Lists the places of deferred objects, and the grace periods that they wait for."""
    known = False
    for copy, title in titled(watch, "latent objects"):
        yield from title
        heap = Heap(copy)
        for cache, figures in copy.caches():
            if name is None and not figures["objects_latent"]:
                continue
            if name is None or figures["name"] == name:
                known = True
                yield from heap.latent(cache)
    check_known(known, name)


def inside(watch):
    """(domain, reader) of each thread inside a section."""
    for copy in watch.copies:
        for domain in copy.every_domain():
            for reader in copy.inside_of(domain):
                yield domain, reader


def duration(seconds):
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def readers(watch):
    """The threads that are inside a read-side critical section, of every domain."""
    yield from table(("domain", "thread", "name", "nesting", "grace periods begun", "blocking for"),
                     ((domain.text("name"), reader["thread"], reader["thread_name"] or "-", reader["nesting"], reader["grace_periods_begun"],
                       duration(reader["inside_seconds"]) if reader["inside_seconds"] else "-") for domain, reader in inside(watch)))


def domains(watch):
    """Lists all domains with their counters."""
    for copy, title in titled(watch, "domains"):
        yield from title
        names = list(copy.layout.counters_of("domain"))
        rows = []
        for domain in copy.every_domain():
            figures = copy.domain(domain)
            rows.append((figures["name"], figures["kind"], figures["readers"], figures["readers_inside"], figures["bytes_called"],
                         *(figures[name] for name in names)))
        yield from table(("domain", "kind", "readers", "inside", "callbacks' bytes", *(name.replace("_", " ") for name in names)), rows)


def whois(watch, address):
    """Lists the cache, slab and object of an address, and the state of the object (live, cached, latent or free)."""
    for copy in watch.copies:
        lines = Heap(copy).whois(address)
        if lines:
            yield from lines
            return
    yield f"{address:#x}: no memory of Prudence's slabs"


# --------------------------------------------------------------------------------------------- the summary

def of_bytes(value):
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if value >= unit:
            return f"{value * 10 // unit / 10} {name}"
    return f"{value} bytes"


def members_of(copy, domain):
    """The domain and, if it is a set, those that are in it."""
    yield domain
    if domain["kind"] == copy.layout.number("set"):
        first, end = copy.layout.place("domain_set.members", bounds.STRUCTURE)
        count = copy.memory.number(domain["set"] + copy.layout.offset("domain_set.count"), 4)
        for member in copy.memory.words(domain["set"] + first, min(count, (end - first) // 8)):
            yield copy.record("prudence_domain", member)


def reader_of(copy, domain):
    """The thread that has been inside the longest."""
    if domain["kind"] == copy.layout.number("external"):
        return "another library ends its grace periods"
    found = [(member, reader) for member in members_of(copy, domain) for reader in copy.inside_of(member)]
    if not found:
        return "no thread is inside; the next grace periods free them"
    member, reader = max(found, key=lambda one: (one[1]["inside_seconds"], one[1]["grace_periods_begun"]))
    text = f"thread '{reader['thread_name'] or '?'}' (tid {reader['thread']}) is inside a read-side critical section"
    if member.text("name") != domain.text("name"):
        text += f" of '{member.text('name')}'"
    return text + (f", blocking for {duration(reader['inside_seconds'])}" if reader["inside_seconds"] else "")


def holders(watch, figure, shown):
    """The caches that have most: (bytes, copy, cache)."""
    found = [(figures[figure], copy, cache) for copy in watch.copies for cache, figures in copy.caches() if figures[figure]]
    return sorted(found, key=lambda one: -one[0])[:shown]


def dump(watch):
    """A summary, as prudence_dump() writes it: which caches hold memory, and which reader keeps it."""
    sample = watch.sample_now()
    totals = sample["totals"]
    when = getattr(watch.process, "time", None) or datetime.now(timezone.utc)
    yield f"prudence {sample['version']}: process {sample['pid']} ({sample['program']}), {when:%Y-%m-%d %H:%M:%S} UTC"
    for copy in sample["copies"]:
        if copy["percpu_reason"]:
            yield f"per-CPU caches: locks instead of restartable sequences ({copy['percpu_reason']})"
    yield (f"slabs and large blocks: {of_bytes(totals['bytes_slabs'])} (most: {of_bytes(totals['bytes_slabs_peak'])}); "
           f"live {of_bytes(totals['bytes_live'])}, latent {of_bytes(totals['bytes_latent'])}, cached {of_bytes(totals['bytes_cached'])}; "
           f"retained {of_bytes(totals['bytes_retained'])}, metadata {of_bytes(totals['bytes_metadata'])} reserved")
    yield (f"latent_limit: {of_bytes(totals['latent_limit'])}, in force {of_bytes(max(totals['latent_limit'], totals['latent_risen']))}; "
           f"waits because of it: {totals['throttle_waits']}, given up {totals['throttle_expiries']}; "
           f"callbacks wait with {of_bytes(totals['bytes_called'])}")
    for size, copy, cache in holders(watch, "bytes_latent", LATENT_SHOWN):
        domain = copy.record("prudence_domain", cache["domain"])
        yield f"latent: {of_bytes(size)} of cache '{cache.text('name')}', domain '{domain.text('name')}': {reader_of(copy, domain)}"
    for size, _, cache in holders(watch, "bytes_live", LIVE_SHOWN):
        yield f"live: {of_bytes(size)} of cache '{cache.text('name')}'"


def shown(lines):
    """Returns the lines without the codes that a terminal would obey."""
    return (printable(line) for line in lines)
