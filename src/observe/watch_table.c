/* SPDX-License-Identifier: MIT */
/*
 * The table that shows a watcher where the process's figures are (ADR 89): the addresses of
 * variables, and the offsets of members in structures. A watcher reads the table and the figures
 * from the process's memory, or from a core file; the process does nothing for it.
 * programs/watch/prudence_watch/layout.py reads the table.
 *
 *     number   grace_period_step 1024
 *     address  slab_caches               of a variable
 *     member   slab_node.latent 128 4    offset and bytes
 *     counter  cache.grows slab_node.counts.grows "Slabs that the page source gave."
 *
 * The table is found by an ELF note, which linkers put into a segment of its own kind (PT_NOTE), so
 * it stays in a stripped program. The note has the distance from itself to the table, a constant
 * of the link, so it needs no relocation.
 *
 * Names are those in the source, so a watcher finds a member wherever it moves. The table does not
 * have the meaning of a member; if the meaning changes, or a name disappears, WATCH_TABLE_LAYOUT
 * changes. Counters come and go without that: a row names the figure, the members or the variable
 * that it is the sum of, and what it says.
 */
#include "observe/watch_table.h"

#include "call_stub.h"
#include "gp/user/domain.h"
#include "gp/user/readers.h"
#include "gp/user/stall.h"
#include "guard/large_guard.h"
#include "guard/stack_depot.h"
#include "mapping.h"
#include "observe/profile.h"
#include "observe/profile_sites.h"
#include "observe/request.h"
#include "pages/pages.h"
#include "posix.h"
#include "process.h"
#include "process/figures.h"
#include "rseq_area.h"
#include "slab/all_caches.h"
#include "slab/cpu_cache.h"
#include "slab/node.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"
#include "slab/transfer_batch.h"
#include "toolkit/callbacks/call.h"
#include "toolkit/domains/set.h"

#define MEMBER(structure, member)                                                                  \
    {                                                                                              \
#structure "." #member, offsetof(struct structure, member),                                \
            sizeof((struct structure *)0)->member                                                  \
    }
#define WHOLE(structure)                                                                           \
    {                                                                                              \
#structure, 0, sizeof(struct structure)                                                    \
    }

#define IN_CPU(name, meaning)    MEMBER(cpu_cache, counts.name),
#define IN_NODE(name, meaning)   MEMBER(slab_node, counts.name),
#define IN_CACHE(name, meaning)  MEMBER(cache_body, name),
#define IN_DOMAIN(name, meaning) MEMBER(prudence_domain, name),

/* The size of a pointer is meant. NOLINTBEGIN(bugprone-sizeof-expression) */
static const struct watch_member watch_members[] = {
    MEMBER(list, next),
    MEMBER(list, previous),

    WHOLE(prudence_cache),
    MEMBER(prudence_cache, link),
    MEMBER(prudence_cache, number),
    MEMBER(prudence_cache, name),
    MEMBER(prudence_cache, percpu),
    MEMBER(prudence_cache, body),
    MEMBER(prudence_cache, state),
    MEMBER(prudence_cache, domain),
    MEMBER(prudence_cache, object_size),
    MEMBER(prudence_cache, flags),
    MEMBER(prudence_cache, cold_allocations),
    MEMBER(prudence_cache, cold_frees),
    MEMBER(prudence_cache, cold_deferred),

    WHOLE(cache_body),
    MEMBER(cache_body, nodes),
    MEMBER(cache_body, stride),
    MEMBER(cache_body, slab_bytes),
    MEMBER(cache_body, slabs_now),
    MEMBER(cache_body, slabs_peak),
    MEMBER(cache_body, large_grown),
    MEMBER(cache_body, large_shrunk),

    MEMBER(cpu_cache, line.stack_word),
    MEMBER(cpu_cache, line.ring_tail),
    MEMBER(cpu_cache, line.ring_head),
    MEMBER(cpu_cache, line.stack),
    MEMBER(cpu_cache, line.ring),
    MEMBER(cpu_cache, line.ring_mask),
    MEMBER(cpu_cache, closed),
    MEMBER(cpu_cache, closed_cookie),
    MEMBER(cpu_cache, size),
    MEMBER(cpu_cache, slots),
    MEMBER(cpu_cache, batch_head),
    MEMBER(cpu_cache, batch_tail),
    MEMBER(cpu_cache, batch_mask),
    MEMBER(cpu_cache, counts.stacked),
    MEMBER(cpu_cache, counts.unstacked),

    WHOLE(slab_node),
    MEMBER(slab_node, free_slabs),
    MEMBER(slab_node, latent),
    MEMBER(slab_node, latent_bytes),
    MEMBER(slab_node, handover),
    MEMBER(slab_node, lists),
    MEMBER(slab_node, waiting),
    MEMBER(slab_node, counts.allocations),
    MEMBER(slab_node, counts.frees),
    MEMBER(slab_node, counts.deferred),

    MEMBER(transfer_batch, next),
    MEMBER(transfer_batch, count),
    MEMBER(transfer_batch, cookie),
    MEMBER(transfer_batch, objects),

    WHOLE(batch),
    MEMBER(batch, end),
    MEMBER(batch, cookie),

    WHOLE(slab),
    MEMBER(slab, cache),
    MEMBER(slab, base),
    MEMBER(slab, capacity),
    MEMBER(slab, node),
    MEMBER(slab, margin_pages),
    MEMBER(slab, pages),
    MEMBER(slab, bytes),
    MEMBER(slab, free),
    MEMBER(slab, latent),
    MEMBER(slab, waiting_cookie),
    MEMBER(slab, link),
    MEMBER(slab, waiting_link),

    WHOLE(rest),
    MEMBER(rest, pages),
    MEMBER(rest, bytes),
    MEMBER(rest, front),
    MEMBER(rest, size),

    WHOLE(prudence_domain),
    MEMBER(prudence_domain, link),
    MEMBER(prudence_domain, generation),
    MEMBER(prudence_domain, name),
    MEMBER(prudence_domain, kind),
    MEMBER(prudence_domain, set),
    MEMBER(domain_set, count),
    MEMBER(domain_set, members),
    MEMBER(prudence_domain, scheme),
    MEMBER(prudence_domain, progress.completed),
    MEMBER(prudence_domain, shared.sequence),
    MEMBER(prudence_domain, chunks),
    MEMBER(prudence_domain, callbacks),
    MEMBER(gp_scheme, name),

    MEMBER(reader_chunk, next),
    MEMBER(reader_chunk, used),
    MEMBER(reader_chunk, slots),
    WHOLE(reader_slot),
    MEMBER(reader_slot, reader.word),
    MEMBER(reader_slot, thread),
    MEMBER(reader_slot, stall_word),
    MEMBER(reader_slot, stall_since),

    MEMBER(callback_queue, lanes),
    MEMBER(callback_queue, lane),
    MEMBER(callback_queue, bytes_left),
    WHOLE(callback_lane),

    WHOLE(profile_site),
    MEMBER(profile_site, next),
    MEMBER(profile_site, trace),
    MEMBER(profile_site, role),
    MEMBER(profile_site, now.objects),
    MEMBER(profile_site, now.bytes),
    MEMBER(profile_site, ever.objects),
    MEMBER(profile_site, ever.bytes),
    MEMBER(profile_site, age),
    MEMBER(profile_site, ages),
    MEMBER(profile_site, cache),
    MEMBER(trace, count),

    WHOLE(request),
    MEMBER(request, asked),
    MEMBER(request, answer),
    MEMBER(request, ticket),
    MEMBER(request, process),
    MEMBER(request, sum),
    MEMBER(request, name),
    MEMBER(request, value),

#if defined(HAS_CALL_STUB)
    MEMBER(call_state, phase),
    MEMBER(call_state, back),
    MEMBER(call_state, refusal),
    MEMBER(rseq_area, known),
    MEMBER(rseq_area, offset),
#endif

    MEMBER(pages_words, used),
    MEMBER(pages_words, used_peak),
    MEMBER(pages_words, retained),

    CACHE_COUNTERS(IN_CACHE) CPU_COUNTERS(IN_CPU) NODE_COUNTERS(IN_NODE) DOMAIN_COUNTERS(IN_DOMAIN)
        MEMBER(callback_lane, bytes_pushed),
};
/* NOLINTEND(bugprone-sizeof-expression) */

#define OF_CPU(name, meaning)           {"cache." #name, "cpu_cache.counts." #name, meaning},
#define OF_NODE(name, meaning)          {"cache." #name, "slab_node.counts." #name, meaning},
#define OF_CACHE(name, meaning)         {"cache." #name, "cache_body." #name, meaning},
#define OF_DOMAIN(name, meaning)        {"domain." #name, "prudence_domain." #name, meaning},
#define OF_PROCESS(name, word, meaning) {"process." #name, #name, meaning},
#define OF_BOTH(name, meaning)                                                                     \
    {"cache." #name, "cpu_cache.counts." #name ",slab_node.counts." #name, meaning},

static const struct watch_counter watch_counters[] = {
    FIGURES_OF_CACHE(OF_CPU, OF_NODE, OF_BOTH, OF_CACHE, NO_FIGURE) DOMAIN_COUNTERS(OF_DOMAIN)
        TOTAL_FIGURES(NO_SUM, OF_PROCESS, NO_OTHER)};

static const struct watch_number watch_numbers[] = {
    {"percpu_stride", OS_PERCPU_STRIDE},
    {"stack_count_bits", STACK_COUNT_BITS},
    {"grace_period_step", GP_STEP},
    {"qsbr", PRUDENCE_DOMAIN_QSBR},
    {"set", PRUDENCE_DOMAIN_SET},
    {"external", PRUDENCE_DOMAIN_EXTERNAL},
    {"cold", CACHE_COLD},
    {"common", CACHE_COMMON},
    {"page_shift", PAGE_MAP_PAGE_SHIFT},
    {"chunk_shift", PAGE_MAP_CHUNK_SHIFT},
    {"leaf_shift", PAGE_MAP_LEAF_SHIFT},
    {"leaves", PAGE_MAP_LEAVES},
    {"margin_unit", OS_PAGE_SIZE},
    {"sampling_unit", SAMPLING_UNIT},
    {"requests", REQUESTS},
    {"site_buckets", SITE_BUCKETS},
    {"slab_bits", offsetof(struct slab, bits)},
    {"depot_words", offsetof(struct depot, words)},
    {"trace_frames", offsetof(struct trace, frames)},
};

#define COUNT_ADDRESS(name, word, meaning) {#name, &(word)},

static const struct watch_address watch_addresses[] = {
    {"slab_caches", &slab_caches},
    {"slab_cold_caches", &slab_cold_caches},
    {"prudence_default", &prudence_default},
    {"readers_domains", &readers_domains},
    {"malloc", process_is_malloc},
    {"percpu_why_not", &os_percpu_why_not},
    {"cpus", &posix_cpu_count},
    {"nodes", &posix_node_count},
    {"page_map", os_page_map},
    {"whole_leaves", &os_page_map_whole},
    {"pages_words", &pages_words},
    {"pages_metadata", &metadata_reserved},
    {"latent_limit", &slab_latent_limit},
    {"latent_risen", &limit_risen},
    {"rests", &large_guard_rests},
    {"rest_room", &large_guard_room},
    {"sampling_rate", &sampling_rate},
    {"samples_dropped", &profile_samples_dropped},
    {"site_lists", &profile_site_buckets},
    {"depot", &stack_depot_kept},
    {"requests", requests},
    {"asked", &os_asked},
#if defined(HAS_CALL_STUB)
    {"call_stub", (const void *)(uintptr_t)posix_call_stub},
    {"call_fits", (const void *)(uintptr_t)process_is_outside},
    {"call_state", &posix_call_state},
    {"rseq_area", &posix_rseq_area},
#endif
    TOTAL_FIGURES(NO_SUM, COUNT_ADDRESS, NO_OTHER)};

#define ROWS(of)                                                                                   \
    {                                                                                              \
        (of), sizeof(of) / sizeof((of)[0]), sizeof((of)[0])                                        \
    }

const struct watch_table watch_table __attribute__((used)) = {
    .name = WATCH_TABLE_NAME,
    .layout = WATCH_TABLE_LAYOUT,
    .kinds = 4,
    .version = PRUDENCE_VERSION,
    .numbers = ROWS(watch_numbers),
    .addresses = ROWS(watch_addresses),
    .members = ROWS(watch_members),
    .counters = ROWS(watch_counters),
};

/* The note. Its sizes and kind are words of 32 bits; the name and the descriptor are aligned to
 * four bytes. */
#define TEXT_OF(name)          TEXT_OF_EXPANDED(name)
#define TEXT_OF_EXPANDED(name) #name
__asm__(".pushsection .note.prudence, \"a\", %note\n"
        ".balign 4\n"
        ".long 9, 8, 1\n"
        ".asciz \"Prudence\"\n"
        ".balign 4\n"
        ".quad " TEXT_OF(watch_table) " - .\n"
        ".popsection\n");
