/* SPDX-License-Identifier: MIT */
/*
 * prudence_dump() shows where memory is held: the cache with the latent bytes, and the reader that
 * keeps them. It writes to any file descriptor, from anywhere: in handlers that interrupt the
 * library, during all of the library's work, and in children. The options dump and dump_file do the
 * same at a signal, and report failures.
 */
#define _GNU_SOURCE /* memfd_create, gettid */
#include "gp/user/slots.h"
#include "gp/user/stall.h"
#include "support/slab_test.h"

#include <fcntl.h>
#include <prudence/heap_walk.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gp/user/domain.h"
#include "pages/page_source.h"
#include "slab/all_caches.h"
#include "support/directory.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/threads.h"

static char text[1 << 16];

static const char *contents(int fd)
{
    ssize_t length = pread(fd, text, sizeof text - 1, 0);

    assert_true(length >= 0);
    text[length] = '\0';
    return text;
}

/* Returns the text of one dump. */
static const char *dumped(void)
{
    int fd = memfd_create("dump", MFD_CLOEXEC);

    errno = 77;
    assert_int_equal(prudence_dump(fd), 0);
    assert_int_equal(errno, 77);
    contents(fd);
    close(fd);
    return text;
}

static void expect(const char *format, ...)
{
    char part[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(part, sizeof part, format, arguments);
    va_end(arguments);
    if (!strstr(text, part))
        fail_msg("expected '%s' in: %s", part, text);
}

static void expect_none(const char *part)
{
    if (strstr(text, part))
        fail_msg("not expected: '%s' in: %s", part, text);
}

/* ---------------------------------------------------------------------------------- names */

static struct reader_slot *slot_of_thread(struct prudence_domain *domain, int thread)
{
    struct reader_chunk *chunk;
    struct reader_slot *slot;

    for_each_slot(chunk, slot, domain) if (slot->thread == thread) return slot;
    abort();
}

/* Makes the thread seem as if a driver had found it blocking `nanoseconds` ago. */
static void has_been_in_the_way(struct prudence_domain *domain, int thread, uint64_t nanoseconds)
{
    struct reader_slot *slot = slot_of_thread(domain, thread);

    slot->stall_word = slot->reader.word & ~PRUDENCE_NESTING_MASK;
    slot->stall_since = os_clock_ns() - nanoseconds;
}

static void defer_some(struct prudence_cache *cache)
{
    void *objects[1000];

    allocate_all(cache, objects, 1000);
    defer_all(cache, objects, 1000);
}

TEST(the_cache_and_the_reader_are_named)
{
    struct prudence_cache *cache = prudence_cache_create("routes", 1024, NULL);
    struct held_reader reader = {.domain = NULL};
    void *live[2000];

    held_reader_start(&reader);
    pthread_setname_np(reader.thread, "parser");
    defer_some(cache);
    allocate_all(cache, live, 2000);
    dumped();
    expect("prudence " PRUDENCE_VERSION ": process %d (observe_test_dump), 20", (int)getpid());
    expect(
        "B of cache 'routes', domain 'default': thread 'parser' (tid %d) is inside a "
        "read-side critical section",
        (int)reader.tid);
    expect("B of cache 'routes'\n");
    has_been_in_the_way(&prudence_default, reader.tid, UINT64_C(41234567890));
    dumped();
    expect("section, blocking for 41.2 s\n");
    held_reader_end(&reader);
    dumped();
    expect(
        "of cache 'routes', domain 'default': no thread is inside; the next grace periods free "
        "them\n");
    free_all(cache, live, 2000);
    assert_int_equal(prudence_cache_barrier(cache), 0);
    dumped();
    expect_none("latent: ");
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* For a set, the readers of its members are named; of several, the one that has blocked longest. */
TEST(readers_of_a_set_are_named)
{
    struct prudence_domain *members[] = {
        prudence_default_domain(), prudence_domain_create("others", PRUDENCE_DOMAIN_MEMB, NULL),
        prudence_domain_create("strangers", PRUDENCE_DOMAIN_MEMB, NULL)};
    struct prudence_domain *set = prudence_domain_create_set("both", members, 2);
    struct prudence_cache_attr attr = {.size = sizeof attr};
    struct held_reader readers[] = {
        {.domain = members[0]}, {.domain = members[1]}, {.domain = members[2]}};
    struct prudence_cache *cache;

    attr.domain = set;
    cache = prudence_cache_create("two kinds", 100, &attr);
    defer_some(cache);
    for (unsigned i = 0; i < 3; i++) {
        held_reader_start(&readers[i]);
        has_been_in_the_way(members[i], readers[i].tid, (i + 1) * UINT64_C(1000000000));
    }
    dumped();
    expect("of cache 'two kinds', domain 'both': ");
    expect("(tid %d) is inside a read-side critical section of 'others', blocking for 2.0 s\n",
           (int)readers[1].tid);
    for (unsigned i = 0; i < 3; i++)
        held_reader_end(&readers[i]);
    assert_int_equal(prudence_cache_barrier(cache), 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(prudence_domain_destroy(set), 0);
    assert_int_equal(prudence_domain_destroy(members[1]), 0);
    assert_int_equal(prudence_domain_destroy(members[2]), 0);
}

TEST(the_most_come_first)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *caches[8];
    const char *before = text;
    void *objects[8];

    for (unsigned i = 0; i < 8; i++) {
        char name[16];

        snprintf(name, sizeof name, "of size %u", i);
        caches[i] = fixed_cache(128u << ((5 * i) % 8), 0, domain);
        memcpy(caches[i]->name, name, sizeof name);
        objects[i] = prudence_cache_alloc(caches[i]);
        prudence_cache_free_deferred(caches[i], objects[i]);
    }
    dumped();
    for (unsigned rank = 0; rank < 5; rank++) { /* 7, 6, 5, 4, 3 times doubled */
        char part[64];

        for (unsigned i = 0; i < 8; i++)
            if ((5 * i) % 8 == 7 - rank)
                snprintf(part, sizeof part, "of cache 'of size %u'", i);
        before = strstr(before, part);
        assert_non_null(before);
    }
    assert_null(strstr(before + 1, "latent: "));
    for (unsigned i = 0; i < 8; i++)
        destroy_empty(caches[i]);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static void *trace_reader(void *argument)
{
    pthread_setname_np(pthread_self(), "traced");
    return held_reader_run(argument);
}

TEST(where_the_reader_is_stands_there_if_traced)
{
    struct prudence_cache *cache = prudence_cache_create("routes", 1024, NULL);
    struct held_reader reader = {.domain = NULL};

    assert_int_equal(prudence_option_set("stall_trace", "1"), 0);
    sem_init(&reader.inside, 0, 0);
    sem_init(&reader.leave, 0, 0);
    pthread_create(&reader.thread, NULL, trace_reader, &reader);
    sem_wait(&reader.inside);
    defer_some(cache);
    do /* the reader may be too slow to answer */
        dumped();
    while (!strstr(text, "    #1 "));
    expect("thread 'traced'");
    assert_int_equal(prudence_option_set("stall_trace", "0"), 0);
    held_reader_end(&reader);
    assert_int_equal(prudence_cache_barrier(cache), 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

#define ODD                                                                                        \
    "\n\033[31m\177\x9b\xc2\x9b\xc3\xa9" /* a line's end, what a terminal obeys, and a letter */
#define SHOWN "??[31m???\xc3\xa9"

/* Returns the text of everything that has names: the summary, all statistics, and the heap walk. */
static const char *everything(struct prudence_cache *cache)
{
    FILE *file = fmemopen(text, sizeof text, "w");

    assert_int_equal(prudence_stats_print(file, PRUDENCE_STATS_TEXT), 0);
    assert_int_equal(prudence_heap_print(cache, file, PRUDENCE_STATS_TEXT), 0);
    fclose(file);
    return text;
}

/* No name can start a new line, or send controls to a terminal. */
TEST(names_are_shown_within_their_line)
{
    char *name_before = program_invocation_short_name, odd_program[] = "prog" ODD;
    struct prudence_domain *domain =
        prudence_domain_create("domain" ODD, PRUDENCE_DOMAIN_MEMB, NULL);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *cache = prudence_cache_create("cache" ODD, 1024, &attr);
    struct held_reader reader = {.domain = domain};

    held_reader_start(&reader);
    pthread_setname_np(reader.thread, "p\033\x9b\xc3\xa9");
    defer_some(cache);
    program_invocation_short_name = odd_program;
    for (unsigned all = 0; all < 2; all++) {
        if (all)
            everything(cache);
        else
            dumped();
        expect("process %d (prog" SHOWN "), ", (int)getpid());
        expect("of cache 'cache" SHOWN "', domain 'domain" SHOWN "': thread 'p??\xc3\xa9' (tid ");
        for (const char *at = text; *at; at++)
            assert_true(*at == '\n' || (unsigned char)*at >= ' ');
    }
    expect("\ncache cache" SHOWN "\n");
    expect("\ndomain domain" SHOWN "\n");
    expect("\nreader p??\xc3\xa9\n  domain                 domain" SHOWN "\n");
    expect("bytes of 'cache" SHOWN "': objects of 1024 bytes");
    program_invocation_short_name = name_before;
    held_reader_end(&reader);
    assert_int_equal(prudence_cache_barrier(cache), 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* Returns the number of reading system calls of this process; 0 if the system does not count
 * them. */
static unsigned long reads(void)
{
    unsigned long count = 0;
    FILE *file = fopen("/proc/self/io", "re");
    char line[64];

    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "syscr: %lu", &count) == 1)
            break;
    if (file)
        fclose(file);
    return count;
}

/* Only the reported thread is looked up, because there may be thousands. */
TEST(one_thread_is_looked_up_for_each_cache)
{
    struct prudence_cache *cache = prudence_cache_create("routes", 1024, NULL);
    struct held_reader readers[60];
    unsigned long before, after;

    for (unsigned i = 0; i < 60; i++) {
        readers[i] = (struct held_reader){.domain = NULL};
        held_reader_start(&readers[i]);
    }
    defer_some(cache);
    before = reads();
    dumped();
    after = reads();
    expect("thread '%.15s'", program_invocation_short_name); /* as long as the kernel's names */
    assert_true(after - before < 10);
    for (unsigned i = 0; i < 60; i++)
        held_reader_end(&readers[i]);
    assert_int_equal(prudence_cache_barrier(cache), 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* ------------------------------------------------------------------------------------- callers */

TEST(inside_the_library_no_lock_is_taken)
{
    os_lock_take(&readers_lock);
    os_lock_take(&slab_caches_lock);
    dumped();
    expect("slabs and large blocks: ");
    os_lock_take(&pages_lock);
    dumped();
    os_lock_release(&pages_lock);
    expect_none("slabs and large blocks: ");
    os_lock_release(&slab_caches_lock);
    os_lock_release(&readers_lock);
    expect("process %d", (int)getpid());
    expect("latent_limit: ");
    expect("in force ");
    expect("of latent_ceiling ");
    expect("(no reader was blocking)");
    expect("this thread was interrupted inside the library");
    expect_none("live");
}

TEST(errors_of_writing_are_returned)
{
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    assert_int_equal(prudence_dump(-1), EBADF);
    assert_int_equal(prudence_dump(full), ENOSPC);
    close(full);
}

static unsigned heads(void)
{
    unsigned count = 0;

    for (const char *at = text; (at = strstr(at, "prudence " PRUDENCE_VERSION ": process")); at++)
        count++;
    return count;
}

static void read_and_remove(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    contents(fd);
    close(fd);
    unlink(path);
}

TEST(a_signal_writes_to_the_file)
{
    char path[128];
    pid_t child;

    assert_int_equal(prudence_option_set("dump_file", path_in("of-%p.txt")), 0);
    assert_int_equal(prudence_option_set("dump", "SIGUSR2"), 0);
    raise(SIGUSR2);
    raise(SIGUSR2);
    snprintf(path, sizeof path, "%s/of-%d.txt", directory, (int)getpid());
    read_and_remove(path);
    assert_int_equal(heads(), 2);
    child = fork();
    if (child == 0) {
        raise(SIGUSR2);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    snprintf(path, sizeof path, "%s/of-%d.txt", directory, (int)child);
    read_and_remove(path);
    assert_int_equal(heads(), 1);
    expect("process %d", (int)child);
    assert_int_equal(prudence_option_set("dump", "0"), 0);
    assert_int_equal(prudence_option_set("dump_file", ""), 0);
}

static int signals_to_standard_error(void *argument)
{
    prudence_option_set("dump_file", "/nowhere/at all");
    prudence_option_set("dump", argument);
    raise(SIGUSR1);
    prudence_option_set("dump_file", "");
    raise(SIGUSR1);
    return 0;
}

TEST(what_cannot_be_done_is_said)
{
    static char longest[129];

    expect_exit(0, signals_to_standard_error("SIGUSR1"),
                "option 'dump_file': '/nowhere/at all' cannot be opened");
    assert_int_equal(said("prudence " PRUDENCE_VERSION ": process"), 2);
    assert_int_equal(prudence_option_set("dump", "SIGKILL"), EINVAL);
    assert_int_equal(prudence_option_set("dump", "1"), EINVAL);
    memset(longest, 'x', 128);
    assert_int_equal(prudence_option_set("dump_file", longest), EINVAL);
    longest[127] = '\0';
    assert_int_equal(prudence_option_set("dump_file", longest), 0);
    assert_int_equal(prudence_option_set("dump_file", ""), 0);
}

static unsigned handled;

static void handle(int number)
{
    handled += (unsigned)number;
}

static struct sigaction present_of(int number)
{
    struct sigaction present;

    sigaction(number, NULL, &present);
    return present;
}

/* A handler installed before is called, too, and restored afterwards. A handler installed later
 * stays. */
TEST(handlers_of_the_program_stay)
{
    struct sigaction own = {.sa_handler = handle};

    assert_int_equal(prudence_option_set("dump_file", path_in("handled.txt")), 0);
    sigaction(SIGUSR1, &own, NULL);
    assert_int_equal(prudence_option_set("dump", "SIGUSR1"), 0);
    assert_int_equal(prudence_option_set("dump", "SIGUSR1"), 0);
    raise(SIGUSR1);
    assert_int_equal(handled, SIGUSR1);
    read_and_remove(path_in("handled.txt"));
    assert_int_equal(heads(), 1);
    assert_int_equal(prudence_option_set("dump", "SIGUSR2"), 0);
    assert_ptr_equal(present_of(SIGUSR1).sa_handler, handle);
    sigaction(SIGUSR2, &own, NULL);
    assert_int_equal(prudence_option_set("dump", "0"), 0);
    assert_ptr_equal(present_of(SIGUSR2).sa_handler, handle);
    signal(SIGUSR1, SIG_DFL);
    signal(SIGUSR2, SIG_DFL);
    signal(SIGQUIT, SIG_DFL); /* a program in the background of a shell ignores it */
    assert_int_equal(prudence_option_set("dump", "SIGQUIT"), 0);
    assert_int_equal(prudence_option_set("dump", "SIGHUP"), 0);
    assert_ptr_equal(present_of(SIGQUIT).sa_handler, SIG_DFL);
    assert_int_equal(prudence_option_set("dump", "0"), 0);
    assert_int_equal(prudence_option_set("dump_file", ""), 0);
}

static struct sigaction older;

static void handle_first(int number, siginfo_t *info, void *context)
{
    handled++;
    older.sa_sigaction(number, info, context);
}

/* A handler that calls the one before it, ours, may get ours in front, too. Each writes or runs
 * once. */
TEST(our_handler_is_called_by_the_one_that_it_calls)
{
    struct sigaction own = {.sa_handler = handle};
    struct sigaction first = {.sa_sigaction = handle_first, .sa_flags = SA_SIGINFO};

    assert_int_equal(prudence_option_set("dump_file", path_in("chain.txt")), 0);
    sigaction(SIGUSR1, &own, NULL);
    assert_int_equal(prudence_option_set("dump", "SIGUSR1"), 0);
    handled = 0;
    for (unsigned round = 1; round < 4; round++) {
        sigaction(SIGUSR1, &first, &older);
        assert_int_equal(prudence_option_set("dump", "SIGUSR1"), 0);
        raise(SIGUSR1);
        assert_int_equal(handled, round * (SIGUSR1 + 1));
        read_and_remove(path_in("chain.txt"));
        assert_int_equal(heads(), 1);
    }
    assert_int_equal(prudence_option_set("dump", "0"), 0);
    assert_ptr_equal(present_of(SIGUSR1).sa_sigaction, handle_first);
    raise(SIGUSR1);
    assert_int_equal(handled, 4 * (SIGUSR1 + 1));
    signal(SIGUSR1, SIG_DFL);
    assert_int_equal(prudence_option_set("dump_file", ""), 0);
}

/* A program that removes its handler restores the one before it, ours, of which there may be one
 * more by then. The removed handler may be gone with its code. */
TEST(a_handler_that_the_program_removed_is_forgotten)
{
    struct sigaction own = {.sa_handler = handle};
    struct sigaction first = {.sa_sigaction = handle_first, .sa_flags = SA_SIGINFO};

    assert_int_equal(prudence_option_set("dump_file", path_in("removed.txt")), 0);
    for (unsigned again = 0; again < 2; again++) {
        sigaction(SIGUSR1, &own, NULL);
        assert_int_equal(prudence_option_set("dump", "SIGUSR1"), 0);
        sigaction(SIGUSR1, &first, &older);
        assert_int_equal(prudence_option_set("dump", "SIGUSR1"), 0);
        sigaction(SIGUSR1, &older, NULL);
        if (again)
            assert_int_equal(prudence_option_set("dump", "SIGUSR1"), 0);
        handled = 0;
        raise(SIGUSR1);
        assert_int_equal(handled, SIGUSR1);
        read_and_remove(path_in("removed.txt"));
        assert_int_equal(heads(), 1);
        assert_int_equal(prudence_option_set("dump", "0"), 0);
        assert_ptr_equal(present_of(SIGUSR1).sa_handler, handle);
    }
    signal(SIGUSR1, SIG_DFL);
    assert_int_equal(prudence_option_set("dump_file", ""), 0);
}

/* Two options may choose one signal; it stays until neither does. */
TEST(two_options_share_a_signal)
{
    struct sigaction own = {.sa_handler = handle};

    assert_int_equal(prudence_option_set("dump_file", path_in("shared.txt")), 0);
    sigaction(SIGUSR1, &own, NULL);
    assert_int_equal(prudence_option_set("dump", "SIGUSR1"), 0);
    assert_int_equal(prudence_option_set("profile_signal", "SIGUSR1"), 0);
    assert_int_equal(prudence_option_set("profile_signal", "0"), 0);
    raise(SIGUSR1);
    read_and_remove(path_in("shared.txt"));
    assert_int_equal(heads(), 1);
    assert_int_equal(prudence_option_set("dump", "0"), 0);
    assert_ptr_equal(present_of(SIGUSR1).sa_handler, handle);
    signal(SIGUSR1, SIG_DFL);
    assert_int_equal(prudence_option_set("dump_file", ""), 0);
}

/* A signal without a handler calls none, even if its flags are set. */
TEST(flags_without_a_handler_are_none)
{
    static void (*const actions[])(int) = {SIG_DFL, SIG_IGN};

    assert_int_equal(prudence_option_set("dump_file", path_in("none.txt")), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct sigaction none = {.sa_flags = SA_SIGINFO};

        none.sa_handler = actions[i];
        sigaction(SIGUSR1, &none, NULL);
        assert_int_equal(prudence_option_set("dump", "SIGUSR1"), 0);
        raise(SIGUSR1);
        read_and_remove(path_in("none.txt"));
        assert_int_equal(heads(), 1);
        assert_int_equal(prudence_option_set("dump", "0"), 0);
        assert_ptr_equal(present_of(SIGUSR1).sa_handler, actions[i]);
    }
    signal(SIGUSR1, SIG_DFL);
    assert_int_equal(prudence_option_set("dump_file", ""), 0);
}

/* A handler that cleans up, and then ends the process by the signal. */
static void handle_once(int number)
{
    if (handled++)
        _exit(1);
    raise(number);
}

static int raise_for_one_time(void *ignored)
{
    struct sigaction own = {.sa_handler = handle_once, .sa_flags = (int)SA_RESETHAND};

    handled = 0;
    sigaction(SIGUSR1, &own, NULL);
    prudence_option_set("dump", "SIGUSR1");
    raise(SIGUSR1);
    return 2;
}

TEST(a_handler_for_one_signal_is_called_once)
{
    struct child_result result;

    child_run(raise_for_one_time, NULL, &result);
    assert_true(WIFSIGNALED(result.status));
    assert_int_equal(WTERMSIG(result.status), SIGUSR1);
    assert_int_equal(child_count(&result, "prudence " PRUDENCE_VERSION ": process"), 1);
}

#define WORKERS 3
#define SIGNALS 100

static bool over;

static void *work(void *ignored)
{
    while (!load_relaxed(&over)) {
        struct prudence_domain *domain =
            prudence_domain_create("short", PRUDENCE_DOMAIN_MEMB, NULL);
        struct prudence_cache_attr attr = {.size = sizeof attr};
        struct prudence_cache *cache;

        attr.domain = domain;
        cache = prudence_cache_create("short", 100, &attr);
        for (unsigned i = 0; i < 2000; i++)
            prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
        while (prudence_cache_destroy(cache))
            prudence_cache_barrier(cache);
        prudence_domain_destroy(domain);
    }
    return ignored;
}

TEST(signals_may_come_anywhere)
{
    pthread_t workers[WORKERS];

    assert_int_equal(prudence_option_set("dump_file", path_in("storm.txt")), 0);
    assert_int_equal(prudence_option_set("dump", "SIGUSR2"), 0);
    threads_start(workers, WORKERS, work);
    for (unsigned i = 0; i < SIGNALS; i++) {
        pthread_kill(workers[i % WORKERS], SIGUSR2);
        dumped();
        assert_int_equal(heads(), 1);
        expect("latent_limit: ");
    }
    store_relaxed(&over, true);
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(workers[i], 0);
    read_and_remove(path_in("storm.txt"));
    assert_true(heads() > 0);
    assert_int_equal(prudence_option_set("dump", "0"), 0);
    assert_int_equal(prudence_option_set("dump_file", ""), 0);
}

SUITE_BETWEEN(directory_make, directory_remove)
