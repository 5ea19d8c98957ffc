/* SPDX-License-Identifier: MIT */
/*
 * For processors without rseq assembly of ours. os_percpu_rseq is always false, so none of these
 * functions is ever called; every operation takes the line instead.
 */
#ifndef OS_POSIX_PERCPU_GENERIC_H
#define OS_POSIX_PERCPU_GENERIC_H

#define OS_PERCPU_HAS_RSEQ 0
#define OS_PERCPU_CLOSES   0

extern HIDDEN uint32_t os_percpu_cpus;

static inline void *os_percpu_pop(void *const *lines)
{
    (void)lines;
    return NULL;
}

static inline void *os_percpu_top(void *const *lines)
{
    (void)lines;
    return NULL;
}

static inline bool os_percpu_push(void *const *lines, void *object)
{
    (void)lines, (void)object;
    return false;
}

static inline bool os_percpu_append(void *const *lines, void *object)
{
    (void)lines, (void)object;
    return false;
}

static inline struct os_percpu_line *os_percpu_take_rseq(void *const *lines, uintptr_t token)
{
    (void)lines, (void)token;
    return NULL;
}

static inline void *os_percpu_remove(void *const *lines, unsigned cpu, uint64_t expected_head)
{
    (void)lines, (void)cpu, (void)expected_head;
    return NULL;
}

static inline bool os_percpu_add(void *const *lines, int64_t number)
{
    (void)lines, (void)number;
    return false;
}

static inline char *os_percpu_thread_pointer(void)
{
    return NULL;
}

static inline uint32_t os_percpu_number_at(ptrdiff_t rseq)
{
    (void)rseq;
    return UINT32_MAX;
}

#endif /* OS_POSIX_PERCPU_GENERIC_H */
