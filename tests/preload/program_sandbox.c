/* SPDX-License-Identifier: MIT */
/*
 * Plays one role under a filter of system calls, as a sandboxed program does, on libprudence-malloc
 * (test_sandbox.py).
 *
 * program_sandbox ROLE kill: a call beyond the short list ends the process (SIGSYS)
 * program_sandbox ROLE eperm: such a call fails with EPERM; with `enosys`, with ENOSYS
 * program_sandbox ROLE log: such a call is made, and named at the end in a line that begins with
 * "beyond:"
 *
 * The short list has the calls that every malloc() needs, and those for messages. Calls of a role
 * itself (fork, wait) are allowed, but not to the library. All existing threads get the filter.
 * Exits with 77 if filters are unavailable.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prudence/call.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#ifndef SECCOMP_USER_NOTIF_FLAG_CONTINUE
#define SECCOMP_USER_NOTIF_FLAG_CONTINUE 1UL
#endif
#ifndef SECCOMP_FILTER_FLAG_TSYNC_ESRCH
#define SECCOMP_FILTER_FLAG_TSYNC_ESRCH (1UL << 4)
#endif

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define SKIPPED         77

/* ----------------------------------------------------------------------------------- the filter */

static const struct {
    long number;
    const char *name;
} names[] = {
    {SYS_membarrier, "membarrier"},
    {SYS_openat, "openat"},
    {SYS_read, "read"},
    {SYS_close, "close"},
    {SYS_fstat, "fstat"},
    {SYS_newfstatat, "newfstatat"},
    {SYS_fcntl, "fcntl"},
    {SYS_ftruncate, "ftruncate"},
    {SYS_flock, "flock"},
    {SYS_memfd_create, "memfd_create"},
    {SYS_prlimit64, "prlimit64"},
    {SYS_clone, "clone"},
    {SYS_clone3, "clone3"},
    {SYS_set_robust_list, "set_robust_list"},
    {SYS_rseq, "rseq"},
    {SYS_prctl, "prctl"},
    {SYS_setpriority, "setpriority"},
    {SYS_sched_setscheduler, "sched_setscheduler"},
    {SYS_sched_getscheduler, "sched_getscheduler"},
    {SYS_sched_setaffinity, "sched_setaffinity"},
    {SYS_sched_getaffinity, "sched_getaffinity"},
    {SYS_sched_get_priority_min, "sched_get_priority_min"},
    {SYS_sched_get_priority_max, "sched_get_priority_max"},
    {SYS_getpid, "getpid"},
    {SYS_gettid, "gettid"},
    {SYS_tgkill, "tgkill"},
    {SYS_getrandom, "getrandom"},
    {SYS_mincore, "mincore"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_rt_sigaction, "rt_sigaction"},
    {SYS_rt_sigpending, "rt_sigpending"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_sysinfo, "sysinfo"},
    {SYS_ioctl, "ioctl"},
    {SYS_lseek, "lseek"},
    {SYS_getcpu, "getcpu"},
    {SYS_fstatfs, "fstatfs"},
    {SYS_readlinkat, "readlinkat"},
};

#define SHORT_LIST                                                                                 \
    SYS_mmap, SYS_munmap, SYS_mremap, SYS_brk, SYS_madvise, SYS_mprotect, SYS_futex, SYS_write,    \
        SYS_rt_sigprocmask, SYS_clock_gettime, SYS_exit, SYS_exit_group, SYS_rt_sigreturn

/* Calls of the roles themselves. sendmsg() hands over the filter's descriptor. */
static const unsigned of_all[] = {SHORT_LIST, SYS_sendmsg};
static const unsigned of_fork[] = {SYS_clone, SYS_wait4, SYS_set_robust_list, SYS_gettid, SYS_rseq};
static const unsigned of_abort[] = {SYS_getpid, SYS_gettid, SYS_tgkill, SYS_rt_sigaction};

#define MOST 64
static struct sock_filter filter[2 * MOST + 8];
static unsigned filter_length;

static void allow(const unsigned *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        filter[filter_length++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
        filter[filter_length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
}

struct role {
    const char *name;
    void (*before)(void); /* without the filter; NULL: nothing */
    void (*work)(void);   /* with the filter */
    const unsigned *own;
    size_t own_count;
};

static int talk[2]; /* a pair of sockets: the listener's end, the worker's end */
static const char *mode;

static void hand_over(int fd)
{
    char byte = 0, control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    if (sendmsg(talk[1], &message, 0) != 1)
        _exit(90);
}

static int receive(void)
{
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    int fd = -1;

    if (recvmsg(talk[0], &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static void install(const struct role *role)
{
    bool logs = strcmp(mode, "log") == 0;
    unsigned otherwise = logs                          ? SECCOMP_RET_USER_NOTIF
                         : strcmp(mode, "eperm") == 0  ? SECCOMP_RET_ERRNO | EPERM
                         : strcmp(mode, "enosys") == 0 ? SECCOMP_RET_ERRNO | ENOSYS
                                                       : SECCOMP_RET_KILL_PROCESS;
    unsigned long flags = SECCOMP_FILTER_FLAG_TSYNC;
    struct sock_fprog program = {.filter = filter};
    long fd;

    if (logs)
        flags |= SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
    filter[filter_length++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    allow(of_all, COUNT_OF(of_all));
    allow(role->own, role->own_count);
    filter[filter_length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
    program.len = (unsigned short)filter_length;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        (fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program)) < 0)
        _exit(SKIPPED);
    if (logs)
        hand_over((int)fd);
}

/* Lets every call go on, and notes it. Ends when no process has the filter any more. */
static void note_calls(int fd, bool *seen, size_t count)
{
    struct seccomp_notif asked;
    struct seccomp_notif_resp answer;
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    while (poll(&ready, 1, -1) == 1 && ready.revents & POLLIN) {
        memset(&asked, 0, sizeof asked);
        if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &asked))
            continue; /* the calling thread has gone */
        if (asked.data.nr >= 0 && (size_t)asked.data.nr < count)
            seen[asked.data.nr] = true;
        memset(&answer, 0, sizeof answer);
        answer.id = asked.id;
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
}

static void print_name(long number)
{
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (names[i].number == number) {
            printf(" %s", names[i].name);
            return;
        }
    }
    printf(" %ld", number);
}

static int watch(pid_t child, bool logs)
{
    static bool seen[1024];
    int status, fd = logs ? receive() : -1;

    if (fd >= 0)
        note_calls(fd, seen, COUNT_OF(seen));
    if (waitpid(child, &status, 0) != child)
        return 91;
    if (logs && fd >= 0) {
        printf("beyond:");
        for (size_t number = 0; number < COUNT_OF(seen); number++)
            if (seen[number])
                print_name((long)number);
        puts("");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* --------------------------------------------------------------------------------------- roles */

#define SLOTS  20000
#define ROUNDS 9
#define FORKS  5

static void *volatile blocks[SLOTS];

static unsigned next(unsigned *random)
{
    *random = *random * 1103515245 + 12345;
    return *random >> 8;
}

/* Returns mostly small sizes, and sometimes a large one. */
static size_t size_of(unsigned random)
{
    return random % (random / 7 % 500 ? 4000 : 300000) + 1;
}

/* Frees everything in every third round, so that pages go back. */
static void churn_for(unsigned rounds)
{
    unsigned random = 1;

    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < SLOTS; i++) {
            free(blocks[i]);
            blocks[i] = malloc(size_of(next(&random)));
        }
        for (unsigned i = 0; round % 3 == 0 && i < SLOTS; i++) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
}

static void churn(void)
{
    churn_for(ROUNDS);
}

#define THREADS 3
static pthread_t threads[THREADS];
static pthread_barrier_t barrier;
static _Atomic(void *) mail[SLOTS];
static void (*of_threads)(unsigned thread);

/* Each thread frees blocks of other threads. */
static void exchange(unsigned thread)
{
    unsigned random = thread + 1;

    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < SLOTS; i += 1 + thread)
            free(atomic_exchange(&mail[i], malloc(size_of(next(&random)))));
    for (unsigned i = thread; i < SLOTS; i += THREADS)
        free(atomic_exchange(&mail[i], NULL));
}

static void *thread_body(void *number)
{
    pthread_barrier_wait(
        &barrier); /* started, so the C library has made its calls for the thread */
    pthread_barrier_wait(&barrier);
    of_threads((unsigned)(uintptr_t)number);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void make_threads(void (*body)(unsigned thread))
{
    of_threads = body;
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, thread_body, (void *)i))
            _exit(92);
    pthread_barrier_wait(&barrier);
}

static void make_exchanging_threads(void)
{
    make_threads(exchange);
}

static void run_threads(void)
{
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    churn(); /* frees the remaining objects on other CPUs */
}

static void look_and_trim(void)
{
    struct mallinfo2 info;

    churn();
    malloc_trim(0);
    info = mallinfo2();
    malloc_stats();
    if (malloc_usable_size(blocks[0] = malloc((size_t)info.arena % 100 + 1)) == 0)
        _exit(93);
}

static void trim_with_threads(void)
{
    run_threads();
    look_and_trim();
}

static void free_twice(void)
{
    void *volatile object = malloc(100);

    free(object);
    free(object); /* NOLINT(clang-analyzer-unix.Malloc): that is the test */
}

static void fork_once(void)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        churn_for(2);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        _exit(94);
}

static void fork_and_churn(void)
{
    churn();
    fork_once();
    churn();
}

static atomic_bool over;

static void exchange_until_over(unsigned thread)
{
    unsigned random = thread + 1;

    while (!over)
        free(atomic_exchange(&mail[next(&random) % SLOTS], malloc(size_of(next(&random)))));
}

static void make_busy_threads(void)
{
    make_threads(exchange_until_over);
}

static void fork_with_threads(void)
{
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < FORKS; i++)
        fork_once();
    over = true;
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static _Atomic(uint64_t *) shared;

static void defer_one(void)
{
    uint64_t *object = prudence_malloc(64), *before;

    *object = 1;
    before = atomic_exchange(&shared, object);
    if (before)
        prudence_free_deferred(before);
    prudence_read_lock();
    if (*atomic_load(&shared) != 1)
        _exit(95);
    prudence_read_unlock();
}

static void read_and_defer(void)
{
    for (unsigned i = 0; i < 60000; i++)
        defer_one();
    prudence_synchronize();
}

static void read_and_defer_in_a_thread(unsigned thread)
{
    (void)thread;
    read_and_defer();
}

static void make_deferring_threads(void)
{
    make_threads(read_and_defer_in_a_thread);
}

/* Makes the process defer before the filter is installed. */
static void defer_before(void)
{
    read_and_defer();
}

static void set_sandbox(void)
{
    if (prudence_option_set("sandbox", "1"))
        _exit(96);
}

static void set_sandbox_late(void)
{
    read_and_defer();
    make_deferring_threads();
    set_sandbox();
}

static atomic_uint called;

static void on_call(struct prudence_head *head)
{
    free(head);
    called++;
}

static void call_back(void)
{
    for (unsigned i = 0; i < 1000; i++)
        prudence_call(malloc(sizeof(struct prudence_head)), on_call);
    prudence_barrier();
    if (called != 1000)
        _exit(97);
}

/* Keeps more than the limit without a helper, with other threads, in a process that defers. */
static void keep_much(void)
{
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < SLOTS; i++)
        memset(blocks[i] = malloc(1000), 1, 1000);
    for (unsigned i = 0; i < SLOTS; i++)
        free(blocks[i]);
    for (size_t size = 128; size < 4096; size += 128)
        free(blocks[0] = malloc(size));
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void do_nothing(unsigned thread)
{
    (void)thread;
}

static void make_waiting_threads(void)
{
    read_and_defer();
    make_threads(do_nothing);
}

static const struct role roles[] = {
    {"alone", NULL, churn, NULL, 0},
    {"threads", make_exchanging_threads, run_threads, NULL, 0},
    {"trim", NULL, look_and_trim, NULL, 0},
    {"trim-threads", make_exchanging_threads, trim_with_threads, NULL, 0},
    {"misuse", NULL, free_twice, of_abort, COUNT_OF(of_abort)},
    {"fork", NULL, fork_and_churn, of_fork, COUNT_OF(of_fork)},
    {"fork-threads", make_busy_threads, fork_with_threads, of_fork, COUNT_OF(of_fork)},
    {"defer", NULL, read_and_defer, NULL, 0},
    {"defer-threads", make_deferring_threads, run_threads, NULL, 0},
    {"defer-before", defer_before, churn, NULL, 0},
    {"late-option", set_sandbox, churn, NULL, 0},
    {"late-option-defers", set_sandbox_late, run_threads, NULL, 0},
    {"callbacks", NULL, call_back, NULL, 0},
    {"helper", make_waiting_threads, keep_much, NULL, 0},
};

/* Runs a role and calls exit(), because destructors are watched, too. */
static void run(const struct role *role)
{
    free(malloc(10));
    if (role->before)
        role->before();
    install(role);
    role->work();
    exit(0); /* NOLINT(concurrency-mt-unsafe): no other thread ends the process */
}

int main(int argc, char **argv)
{
    const struct role *role = NULL;
    pid_t child;

    for (size_t i = 0; argc == 3 && i < COUNT_OF(roles); i++)
        if (strcmp(argv[1], roles[i].name) == 0)
            role = &roles[i];
    if (!role) {
        fprintf(stderr, "usage: program_sandbox ROLE kill|eperm|enosys|log\n");
        return 98;
    }
    mode = argv[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk))
        return 99;
    child = fork();
    if (child == 0) {
        alarm(60);
        run(role);
    }
    close(talk[1]);
    return watch(child, strcmp(mode, "log") == 0);
}
