/* SPDX-License-Identifier: MIT */
/*
 * Notifies a thread that it blocks a grace period, by a function that the thread has given:
 * for a thread that sleeps, or runs long, and can pass a quiescent state when notified.
 *
 * `kick` points to the program's structure. Only the slot's own thread sets it, so no other thread
 * waits for a call to end, and no thread calls its own function. `kicked` is the last section that
 * the thread was notified of, with 1 added, so that 0 is none: each section is notified of once by
 * each function that is set. A section that was entered after the grace period began is not
 * blocking, so that is also at most once for each grace period.
 *
 * A thread that calls counts itself in `kicking` first, then loads the pointer; the owner clears
 * the pointer first, then loads the count. Both fence in between, so either the caller finds no
 * function, or the owner finds the count and waits (tests/model/test_epoch.py).
 *
 * Locks: none. The function runs with none held.
 */
#include <errno.h>
#include <pthread.h>

#include "gp/user/kick.h"

/* The function has not reported a section yet, not even the one that the function before reported.
 * No call of that one runs. Release: what the program wrote before is there for the thread that
 * calls. */
void kick_begin(struct reader_slot *slot, const struct prudence_kick *kick)
{
    tell_release(kick);
    store_relaxed(&slot->kicked, (uint64_t)0);
    store_release(&slot->kick, kick);
}

/* Takes the function away. Returns whether no call of it runs or will begin; until then the caller
 * asks again, with no lock held while it waits. Acquire: calls that ran are over. */
bool kick_end(struct reader_slot *slot)
{
    store_relaxed(&slot->kick, (const struct prudence_kick *)NULL);
    os_full_fence();
    if (load_acquire(&slot->kicking))
        return false;
    tell_acquire(&slot->kicking);
    return true;
}

/* For a slot whose thread is gone, or whose process is a copy without the threads that call. */
void kick_forget(struct reader_slot *slot)
{
    store_relaxed(&slot->kick, (const struct prudence_kick *)NULL);
    store_relaxed(&slot->kicked, (uint64_t)0);
}

/* Never below 0, because a child that was forked in a kick has forgotten this call. Release: the
 * call is over before the owner finds that none runs. */
static void call_is_over(struct reader_slot *slot)
{
    uint32_t kicking = load_relaxed(&slot->kicking);

    tell_release(&slot->kicking);
    while (kicking && !compare_exchange(&slot->kicking, &kicking, kicking - 1))
        ;
}

static void call_foreign(const struct prudence_kick *kick)
{
    int cancelable, saved_errno = errno;

    tell_acquire(kick);
    os_foreign_call("a kick");
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable);
    kick->function(kick->argument);
    pthread_setcancelstate(cancelable, NULL);
    errno = saved_errno;
}

void kick_call(struct reader_slot *slot, uint64_t section, uint64_t stayed)
{
    uint64_t kicked = load_relaxed(&slot->kicked);
    const struct prudence_kick *kick;

    if (kicked == (section | 1) || load_relaxed(&slot->thread) == os_thread_id())
        return;
    __atomic_fetch_add(&slot->kicking, 1, __ATOMIC_SEQ_CST);
    os_full_fence();
    kick = load_acquire(&slot->kick);
    if (kick && stayed >= kick->after &&
        (load_relaxed(&slot->reader.word) & ~PRUDENCE_NESTING_MASK) == section &&
        compare_exchange(&slot->kicked, &kicked, section | 1))
        call_foreign(kick);
    call_is_over(slot);
}
