/* SPDX-License-Identifier: MIT */
/*
 * The description that tells a watcher where the process's figures are (export.c): the addresses of
 * variables, and the offsets of members in structures. programs/watch/prudence_watch/layout.py
 * reads it.
 *
 *     prudence-export 2                 the layout's number
 *     text version 0.2.0                '_' stands for a blank
 *     number pid 4711
 *     address slab_caches 7f0c12345678  of a variable
 *     member slab_node.latent 128 4     offset and bytes
 *     counter cache.grows slab_node.counts.grows Slabs that the page source gave.
 *     end
 *
 * Names are those in the source, so a watcher finds a member wherever it moves. The description
 * does not tell the meaning of a member; if the meaning changes, or a name disappears,
 * EXPORT_LAYOUT changes. Counters come and go without that: a line names the figure, the members or
 * the variable that it is the sum of, and what it says. gdb reads export_counters[] instead.
 */

#include "gp/user/domain.h"
#include "gp/user/readers.h"
#include "gp/user/stall.h"
#include "pages/pages.h"
#include "process.h"
#include "rcu/call.h"
#include "runtime/export.h"
#include "runtime/figures.h"
#include "slab/all_caches.h"
#include "slab/cpu_cache.h"
#include "slab/node.h"
#include "slab/reclaim/ceiling.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"
#include "slab/transfer_batch.h"

struct member {
    const char *name;
    size_t offset, bytes;
};

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
static const struct member members[] = {
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
    MEMBER(cpu_cache, closed),
    MEMBER(cpu_cache, closed_cookie),
    MEMBER(cpu_cache, size),
    MEMBER(cpu_cache, counts.stacked),
    MEMBER(cpu_cache, counts.unstacked),

    WHOLE(slab_node),
    MEMBER(slab_node, free_slabs),
    MEMBER(slab_node, latent),
    MEMBER(slab_node, latent_bytes),
    MEMBER(slab_node, handover),
    MEMBER(slab_node, counts.allocations),
    MEMBER(slab_node, counts.frees),
    MEMBER(slab_node, counts.deferred),

    MEMBER(transfer_batch, next),
    MEMBER(transfer_batch, count),

    WHOLE(prudence_domain),
    MEMBER(prudence_domain, link),
    MEMBER(prudence_domain, generation),
    MEMBER(prudence_domain, name),
    MEMBER(prudence_domain, kind),
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

    CACHE_COUNTERS(IN_CACHE) CPU_COUNTERS(IN_CPU) NODE_COUNTERS(IN_NODE) DOMAIN_COUNTERS(IN_DOMAIN)
        MEMBER(callback_lane, bytes_pushed),
};
/* NOLINTEND(bugprone-sizeof-expression) */

struct export_counter {
    const char *name;    /* group and figure */
    const char *places;  /* members, or a variable above */
    const char *meaning; /* one sentence */
};

#define OF_CPU(name, meaning)           {"cache." #name, "cpu_cache.counts." #name, meaning},
#define OF_NODE(name, meaning)          {"cache." #name, "slab_node.counts." #name, meaning},
#define OF_CACHE(name, meaning)         {"cache." #name, "cache_body." #name, meaning},
#define OF_DOMAIN(name, meaning)        {"domain." #name, "prudence_domain." #name, meaning},
#define OF_PROCESS(name, word, meaning) {"process." #name, #name, meaning},
#define OF_BOTH(name, meaning)                                                                     \
    {"cache." #name, "cpu_cache.counts." #name ",slab_node.counts." #name, meaning},

static const struct export_counter export_counters[] = {
    FIGURES_OF_CACHE(OF_CPU, OF_NODE, OF_BOTH, OF_CACHE, NO_FIGURE) DOMAIN_COUNTERS(OF_DOMAIN)
        TOTAL_FIGURES(NO_SUM, OF_PROCESS, NO_OTHER)};

static void print_number(struct output *output, const char *name, uint64_t number)
{
    output_print(output, "number %s %llu\n", name, (unsigned long long)number);
}

static void print_address(struct output *output, const char *name, const void *address)
{
    output_print(output, "address %s %llx\n", name, (unsigned long long)(uintptr_t)address);
}

static void print_numbers(struct output *output)
{
    print_number(output, "pid", (uint64_t)os_process_id());
    print_number(output, "malloc", process_is_malloc != NULL);
    print_number(output, "cpus", os_cpu_count());
    print_number(output, "nodes", os_node_count());
    print_number(output, "percpu_stride", OS_PERCPU_STRIDE);
    print_number(output, "stack_count_bits", STACK_COUNT_BITS);
    print_number(output, "grace_period_step", GP_STEP);
    print_number(output, "qsbr", PRUDENCE_DOMAIN_QSBR);
}

/* Prints how per-CPU caches are protected, and the reason if by locks. */
static void export_print_percpu(struct output *output)
{
    const char *why = os_percpu_why_not;

    output_print(output, "text percpu %s\n", why ? "lock" : "rseq");
    if (!why)
        return;
    output_text(output, "text percpu_reason ");
    for (; *why; why++)
        output_print(output, "%c", *why == ' ' ? '_' : *why);
    output_text(output, "\n");
}

#define PRINT_COUNT(name, word, meaning) print_address(output, #name, &(word));

static void print_addresses(struct output *output)
{
    struct pages_words pages;

    pages_words(&pages);
    print_address(output, "slab_caches", &slab_caches);
    print_address(output, "slab_cold_caches", &slab_cold_caches);
    print_address(output, "prudence_default", &prudence_default);
    print_address(output, "readers_domains", &readers_domains);
    print_address(output, "pages_used", pages.used);
    print_address(output, "pages_used_peak", pages.used_peak);
    print_address(output, "pages_retained", pages.retained);
    print_address(output, "pages_metadata", pages.metadata);
    print_address(output, "latent_limit", &slab_latent_limit);
    print_address(output, "latent_risen", &ceiling_risen);
    TOTAL_FIGURES(NO_SUM, PRINT_COUNT, NO_OTHER)
}

void export_layout_print(struct output *output)
{
    output_print(output, "prudence-export %d\ntext version " PRUDENCE_VERSION "\n", EXPORT_LAYOUT);
    export_print_percpu(output);
    print_numbers(output);
    print_addresses(output);
    for (unsigned i = 0; i < sizeof members / sizeof members[0]; i++)
        output_print(output, "member %s %zu %zu\n", members[i].name, members[i].offset,
                     members[i].bytes);
    for (unsigned i = 0; i < sizeof export_counters / sizeof export_counters[0]; i++)
        output_print(output, "counter %s %s %s\n", export_counters[i].name,
                     export_counters[i].places, export_counters[i].meaning);
    output_text(output, "end\n");
}
