/* SPDX-License-Identifier: MIT */
/*
 * A program that loads a library while it is watched (test_ask.py). The library's constructor waits
 * for the first thread. The program obeys lines of standard input and answers each with "done":
 *
 *   keep N        allocates N objects of the cache 'routes' and keeps them
 *   loaded        lets the constructor go on; answers when the library is loaded
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include <prudence/prudence.h>

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

int main(int count, char **arguments)
{
    struct prudence_cache *routes = prudence_cache_create("routes", 100, NULL);
    pthread_t loader;
    char line[256];

    if (count != 2)
        return 1;
    sem_init(&constructing, 0, 0);
    sem_init(&released, 0, 0);
    pthread_create(&loader, NULL, load, arguments[1]);
    sem_wait(&constructing);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        long objects = 0;

        if (sscanf(line, "keep %ld", &objects) != 1) {
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
