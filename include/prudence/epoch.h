/* SPDX-License-Identifier: MIT */
/*
 * Epochs: pins, which move to the newest epoch when the program says so, and grace periods that the
 * program drives. Threads can also ask to be notified when another thread waits for them.
 *
 * A domain's epoch is the number of grace periods that have begun there. A pin is a section: it
 * protects whatever is unlinked after it was made, until it ends or moves on. Pins and sections of
 * one thread in one domain nest in each other. docs/how-to/epochs.md maps the functions of
 * crossbeam-epoch and of Concurrency Kit to these.
 */
#ifndef PRUDENCE_EPOCH_H
#define PRUDENCE_EPOCH_H

#include <prudence/rcu.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A flag for prudence_domain_attr, for kinds memb and qsbr. Grace periods of such a domain begin
 * and end only where a thread of the program calls prudence_epoch_try_advance, or waits for the
 * domain, or for a set with it, explicitly (each call that synchronizes, each barrier, timed or
 * not, and prudence_cache_destroy). Allocating, deferring,
 * polling and the library's threads push nothing on there. So deferred objects and callbacks wait
 * until the program advances, and a thread that `latent_limit` holds back waits for wait_max.
 */
#define PRUDENCE_DOMAIN_CALLERS_ADVANCE 1u

/* ---------------------------------------------------------------------------------- pins */

/*
 * Returns this thread's record in a memb or manual domain, and registers the thread if it has none.
 * Other threads must not use the record. It lasts until the thread or the domain ends, so the
 * thread's last destructors may use it, too (with sandbox=1, those before the last round), and
 * there is no call that gives it back; the only thread of a forked child keeps its own. Returns
 * NULL with errno EINVAL (another kind; reported) or ENOMEM. Async-signal-safe.
 */
PRUDENCE_API struct prudence_reader *prudence_epoch_record(struct prudence_domain *domain);

/* Reports that the thread is not pinned, or too often, and aborts. */
PRUDENCE_API void prudence_epoch_misuse(const struct prudence_reader *self, const char *function)
    __attribute__((noreturn, cold));

/*
 * Pin this thread, and undo one pin. Pins nest, 1,023 deep; the outermost decides which epoch is
 * protected. They never wait, are async-signal-safe, and cost as much as a section.
 */
PRUDENCE_INLINE void prudence_epoch_pin(struct prudence_reader *self)
{
    if (__builtin_expect(!prudence_reader_enter_(self), 0))
        prudence_epoch_misuse(self, "prudence_epoch_pin");
}

PRUDENCE_INLINE void prudence_epoch_unpin(struct prudence_reader *self)
{
    if (__builtin_expect(!prudence_reader_leave_(self), 0))
        prudence_epoch_misuse(self, "prudence_epoch_unpin");
}

PRUDENCE_INLINE bool prudence_epoch_is_pinned(const struct prudence_reader *self)
{
    return __atomic_load_n(&self->word, __ATOMIC_RELAXED) != 0;
}

/*
 * Moves this thread's only pin to the newest epoch. Pointers that were read before must not be used
 * after. Returns false, and changes nothing, if the thread has further pins or sections in the
 * domain, which may still use their pointers. Async-signal-safe. Costs some loads and a compare,
 * and a store once for each epoch.
 *
 * Needs no fence, whatever the mode of the readers, because the word goes from the old epoch to the
 * new one by one store (tests/model/test_epoch.py). A driver that still finds the old epoch waits
 * for more than it must. A driver that finds the new one ends what was unlinked before that epoch
 * began; sequence is loaded with acquire, so this thread finds none of that from here on. Release:
 * the accesses before come before the word says that they are over. A mark is taken away, as at an
 * entry, so that no thread needs a membarrier instead. A handler that pins in between nests, and is
 * gone when this thread goes on.
 */
PRUDENCE_INLINE bool prudence_epoch_repin(struct prudence_reader *self)
{
    const struct prudence_domain_shared *shared =
        prudence_domain_shared_of(__atomic_load_n(&self->domain, __ATOMIC_RELAXED));
    uint64_t word = __atomic_load_n(&self->word, __ATOMIC_RELAXED);
    uint64_t newest = __atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE) | 1;

    if (__builtin_expect(word == newest, 1))
        return true;
    if (__builtin_expect((word & PRUDENCE_NESTING_MASK) != 1, 0)) {
        if (__builtin_expect(word == 0, 0))
            prudence_epoch_misuse(self, "prudence_epoch_repin");
        return false;
    }
    prudence_tell_section_ends(self);
    __atomic_store_n(&self->word, newest, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(__atomic_load_n(&self->attention, __ATOMIC_ACQUIRE) < 0, 0))
        prudence_reader_wake(self);
    return true;
}

/* Return the domain's newest epoch (modulo 2^54), and the one of this thread's pin. */
PRUDENCE_INLINE uint64_t prudence_epoch_newest(const struct prudence_domain *domain)
{
    return __atomic_load_n(&prudence_domain_shared_of(domain)->sequence, __ATOMIC_RELAXED) >>
           PRUDENCE_NESTING_BITS;
}

PRUDENCE_INLINE uint64_t prudence_epoch_pinned(const struct prudence_reader *self)
{
    return __atomic_load_n(&self->word, __ATOMIC_RELAXED) >> PRUDENCE_NESTING_BITS;
}

/*
 * From this call on, a section or pin of the default domain that this thread is in when it ends is
 * not ended and reported. It protects as long as the process: what is deferred afterwards stays
 * latent, and stall reports name the reader. For bindings of languages in which leaking a pin is no
 * fault, so that pointers which it protects outlive the thread. A forked child has no such section
 * of another thread. Async-signal-safe.
 */
PRUDENCE_API void prudence_epoch_outlive(void);

/* ------------------------------------------------------------------------------ advancing */

/*
 * Checks all readers of `domain` (any kind but manual). If none is behind the newest epoch,
 * begins the next one, which ends at once if no reader is inside, and returns true. Otherwise
 * returns false. Stores in *behind, unless `behind` is NULL, the kernel's id of the thread furthest
 * behind; 0: none, or not known. Never waits.
 *
 * When two calls, one after the other, have returned true, no thread uses objects unlinked before
 * the first. A cookie (prudence_domain_get_state) shows it sooner. A pinned caller is behind
 * after the first call, until it moves its pin.
 *
 * Not async-signal-safe: drives a grace period, so may report a stall and call hooks. Costs a
 * membarrier, or a fence if readers fence, and some 3 ns for each reader that is awake.
 */
PRUDENCE_API bool prudence_epoch_try_advance(struct prudence_domain *domain, int *behind);

/* --------------------------------------------------------------------------------- kicks */

/*
 * A function that notifies a thread that another thread waits for it, for example by eventfd_write,
 * pthread_kill or ev_async_send. The thread then passes a quiescent state, repins, or leaves its
 * section: docs/how-to/event-loops.md.
 *
 * The thread that drives the grace period calls it, perhaps inside an allocation or a deferral,
 * with no lock of the library held, once for each section (or epoch of a pin or of an online
 * thread) that is blocking. A function that is set in the midst of one is called for that one,
 * too. A thread that sleeps in a section may so be notified without a limit on its sleep. No thread
 * calls it while no thread checks the readers. It must not wait, nor call this library. It may come
 * late: the thread may just have ended its section. errno is kept, and the caller is not cancelled.
 */
struct prudence_kick {
    size_t size; /* sizeof(struct prudence_kick) */
    void (*function)(void *argument);
    void *argument;
    uint64_t after; /* ns that the section has been blocking; 0: at once */
};

/*
 * Has `kick` called for the calling thread in `domain` (memb, qsbr or srcu), instead of any set
 * before; NULL: nothing. `*kick` belongs to the library until another call for the domain, the
 * thread's end, or the domain's. No call of the function before runs, or begins, after the return;
 * so this waits for one that runs. A forked child has none: it sets its own.
 *
 * Returns 0, or an error number and nothing is set: EINVAL (another kind, no function, wrong size;
 * reported), ENOMEM, or ESRCH in the last destructors of an ending thread. Not async-signal-safe.
 */
PRUDENCE_API int prudence_kick_set(struct prudence_domain *domain,
                                   const struct prudence_kick *kick);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_EPOCH_H */
