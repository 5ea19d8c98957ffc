/* SPDX-License-Identifier: MIT */
/* Objects of the tortures of hash tables, and a thread that resizes tables all the time. */
#ifndef TESTS_SUPPORT_TORTURE_HASH_H
#define TESTS_SUPPORT_TORTURE_HASH_H

#include <prudence/hash_rename.h>

#include "support/torture_objects.h"
#include "support/updates.h"

struct object {
    struct torture_object head;
    union {
        struct prudence_hash_node node;
        struct prudence_hash_name name; /* begins with a node */
    };
    uint32_t id; /* of the torture's own; atomic */
};

static uint64_t hash_bits = UINT64_MAX; /* fewer: many keys share a hash */

static uint64_t hash_of_key(uint64_t key)
{
    return prudence_hash_mix(key) & hash_bits;
}

static struct object *object_of(const struct prudence_hash_node *node)
{
    return node ? (struct object *)((uintptr_t)node - offsetof(struct object, node)) : NULL;
}

static uint64_t key_of(const struct prudence_hash_node *node)
{
    return __atomic_load_n(&object_of(node)->head.key, __ATOMIC_RELAXED);
}

static bool has_key(const struct prudence_hash_node *node, const void *key)
{
    return key_of(node) == *(const uint64_t *)key;
}

/* Tables that a thread resizes, to powers of two from 64 on. */
TORTURE_UNUSED static struct prudence_hash *resized[2];
TORTURE_UNUSED static unsigned resized_sizes;
TORTURE_UNUSED static uint64_t resizes;

TORTURE_UNUSED static void *resizer(void *unused)
{
    uint64_t random = 99;

    while (!torture_stopped()) {
        int error = prudence_hash_resize(resized[torture_below(&random, 2)],
                                         UINT64_C(64) << torture_below(&random, resized_sizes));

        TORTURE_CHECK(error == 0 || error == EAGAIN); /* replaced arrays may fill latent_limit */
        __atomic_fetch_add(&resizes, 1, __ATOMIC_RELAXED);
        if (torture_below(&random, 4) == 0)
            sched_yield();
    }
    return unused;
}

#endif /* TESTS_SUPPORT_TORTURE_HASH_H */
