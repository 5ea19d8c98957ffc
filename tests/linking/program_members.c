/* SPDX-License-Identifier: MIT */
/*
 * Uses the core of the library and, with USES_TABLES, USES_SCM and USES_URCU, other members of the
 * static library. Shows that each has entered itself (ADR 26): fork takes its locks, a child may
 * use it, short-term memory is in the statistics, and a free of a short-term object is reported.
 * Built, linked and loaded in many ways by test_members.py, which also chooses when it runs:
 *
 *   main()                     with WHEN_MAIN
 *   a constructor              with WHEN_CONSTRUCTOR, which is its priority
 *   before all constructors    with WHEN_FIRST (of an executable)
 *   run_members()              of a plugin, with WHEN_CALLED
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <prudence/hash.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/scm.h>
#include <prudence/stats.h>
#include <prudence/urcu-compat.h>

static void require(bool good, const char *what)
{
    if (good)
        return;
    printf("not so: %s\n", what);
    fflush(stdout);
    _exit(1);
}

/* Runs `body` in a child. Returns the signal that ended the child, or 0. */
static int child_ends_by(void (*body)(void))
{
    int status = 0;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        alarm(60);
        body();
        _exit(0);
    }
    require(pid > 0 && waitpid(pid, &status, 0) == pid, "a child");
    require(WIFSIGNALED(status) || WEXITSTATUS(status) == 0, "the child's exit status");
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* ------------------------------------------------------------------------------------- members */

#ifdef USES_TABLES
static struct prudence_hash *table;
static struct prudence_hash_node nodes[2];

static void use_tables(void)
{
    if (!table)
        table = prudence_hash_create("members", NULL);
    require(table, "a table");
    prudence_hash_add_duplicate(table, 1, &nodes[0]);
    require(prudence_hash_count(table) == 1 && prudence_hash_remove(table, &nodes[0]) == 0,
            "an update of the table");
}

/* An update that needs no lock of the core. */
static __attribute__((unused)) void step_of_tables(void)
{
    prudence_hash_add_duplicate(table, 2, &nodes[1]);
    prudence_hash_remove(table, &nodes[1]);
}
#endif

#ifdef USES_SCM
static void *short_term;

static void use_scm(void)
{
    if (!short_term) {
        short_term = scm_malloc(40);
        require(short_term && scm_refresh(short_term, 5) == 0, "a date");
    }
}

static __attribute__((unused)) void step_of_scm(void)
{
    struct scm_region_info info;

    scm_get_region_info(&info);
}

static void free_short_term(void)
{
    freopen("/dev/null", "w", stderr);
    prudence_free(short_term);
}

static void check_scm(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    require(file && prudence_stats_print(file, PRUDENCE_STATS_JSON) == 0 && fclose(file) == 0,
            "statistics");
    require(strstr(text, "\"num_dates\":1,"), "short-term memory in the statistics");
    free(text);
    require(child_ends_by(free_short_term) == SIGABRT, "a free of a short-term object reported");
}
#endif

#ifdef USES_URCU
static void use_urcu(void)
{
    require(prudence_urcu_default(NULL), "the default call_rcu_data");
}

static __attribute__((unused)) void step_of_urcu(void)
{
    prudence_urcu_set_cpu(NULL, 0, NULL);
}
#endif

static void use_all(void)
{
    prudence_free(prudence_malloc(100));
#ifdef USES_TABLES
    use_tables();
#endif
#ifdef USES_SCM
    use_scm();
#endif
#ifdef USES_URCU
    use_urcu();
#endif
}

/* ---------------------------------------------------------------------------- locks during fork */

#ifdef WHEN_MAIN
static void (*const steps[])(void) = {
#ifdef USES_TABLES
    step_of_tables,
#endif
#ifdef USES_SCM
    step_of_scm,
#endif
#ifdef USES_URCU
    step_of_urcu,
#endif
    NULL,
};
#define STEPS (sizeof steps / sizeof steps[0] - 1)

static pthread_t threads[STEPS + 1];
static int done[STEPS + 1], passed;
static bool watches;

static void *take_step(void *number)
{
    size_t i = (size_t)number;

    steps[i]();
    __atomic_store_n(&done[i], 1, __ATOMIC_SEQ_CST);
    return NULL;
}

/* Registered before the library's own handlers, so it runs while fork holds all locks. No thread
 * may finish its step. (A thread that is slow hides a fault, but is none.) */
static void look_while_locked(void)
{
    const struct timespec while_ = {.tv_nsec = 100000000};

    if (!watches)
        return;
    for (size_t i = 0; i < STEPS; i++)
        pthread_create(&threads[i], NULL, take_step, (void *)i);
    nanosleep(&while_, NULL);
    for (size_t i = 0; i < STEPS; i++)
        passed += __atomic_load_n(&done[i], __ATOMIC_SEQ_CST);
}

static void register_early(void)
{
    pthread_atfork(look_while_locked, NULL, NULL);
}
__attribute__((section(".preinit_array"), used)) static void (*const early)(void) = register_early;

static void check_locks(void)
{
    watches = getenv("MEMBERS_WATCH");
    require(child_ends_by(use_all) == 0, "a fork with threads");
    for (size_t i = 0; watches && i < STEPS; i++)
        pthread_join(threads[i], NULL);
    watches = false;
    require(!passed, "all members locked during fork");
}
#else
static void check_locks(void)
{
}
#endif

static void run(void)
{
    use_all();
    require(child_ends_by(use_all) == 0, "a child that uses all members");
    check_locks();
#ifdef USES_SCM
    check_scm();
#endif
    use_all();
    printf("members work\n");
}

#ifdef WHEN_CONSTRUCTOR
__attribute__((constructor(WHEN_CONSTRUCTOR))) static void construct(void)
{
    run();
}
#endif

#ifdef WHEN_FIRST
__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = run;
#endif

#ifdef WHEN_CALLED
__attribute__((visibility("default"))) void run_members(void);
void run_members(void)
{
    run();
}
#else
int main(void)
{
#ifdef WHEN_MAIN
    run();
#endif
    return 0;
}
#endif
