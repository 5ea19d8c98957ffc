/* SPDX-License-Identifier: MIT */
/* The first program in docs/tutorial/locked-list.md, with a list under a lock. */
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

    pthread_mutex_lock(&lock);
    for (struct host *host = hosts; host; host = host->next)
        if (host->number == number)
            fits = host->port == host->address + 1;
    pthread_mutex_unlock(&lock);
    return fits;
}

static void change(int number, int address)
{
    pthread_mutex_lock(&lock);
    for (struct host *host = hosts; host; host = host->next)
        if (host->number == number) {
            host->address = address;
            host->port = address + 1;
        }
    pthread_mutex_unlock(&lock);
}

static void add(int number)
{
    struct host *host = malloc(sizeof *host);

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
