/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Everything that the allocator asks of the system it runs in. One folder per system implements
 * this interface (posix/ for a process). The build's include path chooses the folder, so no file
 * above asks where it runs.
 *
 * None of these functions waits for a grace period or calls back into the layers above. But the
 * functions of pages may be reentered, because they call the C library's functions that change
 * mappings, which the program may have replaced by functions that allocate. So they change no
 * mapping while the caller holds something (in a process: os_holds_nothing in os_lock.h), unless
 * their comment says so.
 */
#ifndef OS_OS_H
#define OS_OS_H

#include "base/atomic.h"
#include "base/base.h"

#include "os_lock.h"     /* struct os_lock, a sleeping lock with a rank, checked in debug builds */
#include "os_page_map.h" /* maps a page to its owner in constant time */
#include "os_percpu.h"   /* per-CPU caches: fast paths and ownership */
#include "os_system.h"   /* constants; allocation flags */

/* Unit in which pages are counted, and of one page-map entry. A page of the system (os_page_size
 * bytes, os_system.h) is a power of two of these units. */
#define OS_PAGE_SIZE ((size_t)4096)

/* --- pages (the page source) ---
 * os_pages_alloc returns `bytes` bytes near `node`, aligned to `alignment` (a power of two;
 * never less than os_page_size). It returns NULL if the system, the option `limit` or an
 * injected failure refuses, and sets *zeroed, if given, when the pages are known to be zero.
 * `bytes` is a multiple of os_page_size in all of these functions. os_pages_free takes exactly
 * the range that an alloc or a resize returned. Any thread may call these functions; they take a
 * lock and sometimes make a system call. os_pages_alloc_as also takes flags that restrict how it
 * may get memory. */
void *os_pages_alloc(size_t bytes, size_t alignment, unsigned node, bool *zeroed);
void *os_pages_alloc_as(size_t bytes, size_t alignment, unsigned node, bool *zeroed,
                        os_alloc_flags flags);
void os_pages_free(void *pages, size_t bytes);

/* os_pages_empty purges pages that stay in use. If it returns false, nothing has changed and the
 * pages must be freed normally. If it returns true, the caller calls os_pages_set_aside, which
 * counts the bytes as neither used nor kept until os_pages_take_back makes the pages free.
 * os_pages_may_empty returns false if os_pages_empty does whatever the system says. */
bool os_pages_empty(void *pages, size_t bytes);
bool os_pages_may_empty(const void *pages);
void os_pages_set_aside(size_t bytes);
void os_pages_take_back(void *pages, size_t bytes);

/* Makes memory within used pages zero: clears what was touched, and purges parts that hardly were.
 * At least 16 MB. The caller holds nothing. In a process only. */
void os_pages_zero(void *memory, size_t bytes);

/* Frees the first `bytes` of a longer run of pages. Returns false, with nothing changed, if the
 * pages are one mapping that cannot be cut. */
bool os_pages_cut(void *pages, size_t bytes);

/* Changes the size of an allocation from `bytes` to `wanted`, in place or by moving page tables,
 * never by copying. The page map has `owner` for the old range, and afterwards for exactly the
 * new one. Returns the new address, or NULL with nothing changed if that is impossible; the
 * caller then copies. */
void *os_pages_resize(void *pages, size_t bytes, size_t wanted, void *owner);

/* Freed pages are kept for reuse, up to the option `retain` and the demand expected from the
 * last `decay` period. Calls of these functions purge the rest bit by bit. os_pages_decay is for
 * paths that run often. It costs one load while there is nothing to do, and returns whether
 * pages still wait to be purged, as os_pages_decaying does. os_pages_trim purges all kept pages
 * and returns the bytes purged. */
bool os_pages_decay(void);
bool os_pages_decaying(void);
uint64_t os_pages_kept(void);   /* in bytes; takes no lock */
uint64_t os_pages_spare(void);  /* most bytes of free slabs worth keeping; takes no lock */
uint64_t os_pages_retain(void); /* value of the option */
size_t os_pages_trim(void);

/*
 * A window (ADR 50) is a row of places of `bytes` each (a power of two, at most 2 MiB) for the
 * slabs of one cache. os_window_make returns NULL if the cache can have no window, now or later.
 * os_window_take returns the lowest free place, as os_pages_alloc would, or NULL if none is
 * available; os_pages_free frees the place. The thread that made a slab there notes the place as
 * live once the slab is in the page map, and as not live before the slab leaves the map. From then
 * on *words, which live as long as the window, say where live places lie without a gap: `extent`
 * bytes from `base`, or none if many of the cache's `slabs` are elsewhere. Slabs outside of the
 * window are noted only for their number. All places must be free when the window is unmade.
 */
struct os_window;
struct os_window_words {
    uintptr_t base; /* set to OS_WINDOW_NOWHERE by the cache at first; atomic, like `extent` */
    uint64_t extent;
};
#define OS_WINDOW_NOWHERE ((uintptr_t)1 << (BITS_OF_POINTER - 1)) /* far from every place */
#define BITS_OF_POINTER   (8 * sizeof(uintptr_t))
struct os_window *os_window_make(size_t bytes, struct os_window_words *words);
void os_window_unmake(struct os_window *window);
void *os_window_take(struct os_window *window, bool *zeroed);
void os_window_note(struct os_window *window, const void *pages, bool live, uint64_t slabs);
bool os_window_has(const struct os_window *window, const void *pages);

/* Returns whether the system has become short of memory since the last call. The caller should
 * then empty caches. */
bool os_memory_is_short(void);

/* Returns the bytes of memory that the machine has, or the smallest limit of the process's control
 * groups, if that is less. Returns 0 if the system does not say. Reads some files. */
uint64_t os_memory_allowed(void);

struct os_pages_stats {
    uint64_t used, used_peak, retained, metadata;
};
void os_pages_stats(struct os_pages_stats *stats);
void os_pages_set_limit(uint64_t bytes); /* 0 means no limit */
uint64_t os_pages_limit(void);
void os_pages_set_retain(uint64_t bytes);
void os_pages_set_decay(uint64_t nanoseconds); /* 0 purges at once */
void os_pages_set_huge(bool wanted);           /* requests pages of 2 MiB for later mappings */

/* Reserved pages may not be touched until they are opened, and not after they are closed. Opened
 * pages are zeroed. os_pages_open returns false if the system has no memory. */
void *os_pages_reserve(size_t bytes);
bool os_pages_open(void *pages, size_t bytes);
void os_pages_close(void *pages, size_t bytes);

/* os_pages_guard makes pages of the page source inaccessible until os_pages_unguard; they then
 * read as zero. Each guards or unguards the whole range, or returns false if the system refuses. */
bool os_pages_guard(void *pages, size_t bytes);
bool os_pages_unguard(void *pages, size_t bytes);
/* Does the same, but the pages keep their contents. */
bool os_pages_protect(void *pages, size_t bytes, bool closed);

/* --- metadata: zeroed and 64-byte aligned, in pages that users never see; NULL on failure.
 * Blocks of more than OS_META_LOCK_FREE bytes take no lock, so a signal handler may allocate
 * them. --- */
#define OS_META_LOCK_FREE ((size_t)8192)
void *os_meta_alloc(size_t bytes);
void *os_meta_alloc_as(size_t bytes, os_alloc_flags flags);
void os_meta_free(void *meta, size_t bytes);

/* Allocates and frees arrays that the sequences of a CPU's caches write to (os_percpu.h). A
 * thread may be in a page fault there while another takes its line and replaces the arrays, so
 * in a process they stay mapped forever. */
void *os_arrays_alloc(size_t bytes);
void os_arrays_free(void *arrays, size_t bytes);

/* --- failure injection for tests: called before each allocation above, before pages are opened
 * or guarded, and before each extension of the page map. If it returns true, that fails. NULL in
 * normal operation. --- */
extern bool (*os_memory_fails)(void);

/* --- CPUs and nodes. Counts are constant after start; the current CPU is only a hint. --- */
unsigned os_cpu_count(void);
unsigned os_cpu_current(void);
unsigned os_node_count(void);
unsigned os_node_of_cpu(unsigned cpu);

/* --- barriers ---
 * os_full_fence orders everything before it with everything after it on this CPU. os_membarrier
 * makes every running thread of the process execute such a fence; call it only if
 * os_membarrier_available(). --- */
static inline void os_full_fence(void)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    __asm__ __volatile__("lock; addq $0, -8(%%rsp)" ::: "memory", "cc");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}
bool os_membarrier_available(void);
void os_membarrier(void);

/* --- time and waiting --- */
uint64_t os_clock_ns(void); /* monotonic */
uint64_t
os_clock_coarse_ns(void); /* monotonic; in a process cheaper, and late by up to a timer tick */
void os_sleep_ns(uint64_t nanoseconds);
/* Returns the deadline `nanoseconds` from now, which is not 0; UINT64_MAX if that overflows. */
static inline uint64_t os_clock_after(uint64_t nanoseconds)
{
    uint64_t now = os_clock_ns();

    return nanoseconds < UINT64_MAX - now ? now + nanoseconds : UINT64_MAX;
}
static inline void os_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* --- 128 bits that no program outside the process can guess, different at each call --- */
void os_secret(uint64_t words[2]);

/* --- idle work: a helper thread, never needed for progress. os_idle_start creates the helper if
 * there is none, so call it outside allocations, and always with the same `work`. The helper
 * calls `work` while that returns true, then sleeps until the next kick, which does nothing if
 * there is no helper. The helper is an ordinary thread, so `work` must ask whether a CPU had
 * idle time lately. os_idle_seen reports that to the helper, and returns false if the system does
 * not say. os_idle_move_to moves the caller to a CPU, and returns false if the system refuses.
 * --- */
void os_idle_start(bool (*work)(void));
void os_idle_kick(void);
bool os_idle_seen(unsigned cpu);
bool os_idle_move_to(unsigned cpu);

/* --- threads of our own ---
 * os_thread_start runs `body` on a detached thread called `name` (a constant of up to 15
 * characters). If `cpu` is not negative the thread runs there, else wherever the process may
 * run. Its stack has `stack` bytes; 0 gives it the size of the program's threads, for a `body`
 * that calls the program's functions. Returns false if no thread can be made. It allocates, so
 * the caller holds no lock of ours.
 *
 * os_word_wait sleeps while *word is `value`, for at most `nanoseconds`, and may return early. 0
 * means forever, and a thread of ours then counts as waiting. os_word_wake wakes all threads
 * that wait for the word. Both may change errno. --- */
bool os_thread_start(const char *name, int cpu, size_t stack, void (*body)(void *argument),
                     void *argument);
/* Says that a thread of ours has nothing to do for the program, or has work again. The process
 * ends once only waiting threads remain. */
void os_thread_waits(bool waits);
unsigned os_thread_count(void);    /* of the process; 0 if unknown */
uint64_t os_clock_boot_ns(void);   /* advances while the machine sleeps */
bool os_thread_exists(int thread); /* whether the process has that thread */
/* Returns whether the thread was made in a copy that was noticed late (not `whole`). False with few
 * calls, where the system is not asked. */
bool os_thread_lives_in_child(int thread, bool whole);
bool os_thread_is_newer(int thread, uint64_t boot_ns); /* and it was started after that time */

/* Sets *wants if the thread wants a CPU, whether it has one or not, and *had to the thread's
 * total CPU time in ns (to 10 ms if the system has no clock for the thread). Returns false if
 * the system does not say. Makes several system calls. */
bool os_thread_wants_cpu(int thread, bool *wants, uint64_t *had);
#define OS_THREAD_NAME_MAX 32
void os_thread_name(int thread, char name[OS_THREAD_NAME_MAX]); /* "" if it has none */
void os_word_wait(uint32_t *word, uint32_t value, uint64_t nanoseconds);
void os_word_wake(uint32_t *word);
void os_word_wake_some(uint32_t *word, unsigned count); /* those that have slept longest */

/* --- traces: the chain of calls, innermost first ---
 * os_trace_prime makes traces possible; it may allocate, so call it outside allocations.
 * os_trace_capture stores up to `count` frames and returns how many. It returns 0 until traces
 * are primed, and inside itself; it neither allocates nor takes a lock. os_trace_capture_from
 * does the same from a running function of the library that called it, perhaps through others;
 * `frame_address` is that function's __builtin_frame_address(0). 0 also means that unwinding
 * from there failed. os_trace_describe formats a frame as a line that begins with two spaces and
 * has the module and the offset in it, and takes no lock if _dl_find_object is there (trace.c);
 * os_trace_print reports one such line per frame.
 *
 * A trace that is kept also keeps what os_trace_rank returned at the capture. os_trace_print_kept
 * then names the modules that were loaded at that time, and says if one has been unloaded. --- */
#define OS_TRACE_MAX  32u
#define OS_TRACE_LINE 500
void os_trace_prime(void);
unsigned os_trace_capture(void **frames, unsigned count);
unsigned os_trace_capture_from(const void *frame_address, void **frames, unsigned count);
void os_trace_describe(unsigned place, const void *frame, char line[OS_TRACE_LINE]);
void os_trace_print(void *const *frames, unsigned count);
unsigned os_trace_rank(void *const *frames, unsigned count);
void os_trace_print_kept(void *const *frames, unsigned count, unsigned rank);

/* Captures the trace of a thread of this process by sending it SIGURG. Returns 0 if the thread
 * does not answer within `patience` ns, or while another trace is being taken.
 * os_thread_trace_start installs the handler and must be called first. */
void os_thread_trace_start(void);
unsigned os_thread_trace(int thread, void **frames, unsigned count, uint64_t patience);

/* --- messages: one line each on standard error, without allocating. os_system.h has os_panic
 * and os_abort, which do not return. --- */
void os_report(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a misuse, after which a process ends. */
void os_report_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

#ifdef PRUDENCE_DEBUG
#define debug_assert(condition)                                                                    \
    ((condition) ? (void)0                                                                         \
                 : os_panic("assertion failed: %s (%s:%d)", #condition, __FILE__, __LINE__))
#else
#define debug_assert(condition) ((void)0)
#endif

/* Makes a number fit a narrower type. The caller knows that nothing is lost; debug builds check it.
 * A plain cast is for values that are cut off on purpose, such as counts that wrap. */
#ifdef PRUDENCE_DEBUG
#define narrow(type, value)                                                                        \
    __extension__({                                                                                \
        type narrow_;                                                                              \
        debug_assert(!__builtin_add_overflow((value), 0, &narrow_));                               \
        narrow_;                                                                                   \
    })
#else
#define narrow(type, value) ((type)(value))
#endif

#endif /* OS_OS_H */
