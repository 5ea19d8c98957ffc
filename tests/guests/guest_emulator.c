/* SPDX-License-Identifier: MIT */
/*
 * Reports faults of the system that runs this program. Kernels have none of them; QEMU's emulation
 * of a process has some, so tools/test/aarch64 leaves out the tests that depend on the right
 * behaviour. This program does not use the library, so a fault is never the library's.
 *
 *     guest_emulator
 *
 * Prints a line for each question, `right NAME` or `wrong NAME`. Exit status 0: all are right; 1:
 * some are wrong.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define PATIENCE 60 /* seconds for one question */

static void *nothing(void *unused)
{
    return unused;
}

static void *stay(void *unused)
{
    for (;;)
        pause();
    return unused;
}

/* The forked child of a process with threads can make threads. */
static bool makes_threads_after_fork(void)
{
    pthread_t other;
    int status;
    pid_t child;

    if (pthread_create(&other, NULL, stay, NULL))
        return false;
    child = fork();
    if (child == 0) {
        for (unsigned i = 0; i < 5; i++) {
            pthread_t thread;

            if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
                _exit(1);
        }
        _exit(0);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

/* A process has only the threads that the program made. */
static bool has_its_own_threads_only(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    unsigned count = 0;

    while (tasks && (entry = readdir(tasks)))
        count += entry->d_name[0] != '.';
    return count == 1;
}

static bool has_seccomp_filters(void)
{
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = 1, .filter = allow};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool limits_addresses(void)
{
    struct rlimit limit = {.rlim_cur = (rlim_t)64 << 20, .rlim_max = (rlim_t)64 << 20};

    return setrlimit(RLIMIT_AS, &limit) == 0 &&
           mmap(NULL, (size_t)1 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0) == MAP_FAILED;
}

/* Pages that stay mapped after mremap(), and that the program wrote to since, can be purged. */
static bool gives_back_what_mremap_left(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 64 * page;
    char *left = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *target = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned dirty = 0;

    memset(left, 1, bytes);
    if (mremap(left, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, target) !=
        target)
        return false;
    memset(left, 2, bytes);
    if (madvise(left, bytes, MADV_DONTNEED))
        return false;
    for (size_t at = 0; at < bytes; at += page)
        dirty += left[at] != 0;
    return dirty == 0;
}

/* Advice that must be followed is followed. A child does not have pages advised MADV_DONTFORK. */
static bool follows_advice(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *kept = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int status;
    pid_t child;

    if (madvise(kept, page, MADV_DONTFORK))
        return false;
    child = fork();
    if (child == 0)
        _exit(msync(kept, page, MS_ASYNC) == 0); /* msync succeeds if the pages exist */
    return waitpid(child, &status, 0) == child && status == 0;
}

/* The root folder, when opened, is the system's, so other folders can be opened from there. */
static bool opens_the_root(void)
{
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    return root >= 0 && openat(root, "proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC) >= 0;
}

/* The first thread has the name of the program. */
static bool knows_its_name(void)
{
    char name[16];

    return prctl(PR_GET_NAME, name) == 0 &&
           strncmp(name, program_invocation_short_name, sizeof name - 1) == 0;
}

static sigjmp_buf behind_fault;
static volatile sig_atomic_t was_write;

#if defined(__aarch64__)
#define EXCEPTION_MAGIC 0x45535201 /* marks the record with the exception's syndrome */
#define SYNDROME_WRITE  (1u << 6)

static int is_write(const ucontext_t *context)
{
    const char *at = (const char *)context->uc_mcontext.__reserved;

    for (;;) {
        uint32_t head[2]; /* magic, size */
        uint64_t syndrome;

        memcpy(head, at, sizeof head);
        if (!head[0] || !head[1])
            return -1;
        if (head[0] == EXCEPTION_MAGIC) {
            memcpy(&syndrome, at + sizeof head, sizeof syndrome);
            return (syndrome & SYNDROME_WRITE) != 0;
        }
        at += head[1];
    }
}
#elif defined(__x86_64__)
static int is_write(const ucontext_t *context)
{
    return (context->uc_mcontext.gregs[REG_ERR] & 2) != 0;
}
#else
static int is_write(const ucontext_t *context) /* the library does not ask either */
{
    (void)context;
    return -1;
}
#endif

static void note_fault(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    was_write = is_write(context);
    siglongjmp(behind_fault, 1);
}

static bool says_whether_a_fault_was_a_write(void)
{
    const struct sigaction action = {.sa_sigaction = note_fault, .sa_flags = SA_SIGINFO};
    volatile char *closed =
        mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int write;

    sigaction(SIGSEGV, &action, NULL);
    if (!sigsetjmp(behind_fault, 1))
        *closed = 1;
    write = was_write;
    if (!sigsetjmp(behind_fault, 1))
        (void)*closed;
    return write == 1 && was_write == 0;
}

static const struct {
    const char *name;
    bool (*is_right)(void);
} questions[] = {
    {"threads-after-fork", makes_threads_after_fork},
    {"own-threads", has_its_own_threads_only},
    {"seccomp", has_seccomp_filters},
    {"fault-kind", says_whether_a_fault_was_a_write},
    {"mremap-left", gives_back_what_mremap_left},
    {"address-limit", limits_addresses},
    {"advice", follows_advice},
    {"own-name", knows_its_name},
    {"root-folder", opens_the_root},
};

int main(void)
{
    int result = GUEST_RIGHT;

    for (unsigned i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        int status;
        pid_t child = fork();

        if (child == 0) {
            alarm(PATIENCE);
            _exit(questions[i].is_right() ? GUEST_RIGHT : GUEST_WRONG);
        }
        if (waitpid(child, &status, 0) != child || status != 0)
            result = GUEST_WRONG;
        printf("%s %s\n", status == 0 ? "right" : "wrong", questions[i].name);
        fflush(stdout); /* otherwise the next child prints the line again */
    }
    return result;
}
