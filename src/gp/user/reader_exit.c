/* SPDX-License-Identifier: MIT */
/*
 * Threads that read, and end: how their end is noticed.
 *
 * By a hook, the destructor of a thread-specific key. Destructors of the program may come after it, and end a section
 * there, so the hook is armed again in each round of destructors, and ends no section: a thread that is inside keeps its
 * slots, and is found by looking if nobody ends the section (ADR 115). It is armed when the thread registers, unless that would need
 * memory: a thread may register in a signal handler that interrupted malloc, and glibc allocates for keys beyond its
 * first 32. Then the thread is noted as `unwatched`, and arms its hook when it next calls something that no handler
 * may call.
 *
 * By looking, if a thread ended without a hook, inside a section, or read once more after the hook's last call: a slot says which thread has it, and
 * since when. Each look is a system call, so these threads look:
 *   - a thread that destroys a domain, at all slots;
 *   - one that counts readers, at the next few;
 *   - one that finds no free slot, at a few, or at all when they have become half as many again;
 *   - a driver, at one that has been in the way of a grace period for 5 ms (at once, if the hook cannot be counted on), and
 *     after 100 ms whether another thread has its id (ADR 60);
 *   - the one that ends the process, if a thread was left inside.
 *
 * So what dead threads leave is bounded by one chunk of slots for each domain, and half as many as live ones have;
 * and it keeps no grace period from ending. Their tables of slots are in a list (thread_memory.c).
 */
#include <limits.h>
#include <pthread.h>

#include "gp/user/domain.h"

/* glibc has the values of so many keys in the thread itself. A test has it be fewer. */
unsigned reader_keys_without_memory = 32;

__thread bool reader_unwatched __attribute__((tls_model("initial-exec")));
static __thread bool watched __attribute__((tls_model("initial-exec")));

/* Rounds of destructors in which the hook was called: no more than there were. */
static __thread unsigned rounds __attribute__((tls_model("initial-exec")));

static pthread_key_t key;
static void (*thread_ends)(void);
static void (*thread_ends_before)(bool last); /* atomic; NULL: no layer above wants to know */
static uint32_t key_made;                     /* release: the key and the function are there */

/* ThreadSanitizer takes its own part of a thread away in the last round, perhaps before our hook. After that it can be told
 * nothing, so the round before counts as the last one. */
static unsigned last_round(void)
{
    return PTHREAD_DESTRUCTOR_ITERATIONS - race_detector_is_there();
}

/* First the layer above, which reads. The system remembers the value without memory, because it has just held it. */
static void on_exit_of_thread(void *unused)
{
    void (*before)(bool last) = load_acquire(&thread_ends_before);
    bool last = ++rounds >= last_round();

    (void)unused;
    reader_unwatched = false;
    watched = !last && pthread_setspecific(key, &key) == 0;
    if (before)
        before(last);
    thread_ends();
}

void reader_exit_tell_before(void (*ends)(bool last))
{
    store_release(&thread_ends_before, ends);
}

/* Not at a first registration: that may be in a handler. */
void reader_exit_start(void (*ends)(void))
{
    thread_ends = ends;
    if (pthread_key_create(&key, on_exit_of_thread))
        os_panic(
            "no thread-specific key is left (pthread_key_create), so the end of a thread that "
            "reads would go unnoticed: load libprudence earlier, or fewer libraries that make "
            "keys");
    store_release(&key_made, 1u);
}

/* First the marks: what allocates may come back here. */
static bool arm(void)
{
    reader_unwatched = false;
    watched = pthread_setspecific(key, &key) == 0;
    reader_unwatched = !watched;
    return watched;
}

/* Async-signal-safe. Returns whether the thread's end will be told. Of a thread that is ending nobody knows: it may be in the last
 * round. */
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

/* ------------------------------------------------------------------------------------ by looking */

bool reader_is_gone(int32_t thread, uint64_t claimed_at, bool thoroughly)
{
    if (thread <= 0)
        return false;
    if (!os_thread_exists(thread))
        return true;
    return thoroughly && claimed_at && os_thread_is_newer(thread, claimed_at);
}
