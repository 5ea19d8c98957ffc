/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Exact division by an invariant: is `offset` a multiple of `stride`, and which?
 *
 * For stride = odd << shift, offset is a multiple of it exactly when offset x inverse(odd), rotated
 * right by shift, is at most (2^64 - 1) / stride; the product is then the quotient. Everything else
 * (interior pointers, offsets before the first object, which wrap) lands above that bound, so one
 * comparison with the number of objects checks alignment and range at once (Granlund and
 * Montgomery 1994, section 9; Warren, Hacker's Delight, 10-17). A multiplication instead of a
 * division on the path of every free.
 */
#ifndef BASE_DIVIDE_H
#define BASE_DIVIDE_H

#include "base/base.h"

struct exact_divisor {
    uint64_t inverse; /* of the odd part, modulo 2^64 */
    unsigned shift;
};

/* `stride` is not 0. */
static inline struct exact_divisor exact_divisor_of(uint64_t stride)
{
    unsigned shift = (unsigned)__builtin_ctzll(stride);
    uint64_t odd = stride >> shift;
    uint64_t inverse = odd; /* correct to 3 bits; each step doubles them: 6, 12, 24, 48, 96 */

    for (int i = 0; i < 5; i++)
        inverse *= 2 - odd * inverse;
    return (struct exact_divisor){.inverse = inverse, .shift = shift};
}

/* The quotient, or a value above every valid one when `offset` is no multiple. */
static inline uint64_t exact_quotient(uint64_t offset, struct exact_divisor divisor)
{
    uint64_t product = offset * divisor.inverse;

    return product >> divisor.shift | product << (-divisor.shift & 63);
}

#endif /* BASE_DIVIDE_H */
