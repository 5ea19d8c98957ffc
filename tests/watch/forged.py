# SPDX-License-Identifier: MIT
"""A process that lies: this one, with a module that has the library's note, and a table and figures as a test wants them."""

import contextlib
import ctypes
import mmap
import os
import struct

import watching  # noqa: F401 (the path of the package)
from prudence_watch import layout, note

MEMBERS = """list.next 0 8
list.previous 8 8
prudence_cache 0 256
prudence_cache.link 0 16
prudence_cache.number 16 8
prudence_cache.name 24 32
prudence_cache.percpu 56 8
prudence_cache.body 64 8
prudence_cache.domain 72 8
prudence_cache.object_size 80 4
prudence_cache.flags 84 2
prudence_cache.state 86 1
prudence_cache.cold_allocations 88 8
prudence_cache.cold_frees 96 8
prudence_cache.cold_deferred 104 8
cache_body 0 128
cache_body.nodes 0 8
cache_body.stride 8 8
cache_body.slab_bytes 16 8
cache_body.slabs_now 24 8
cache_body.slabs_peak 32 8
cache_body.busy_bypasses 40 8
cache_body.preflushed_objects 48 8
cache_body.pressure_waits 56 8
cache_body.remote_drains 64 8
cache_body.large_grown 72 8
cache_body.large_shrunk 80 8
slab_node 0 128
slab_node.free_slabs 0 4
slab_node.latent 4 4
slab_node.latent_bytes 8 8
slab_node.handover 16 8
slab_node.counts.allocations 24 8
slab_node.counts.frees 32 8
slab_node.counts.deferred 40 8
slab_node.counts.merges 48 8
slab_node.counts.merged_objects 56 8
slab_node.counts.premoved_slabs 64 8
slab_node.counts.grows 72 8
slab_node.counts.shrinks 80 8
slab_node.counts.overflowed_objects 88 8
slab_node.counts.flushes 96 8
slab_node.counts.flushed_objects 104 8
cpu_cache.line.stack_word 0 8
cpu_cache.line.ring_head 8 8
cpu_cache.line.ring_tail 16 8
cpu_cache.closed 24 8
cpu_cache.closed_cookie 32 8
cpu_cache.size 40 4
cpu_cache.counts.stacked 48 8
cpu_cache.counts.unstacked 56 8
cpu_cache.counts.refills 64 8
cpu_cache.counts.refilled_objects 72 8
cpu_cache.counts.merges 80 8
cpu_cache.counts.merged_objects 88 8
cpu_cache.counts.hits_after_merge 96 8
transfer_batch.next 0 8
transfer_batch.count 8 4
prudence_domain 0 256
prudence_domain.link 0 16
prudence_domain.generation 16 8
prudence_domain.name 24 32
prudence_domain.kind 56 8
prudence_domain.scheme 64 8
prudence_domain.progress.completed 72 8
prudence_domain.shared.sequence 80 8
prudence_domain.chunks 88 8
prudence_domain.callbacks 96 8
prudence_domain.grace_periods 104 8
prudence_domain.scans 112 8
prudence_domain.membarriers 120 8
prudence_domain.mode_switches 128 8
prudence_domain.stalls 136 8
gp_scheme.name 0 8
reader_chunk.next 0 8
reader_chunk.used 8 8
reader_chunk.slots 64 16256
reader_slot 0 128
reader_slot.reader.word 0 8
reader_slot.thread 8 4
reader_slot.stall_word 16 8
reader_slot.stall_since 24 8
callback_queue.lanes 0 4
callback_queue.lane 8 8
callback_queue.bytes_left 16 8
callback_lane 0 64
callback_lane.bytes_pushed 0 8
pages_words.used 0 8
pages_words.used_peak 8 8
pages_words.retained 16 8"""
COUNTERS = """cache.hits_after_merge cpu_cache.counts.hits_after_merge Something.
cache.refills cpu_cache.counts.refills Something.
cache.refilled_objects cpu_cache.counts.refilled_objects Something.
cache.flushes slab_node.counts.flushes Something.
cache.flushed_objects slab_node.counts.flushed_objects Something.
cache.grows slab_node.counts.grows Something.
cache.shrinks slab_node.counts.shrinks Something.
cache.merges cpu_cache.counts.merges,slab_node.counts.merges Something.
cache.merged_objects cpu_cache.counts.merged_objects,slab_node.counts.merged_objects Something.
cache.premoved_slabs slab_node.counts.premoved_slabs Something.
cache.overflowed_objects slab_node.counts.overflowed_objects Something.
cache.preflushed_objects cache_body.preflushed_objects Something.
cache.busy_bypasses cache_body.busy_bypasses Something.
cache.remote_drains cache_body.remote_drains Something.
cache.pressure_waits cache_body.pressure_waits Something.
domain.grace_periods prudence_domain.grace_periods Something.
domain.scans prudence_domain.scans Something.
domain.membarriers prudence_domain.membarriers Something.
domain.mode_switches prudence_domain.mode_switches Something.
domain.stalls prudence_domain.stalls Something.
process.throttle_waits throttle_waits Something.
process.throttle_expiries throttle_expiries Something.
process.latent_overruns latent_overruns Something."""
WORDS = ("pages_metadata", "latent_limit", "latent_risen", "latent_overruns",
         "throttle_waits", "throttle_expiries")


class Figures:
    """Memory that the description leads to: words, each at a place of its own, in bytes from `base`."""

    def __init__(self, size=1 << 16):
        self.words = (ctypes.c_uint64 * (size // 8))()
        self.base = ctypes.addressof(self.words)

    def set(self, place, *values):
        for at, value in enumerate(values):
            self.words[place // 8 + at] = value & (1 << 64) - 1


CACHES, COLD, DOMAINS, DEFAULT, OTHERS, SCHEME, COUNTS, CPUS, CHUNK, CACHE = 0, 32, 64, 128, 512, 1024, 1536, 2048, 4096, 1 << 15  # places
BODY = 112  # from the cache's place


def figures():
    """No caches, one domain, no readers."""
    made = Figures()
    for head in (CACHES, COLD, DOMAINS):
        made.set(head, made.base + head, made.base + head)
    made.set(DEFAULT + 64, made.base + SCHEME)
    made.set(COUNTS, 2, 1, 0, *3 * [made.base + OTHERS])  # CPUs, nodes, why there are no sequences, words of pages
    made.set(SCHEME, made.base + SCHEME + 8, int.from_bytes(b"forged\0\0", "little"))
    return made


def add_caches(of, count):
    """On their list; each has figures for two CPUs, which are 0."""
    for at in range(count):
        place = CACHE + at * 256
        of.set(place, of.base + (place + 256 if at < count - 1 else CACHES), of.base + (place - 256 if at else CACHES), at + 1)
        of.set(place + 56, of.base + CPUS, of.base + place + BODY, of.base + DEFAULT)
        of.set(place + BODY, of.base + OTHERS)
    of.set(CACHES, of.base + CACHE, of.base + CACHE + (count - 1) * 256)
    return of


def description(of, **instead):
    """Rows by their kind and name ("number_qsbr"), so that a test can have another one, or none (None)."""
    rows = {}
    for name, value in (("percpu_stride", 256), ("stack_count_bits", 16), ("grace_period_step", 1024), ("qsbr", 1), ("cold", 1), ("common", 1 << 5)):
        rows[f"number {name}"] = value
    for name, place in (("slab_caches", CACHES), ("slab_cold_caches", COLD), ("prudence_default", DEFAULT), ("readers_domains", DOMAINS),
                        ("cpus", COUNTS), ("nodes", COUNTS + 8), ("percpu_why_not", COUNTS + 16), ("pages_words", COUNTS + 24),
                        *((word, OTHERS) for word in WORDS)):
        rows[f"address {name}"] = of.base + place
    rows["address malloc"] = 0
    for line in MEMBERS.split("\n"):
        name, *values = line.split()
        rows[f"member {name}"] = tuple(map(int, values))
    for line in COUNTERS.split("\n"):
        name, places, meaning = line.split(" ", 2)
        rows[f"counter {name}"] = places, meaning
    for name, value in instead.items():
        rows[name.replace("_", " ", 1).replace("__", ".")] = value
    return {name: value for name, value in rows.items() if value is not None}


def encoded(value):
    return value.encode(errors="surrogateescape") if isinstance(value, str) else value


PAGES, NOTE, TABLE, ROWS = 1 << 16, 0x200, 0x400, 0x1000  # of a module


def module(rows, base, layout_number=layout.LAYOUT, version="0.3.0", sizes=(0, 0, 0, 0), name=layout.NAME):
    """The bytes of a module that is at an address of memory: a header, segments, the note, and the table. sizes: of rows, instead of their own."""
    made, lists, at = bytearray(PAGES), [], ROWS
    struct.pack_into("<4sBBB9xHHIQQQIHHH", made, 0, b"\x7fELF", 2, 1, 1, 3, 62, 1, 0, 64, 0, 0, 64, note.SEGMENT.size, 2)
    note.SEGMENT.pack_into(made, 64, note.LOAD, 4, 0, 0, 0, PAGES, PAGES, 4096)
    note.SEGMENT.pack_into(made, 64 + note.SEGMENT.size, note.NOTES, 4, NOTE, NOTE, NOTE, 32, 32, 4)
    note.NOTE.pack_into(made, NOTE, len(note.NAME), 8, note.KIND)
    made[NOTE + 12:NOTE + 21] = note.NAME
    struct.pack_into("<q", made, NOTE + 24, TABLE - NOTE - 24)
    for (kind, form), size in zip(layout.KINDS.items(), sizes):
        own = [(row.partition(" ")[2], value) for row, value in rows.items() if row.startswith(f"{kind} ")]
        lists += [base + at, len(own), size or form.size]
        for row, value in own:
            form.pack_into(made, at, encoded(row), *map(encoded, value if isinstance(value, tuple) else (value,)))
            at += form.size
    layout.HEAD.pack_into(made, TABLE, name.encode(), layout_number, 4, encoded(version), *lists)
    return bytes(made)


@contextlib.contextmanager
def exported(rows, times=1, **more):
    """While this process has such a module."""
    fd = os.memfd_create("forged")
    os.ftruncate(fd, PAGES)
    with contextlib.ExitStack() as mapped:
        for _ in range(times):
            pages = mapped.enter_context(mmap.mmap(fd, PAGES, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE))
            first = ctypes.c_char.from_buffer(pages)
            base = ctypes.addressof(first)
            del first
            pages[:] = module(rows, base, **more)
        yield
    os.close(fd)
