/* SPDX-License-Identifier: MIT */
/*
 * The fast paths of processes without restartable sequences (os_percpu.h). Each does what the
 * sequence does, and refuses what the sequence refuses, as the owner of a line. A thread that holds
 * a number needs no atomic operation for that (hold.c); other threads claim the line.
 */
#include "os/os.h"

static void *locked_pop(struct os_percpu_line *line)
{
    uint64_t word = load_relaxed(&line->stack_word);
    unsigned count = (unsigned)(word & STACK_COUNT_MASK);
    void *object;

    if (unlikely(!count))
        return NULL;
    object = line->stack[count - 1];
    line->stack[count - 1] = NULL; /* leak checkers look for pointers */
    store_relaxed(&line->stack_word, word + STACK_POP);
    return object;
}

static bool locked_push(struct os_percpu_line *line, void *object)
{
    unsigned count = stack_count(line);

    if (unlikely(count >= line->limit) || unlikely(line->stack[(long)count - 1] == object))
        return false;
    line->stack[count] = object;
    store_relaxed(&line->stack_word, load_relaxed(&line->stack_word) + 1);
    return true;
}

static bool locked_append(struct os_percpu_line *line, void *object)
{
    uint64_t tail = load_relaxed(&line->ring_tail);

    if (unlikely(os_percpu_is_at_stop(line)) ||
        unlikely(line->ring[(tail - 1) & line->ring_mask] == object))
        return false;
    line->ring[tail & line->ring_mask] = object;
    store_relaxed(&line->ring_tail, tail + 1);
    return true;
}

/* Owns a line as a thread that holds no number, or nothing but its line's number. */
static struct os_percpu_line *locked_take(void *lines, const void *token)
{
    struct os_percpu_line *line;

    os_busy_enter();
    line = os_percpu_take(lines, token);
    if (unlikely(!line))
        os_busy_leave();
    return line;
}

static void locked_put(struct os_percpu_line *line)
{
    os_percpu_release(line);
    os_busy_leave();
}

void *os_percpu_locked_pop(void *lines)
{
    struct os_percpu_line *line = os_percpu_step_in(lines);
    void *object = NULL;

    if (likely(line != NULL)) {
        object = locked_pop(line);
        os_percpu_step_out();
    } else if ((line = locked_take(lines, &object))) {
        object = locked_pop(line);
        locked_put(line);
    }
    return object;
}

bool os_percpu_locked_push(void *lines, void *object)
{
    struct os_percpu_line *line = os_percpu_step_in(lines);
    bool pushed = false;

    if (likely(line != NULL)) {
        pushed = locked_push(line, object);
        os_percpu_step_out();
    } else if ((line = locked_take(lines, &object))) {
        pushed = locked_push(line, object);
        locked_put(line);
    }
    return pushed;
}

bool os_percpu_locked_append(void *lines, void *object)
{
    struct os_percpu_line *line = os_percpu_step_in(lines);
    bool appended = false;

    if (likely(line != NULL)) {
        appended = locked_append(line, object);
        os_percpu_step_out();
    } else if ((line = locked_take(lines, &object))) {
        appended = locked_append(line, object);
        locked_put(line);
    }
    return appended;
}
