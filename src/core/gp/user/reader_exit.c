/* SPDX-License-Identifier: MIT */
/*
 * Notices the end of threads that read.
 *
 * By a hook, the destructor of a thread-specific key. Destructors of the program may run later, and
 * end a section there, so the hook is armed again in each round of destructors and ends no section.
 * A thread that is inside keeps its slots, and is found by a check if nothing ends the section (ADR
 * 28). The thread arms the hook when it registers, unless arming would need memory, because a
 * thread may register in a signal handler that interrupted malloc, and glibc allocates for keys
 * beyond the first 32. Then the thread is marked `unwatched`, and arms the hook at the next call
 * that no handler may make.
 *
 * The thread is found by a check if a thread ended without a hook, inside a section, or read once
 * more after the hook's last call. A slot records which thread has it, and since when. Each check
 * is a system call, so only these threads check:
 *   - a thread that destroys a domain, at all slots;
 *   - a thread that counts readers, at the next few;
 *   - a thread that serves a phases domain, at all slots (gp_phases_reap);
 *   - a thread that finds no free slot, at a few, or at all when half as many again are used;
 *   - a driver, at a slot that blocks a grace period for 5 ms (at once, if the hook cannot be
 *     counted on), and after 100 ms whether another thread has that id (ADR 34);
 *   - the thread that ends the process, if a thread is still inside.
 *
 * So dead threads leave at most one chunk of slots for each domain, plus half as many slots as live
 * ones have, and keep no grace period from ending. Their tables of slots are in a list
 * (thread_memory.c).
 */
#include <limits.h>
#include <pthread.h>

#include "gp/user/domain.h"
#include "gp/user/reader_exit.h"

/* Number of keys whose values glibc stores in the thread itself. A test lowers this. */
unsigned reader_keys_without_memory = 32;

__thread bool reader_unwatched __attribute__((tls_model("initial-exec")));
static __thread bool watched __attribute__((tls_model("initial-exec")));

/* Rounds of destructors that called the hook; at most the number of actual rounds. */
static __thread unsigned rounds __attribute__((tls_model("initial-exec")));

static pthread_key_t key;
static READ_MOSTLY void (*thread_ends)(bool last) = NULL;
static void (*thread_ends_before)(bool last); /* atomic; NULL: no layer above is notified */
static uint32_t key_made;                     /* set with release after the key and the function */

/* Returns the last round in which the hook can do its work. ThreadSanitizer takes down its state of
 * a thread in the last round, perhaps before our hook, and no notice reaches it afterwards. So
 * under a race detector the round before counts as the last one. */
static unsigned last_round(void)
{
    return PTHREAD_DESTRUCTOR_ITERATIONS - race_detector_is_there();
}

/* Notifies the layer above first, because that reads. pthread_setspecific() needs no memory here,
 * because the system has just held the value. */
static void on_exit_of_thread(void *unused)
{
    void (*before)(bool last) = load_acquire(&thread_ends_before);
    bool last = ++rounds >= last_round();

    (void)unused;
    reader_unwatched = false;
    watched = !last && pthread_setspecific(key, &key) == 0;
    if (before)
        before(last);
    thread_ends(last);
}

void reader_exit_tell_before(void (*ends)(bool last))
{
    store_release(&thread_ends_before, ends);
}

/* Makes the key at start, not at a first registration, which may be in a handler. */
COLD void reader_exit_start(void (*ends)(bool last))
{
    thread_ends = ends;
    if (pthread_key_create(&key, on_exit_of_thread))
        os_panic(
            "no thread-specific key remains (pthread_key_create), so the end of a thread that "
            "reads would go unnoticed: load libprudence earlier, or fewer libraries that make "
            "keys");
    store_release(&key_made, 1u);
}

/* Sets the marks first, because an allocation in pthread_setspecific() may come back here. */
static bool arm(void)
{
    reader_unwatched = false;
    watched = pthread_setspecific(key, &key) == 0;
    reader_unwatched = !watched;
    return watched;
}

/* Arms the hook if that is async-signal-safe. Returns whether the thread's end will be noticed.
 * False for a thread that is ending, which may be in the last round. */
bool reader_exit_watch(void)
{
    if (rounds)
        return false;
    if (watched)
        return true;
    if (load_acquire(&key_made) && key < reader_keys_without_memory)
        return arm();
    reader_unwatched = true;
    return false;
}

bool reader_exit_watch_slow(void)
{
    if (watched || rounds)
        return true;
    os_foreign_call("pthread_setspecific, which may allocate");
    return load_acquire(&key_made) && arm();
}

bool reader_exit_is_told(void)
{
    return watched;
}

/* ----------------------------------------------------------------------------------- by checks */

/* In a copy that its first thread has not noticed, that thread has another id than its slots. */
bool reader_is_gone(int32_t thread, uint64_t claimed_at, bool thoroughly)
{
    if (thread <= 0 || os_copy_is_unnoticed())
        return false;
    if (!os_thread_exists(thread))
        return true;
    return thoroughly && claimed_at && os_thread_is_newer(thread, claimed_at);
}
