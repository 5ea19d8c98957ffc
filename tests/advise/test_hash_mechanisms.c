/* SPDX-License-Identifier: MIT */
/*
 * ctest: cost 10
 * ctest: not-with thread (it reads counters of other threads, which these write plainly)
 * The hash table of the thesis' benchmark (programs/advise/hash). Each mechanism keeps its table
 * whole while threads search, remove and add, and no search reaches memory that was reused. The
 * same checks find that a table without a lock breaks.
 */
#include "support/slab_test.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loops.h"
#include "operations.h"

#define THREADS    2
#define OPERATIONS 2000 /* of a thread */

static const struct hash_mechanism *mechanism_named(const char *name)
{
    for (unsigned i = 0; hash_mechanism_name(i); i++)
        if (!strcmp(hash_mechanism_name(i), name))
            return &hash_mechanisms[i];
    fail_msg("there is no mechanism %s", name);
    return NULL;
}

struct worker {
    struct crew_member member;
    const struct hash_mechanism *mechanism;
    bool checked;
};

static void *work(void *argument)
{
    struct worker *self = argument;

    (self->checked ? self->mechanism->work_checked : self->mechanism->work)(&self->member,
                                                                            OPERATIONS);
    return NULL;
}

/* Runs in a child, because a process makes the table only once, and a fault ends the process. */
static void run_child(const struct hash_mechanism *mechanism, bool checked)
{
    static struct worker workers[THREADS];

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a broken table may keep threads spinning for ever */
    hash_prepare(mechanism);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.mechanism = mechanism, .checked = checked};
        crew_member_init(&workers[i].member, i);
        if (pthread_create(&workers[i].member.thread, NULL, work, &workers[i]))
            abort();
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(workers[i].member.thread, NULL);
    mechanism->check_whole();
    for (unsigned i = 0; i < THREADS; i++)
        if (workers[i].member.done < OPERATIONS || workers[i].member.done > OPERATIONS + 1)
            hash_fault("operations were not counted");
    _exit(EXIT_SUCCESS);
}

/* Returns the exit status of the child, or 128 + the signal that ended the child. */
static int status_of(const char *name, double updates, uint64_t drive_each, bool checked)
{
    int status;
    pid_t child;

    hash_load = (struct hash_load){.threads = THREADS,
                                   .buckets = 4,
                                   .pairs_below = hash_pairs_below(updates),
                                   .drive_each = drive_each};
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        run_child(mechanism_named(name), checked);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(each_mechanism_keeps_its_table_whole)
{
    for (unsigned i = 0; hash_mechanism_name(i); i++) {
        const char *name = hash_mechanism_name(i);

        if (!strcmp(name, "ideal"))
            continue;
        if (status_of(name, 0.5, 0, true))
            fail_msg("%s, with checks", name);
        if (status_of(name, 0.5, 0, false))
            fail_msg("%s, as it is measured", name);
    }
}

/* Two members: each is in a bucket at the same time as the other, and the first stays there until
 * the other has done some operations. */
static struct worker pair[2];
static bool first_is_inside;
enum { DONE_OUTSIDE = 8 };

static bool may_go_on(const struct crew_member *self)
{
    if (self->number)
        return __atomic_load_n(&first_is_inside, __ATOMIC_RELAXED);
    return __atomic_load_n(&pair[1].member.done, __ATOMIC_RELAXED) >= DONE_OUTSIDE;
}

static void meet_the_other(struct crew_member *self)
{
    if (self->number == 0)
        __atomic_store_n(&first_is_inside, true, __ATOMIC_RELAXED);
    while (!may_go_on(self))
        sched_yield();
}

static void *work_a_little(void *argument)
{
    struct worker *self = argument;

    self->mechanism->work_checked(&self->member, 1);
    return NULL;
}

/* Ends by SIGALRM if one keeps the other out. Of 4,096 buckets none is used by both so early. */
static void stay_in_a_bucket(const char *name)
{
    hash_load = (struct hash_load){.threads = 2, .buckets = 4096};
    hash_load.pairs_below = hash_pairs_below(1);
    hash_prepare(mechanism_named(name));
    hash_pause = meet_the_other;
    for (unsigned i = 0; i < 2; i++) {
        pair[i].mechanism = mechanism_named(name);
        crew_member_init(&pair[i].member, i);
    }
    if (pthread_create(&pair[0].member.thread, NULL, work_a_little, &pair[0]) ||
        pthread_create(&pair[1].member.thread, NULL, work, (pair[1].checked = true, &pair[1])))
        abort();
    alarm(60);
    pthread_join(pair[0].member.thread, NULL);
    _exit(EXIT_SUCCESS);
}

TEST(a_lock_of_a_bucket_keeps_nobody_out_of_others)
{
    static const char *const names[] = {"bkt", "bktcl", "bktrw"};

    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        int status;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0)
            stay_in_a_bucket(names[i]);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status)
            fail_msg("%s: one that is in its bucket keeps others out", names[i]);
    }
}

TEST(grace_periods_may_be_driven_by_the_load)
{
    assert_int_equal(status_of("rcu", 0.5, 10, true), 0);
    assert_int_equal(status_of("prudence", 0.5, 10, true), 0);
}

/* A search that is stopped at its first element while each key of the bucket is removed, and all
 * memory that is free then is used for something else. */
enum { FREE_MOST = 1000 };

static void remove_and_reuse(struct crew_member *self)
{
    hash_pause = NULL;
    hazard_remove_checked(self, hash_load.buckets); /* the first one, if there are two */
    hazard_remove_checked(self, 0);
    prudence_cache_shrink(hash_cache);
    for (unsigned i = 0; i < FREE_MOST; i++) {
        struct element *element = prudence_cache_alloc(hash_cache);

        if (!element)
            hash_fault("no memory");
        element->state = ELEMENT_NEW;
    }
}

/* Searches for the first key of a bucket with one or two elements. */
static int status_of_stopped_search(bool two)
{
    int status;
    pid_t child;

    hash_load = (struct hash_load){.threads = 1, .buckets = 4};
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct crew_member self;

        crew_member_init(&self, 0);
        hash_prepare(mechanism_named("hazard"));
        if (two) {
            struct element *first = prudence_cache_alloc(hash_cache);

            fill_in(&self, first, hash_load.buckets, false);
            prudence_list_add_rcu(&first->link, &bucket_of(0)->chain);
        }
        hash_pause = remove_and_reuse;
        hazard_search_checked(&self, 0);
        _exit(hash_pause ? EXIT_FAILURE : EXIT_SUCCESS);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(an_element_that_a_search_names_is_not_reused)
{
    assert_int_equal(status_of_stopped_search(false), EXIT_SUCCESS);
}

/* The element after it is reused, and the search does not go there. */
TEST(a_search_at_a_removed_element_starts_over)
{
    assert_int_equal(status_of_stopped_search(true), EXIT_SUCCESS);
}

/* Threads that never run at the same time break nothing, so more than one run may be needed. */
TEST(without_a_lock_it_is_not_whole)
{
    int status = EXIT_SUCCESS;

    for (unsigned run = 0; run < 1000 && status == EXIT_SUCCESS; run++)
        status = status_of("ideal", 0.5, 0, true);
    assert_int_equal(status, EXIT_FAILURE);
}

TEST(the_share_of_updates_counts_operations)
{
    const double shares[] = {0, 0.02, 0.5, 1};

    for (unsigned i = 0; i < sizeof shares / sizeof *shares; i++) {
        double pairs = (double)hash_pairs_below(shares[i]) / (double)CREW_RANDOM_END;

        /* A pair counts as two operations, a search as one. */
        assert_true(fabs(2 * pairs / (2 * pairs + 1 - pairs) - shares[i]) < 1e-12);
    }
}

SUITE()
