/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What differs between a process and a kernel and is known when the module is compiled.
 */
#ifndef OS_KERNEL_SYSTEM_H
#define OS_KERNEL_SYSTEM_H

#include "base/base.h"
#include "events.h"

typedef gfp_t os_alloc_flags;
#define OS_ALLOC_DEFAULT GFP_KERNEL

/* Whether to wait for grace periods. A caller that may reclaim may sleep, and has interrupts on. But a caller that
 * wants to know soon that there is nothing (__GFP_NORETRY) does not want to wait, and others wait for a caller that is
 * reclaiming at this moment. */
static inline bool os_may_block(os_alloc_flags flags)
{
    return gfpflags_allow_blocking(flags) && !(flags & __GFP_NORETRY) &&
           !(current->flags & PF_MEMALLOC);
}

/* An allocation does not interrupt other CPUs to see what lies there, for it would wait for each: with
 * virtual CPUs that is milliseconds, for each 64 objects. kernel/shrinker.c empties quiet CPUs. */
#define OS_REMOTE_IS_QUICK false

/* Of variables that every CPU reads often and hardly any writes. */
#define READ_MOSTLY __read_mostly

/* The size of the system's pages. */
#define os_page_size ((size_t)PAGE_SIZE)

/* Whether another CPU may be interrupted for nothing but tidiness: not one that was set apart (isolcpus, nohz_full),
 * where each interrupt counts. What lies there is taken by tasks that run there, by destruction, and before something
 * is killed for memory. */
static inline bool os_may_disturb(unsigned cpu)
{
    return cpu == raw_smp_processor_id() ||
           (housekeeping_cpu((int)cpu, HK_TYPE_DOMAIN) && housekeeping_cpu((int)cpu, HK_TYPE_TICK));
}

/* The first of two tries does not go as far as the OOM killer: latent objects may be all that is
 * missing, and are waited for before the second. */
static inline os_alloc_flags os_alloc_first(os_alloc_flags flags)
{
    return (flags & ~(__GFP_NOFAIL | __GFP_RETRY_MAYFAIL)) | __GFP_NORETRY | __GFP_NOWARN;
}

/* More pages than are needed, as long as they cost nobody anything: nothing is reclaimed for them, and no reserve is
 * touched. */
static inline os_alloc_flags os_alloc_larger(os_alloc_flags flags)
{
    return (os_alloc_first(flags) & ~(__GFP_RECLAIM | __GFP_HIGH | __GFP_MEMALLOC)) |
           __GFP_NOMEMALLOC;
}

/* The node that pages lie on, where they were asked of `asked`: another one may have helped out. */
static inline unsigned os_pages_node(const void *pages, unsigned asked)
{
    (void)asked;
    return (unsigned)page_to_nid(virt_to_page(pages));
}

/* Half a kilobyte of a kernel's stack. */
#define OS_TRANSFER_MAX 64

/* Extensions of the slab layer, at most (slab/extension.h). */
#define OS_EXTENSIONS      1
#define OS_EXTENSION_SIDES 1

/* A grace period takes milliseconds: of small objects a CPU defers some ten thousand meanwhile. But most caches of a kernel
 * are hardly used on most CPUs: they begin with one refill, grow by demand alone, and may grow to what their creator said.
 * When they grow they are copied with interrupts off. */
#define OS_CACHE_OBJECTS_MIN       64
#define OS_CACHE_START_BATCHES     0
#define OS_CACHE_BYTES_ARE_A_LIMIT true
#define OS_CACHE_OBJECTS_MAX       (IS_ENABLED(CONFIG_PREEMPT_RT) ? 16384 : 65536)

/* What may be cached for a CPU, and for all of them (slab/budget.c). Each cache here has its own limit (kernel/caches.c), and
 * the shrinker empties them, so they do not give to each other. */
#define OS_CACHE_PER_CPU (UINT64_C(16) << 20)
#define OS_CACHE_TOTAL   (UINT64_C(1) << 30)
#define OS_CACHES_GIVE   false

/* memcpy is a call, and one that moves bytes where processors are said to be quick at that. */
static inline void os_copy_pointers(void **to, void *const *from, size_t count)
{
#ifdef CONFIG_X86_64
    asm volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
#else
    memcpy(to, from, count * sizeof *to);
#endif
}

/* Order 3 is the largest that the page allocator works for (PAGE_ALLOC_COSTLY_ORDER), and may be
 * missing all the same. */
#define OS_SLAB_BYTES_MAX   ((size_t)PAGE_SIZE << PAGE_ALLOC_COSTLY_ORDER)
#define OS_SLAB_MAY_BE_LESS true

/* Nothing inlines fast paths here, and the linear mapping has no addresses to spare. */
#define OS_HAS_WINDOWS false

/* Tracepoints (kernel/trace.h), of the same names; without cookies. */
#define os_event(word, cache, count)               os_event_##word((cache)->name, count)
#define os_event_until(word, cache, count, cookie) os_event(word, cache, count)

/* Misuse that has been reported, but whose caller is long gone: a lock may be held and interrupts be off, so that a
 * BUG would be the end of the machine. What is misused is left alone, and so may leak. */
static inline void os_misuse(void)
{
    WARN_ON(1);
}

/* What cannot go on. */
static inline void __noreturn os_abort(void)
{
    BUG();
}
__printf(1, 2) void os_report(const char *format, ...);
#define os_panic(...) (os_report(__VA_ARGS__), os_abort())

#endif /* OS_KERNEL_SYSTEM_H */
