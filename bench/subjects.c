/* SPDX-License-Identifier: MIT */
/* The table of subjects: each family that takes malloc's objects, over each allocator. */
#include "subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const struct allocator glibc = {"glibc", NULL, "libc.so"};

static const struct allocator allocators[] = {
    {"jemalloc", "libjemalloc.so.2", "libjemalloc.so"},
    {"mimalloc", "libmimalloc.so.2", "libmimalloc.so"},
    {"tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc_minimal.so"},
};

/* Those with slabs of their own; glibc serves the rest of the process. */
static const struct subject self_contained[] = {
    {"prudence", &prudence_family, &glibc, NULL},
    {"prudence-fenced", &prudence_family, &glibc, "reader_mode=fenced"},
    {"prudence-free", &prudence_family, &glibc, "reader_mode=free"},
    {"prudence-static", &prudence_static_family, &glibc, NULL},
    {"prudence-inline", &prudence_inline_family, &glibc, NULL},
    {"prudence-replace-inline", &prudence_replace_inline_family, &glibc, NULL},
    {"prudence-replace", &prudence_replace_family, &glibc, NULL},
    {"prudence-heap", &prudence_heap_family, &glibc, NULL},
    {"classic", &classic_family, &glibc, NULL},
    {"plain+prudence", &plain_prudence_family, &glibc, NULL},
    {"plain+cache", &plain_cache_family, &glibc, NULL},
};

static const struct {
    const char *name;
    const struct family *family;
} over_malloc[] = {
    {"urcu", &urcu_memb_family},  {"urcu-percpu", &urcu_memb_percpu_family},
    {"urcu-mb", &urcu_mb_family}, {"ck-epoch", &ck_epoch_family},
    {"plain", &plain_family},
};

#define LENGTH(array) (sizeof(array) / sizeof *(array))
#define SUBJECTS      (LENGTH(self_contained) + LENGTH(over_malloc) * (LENGTH(allocators) + 1))

static void combine(struct subject *subject, const char *family_name, const struct family *family,
                    const struct allocator *allocator)
{
    *subject = (struct subject){.family = family, .allocator = allocator};
    snprintf(subject->name, sizeof subject->name, "%s+%s", family_name, allocator->name);
}

const struct subject *subjects(unsigned *count)
{
    static struct subject table[SUBJECTS];
    unsigned next = LENGTH(self_contained);

    *count = SUBJECTS;
    if (table[0].family)
        return table;
    memcpy(table, self_contained, sizeof self_contained);
    for (unsigned i = 0; i < LENGTH(over_malloc); i++) {
        combine(&table[next++], over_malloc[i].name, over_malloc[i].family, &glibc);
        for (unsigned j = 0; j < LENGTH(allocators); j++)
            combine(&table[next++], over_malloc[i].name, over_malloc[i].family, &allocators[j]);
    }
    return table;
}

const struct subject *subject_find(const char *name)
{
    unsigned count;
    const struct subject *table = subjects(&count);

    for (unsigned i = 0; i < count; i++) {
        if (!strcmp(table[i].name, name))
            return &table[i];
    }
    return NULL;
}

/* ----------------------------------------------------------------- what callbacks have freed */

#define SLOTS 1024 /* threads that ever freed in callbacks */

static struct {
    uint64_t count;
} __attribute__((aligned(2 * CACHE_LINE))) slots[SLOTS];
static unsigned slots_used;

__thread uint64_t *reclaimed_slot;

uint64_t *reclaimed_slot_make(void)
{
    unsigned slot = __atomic_fetch_add(&slots_used, 1, __ATOMIC_RELAXED);

    if (slot >= SLOTS)
        abort();
    return reclaimed_slot = &slots[slot].count;
}

uint64_t reclaimed_total(void)
{
    unsigned used = __atomic_load_n(&slots_used, __ATOMIC_RELAXED);
    uint64_t total = 0;

    for (unsigned i = 0; i < used; i++)
        total += __atomic_load_n(&slots[i].count, __ATOMIC_RELAXED);
    return total;
}

/* Workers publish `retired` once a slice, so it may lag behind. */
uint64_t reclaimed_latent(uint64_t retired)
{
    uint64_t reclaimed = reclaimed_total();

    return retired > reclaimed ? retired - reclaimed : 0;
}
