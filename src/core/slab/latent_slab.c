/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The latent slab of a slab: the bitmaps `waiting`, whose objects share a cookie, and `next`, whose
 * objects have none yet (rule 4). A node keeps the slabs with waiting objects in a line, oldest
 * cookie first.
 *
 * The caller holds the node's lock. The account of latent bytes (limit.c) covers the
 * objects from before they are put until they are merged, except `named` ones of each slab: those
 * that a poll has found named, whose number readers' slots bound and no wait would change. The slab
 * does not know which these are. Objects that leave count as named while there are any.
 */
#include "slab/latent_slab.h"

#include "gp/gp.h"
#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/extension.h"
#include "slab/misuse.h"
#include "slab/node_lists.h"
#include "slab/reclaim/limit.h"
#include "slab/runs.h"
#include "slab/slab.h"

#define NAMED_MAX 255 /* that slab->named holds */

static void wait_in_line(struct slab_node *node, struct slab *slab, gp_cookie cookie)
{
    slab->waiting_cookie = cookie;
    list_append(&node->waiting, &slab->waiting_link);
}

static bool is_waiting(const struct slab *slab)
{
    return !list_is_empty(&slab->waiting_link);
}

/* Refuses deferred objects of the run that are free or latent already, which do not become latent
 * by this deferral. Returns false if none remains. */
static bool check_latent_run(struct run *run)
{
    unsigned count = run->count;

    misuse_check_run(run, "deferred free");
    if (likely(run->count == count))
        return true;
    limit_release(os_cpu_current(), (count - run->count) * slab_object_bytes(run->slab));
    return run->count > 0;
}

/*
 * Puts objects into their latent slab: into waiting if they have the same cookie, else into next,
 * which gets a cookie when waiting is merged. (One cookie renewed by each deferral would never
 * merge under load; an older one is unsound.) `cookie` is NULL if none was taken yet.
 */
void latent_slab_put(struct slab_node *node, struct run *run, const gp_cookie *cookie)
{
    struct slab *slab = run->slab;
    bool had_free = slab->free > 0;

    if (!check_latent_run(run))
        return;
    slab->latent += run->count;
    node->latent += run->count;
    node->latent_bytes += run->count * slab_object_bytes(slab);
    if (!is_waiting(slab)) {
        slab_waiting_bits(slab)[run->word] |= run->bits;
        wait_in_line(node, slab, cookie ? *cookie : gp_snapshot(slab->cache->domain));
    } else if (cookie && gp_is_same(*cookie, slab->waiting_cookie)) {
        slab_waiting_bits(slab)[run->word] |= run->bits;
    } else {
        slab_next_bits(slab)[run->word] |= run->bits;
    }
    if (node_lists_place(node, slab, had_free)) {
        node->counts.premoved_slabs++;
        os_event(premovement, slab->cache, slab->latent);
    }
}

/* As latent_slab_put(), for objects that a poll has found named. */
void latent_slab_put_named(struct slab_node *node, struct run *run, const gp_cookie *cookie)
{
    struct slab *slab = run->slab;
    size_t named;

    latent_slab_put(node, run, cookie);
    named = min_size(run->count, NAMED_MAX - slab->named); /* the account has what is too many */
    slab->named = (uint8_t)(slab->named + named);
    limit_set_apart(os_cpu_current(), named * slab_object_bytes(slab));
}

/* Subtracts objects that leave their latent slab. Returns the bytes of those that count as
 * named. */
static size_t subtract(struct slab_node *node, struct slab *slab, unsigned count)
{
    size_t named = min_size(slab->named, count), bytes = slab_object_bytes(slab);

    slab->latent -= count;
    slab->named = (uint8_t)(slab->named - named);
    node->latent -= count;
    node->latent_bytes -= count * bytes;
    return named * bytes;
}

static void bits_are_safe(struct slab *slab, unsigned word, uint64_t bits)
{
    for (; bits; bits &= bits - 1) {
        unsigned index = word * BITS_PER_WORD + (unsigned)__builtin_ctzll(bits);

        extensions_merged(slab, slab_object(slab, index, slab->cache->body->stride));
    }
}

/* Merges the waiting objects, which are safe, into the slab. */
static void merge_waiting(struct slab_node *node, struct slab *slab)
{
    unsigned words = bits_words(slab->capacity), merged = 0;
    bool had_free = slab->free > 0;
    size_t named;

    for (unsigned w = 0; w < words; w++) {
        merged += (unsigned)__builtin_popcountll(slab_waiting_bits(slab)[w]);
        if (unlikely(load_relaxed(&slab->extensions)))
            bits_are_safe(slab, w, slab_waiting_bits(slab)[w]);
    }
    bits_move(slab_free_bits(slab), slab_waiting_bits(slab), words);
    bits_move(slab_waiting_bits(slab), slab_next_bits(slab), words);
    slab->free += merged;
    slab_touched(slab);
    named = subtract(node, slab, merged);
    node_lists_place(node, slab, had_free);
    node->counts.merges++;
    node->counts.merged_objects += merged;
    os_event_until(merge, slab->cache, merged, slab->waiting_cookie);
    limit_named_go(named);
    limit_release(os_cpu_current(), merged * slab_object_bytes(slab) - named);
}

/* Takes waiting objects of the slab, words as a whole, and returns their number. All of them are in
 * the account then. */
static unsigned take_waiting(struct slab_node *node, struct slab *slab, void **objects,
                             unsigned room)
{
    unsigned taken = 0;
    bool had_free = slab->free > 0;

    for (unsigned w = 0; w < bits_words(slab->capacity) && room - taken >= BITS_PER_WORD; w++) {
        uint64_t bits = slab_waiting_bits(slab)[w];
        struct run run = {
            .slab = slab, .bits = bits, .word = w, .count = (unsigned)__builtin_popcountll(bits)};

        if (bits)
            taken += run_spread(&run, slab->cache->body->stride, objects + taken);
        slab_waiting_bits(slab)[w] = 0;
    }
    limit_count_again(subtract(node, slab, taken));
    node_lists_place(node, slab, had_free);
    return taken;
}

/* After waiting objects were taken: lets those in next wait if none remains before them. */
static void latent_slab_wait_anew(struct slab_node *node, struct slab *slab)
{
    unsigned words = bits_words(slab->capacity);

    for (unsigned w = 0; w < words; w++)
        if (slab_waiting_bits(slab)[w])
            return;
    list_remove(&slab->waiting_link);
    bits_move(slab_waiting_bits(slab), slab_next_bits(slab), words);
    if (slab->latent)
        wait_in_line(node, slab, gp_snapshot(slab->cache->domain));
}

/* Detaches up to `room` objects (at least BITS_PER_WORD) that wait, those that wait longest first;
 * of blocks, one. *cookie covers all. Returns their number; the caller has them. */
unsigned latent_slab_take(struct slab_node *node, void **objects, unsigned room, gp_cookie *cookie)
{
    unsigned taken = 0;
    struct slab *slab;

    while (room - taken >= BITS_PER_WORD &&
           (slab = list_first(&node->waiting, struct slab, waiting_link))) {
        if (!taken || (int64_t)(slab->waiting_cookie.value - cookie->value) > 0)
            *cookie = slab->waiting_cookie;
        taken += take_waiting(node, slab, objects + taken, room - taken);
        latent_slab_wait_anew(node, slab);
        if (!slab->cache->percpu)
            break;
    }
    return taken;
}

/* Merges up to NODE_SLABS_A_VISIT slabs whose grace period is over, and returns their number. Slabs
 * with further latent objects wait anew, under one cookie, which is taken after all of them were
 * detached from next. */
unsigned latent_slab_merge_safe(struct slab_node *node)
{
    struct list again;
    struct slab *slab;
    unsigned merged = 0;
    gp_cookie cookie;

    list_init(&again);
    while ((slab = list_first(&node->waiting, struct slab, waiting_link)) &&
           merged < NODE_SLABS_A_VISIT && gp_poll(slab->cache->domain, slab->waiting_cookie)) {
        merged++;
        list_remove(&slab->waiting_link);
        merge_waiting(node, slab);
        if (slab->latent)
            list_append(&again, &slab->waiting_link);
    }
    if (list_is_empty(&again))
        return merged;
    slab = list_first(&again, struct slab, waiting_link);
    cookie = gp_snapshot(slab->cache->domain);
    while ((slab = list_first(&again, struct slab, waiting_link))) {
        list_remove(&slab->waiting_link);
        wait_in_line(node, slab, cookie);
    }
    return merged;
}
