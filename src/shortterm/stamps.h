/* SPDX-License-Identifier: MIT */
/*
 * Stamps, private to scm/. With a stamp an object has one descriptor of a thread's clock however
 * often it is refreshed.
 *
 *   stamp   of an object: the clock that owns it, and the latest date by that clock; 0 if none does
 *   owner   a number that stands for a thread's local or global clock in stamps (owners.c)
 *   life    of a clock: the time in which one thread after another has it with all its lists. It
 *           ends when another thread takes a part of them. From then on that thread's clock counts
 *           their dates, and pages under the old owners show by how much a stamp is later than the
 *           page, but no longer when that is.
 *
 * Invariants. An object that has a stamp has exactly one descriptor with BEHIND_STAMP, which counts
 * as any other, in a page of the stamp's owner. So the owner refreshes by storing a later date.
 * When that descriptor is taken and the stamp's date is later than the page, the descriptor is
 * queued again at the stamp's date. A page records in a stamp the owner and the date for which the
 * descriptors were made. All other descriptors end with the date of the page. These come from a
 * thread that refreshes an object that another thread's clock owns, and from a clock's other kind
 * of time.
 *
 * The thread that makes a stamp from 0 writes it and makes the descriptor with BEHIND_STAMP. After
 * that, the thread that has this descriptor writes the stamp. Either that thread's clock is the
 * owner, or the owner is no clock's any more, because the thread has ended and others took the
 * lists, or because the epoch is over. So there is one writer, which needs no atomic
 * read-modify-write. The end of that descriptor ends the stamp, so an object has none when it is
 * allocated.
 *
 * Dates in stamps are the lowest 18 bits of a clock's dates. A clock gives up its owner every
 * STAMP_EPOCH ticks and whenever the ring becomes longer than that, so all dates ever written under
 * one owner lie within 2^17 and compare without doubt, however late a descriptor is taken. Owners
 * are reused when no page has them.
 *
 * Clocks without an owner (clocks of programs, and all clocks when owners run out) make a
 * descriptor for each refresh.
 */
#ifndef SHORTTERM_STAMPS_H
#define SHORTTERM_STAMPS_H

#include "base/base.h"

#define STAMP_DATE_BITS 18
#define STAMP_DATES     (UINT32_C(1) << STAMP_DATE_BITS)
#define STAMP_OWNERS    ((UINT32_C(1) << (32 - STAMP_DATE_BITS)) - 1)
#define STAMP_EPOCH     (UINT64_C(1) << 16) /* ticks; also the longest ring with an owner */

_Static_assert(2 * STAMP_EPOCH <= STAMP_DATES / 2, "dates of an epoch compare without doubt");

/* Owners as encoded in stamps. No object has a stamp of NO_OWNER, and 0 is no owner. */
#define STAMP_OF_OWNER(number) ((uint32_t)(number) << STAMP_DATE_BITS)
#define NO_OWNER               STAMP_OF_OWNER(STAMP_OWNERS)

static inline uint32_t stamp_of(uint32_t owner, uint64_t date)
{
    return owner | ((uint32_t)date & (STAMP_DATES - 1));
}

static inline uint32_t stamp_owner(uint32_t stamp)
{
    return stamp & ~(STAMP_DATES - 1);
}

static inline bool stamps_share_owner(uint32_t a, uint32_t b)
{
    return (a ^ b) < STAMP_DATES;
}

/* `global` and `life` are written before any page refers to the owner. has_expired (regions.c)
 * reads `life` of numbers that may be reassigned at that time. */
struct owner {
    uint32_t references; /* of the clock and of each page; atomic */
    bool global;         /* the clock is a global one */
    uint64_t life;
};

/* STAMP_OWNERS entries, of which the first is unused, because 0 means no owner. Made before any
 * thread has entered, then constant. */
extern HIDDEN struct owner *scm_owner_table;

static inline struct owner *owner_of(uint32_t stamp)
{
    return &scm_owner_table[stamp >> STAMP_DATE_BITS];
}

/* Returns by how many units the first of two stamps of one owner is later, negative if it is
 * earlier. */
static inline int32_t stamp_lead(uint32_t first, uint32_t second)
{
    return (int32_t)((first - second) << (32 - STAMP_DATE_BITS)) >> (32 - STAMP_DATE_BITS);
}

#endif /* SHORTTERM_STAMPS_H */
