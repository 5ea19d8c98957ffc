/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Everything that the allocator asks of the system it runs in. One folder a system implements it
 * (posix/ for a process); the build's include path chooses, no file above asks where it is.
 *
 * None of these waits for a grace period or calls back into the layers above. But the functions of pages may be called by what
 * they call: the C library's functions that change mappings may be the program's own, and allocate. So they change no mapping
 * while the caller holds something (in a process: os_holds_nothing in os_lock.h), except where that is said.
 */
#ifndef OS_OS_H
#define OS_OS_H

#include "base/atomic.h"
#include "base/base.h"

#include "os_lock.h"     /* struct os_lock: sleeping lock with a rank, checked in debug builds */
#include "os_page_map.h" /* page -> its owner, in constant time */
#include "os_percpu.h"   /* per-CPU caches: fast paths and ownership */
#include "os_system.h"   /* constants; what an allocation may do */

/* The unit in which pages are counted, and in which the page map has entries. The system's own pages, os_page_size bytes
 * (os_system.h), are a power of two of such units, one or more. */
#define OS_PAGE_SIZE ((size_t)4096)

/* --- pages (the page source) ---
 * os_pages_alloc: `bytes` (a multiple of os_page_size, as in all of these functions) aligned to `alignment` (a
 * power of two; at least to os_page_size, since all are multiples of it), near `node`; NULL when the system, the option `limit` or an injected failure
 * says no. *zeroed (if given) tells whether they are known to be zero. os_pages_free takes exactly what
 * an alloc or resize gave. Any thread; a lock and at times a system call. os_pages_alloc_as is told
 * what it may do. */
void *os_pages_alloc(size_t bytes, size_t alignment, unsigned node, bool *zeroed);
void *os_pages_alloc_as(size_t bytes, size_t alignment, unsigned node, bool *zeroed,
                        os_alloc_flags flags);
void os_pages_free(void *pages, size_t bytes);

/* The memory of pages in use goes back to the system; false, with nothing changed: they have to be freed as others. When that
 * is done os_pages_set_aside counts so many bytes as neither used nor kept, until os_pages_take_back makes the pages free ones. */
bool os_pages_empty(void *pages, size_t bytes);
void os_pages_set_aside(size_t bytes);
void os_pages_take_back(void *pages, size_t bytes);

/* Frees the first `bytes` of pages, of which there are more. False, with nothing changed, where they are one piece. */
bool os_pages_cut(void *pages, size_t bytes);

/* Changes `bytes` that an alloc gave to `wanted`, in place or by moving page tables, never by
 * copying. The page map has `owner` for them, and for exactly what they are afterwards. Returns
 * where they are; NULL, with nothing changed, when that is not possible: then copy. */
void *os_pages_resize(void *pages, size_t bytes, size_t wanted, void *owner);

/* Freed pages are kept for reuse: up to the option retain, and what the demand of the last `decay`
 * lets expect. The rest goes back to the system by and by, whenever one of these functions is
 * called. os_pages_decay is for paths that run often: it costs a load while there is nothing to do,
 * and returns whether anything is waiting (os_pages_decaying). os_pages_trim gives all back, and
 * returns how many bytes. */
bool os_pages_decay(void);
bool os_pages_decaying(void);
uint64_t os_pages_kept(void);   /* bytes, without a lock */
uint64_t os_pages_retain(void); /* the option */
size_t os_pages_trim(void);

/*
 * A window (ADR 50): places of `bytes` each (a power of two, at most 2 MiB) side by side, for the slabs of one cache;
 * NULL: there is none for it, now and later. os_window_take gives the lowest free place as os_pages_alloc gives pages,
 * to be freed by os_pages_free; NULL: none is available. The thread that has made a slab there notes that it is live
 * as soon as it is in the page map, and that it is not before it leaves that. *words, which live as long as the window, then
 * tell where live places lie without a gap: from `base` on, `extent` bytes. All places are free when it is unmade.
 */
struct os_window;
struct os_window_words {
    uintptr_t base; /* OS_WINDOW_NOWHERE at first, set by its user; atomic, as the next */
    uint64_t extent;
};
#define OS_WINDOW_NOWHERE ((uintptr_t)1 << (BITS_OF_POINTER - 1)) /* far from every place */
#define BITS_OF_POINTER   (8 * sizeof(uintptr_t))
struct os_window *os_window_make(size_t bytes, struct os_window_words *words);
void os_window_unmake(struct os_window *window);
void *os_window_take(struct os_window *window, bool *zeroed);
void os_window_note(struct os_window *window, const void *pages, bool live);
bool os_window_has(const struct os_window *window, const void *pages);

/* Whether the system has become short of memory since the last call: caches had better be emptied. */
bool os_memory_is_short(void);

struct os_pages_stats {
    uint64_t used, used_peak, retained, metadata;
};
void os_pages_stats(struct os_pages_stats *stats);
void os_pages_set_limit(uint64_t bytes); /* 0: none */
uint64_t os_pages_limit(void);
void os_pages_set_retain(uint64_t bytes);
void os_pages_set_decay(uint64_t nanoseconds); /* 0: at once */
void os_pages_set_huge(bool wanted); /* asks for pages of 2 MiB, for what is mapped from now on */

/* Reserved pages may not be touched, except those that are opened (zeroed then; false: the system
 * has no memory for it) and not closed again. */
void *os_pages_reserve(size_t bytes);
bool os_pages_open(void *pages, size_t bytes);
void os_pages_close(void *pages, size_t bytes);

/* Pages of the page source that may not be touched until they are let go; they read as zero then. Both do it as a whole, or
 * return false: the system refuses. */
bool os_pages_guard(void *pages, size_t bytes);
bool os_pages_unguard(void *pages, size_t bytes);
/* The same, but they keep what is in them. */
bool os_pages_protect(void *pages, size_t bytes, bool closed);

/* --- faults: `look` sees every access that the system refuses, in a signal handler, before the
 * program's own handler or the end of the process. Called again, it steps in front of a handler that
 * was installed since. One thread at a time. --- */
struct os_fault {
    const void *address;
    void *code; /* the instruction; NULL: not known */
    enum os_access { OS_ACCESS_UNKNOWN, OS_ACCESS_READ, OS_ACCESS_WRITE } access;
};
void os_fault_watch(void (*look)(const struct os_fault *fault));

/* --- metadata: zeroed, 64-byte aligned, apart from the pages that users see; NULL on failure.
 * Blocks of more than OS_META_LOCK_FREE bytes take no lock (a signal handler may ask). --- */
#define OS_META_LOCK_FREE ((size_t)8192)
void *os_meta_alloc(size_t bytes);
void *os_meta_alloc_as(size_t bytes, os_alloc_flags flags);
void os_meta_free(void *meta, size_t bytes);

/* The same for arrays that sequences of a CPU's caches write to (os_percpu.h): a thread may be in a page fault there while
 * another takes its line and replaces them, so in a process they stay mapped for ever. */
void *os_arrays_alloc(size_t bytes);
void os_arrays_free(void *arrays, size_t bytes);

/* --- failure injection for tests: called before each of the above and each page-map extension;
 * true makes it fail. NULL in normal life. --- */
extern bool (*os_memory_fails)(void);

/* --- CPUs and nodes. Counts are constant after start. The current CPU is only a hint. --- */
unsigned os_cpu_count(void);
unsigned os_cpu_current(void);
unsigned os_node_count(void);
unsigned os_node_of_cpu(unsigned cpu);

/* --- barriers ---
 * os_full_fence orders everything before it with everything after it, on this CPU. os_membarrier
 * makes every running thread of the process execute one; only where it is available. */
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
os_clock_coarse_ns(void); /* the same; in a process cheaper, and up to a timer interrupt behind */
void os_sleep_ns(uint64_t nanoseconds);
static inline void os_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* --- 128 bits that nobody outside of the process can guess, others at each call --- */
void os_secret(uint64_t words[2]);

/* --- idle work: a helper thread, never needed for progress. os_idle_start makes it if there is none:
 * makes a thread, so not from inside an allocation; always with the same `work`, which it calls while
 * that returns true. Then it sleeps without waking until the next kick, which does nothing where there
 * is no helper. It is a thread as others: it is `work` that asks whether a CPU had idle time lately
 * (os_idle_seen, only by the helper; false when nobody knows). os_idle_move_to makes the caller run on
 * a CPU; false when it may not. --- */
void os_idle_start(bool (*work)(void));
void os_idle_kick(void);
bool os_idle_seen(unsigned cpu);
bool os_idle_move_to(unsigned cpu);

/* --- threads of our own: os_thread_start runs `body` on a detached one, named so (up to 15 characters; a
 * constant), on one CPU if that is not negative, else where the process may run; with so many bytes of
 * stack, or as much as the program's threads have (0), if `body` calls functions of the program's. False
 * when there can be none. It allocates, so no lock of ours is held. os_word_wait sleeps while *word
 * is `value`, at most so long (0: for ever; a thread of ours then counts as waiting), and may return without a reason; os_word_wake ends the
 * sleep of all threads that wait for the word. errno may change. --- */
bool os_thread_start(const char *name, int cpu, size_t stack, void (*body)(void *argument),
                     void *argument);
/* A thread of ours has nothing to do for the program, or has again: a process of which only waiting ones are left ends. */
void os_thread_waits(bool waits);
unsigned os_thread_count(void);    /* of the process; 0: the system does not tell */
uint64_t os_clock_boot_ns(void);   /* goes on while the machine sleeps */
bool os_thread_exists(int thread); /* some thread of the process has that id */
bool os_thread_is_newer(int thread, uint64_t boot_ns); /* ... and was started after that time */

/* Whether the thread wants a CPU, whether it has one or not, and how many ns it has had one in its life (to 10 ms, where the
 * system has no clock of the thread). False: the system does not tell. Some system calls. */
bool os_thread_wants_cpu(int thread, bool *wants, uint64_t *had);
#define OS_THREAD_NAME_MAX 32
void os_thread_name(int thread, char name[OS_THREAD_NAME_MAX]); /* "": there is none */
void os_word_wait(uint32_t *word, uint32_t value, uint64_t nanoseconds);
void os_word_wake(uint32_t *word);
void os_word_wake_some(uint32_t *word, unsigned count); /* the threads that have slept longest */

/* --- traces: the calls that led here, innermost first ---
 * os_trace_prime makes them possible; it may allocate, so not from inside an allocation.
 * os_trace_capture gives up to `count` frames and returns how many (0 until it is primed, and inside
 * itself); it neither allocates nor takes a lock. os_trace_capture_from does the same, but begins at a function of the
 * library that is running, and has called this, perhaps through others: `frame_address` is its __builtin_frame_address(0). 0 also where that
 * cannot be done. os_trace_describe makes a line of a frame, with the module and the offset in it, which begins with two spaces; os_trace_print writes these lines as messages. */
#define OS_TRACE_MAX  32u
#define OS_TRACE_LINE 500
void os_trace_prime(void);
unsigned os_trace_capture(void **frames, unsigned count);
unsigned os_trace_capture_from(const void *frame_address, void **frames, unsigned count);
void os_trace_describe(unsigned place, const void *frame, char line[OS_TRACE_LINE]);
void os_trace_print(void *const *frames, unsigned count);

/* The trace of a thread of this process, by a signal to it (SIGURG): 0 if it does not answer within
 * so many ns, or while another is being asked for. os_thread_trace_start, before the first, installs
 * the handler. */
void os_thread_trace_start(void);
unsigned os_thread_trace(int thread, void **frames, unsigned count, uint64_t patience);

/* --- messages: one line each on standard error, without allocating. os_panic and os_abort, which do
 * not return, are in os_system.h. --- */
void os_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

#ifdef PRUDENCE_DEBUG
#define debug_assert(condition)                                                                    \
    ((condition) ? (void)0                                                                         \
                 : os_panic("assertion failed: %s (%s:%d)", #condition, __FILE__, __LINE__))
#else
#define debug_assert(condition) ((void)0)
#endif

#endif /* OS_OS_H */
