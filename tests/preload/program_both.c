/* SPDX-License-Identifier: MIT */
/* Uses libprudence and malloc() on the same memory, which requires that one copy serves both. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

struct node {
    char *text;
};
static struct node *current;
static int stop;

static void *read_all_the_time(void *errors)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        struct node *node;

        prudence_read_lock();
        node = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
        if (strcmp(node->text, "some text") != 0)
            ++*(unsigned long *)errors;
        prudence_read_unlock();
    }
    return NULL;
}

static struct node *make(void)
{
    struct node *node = malloc(sizeof *node);

    node->text = strdup("some text");
    return node;
}

int main(void)
{
    unsigned long errors = 0;
    struct prudence_stats stats;
    pthread_t reader;

    current = make();
    pthread_create(&reader, NULL, read_all_the_time, &errors);
    for (unsigned i = 0; i < 200000; i++) {
        struct node *old = current;

        __atomic_store_n(&current, make(), __ATOMIC_RELEASE);
        prudence_free_deferred(old->text);
        prudence_free_deferred(old);
        free(prudence_malloc(i % 3000));
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    pthread_join(reader, NULL);
    prudence_synchronize();
    prudence_stats(&stats);
    printf("%s errors %lu deferred %llu readers_mode %s\n", prudence_version(), errors,
           (unsigned long long)stats.deferred_frees, stats.readers_mode);
    return errors != 0;
}
