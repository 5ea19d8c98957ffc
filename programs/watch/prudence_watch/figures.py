# SPDX-License-Identifier: MIT
"""A sample: all figures of a process, read from its memory while it runs.

Each figure is right, because it is one aligned word, or a sum of such words of different CPUs and nodes. The words of a sum are of
moments near each other, so sums of a busy cache may differ by events in between (some microseconds), and figures that follow
from several sums (such as live objects) as well. They are the figures that prudence_cache_stats() in the process would give, which adds up
in the same way (src/core/slab/stats.c, src/core/process/stats.c).

Caches and domains may be destroyed while they are read. A link of a list is therefore read again until it leads back to where it
came from and numbers grow; a structure that is no longer on its list when its figures have been read is skipped.
"""

import functools
import time
from datetime import datetime, timezone

from . import bounds
from .errors import WatchError
from .layout import Record
from .patience import within

MASK = (1 << 64) - 1
REASON = 64  # bytes of why there are no sequences
CHANGING_SECONDS = 1.0  # without anything new of a list

# Fields that are constant while a structure is on its list, and lead to its figures.
MADE_OF = {"prudence_cache": ("number", "name", "body", "percpu", "domain", "object_size"),
           "prudence_domain": ("generation", "name", "scheme", "kind")}

LISTS = {"prudence_cache": "caches", "prudence_domain": "domains"}  # the names in bounds.PER_SAMPLE

# Counters that the tools show or calculate with; they show others, too, as the process names them.
NEEDED = ("cache.refills", "cache.flushes", "cache.grows", "cache.shrinks", "cache.merges", "cache.hits_after_merge",
          "domain.grace_periods", "domain.scans", "domain.membarriers", "domain.stalls",
          "process.throttle_waits", "process.throttle_expiries")


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def with_counters(figures, counts):
    """Figures, and counters of other names."""
    return figures | {name: count for name, count in counts.items() if name not in figures}


class Copy:
    """A copy of the library in the process."""

    def __init__(self, target, layout):
        self.target, self.memory, self.layout = target, target.memory, layout
        self.step = layout.number("grace_period_step")
        self.scheme_names = {}
        self.counted_for, self.counted_machine = None, (0, 0)
        self.counted = {}  # by structure: (figure, member)
        for group in ("cache", "domain"):
            for figure, counter in layout.counters_of(group).items():
                for place in counter.places:
                    structure, _, member = place.partition(".")
                    self.counted.setdefault(structure, []).append((figure, member))

    def record(self, structure, address):
        return Record(self.layout, structure, self.memory.read(address, self.layout.size(structure)))

    def variable(self, name):
        return self.memory.word(self.layout.address(name))

    def small(self, name, most):
        """A variable of 32 bits that counts something."""
        value = self.memory.number(self.layout.address(name), 4)
        if not 0 < value <= most:
            raise WatchError(f"it claims {value} {name}; the limit is {most}")
        return value

    @property
    def cpus(self):
        return self.machine()[0]

    @property
    def nodes(self):
        return self.machine()[1]

    def machine(self):
        """CPUs and nodes, read once for each sample: the library counts them when it starts."""
        if self.counted_for is not self.memory.budget:
            self.counted_for = self.memory.budget
            self.counted_machine = self.small("cpus", bounds.CPUS), self.small("nodes", bounds.NODES)
        return self.counted_machine

    def percpu_reason(self):
        """Why locks protect CPUs' caches; "": they need none."""
        place = self.variable("percpu_why_not")
        return self.memory.text(place, REASON) if place else ""

    def walk(self, head, structure, number, found, both_ways=True):
        """Adds to `found` (address, record) of each structure on a list that comes after the last one there. `number` grows along the
        list, and each structure takes a read, so it ends. ValueError: the list changed during the walk."""
        link = self.layout.offset(f"{structure}.link")
        before, last = (found[-1][0] + link, found[-1][1][number]) if found else (head, 0)
        item = self.memory.word(before + self.layout.offset("list.next"))
        while item != head:
            record = self.record(structure, item - link)
            links = Record(self.layout, "list", record.memory, link)
            if (both_ways and links["previous"] != before) or record[number] <= last:
                raise ValueError("the list has changed")
            self.memory.budget.spend(LISTS[structure])
            found.append((item - link, record))
            before, last, item = item, record[number], links["next"]

    def list_of(self, head, structure, number):
        """All structures on a list. After a change the walk goes on from the last structure that is still on the list: from the head, a
        long list could not be read while caches come and go. It waits in between, because the thread that changes the
        list may have lost its CPU halfway. It may also have stopped there for good, as in a core file: then the links
        forward count, which are whole at any time."""
        found, give_up = [], time.monotonic() + (0 if self.target.stands else CHANGING_SECONDS)
        while time.monotonic() < give_up:
            length = len(found)
            try:
                self.walk(self.layout.address(head), structure, number, found)
                return found
            except (ValueError, OSError):
                if len(found) > length:
                    give_up = time.monotonic() + CHANGING_SECONDS
                while found and not self.is_listed(found[-1][0], structure, found[-1][1]):
                    found.pop()
                time.sleep(0.0005)
        try:
            found.clear()
            self.walk(self.layout.address(head), structure, number, found, both_ways=False)
            return found
        except (ValueError, OSError):
            raise WatchError(f"{structure}: the list changes faster than it can be read, or is damaged") from None

    def is_listed(self, address, structure, record):
        """Whether the structure that was `record` is on its list still: then none of its memory has been returned so far. The record
        is compared last: the memory may have become another one's, which is on the list at the same place, before or while
        it was read."""
        link = self.layout.offset(f"{structure}.link")
        try:
            links = Record(self.layout, "list", self.record(structure, address).memory, link)
            if self.memory.word(links["previous"] + self.layout.offset("list.next")) != address + link:
                return False
            again = self.record(structure, address)
        except OSError:  # its memory has gone
            return False
        return all(again.part(member) == record.part(member) for member in MADE_OF[structure])

    # ------------------------------------------------------------------------------------------- caches

    def caches(self):
        """Each structure with its figures."""
        for caches in ("slab_caches", "slab_cold_caches"):
            for address, cache in self.list_of(caches, "prudence_cache", "number"):
                try:
                    figures = self.cache(cache)
                except OSError:  # it has gone
                    continue
                if self.target.stands or self.is_listed(address, "prudence_cache", cache):
                    yield cache, figures

    def cache(self, cache):
        sums = dict.fromkeys((
            "hits", "misses", "frees", "deferred_frees", "object_cache_size", "objects_cached", "objects_latent", "bytes_latent",
            "free_slabs"), 0)
        counts = dict.fromkeys(self.layout.counters_of("cache"), 0)
        domain = self.record("prudence_domain", cache["domain"])
        body = self.record("cache_body", cache["body"])
        cold = cache["state"] == self.layout.number("cold")  # it has no lines, and the body is another cache's
        if not cold:
            if cache["percpu"]:
                self.add_cpus(sums, counts, cache["percpu"], body["stride"], domain["progress.completed"])
            self.add_nodes(sums, counts, body)
            self.count(counts, "cache_body", body)
        if cache["flags"] & self.layout.number("common"):  # the cold caches count
            sums |= dict.fromkeys(("hits", "misses", "frees", "deferred_frees"), 0)
        sums["misses"] += cache["cold_allocations"]
        sums["frees"] += cache["cold_frees"]
        sums["deferred_frees"] += cache["cold_deferred"]
        return with_counters(self.figures_of(cache, body, cold, domain.text("name"), sums, counts), counts)

    def count(self, counts, structure, values):
        """Adds a structure's value of each counter."""
        for figure, member in self.counted.get(structure, ()):
            counts[figure] += values[member]

    @functools.cached_property
    def line(self):
        return self.layout.unpacker("cpu_cache", (
            "line.stack_word", "line.ring_head", "line.ring_tail", "closed", "closed_cookie", "size", "counts.stacked",
            "counts.unstacked", *{member for _, member in self.counted.get("cpu_cache", ())}), self.layout.number("percpu_stride"))

    def add_cpus(self, sums, counts, first, object_stride, completed):
        stride, cpus = self.layout.number("percpu_stride"), self.cpus
        lines = self.memory.read(first, stride * cpus)
        bits = self.layout.number("stack_count_bits")
        for cpu in range(cpus):
            line = self.line(lines, cpu * stride)
            pops, count = line["line.stack_word"] >> bits, line["line.stack_word"] & ((1 << bits) - 1)
            head, tail = line["line.ring_head"], line["line.ring_tail"]
            latent, safe = max(0, signed(tail - head & MASK)), 0
            closed = signed(line["closed"] - head & MASK)
            if closed > 0 and signed(completed - line["closed_cookie"] & MASK) >= 0:
                safe = min(closed, latent)
            sums["hits"] += pops
            sums["frees"] += signed(count + pops + line["counts.unstacked"] - line["counts.stacked"] & MASK)
            sums["deferred_frees"] += tail
            sums["objects_cached"] += count + safe
            sums["objects_latent"] += latent - safe
            sums["bytes_latent"] += (latent - safe) * object_stride
            sums["object_cache_size"] = max(sums["object_cache_size"], line["size"])
            self.count(counts, "cpu_cache", line)

    def add_nodes(self, sums, counts, body):
        size, nodes = self.layout.size("slab_node"), self.nodes
        memory = self.memory.read(body["nodes"], size * nodes)
        for at in range(nodes):
            node = Record(self.layout, "slab_node", memory, at * size)
            arriving = self.handed_over(node["handover"])
            sums["misses"] += node["counts.allocations"]
            sums["frees"] += node["counts.frees"]
            sums["deferred_frees"] += node["counts.deferred"]
            sums["objects_latent"] += node["latent"] + arriving
            sums["bytes_latent"] += node["latent_bytes"] + arriving * body["stride"]
            sums["free_slabs"] += node["free_slabs"]
            self.count(counts, "slab_node", node)

    def handed_over(self, batch):
        """Latent objects on their way to a node. They are taken over at any time, so the chain may end in the middle."""
        count = 0
        next_offset, count_offset = (self.layout.offset(f"transfer_batch.{name}") for name in ("next", "count"))
        for _ in range(64):
            if not batch:
                break
            count += self.memory.word(batch + count_offset) & 0xff
            batch = self.memory.word(batch + next_offset)
        return count

    @staticmethod
    def figures_of(cache, body, cold, domain, sums, counts):
        stride, size, slab = body["stride"], cache["object_size"], body["slab_bytes"]
        allocations = sums["hits"] + sums["misses"]
        live = max(0, allocations - sums["frees"] - sums["deferred_frees"])
        sums["frees"] = max(0, sums["frees"])
        del sums["misses"]
        slabs, slabs_peak = (0, 0) if cold else (body["slabs_now"], body["slabs_peak"])
        figures = {
            "name": cache.text("name"), "number": cache["number"], "domain": domain,
            "object_size": size, "object_stride": stride, "slab_size": slab, "allocations": allocations, **sums,
            "object_cache_churns": min(counts["refills"], counts["flushes"]),
            "slab_churns": min(counts["grows"], counts["shrinks"]),
            "slabs_now": slabs, "slabs_peak": slabs_peak, "objects_live": live,
            "bytes_live": live * stride, "bytes_cached": sums["objects_cached"] * stride,
            "bytes_slabs": slabs * slab, "bytes_free_slabs": sums["free_slabs"] * slab, "total_fragmentation": 0.0}
        if not cache["percpu"]:  # large blocks, each of its own size
            held = signed(body["large_grown"] - body["large_shrunk"] & MASK)
            figures |= {"bytes_live": max(0, held - sums["bytes_latent"]), "bytes_slabs": max(0, held),
                        "bytes_free_slabs": 0, "free_slabs": 0}
        elif live and size:
            figures["total_fragmentation"] = slabs * slab / (live * size)
        return figures

    # ------------------------------------------------------------------------------------------ domains

    def domains(self):
        self.scheme_names.clear()
        found = [self.domain(self.record("prudence_domain", self.layout.address("prudence_default")))]
        for address, domain in self.list_of("readers_domains", "prudence_domain", "generation"):
            try:
                figures = self.domain(domain)
                if self.is_listed(address, "prudence_domain", domain):
                    found.append(figures)
            except OSError:  # it has gone
                continue
        return found

    def every_domain(self):
        """The structures."""
        yield self.record("prudence_domain", self.layout.address("prudence_default"))
        for _, domain in self.list_of("readers_domains", "prudence_domain", "generation"):
            yield domain

    def domain(self, domain):
        now = domain["shared.sequence"]
        readers, inside = self.readers(domain, now)
        counts = dict.fromkeys(self.layout.counters_of("domain"), 0)
        self.count(counts, "prudence_domain", domain)
        return with_counters({
            "name": domain.text("name"), "number": domain["generation"], "kind": self.kind(domain), "readers": readers, "readers_inside": len(inside),
            "longest_inside_seconds": max((reader["inside_seconds"] for reader in inside), default=0.0),
            "bytes_called": self.bytes_called(domain["callbacks"]),
            "threads_inside": inside}, counts)

    def kind(self, domain):
        if domain["kind"] == self.layout.number("qsbr"):
            return "qsbr"
        scheme = domain["scheme"]
        if scheme not in self.scheme_names:
            name = self.memory.read(self.memory.word(scheme + self.layout.offset("gp_scheme.name")), 8)
            self.scheme_names[scheme] = name.split(b"\0")[0].decode(errors="replace")
        return self.scheme_names[scheme]

    def bytes_called(self, queue):
        if not queue:
            return 0
        lanes = self.memory.word(queue + self.layout.offset("callback_queue.lanes")) & 0xffffffff
        left = self.memory.word(queue + self.layout.offset("callback_queue.bytes_left"))
        lane = self.memory.word(queue + self.layout.offset("callback_queue.lane"))
        size, pushed = self.layout.size("callback_lane"), 0
        memory = self.memory.read(lane, size * lanes) if lanes <= 4096 else b""
        for at in range(len(memory) // size):
            pushed += Record(self.layout, "callback_lane", memory, at * size)["bytes_pushed"]
        return max(0, signed(pushed - left & MASK))

    def readers(self, domain, now):
        """How many threads have a slot, and those that are inside a section."""
        count, inside = 0, []
        for slot in self.slots(domain["chunks"]):
            count += 1
            if slot["reader.word"]:
                self.memory.budget.spend("threads inside sections")
                inside.append(self.reader(slot, now))
        return count, inside

    def inside_of(self, domain):
        """The threads that are inside, the one that entered first comes first."""
        now = domain["shared.sequence"]
        slots = sorted((slot for slot in self.slots(domain["chunks"]) if slot["reader.word"]),
                       key=lambda slot: signed(slot["reader.word"] - now & MASK))
        return [self.reader(slot, now) for slot in slots]

    def slots(self, chunk):
        """Reads the reader slot of each thread that has one."""
        seen = set()
        size, (first, end) = self.layout.size("reader_slot"), self.layout.place("reader_chunk.slots", bounds.STRUCTURE)
        while chunk:
            if chunk in seen:
                raise WatchError(f"chunks of readers lead in a circle at {chunk:#x}. The process's memory is damaged")
            seen.add(chunk)
            used = min((end - first) // size, self.memory.word(chunk + self.layout.offset("reader_chunk.used")))
            memory = self.memory.read(chunk + first, used * size) if used else b""
            for at in range(used):
                slot = Record(self.layout, "reader_slot", memory, at * size)
                if 0 < slot["thread"] < 1 << 31:
                    yield slot
            chunk = self.memory.word(chunk + self.layout.offset("reader_chunk.next"))

    def reader(self, slot, now):
        """The age of its section is known from the moment that a grace period waited for it."""
        word = slot["reader.word"]
        section, nesting = word & ~(self.step - 1), word & (self.step - 1)
        now_ns = self.target.now()
        inside = now_ns - slot["stall_since"] if now_ns and section and slot["stall_word"] == section else 0
        begun = signed(now - section & MASK)
        return {"thread": slot["thread"], "thread_name": self.target.thread_name(slot["thread"]) if word else "",
                "nesting": max(nesting, 1) if word else 0, "inside_seconds": max(0, inside) / 1e9,
                "grace_periods_begun": begun // self.step if section and begun > 0 else 0}


TOTALS_OF_CACHES = ("allocations", "hits", "hits_after_merge", "frees", "deferred_frees", "object_cache_churns", "slab_churns", "merges",
                    "slabs_now", "objects_live", "objects_latent", "objects_cached", "bytes_live", "bytes_latent",
                    "bytes_cached", "bytes_free_slabs")
TOTALS_OF_DOMAINS = ("readers", "readers_inside", "bytes_called")


class Watch:
    """Takes samples of a process."""

    def __init__(self, process):
        self.process = process
        with process.named():
            self.copies = [Copy(process, layout) for layout in process.copies]
            for layout in process.copies:
                for name in NEEDED:
                    layout.counter(name)
        self.ended_before = None

    def counters(self, group):
        """Returns {figure: value} of all copies."""
        return {figure: counter.meaning for layout in self.process.copies for figure, counter in layout.counters_of(group).items()}

    def sample(self):
        """Returns everything, as types of JSON. Ended: the process has, or does not want to be watched any more. WatchError: its data about
        itself cannot be true."""
        return self.within_bounds(self.sample_now)

    def within_bounds(self, look, seconds=None):
        def work():
            with self.process.named():
                self.process.memory.budget = bounds.Budget(seconds)
                try:
                    return look()
                except OSError as error:
                    self.process.check()
                    self.process.resident()
                    raise WatchError(f"its memory cannot be read ({error})") from None
        return within(f"{self.process.what} ({self.process.name})", work, seconds)

    def sample_now(self):
        """Samples as above, in a thread that has its bounds already."""
        self.process.check()
        copies = []
        for copy in self.copies:
            reason = copy.percpu_reason()
            copies.append({"version": copy.layout.version, "malloc": bool(copy.layout.address("malloc")),
                           "percpu": "lock" if reason else "rseq", "percpu_reason": reason})
        sample = {"format": 1, "pid": self.process.pid, "program": self.process.name, "version": copies[0]["version"], "copies": copies,
                  "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"), "seconds": time.monotonic()}
        caches, domains, totals = [], [], dict.fromkeys(
            ("bytes_slabs", "bytes_slabs_peak", "bytes_retained", "bytes_metadata", "latent_limit", "latent_risen", *self.counters("process")), 0)
        for number, copy in enumerate(self.copies):
            self.add_copy(copy, number, caches, domains, totals)
        for name in TOTALS_OF_CACHES:
            totals[name] = sum(cache[name] for cache in caches)
        for name in (*TOTALS_OF_DOMAINS, *self.counters("domain")):
            totals[name] = sum(domain.get(name, 0) for domain in domains)
        totals["longest_inside_seconds"] = max(domain["longest_inside_seconds"] for domain in domains)
        return sample | {"totals": {"bytes_resident": self.process.resident(), **totals}, "caches": caches, "domains": domains}

    def progress(self):
        """Returns the numbers of begun and ended grace periods in the default domain of the first copy."""
        copy = self.copies[0]
        domain = self.within_bounds(lambda: copy.record("prudence_domain", copy.layout.address("prudence_default")))
        with self.process.named():
            return domain["shared.sequence"], domain["progress.completed"]

    def grace_periods_under_way(self):
        begun, ended = self.progress()
        return max(0, signed(begun - ended & MASK)) // self.copies[0].step

    def grace_periods_ended_since(self):
        """The last call."""
        ended, before = self.progress()[1], self.ended_before
        self.ended_before = ended
        return (ended - before & MASK) // self.copies[0].step if before is not None else 0

    @staticmethod
    def add_copy(copy, number, caches, domains, totals):
        for _, cache in copy.caches():
            if cache["allocations"] or cache["slabs_now"]:
                caches.append({"copy": number, **cache})
        domains.extend({"copy": number, **domain} for domain in copy.domains())
        for total, variable in (("bytes_metadata", "pages_metadata"), ("latent_limit", "latent_limit"), ("latent_risen", "latent_risen")):
            totals[total] += copy.variable(variable)
        for total, word in (("bytes_slabs", "used"), ("bytes_slabs_peak", "used_peak"), ("bytes_retained", "retained")):
            place = copy.layout.address("pages_words") + copy.layout.offset(f"pages_words.{word}")
            totals[total] += copy.memory.word(copy.memory.word(place))
        for figure, counter in copy.layout.counters_of("process").items():
            totals[figure] += sum(copy.variable(place) for place in counter.places)

