/* SPDX-License-Identifier: MIT */
/*
 * An idle process makes no wake-ups: after the library has done all work, even with garbage
 * remaining, none of its threads runs. By default the process has no threads but the program's own.
 *
 * ctest: not-with sanitizers (counts wake-ups, and a sanitizer may have a separate thread)
 */
#define _GNU_SOURCE

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "posix.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"

#if defined(__SANITIZE_THREAD__)
#define SANITIZER_HAS_A_THREAD 1 /* and it wakes up */
#else
#define SANITIZER_HAS_A_THREAD 0
#endif

static unsigned threads, at_work;

/* Returns the context switches of all threads but this one, and how many of those are awake. */
static unsigned long long switches_of_others(void)
{
    unsigned long long sum = 0, number;
    DIR *tasks = opendir("/proc/self/task");
    char path[300], line[200];
    struct dirent *entry;

    threads = at_work = 0;
    while ((entry = readdir(tasks))) {
        FILE *file;

        if (entry->d_name[0] == '.')
            continue;
        threads++;
        if (atoi(entry->d_name) == gettid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        file = fopen(path, "r");
        while (file && fgets(line, sizeof line, file)) {
            at_work += !strncmp(line, "State:", 6) && !strchr(line + 6, 'S');
            if (sscanf(line, "voluntary_ctxt_switches: %llu", &number) == 1 ||
                sscanf(line, "nonvoluntary_ctxt_switches: %llu", &number) == 1)
                sum += number;
        }
        if (file)
            fclose(file);
    }
    closedir(tasks);
    return sum;
}

static int work_then_idle(void *own_threads)
{
    struct prudence_cache *cache = prudence_cache_create("idle", 512, NULL);
    struct prudence_cache *overflowing = prudence_cache_create("overflowing", 4096, NULL);
    unsigned long long before, after;
    prudence_gp_t unfinished;

    prudence_read_lock();
    for (unsigned i = 0; i < 20000; i++)
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    for (unsigned i = 0; i < 2000; i++)
        prudence_cache_free_deferred(overflowing, prudence_cache_alloc(overflowing));
    unfinished = prudence_gp_start_poll();
    prudence_read_unlock();
    (void)unfinished; /* an abandoned grace period; garbage that no thread wants */
    after = switches_of_others();
    do { /* background work may finish, however long that takes on this machine */
        before = after;
        pause_ms(100);
        after = switches_of_others();
    } while (after != before || at_work);
    pause_ms(400);
    after = switches_of_others();
    printf("threads: %u, switches: %llu\n", threads, after - before);
    fflush(stdout);
    return threads == *(unsigned *)own_threads && after == before ? 42 : 1;
}

TEST(an_idle_process_makes_no_wakeups)
{
    struct child_result result;
    unsigned one = 1;

    if (SANITIZER_HAS_A_THREAD)
        skip();
    child_run(work_then_idle, &one, &result);
    print_message("%s", result.output);
    assert_child_result(&result);
}

static bool cpus_are_idle;

static bool are_idle(unsigned cpu)
{
    return cpus_are_idle;
}

static int with_background(void *threads_then)
{
    posix_idle_inject(are_idle);
    prudence_option_set("background", "1");
    return work_then_idle(threads_then);
}

/* The helper sleeps without a timeout if there is no work, or no idle time to do it. */
TEST(nor_does_the_idle_helper)
{
    struct child_result result;
    unsigned two = 2;

    if (SANITIZER_HAS_A_THREAD)
        skip();
    for (unsigned idle = 0; idle < 2; idle++) {
        cpus_are_idle = idle;
        child_run(with_background, &two, &result);
        print_message("%s", result.output);
        assert_child_result(&result);
    }
}

SUITE()
