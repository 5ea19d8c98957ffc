/* SPDX-License-Identifier: MIT */
/*
 * Log buffers (<prudence/log.h>). There are two, and readers fill one.
 *
 * A reader takes a place by an addition to the buffer's `used`. The addition that crosses the end
 * of the buffer gets no place, and stores where the entries end; no later addition succeeds. At
 * most one addition crosses the end, inside a section. So a grace period after readers were sent to
 * the other buffer, `used`, `end` and all entries are final.
 *
 * A flush holds `flushing` across the grace period, but no thread waits for it, because `flushing`
 * is only ever tried.
 */
#include <prudence/log.h>

#include <errno.h>

#include "base/atomic.h"
#include "os/os.h"
#include "race_detector.h"
#include "tables/attributes.h"
#include "tables/waiting.h"

#include <prudence/rcu.h>

#define BYTES_MOST ((size_t)1 << 40)

struct log_buffer {
    uint64_t used; /* bytes taken; atomic. If above the size, the buffer is full and `end` is set */
    uint64_t end;
    char *entries; /* constant */
};

/* Laid out by cache lines, not by size. NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct prudence_log {
    struct log_buffer *current; /* atomic */
    size_t bytes;               /* size of a buffer; constant, like the domain */
    struct prudence_domain *domain;
    struct log_buffer buffers[2] __attribute__((aligned(CACHE_LINES_APART)));
    uint64_t dropped; /* atomic */
    uint32_t flushing;
};

struct prudence_log *prudence_log_create(size_t bytes, struct prudence_domain *domain)
{
    static const char what[] = "prudence_log_create";
    struct prudence_log *log;

    if (bytes < 8 || bytes > BYTES_MOST) {
        os_report("%s: %zu bytes: not from 8 to 2 to the power of 40", what, bytes);
        errno = EINVAL;
        return NULL;
    }
    if (!attributes_domain_is_valid(what, "log", domain))
        return NULL;
    bytes = round_up(bytes, 8);
    log = prudence_aligned_alloc(CACHE_LINES_APART, sizeof *log);
    if (!log)
        return NULL;
    *log = (struct prudence_log){.bytes = bytes,
                                 .domain = domain ? domain : prudence_default_domain()};
    log->current = &log->buffers[0];
    log->buffers[0].entries = prudence_malloc(2 * bytes);
    if (!log->buffers[0].entries) {
        prudence_free(log);
        return NULL;
    }
    log->buffers[1].entries = log->buffers[0].entries + bytes;
    return log;
}

int prudence_log_destroy(struct prudence_log *log)
{
    if (!log)
        return EINVAL;
    if (load_relaxed(&log->flushing))
        return EBUSY;
    prudence_free(log->buffers[0].entries);
    prudence_free(log);
    return 0;
}

/* Takes a place in the buffer, or returns NULL if there is no room. */
static void *take_place(const struct prudence_log *log, struct log_buffer *buffer, size_t size)
{
    uint64_t before;

    tell_acquire(buffer);
    if (size > log->bytes || load_relaxed(&buffer->used) > log->bytes)
        return NULL;
    size = round_up(size, 8);
    before = add_relaxed(&buffer->used, size);
    if (likely(before + size <= log->bytes))
        return buffer->entries + before;
    if (before <= log->bytes)
        store_relaxed(&buffer->end, before);
    return NULL;
}

void *prudence_log_reserve(struct prudence_log *log, size_t size)
{
    void *place;

    if (!log || size == 0)
        return NULL;
    /* Acquire: the flush that made this buffer current has emptied it. */
    place = take_place(log, load_acquire(&log->current), size);
    if (unlikely(!place))
        add_relaxed(&log->dropped, 1);
    return place;
}

/* Runs in the thread that holds `flushing`. */
static void flush(struct prudence_log *log,
                  void (*write)(void *context, const void *entries, size_t bytes), void *context)
{
    struct log_buffer *full = log->current;
    struct log_buffer *empty = &log->buffers[full == &log->buffers[0]];
    uint64_t used;

    store_relaxed(&empty->used, (uint64_t)0);
    tell_release(empty);
    store_release(&log->current, empty);
    if (prudence_domain_synchronize(log->domain))
        os_panic("prudence_log_flush: the domain refused the grace period of a flush");
    used = load_relaxed(&full->used);
    if (used > log->bytes)
        used = load_relaxed(&full->end);
    if (used) {
        os_foreign_call("the function that writes a log out");
        write(context, full->entries, used);
    }
}

int prudence_log_flush(struct prudence_log *log,
                       void (*write)(void *context, const void *entries, size_t bytes),
                       void *context)
{
    int error;

    if (!log || !write)
        return EINVAL;
    error = waiting_error("prudence_log_flush", "of a log", "", log->domain,
                          __builtin_return_address(0));
    if (error)
        return error;
    if (exchange_acquire(&log->flushing, 1))
        return EBUSY;
    tell_acquire(&log->flushing);
    flush(log, write, context);
    tell_release(&log->flushing);
    store_release(&log->flushing, 0u);
    return 0;
}

uint64_t prudence_log_dropped(const struct prudence_log *log)
{
    return log ? load_relaxed(&log->dropped) : 0;
}
