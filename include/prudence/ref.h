/* SPDX-License-Identifier: MIT */
/*
 * Reference counts of objects that readers find. A reader that wants to keep an object beyond the
 * section takes a reference, unless the count is 0 because the object is on its way out (P.
 * McKenney, "Exploiting Deferred Destruction", 2004, section 6.2).
 *
 *     prudence_read_lock();
 *     session = prudence_id_table_lookup(sessions, id);
 *     if (session && !prudence_ref_get_unless_zero(&session->references))
 *         session = NULL;
 *     prudence_read_unlock();
 *     ...                                                use it, for as long as you like
 *     if (prudence_ref_put(&session->references))
 *         prudence_free_deferred(session);               readers may still check the count
 *
 *  - The table, list or pointer by which readers find the object has one reference. The thread that
 *    removes the object there puts this reference.
 *  - Overflow does not lead to use after free. A count that reaches 2^31 is *saturated* and stays
 *    there, so the object is never freed. The same happens to a count of 0 that is put, or that
 *    prudence_ref_get finds. Each is reported on standard error, once for a count that goes wrong.
 *  - Threads, signals: all functions may be called anywhere, also in signal handlers. Fork: a child
 *    has the count as it was, with the references of threads that the child does not have.
 *  - Cost: an atomic operation on the object's cache line.
 */
#ifndef PRUDENCE_REF_H
#define PRUDENCE_REF_H

#include <stdbool.h>
#include <stdint.h>

#include <prudence/language.h>
#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Member of the counted object. */
struct prudence_ref {
    uint32_t count; /* private; atomic */
};

#define PRUDENCE_REF_MAX UINT32_C(0x7fffffff) /* above this a count is saturated */

/* Makes the count saturated, and reports `what`. Private. */
PRUDENCE_API void prudence_ref_saturate_(struct prudence_ref *ref, const char *what);

/* To be called before others can find the object. */
PRUDENCE_INLINE void prudence_ref_init(struct prudence_ref *ref, uint32_t references)
{
    __atomic_store_n(&ref->count, references, __ATOMIC_RELAXED);
}

/* Returns the number of references, which may be out of date. Above PRUDENCE_REF_MAX: saturated. */
PRUDENCE_INLINE uint32_t prudence_ref_count(const struct prudence_ref *ref)
{
    return __atomic_load_n(&ref->count, __ATOMIC_RELAXED);
}

/* Takes a reference for a caller that found the object in this section, or has a reference. Returns
 * false if there is no reference any more; then treat the object as not found. Relaxed, because the
 * object's contents were seen on finding it. */
PRUDENCE_INLINE bool prudence_ref_get_unless_zero(struct prudence_ref *ref)
{
    uint32_t count = prudence_ref_count(ref);

    do {
        if (!count)
            return false;
        if (__builtin_expect(count >= PRUDENCE_REF_MAX, 0)) {
            prudence_ref_saturate_(ref, "prudence_ref_get_unless_zero: too many references");
            return true;
        }
    } while (!__atomic_compare_exchange_n(&ref->count, &count, count + 1, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return true;
}

/* Takes a reference for a caller that has one. */
PRUDENCE_INLINE void prudence_ref_get(struct prudence_ref *ref)
{
    uint32_t before = __atomic_fetch_add(&ref->count, 1, __ATOMIC_RELAXED);

    if (__builtin_expect(before - 1 >= PRUDENCE_REF_MAX - 1, 0))
        prudence_ref_saturate_(ref, before ? "prudence_ref_get: too many references"
                                           : "prudence_ref_get: the count was 0");
}

/* Puts a reference. Returns true for the last one. Release and acquire: the thread that gets true
 * sees everything that others did with the object before they put their references. */
PRUDENCE_INLINE bool prudence_ref_put(struct prudence_ref *ref)
{
    uint32_t before = __atomic_fetch_sub(&ref->count, 1, __ATOMIC_ACQ_REL);

    if (__builtin_expect(before - 1 >= PRUDENCE_REF_MAX, 0))
        prudence_ref_saturate_(ref, before ? "prudence_ref_put: the count is saturated"
                                           : "prudence_ref_put: the count was 0");
    return before == 1;
}

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_REF_H */
