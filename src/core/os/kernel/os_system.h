/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Differences between a process and a kernel that are known at compile time. */
#ifndef OS_KERNEL_SYSTEM_H
#define OS_KERNEL_SYSTEM_H

#include "base/base.h"
#include "events.h"

typedef gfp_t os_alloc_flags;
#define OS_ALLOC_DEFAULT GFP_KERNEL

/* Returns whether to wait for grace periods. A caller that may reclaim may sleep and has interrupts
 * on. But __GFP_NORETRY prefers failure to waiting, and other threads wait for a caller that is
 * reclaiming now. */
static inline bool os_may_block(os_alloc_flags flags)
{
    return gfpflags_allow_blocking(flags) && !(flags & __GFP_NORETRY) &&
           !(current->flags & PF_MEMALLOC);
}

/* False, because an allocation would wait for each CPU that it interrupts, for milliseconds with
 * virtual CPUs and few objects each time. kernel/shrinker.c drains quiet CPUs. */
#define OS_REMOTE_IS_QUICK false

/* Marks variables that every CPU reads often and hardly any writes. */
#define READ_MOSTLY __read_mostly

#define os_page_size ((size_t)PAGE_SIZE)

/* Returns whether another CPU may be interrupted for mere tidiness. Isolated CPUs (isolcpus,
 * nohz_full) may not. Objects there are taken by tasks that run there, by destruction, and before
 * the OOM killer runs. The lock is for newer kernels, which replace their masks at run time. */
static inline bool os_may_disturb(unsigned cpu)
{
    bool may;

    rcu_read_lock();
    may = housekeeping_cpu((int)cpu, HK_TYPE_DOMAIN) && housekeeping_cpu((int)cpu, HK_TYPE_TICK);
    rcu_read_unlock();
    return may || cpu == raw_smp_processor_id();
}

/* Flags for the first of two tries, which does not go as far as the OOM killer: latent objects may
 * be all that is missing, and are waited for before the second. */
static inline os_alloc_flags os_alloc_first(os_alloc_flags flags)
{
    return (flags & ~(__GFP_NOFAIL | __GFP_RETRY_MAYFAIL)) | __GFP_NORETRY | __GFP_NOWARN;
}

/* Flags for more pages than needed, which must cost others nothing: no reclaim and no reserves. */
static inline os_alloc_flags os_alloc_larger(os_alloc_flags flags)
{
    return (os_alloc_first(flags) & ~(__GFP_RECLAIM | __GFP_HIGH | __GFP_MEMALLOC)) |
           __GFP_NOMEMALLOC;
}

/* Returns the node that the pages lie on. Another node than `asked` may have helped out. */
static inline unsigned os_pages_node(const void *pages, unsigned asked)
{
    (void)asked;
    return (unsigned)page_to_nid(virt_to_page(pages));
}

/* objects, three quarters of a kilobyte of kernel stack; more than SLUB's slabs of one page have
 * of the smallest objects that wait for readers (SELinux's data of an inode, 73) */
#define OS_TRANSFER_MAX 96

/* Maximum number of extensions of the slab layer (slab/extension.h). */
#define OS_EXTENSIONS      1
#define OS_EXTENSION_SIDES 1

/* A grace period takes milliseconds, in which a CPU may defer some ten thousand small objects. But
 * most of a kernel's caches are hardly used on most CPUs. So they begin with a single refill: 47
 * objects, whose arrays fill a kilobyte, or OS_TRANSFER_MAX small ones. They grow only by demand,
 * and up to the limit set by their creator. Growing copies with interrupts off, so PREEMPT_RT
 * limits it. */
#define OS_CACHE_OBJECTS_MIN       47
#define OS_CACHE_BYTES_MIN         ((size_t)8192)
#define OS_CACHE_START_BATCHES     0
#define OS_CACHE_BYTES_ARE_A_LIMIT true
#define OS_CACHE_OBJECTS_MAX       (IS_ENABLED(CONFIG_PREEMPT_RT) ? 16384 : 65536)

/* Bytes that may be cached for a CPU, and for all of them (slab/reclaim/budget.c). Each cache here
 * has its own limit (kernel/caches.c), and the shrinker empties them, so they do not give to each
 * other. */
#define OS_CACHE_PER_CPU    (UINT64_C(16) << 20)
#define OS_CACHE_TOTAL      (UINT64_C(1) << 30)
#define OS_BUDGET_IS_SHARED false

/* Copies by words, because memcpy is a call, and moves bytes on processors said to be quick at
 * that. */
static inline void os_copy_pointers(void **to, void *const *from, size_t count)
{
#ifdef CONFIG_X86_64
    asm volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
#else
    memcpy(to, from, count * sizeof *to);
#endif
}

/* Slabs of larger objects would need too many contiguous pages. */
#define OS_OBJECT_SIZE_MAX ((size_t)32 << 10)

/* Objects that a slab should have: the fewest that SLUB wants on 64 CPUs. Most caches have few
 * objects, and slabs for more would hold much that is unused (ADR 3). 8 KB are enough for two
 * refills of the smallest objects. Order 3 is the largest that the page allocator works for
 * (PAGE_ALLOC_COSTLY_ORDER), and may be missing all the same. */
#define OS_SLAB_OBJECTS     32
#define OS_SLAB_BYTES_MIN   ((size_t)(PAGE_SIZE > 8192 ? PAGE_SIZE : 8192))
#define OS_SLAB_BYTES_MAX   ((size_t)PAGE_SIZE << PAGE_ALLOC_COSTLY_ORDER)
#define OS_SLAB_MAY_BE_LESS true

/* No fast paths are inlined here, and the linear mapping has no addresses to spare. */
#define OS_HAS_WINDOWS false

/* Pages within slabs are the kernel's own. */
#define OS_PURGES_WITHIN_SLABS false

/* No large block has margins. */
#define OS_HAS_MARGINS false

/* Tracepoints of the same names (kernel/trace.h), without cookies. */
#define os_event(word, cache, count)               os_event_##word((cache)->name, count)
#define os_event_until(word, cache, count, cookie) os_event(word, cache, count)

/* Called after misuse was reported, when the guilty caller is long gone. Locks may be held and
 * interrupts off, so a BUG would take the machine down. Instead the misused object is not touched,
 * and may leak. */
static inline void os_misuse(void)
{
    WARN_ON(1);
}

/* Ends execution where none can continue. */
static inline void __noreturn os_abort(void)
{
    BUG();
}
__printf(1, 2) void os_report(const char *format, ...);
#define os_report_misuse os_report
#define os_panic(...)    (os_report(__VA_ARGS__), os_abort())

/* No thread writes options into a kernel's memory. */
static inline void os_act_if_asked(void)
{
}

#endif /* OS_KERNEL_SYSTEM_H */
