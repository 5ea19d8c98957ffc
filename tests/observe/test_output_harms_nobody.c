/* SPDX-License-Identifier: MIT */
/*
 * Output of the library itself (messages, the dump, the profile, statistics at exit) neither ends
 * nor stops the process: when no thread reads any more, when a file may not grow, when a handler
 * has interrupted the library, and when the handler's stack is small. Two profiles are never mixed
 * in one file. The program's handlers keep their mask and flags when ours is installed in front.
 *
 * ctest: not-with sanitizers (one thread; stacks, signals and exits are those of the plain build)
 */
#define _GNU_SOURCE /* sigorset, pipe2 */
#include "support/slab_test.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "heap/heap.h"
#include "process/fork.h"
#include "slab/all_caches.h"
#include "support/directory.h"
#include "support/gp_child.h"

#define LINE "prudence " PRUDENCE_VERSION ": process"

static void set(const char *name, const char *value)
{
    assert_int_equal(prudence_option_set(name, value), 0);
}

/* ------------------------------------------------------------------------------------- pipes
 * without reader */

/* Makes a pipe without reader, and standard error one, too. */
static int pipe_without_reader(void)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    return ends[1];
}

static int write_to_nobody(void *ignored)
{
    int fd = pipe_without_reader();

    set("dump", "SIGUSR1");
    assert_int_equal(prudence_option_set("no option", "1"), ENOENT);
    raise(SIGUSR1);
    return prudence_dump(fd) == EPIPE ? 42 : 1;
}

/* The program's blocked and pending signals stay as they were. */
static int signals_stay(void *ignored)
{
    sigset_t broken, before, now;
    int fd = pipe_without_reader();

    assert_int_equal(prudence_dump(fd), EPIPE);
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    sigprocmask(SIG_SETMASK, NULL, &before);
    assert_false(sigismember(&before, SIGPIPE) || sigismember(&before, SIGXFSZ));
    sigprocmask(SIG_BLOCK, &broken, NULL);
    assert_int_equal(prudence_dump(fd), EPIPE);
    sigpending(&now);
    assert_false(sigismember(&now, SIGPIPE));
    raise(SIGPIPE);
    assert_int_equal(prudence_dump(fd), EPIPE);
    sigpending(&now);
    assert_true(sigismember(&now, SIGPIPE));
    return 42;
}

static int statistics_for_nobody(void *ignored)
{
    pipe_without_reader();
    set("stats", "1");
    exit(42);
}

TEST(a_pipe_without_reader_ends_nothing)
{
    assert_child(write_to_nobody, NULL);
    assert_child(signals_stay, NULL);
    assert_child(statistics_for_nobody, NULL);
}

/* The library does not wait for a reader of a FIFO. */
static int write_to_fifo(void *path)
{
    set("dump_file", path);
    set("dump", "SIGUSR1");
    set("profile_file", path);
    set("profile_signal", "SIGUSR2");
    raise(SIGUSR1);
    raise(SIGUSR2);
    set("profile_file", "");
    return prudence_profile_dump(path) == ENXIO ? 42 : 1;
}

static int write_to_reader(void *path)
{
    static char text[1 << 16];
    int end = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t length;

    assert_true(end >= 0);
    assert_int_equal(prudence_profile_dump(path), 0);
    length = read(end, text, sizeof text - 1);
    return length > 4 && strcmp(text + length - 5, "\nend\n") == 0 ? 42 : 1;
}

TEST(a_fifo_without_reader_is_not_waited_for)
{
    char path[128];

    snprintf(path, sizeof path, "%s", path_in("fifo"));
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_exit(42, write_to_fifo(path), "option 'dump_file': '",
                "option 'profile_file': the profile cannot be written");
    assert_int_equal(said(LINE), 1);
    assert_child(write_to_reader, path);
    unlink(path);
}

/* ---------------------------------------------------------------------------------------- full
 * files */

static int write_too_much(void *path)
{
    struct rlimit limit;

    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 10;
    setrlimit(RLIMIT_FSIZE, &limit);
    set("dump_file", path);
    set("dump", "SIGUSR1");
    raise(SIGUSR1);
    return prudence_profile_dump(path) == EFBIG ? 42 : 1;
}

TEST(a_file_that_may_not_grow_ends_nothing)
{
    char path[128];

    snprintf(path, sizeof path, "%s", path_in("small"));
    assert_child(write_too_much, path);
    unlink(path);
}

/* A profile that another one is writing stays complete. */
TEST(profiles_are_not_mixed)
{
    char text[8] = "";
    int fd = open(path_in("profile"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_int_equal(write(fd, "other", 5), 5);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(prudence_profile_dump(path_in("profile")), EWOULDBLOCK);
    assert_int_equal(pread(fd, text, sizeof text, 0), 5);
    assert_string_equal(text, "other");
    close(fd);
    assert_int_equal(prudence_profile_dump(path_in("profile")), 0);
    unlink(path_in("profile"));
}

/* --------------------------------------------------------------------- exit in a signal handler */

static void end_process(int number)
{
    exit(number == SIGUSR1 ? 42 : 1);
}

static int exit_inside(void *option)
{
    set(option, strcmp(option, "quarantine") == 0 ? "64K" : "1");
    prudence_free(prudence_malloc(100));
    signal(SIGUSR1, end_process);
    os_lock_take(&heap_lock);
    os_lock_take(&slab_caches_lock);
    fork_parts[FORK_QUARANTINE]->prepare(); /* takes its lock */
    raise(SIGUSR1);
    return 1;
}

TEST(a_handler_may_exit)
{
    assert_child(exit_inside, "stats");
    assert_child(exit_inside, "quarantine");
    assert_child(exit_inside, "shuffle");
}

/* ------------------------------------------------------------------------------------- small
 * stacks of handlers */

/* Bytes that remain for a handler on the usual stack of 8192 bytes, when the system itself needs
 * 3376. */
#define ROOM 4816

static void choose_all(int number)
{
    (void)number;
    assert_int_equal(prudence_profile_dump("/dev/null"), 0);
}

static int signals_on_a_small_stack(void *ignored)
{
    size_t least = (size_t)sysconf(_SC_MINSIGSTKSZ), frame = least > 3376 ? least : 3376;
    size_t size = (frame + ROOM + 4095) & ~(size_t)4095;
    char *pages = mmap(NULL, size + 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = {.ss_sp = pages + 65536 + size - frame - ROOM, .ss_size = frame + ROOM};
    struct sigaction own = {.sa_handler = choose_all, .sa_flags = SA_ONSTACK};
    struct prudence_domain *domain =
        prudence_domain_create("a domain with a long name", PRUDENCE_DOMAIN_MEMB, NULL);

    mprotect(pages + 65536, size, PROT_READ | PROT_WRITE);
    assert_int_equal(sigaltstack(&stack, NULL), 0);
    prudence_domain_read_lock(domain);
    prudence_free_deferred(prudence_malloc(1000));
    sigaction(SIGUSR2, &own, NULL);
    set("dump", "SIGUSR1");
    set("profile_file", "/dev/null");
    set("profile_signal", "SIGUSR1");
    raise(SIGUSR1);
    raise(SIGUSR2);
    return 42;
}

TEST(handlers_need_little_stack)
{
    assert_child(signals_on_a_small_stack, NULL);
}

/* ---------------------------------------------------------------------- handlers of the program */

#define KEPT_FLAGS (SA_RESTART | SA_NODEFER)

static bool masked;

static void look_at_mask(int number)
{
    sigset_t now;

    sigprocmask(SIG_SETMASK, NULL, &now);
    masked = sigismember(&now, SIGALRM);
}

struct own_handler {
    int number, flags;
    const char *option, *value; /* the option that installs ours in front */
};

static int handler_with(void *given)
{
    const struct own_handler *of = given;
    struct sigaction own = {.sa_handler = look_at_mask, .sa_flags = of->flags}, now;

    sigaddset(&own.sa_mask, SIGALRM);
    sigaction(of->number, &own, NULL);
    set("dump_file", "/dev/null");
    set(of->option, of->value);
    raise(of->number);
    sigaction(of->number, NULL, &now);
    return masked && now.sa_flags & SA_SIGINFO && (now.sa_flags & KEPT_FLAGS) == of->flags ? 42 : 1;
}

TEST(handlers_keep_mask_and_flags)
{
    static const int flags[] = {0, SA_RESTART, SA_NODEFER, KEPT_FLAGS};

    for (unsigned i = 0; i < 4; i++) {
        assert_child(handler_with, &(struct own_handler){SIGUSR1, flags[i], "dump", "SIGUSR1"});
        assert_child(handler_with, &(struct own_handler){SIGURG, flags[i], "stall_trace", "1"});
    }
}

static int set_up(void **state)
{
    assert_int_equal(prudence_option_set("profile", "64K"), 0);
    return directory_make(state);
}

SUITE_BETWEEN(set_up, directory_remove)
