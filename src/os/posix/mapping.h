/* SPDX-License-Identifier: MIT */
/* Memory as the system gives it: for the page source above. */
#ifndef OS_POSIX_MAPPING_H
#define OS_POSIX_MAPPING_H

#include "os/os.h"

static inline bool injected_failure(void)
{
    return unlikely(os_memory_fails) && os_memory_fails();
}

/* --- mapping.c: address space, nodes, giving memory back. NULL and false: the system refuses. `bytes` and addresses
 * are whole pages of the system (os_page_size), which is the least alignment. Called with nothing held (os_holds_nothing),
 * except those for the library's own books, which no program can have an address of. --- */
void *mapping_make_own(size_t bytes);
void *mapping_make_own_sparse(size_t bytes); /* most of it stays untouched */
bool mapping_unmake_own(void *pages, size_t bytes);
bool mapping_purge_own(void *pages, size_t bytes);
bool mapping_wipe_in_copies(void *pages,
                            size_t bytes); /* own ones; they read as zero in forked children */
void *mapping_make(size_t bytes, size_t alignment);
void *mapping_make_unseen(size_t bytes, size_t alignment); /* by system calls, whatever is held */
void *mapping_make_on_node(size_t bytes, size_t alignment, unsigned node);
bool mapping_unmake(void *pages, size_t bytes);
void *mapping_reserve(size_t bytes, size_t alignment);       /* nobody may touch it yet */
bool mapping_open(void *pages, size_t bytes);                /* of what is reserved or closed */
bool mapping_close(void *pages, size_t bytes);               /* with what is in them */
bool mapping_mark(void *pages, size_t bytes, bool guarded);  /* in the page table; Linux 6.13 */
void mapping_wish_huge(void *pages, size_t bytes);           /* if the option says so */
bool mapping_purge(void *pages, size_t bytes);               /* they read as zero afterwards */
bool mapping_extend(void *pages, size_t bytes, size_t more); /* in place */
/* Of tests: called where the program's function would be, before each call that changes mappings. Atomic. */
extern void (*mapping_seen)(const char *call);
static inline void mapping_watch(void (*seen)(const char *call))
{
    store_relaxed(&mapping_seen, seen);
}
bool mapping_is_locked(void); /* what is mapped now would be resident at once (mlockall) */
/* Onto a mapping of `room` bytes, which it replaces. */
bool mapping_move(void *pages, size_t bytes, void *target, size_t room);
/* Onto as many bytes of a mapping; `pages` stay mapped. *lost: the target may be unmapped. */
bool mapping_move_out(void *pages, size_t bytes, void *target, bool *lost);

/* --- metadata.c: blocks for the allocator's own books (os/os.h) --- */
void *metadata_map(size_t bytes);
uint64_t metadata_bytes(void);
const uint64_t *metadata_word(void); /* where that stands */
void metadata_fork_prepare(void);
void metadata_fork_done(void);

#endif /* OS_POSIX_MAPPING_H */
