/* SPDX-License-Identifier: MIT */
/*
 * Fallbacks when rseq or membarrier is missing, refused at start, or refused later. Statistics name
 * the replacement, which must work. Each case has its own process. Also covers secrets without
 * getrandom().
 *
 * ctest: not-with thread (ThreadSanitizer installs what a seccomp filter then refuses)
 */
#define _GNU_SOURCE

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "support/gp_child.h"
#include "support/gp_workload.h"
#include "support/suite.h"
#include "support/stats.h"

/* ------------------------------------------------------------------------------------ roles */

static int tell(uint64_t violations)
{
    struct prudence_stats stats = stats_now();

    printf("percpu=%s membarrier=%s readers=%s violations=%llu\n", stats.percpu, stats.membarrier,
           stats.readers_mode, (unsigned long long)violations);
    fflush(stdout);
    return violations ? 1 : 0;
}

/* Makes two system calls fail with `error` from now on, for all threads and the programs they
 * execute. */
static void refuse(unsigned call, unsigned other_call, unsigned error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other_call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
        _exit(77);
}

static void refuse_membarrier(void)
{
    refuse(SYS_membarrier, SYS_membarrier, EPERM);
}

static int filtered_exec(unsigned error, unsigned other_call)
{
    char *arguments[] = {"self", "work", NULL};

    refuse(SYS_membarrier, other_call, error);
    self_exec(arguments);
    return 126;
}

/* Puts objects into the caches of every CPU, so that trimming needs all CPUs. */
static void fill_all_cpus(void)
{
    for (long cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1; cpu >= 0; cpu--) {
        cpu_set_t one;

        CPU_ZERO(&one);
        CPU_SET((unsigned)cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        for (unsigned i = 0; i < 100; i++)
            prudence_free(prudence_malloc(64));
    }
    torture_roam();
}

static int late(void)
{
    uint64_t violations = workload_run(100, NULL);

    violations = workload_run(300, refuse_membarrier); /* while all threads run */
    fill_all_cpus();
    prudence_trim();
    return tell(workload_run(200, NULL) + violations);
}

static void refuse_all(void)
{
    refuse(SYS_membarrier, SYS_sched_setaffinity, EPERM);
}

static bool child_works(void)
{
    int status;
    pid_t child = fork();

    if (child == 0)
        _exit(workload_run(20, NULL) != 0);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* With neither membarrier nor another way to reach other CPUs, their caches stay as they are, and
 * readers fence. */
static int late_and_lost(void)
{
    uint64_t violations;

    prudence_option_set("reader_mode", "free");
    violations = workload_run(50, NULL);
    violations += workload_run(100, refuse_all);
    fill_all_cpus();
    prudence_trim();
    violations += workload_run(100, NULL) + !child_works();
    return tell(violations);
}

/* Without getrandom(), secrets still exist and differ. */
static int without_getrandom(void)
{
    uint64_t words[4] = {0};

    refuse(SYS_getrandom, SYS_getrandom, EPERM);
    errno = 0;
    os_secret(&words[0]);
    os_secret(&words[2]);
    return errno || !words[0] || !words[1] || words[0] == words[2];
}

static int run_role(const char *role)
{
    if (strcmp(role, "secrets") == 0)
        return without_getrandom();
    if (strcmp(role, "work") == 0)
        return tell(workload_run(200, NULL));
    if (strcmp(role, "short") == 0)
        return tell(workload_run(40, NULL));
    if (strcmp(role, "eperm") == 0)
        return filtered_exec(EPERM, SYS_membarrier);
    if (strcmp(role, "enosys") == 0)
        return filtered_exec(ENOSYS, SYS_membarrier);
    if (strcmp(role, "no rseq call") == 0)
        return filtered_exec(ENOSYS, SYS_rseq);
    if (strcmp(role, "late") == 0)
        return late();
    return late_and_lost();
}

/* ------------------------------------------------------------------------------------ tests */

static bool have_rseq, have_membarrier;

static void assert_runs(const char *role, const char *options, const char *percpu,
                        const char *membarrier)
{
    struct child_result result;
    char expected[100], all[100];

    /* ThreadSanitizer does not see the ordering of fence-free readers. */
    snprintf(all, sizeof all, "%s%s", options ? options : "",
             TORTURE_TSAN ? ",reader_mode=fenced" : "");
    child_again(role, all, &result);
    snprintf(expected, sizeof expected, "percpu=%s membarrier=%s", percpu, membarrier);
    if (!child_exited_with(&result, 0) || !child_said(&result, expected))
        print_error("%s (status %#x)\n", result.output, (unsigned)result.status);
    assert_true(child_exited_with(&result, 0));
    assert_true(child_said(&result, expected));
    if (strcmp(membarrier, "missing") == 0)
        assert_true(child_said(&result, "readers=fenced"));
}

static const char *rseq_if_any(void)
{
    return have_rseq ? "rseq" : "lock";
}

static const char *membarrier_if_any(void)
{
    return have_membarrier ? "available" : "missing";
}

static int look_at_the_machine(void **state)
{
    struct child_result result;

    child_again("short", TORTURE_TSAN ? "reader_mode=fenced" : NULL, &result);
    have_rseq = child_said(&result, "percpu=rseq");
    have_membarrier = child_said(&result, "membarrier=available");
    print_message("here: %s", result.output);
    return !child_exited_with(&result, 0);
}

TEST(without_rseq_by_option)
{
    assert_runs("work", "rseq=0", "lock", membarrier_if_any());
}

TEST(without_membarrier_by_option)
{
    assert_runs("work", "membarrier=0", rseq_if_any(), "missing");
}

TEST(without_both_by_option)
{
    assert_runs("work", "rseq=0,membarrier=0", "lock", "missing");
}

TEST(without_rseq_by_glibc_tunable)
{
    setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
    assert_runs("work", NULL, "lock", membarrier_if_any());
    unsetenv("GLIBC_TUNABLES");
}

/* Remote takes also need membarrier, so without it at start there is no rseq either. */
TEST(membarrier_refused_before_start)
{
    assert_runs("eperm", NULL, "lock", "missing");
    assert_runs("enosys", NULL, "lock", "missing");
}

TEST(rseq_and_membarrier_refused_before_start)
{
    assert_runs("no rseq call", NULL, "lock", "missing");
}

TEST(membarrier_refused_after_start)
{
    if (!have_membarrier || TORTURE_TSAN)
        skip();
    assert_runs("late", "reader_mode=free", rseq_if_any(), "missing");
    assert_runs("late", "reader_mode=free,rseq=0", "lock", "missing");
    assert_runs("late", "reader_mode=free,background=1", rseq_if_any(), "missing");
}

TEST(all_refused_after_start)
{
    if (!have_membarrier || TORTURE_TSAN)
        skip();
    assert_runs("late and lost", "reader_mode=free", rseq_if_any(), "missing");
    assert_runs("late and lost", "reader_mode=free,rseq=0", "lock", "missing");
}

TEST(secrets_without_getrandom)
{
    expect_again(0, "secrets", NULL, "");
}

TEST(under_valgrind)
{
    char *arguments[] = {
        "valgrind", "-q", "--error-exitcode=9", "--fair-sched=yes", "/proc/self/exe",
        "short",    NULL};
    char path[400];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    struct child_result result;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
    if (system("valgrind --version >/dev/null 2>&1"))
        skip();
    path[length > 0 ? length : 0] = '\0';
    arguments[4] = path; /* this program, not valgrind itself */
    /* The workload reads old contents of freed objects. */
    child_exec(arguments, "annotate=0", &result);
    if (!child_exited_with(&result, 0))
        print_error("%s (status %#x)\n", result.output, (unsigned)result.status);
    assert_true(child_exited_with(&result, 0));
    assert_true(child_said(&result, "percpu=lock"));
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_role(argv[1]);
    return suite_run(look_at_the_machine, NULL);
}
