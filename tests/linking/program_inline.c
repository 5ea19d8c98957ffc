/* SPDX-License-Identifier: MIT */
/*
 * A program (or with -DPLUGIN a shared object for host.c) with inlined fast paths, which
 * test_inline.py builds and links in every possible way. Compiles as C and as C++, and without
 * INLINED uses calls only. It checks that the library has counted every operation, object
 * for object; with an argument it misuses the library.
 */
#ifdef INLINED
#include <prudence/inline.h>
#endif
#include <prudence/prudence.h>
#include <prudence/stats.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS     20000
#define THREADS    3
#define CHECK(say) ((say) ? (void)0 : fail(__LINE__, #say))

#if defined(PRUDENCE_INLINED) && PRUDENCE_INLINED
#define WAY "inlined"
#else
#define WAY "called"
#endif

static struct prudence_cache *cache;

static void fail(int line, const char *what)
{
    printf("line %d: not so: %s\n", line, what);
    fflush(stdout);
    abort();
}

static void *work(void *unused)
{
    void *spare = prudence_cache_alloc(cache);

    for (int i = 0; i < ROUNDS; i++) {
        void *object = prudence_cache_alloc(cache);

        CHECK(object && spare && object != spare);
        memset(object, 1, 64);
        memset(spare, 2, 64);
        if (i % 2)
            prudence_cache_free(cache, object);
        else
            prudence_cache_free_deferred(cache, object);
        spare = prudence_cache_replace(cache, spare);
    }
    prudence_cache_free(cache, spare);
    return unused;
}

static void work_in_threads(void)
{
    pthread_t threads[THREADS];
    struct prudence_cache_stats stats;

    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, work, NULL));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(!prudence_cache_stats(cache, &stats));
    CHECK(stats.allocations == THREADS * (2 * ROUNDS + 1));
    CHECK(stats.deferred_frees == THREADS * (ROUNDS + ROUNDS / 2));
    CHECK(stats.frees == THREADS * (ROUNDS / 2 + 1));
    CHECK(stats.objects_live == 0);
}

static int all(void)
{
    CHECK((cache = prudence_cache_create("mine", 64, NULL)) != NULL);
    work_in_threads();
    CHECK(!prudence_cache_destroy(cache));
    printf(WAY "\n");
    fflush(stdout);
    return 0;
}

/* test_inline.py knows the expected end of each. */
static void misuse(const char *how)
{
    struct prudence_cache *other = prudence_cache_create("other", 64, NULL);
    char *object, *kept;

    cache = prudence_cache_create("mine", 64, NULL);
    object = (char *)prudence_cache_alloc(cache);
    kept = (char *)prudence_cache_alloc(cache);
    if (!strcmp(how, "interior"))
        prudence_cache_free(cache, object + 16);
    if (!strcmp(how, "foreign"))
        prudence_cache_free_deferred(cache, (char *)&cache);
    if (!strcmp(how, "wrong-cache"))
        kept = (char *)prudence_cache_replace(other, object);
    if (!strcmp(how, "double")) {
        prudence_cache_free(cache, object);
        prudence_cache_free(cache, kept);
        prudence_cache_free(cache, object);
    }
    if (!strcmp(how, "double-at-once")) {
        prudence_cache_free(cache, object);
        prudence_cache_free(cache, object);
    }
    if (!strcmp(how, "double-deferred")) {
        prudence_cache_free_deferred(cache, object);
        kept = (char *)prudence_cache_replace(cache, object);
    }
    if (!strcmp(how, "destroyed")) {
        prudence_cache_free(cache, object);
        prudence_cache_free(cache, kept);
        CHECK(!prudence_cache_destroy(cache));
        kept = (char *)prudence_cache_alloc(cache);
    }
    printf("%p: nothing was said\n", (void *)kept);
    fflush(stdout);
}

#ifdef PLUGIN
#ifdef __cplusplus
extern "C"
#endif
    int
    linking_run(void);

int linking_run(void)
{
    return all();
}

void never_called(const char *how);
void never_called(const char *how)
{
    misuse(how);
}
#else
int main(int count, char **names)
{
    if (count > 1)
        misuse(names[1]);
    else
        all();
    return 0;
}
#endif
