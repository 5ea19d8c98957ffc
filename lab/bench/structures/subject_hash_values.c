/* SPDX-License-Identifier: MIT */
/* <prudence/hash_values.h>. Compared with subject_prudence.c, it shows the cost of making the
 * objects in the table, and of hashing keys with a secret. */
#include <prudence/hash_values.h>

#include <stdlib.h>

#include <prudence/prudence.h>

#include "keys.h"
#include "prudence_sections.h"

static struct prudence_hash_values *table;

#ifdef STRING_KEYS
#define FLAGS          PRUDENCE_HASH_VALUES_BYTES
#define FUNCTION(name) prudence_hash_values_##name##_bytes
#define KEY(key)       (key).text, (key).length
#else
#define FLAGS          0
#define FUNCTION(name) prudence_hash_values_##name
#define KEY(key)       (key)
#endif

static void start(void)
{
    const struct prudence_hash_values_attr attr = {.size = sizeof attr, .flags = FLAGS};

    table = prudence_hash_values_create("bench", &attr);
    if (!table)
        abort();
}

/* Values are the numbers of keys plus one, because none may be 0. */
static inline bool find(uint64_t number, uint64_t *value)
{
    const bench_key key = key_of(number);
    void *found = FUNCTION(get)(table, KEY(key));

    if (found)
        *value = (uintptr_t)found - 1;
    return found;
}

static inline bool flip(uint64_t number)
{
    const bench_key key = key_of(number);

    if (!FUNCTION(erase)(table, KEY(key), NULL))
        return false;
    return !FUNCTION(add)(table, KEY(key), (void *)(uintptr_t)(number + 1), NULL);
}

#include "loop.h"

const struct subject SUBJECT(hash_values) = {"hash-values",
                                             "prudence_hash_values, which makes its objects",
                                             .start = start, .fill = fill, .run = run};
