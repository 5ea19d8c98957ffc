/* SPDX-License-Identifier: MIT */
/*
 * A program to be watched, compiled by the tests of this folder. The program obeys lines of
 * standard input and answers each line with a line:
 *
 *   defer N       allocates and defers N objects of the cache 'routes' (100 bytes); answers "done"
 *   keep N        allocates N objects and keeps them
 *   free N        allocates and frees N objects
 *   safe N        defers N objects of a cache 'safe' and ends the grace period while they are in
 *                 CPUs' caches
 *   set of N      defers N objects of a cache 'of a set', whose domain has the default one as a
 *                 member
 *   more N        makes N caches 'more 01', 'more 02', ... with 1000, 2000, ... live objects of 64
 *                 bytes
 *   name TEXT     makes a cache of that name, with a live object
 *   enter         a thread 'parser' enters a section and stays; answers with the thread's id
 *   leave         the thread leaves; waits for all deferred objects of 'routes'
 *   stats         answers with the statistics as JSON
 *   churn         starts a thread that makes and destroys caches and domains
 *   storm         starts a thread that allocates, frees and defers
 *   set NAME VALUE      sets an option; answers with the error number
 *   fork          answers with the child's id; the child then obeys the lines, and the parent waits
 *                 until the child ends
 *   copy          the same by clone(), without the library's handlers
 *   exec          executes sleep
 *   hide          makes the process undumpable, so that others cannot read the memory
 *   dump core     crashes, and leaves a core file if limits allow
 *   crash, quit
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prudence/rcu.h>
#include <prudence/stats.h>

static struct prudence_cache *routes;
static sem_t inside, leave;
static pthread_t parser;
static int parser_tid;
static struct rlimit limits; /* of core files */

static void *parse(void *ignored)
{
    parser_tid = gettid();
    pthread_setname_np(pthread_self(), "parser"); /* naming another thread would need /proc */
    prudence_read_lock();
    sem_post(&inside);
    sem_wait(&leave);
    prudence_read_unlock();
    return ignored;
}

static void enter(void)
{
    pthread_create(&parser, NULL, parse, NULL);
    sem_wait(&inside);
    printf("%d\n", parser_tid);
}

static void *churn(void *ignored)
{
    for (;;) {
        struct prudence_domain *domain =
            prudence_domain_create("short", PRUDENCE_DOMAIN_MEMB, NULL);
        struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
        struct prudence_cache *cache = prudence_cache_create("short", 200, &attr);

        for (int i = 0; i < 300; i++)
            prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
        while (prudence_cache_destroy(cache))
            prudence_cache_barrier(cache);
        prudence_domain_destroy(domain);
    }
    return ignored;
}

static void *storm(void *ignored)
{
    for (;;) {
        void *objects[500];

        for (int i = 0; i < 500; i++)
            objects[i] = prudence_cache_alloc(routes);
        for (int i = 0; i < 500; i++)
            i % 2 ? prudence_cache_free(routes, objects[i])
                  : prudence_cache_free_deferred(routes, objects[i]);
    }
    return ignored;
}

static void start(void *(*body)(void *))
{
    pthread_t thread;

    pthread_create(&thread, NULL, body, NULL);
    puts("done");
}

static void allocate(long count, int deferred)
{
    for (long i = 0; i < count; i++) {
        void *object = prudence_cache_alloc(routes);

        if (deferred)
            prudence_cache_free_deferred(routes, object);
    }
    puts("done");
}

static void free_some(long count)
{
    for (long i = 0; i < count; i++)
        prudence_cache_free(routes, prudence_cache_alloc(routes));
    puts("done");
}

static void safe(long count)
{
    struct prudence_domain *domain =
        prudence_domain_create("by hand", PRUDENCE_DOMAIN_MANUAL, NULL);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *cache = prudence_cache_create("safe", 100, &attr);

    for (long i = 0; i < count; i++)
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    prudence_manual_advance(domain);
    prudence_manual_advance(domain);
    puts("done");
}

static void defer_in_a_set(long count)
{
    struct prudence_domain *members[] = {prudence_default_domain()},
                           *set = prudence_domain_create_set("a set", members, 1);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = set};
    struct prudence_cache *cache = prudence_cache_create("of a set", 100, &attr);

    for (long i = 0; i < count; i++)
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    puts("done");
}

static void more(int count)
{
    for (int i = 1; i <= count; i++) {
        char name[32];
        struct prudence_cache *cache;

        snprintf(name, sizeof name, "more %02d", i);
        cache = prudence_cache_create(name, 64, NULL);
        for (int k = 0; k < 1000 * i; k++)
            if (!prudence_cache_alloc(cache))
                abort();
    }
    puts("done");
}

static void go_on_as_a_child(long child)
{
    int status;

    if (!child) {
        printf("%d\n", (int)getpid());
        return;
    }
    waitpid((pid_t)child, &status, 0);
    exit(0);
}

static void obey(char *line)
{
    char name[64], value[64];

    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "defer %63s", value) == 1)
        allocate(atol(value), 1);
    else if (sscanf(line, "keep %63s", value) == 1)
        allocate(atol(value), 0);
    else if (strncmp(line, "name ", 5) == 0)
        puts(prudence_cache_alloc(prudence_cache_create(line + 5, 64, NULL)) ? "done" : "");
    else if (sscanf(line, "free %63s", value) == 1)
        free_some(atol(value));
    else if (sscanf(line, "safe %63s", value) == 1)
        safe(atol(value));
    else if (sscanf(line, "set of %63s", value) == 1)
        defer_in_a_set(atol(value));
    else if (sscanf(line, "more %63s", value) == 1)
        more(atoi(value));
    else if (sscanf(line, "set %63s %63s", name, value) == 2)
        printf("%d\n", prudence_option_set(name, value));
    else if (strcmp(line, "enter") == 0)
        enter();
    else if (strcmp(line, "leave") == 0)
        sem_post(&leave), pthread_join(parser, NULL), prudence_cache_barrier(routes), puts("done");
    else if (strcmp(line, "stats") == 0)
        prudence_stats_print(stdout, PRUDENCE_STATS_JSON);
    else if (strcmp(line, "churn") == 0)
        start(churn);
    else if (strcmp(line, "storm") == 0)
        start(storm);
    else if (strcmp(line, "fork") == 0)
        go_on_as_a_child(fork());
    else if (strcmp(line, "copy") == 0)
        go_on_as_a_child(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0L));
    else if (strcmp(line, "hide") == 0)
        printf("%d\n", prctl(PR_SET_DUMPABLE, 0));
    else if (strcmp(line, "exec") == 0)
        execlp("sleep", "sleep", "60", (char *)NULL);
    else if (strcmp(line, "crash") == 0)
        abort();
    else if (strcmp(line, "dump core") == 0)
        setrlimit(RLIMIT_CORE, &limits), abort();
    else
        exit(0);
}

int main(void)
{
    struct rlimit none = {0, RLIM_INFINITY};
    char line[256];

    getrlimit(RLIMIT_CORE, &limits);
    none.rlim_max = limits.rlim_max;
    setrlimit(RLIMIT_CORE, &none);
    setvbuf(stdout, NULL, _IOLBF, 0);
    sem_init(&inside, 0, 0);
    sem_init(&leave, 0, 0);
    routes = prudence_cache_create("routes", 100, NULL);
    puts("ready");
    while (fgets(line, sizeof line, stdin))
        obey(line);
    return 0;
}
