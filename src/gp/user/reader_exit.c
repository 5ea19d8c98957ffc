/* SPDX-License-Identifier: MIT */
/*
 * Threads that read, and end: how that is noticed.
 *
 * By a hook, the destructor of a thread-specific key. It is armed when the thread registers, but not where
 * that would need memory: a thread may register in a signal handler that interrupted malloc, and glibc
 * allocates for keys beyond its first 32. Then the thread is noted as `unwatched`, and arms its hook when it
 * next calls something that no handler may call.
 *
 * By looking, where a thread ended without a hook, or read once more after it: a slot says which thread has
 * it, and since when. Each look is a system call. A thread that destroys a domain looks at all of them; one that
 * counts readers, at the next few; one that finds no free slot, at a few, or at all when they have become half as many
 * again; a driver, at one that has been in the way of a grace period for 5 ms, and after 100 ms whether another thread
 * has its id (ADR 60). So what dead threads leave is bounded by one chunk of slots for each domain, and half as many as
 * live ones have; and it keeps no grace period from ending. Their tables of slots are in a list, for the same.
 */
#define _GNU_SOURCE /* gettid */
#include <pthread.h>
#include <unistd.h>

#include "gp/user/domain.h"

/* glibc has the values of so many keys in the thread itself. A test has it be fewer. */
unsigned reader_keys_without_memory = 32;

__thread bool reader_unwatched __attribute__((tls_model("initial-exec")));
static __thread bool watched __attribute__((tls_model("initial-exec")));

static pthread_key_t key;
static uint32_t key_made; /* release: the key is there */

static void on_exit_of_thread(void *unused)
{
    (void)unused;
    watched = reader_unwatched = false;
    readers_thread_exits();
}

/* Not at a first registration: that may be in a handler. */
void reader_exit_start(void)
{
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

/* Async-signal-safe. Returns whether the thread's end will be told. */
bool reader_exit_watch(void)
{
    if (watched)
        return true;
    if (load_acquire(&key_made) && key < reader_keys_without_memory)
        return arm();
    reader_unwatched = true;
    return false;
}

void reader_exit_watch_slow(void)
{
    os_foreign_call("pthread_setspecific, which may allocate");
    if (load_acquire(&key_made))
        arm();
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

/*
 * Memory of unwatched threads: pushed by the thread, perhaps in a handler, and taken out by whoever holds
 * the readers' lock. The thread itself only marks what it does not need any more.
 */
static struct thread_memory *listed;
static unsigned listed_count, reap_at = 16; /* relaxed: how often we look */

static void push(struct thread_memory *memory)
{
    struct thread_memory *first = load_relaxed(&listed);

    do
        memory->next = first;
    while (!compare_exchange(&listed, &first, memory));
    add_relaxed(&listed_count, 1);
}

static void claim(struct thread_memory *memory)
{
    memory->process = getpid();
    memory->claimed_at = os_clock_boot_ns();
    store_release(&memory->thread, gettid());
}

/* What a process inherited that was forked behind our back may be this very thread's. */
static bool is_left_behind(const struct thread_memory *memory)
{
    int32_t thread = load_acquire(&memory->thread);

    return memory->process == getpid() &&
           (!thread || reader_is_gone(thread, memory->claimed_at, true));
}

static void reap(void)
{
    struct thread_memory *next, *memory = __atomic_exchange_n(&listed, NULL, __ATOMIC_ACQUIRE);

    store_relaxed(&listed_count, 0u);
    for (; memory; memory = next) {
        next = memory->next;
        if (is_left_behind(memory))
            os_meta_free(memory, memory->bytes);
        else
            push(memory);
    }
    store_relaxed(&reap_at, 2 * load_relaxed(&listed_count) + 16);
}

void thread_memory_reap(void)
{
    if (load_relaxed(&listed) && os_lock_try(&readers_lock)) {
        reap();
        os_lock_release(&readers_lock);
    }
}

void thread_memory_note(struct thread_memory *memory, size_t bytes)
{
    memory->bytes = bytes;
    memory->listed = !reader_exit_watch();
    if (!memory->listed)
        return;
    claim(memory);
    push(memory);
    if (load_relaxed(&listed_count) >= load_relaxed(&reap_at))
        thread_memory_reap();
}

void thread_memory_release(struct thread_memory *memory)
{
    if (memory->listed)
        store_release(&memory->thread, 0);
    else
        os_meta_free(memory, memory->bytes);
}

void thread_memory_fork_child(struct thread_memory *memory)
{
    if (memory && memory->listed)
        claim(memory);
}
