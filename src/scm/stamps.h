/* SPDX-License-Identifier: MIT */
/*
 * Private to scm/: stamps, by which an object has one descriptor of a thread's clock however often it is refreshed.
 *
 *   stamp   of an object: which clock owns it, and the latest date by that clock. 0: no clock does
 *   owner   a number that stands for a thread's local or global clock in stamps (owners.c)
 *   life    of a clock: the time in which one thread after another has it with all its lists. It ends when another thread
 *           takes a part of them; from then on that thread's clock counts its dates there, and pages under its owners say
 *           by how much a stamp is later than the page, no longer when that is
 *
 * Invariants. An object that has a stamp has exactly one descriptor with BEHIND_STAMP, which counts as any other, in
 * a page of the stamp's owner. So the owner refreshes by storing a later date; when that descriptor is taken, and the
 * stamp's date is later than its page, it is queued again at the stamp's date. A page says under which owner and for
 * which date its descriptors were made, as a stamp. All other descriptors end with the date of their page: those of a
 * thread that refreshes an object that another thread's clock owns, and of a clock's other kind of time.
 *
 * A stamp is written by the thread that makes it from 0, which makes the descriptor behind it, then by the thread
 * that has this descriptor. Either that thread's clock is the owner; or the owner is no clock's any more, because its
 * thread has ended and others took its lists, or because its epoch is over. So there is one writer, which needs no
 * atomic read-modify-write. The descriptor behind a stamp ends it, so an object that is handed out has none.
 *
 * Dates in stamps are the lowest 18 bits of a clock's dates. A clock gives up its owner every STAMP_EPOCH ticks and
 * whenever its ring becomes longer than that, so all dates ever written under one owner lie within 2^17 and compare
 * without doubt, however late a descriptor is taken. Owners are used again when no page has them.
 *
 * Clocks without owner (those that programs make; and all when owners run out) make a descriptor for each refresh.
 */
#ifndef SCM_STAMPS_H
#define SCM_STAMPS_H

#include "base/base.h"

#define STAMP_DATE_BITS 18
#define STAMP_DATES     (UINT32_C(1) << STAMP_DATE_BITS)
#define STAMP_OWNERS    ((UINT32_C(1) << (32 - STAMP_DATE_BITS)) - 1)
#define STAMP_EPOCH     (UINT64_C(1) << 16) /* ticks; and the longest ring of a clock with an owner */

_Static_assert(2 * STAMP_EPOCH <= STAMP_DATES / 2, "dates of an epoch compare without doubt");

/* Owners as they stand in stamps. No object has a stamp of NO_OWNER, and 0 is no owner. */
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

/* `global` and `life` are written before any page refers to it; has_expired (regions.c) reads `life` of numbers that may be
 * given out anew at that time. */
struct owner {
    uint32_t references; /* the clock's, and each page's; atomic */
    bool global;         /* it stands for a global clock */
    uint64_t life;
};

/* STAMP_OWNERS of them; the first is not used: 0 means no owner. Made before any thread has entered, then constant. */
extern HIDDEN struct owner *scm_owner_table;

static inline struct owner *owner_of(uint32_t stamp)
{
    return &scm_owner_table[stamp >> STAMP_DATE_BITS];
}

/* Of stamps of one owner: by how many units the first is later, negative if it is earlier. */
static inline int32_t stamp_lead(uint32_t first, uint32_t second)
{
    return (int32_t)((first - second) << (32 - STAMP_DATE_BITS)) >> (32 - STAMP_DATE_BITS);
}

#endif /* SCM_STAMPS_H */
