/* SPDX-License-Identifier: MIT */
/*
 * Records of each object of a torture: the object's state, the grace period it waits for, and each
 * byte of content. The record is in the object, so it is still there when the memory is handed out
 * again, because the allocator does not write freed memory (except under zero_on_free, after which
 * nothing is known).
 *
 * live: belongs to its owner; readers may see it
 * retired: unlinked and given back; readers may see it until the grace period of its cookie ends
 * ended: its destructor or callback has run, once
 * free: given back by an owner who knew that no reader sees it
 *
 * A record names a generation of a cache, or -1 for any size. Old records of another generation
 * in the memory say nothing about the grace periods of this one.
 */
#ifndef TESTS_SUPPORT_TORTURE_ORACLE_H
#define TESTS_SUPPORT_TORTURE_ORACLE_H

#include <prudence/call.h>

#include "support/gp_torture.h"

enum oracle_state {
    ORACLE_LIVE = 0x6c697665,
    ORACLE_RETIRED = 0x72657469,
    ORACLE_ENDED = 0x656e6465,
    ORACLE_FREE = 0x66726565,
};

struct oracle_object {
    uint64_t birth;      /* unique; determines the content */
    uint64_t state;      /* enum oracle_state; atomic */
    uint64_t cookie;     /* of the grace period the object waits for; atomic */
    uint64_t generation; /* of the object's cache */
    uint64_t seal;       /* binds the fields above to this address; atomic */
    struct prudence_head head;
    size_t size; /* bytes, including this header */
    unsigned char content[];
};

/* Generation of objects that the library frees by itself when their time is over. */
#define ORACLE_UNTRACKED UINT64_MAX

static uint64_t oracle_births;

/* Number of destructors that other threads may have begun when this child was forked. The library
 * counts those as done (docs/reference/fork.md), however far they got. */
static unsigned oracle_begun_elsewhere;

static inline bool oracle_was_begun_elsewhere(void)
{
    return oracle_begun_elsewhere > 0 && oracle_begun_elsewhere-- > 0;
}

static inline uint64_t oracle_seal(const struct oracle_object *object, uint64_t state)
{
    uint64_t hash = (uint64_t)(uintptr_t)object ^ object->birth * UINT64_C(0x9e3779b97f4a7c15);

    hash ^= (__atomic_load_n(&object->cookie, __ATOMIC_RELAXED) + state + object->size) *
            UINT64_C(0xc2b2ae3d27d4eb4f);
    return (hash + object->generation) * UINT64_C(2685821657736338717) | 1;
}

/* Stores the seal last, with release, so a thread that sees the seal sees the rest. */
static inline void oracle_set(struct oracle_object *object, enum oracle_state state)
{
    __atomic_store_n(&object->state, (uint64_t)state, __ATOMIC_RELAXED);
    __atomic_store_n(&object->seal, oracle_seal(object, state), __ATOMIC_RELEASE);
}

static inline bool oracle_is_sealed(const struct oracle_object *object)
{
    uint64_t state = __atomic_load_n(&object->state, __ATOMIC_RELAXED);

    return __atomic_load_n(&object->seal, __ATOMIC_ACQUIRE) == oracle_seal(object, state);
}

static inline unsigned char oracle_byte(const struct oracle_object *object, size_t index)
{
    return (unsigned char)(object->birth * 31 + index * 7);
}

/* Returns the distance to the next checked byte: all bytes of a small object; of a large one the
 * first and last ones, and one in each page. */
static inline size_t oracle_step(size_t size, size_t index)
{
    return index < 512 || index + 512 >= size ? 1
           : index + 4096 < size - 512        ? 4096
                                              : size - 512 - index;
}

/* Takes over an object of `size` bytes that was just handed out. `domain` is the cache's domain;
 * `destroyed` shows whether the cache has a destructor. */
TORTURE_UNUSED static void oracle_adopt(struct oracle_object *object, size_t size,
                                        struct prudence_domain *domain, uint64_t generation,
                                        bool destroyed)
{
    size_t content = size - sizeof *object;

    if (generation != ORACLE_UNTRACKED && oracle_is_sealed(object) &&
        object->generation == generation) {
        if (object->state == ORACLE_LIVE)
            torture_violation("object %p was handed out while live", (void *)object);
        if (object->state == ORACLE_RETIRED && destroyed && !oracle_was_begun_elsewhere())
            torture_violation("object %p was handed out without its destructor", (void *)object);
        if (object->state == ORACLE_RETIRED && !gp_poll(domain, (gp_cookie){object->cookie}))
            torture_violation("object %p was handed out before its grace period", (void *)object);
    }
    object->birth = __atomic_add_fetch(&oracle_births, 1, __ATOMIC_RELAXED);
    object->generation = generation;
    object->cookie = 0;
    object->size = size;
    for (size_t i = 0; i < content; i += oracle_step(content, i))
        object->content[i] = oracle_byte(object, i);
    oracle_set(object, ORACLE_LIVE);
}

/* Checks the object for a thread that owns it or sees it inside a section; `what` names the place
 * in reports. */
TORTURE_UNUSED static void oracle_check(const struct oracle_object *object, const char *what)
{
    uint64_t state = __atomic_load_n(&object->state, __ATOMIC_RELAXED);
    size_t content = object->size - sizeof *object;

    if (state != ORACLE_LIVE && state != ORACLE_RETIRED) {
        torture_violation("%s: object %p is not there any more (state %#llx)", what,
                          (const void *)object, (unsigned long long)state);
        return;
    }
    for (size_t i = 0; i < content; i += oracle_step(content, i)) {
        if (object->content[i] != oracle_byte(object, i)) {
            torture_violation("%s: byte %zu of %zu of object %p changed", what, i, content,
                              (const void *)object);
            return;
        }
    }
}

/* Marks the object as free. Called by the owner, who alone has it, right before the free. */
TORTURE_UNUSED static void oracle_free(struct oracle_object *object)
{
    oracle_check(object, "free");
    oracle_set(object, ORACLE_FREE);
}

/* Retires the object. Called by the thread that unlinked it, right before the deferral; readers may
 * still see it. */
TORTURE_UNUSED static void oracle_retire(struct oracle_object *object,
                                         struct prudence_domain *domain)
{
    uint64_t state = ORACLE_LIVE;

    if (!__atomic_compare_exchange_n(&object->state, &state, (uint64_t)ORACLE_RETIRED, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        torture_violation("object %p is retired twice (state %#llx)", (void *)object,
                          (unsigned long long)state);
    __atomic_store_n(&object->cookie, prudence_domain_get_state(domain).private_value,
                     __ATOMIC_RELAXED);
    oracle_set(object, ORACLE_RETIRED);
}

/* Ends an object, from a destructor or callback. Checks that the object was given back before and
 * ends only once, and if retired, after its grace period. */
TORTURE_UNUSED static void oracle_end(struct oracle_object *object, struct prudence_domain *domain)
{
    uint64_t state = __atomic_exchange_n(&object->state, (uint64_t)ORACLE_ENDED, __ATOMIC_RELAXED);

    if (state != ORACLE_RETIRED && state != ORACLE_FREE)
        torture_violation("object %p is ended in state %#llx", (void *)object,
                          (unsigned long long)state);
    if (state == ORACLE_RETIRED && !gp_poll(domain, (gp_cookie){object->cookie}))
        torture_violation("object %p is ended before its grace period", (void *)object);
    oracle_set(object, ORACLE_ENDED);
}

#endif /* TESTS_SUPPORT_TORTURE_ORACLE_H */
