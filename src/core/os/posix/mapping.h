/* SPDX-License-Identifier: MIT */
/* Memory from the system, for the page source above. */
#ifndef OS_POSIX_MAPPING_H
#define OS_POSIX_MAPPING_H

#include "os/os.h"

static inline bool injected_failure(void)
{
    return unlikely(os_memory_fails) && os_memory_fails();
}

/* --- mapping.c: address space, nodes, purging. NULL and false mean that the system refused.
 * `bytes` and addresses are whole pages of the system (os_page_size), which is also the least
 * alignment. The caller holds nothing (os_holds_nothing), except in calls for the library's own
 * books, whose addresses no program can have. --- */
void *mapping_make_own(size_t bytes);
void *mapping_make_own_sparse(size_t bytes); /* for mostly untouched tables */
bool mapping_unmake_own(void *pages, size_t bytes);
bool mapping_purge_own(void *pages, size_t bytes);
/* Makes the library's own pages read as zero in forked children. */
bool mapping_wipe_in_copies(void *pages, size_t bytes);
void *mapping_make(size_t bytes, size_t alignment);
void *mapping_make_unseen(size_t bytes, size_t alignment); /* by system calls */
void *mapping_make_on_node(size_t bytes, size_t alignment, unsigned node);
bool mapping_unmake(void *pages, size_t bytes);
void *mapping_reserve(size_t bytes, size_t alignment);       /* inaccessible at first */
bool mapping_open(void *pages, size_t bytes);                /* opens reserved or closed pages */
bool mapping_close(void *pages, size_t bytes);               /* keeps their contents */
bool mapping_mark(void *pages, size_t bytes, bool guarded);  /* by the page table; Linux 6.13 */
void mapping_wish_huge(void *pages, size_t bytes);           /* if the option is set */
bool mapping_purge(void *pages, size_t bytes);               /* they read as zero afterwards */
bool mapping_extend(void *pages, size_t bytes, size_t more); /* in place */
/* Hook for tests, called before each call of a function that the program may have replaced.
 * Atomic. */
extern void (*mapping_seen)(const char *call);
static inline void mapping_watch(void (*seen)(const char *call))
{
    store_relaxed(&mapping_seen, seen);
}
bool mapping_is_locked(void); /* whether new mappings would be resident at once (mlockall) */
/* Moves pages onto a mapping of `room` bytes, which they replace. */
bool mapping_move(void *pages, size_t bytes, void *target, size_t room);
/* Moves the contents of `pages`, which stay mapped, onto a mapping of as many bytes. Sets *lost
 * if the target may be unmapped. */
bool mapping_move_out(void *pages, size_t bytes, void *target, bool *lost);
bool mapping_is_there(const void *pages, size_t bytes); /* whether all pages are mapped */
/* Undoes advice of the program. If the system refuses, the advice stays. Returns false if some
 * pages are not there, because this process was forked while they had MADV_DONTFORK. */
enum { MAPPING_DONTFORK = 1, MAPPING_DONTDUMP = 2, MAPPING_WIPEONFORK = 4 };
bool mapping_undo_advice(void *pages, size_t bytes, unsigned kinds);

/* --- metadata.c: blocks for the allocator's own books (os/os.h) --- */
void *metadata_map(size_t bytes);
uint64_t metadata_bytes(void);
extern uint64_t metadata_reserved; /* that count; watchers read it */
void metadata_fork_prepare(void);
void metadata_fork_done(void);

#endif /* OS_POSIX_MAPPING_H */
