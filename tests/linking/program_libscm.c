/* SPDX-License-Identifier: MIT */
/*
 * A program for libscm's later header, <libscm.h>: clocks and regions are numbers of the thread, in
 * all files of the program, and a region that has expired goes on as an empty one. The second file
 * is this one with OTHER_FILE. Compiles as C++, too.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libscm.h>

#ifdef __cplusplus
extern "C"
#else
extern
#endif
    void *
    allocated_elsewhere(int region);

#ifdef OTHER_FILE

void *allocated_elsewhere(int region)
{
    return scm_malloc_in_region(40, region);
}

#else

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int ended; /* objects */

static int count(void *object)
{
    ended += object != NULL;
    return 0;
}

static void clocks(void)
{
    int finalizer = scm_register_finalizer(count), first = scm_register_clock();
    int second = scm_register_clock();
    void *object = scm_malloc(8);

    CHECK(first > 0 && second == first + 1);
    scm_set_finalizer(object, finalizer);
    scm_refresh(object, 0);
    scm_refresh_with_clock(object, 1, (unsigned)second);
    scm_refresh_with_clock(object, 0, 0);
    scm_tick_clock(0);
    scm_tick_clock((unsigned)first);
    scm_tick_clock((unsigned)second);
    scm_collect();
    CHECK(!ended);
    scm_tick_clock((unsigned)second);
    scm_collect();
    CHECK(ended == 1);
    scm_unregister_clock(first);
    CHECK(scm_register_clock() == first);
    while (scm_register_clock() > 0)
        second++;
    CHECK(second == SCM_MAX_CLOCKS - 1 && errno == ENOSPC);
    errno = 0;
    scm_tick_clock(SCM_MAX_CLOCKS);
    CHECK(errno == EINVAL);
}

static void regions(void)
{
    int one = scm_create_region(), other = scm_create_region();
    char *text;

    CHECK(one >= 0 && other >= 0 && one != other);
    text = (char *)allocated_elsewhere(one);
    CHECK(text);
    strcpy(text, "in the first");
    scm_refresh(text, 1); /* the region */
    scm_refresh_region_with_clock(one, 2, 1);
    scm_tick();
    CHECK(!strcmp(text, "in the first"));
    CHECK(scm_malloc_in_region(8, one));
    scm_global_refresh_region(other, 0);
    for (int i = 0; i < 3; i++) {
        scm_tick();
        scm_tick_clock(1);
        scm_global_tick();
    }
    scm_collect();
    CHECK(scm_malloc_in_region(8, one)); /* has expired */
    scm_refresh_region(one, 0);
    scm_unregister_region(other);
    CHECK(!scm_malloc_in_region(8, other) && errno == EINVAL);
    CHECK(scm_create_region() == other);
    while (scm_create_region() >= 0)
        ;
    CHECK(errno == ENOSPC && !scm_malloc_in_region(8, SCM_MAX_REGIONS) && errno == EINVAL);
    CHECK(!scm_malloc_in_region(8, -1) && errno == EINVAL);
}

static void *another_thread(void *unused)
{
    CHECK(!scm_malloc_in_region(8, 0)); /* numbers are the thread's */
    CHECK(scm_create_region() == 0 && scm_register_clock() == 1);
    return unused;
}

int main(void)
{
    pthread_t thread;

    clocks();
    regions();
    CHECK(!pthread_create(&thread, NULL, another_thread, NULL) && !pthread_join(thread, NULL));
    puts("numbers agree");
    return 0;
}

#endif
