/* SPDX-License-Identifier: MIT */
/*
 * The fast paths of processes without restartable sequences (os_percpu.h). Each does what the
 * sequence does, and refuses what the sequence refuses, as the owner of a line. A thread that holds
 * a number needs no atomic operation for that (hold.c); other threads claim the line.
 */
#include "os/os.h"

typedef bool locked_act(struct os_percpu_line *line, void **object);

static bool locked_pop(struct os_percpu_line *line, void **object)
{
    uint64_t word = load_relaxed(&line->stack_word);
    unsigned count = (unsigned)(word & STACK_COUNT_MASK);

    if (unlikely(!count))
        return false;
    *object = line->stack[count - 1];
    line->stack[count - 1] = NULL; /* leak checkers look for pointers */
    store_relaxed(&line->stack_word, word + STACK_POP);
    return true;
}

static bool locked_push(struct os_percpu_line *line, void **object)
{
    unsigned count = stack_count(line);

    if (unlikely(count >= line->limit) || unlikely(line->stack[(long)count - 1] == *object))
        return false;
    line->stack[count] = *object;
    store_relaxed(&line->stack_word, load_relaxed(&line->stack_word) + 1);
    return true;
}

static bool locked_append(struct os_percpu_line *line, void **object)
{
    uint64_t tail = load_relaxed(&line->ring_tail);

    if (unlikely(os_percpu_is_at_stop(line)) ||
        unlikely(line->ring[(tail - 1) & line->ring_mask] == *object))
        return false;
    line->ring[tail & line->ring_mask] = *object;
    store_relaxed(&line->ring_tail, tail + 1);
    return true;
}

/* Owns a line where os_percpu_step_in() refused: the thread holds no number, has lost it, or is in
 * a signal handler that interrupted the library. */
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

/* Inlined into each caller, so that the holder's way has no call. */
static inline __attribute__((always_inline)) bool locked_do(locked_act *act, void *lines,
                                                            void **object)
{
    struct os_percpu_line *line = os_percpu_step_in(lines);
    bool done = false;

    if (likely(line != NULL)) {
        done = act(line, object);
        os_percpu_step_out();
    } else if ((line = locked_take(lines, object))) {
        done = act(line, object);
        locked_put(line);
    }
    return done;
}

void *os_percpu_locked_pop(void *lines)
{
    void *object = NULL;

    locked_do(locked_pop, lines, &object);
    return object;
}

bool os_percpu_locked_push(void *lines, void *object)
{
    return locked_do(locked_push, lines, &object);
}

bool os_percpu_locked_append(void *lines, void *object)
{
    return locked_do(locked_append, lines, &object);
}
