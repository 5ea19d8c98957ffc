/* SPDX-License-Identifier: MIT */
/* CPUs, threads and readers of the misuse matrix. */
#define _GNU_SOURCE
#include "misuse.h"

#include <prudence/rcu.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

/* ----------------------------------------------------------------------------------------- CPUs */

/*
 * Free and deferred objects are kept for each CPU, so each step of a cell runs on a known CPU. The
 * home CPU depends on the process id, so cells run on different CPUs.
 */
bool stay_on_cpu(bool home)
{
    static int cpus[CPU_SETSIZE], count;
    cpu_set_t set;

    if (!count) {
        sched_getaffinity(0, sizeof set, &set);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &set))
                cpus[count++] = cpu;
    }
    CPU_ZERO(&set);
    CPU_SET((size_t)cpus[(getpid() + !home) % count], &set);
    sched_setaffinity(0, sizeof set, &set);
    return count > 1;
}

/* -------------------------------------------------------------------------------------- threads */

struct work {
    struct subject *subject;
    void (*end)(const struct subject *subject, void *object);
    bool at_home;
    bool stays; /* the thread does not end */
    sem_t done;
};

static void *do_work(void *argument)
{
    struct work *work = argument;

    stay_on_cpu(work->at_home);
    work->end(work->subject, work->subject->pointer);
    sem_post(&work->done);
    while (work->stays)
        pause();
    return NULL;
}

void end_in_thread(struct subject *subject,
                   void (*end)(const struct subject *subject, void *object), bool at_home,
                   bool stays)
{
    static struct work work;
    pthread_t thread;

    work.subject = subject;
    work.end = end;
    work.at_home = at_home;
    work.stays = stays;
    sem_init(&work.done, 0, 0);
    require(pthread_create(&thread, NULL, do_work, &work) == 0, "a thread");
    sem_wait(&work.done);
    if (!stays)
        pthread_join(thread, NULL);
}

static struct {
    bool inside;
    struct prudence_domain *domain;
    sem_t entered, leave, left;
} reader;

void synchronize(const struct subject *subject)
{
    if (subject->domain)
        prudence_domain_synchronize(subject->domain);
    else
        prudence_synchronize();
}

static void *read_on(void *unused)
{
    (void)unused;
    prudence_domain_read_lock(reader.domain);
    sem_post(&reader.entered);
    sem_wait(&reader.leave);
    prudence_domain_read_unlock(reader.domain);
    sem_post(&reader.left);
    while (true)
        pause();
    return NULL;
}

void reader_enters(const struct subject *subject)
{
    pthread_t thread;

    reader.domain = subject->domain ? subject->domain : prudence_default_domain();
    sem_init(&reader.entered, 0, 0);
    sem_init(&reader.leave, 0, 0);
    sem_init(&reader.left, 0, 0);
    require(pthread_create(&thread, NULL, read_on, NULL) == 0, "a reader");
    sem_wait(&reader.entered);
    reader.inside = true;
}

void reader_leaves(void)
{
    if (!reader.inside)
        return;
    sem_post(&reader.leave);
    sem_wait(&reader.left);
    reader.inside = false;
}
