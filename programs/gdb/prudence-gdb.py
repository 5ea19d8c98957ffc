# SPDX-License-Identifier: MIT
"""Commands for gdb: the caches of a process that uses Prudence, what an address is, and what waits for which reader.

    (gdb) source prudence-gdb.py
    (gdb) prudence caches
    (gdb) prudence counters [CACHE]
    (gdb) prudence whois ADDRESS
    (gdb) prudence latent [CACHE]
    (gdb) prudence readers
    (gdb) prudence traces
    (gdb) prudence walk [CACHE]
    (gdb) prudence profile FILE
    (gdb) prudence set OPTION VALUE

They read memory alone and call no function of the program, so they work on a core file, too; only `prudence set` needs a running process,
and calls the library in it. They need the library's debug information, except `prudence set`. A process that has two copies of the library
(both preloaded) has the caches of both.

What a running thread changes at that moment may be shown as it is half way; gdb stops all threads before.

The process may have damaged its memory, and a core file may be anyone's. So circles end, and counts and sizes that cannot be are errors.
"""

import json
import os
import re
import struct
import time

import gdb

POINTER = 8
WORD = (1 << 64) - 1
PAGE_SHIFT, LEAF_SHIFT = 12, 30
COMMON = 1 << 5  # the flag of caches whose objects belong to cold caches
COLD = 1  # the state of these
NESTING_MASK = (1 << 10) - 1

# More there cannot be: CPUs and nodes of a kernel, slots of a CPU's arrays, objects of a batch, large blocks at rest.
CPUS, NODES, SLOTS, BATCH, RESTS = 8192, 1024, 1 << 20, 255, 1 << 16
CALLS, AGES, SITE_BUCKETS, SAMPLING_UNIT = 32, 48, 1 << 12, 1 << 12  # of a profile


def number(value):
    return int(value)


def bounded(value, most, what):
    """A number of the process."""
    value = number(value)
    if not 0 <= value <= most:
        raise gdb.GdbError(f"prudence: {what}: {value}, and there are {most} at the most. The process's memory is damaged")
    return value


def chain(first, end, next_of, what):
    """Each structure from one to the next; an error where they lead in a circle."""
    seen = set()
    while number(first) != end:
        if number(first) in seen:
            raise gdb.GdbError(f"prudence: {what} lead in a circle at {number(first):#x}. The process's memory is damaged")
        seen.add(number(first))
        yield first
        first = next_of(first)


def text(characters):
    """A name. Characters that a terminal would obey, and bytes that are none, are shown as '?'."""
    name = characters.string("utf-8", errors="replace")
    return "".join(character if character.isprintable() and character != "\ufffd" else "?" for character in name)


def type_of(name):
    return gdb.lookup_type(name)


def words(address, count):
    """64-bit words of the process."""
    if not count:
        return []
    memory = bytes(gdb.selected_inferior().read_memory(address, count * POINTER))
    return [int.from_bytes(memory[i:i + POINTER], "little") for i in range(0, len(memory), POINTER)]


def offset_of(structure, member):
    return next(field.bitpos // 8 for field in type_of(structure).fields() if field.name == member)


def list_entries(head, structure, member):
    """The structures that a list links by one of their members."""
    offset, pointer = offset_of(structure, member), type_of(structure).pointer()
    for item in chain(head["next"], number(head.address), lambda item: item["next"], f"links of {structure}"):
        yield gdb.Value((number(item) - offset) & WORD).cast(pointer).dereference()


def is_cold(cache):
    """Whether a cache has no lines, and the body of another cache."""
    return number(cache["state"]) == COLD


class Copy:
    """One copy of the library in the process."""

    def __init__(self, objfile, caches):
        self.objfile, self.slab_caches = objfile, caches

    def symbol(self, name):
        found = self.objfile.lookup_global_symbol(name) or self.objfile.lookup_static_symbol(name)
        if not found:
            raise gdb.GdbError(f"prudence: {self.objfile.filename} has no debug information of '{name}'")
        return found.value()

    def variable_of(self, file, name):
        """A static variable whose name others have, too; None: there is none."""
        return next((symbol.value() for symbol in gdb.lookup_static_symbols(name)
                     if symbol.symtab.objfile == self.objfile and symbol.symtab.filename.endswith("/" + file)), None)

    def caches(self):
        yield from list_entries(self.slab_caches, "struct prudence_cache", "link")
        yield from list_entries(self.symbol("slab_cold_caches"), "struct prudence_cache", "link")

    def domains(self):
        yield self.symbol("prudence_default")
        yield from list_entries(self.symbol("readers_domains"), "struct prudence_domain", "link")

    def owner_of(self, address):
        """The slab that an address lies in, or None."""
        leaves = self.symbol("os_page_map")
        if address >> LEAF_SHIFT >= leaves.type.range()[1] + 1:
            return None
        leaf = number(leaves[address >> LEAF_SHIFT])
        if not leaf:
            return None
        place = address >> PAGE_SHIFT & ((1 << LEAF_SHIFT - PAGE_SHIFT) - 1)
        slab = words(leaf + place * POINTER, 1)[0]
        return gdb.Value(slab).cast(type_of("struct slab").pointer()).dereference() if slab else None

    def cpu_caches(self, cache):
        """Of each CPU: the number and the structure."""
        first = 0 if is_cold(cache) else number(cache["percpu"])
        stride = 1 << 8
        for cpu in range(bounded(self.symbol("cpu_count"), CPUS, "CPUs") if first else 0):
            yield cpu, gdb.Value(first + cpu * stride).cast(type_of("struct cpu_cache").pointer()).dereference()

    def nodes(self, cache):
        for node in range(0 if is_cold(cache) else bounded(self.symbol("node_count"), NODES, "nodes")):
            yield node, cache["body"]["nodes"][node]


def copies():
    found = []
    for objfile in gdb.objfiles():
        caches = objfile.lookup_global_symbol("slab_caches") or objfile.lookup_static_symbol("slab_caches")
        if caches:
            found.append(Copy(objfile, caches.value()))
    if not found:
        raise gdb.GdbError("prudence: no debug information of the library (is it loaded, and built with -g?)")
    return found


# ------------------------------------------------------------------------------------------ grace periods

def signed(value):
    return value - (1 << 64) if value >> 63 else value


def is_over(domain, cookie):
    return signed((number(domain["progress"]["completed"]) - cookie) & ((1 << 64) - 1)) >= 0


def owner_of(slab, index):
    """The cold cache that has a live object of a common cache, or None."""
    if not number(slab["cache"]["flags"]) & COMMON:
        return None
    bitmaps = 3 * ((number(slab["capacity"]) + 63) // 64)
    owner = words(number(slab["bits"].address) + (bitmaps + index) * POINTER, 1)[0]
    return gdb.Value(owner).cast(type_of("struct prudence_cache").pointer()).dereference() if owner else None


def wait_of(domain, cookie):
    return f"cookie {cookie:#x}, " + ("over" if is_over(domain, cookie) else "not over")


# ------------------------------------------------------------------------------ where objects of a cache are

def stack_of(cpu):
    return words(number(cpu["line"]["stack"]), number(cpu["line"]["stack_word"]) & 0xffff)


def ring_of(cpu):
    """Each deferred object with its cookie; None: its batch is open."""
    line = cpu["line"]
    head, tail, mask = number(line["ring_head"]), number(line["ring_tail"]), bounded(line["ring_mask"], SLOTS, "slots of a latent cache")
    if head == tail:
        return []
    bounded(tail - head, mask + 1, "objects of a latent cache")
    slots = words(number(line["ring"]), mask + 1)
    batches = (line["ring"] + number(cpu["slots"])).cast(type_of("struct batch").pointer())
    first, batch_mask = number(cpu["batch_head"]), bounded(cpu["batch_mask"], SLOTS, "batches of a latent cache")
    closed = bounded((number(cpu["batch_tail"]) - first) & 0xffffffff, batch_mask + 1, "closed batches")
    ends = [(number(batch["end"]), number(batch["cookie"]["value"]))
            for batch in (batches[at & batch_mask] for at in range(first, first + closed))]
    return [(slots[at & mask], next((cookie for end, cookie in ends if at < end), None))
            for at in range(head, tail)]


def handed_over(node):
    """Each object in transfer batches, with its cookie."""
    for batch in chain(node["handover"], 0, lambda batch: batch["next"], "batches on their way to a node"):
        for at in range(bounded(batch["count"], BATCH, "objects of a batch")):
            yield number(batch["objects"][at]), number(batch["cookie"]["value"])


def bit_is_set(slab, bitmap, index):
    """Of the bitmaps free (0), waiting (1) and next (2)."""
    length = (number(slab["capacity"]) + 63) // 64
    address = number(slab["bits"].address) + (bitmap * length + index // 64) * POINTER
    return words(address, 1)[0] >> index % 64 & 1


def state_of(copy, slab, index, address):
    """What an object is, in one sentence."""
    cache, domain = slab["cache"], slab["cache"]["domain"].dereference()
    if bit_is_set(slab, 0, index):
        return "free in its slab"
    if bit_is_set(slab, 1, index):
        return f"latent in its slab: {wait_of(domain, number(slab['waiting_cookie']['value']))}"
    if bit_is_set(slab, 2, index):
        return "latent in its slab: waits for the grace period after that of the slab's cookie"
    for cpu, caches in copy.cpu_caches(cache):
        if address in stack_of(caches):
            return f"cached in the object cache of CPU {cpu}"
        for latent, cookie in ring_of(caches):
            if latent == address:
                return f"latent in the latent cache of CPU {cpu}: " + (
                    "its batch is still open" if cookie is None else wait_of(domain, cookie))
    for node, structure in copy.nodes(cache):
        for latent, cookie in handed_over(structure):
            if latent == address:
                return f"latent on its way to node {node}: {wait_of(domain, cookie)}"
    return "live: allocated, and not freed (or it rests, with quarantine or shuffle)"


def large_block_at_rest(copy, address):
    """What large_guard.c says of a freed large block, whose pages stay closed for a while; None: it lies in none."""
    rests, room = copy.variable_of("large_guard.c", "rests"), copy.variable_of("large_guard.c", "room")
    for at in range(bounded(room, RESTS, "large blocks at rest") if room is not None else 0):
        pages, front, size = (number(rests[at][member]) for member in ("pages", "front", "size"))
        if pages <= address < pages + number(rests[at]["bytes"]):
            return f"{address:#x}: freed: a large block of {size} bytes at {pages + front:#x}, whose pages are closed for a while"
    return None


def object_bytes(slab):
    """From one object to the next. Of a large block what its user has: the rest of its pages are margins, which are closed."""
    if number(slab["cache"]["percpu"]):
        return number(slab["cache"]["body"]["stride"])
    margins = number(slab["base"]) - number(slab["pages"]) + (number(slab["margin_pages"]) << PAGE_SHIFT)
    return number(slab["bytes"]) - margins


def whois(copy, address):
    slab = copy.owner_of(address)
    if slab is None:
        rest = large_block_at_rest(copy, address)
        return rest and [rest]
    cache, base, stride = slab["cache"], number(slab["base"]), object_bytes(slab)
    what = f"objects of {number(cache['object_size'])} bytes" if number(cache["percpu"]) else f"a block of {stride} bytes"
    if not stride:
        raise gdb.GdbError(f"prudence: the slab at {number(slab.address):#x} has objects of no size. The process's memory is damaged")
    index, into = divmod(address - base, stride)
    lines = [f"{address:#x}: cache '{text(cache['name'])}' ({what}), domain '{text(cache['domain']['name'])}'",
             f"slab {number(slab.address):#x}, node {number(slab['node'])}: pages {number(slab['pages']):#x} of {number(slab['bytes'])} bytes, "
             f"{number(slab['capacity'])} objects, {number(slab['free'])} free, {number(slab['latent'])} latent"]
    if address < base or index >= number(slab["capacity"]):
        return lines + ["in no object: before the first or after the last of the slab"]
    start = base + index * stride
    lines.append(f"object {index}, which begins at {start:#x}" + (f"; the address is {into} bytes into it" if into else ""))
    lines.append(state_of(copy, slab, index, start))
    owner = owner_of(slab, index)
    return lines + ([f"the cold cache '{text(owner['name'])}' has it"] if owner else [])


# ------------------------------------------------------------------------------------------- commands

def sums_of(copy, cache):
    """live, cached and latent objects, and bytes of the latent ones, as src/slab/stats.c adds them up."""
    allocated = freed = deferred = 0
    cached = latent = latent_bytes = 0
    for _, cpu in copy.cpu_caches(cache):
        line, counts = cpu["line"], cpu["counts"]
        on_stack, pops = number(line["stack_word"]) & 0xffff, number(line["stack_word"]) >> 16
        allocated += pops
        freed += on_stack + pops + number(counts["unstacked"]) - number(counts["stacked"])
        deferred += number(line["ring_tail"])
        cached += on_stack
        latent += number(line["ring_tail"]) - number(line["ring_head"])
    for _, node in copy.nodes(cache):
        counts = node["counts"]
        allocated += number(counts["allocations"])
        freed += number(counts["frees"])
        deferred += number(counts["deferred"])
        in_slabs, on_the_way = number(node["latent"]), sum(1 for _ in handed_over(node))
        latent += in_slabs + on_the_way
        latent_bytes += number(node["latent_bytes"]) - in_slabs * number(cache["body"]["stride"])  # large blocks differ in size
    live = allocated - freed - deferred if not number(cache["flags"]) & COMMON else 0
    live += number(cache["cold_allocations"]) - number(cache["cold_frees"]) - number(cache["cold_deferred"])
    return live, cached, latent, latent_bytes + latent * number(cache["body"]["stride"])


def counters_of(copy, cache):
    """(name, value, what it says) of each counter of a cache, by the library's list (src/slab/figures.h)."""
    rows = copy.symbol("export_counters")
    holders = {"cpu_cache": [cpu for _, cpu in copy.cpu_caches(cache)], "slab_node": [node for _, node in copy.nodes(cache)],
               "cache_body": [] if is_cold(cache) else [cache["body"]]}
    for at in range(rows.type.range()[1] + 1):
        group, _, name = rows[at]["name"].string().partition(".")
        if group != "cache":
            continue
        total = 0
        for place in rows[at]["places"].string().split(","):
            structure, *members = place.split(".")
            for holder in holders[structure]:
                for member in members:
                    holder = holder[member]
                total += number(holder)
        yield name, total, rows[at]["meaning"].string()


def readers_of(domain):
    for chunk in chain(domain["chunks"], 0, lambda chunk: chunk["next"], "chunks of readers"):
        for at in range(bounded(chunk["used"], chunk["slots"].type.range()[1] + 1, "readers of a chunk")):
            slot = chunk["slots"][at]
            if number(slot["thread"]) > 0:
                yield slot


def inside_of(domain):
    """The threads that are inside, the one that entered first comes first."""
    now = number(domain["shared"]["sequence"])
    inside = [(number(slot["reader"]["word"]), number(slot["thread"])) for slot in readers_of(domain)
              if number(slot["reader"]["word"])]
    for word, thread in sorted(inside, key=lambda one: signed((one[0] - now) & ((1 << 64) - 1))):
        begun = ((now - (word & ~NESTING_MASK)) & ((1 << 64) - 1)) // (NESTING_MASK + 1)
        yield thread, max(1, word & NESTING_MASK), begun


# ------------------------------------------------------------------------------------------ slabs

def slabs_of(copy, cache):
    for node, structure in copy.nodes(cache):
        lists = structure["lists"]
        for at in range(lists.type.range()[1] + 1):
            for slab in list_entries(lists[at], "struct slab", "link"):
                yield node, slab


def objects_away(copy, cache):
    """(cached, latent) of each slab, by its address: objects that are in the caches of CPUs, or on their way to a node."""
    away = {}
    for _, cpu in copy.cpu_caches(cache):
        for place, addresses in ((0, stack_of(cpu)), (1, (address for address, _ in ring_of(cpu)))):
            for address in addresses:
                slab = copy.owner_of(address)
                if slab is not None:
                    away.setdefault(number(slab.address), [0, 0])[place] += 1
    for _, node in copy.nodes(cache):
        for address, _ in handed_over(node):
            slab = copy.owner_of(address)
            if slab is not None:
                away.setdefault(number(slab.address), [0, 0])[1] += 1
    return away


# ------------------------------------------------------------------------------------------ the profile

def trace_of(depot, place):
    """The return addresses of a trace, the innermost first."""
    if not place:
        return []
    first = number(depot["words"].address) + place * POINTER
    return words(first + 2 * POINTER, bounded(words(first + POINTER, 1)[0], CALLS, "calls of a trace"))


def not_below_zero(value):
    return max(0, signed(number(value)))


def site_lines(site, depot):
    """The three lines of a calling place, as src/runtime/profile_dump.c writes them."""
    age_ns = struct.unpack("<d", struct.pack("<Q", number(site["age"])))[0]
    now, ever, ages = site["now"], site["ever"], (number(site["ages"][at]) for at in range(AGES))
    yield (f"{'defers' if number(site['role']) else 'allocates'} {not_below_zero(now['objects'])} {not_below_zero(now['bytes'])} "
           f"{number(ever['objects'])} {number(ever['bytes'])} {int(age_ns / 1000) if 0 <= age_ns < 1e22 else 0} {json.dumps(text(site['cache']))}")
    yield "".join(["ages", *(f" {at}:{objects}" for at, objects in enumerate(ages) if objects)])
    yield "".join(["calls", *(f" {call:x}" for call in trace_of(depot, number(site["trace"])))])


def mappings():
    """Of files, as in /proc/PID/maps. A core file has them in a note."""
    row = re.compile(r"\s*0x(\w+)\s+0x(\w+)\s+0x\w+\s+0x(\w+)\s+(?:[-rwxps]{4}\s+)?(/.*)")
    found = (row.fullmatch(line.rstrip()) for line in gdb.execute("info proc mappings", to_string=True).splitlines())
    return (f"{one[1]}-{one[2]} r-xp {one[3]} 00:00 0 {one[4]}" for one in found if one)


def profile_lines(copy):
    rate, buckets = number(copy.symbol("sampling_rate")), copy.variable_of("profile_sites.c", "buckets")
    if not rate or not number(buckets):
        raise gdb.GdbError("prudence profile: this process takes no profile; in a running one: prudence set profile 1")
    depot, site_type = copy.variable_of("stack_depot.c", "depot"), type_of("struct profile_site").pointer()
    program = os.path.basename(gdb.current_progspace().filename or "unknown")
    yield from ("prudence profile 1", f"version {copy.variable_of('process.c', 'version').string()}",
                f"program {gdb.selected_inferior().pid} {json.dumps(program)}", f"time {time.time_ns()}", f"rate {rate}", f"unit {SAMPLING_UNIT}",
                f"dropped {number(copy.variable_of('profile.c', 'dropped'))}")
    for first in words(number(buckets), SITE_BUCKETS):
        for site in chain(gdb.Value(first).cast(site_type), 0, lambda site: site["next"], "sites of a profile"):
            yield from site_lines(site, depot)
    yield from ("mappings", *mappings(), "end")


# ------------------------------------------------------------------------------------------ threads

BUSY = re.compile(r"malloc|calloc|realloc|free|memalign|_dl_|dl_iterate_phdr|fork")  # with locks that a call may want
BUSY_LIBRARIES = re.compile(r"/(libprudence|ld-linux|ld-musl)")


def is_busy():
    """Whether the selected thread is inside the library, an allocator or the loader."""
    frame = gdb.newest_frame()
    while frame:
        if BUSY.search(frame.name() or "") or BUSY_LIBRARIES.search(gdb.solib_name(frame.pc()) or ""):
            return True
        frame = frame.older()
    return False


def idle_thread():
    """Selects a thread in which a function can be called."""
    for thread in sorted(gdb.selected_inferior().threads(), key=lambda thread: thread.num):
        thread.switch()
        if not is_busy():
            return
    raise gdb.GdbError("prudence set: each thread is inside the library, an allocator or the loader: let the process go on, and ask again")


def set_option(name, value):
    """What prudence_option_set returns. The texts are put below the thread's stack, because gdb would call malloc for them."""
    stack = number(gdb.parse_and_eval("$sp").cast(type_of("unsigned long")))
    data = name.encode() + b"\0" + value.encode() + b"\0"
    place = (stack - 1024 - len(data)) & ~0xff
    gdb.selected_inferior().write_memory(place, data)
    gdb.execute(f"set var $sp = {place - 256}")
    try:
        return number(gdb.parse_and_eval("((int (*)(const char *, const char *))prudence_option_set)"
                                         f"((const char *){place}, (const char *){place + len(name.encode()) + 1})"))
    finally:
        gdb.execute(f"set var $sp = {stack}")


def table(head, rows):
    widths = [max(len(str(row[at])) for row in [head, *rows]) for at in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(str(cell).ljust(widths[0]) if at == 0 else str(cell).rjust(widths[at])
                        for at, cell in enumerate(row)).rstrip())


class Prudence(gdb.Command):
    """Objects, caches and readers of Prudence: prudence caches, counters, whois, latent, readers, traces, walk, profile, set."""

    def __init__(self):
        super().__init__("prudence", gdb.COMMAND_DATA, prefix=True)


class Caches(gdb.Command):
    """All slab caches that were ever used, with their live, cached and latent objects."""

    def __init__(self):
        super().__init__("prudence caches", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        for copy in copies():
            rows = []
            for cache in copy.caches():
                live, cached, latent, latent_bytes = sums_of(copy, cache)
                slabs = 0 if is_cold(cache) else number(cache["body"]["slabs_now"])
                if live or cached or latent or slabs:
                    size = number(cache["object_size"]) if number(cache["percpu"]) else "-"
                    rows.append((text(cache["name"]), size, live, cached, latent, slabs, latent_bytes,
                                 text(cache["domain"]["name"])))
            print(f"caches of {copy.objfile.filename}")
            table(("cache", "size", "live", "cached", "latent", "slabs", "latent bytes", "domain"), rows)


class Counters(gdb.Command):
    """What a cache, or each that was ever used, has counted: prudence counters [CACHE]."""

    def __init__(self):
        super().__init__("prudence counters", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        known = False
        for copy in copies():
            for cache in copy.caches():
                if argument and text(cache["name"]) != argument:
                    continue
                known = True
                rows = list(counters_of(copy, cache))
                if argument or any(value for _, value, _ in rows):
                    print(f"cache '{text(cache['name'])}'")
                    for name, value, meaning in rows:
                        print(f"  {name:<22} {value:>12}  {meaning}")
        if argument and not known:
            raise gdb.GdbError(f"prudence counters: there is no cache '{argument}'")


class Whois(gdb.Command):
    """What an address is: prudence whois ADDRESS. Its cache, slab and object, and where that object is: live, cached,
    latent or free."""

    def __init__(self):
        super().__init__("prudence whois", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        if not argument:
            raise gdb.GdbError("prudence whois: an address is missing")
        address = number(gdb.parse_and_eval(argument).cast(type_of("unsigned long")))
        for copy in copies():
            lines = whois(copy, address)
            if lines:
                print("\n".join(lines))
                return
        print(f"{address:#x}: no memory of Prudence's slabs")


class Latent(gdb.Command):
    """Where deferred objects are, and what they wait for: prudence latent [CACHE]."""

    def __init__(self):
        super().__init__("prudence latent", gdb.COMMAND_DATA)

    def of_cache(self, copy, cache):
        domain = cache["domain"].dereference()
        print(f"cache '{text(cache['name'])}', domain '{text(domain['name'])}'")
        for cpu, caches in copy.cpu_caches(cache):
            batches = {}
            for _, cookie in ring_of(caches):
                batches[cookie] = batches.get(cookie, 0) + 1
            for cookie, count in batches.items():
                print(f"  CPU {cpu}: {count} objects, " + ("open batch" if cookie is None else wait_of(domain, cookie)))
        for node, structure in copy.nodes(cache):
            slabs = {}
            for slab in list_entries(structure["waiting"], "struct slab", "waiting_link"):
                slabs.setdefault(number(slab["waiting_cookie"]["value"]), []).append(number(slab["latent"]))
            for cookie, latent in slabs.items():
                print(f"  node {node}: {sum(latent)} objects in {len(latent)} slabs, {wait_of(domain, cookie)}")
            batches = {}
            for _, cookie in handed_over(structure):
                batches[cookie] = batches.get(cookie, 0) + 1
            for cookie, count in batches.items():
                print(f"  on the way to node {node}: {count} objects, {wait_of(domain, cookie)}")
        for thread, nesting, begun in inside_of(domain):
            print(f"  thread {thread} is inside since {begun} grace periods (nested {nesting})")

    def invoke(self, argument, from_tty):
        known = False
        for copy in copies():
            for cache in copy.caches():
                if argument and text(cache["name"]) != argument:
                    continue
                known = True
                if argument or sums_of(copy, cache)[2]:
                    self.of_cache(copy, cache)
        if argument and not known:
            raise gdb.GdbError(f"prudence latent: there is no cache '{argument}'")


class Readers(gdb.Command):
    """The threads that are inside a read-side critical section, of every domain."""

    def __init__(self):
        super().__init__("prudence readers", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        for copy in copies():
            rows = [(text(domain["name"]), thread, nesting, begun) for domain in copy.domains()
                    for thread, nesting, begun in inside_of(domain)]
            print(f"readers of {copy.objfile.filename}")
            table(("domain", "thread", "nesting", "grace periods begun"), rows)


class Traces(gdb.Command):
    """The calls of the threads that are inside a read-side critical section, the one that entered first comes first."""

    def __init__(self):
        super().__init__("prudence traces", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        before, by_number = gdb.selected_thread(), {thread.ptid[1]: thread for thread in gdb.selected_inferior().threads()}
        for copy in copies():
            for domain in copy.domains():
                for number_of_thread, _, begun in inside_of(domain):
                    print(f"thread {number_of_thread} is inside of domain '{text(domain['name'])}' since {begun} grace periods")
                    thread = by_number.get(number_of_thread)
                    if thread:
                        thread.switch()
                        print(gdb.execute("backtrace", to_string=True), end="")
                    else:
                        print("gdb sees no thread of this number (it may have another one in its own namespace)")
        if before:
            before.switch()


class Walk(gdb.Command):
    """Each slab of a cache, or of all caches, with its objects: prudence walk [CACHE]."""

    def __init__(self):
        super().__init__("prudence walk", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        known, rows = False, []
        for copy in copies():
            for cache in copy.caches():
                if argument and text(cache["name"]) != argument:
                    continue
                known, away = True, objects_away(copy, cache)
                for node, slab in slabs_of(copy, cache):
                    objects, free, in_slab = (number(slab[member]) for member in ("capacity", "free", "latent"))
                    cached, latent = away.get(number(slab.address), (0, 0))
                    rows.append((f"{number(slab['pages']):#x}", number(slab["bytes"]), objects, objects - free - in_slab - cached - latent,
                                 cached, in_slab + latent, free, node, text(cache["name"])))
        if argument and not known:
            raise gdb.GdbError(f"prudence walk: there is no cache '{argument}'")
        table(("pages", "bytes", "objects", "live", "cached", "latent", "free", "node", "cache"), rows)


class Profile(gdb.Command):
    """Writes the heap profile for prudence-profile: prudence profile FILE."""

    def __init__(self):
        super().__init__("prudence profile", gdb.COMMAND_DATA, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, from_tty):
        if not argument:
            raise gdb.GdbError("prudence profile: the name of a file is missing")
        lines = list(profile_lines(copies()[0]))
        try:
            with open(argument, "w", encoding="utf-8", errors="replace") as file:
                file.writelines(f"{line}\n" for line in lines)
        except OSError as error:
            raise gdb.GdbError(f"prudence profile: {argument}: {error.strerror}") from None
        print(f"written: {argument}")


class Set(gdb.Command):
    """Sets an option of the running process: prudence set OPTION VALUE (docs/reference/options.md)."""

    def __init__(self):
        super().__init__("prudence set", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        given = gdb.string_to_argv(argument)
        if len(given) != 2:
            raise gdb.GdbError("prudence set: an option and a value are wanted, as in: prudence set export 1")
        before = gdb.selected_thread()
        if not before:
            raise gdb.GdbError("prudence set: there is no running process")
        try:
            idle_thread()
            error = set_option(*given)
        finally:
            before.switch()
        if error:
            raise gdb.GdbError(f"prudence set: {os.strerror(error)}; the process says more on its standard error")
        print(f"{given[0]} is {given[1]} now")


for command in (Prudence, Caches, Counters, Whois, Latent, Readers, Traces, Walk, Profile, Set):
    command()
