/* SPDX-License-Identifier: MIT */
/* Makes and frees the structure of a thread that takes part, and keeps the words that fast paths
 * test. */
#include "shortterm/scm.h"

static struct page something_to_do; /* only the address is used */

/* Returns NULL if there is no memory. */
struct scm_thread *thread_state_make(void)
{
    struct scm_thread *thread = scm_meta_alloc(sizeof *thread);

    if (!thread)
        return NULL;
    list_init(&thread->clocks);
    list_init(&thread->real);
    list_init(&thread->ended);
    list_init(&thread->left);
    list_init(&thread->ended_regions);
    list_init(&thread->region_places);
    list_init(&thread->link);
    for (unsigned kind = LOCAL_CLOCK; kind <= GLOBAL_CLOCK; kind++)
        list_init(&thread->turns[kind]);
    thread->local.kind = LOCAL_CLOCK;
    thread->global.kind = GLOBAL_CLOCK;
    if (clock_init(&thread->local) && clock_init(&thread->global))
        return thread;
    clock_release(&thread->local);
    scm_meta_free(thread, sizeof *thread);
    return NULL;
}

static void counts_join(struct scm_counts *to, const struct scm_counts *from)
{
    to->dates += from->dates;
    to->taken += from->taken;
    to->expired += from->expired;
    to->became += from->became;
    to->ended += from->ended;
    to->kept += from->kept;
    to->pages += from->pages;
    to->steps += from->steps;
    to->regions += from->regions;
    to->region_bytes += from->region_bytes;
}

/* Frees a structure that has no thread and nothing remaining. Called under scm_lock. */
void thread_state_free(struct scm_thread *thread)
{
    counts_join(&scm_gone, &thread->counts);
    clock_release(&thread->local);
    clock_release(&thread->global);
    scm_meta_free(thread, sizeof *thread);
}

/* Called after real-time clocks, ended regions, or `left` came or went. Makes fast paths check for
 * them, or not. */
void thread_state_watch(struct scm_thread *self)
{
    bool waits = !list_is_empty(&self->real) || !list_is_empty(&self->ended_regions);

    self->nothing = waits ? &something_to_do : NULL;
    self->more = waits || !list_is_empty(&self->left);
    if (!self->expired.last)
        self->expired.first = self->nothing;
}
