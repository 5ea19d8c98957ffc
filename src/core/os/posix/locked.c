/* SPDX-License-Identifier: MIT */
/*
 * The fast paths of processes without restartable sequences (os_percpu.h). Each does what the
 * sequence does, and refuses what the sequence refuses, as the owner of a line. A thread that holds
 * a number needs no atomic operation for that (bias.c); other threads claim the line.
 */
#include "os/os.h"

typedef bool locked_act(struct os_percpu_line *line, void **object);

/* Owns a line where the thread holds no number, has lost it, or is in a signal handler that
 * interrupted the library. */
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

static bool locked_do(locked_act *act, void *lines, void **object)
{
    struct os_percpu_line *line = locked_take(lines, object);
    bool done = false;

    if (likely(line != NULL)) {
        done = act(line, object);
        locked_put(line);
    }
    return done;
}

void *os_percpu_locked_pop(void *lines)
{
    void *object = os_percpu_biased_pop(lines);

    if (unlikely(!object))
        locked_do(owner_pop, lines, &object);
    return object;
}

bool os_percpu_locked_push(void *lines, void *object)
{
    return os_percpu_biased_push(lines, object) || locked_do(owner_push, lines, &object);
}

bool os_percpu_locked_append(void *lines, void *object)
{
    return os_percpu_biased_append(lines, object) || locked_do(owner_append, lines, &object);
}
