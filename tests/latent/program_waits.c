/* SPDX-License-Identifier: MIT */
/*
 * A program on liburcu that knows what it makes wait: OBJECTS callbacks that free BYTES each, of
 * which each tenth queues a second one; one object of two blocks; a wait; a deferral.
 *
 *     program_waits plain | fork | kill | none
 */
#if defined(WITH_QSBR)
#include <urcu-qsbr.h>
#elif defined(WITH_BP)
#include <urcu-bp.h>
#else
#include <urcu.h>
#endif
#include <urcu-defer.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OBJECTS 1000
#define BYTES   1000

struct object {
    struct rcu_head head;
    int again;
    void *more;
    char rest[BYTES - sizeof(struct rcu_head) - 16];
};

static void end(struct rcu_head *head)
{
    struct object *object = caa_container_of(head, struct object, head);

    if (object->again) {
        object->again = 0;
        call_rcu(head, end);
        return;
    }
    free(object->more);
    free(object);
}

static void queue_all(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct object *object = calloc(1, sizeof *object);

        if (!object)
            abort();
        object->again = i % 10 == 0;
        if (i == 0 && !(object->more = malloc(100000)))
            abort();
        call_rcu(&object->head, end);
    }
}

/* The second one waits for what callbacks queued. */
static void barrier_of_all(void)
{
    rcu_barrier();
    rcu_barrier();
}

int main(int count, char **words)
{
    const char *word = count == 2 ? words[1] : "";

    if (!strcmp(word, "none"))
        return 5;
    rcu_register_thread();
    rcu_defer_register_thread();
    queue_all(OBJECTS);
    synchronize_rcu();
    defer_rcu(free, malloc(10));
    barrier_of_all();
    if (!strcmp(word, "fork")) {
        call_rcu_before_fork();
        if (!fork()) {
            call_rcu_after_fork_child();
            queue_all(10);
            barrier_of_all();
            _exit(0);
        }
        call_rcu_after_fork_parent();
        wait(NULL);
    }
    if (!strcmp(word, "kill"))
        raise(SIGKILL);
    rcu_defer_barrier();
    rcu_defer_unregister_thread();
    rcu_unregister_thread();
    return 0;
}
