/* SPDX-License-Identifier: MIT */
/* The last program in docs/tutorial/locked-list.md, with the same list read by RCU. */
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct host {
    struct host *next;
    int number;
    int address, port; /* belong together, because the port is the address + 1 */
};

static struct host *hosts;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns 1 if the host exists and the address and the port fit together. */
static int lookup(int number)
{
    int fits = 0;

    prudence_read_lock();
    for (struct host *host = prudence_dereference(hosts); host;
         host = prudence_dereference(host->next))
        if (host->number == number)
            fits = host->port == host->address + 1;
    prudence_read_unlock();
    return fits;
}

static void change(int number, int address)
{
    struct host *fresh = prudence_malloc(sizeof *fresh), *old;
    struct host **link = &hosts;

    if (!fresh)
        abort();
    pthread_mutex_lock(&lock);
    while ((*link)->number != number)
        link = &(*link)->next;
    old = *link;
    *fresh = (struct host){old->next, number, address, address + 1};
    prudence_assign_pointer(*link, fresh);
    pthread_mutex_unlock(&lock);
    prudence_free_deferred(old);
}

static void add(int number)
{
    struct host *host = prudence_malloc(sizeof *host);

    if (!host)
        abort();
    *host = (struct host){hosts, number, 0, 1};
    hosts = host;
}

enum { HOSTS = 10, READERS = 4, LOOKUPS = 1000000 };
static int reading = READERS, misfits;

static void *look_up_often(void *unused)
{
    for (int i = 0; i < LOOKUPS; i++)
        if (!lookup(i % HOSTS))
            __atomic_fetch_add(&misfits, 1, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&reading, 1, __ATOMIC_RELEASE);
    return unused;
}

int main(void)
{
    pthread_t readers[READERS];
    int changes = 0;

    for (int i = 0; i < HOSTS; i++)
        add(i);
    for (int i = 0; i < READERS; i++)
        pthread_create(&readers[i], NULL, look_up_often, NULL);
    while (__atomic_load_n(&reading, __ATOMIC_ACQUIRE) > 0) {
        change(changes % HOSTS, changes);
        changes++;
    }
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    printf("%d lookups, %d changes, %d misfits\n", READERS * LOOKUPS, changes, misfits);
    return misfits != 0;
}
