/* SPDX-License-Identifier: MIT */
/*
 * Memory of single threads, which may end unnoticed (reader_exit.c). A list has the blocks of
 * threads whose end may go unnoticed. The thread pushes a block, perhaps in a handler, and a holder
 * of the readers' lock removes it. The thread itself only marks blocks that are no longer needed.
 */

#include "gp/user/domain.h"
#include "gp/user/reader_exit.h"
#include "gp/user/slots.h"
#include "gp/user/thread_memory.h"

static struct thread_memory *listed;
static unsigned listed_count, reap_at = 16; /* relaxed, because they only say when to check */

static void thread_memory_push(struct thread_memory *memory)
{
    struct thread_memory *first = load_relaxed(&listed);

    do
        memory->next = first;
    while (!compare_exchange(&listed, &first, memory));
    add_relaxed(&listed_count, 1);
}

static void thread_memory_claim(struct thread_memory *memory)
{
    memory->process = os_process_id();
    memory->claimed_at = os_clock_boot_ns();
    store_release(&memory->thread, os_thread_id());
}

/* Returns whether the block can be freed. Blocks inherited by a process that was forked without our
 * handlers are kept, because one may belong to this very thread. */
static bool is_left_behind(const struct thread_memory *memory)
{
    int32_t thread = load_acquire(&memory->thread);

    return memory->process == os_process_id() &&
           (!thread || reader_is_gone(thread, memory->claimed_at, true));
}

static void thread_memory_reap_listed(void)
{
    struct thread_memory *next, *memory = __atomic_exchange_n(&listed, NULL, __ATOMIC_ACQUIRE);

    store_relaxed(&listed_count, 0u);
    for (; memory; memory = next) {
        next = memory->next;
        if (is_left_behind(memory))
            os_meta_free(memory, memory->bytes);
        else
            thread_memory_push(memory);
    }
    store_relaxed(&reap_at, 2 * load_relaxed(&listed_count) + 16);
}

void thread_memory_reap(void)
{
    if (load_relaxed(&listed) && os_lock_try(&readers_lock)) {
        thread_memory_reap_listed();
        os_lock_release(&readers_lock);
    }
}

void thread_memory_list(struct thread_memory *memory)
{
    if (memory->listed)
        return;
    memory->listed = true;
    thread_memory_claim(memory);
    thread_memory_push(memory);
    if (load_relaxed(&listed_count) >= load_relaxed(&reap_at))
        thread_memory_reap();
}

void thread_memory_note(struct thread_memory *memory, size_t bytes)
{
    memory->bytes = bytes;
    memory->listed = false;
    if (!reader_exit_watch())
        thread_memory_list(memory);
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
    if (memory->listed)
        thread_memory_claim(memory);
}
