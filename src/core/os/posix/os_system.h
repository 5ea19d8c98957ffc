/* SPDX-License-Identifier: MIT */
/*
 * Compile-time differences between a process and a kernel.
 */
#ifndef OS_POSIX_SYSTEM_H
#define OS_POSIX_SYSTEM_H

#include "base/base.h"
#include "syscall_policy.h"
#include "os_probe.h"
#include "race_detector.h"

/* Restrictions that an allocation's caller puts on how it may succeed. The layers between pass
 * them on unread. A process has none. */
typedef unsigned os_alloc_flags;
#define OS_ALLOC_DEFAULT 0u

/* Access to another CPU's caches costs at most one system call, so allocations do so before
 * they grow. */
#define OS_REMOTE_IS_QUICK true

/* Places a variable that every CPU reads often and hardly any writes in one section, apart from
 * those that are written. The variable needs an initial value. */
#define READ_MOSTLY __attribute__((section("prudence_read_mostly")))

/* Size of the system's pages, or the larger one that option page_size sets: a power of two, at
 * least OS_PAGE_SIZE. Constant after start, before anything is mapped. */
#define OS_PAGE_SIZE_MOST ((size_t)64 << 10)
extern HIDDEN size_t os_page_size;

/* Returns whether the allocation may sleep and disturb other CPUs. */
static inline bool os_may_block(os_alloc_flags flags)
{
    (void)flags;
    return true;
}

/* Returns whether threads of another CPU may be disturbed merely for tidiness. */
static inline bool os_may_disturb(unsigned cpu)
{
    (void)cpu;
    return true;
}

/* Returns the flags for the first of two tries; the second comes after waiting for memory. */
static inline os_alloc_flags os_alloc_first(os_alloc_flags flags)
{
    return flags;
}

/* Returns the flags for an allocation larger than necessary. */
static inline os_alloc_flags os_alloc_larger(os_alloc_flags flags)
{
    return flags;
}

/* Returns the node of pages that were requested on node `asked`, as far as is known before they
 * are touched. */
static inline unsigned os_pages_node(const void *pages, unsigned asked)
{
    (void)pages;
    return asked;
}

/* Notes bytes of a block of metadata that are not touched yet; a negative number has been touched
 * since. */
void os_meta_note_untouched(int64_t bytes);

/* Gives the pages of a block of metadata of more than OS_META_LOCK_FREE bytes back to the system.
 * The block stays mapped, is zeroed, and is noted as untouched. Returns false, with nothing
 * changed, for locked memory and for a block in the library's own variables (metadata.c). */
bool os_meta_purge(void *meta, size_t bytes);

/* Returns the bytes of metadata (os_meta_alloc) that were touched, and so may be resident. */
uint64_t os_meta_touched(void);

/* Keeps the module (program or shared object) that contains `address` loaded forever. Calls the
 * dynamic loader, so not from inside an allocation. */
void os_stay_loaded(const void *address);

/* Most objects moved at a time between a CPU's caches and a node; they lie on the mover's stack. */
#define OS_TRANSFER_MAX 128

/* Most extensions of the slab layer (slab/extension.h), and how many of them, the first, have a
 * word in each slab. */
#define OS_EXTENSIONS      12
#define OS_EXTENSION_SIDES 7

/* Largest and smallest size of a CPU's object cache, in objects. The largest is a power of two
 * that fits the stack word's count. */
#define OS_CACHE_OBJECTS_MAX 16384
#define OS_CACHE_OBJECTS_MIN 16
#define OS_CACHE_BYTES_MIN   ((size_t)0)

/* An object cache grows to this many batches before demand says so. If a cache's creator gave a
 * number of bytes, the object caches start with two batches, otherwise with OS_CACHE_OBJECTS_MIN
 * objects, or with OS_TRANSFER_MAX if those fit into OS_CACHE_BYTES_MIN. */
#define OS_CACHE_START_BATCHES     2
#define OS_CACHE_BYTES_ARE_A_LIMIT false

/* Default budgets of a CPU's caches and of all CPUs' caches (slab/reclaim/budget.c). */
#define OS_CACHE_PER_CPU    (UINT64_C(8) << 20)
#define OS_CACHE_TOTAL      (UINT64_C(256) << 20)
#define OS_BUDGET_IS_SHARED true

static inline void os_copy_pointers(void **to, void *const *from, size_t count)
{
    copy_unseen(to, from, count * sizeof *to);
}

/* Larger ones are blocks (heap/large.c). */
#define OS_OBJECT_SIZE_MAX ((size_t)128 << 10)

/* Objects that a slab should have, and the smallest and largest slab of small objects. Where runs
 * of pages may be missing, a smaller slab is better than none. */
#define OS_SLAB_OBJECTS     128
#define OS_SLAB_BYTES_MIN   OS_PAGE_SIZE
#define OS_SLAB_BYTES_MAX   ((size_t)64 << 10)
#define OS_SLAB_MAY_BE_LESS false

/* True if caches have windows, which programs with inlined fast paths need. */
#if defined(__x86_64__) || defined(__AARCH64EL__)
#define OS_HAS_WINDOWS true
#else
#define OS_HAS_WINDOWS false
#endif

/* Decay purges hollow pages (slab/reclaim/hollow.c). */
#define OS_PURGES_WITHIN_SLABS true

/* True if large blocks may have margins, which cannot be accessed. */
#define OS_HAS_MARGINS true

/* Event for tracers; `word` is a term of docs/explanation/design.md. os_event_until also passes
 * the objects' cookie. */
#define os_event(word, cache, count) os_probe3(word, cache, (cache)->name, count)
#define os_event_until(word, cache, count, cookie)                                                 \
    os_probe4(word, cache, (cache)->name, count, (cookie).value)

void os_panic(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void os_abort(void) __attribute__((noreturn)); /* after the message has been printed */

/* Ends the process after a reported misuse. A kernel instead leaves the misused object alone and
 * goes on. */
static inline void __attribute__((noreturn)) os_misuse(void)
{
    os_abort();
}

/* Acts on an option that another process has written into this one's memory (ADR 89). Called from
 * slow paths with nothing held, so foreign functions may be called. But the program, which only
 * allocates or defers, may hold anything there, so no lock is waited for that another thread may
 * keep while it waits for the program's, as the loader's is kept during constructors (os_obeying).
 * Costs one load while there is none. */
extern HIDDEN uint64_t os_asked; /* written from outside; 0 if nothing is asked */
void os_asked_act(void);
extern HIDDEN __thread bool os_obeying __attribute__((tls_model("initial-exec")));
static inline void os_act_if_asked(void)
{
    if (unlikely(load_relaxed(&os_asked)))
        os_asked_act();
}

#endif /* OS_POSIX_SYSTEM_H */
