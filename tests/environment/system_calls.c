/* SPDX-License-Identifier: MIT */
/* Circumstances in which the kernel refuses system calls, kills the process for them, or has no
 * rseq area of the thread (environment.h). */
#define _GNU_SOURCE
#include "environment.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL(name)                                                                                 \
    {                                                                                              \
#name, SYS_##name                                                                          \
    }

static const struct {
    const char *name;
    unsigned number;
} calls[] = {
    CALL(membarrier),
    CALL(rseq),
    CALL(sched_getaffinity),
    CALL(sched_setaffinity),
    CALL(getcpu),
    CALL(sched_yield),
    CALL(madvise),
    CALL(mremap),
    CALL(munmap),
    CALL(mprotect),
    CALL(openat),
    CALL(read),
    CALL(prctl),
    CALL(sched_setscheduler),
    CALL(tgkill),
    CALL(getpid),
    CALL(gettid),
    CALL(clock_gettime),
    {"nanosleep", SYS_clock_nanosleep},
    CALL(uname),
    CALL(sysinfo),
    CALL(getrandom),
    CALL(rt_sigaction),
    CALL(rt_sigprocmask),
    CALL(get_mempolicy),
    CALL(mbind),
    {"clone", SYS_clone},
    {"clone", SYS_clone3},
#ifdef SYS_open
    CALL(open),
#endif
};

enum { CALLS = sizeof calls / sizeof *calls, FILTER = 4 * CALLS };

/* A seccomp filter, built from pairs of a call and an answer. */
struct filter {
    struct sock_filter code[FILTER];
    unsigned short length;
};

static void add(struct filter *filter, struct sock_filter instruction)
{
    filter->code[filter->length++] = instruction;
}

static void begin(struct filter *filter)
{
    filter->length = 0;
    add(filter,
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
}

static void answer(struct filter *filter, unsigned call, uint32_t with)
{
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, with));
}

/* Installs the filter in all threads of the process. */
static bool install(struct filter *filter, uint32_t otherwise)
{
    struct sock_fprog program = {0, filter->code};

    add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise));
    program.len = filter->length;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

static bool refuse(const char *call, int error)
{
    struct filter filter;
    bool found = false;

    begin(&filter);
    for (unsigned i = 0; i < CALLS; i++) {
        if (strcmp(calls[i].name, call) != 0)
            continue;
        answer(&filter, calls[i].number, SECCOMP_RET_ERRNO | (unsigned)error);
        found = true;
    }
    errno = ENOSYS;
    return found && install(&filter, SECCOMP_RET_ALLOW);
}

bool refuse_with_eperm(const char *call)
{
    return refuse(call, EPERM);
}

bool refuse_with_enosys(const char *call)
{
    return refuse(call, ENOSYS);
}

/* Allows only the calls that any malloc needs, and those that end threads and the process. Making a
 * thread fails; other calls kill the process. */
bool kill_unless_malloc_needs_it(const char *word)
{
    static const unsigned needed[] = {
        SYS_mmap,  SYS_munmap, SYS_mremap, SYS_brk,        SYS_madvise,        SYS_mprotect,
        SYS_futex, SYS_write,  SYS_exit,   SYS_exit_group, SYS_rt_sigprocmask, SYS_clock_gettime};
    struct filter filter;

    (void)word;
    begin(&filter);
    for (unsigned i = 0; i < sizeof needed / sizeof *needed; i++)
        answer(&filter, needed[i], SECCOMP_RET_ALLOW);
    answer(&filter, SYS_clone, SECCOMP_RET_ERRNO | EPERM);
    answer(&filter, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    return install(&filter, SECCOMP_RET_KILL_PROCESS);
}

/* ---------------------------------------------------------------------------------------- rseq */

enum { UNREGISTER = 1, LEAST_SIZE = 32 };

/* Registers the C library's rseq area of this thread, or unregisters it. */
static bool rseq_call(int flags)
{
    void *area = (char *)__builtin_thread_pointer() + __rseq_offset;
    unsigned size = __rseq_size < LEAST_SIZE ? LEAST_SIZE : __rseq_size;

    errno = ENOSYS;
    return __rseq_size && syscall(SYS_rseq, area, size, flags, RSEQ_SIG) == 0;
}

bool rseq_unregister(void)
{
    return rseq_call(UNREGISTER);
}

bool rseq_unregister_for_a_time(void)
{
    if (!rseq_call(UNREGISTER))
        return false;
    work(1000);
    return rseq_call(0);
}
