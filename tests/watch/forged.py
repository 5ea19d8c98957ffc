# SPDX-License-Identifier: MIT
"""A process that lies: this one, with a description and figures as a test wants them."""

import contextlib
import ctypes
import mmap
import os

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
callback_lane.bytes_pushed 0 8"""
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
WORDS = ("pages_used", "pages_used_peak", "pages_retained", "pages_metadata", "latent_limit", "latent_risen", "latent_overruns",
         "throttle_waits", "throttle_expiries")


class Figures:
    """Memory that the description leads to: words, each at a place of its own, in bytes from `base`."""

    def __init__(self, size=1 << 16):
        self.words = (ctypes.c_uint64 * (size // 8))()
        self.base = ctypes.addressof(self.words)

    def set(self, place, *values):
        for at, value in enumerate(values):
            self.words[place // 8 + at] = value & (1 << 64) - 1


CACHES, COLD, DOMAINS, DEFAULT, OTHERS, SCHEME, CPUS, CHUNK, CACHE = 0, 32, 64, 128, 512, 1024, 2048, 4096, 1 << 15  # places
BODY = 112  # from the cache's place


def figures():
    """No caches, one domain, no readers."""
    made = Figures()
    for head in (CACHES, COLD, DOMAINS):
        made.set(head, made.base + head, made.base + head)
    made.set(DEFAULT + 64, made.base + SCHEME)
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
    """Lines by their kind and name ("number_cpus"), so that a test can have another one, or none (None)."""
    lines = {"text version": "0.1.0"}
    for name, value in (("pid", os.getpid()), ("malloc", 0), ("cpus", 2), ("nodes", 1), ("percpu_stride", 256), ("stack_count_bits", 16),
                        ("grace_period_step", 1024), ("qsbr", 1)):
        lines[f"number {name}"] = value
    for name, place in (("slab_caches", CACHES), ("slab_cold_caches", COLD), ("prudence_default", DEFAULT), ("readers_domains", DOMAINS),
                        *((word, OTHERS) for word in WORDS)):
        lines[f"address {name}"] = f"{of.base + place:x}"
    for kind, text in (("member", MEMBERS), ("counter", COUNTERS)):
        for line in text.split("\n"):
            name, _, rest = line.partition(" ")
            lines[f"{kind} {name}"] = rest
    for name, value in instead.items():
        lines[name.replace("_", " ", 1).replace("__", ".")] = value
    return "".join(f"{name} {value}\n" for name, value in lines.items() if value is not None)


@contextlib.contextmanager
def exported(text, times=1):
    """While this process describes itself so."""
    fd = os.memfd_create("prudence-export")
    os.write(fd, f"prudence-export 2\n{text}end\n".encode(errors="surrogateescape").ljust(16384, b"\0"))
    with contextlib.ExitStack() as mapped:
        for _ in range(times):
            mapped.enter_context(mmap.mmap(fd, 16384, mmap.MAP_PRIVATE, mmap.PROT_READ))
        yield
    os.close(fd)
