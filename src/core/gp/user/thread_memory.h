/* SPDX-License-Identifier: MIT */
/* Memory of threads that may end unnoticed (see thread_memory.c). */
#ifndef GP_USER_THREAD_MEMORY_H
#define GP_USER_THREAD_MEMORY_H

#include "gp/user/domain.h"

/* Heads a block of metadata of one thread, which may end without notice. The thread calls
 * thread_memory_note() when the block is made, and thread_memory_release(). The block of a thread
 * that ended unnoticed is freed later, at the latest when there are twice as many blocks. */
struct thread_memory {
    struct thread_memory *next;
    size_t bytes;
    uint64_t claimed_at; /* boot time, ns */
    int32_t thread;      /* 0: released; atomic */
    int32_t process;     /* differs in a process forked without handlers */
    bool listed;
};
void thread_memory_note(struct thread_memory *memory, size_t bytes);
void thread_memory_release(struct thread_memory *memory);
void thread_memory_list(struct thread_memory *memory); /* the thread's end may go unnoticed */
void thread_memory_reap(void);
void thread_memory_fork_child(struct thread_memory *memory);

#endif /* GP_USER_THREAD_MEMORY_H */
