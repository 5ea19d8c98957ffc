/* SPDX-License-Identifier: MIT */
/* Makes a few allocations for test_debugger.py, with breakpoints around them and a word to
 * watch. */
#include <stdio.h>
#include <stdlib.h>

#include <prudence/prudence.h>
#ifdef INLINED
#include <prudence/inline.h>
#endif

#define WARM 300 /* enough to open the fast paths */

volatile int watched;
void begin(void);
void end(void);

__attribute__((noinline)) void begin(void)
{
    __asm__ __volatile__("" ::: "memory");
}

__attribute__((noinline)) void end(void)
{
    __asm__ __volatile__("" ::: "memory");
}

static void *volatile kept;

static void allocate(struct prudence_cache *cache)
{
    kept = prudence_cache_alloc(cache);
    prudence_cache_free(cache, kept);
    kept = prudence_cache_alloc(cache);
    prudence_cache_free_deferred(cache, kept);
    kept = malloc(64);
    free(kept);
}

int main(void)
{
    struct prudence_cache *cache = prudence_cache_create("stepped", 64, NULL);

    for (int i = 0; i < WARM; i++)
        allocate(cache);
    begin();
    allocate(cache);
    watched = 1;
    kept = prudence_cache_alloc(cache); /* next */
    end();
    puts("done");
    return 0;
}
