/* SPDX-License-Identifier: MIT */
/* The subjects of subject_table.h, each with an allocator; and the count of objects freed by
 * callbacks. */
#include "subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* The first one also serves a subject with slabs of its own. */
static const struct allocator allocators[] = {
    {"glibc", NULL, "libc.so"},
    {"jemalloc", "libjemalloc.so.2", "libjemalloc.so"},
    {"mimalloc", "libmimalloc.so.2", "libmimalloc.so"},
    {"tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc_minimal.so"},
};

#define SUBJECT(row_name, name, row_options) extern const struct family name##_family;
#include "subject_table.h"

static const struct {
    const char *name;
    const struct family *family;
    const char *options;
} rows[] = {
#define SUBJECT(row_name, name, row_options) {row_name, &name##_family, row_options},
#include "subject_table.h"
};

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static unsigned make_subjects(struct subject *table)
{
    unsigned made = 0;

    for (unsigned row = 0; row < LENGTH(rows); row++) {
        bool over_each = rows[row].name[strlen(rows[row].name) - 1] == '+';

        for (unsigned i = 0; i < (over_each ? LENGTH(allocators) : 1); i++) {
            struct subject *subject = &table[made++];

            *subject = (struct subject){"", rows[row].family, &allocators[i], rows[row].options};
            snprintf(subject->name, sizeof subject->name, "%s%s", rows[row].name,
                     over_each ? allocators[i].name : "");
        }
    }
    return made;
}

const struct subject *subjects(unsigned *count)
{
    static struct subject table[LENGTH(rows) * LENGTH(allocators)];
    static unsigned made;

    if (!made)
        made = make_subjects(table);
    *count = made;
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

/* Workers publish `retired` once a slice, so it may lag. */
uint64_t reclaimed_latent(uint64_t retired)
{
    uint64_t reclaimed = reclaimed_total();

    return retired > reclaimed ? retired - reclaimed : 0;
}
