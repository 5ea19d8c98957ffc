/* SPDX-License-Identifier: MIT */
/* A library that allocates when loaded, used and unloaded. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static char *held;
static pthread_key_t key;

__attribute__((constructor)) static void load(void)
{
    held = strdup("held");
    pthread_key_create(&key, free);
}

__attribute__((destructor)) static void unload(void)
{
    free(held);
    pthread_key_delete(key);
}

char *library_gives(size_t size);
char *library_gives(size_t size)
{
    free(pthread_getspecific(key));
    pthread_setspecific(key, malloc(100));
    return calloc(1, size);
}
