/* SPDX-License-Identifier: MIT */
/*
 * The library's threads inherit nothing from the thread that happens to need them first: no
 * scheduling policy, nice value, CPU or signal mask. They run with the process's initial ones, and
 * on a CPU that liburcu's callers asked for. The test reads /proc/self/task for each of them.
 */
#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <prudence/call.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/urcu-compat.h>

#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"

static cpu_set_t of_process;
static int policy;   /* of the thread that starts the library's threads */
static int last_cpu; /* of the process */
static bool loud;    /* print each deviation */

/* ------------------------------------------------------------------ what /proc says of a thread */

static bool proc_read(int tid, const char *file, char *text, size_t size)
{
    char path[64];
    size_t length;
    FILE *stream;

    snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid, file);
    stream = fopen(path, "r");
    if (!stream)
        return false;
    length = fread(text, 1, size - 1, stream);
    text[length] = '\0';
    fclose(stream);
    return true;
}

static uint64_t blocked_signals(int tid)
{
    char text[8192] = "";
    const char *line;

    proc_read(tid, "status", text, sizeof text);
    line = strstr(text, "\nSigBlk:");
    return line ? strtoull(line + strlen("\nSigBlk:"), NULL, 16) : 0;
}

static bool blocks(uint64_t mask, int number)
{
    return mask >> (number - 1) & 1;
}

struct found {
    unsigned threads, on_one_cpu, wrong;
};

static void check(int tid, const char *name, struct found *found)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    uint64_t mask = blocked_signals(tid);
    int policy_now = sched_getscheduler(tid), nice_now = getpriority(PRIO_PROCESS, (id_t)tid);
    bool good = policy_now == sched_getscheduler(getpid()) &&
                nice_now == getpriority(PRIO_PROCESS, (id_t)getpid());
    cpu_set_t cpus;

    for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++) {
        good &= !blocks(mask, faults[i]);
        mask |= UINT64_C(1) << (faults[i] - 1);
    }
    for (int number = 1; number < 32; number++)
        good &= blocks(mask, number) || number == SIGKILL || number == SIGSTOP;
    sched_getaffinity(tid, sizeof cpus, &cpus);
    if (CPU_COUNT(&cpus) == 1 && CPU_ISSET(last_cpu, &cpus) && CPU_COUNT(&of_process) > 1)
        found->on_one_cpu++;
    else
        good &= CPU_EQUAL(&cpus, &of_process);
    found->threads++;
    found->wrong += !good;
    if (!good && loud)
        fprintf(stderr, "%s: policy %d, nice %d, %d CPUs, blocked %#llx\n", name, policy_now,
                nice_now, CPU_COUNT(&cpus), (unsigned long long)mask);
}

/* Finds the threads of that name. */
static struct found look_for(const char *wanted)
{
    struct found found = {.threads = 0};
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;

    while (tasks && (entry = readdir(tasks))) {
        char name[64] = "";
        int tid = atoi(entry->d_name);

        if (tid <= 0 || !proc_read(tid, "comm", name, sizeof name))
            continue;
        name[strcspn(name, "\n")] = '\0';
        if (!strcmp(name, wanted))
            check(tid, name, &found);
    }
    if (tasks)
        closedir(tasks);
    return found;
}

/* Checks until all are as expected, or the alarm ends the test. A thread names itself, then sets
 * its nice value, and is checked only when it works. */
static struct found wait_for(const char *name, unsigned threads)
{
    struct found found;

    for (unsigned i = 0; i < 5000; i++) {
        found = look_for(name);
        if (found.threads == threads && !found.wrong)
            return found;
        pause_ms(1);
    }
    loud = true;
    return look_for(name);
}

/* ---------------------------------------------------------------- which thread needs them first */

static void do_nothing(struct prudence_head *head)
{
}

static void do_nothing_either(struct rcu_head *head)
{
}

static void do_nothing_at_all(void *context)
{
}

/* Returns false if this thread lacks the permission. */
static bool become_odd(void)
{
    struct sched_param parameter = {.sched_priority = policy == SCHED_FIFO ? 1 : 0};
    cpu_set_t one;
    sigset_t mask;

    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &of_process)) {
            CPU_SET(cpu, &one); /* the first */
            break;
        }
    sched_setaffinity(0, sizeof one, &one);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigaddset(&mask, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if (policy == SCHED_OTHER)
        setpriority(PRIO_PROCESS, 0, -5); /* may be refused */
    return sched_setscheduler(0, policy, &parameter) == 0;
}

static void *start_them_all(void *unused)
{
    static struct prudence_head head;
    static struct rcu_head heads[2];
    struct prudence_domain_ops ops = {.size = sizeof ops, .synchronize = do_nothing_at_all};
    struct call_rcu_data *anywhere, *there;

    if (!become_odd())
        return (void *)"refused";
    prudence_call(&head, do_nothing);
    prudence_domain_create_external("external", &ops, NULL);
    prudence_option_set("background", "1");
    anywhere = prudence_urcu_create(NULL, 0, -1);
    there = prudence_urcu_create(NULL, 0, last_cpu);
    prudence_urcu_set_thread(NULL, anywhere);
    prudence_urcu_call(NULL, &heads[0], do_nothing_either);
    prudence_urcu_set_thread(NULL, there);
    prudence_urcu_call(NULL, &heads[1], do_nothing_either);
    return NULL;
}

static int start_and_look(void)
{
    struct found callbacks, external, idle;
    void *refused = NULL;
    pthread_t thread;

    sched_getaffinity(0, sizeof of_process, &of_process);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &of_process))
            last_cpu = cpu;
    if (pthread_create(&thread, NULL, start_them_all, NULL))
        return 1;
    pthread_join(thread, &refused);
    if (refused)
        return 43;
    callbacks = wait_for("prudence-call", 3);
    external = wait_for("prudence-gp", 1);
    idle = wait_for("prudence-idle", 1);
    fprintf(stderr,
            "callbacks %u (%u wrong), external %u (%u), idle %u (%u); on a CPU of their own: %u\n",
            callbacks.threads, callbacks.wrong, external.threads, external.wrong, idle.threads,
            idle.wrong, callbacks.on_one_cpu);
    if (callbacks.threads != 3 || external.threads != 1 || idle.threads != 1)
        return 2;
    if (callbacks.wrong + external.wrong + idle.wrong)
        return 3;
    if (CPU_COUNT(&of_process) > 1 && callbacks.on_one_cpu + external.on_one_cpu != 1)
        return 4;
    return 42;
}

static void run_as(const char *role)
{
    struct child_result result;

    child_again(role, NULL, &result);
    if (child_exited_with(&result, 43)) {
        print_message("a thread may not become '%s' here\n", role);
        skip();
    }
    if (!child_exited_with(&result, 42))
        print_error("'%s': status %#x\n%s\n", role, (unsigned)result.status, result.output);
    assert_child_result(&result);
}

TEST(of_a_thread_with_its_own_cpu_and_mask)
{
    run_as("ordinary");
}

TEST(of_a_real_time_thread)
{
    run_as("fifo");
}

static void *leave_idle(void *unused)
{
    struct sched_param none = {.sched_priority = 0};

    sched_setscheduler(0, SCHED_IDLE, &none);
    return sched_setscheduler(0, SCHED_OTHER, &none) ? (void *)"refused" : NULL;
}

TEST(of_an_idle_thread)
{
    void *refused = NULL;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, leave_idle, NULL), 0);
    pthread_join(thread, &refused);
    if (refused) {
        print_message("an idle thread may not make one that is not (RLIMIT_NICE)\n");
        skip();
    }
    run_as("idle");
}

static void *call_once(void *refused)
{
    static struct prudence_head head;

    *(bool *)refused = leave_idle(NULL) != NULL;
    prudence_call(&head, do_nothing);
    return NULL;
}

static int call_unprivileged(void)
{
    bool refused = false;
    pthread_t thread;

    if (geteuid() == 0 && setuid(65534))
        return 43;
    if (pthread_create(&thread, NULL, call_once, &refused))
        return 1;
    pthread_join(thread, NULL);
    if (!refused)
        return 43;
    return prudence_barrier() == 0 ? 42 : 2;
}

/* A restriction by the system is reported; the threads still work. */
TEST(except_what_the_system_does_not_let_go)
{
    struct child_result result;

    child_again("unprivileged", NULL, &result);
    if (child_exited_with(&result, 43)) {
        print_message("every thread may leave the idle policy here\n");
        skip();
    }
    assert_child_result(&result);
    assert_int_equal(
        child_count(&result, "thread 'prudence-call' of the library has scheduling policy 5"), 1);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "unprivileged"))
        return call_unprivileged();
    if (argc > 1) {
        policy = !strcmp(argv[1], "fifo")   ? SCHED_FIFO
                 : !strcmp(argv[1], "idle") ? SCHED_IDLE
                                            : SCHED_OTHER;
        return start_and_look();
    }
    return suite_run(NULL, NULL);
}
