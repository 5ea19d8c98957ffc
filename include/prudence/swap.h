/* SPDX-License-Identifier: MIT */
/*
 * Hot swap: an object is replaced by another one, perhaps of another kind, while in use. Users keep
 * a pointer to a handle, which stays; the handle leads to the object. (P. McKenney, "Exploiting
 * Deferred Destruction", 2004, section 6.8.3. K42 swaps implementations of objects in this way, and
 * finds the quiescent state between the old and the new one by grace periods.)
 *
 *     prudence_read_lock();
 *     file = prudence_swap_get(&handle);        NULL: being swapped; leave, and come again
 *     if (file)
 *         file->operations->read(file, ...);
 *     prudence_read_unlock();
 *
 * There are two ways:
 *  - prudence_swap_exchange: from one moment on readers get the new object; those that have the old
 *    one keep it. For objects that are read, or whose new version needs nothing of the old one. The
 *    old one is deferred.
 *  - prudence_swap_transfer: first no thread gets an object. When all that had the old one have
 * ended,
 *    the caller's function transfers the state without disturbance. Then readers get the new one.
 *    For objects that change while they are in use.
 *
 * Rules:
 *  - Sections: the object that prudence_swap_get returns is valid until the section ends.
 *  - Threads: several threads may swap one handle. Of several transfers one is made, and the others
 *    are refused.
 *  - Signals: prudence_swap_get is async-signal-safe inside a section. Fork: a child has the handle
 *    as it was. If another thread was in a transfer, the handle stays empty there until
 *    prudence_swap_exchange stores an object.
 *  - Cost: prudence_swap_get is one load. A transfer is a grace period, in which users cannot get
 *    the object.
 */
#ifndef PRUDENCE_SWAP_H
#define PRUDENCE_SWAP_H

#include <prudence/language.h>
#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

/* May be anywhere in the caller's memory. */
struct prudence_swap {
    void *object; /* private; atomic */
};

/* To be called before others can find the handle. */
PRUDENCE_INLINE void prudence_swap_init(struct prudence_swap *handle, void *object)
{
    __atomic_store_n(&handle->object, object, __ATOMIC_RELEASE);
}

/* Returns the object, or NULL during a transfer. */
PRUDENCE_INLINE void *prudence_swap_get(const struct prudence_swap *handle)
{
    void *object = __atomic_load_n(&handle->object, __ATOMIC_CONSUME);

    if (object)
        PRUDENCE_TELL_FOUND(object);
    return object;
}

/*
 * Returns the old object, which the caller must defer, or NULL if there was none, or if it is
 * `fresh`, which then stays. Acquire and release: the thread that gets an object sees everything
 * that was done with the object before.
 */
PRUDENCE_INLINE void *prudence_swap_exchange(struct prudence_swap *handle, void *fresh)
{
    void *old = __atomic_exchange_n(&handle->object, fresh, __ATOMIC_ACQ_REL);

    if (old)
        PRUDENCE_TELL_FOUND(old);
    return old == fresh ? PRUDENCE_NULL : old;
}

/*
 * Swaps with a transfer of state: takes the old object out, waits for readers of `domain` (NULL:
 * the default domain), calls transfer(old, fresh, context), and puts `fresh` in. If `transfer`
 * returns a number other than 0, puts the old object back, and returns that number. Otherwise
 * returns 0, and the old object in *old, which no thread uses, so it may be freed at once.
 *
 * Returns an error number, with *old NULL and the handle unchanged: EAGAIN if the handle is empty,
 * because another thread is in a transfer; EDEADLK, with a report, where
 * prudence_domain_synchronize of the domain fails (inside a section), and online in any qsbr
 * domain; EBUSY in a handler of pthread_atfork; EINVAL, with a report, if the object is `fresh`.
 * EINVAL also for NULL arguments (then *old is not written). If another thread has put an object in
 * during the transfer, by prudence_swap_exchange, that one stays. Then this returns EAGAIN or the
 * number that `transfer` returned, and *old is the old object.
 */
PRUDENCE_API int prudence_swap_transfer(struct prudence_swap *handle, void *fresh, void **old,
                                        int (*transfer)(void *old, void *fresh, void *context),
                                        void *context, struct prudence_domain *domain);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_SWAP_H */
