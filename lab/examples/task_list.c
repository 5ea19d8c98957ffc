/* SPDX-License-Identifier: MIT */
/*
 * A list of tasks that is walked, as `ls /proc` does, while tasks come and go. The walk held the
 * lock that every fork and exit needs; now it holds none. docs/how-to/example-task-list.md
 */
#include "example.h"

#include <prudence/rculist.h>

#define TASKS 100

struct task {
    struct prudence_list link;
    unsigned pid;
};

static struct prudence_list tasks = PRUDENCE_LIST_INIT(tasks); /* from the oldest to the newest */
static struct prudence_cache *cache;
static unsigned last_pid;

/* Called by one thread at a time. */
static void fork_task(void)
{
    struct task *task = prudence_cache_alloc(cache);

    MUST(task);
    task->pid = ++last_pid;
    prudence_list_add_tail_rcu(&task->link, &tasks);
}

static struct task *oldest(void)
{
    return prudence_list_entry(tasks.next, struct task, link);
}

/* Returns the number of tasks that the walk has met, or WRONG if pids do not rise from the head
 * on. */
static long walk(void)
{
    const struct task *task;
    unsigned last = 0;
    long count = 0;

    prudence_list_for_each_entry_rcu(task, &tasks, link)
    {
        if (task->pid <= last)
            return WRONG;
        last = task->pid;
        count++;
        meanwhile();
    }
    return count;
}

/* --------------------------------------------------------------------------------------- before */

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static long read_before(unsigned random)
{
    long count;

    pthread_rwlock_rdlock(&lock);
    count = walk();
    pthread_rwlock_unlock(&lock);
    return count == TASKS ? count : WRONG;
}

static void update_before(unsigned random)
{
    struct task *task;

    pthread_rwlock_wrlock(&lock);
    task = oldest();
    prudence_list_del_rcu(&task->link);
    fork_task();
    pthread_rwlock_unlock(&lock);
    prudence_cache_free(cache, task);
}

/* ---------------------------------------------------------------------------------------- after */

static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;

static long read_after(unsigned random)
{
    long count;

    prudence_read_lock();
    count = walk();
    prudence_read_unlock();
    return count;
}

/* Ends the oldest task, and begins a new one. */
static void update_after(unsigned random)
{
    struct task *task;

    pthread_mutex_lock(&writers);
    task = oldest();
    prudence_list_del_rcu(&task->link);
    if (mistake) /* as under the lock; the link of a removed task points to itself */
        prudence_list_init(&task->link);
    fork_task();
    pthread_mutex_unlock(&writers);
    prudence_cache_free_deferred(cache, task);
}

/* ---------------------------------------------------------------------------------------- check */

static void end_oldest(void)
{
    update_after(0);
}

static const char *check(void)
{
    example_meanwhile = end_oldest; /* in the middle of the walk */
    return read_after(0) == TASKS + 1 ? NULL : "a walk stays at a task that has ended";
}

static void set_up(void)
{
    MUST(cache = prudence_cache_create("tasks", sizeof(struct task), NULL));
    for (unsigned i = 0; i < TASKS; i++)
        fork_task();
}
