# SPDX-License-Identifier: MIT
"""Single objects and slabs: the object at an address, where deferred objects wait, and all slabs of a cache. Read from memory alone.

Data that a running process changes at that moment may be shown half changed. Memory may be damaged, and a core file may be anyone's: each
structure takes a read, of which there is a bound; circles end, and counts and sizes that cannot be are errors.
"""

from . import bounds
from .errors import WatchError
from .figures import MASK, signed
from .layout import Record

OBJECTS = ("free", "waiting", "next")  # the bitmaps of a slab, in their order


def bounded(value, most, what):
    """Checks a number of the process."""
    if not 0 <= value <= most:
        raise WatchError(f"{what}: {value}; the limit is {most}. The process's memory is damaged")
    return value


class Heap:
    """The heap of one copy of the library (figures.Copy)."""

    def __init__(self, copy):
        self.copy, self.memory, self.layout = copy, copy.memory, copy.layout
        self.cpus, self.nodes = copy.cpus, copy.nodes
        self.leaves, self.pages = {}, {}  # of the page map, as far as it was read

    # ---------------------------------------------------------------------------------------- structures

    def chain(self, first, next_of, what, end=0):
        """The address of each structure from one to the next; an error where they lead in a circle."""
        seen = set()
        while first != end:
            if first in seen:
                raise WatchError(f"{what} lead in a circle at {first:#x}. The process's memory is damaged")
            seen.add(first)
            yield first
            first = next_of(first)

    def linked(self, head, structure, member="link"):
        """The structures that a list links by one of their members, as records; `head` is an address."""
        offset = self.layout.offset(f"{structure}.{member}")
        following = self.layout.offset("list.next")
        for item in self.chain(self.memory.word(head + following), lambda item: self.memory.word(item + following), f"links of {structure}", head):
            yield self.record(structure, item - offset)

    def record(self, structure, address):
        found = self.copy.record(structure, address)
        found.address = address
        return found

    def caches(self, name=None):
        """All of them, or those of a name."""
        for head in ("slab_caches", "slab_cold_caches"):
            for _, cache in self.copy.list_of(head, "prudence_cache", "number"):
                if name is None or cache.text("name") == name:
                    yield cache

    def domain_of(self, cache):
        return self.copy.record("prudence_domain", cache["domain"])

    def is_cold(self, cache):
        """Says whether a cache has no lines, and the body of another cache."""
        return cache["state"] == self.layout.number("cold")

    def body_of(self, cache):
        return self.copy.record("cache_body", cache["body"])

    def cpu_caches(self, cache):
        """Yields the number and the structure of each CPU."""
        stride, first = self.layout.number("percpu_stride"), cache["percpu"]
        if first and not self.is_cold(cache):
            memory = self.memory.read(first, stride * self.cpus)
            for cpu in range(self.cpus):
                yield cpu, Record(self.layout, "cpu_cache", memory, cpu * stride)

    def nodes_of(self, cache):
        """Yields the number and the structure of each node."""
        if not self.is_cold(cache):
            size, first = self.layout.size("slab_node"), self.body_of(cache)["nodes"]
            for node in range(self.nodes):
                yield node, self.record("slab_node", first + node * size)

    def slab_at(self, address):
        """The address of the slab that an address lies in; 0: none. A leaf has a word for each page, then one for each chunk."""
        page, chunk, leaf = (self.layout.number(f"{unit}_shift") for unit in ("page", "chunk", "leaf"))
        index, within = address >> leaf, address & (1 << leaf) - 1
        if not page < chunk < leaf or not 0 <= index < self.layout.number("leaves"):
            return 0
        if index not in self.leaves:
            tables = self.layout.address("page_map"), self.memory.word(self.layout.address("whole_leaves"))
            self.leaves[index] = tuple(table and self.memory.word(table + index * 8) for table in tables)
        words, whole = self.leaves[index]
        for at in (within >> page, (1 << leaf - page) + (within >> chunk)) if words else ():
            if (index, at) not in self.pages:
                self.pages[index, at] = self.memory.word(words + at * 8)
            if self.pages[index, at]:
                return self.pages[index, at]
        return whole

    def cache_of(self, slab):
        return self.copy.record("prudence_cache", slab["cache"])

    # ------------------------------------------------------------------------------ where objects of a cache are

    def stack_of(self, cpu):
        count = cpu["line.stack_word"] & (1 << self.layout.number("stack_count_bits")) - 1
        return self.memory.words(cpu["line.stack"], bounded(count, bounds.SLOTS, "objects of an object cache"))

    def ring_of(self, cpu):
        """Each deferred object with its cookie; None: its batch is open."""
        head, tail = cpu["line.ring_head"], cpu["line.ring_tail"]
        mask = bounded(cpu["line.ring_mask"], bounds.SLOTS, "slots of a latent cache")
        if head == tail:
            return []
        bounded(tail - head, mask + 1, "objects of a latent cache")
        ring = cpu["line.ring"]
        slots = self.memory.words(ring, mask + 1)
        first, batch_mask = cpu["batch_head"], bounded(cpu["batch_mask"], bounds.SLOTS, "batches of a latent cache")
        closed = bounded(cpu["batch_tail"] - first & 0xffffffff, batch_mask + 1, "closed batches")
        size = self.layout.size("batch")
        memory = self.memory.read(ring + 8 * bounded(cpu["slots"], bounds.SLOTS, "slots of a latent cache"), (batch_mask + 1) * size) if closed else b""
        batches = [Record(self.layout, "batch", memory, (at & batch_mask) * size) for at in range(first, first + closed)]
        found, at = [], 0
        for place in range(head, tail):
            while at < len(batches) and batches[at]["end"] <= place:
                at += 1
            found.append((slots[place & mask], batches[at]["cookie"] if at < len(batches) else None))
        return found

    def handed_over(self, node):
        """Each object in transfer batches, with its cookie."""
        offset, (first, end) = self.layout.offset, self.layout.place("transfer_batch.objects", bounds.STRUCTURE)
        most = (end - first) // 8
        for batch in self.chain(node["handover"], lambda batch: self.memory.word(batch + offset("transfer_batch.next")),
                                "batches on their way to a node"):
            count = bounded(self.memory.number(batch + offset("transfer_batch.count"), 4), most, "objects of a batch")
            cookie = self.memory.word(batch + offset("transfer_batch.cookie"))
            for address in self.memory.words(batch + first, count):
                yield address, cookie

    def is_over(self, domain, cookie):
        return signed(domain["progress.completed"] - cookie & MASK) >= 0

    def wait_of(self, domain, cookie):
        return f"cookie {cookie:#x}, " + ("over" if self.is_over(domain, cookie) else "not over")

    # -------------------------------------------------------------------------------------------- an address

    def bits_place(self, slab, bitmap):
        """The address of a bitmap; that after the last one is the owners' array."""
        return slab.address + self.layout.number("slab_bits") + 8 * bitmap * ((slab["capacity"] + 63) // 64)

    def has_bit(self, slab, bitmap, index):
        return bool(self.memory.word(self.bits_place(slab, OBJECTS.index(bitmap)) + index // 64 * 8) >> index % 64 & 1)

    def owner_of_object(self, slab, cache, index):
        """The cold cache that has a live object of a common cache, or None."""
        if not cache["flags"] & self.layout.number("common"):
            return None
        owner = self.memory.word(self.bits_place(slab, len(OBJECTS)) + 8 * index)
        return self.copy.record("prudence_cache", owner) if owner else None

    def state_of(self, slab, cache, index, address):
        """Describes an object in one sentence."""
        domain = self.domain_of(cache)
        if self.has_bit(slab, "free", index):
            return "free in its slab"
        if self.has_bit(slab, "waiting", index):
            return f"latent in its slab: {self.wait_of(domain, slab['waiting_cookie'])}"
        if self.has_bit(slab, "next", index):
            return "latent in its slab: waits for the grace period after that of the slab's cookie"
        for cpu, caches in self.cpu_caches(cache):
            if address in self.stack_of(caches):
                return f"cached in the object cache of CPU {cpu}"
            for latent, cookie in self.ring_of(caches):
                if latent == address:
                    return f"latent in the latent cache of CPU {cpu}: " + (
                        "its batch is still open" if cookie is None else self.wait_of(domain, cookie))
        for node, structure in self.nodes_of(cache):
            for latent, cookie in self.handed_over(structure):
                if latent == address:
                    return f"latent on its way to node {node}: {self.wait_of(domain, cookie)}"
        return "live: allocated, and not freed (or it rests, with quarantine or shuffle)"

    def large_block_at_rest(self, address):
        """Describes a freed large block, whose pages stay closed for a while. Returns None if the address lies in none."""
        room = bounded(self.memory.number(self.layout.address("rest_room"), 4), bounds.RESTS, "large blocks at rest")
        first, size = self.copy.variable("rests"), self.layout.size("rest")
        memory = self.memory.read(first, room * size) if room else b""
        for at in range(room):
            rest = Record(self.layout, "rest", memory, at * size)
            if rest["pages"] <= address < rest["pages"] + rest["bytes"]:
                return (f"{address:#x}: freed: a large block of {rest['size']} bytes at {rest['pages'] + rest['front']:#x}, "
                        "whose pages are closed for a while")
        return None

    def object_bytes(self, slab, cache):
        """From one object to the next. Of a large block it yields the user's part: the rest of its pages are margins, which are closed."""
        if cache["percpu"]:
            return self.body_of(cache)["stride"]
        return slab["bytes"] - (slab["base"] - slab["pages"] + slab["margin_pages"] * self.layout.number("margin_unit"))

    def whois(self, address):
        """Lines; None: it is no memory of this copy's."""
        place = self.slab_at(address)
        if not place:
            rest = self.large_block_at_rest(address)
            return rest and [rest]
        slab = self.record("slab", place)
        cache = self.cache_of(slab)
        base, stride = slab["base"], self.object_bytes(slab, cache)
        what = f"objects of {cache['object_size']} bytes" if cache["percpu"] else f"a block of {stride} bytes"
        if stride <= 0:
            raise WatchError(f"the slab at {slab.address:#x} has objects of no size. The process's memory is damaged")
        index, into = divmod(address - base, stride)
        lines = [f"{address:#x}: cache '{cache.text('name')}' ({what}), domain '{self.domain_of(cache).text('name')}'",
                 f"slab {slab.address:#x}, node {slab['node']}: pages {slab['pages']:#x} of {slab['bytes']} bytes, "
                 f"{slab['capacity']} objects, {slab['free']} free, {slab['latent']} latent"]
        if address < base or index >= slab["capacity"]:
            return lines + ["in no object: before the first or after the last of the slab"]
        start = base + index * stride
        lines.append(f"object {index}, which begins at {start:#x}" + (f"; the address is {into} bytes into it" if into else ""))
        lines.append(self.state_of(slab, cache, index, start))
        owner = self.owner_of_object(slab, cache, index)
        return lines + ([f"the cold cache '{owner.text('name')}' has it"] if owner else [])

    # ------------------------------------------------------------------------------------------------- slabs

    def slabs_of(self, cache):
        size, (first, end) = 2 * 8, self.layout.place("slab_node.lists", bounds.STRUCTURE)
        for node, structure in self.nodes_of(cache):
            for place in range(first, end, size):
                for slab in self.linked(structure.address + place, "slab"):
                    yield node, slab

    def objects_away(self, cache):
        """[cached, latent] of each slab, by its address: objects that are in the caches of CPUs, or on their way to a node."""
        away = {}

        def count(place, addresses):
            for address in addresses:
                slab = self.slab_at(address)
                if slab:
                    away.setdefault(slab, [0, 0])[place] += 1

        for _, cpu in self.cpu_caches(cache):
            count(0, self.stack_of(cpu))
            count(1, (address for address, _ in self.ring_of(cpu)))
        for _, node in self.nodes_of(cache):
            count(1, (address for address, _ in self.handed_over(node)))
        return away

    def walk(self, cache):
        """A row for each slab."""
        away = self.objects_away(cache)
        for node, slab in self.slabs_of(cache):
            objects, free, in_slab = slab["capacity"], slab["free"], slab["latent"]
            cached, latent = away.get(slab.address, (0, 0))
            yield (f"{slab['pages']:#x}", slab["bytes"], objects, objects - free - in_slab - cached - latent, cached, in_slab + latent, free,
                   node, cache.text("name"))

    # ------------------------------------------------------------------------------------------------ latent

    def latent(self, cache):
        """Returns lines: where deferred objects are, and their grace periods."""
        domain = self.domain_of(cache)
        yield f"cache '{cache.text('name')}', domain '{domain.text('name')}'"

        def counted(cookies):
            counts = {}
            for cookie in cookies:
                counts[cookie] = counts.get(cookie, 0) + 1
            return counts.items()

        for cpu, caches in self.cpu_caches(cache):
            for cookie, count in counted(cookie for _, cookie in self.ring_of(caches)):
                yield f"  CPU {cpu}: {count} objects, " + ("open batch" if cookie is None else self.wait_of(domain, cookie))
        for node, structure in self.nodes_of(cache):
            slabs = {}
            for slab in self.linked(structure.address + self.layout.offset("slab_node.waiting"), "slab", "waiting_link"):
                slabs.setdefault(slab["waiting_cookie"], []).append(slab["latent"])
            for cookie, latent in slabs.items():
                yield f"  node {node}: {sum(latent)} objects in {len(latent)} slabs, {self.wait_of(domain, cookie)}"
            for cookie, count in counted(cookie for _, cookie in self.handed_over(structure)):
                yield f"  on the way to node {node}: {count} objects, {self.wait_of(domain, cookie)}"
        for reader in self.copy.inside_of(domain):
            yield (f"  thread {reader['thread']} is inside since {reader['grace_periods_begun']} grace periods "
                   f"(nested {reader['nesting']})")
