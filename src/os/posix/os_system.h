/* SPDX-License-Identifier: MIT */
/*
 * What differs between a process and a kernel and is known when the library is compiled.
 */
#ifndef OS_POSIX_SYSTEM_H
#define OS_POSIX_SYSTEM_H

#include "base/base.h"
#include "few_calls.h"
#include "os_probe.h"
#include "race_detector.h"

/* What an allocation may do to succeed, as its caller said. The layers between pass it on unread. A
 * process has nothing to say: each may do everything. */
typedef unsigned os_alloc_flags;
#define OS_ALLOC_DEFAULT 0u

/* Looking into another CPU's caches costs a system call at most, so allocations do it before they grow. */
#define OS_REMOTE_IS_QUICK true

/* Of variables that every CPU reads often and hardly any writes: they stand together, away from those that are written.
 * They need a value. */
#define READ_MOSTLY __attribute__((section("prudence_read_mostly")))

/* The size of the system's pages, or what the option page_size says in its place: a power of two, at least OS_PAGE_SIZE.
 * Constant from the start on, before anything is mapped. */
#define OS_PAGE_SIZE_MOST ((size_t)64 << 10)
extern HIDDEN size_t os_page_size;

/* Whether it may sleep and disturb other CPUs. */
static inline bool os_may_block(os_alloc_flags flags)
{
    (void)flags;
    return true;
}

/* Whether another CPU's threads may be disturbed for nothing but tidiness. */
static inline bool os_may_disturb(unsigned cpu)
{
    (void)cpu;
    return true;
}

/* What the first of two tries may do: the second comes after memory was waited for. */
static inline os_alloc_flags os_alloc_first(os_alloc_flags flags)
{
    return flags;
}

/* What an allocation of more than is needed may do. */
static inline os_alloc_flags os_alloc_larger(os_alloc_flags flags)
{
    return flags;
}

/* The node that pages lie on, where they were asked of `asked`: as far as is known before they are touched. */
static inline unsigned os_pages_node(const void *pages, unsigned asked)
{
    (void)pages;
    return asked;
}

/* The module (program, shared object) that has `address` in it is never unloaded from now on. Calls the dynamic loader,
 * so not from inside an allocation. */
void os_stay_loaded(const void *address);

/* Objects that move at a time between a CPU's caches and a node: on the mover's stack. */
#define OS_TRANSFER_MAX 128

/* Extensions of the slab layer, at most (slab/extension.h). */
#define OS_EXTENSIONS      11
#define OS_EXTENSION_SIDES 7 /* so many of them, the first, have a word in each slab */

/* Objects that a CPU's object cache may hold; a power of two below what the stack's word counts. */
#define OS_CACHE_OBJECTS_MAX 16384
#define OS_CACHE_OBJECTS_MIN 16

/* Caches grow to so many batches before demand says so; and one whose creator said how many bytes begins with them. */
#define OS_CACHE_START_BATCHES     2
#define OS_CACHE_BYTES_ARE_A_LIMIT false

/* What may be cached for a CPU, and for all of them (slab/budget.c), until options say otherwise. */
#define OS_CACHE_PER_CPU (UINT64_C(8) << 20)
#define OS_CACHE_TOTAL   (UINT64_C(256) << 20)
#define OS_CACHES_GIVE   true

static inline void os_copy_pointers(void **to, void *const *from, size_t count)
{
    copy_unseen(to, from, count * sizeof *to);
}

/* The largest slab of small objects. Where pages in a row may be missing, a slab of less is better
 * than none. */
#define OS_SLAB_BYTES_MAX   ((size_t)64 << 10)
#define OS_SLAB_MAY_BE_LESS false

/* Whether caches have windows: where programs inline fast paths. */
#if defined(__x86_64__)
#define OS_HAS_WINDOWS true
#else
#define OS_HAS_WINDOWS false
#endif

/* What a tracer sees; `word` is one of docs/explanation/design.md. os_event_until has the cookie of the objects too. */
#define os_event(word, cache, count) os_probe3(word, cache, (cache)->name, count)
#define os_event_until(word, cache, count, cookie)                                                 \
    os_probe4(word, cache, (cache)->name, count, (cookie).value)

void os_panic(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void os_abort(void) __attribute__((noreturn)); /* what the message needed has been said */

/* Misuse that has been reported. It ends a process; a kernel leaves alone what is misused, and goes on. */
static inline void __attribute__((noreturn)) os_misuse(void)
{
    os_abort();
}

#endif /* OS_POSIX_SYSTEM_H */
