/* SPDX-License-Identifier: MIT */
/*
 * Finalizers are functions of the program that are called with an object whose last date is over,
 * and may keep the object. An object's expiry count holds the number of the finalizer.
 */
#include "guard/annotate.h"
#include "shortterm/scm.h"
#include "slab/misuse.h"

_Static_assert(EXPIRY_COUNT_FINALIZERS == SCM_FINALIZERS, "what is promised");

/* Filled from the first entry on, under scm_lock; read by any thread. */
static int (*finalizers[EXPIRY_COUNT_FINALIZERS])(void *object);

/* Returns the finalizer with a number (from 1 on), or NULL if there is none. */
static int (*finalizer_of(unsigned number))(void *object)
{
    return load_acquire(&finalizers[number - 1]);
}

/* Calls the finalizer, which may give the object new dates. Returns whether to free the object.
 * The object counts as kept until the finalizer has returned, because that may end the thread
 * instead. */
bool finalizer_run(struct scm_thread *self, uint32_t *word, void *object)
{
    bool nested = self->collecting, ends;

    self->collecting = true;
    count_add(&self->counts.kept, 1);
    annotate_taken(slab_known(object), object);
    os_foreign_call("a finalizer");
    ends = !finalizer_of(expiry_count_finalizer(load_relaxed(word)))(object) &&
           !expiry_count_dates(load_relaxed(word));
    self->collecting = nested;
    count_add(&self->counts.kept, (uint64_t)0 - ends);
    return ends;
}

int scm_register_finalizer(int (*finalizer)(void *object))
{
    int number = -1;

    if (!finalizer) {
        os_report("scm_register_finalizer: the finalizer is NULL");
        errno = EINVAL;
        return -1;
    }
    os_lock_take(&scm_lock);
    for (int i = 0; i < EXPIRY_COUNT_FINALIZERS && number < 0; i++)
        number = finalizers[i] ? -1 : i;
    if (number >= 0)
        store_release(&finalizers[number], finalizer);
    os_lock_release(&scm_lock);
    if (number < 0) {
        os_report(
            "scm_register_finalizer: the process has %d finalizers already; no more are possible",
            EXPIRY_COUNT_FINALIZERS);
        errno = ENOSPC;
    }
    return number;
}

int scm_set_finalizer(void *object, int number)
{
    struct slab *slab = object_slab(object, "scm_set_finalizer");
    union expiry_count *counts, *expiry;
    uint32_t word;

    if (number < -1 || number >= EXPIRY_COUNT_FINALIZERS ||
        (number >= 0 && !finalizer_of((unsigned)number + 1))) {
        os_report("scm_set_finalizer: finalizer %d is not registered (object %p)", number, object);
        return EINVAL;
    }
    counts = expiry_counts_make(slab);
    if (!counts)
        return ENOMEM;
    expiry = &counts[slab_index(slab, object)];
    if (!expiry_count_dates(load_relaxed(&expiry->word)))
        suspect_check_live(slab, expiry, object, "scm_set_finalizer");
    word = load_relaxed(&expiry->word);
    /* Other threads may add and remove dates during this. */
    while (
        !compare_exchange(&expiry->word, &word,
                          expiry_count_dates(word) | (uint32_t)(number + 1) << EXPIRY_COUNT_BITS))
        ;
    return 0;
}
