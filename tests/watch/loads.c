/* SPDX-License-Identifier: MIT */
/*
 * A program that loads a library while it is watched (test_ask.py). The library's constructor waits
 * for the first thread. The program obeys lines of standard input and answers each with "done":
 *
 *   dump          writes a dump with the calls of a reader that keeps a grace period from ending
 *   keep N        allocates N objects of the cache 'routes' and keeps them
 *   loaded        lets the constructor go on; answers when the library is loaded
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <prudence/rcu.h>
#include <prudence/stats.h>

static sem_t constructing, released;

void loads_construct(void); /* called by the library's constructor */

void loads_construct(void)
{
    sem_post(&constructing);
    sem_wait(&released);
}

static void *load(void *path)
{
    if (!dlopen(path, RTLD_NOW))
        abort();
    return NULL;
}

static sem_t inside;

static void *read_for_ever(void *unused)
{
    prudence_read_lock();
    sem_post(&inside);
    for (;;)
        pause();
    return unused;
}

/* Defers until the reader has answered with its calls. */
static void dump(struct prudence_cache *routes)
{
    pthread_t reader;

    pthread_create(&reader, NULL, read_for_ever, NULL);
    sem_wait(&inside);
    for (int i = 0; i < 1000; i++)
        prudence_cache_free_deferred(routes, prudence_cache_alloc(routes));
    for (int i = 0; i < 10; i++)
        prudence_dump(STDERR_FILENO);
}

int main(int count, char **arguments)
{
    struct prudence_cache *routes = prudence_cache_create("routes", 100, NULL);
    pthread_t loader;
    char line[256];

    if (count != 2)
        return 1;
    sem_init(&constructing, 0, 0);
    sem_init(&released, 0, 0);
    sem_init(&inside, 0, 0);
    pthread_create(&loader, NULL, load, arguments[1]);
    sem_wait(&constructing);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        long objects = 0;

        if (strncmp(line, "dump", 4) == 0) {
            dump(routes);
        } else if (sscanf(line, "keep %ld", &objects) != 1) {
            sem_post(&released);
            pthread_join(loader, NULL);
        }
        while (objects--)
            if (!prudence_cache_alloc(routes))
                abort();
        puts("done");
    }
    return 0;
}
