/* SPDX-License-Identifier: MIT */
/*
 * Messages name the thread and the object, both for misuse and for the reader that keeps garbage
 * past its limit. The library reports the latter once, at the first time, and not after
 * stall_timeout.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include "support/suite.h"

#include <pthread.h>

#include <prudence/call.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/stats.h"

/* --------------------------------------------------------------------------------- past a limit */

static uint64_t overruns(void)
{
    return stats_now().latent_overruns;
}

static void *name_and_read(void *argument)
{
    pthread_setname_np(pthread_self(), "stays-inside");
    return held_reader_run(argument);
}

static void start_reader(struct held_reader *reader, void *(*run)(void *))
{
    sem_init(&reader->inside, 0, 0);
    sem_init(&reader->leave, 0, 0);
    if (pthread_create(&reader->thread, NULL, run, reader))
        abort();
    while (sem_wait(&reader->inside))
        ;
}

static int pass_the_limit(void *domain, void *(*run)(void *))
{
    struct held_reader reader = {.domain = domain};
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *cache = prudence_cache_create("garbage", 64, &attr);

    start_reader(&reader, run);
    while (overruns() < 5)
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    fprintf(stderr, "reader %d\n", (int)reader.tid);
    held_reader_end(&reader);
    return 42;
}

static int overrun_by_option(void)
{
    return pass_the_limit(prudence_domain_create("kept", PRUDENCE_DOMAIN_MEMB, NULL),
                          name_and_read);
}

TEST(the_first_overrun_names_the_reader)
{
    char reader[128];
    const char *at;

    expect_again(42, "overrun", "latent_limit=64K,wait_max=1ms,stall_trace=1", "");
    assert_int_equal(said("latent_limit: "), 1);
    assert_true(said("more than the limit of 64 KB"));
    at = strstr(last_child.output, "\nreader ");
    assert_non_null(at);
    snprintf(
        reader, sizeof reader,
        "thread 'stays-inside' (tid %d) is inside a read-side critical section of domain 'kept'",
        atoi(at + strlen("\nreader ")));
    assert_true(said(reader));
    assert_true(said("it is now at:"));
}

/* Reports the thread that defers, without a trace. */
static int overrun_in_a_section(void)
{
    struct prudence_cache *cache = prudence_cache_create("garbage", 64, NULL);

    prudence_read_lock();
    while (overruns() < 5)
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    prudence_read_unlock();
    return 42;
}

TEST(or_the_caller_itself)
{
    expect_again(42, "inside", "latent_limit=64K", "");
    assert_int_equal(said("latent_limit: "), 1);
    assert_true(said("is inside a read-side critical section of domain 'default'"));
    assert_false(said("it is now at:"));
}

/* A thread that is online has no section that could be shorter. */
static void *name_and_stay_online(void *argument)
{
    struct held_reader *reader = argument;

    pthread_setname_np(pthread_self(), "stays-online");
    prudence_qsbr_online(reader->domain);
    sem_post(&reader->inside);
    while (sem_wait(&reader->leave))
        ;
    prudence_qsbr_offline(reader->domain);
    return NULL;
}

static int overrun_by_quiescent_states(void)
{
    return pass_the_limit(prudence_domain_create("reported", PRUDENCE_DOMAIN_QSBR, NULL),
                          name_and_stay_online);
}

TEST(quiescent_states_are_asked_for)
{
    expect_again(42, "online", "latent_limit=64K,wait_max=1ms", "thread 'stays-online' (tid ",
                 ") has announced no quiescent state in domain 'reported', blocking",
                 "should do so more often");
    assert_false(said("inside a read-side critical section"));
}

static uint64_t begun;
static bool caller_reads;

static uint64_t start_poll(void *context)
{
    return ++begun;
}

static bool poll_state(void *context, uint64_t cookie)
{
    return false;
}

static bool read_lock_held(void *context)
{
    return caller_reads;
}

static int overrun_by_others(void)
{
    const struct prudence_domain_ops ops = {.size = sizeof ops,
                                            .start_poll = start_poll,
                                            .poll_state = poll_state,
                                            .read_lock_held = read_lock_held};
    struct prudence_cache_attr attr = {
        .size = sizeof attr, .domain = prudence_domain_create_external("others", &ops, NULL)};
    struct prudence_cache *cache = prudence_cache_create("garbage", 64, &attr);

    while (overruns() < 5)
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    return 42;
}

static int overrun_by_the_caller(void)
{
    caller_reads = true;
    return overrun_by_others();
}

TEST(readers_of_another_library_are_told_what_to_do)
{
    expect_again(42, "others", "latent_limit=64K,wait_max=1ms",
                 "of domain 'others' is under way; its readers belong to",
                 "should report quiescent states, or leave their sections");
    assert_false(said("this thread is one"));
    expect_again(42, "caller", "latent_limit=64K", "but this thread is one");
}

/* --------------------------------------------------------------------------------------- misuse */

static struct prudence_domain *domain;
static char nobodys[64];

static void unlock(void)
{
    prudence_read_unlock();
}

static void lock_and_unlock_twice(void)
{
    prudence_read_lock();
    prudence_read_unlock();
    prudence_read_unlock();
}

static void unlock_a_domain(void)
{
    prudence_domain_read_unlock(domain);
}

static void free_what_is_nobodys(void)
{
    prudence_free(nobodys);
}

static void free_deferred_what_is_nobodys(void)
{
    prudence_free_deferred(nobodys);
}

static void free_to_another_cache(void)
{
    struct prudence_cache *one = prudence_cache_create("one", 64, NULL);
    struct prudence_cache *other = prudence_cache_create("other", 64, NULL);

    prudence_cache_free(other, prudence_cache_alloc(one));
}

struct misuse {
    void (*act)(void);
    const char *names[3];
};

static void *act_in_a_thread(void *misuse)
{
    pthread_setname_np(pthread_self(), "culprit");
    ((const struct misuse *)misuse)->act();
    return NULL;
}

static int misuse_in_a_thread(void *misuse)
{
    pthread_t thread;

    domain = prudence_domain_create("mine", PRUDENCE_DOMAIN_MEMB, NULL);
    if (pthread_create(&thread, NULL, act_in_a_thread, misuse))
        return 1;
    pthread_join(thread, NULL);
    return 0;
}

TEST(misuse_names_thread_and_object)
{
    static struct misuse misuses[] = {
        {unlock, {"prudence_read_unlock", "default domain"}},
        {lock_and_unlock_twice, {"prudence_read_unlock", "default domain"}},
        {unlock_a_domain, {"prudence_domain_read_unlock", "domain 'mine'"}},
        {free_what_is_nobodys, {"prudence_free:", "foreign pointer 0x"}},
        {free_deferred_what_is_nobodys, {"prudence_free_deferred:", "foreign pointer 0x"}},
        {free_to_another_cache, {"prudence_cache_free:", "cache 'one'", "'other'"}},
    };

    for (unsigned i = 0; i < sizeof misuses / sizeof *misuses; i++) {
        expect_death(misuse_in_a_thread(&misuses[i]), "");
        for (unsigned name = 0; name < 3 && misuses[i].names[name]; name++)
            if (!said(misuses[i].names[name]))
                fail_msg("'%s' is not in: %s", misuses[i].names[name], last_child.output);
        if (!said("[in thread 'culprit' (tid "))
            fail_msg("no thread in: %s", last_child.output);
    }
}

/* ---------------------------------------------------------------------------------- on one line */

static int misuse_of_odd_names(void)
{
    struct prudence_cache *cache =
        prudence_cache_create("a\nprudence: all\033[2J\xc2\x9b\xc3\xa9", 64, NULL);

    pthread_setname_np(pthread_self(), "odd\033c");
    prudence_cache_free(cache, &cache);
    return 0;
}

/* A message ends where the library ends it, and contains no control character for a terminal. */
TEST(a_message_is_one_line)
{
    expect_death(misuse_of_odd_names(), "");
    assert_false(said("\nprudence: all"));
    assert_true(said("in thread 'odd?c'"));
    assert_false(said("\033"));
    assert_false(said("\x9b"));
    assert_true(said("\xc3\xa9"));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } children[] = {
        {"overrun", overrun_by_option},          {"inside", overrun_in_a_section},
        {"online", overrun_by_quiescent_states}, {"others", overrun_by_others},
        {"caller", overrun_by_the_caller},
    };

    for (unsigned i = 0; argc > 1 && i < sizeof children / sizeof *children; i++)
        if (!strcmp(argv[1], children[i].name))
            return children[i].run();
    return suite_run(NULL, NULL);
}
