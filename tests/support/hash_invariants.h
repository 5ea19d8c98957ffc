/* SPDX-License-Identifier: MIT */
/* Every invariant of tables/hash.h that holds while no thread is inside an update. */
#ifndef TESTS_SUPPORT_HASH_INVARIANTS_H
#define TESTS_SUPPORT_HASH_INVARIANTS_H

#include "support/slab_test.h"

#include <prudence/hash.h>

#include "tables/hash.h"

/* Returns the word that ends the chain of this bucket. */
static inline uintptr_t expected_end(const struct hash_table *table, uint64_t bucket,
                                     unsigned order)
{
    unsigned between = order - (unsigned)__builtin_ctzll(bucket + 1);

    return between > table->order_min ? PRUDENCE_HASH_END(between) : PRUDENCE_HASH_END(0);
}

static inline void check_chains(struct prudence_hash *public)
{
    struct hash_table *table = hash_of(public);
    uint64_t objects = 0;

    for (unsigned old = 0; old < 2; old++) {
        uintptr_t view = old ? table->from : public->view;

        for (uint64_t i = 0; view && i < view_size(view); i++) {
            uintptr_t link = view_words(view)[i];
            uint64_t last = 0;
            bool first = true;

            if (!link) {
                assert_true(!old && table->from);
                continue;
            }
            assert_false(link & HASH_LOCKED);
            if (link & HASH_MOVED) {
                assert_true(old);
                continue;
            }
            for (; is_node(link); link = prudence_hash_node_(link)->next) {
                uint64_t hash = prudence_hash_node_(link)->hash;

                assert_int_equal(hash_index(hash, view_order(view)), i);
                assert_true(first || hash >= last);
                last = hash;
                first = false;
                objects++;
            }
            assert_int_equal(link, expected_end(table, i, view_order(view)));
            assert_true(is_end_of(link, view_order(view)));
        }
    }
    assert_int_equal(objects, prudence_hash_count(public));
}

#endif /* TESTS_SUPPORT_HASH_INVARIANTS_H */
