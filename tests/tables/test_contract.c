/* SPDX-License-Identifier: MIT */
/*
 * What is true of every table (docs/adr/0134), said once for all kinds (kinds.h): what updates
 * return and store; refusals; destruction with and without a function that takes the objects; a
 * child; threads; domains; memory that waits for readers, and its limit.
 */
#include <prudence/hazard.h>

#include "tables/kinds.h"

#include <unistd.h>

#include "slab/reclaim/wait.h"
#include "support/stats.h"
#include "support/threads.h"

#define ENTRIES 700u

static struct entry entries[ENTRIES], others[ENTRIES];
static void *table;

/* An update that stores nothing leaves this. */
#define UNSET (&others[ENTRIES - 1])

static void begin_in(struct prudence_domain *domain)
{
    memset(entries, 0, sizeof entries);
    table = table_make(tested, domain);
    assert_true(*tested->keys >= ENTRIES);
}

static void begin(void)
{
    begin_in(NULL);
}

static void end(void)
{
    assert_int_equal(tested->count(table), 0);
    assert_int_equal(tested->destroy(table, NULL, NULL), 0);
}

static void add_entries(unsigned first, unsigned behind)
{
    for (unsigned i = first; i < behind; i++)
        assert_int_equal(tested->add(table, i, &entries[i], NULL), 0);
}

static void erase_entries(unsigned first, unsigned behind)
{
    for (unsigned i = first; i < behind; i++) {
        struct entry *erased = UNSET;

        assert_int_equal(tested->erase(table, i, &erased), 0);
        assert_ptr_equal(erased, &entries[i]);
    }
}

static void expect_entries(unsigned first, unsigned behind)
{
    for (unsigned i = 0; i < ENTRIES; i++)
        assert_ptr_equal(tested->get(table, i), i >= first && i < behind ? &entries[i] : NULL);
    assert_int_equal(tested->count(table), behind - first);
}

static uint64_t latent_bytes(void)
{
    struct table_stats stats;

    assert_int_equal(tested->stats(table, &stats), 0);
    return stats.bytes_latent;
}

/* -------------------------------------------------------------------------------------- updates */

/* Checks an update's result, and what it has stored. */
#define FINDS(update, result, stored)                                                              \
    do {                                                                                           \
        struct entry *found = UNSET;                                                               \
                                                                                                   \
        assert_int_equal(tested->update, result);                                                  \
        assert_ptr_equal(found, stored);                                                           \
    } while (0)

static void an_update_tells_what_was_there(void)
{
    struct entry *const first = &entries[0], *const second = &entries[1];

    begin();
    FINDS(erase(table, 3, &found), ENOENT, NULL);
    if (tested->swap)
        FINDS(swap(table, 3, second, &found), ENOENT, NULL);
    FINDS(add(table, 3, first, &found), 0, NULL);
    FINDS(add(table, 3, second, &found), EEXIST, first);
    assert_ptr_equal(tested->get(table, 3), first);
    if (tested->put)
        FINDS(put(table, 3, second, &found), 0, first);
    else
        FINDS(swap(table, 3, second, &found), 0, first);
    assert_ptr_equal(tested->get(table, 3), second);
    FINDS(erase(table, 3, &found), 0, second);
    if (tested->put)
        FINDS(put(table, 3, first, &found), 0, NULL);
    else
        FINDS(add(table, 3, first, &found), 0, NULL);
    FINDS(erase(table, 3, &found), 0, first);
    end();
}

static void nobody_needs_to_know_what_was_there(void)
{
    begin();
    assert_int_equal(tested->erase(table, 1, NULL), ENOENT);
    assert_int_equal(tested->add(table, 1, &entries[0], NULL), 0);
    assert_int_equal(tested->add(table, 1, &entries[1], NULL), EEXIST);
    if (tested->put)
        assert_int_equal(tested->put(table, 1, &entries[1], NULL), 0);
    if (tested->swap)
        assert_int_equal(tested->swap(table, 1, &entries[1], NULL), 0);
    assert_int_equal(tested->erase(table, 1, NULL), 0);
    if (tested->put)
        assert_int_equal(tested->put(table, 1, &entries[0], NULL), 0);
    if (tested->swap)
        assert_int_equal(tested->swap(table, 1, &entries[0], NULL), ENOENT);
    assert_int_equal(tested->erase(table, 1, NULL), tested->put ? 0 : ENOENT);
    end();
}

static void an_object_that_was_refused_is_not_there(void)
{
    begin();
    assert_int_equal(tested->add(table, 1, &entries[0], NULL), 0);
    assert_int_equal(tested->add(table, 1, &entries[1], NULL), EEXIST);
    if (tested->remove)
        assert_int_equal(tested->remove(table, &entries[1]), ENOENT);
    if (tested->replace)
        assert_int_equal(tested->replace(table, 1, &entries[1], &entries[2]), ENOENT);
    assert_ptr_equal(tested->get(table, 1), &entries[0]);
    assert_int_equal(tested->count(table), 1);
    assert_int_equal(tested->erase(table, 1, NULL), 0);
    end();
}

/* The object that is named is replaced, and no other. */
static void a_replacement_compares(void)
{
    if (!tested->replace)
        return;
    begin();
    assert_int_equal(tested->add(table, 1, &entries[0], NULL), 0);
    assert_int_equal(tested->erase(table, 1, NULL), 0);
    assert_int_equal(tested->replace(table, 1, &entries[0], &entries[1]), ENOENT);
    assert_int_equal(tested->replace(table, 1, &entries[1], &entries[2]), ENOENT);
    if (tested->remove)
        assert_int_equal(tested->remove(table, &entries[1]), ENOENT);
    add_entries(1, 2);
    assert_int_equal(tested->replace(table, 1, &entries[0], &entries[2]), ENOENT);
    assert_ptr_equal(tested->get(table, 1), &entries[1]);
    assert_int_equal(tested->replace(table, 1, &entries[1], &entries[2]), 0);
    assert_ptr_equal(tested->get(table, 1), &entries[2]);
    FINDS(erase(table, 1, &found), 0, &entries[2]);
    end();
}

/* The caller would own an object that readers find in the table, if an update took one object as
 * the old and as the new one. Values may be equal, unless the caller names both. */
static void no_object_takes_its_own_place(void)
{
    struct entry *const first = &entries[0];

    begin();
    assert_int_equal(tested->add(table, 0, first, NULL), 0);
    if (tested->flags & TABLE_OBJECTS) {
        FINDS(put(table, 0, first, &found), EINVAL, NULL);
        assert_int_equal(tested->put(table, 0, first, NULL), EINVAL);
        FINDS(add(table, 0, first, &found), EEXIST, first);
    } else if (tested->put) {
        FINDS(put(table, 0, first, &found), 0, first);
    } else if (tested->flags & TABLE_CHOOSES) {
        FINDS(swap(table, 0, first, &found), EINVAL, NULL);
    } else {
        FINDS(swap(table, 0, first, &found), 0, first);
    }
    if (tested->replace)
        assert_int_equal(tested->replace(table, 0, first, first), EINVAL);
    assert_ptr_equal(tested->get(table, 0), first);
    assert_int_equal(tested->count(table), 1);
    assert_int_equal(tested->erase(table, 0, NULL), 0);
    end();
}

/* Without a table if `of` is NULL, and without an object if `entry` is. */
static void refuses(void *of, struct entry *entry)
{
    FINDS(add(of, 1, entry, &found), EINVAL, NULL);
    if (tested->put)
        FINDS(put(of, 1, entry, &found), EINVAL, NULL);
    if (tested->swap)
        FINDS(swap(of, 1, entry, &found), EINVAL, NULL);
    if (tested->replace) {
        assert_int_equal(tested->replace(of, 1, entry, &others[0]), EINVAL);
        assert_int_equal(tested->replace(of, 1, &others[0], entry), EINVAL);
    }
    if (tested->add_duplicate)
        assert_int_equal(tested->add_duplicate(of, 1, entry), EINVAL);
    if (tested->remove)
        assert_int_equal(tested->remove(of, entry), EINVAL);
    if (!of)
        FINDS(erase(of, 1, &found), EINVAL, NULL);
}

static void without_a_table_or_an_object_nothing_is_done(void)
{
    struct table_stats stats;

    begin();
    refuses(NULL, &entries[1]);
    refuses(table, NULL);
    assert_int_equal(tested->count(NULL), 0);
    assert_int_equal(tested->stats(NULL, &stats), EINVAL);
    assert_int_equal(tested->stats(table, NULL), EINVAL);
    assert_int_equal(tested->destroy(NULL, NULL, NULL), EINVAL);
    end();
}

/* ---------------------------------------------------------------------------------- destruction */

static struct entry *made[ENTRIES];
static unsigned disposed;

/* Frees the object, so that AddressSanitizer sees a table that looks at it again. */
static void dispose(struct entry *entry, void *argument)
{
    assert_ptr_equal(argument, &disposed);
    assert_ptr_equal(made[entry->key], entry);
    if (tested->flags & (TABLE_SORTED | TABLE_CHOOSES))
        assert_int_equal(entry->key, disposed);
    made[entry->key] = NULL;
    disposed++;
    explicit_bzero(entry, sizeof *entry);
    free(entry);
}

static uint64_t few_hashes(uint64_t number)
{
    return number % 10;
}

static void destroy_with(unsigned count)
{
    struct prudence_domain *domain =
        tested->flags & TABLE_DOMAIN ? prudence_domain_create("test", PRUDENCE_DOMAIN_MEMB, NULL)
                                     : NULL;

    begin_in(domain);
    for (unsigned i = 0; i < count; i++) {
        made[i] = malloc(sizeof *made[i]);
        assert_non_null(made[i]);
        made[i]->key = i;
        assert_int_equal(tested->add(table, i, made[i], NULL), 0);
    }
    if (!(tested->flags & TABLE_KEEPS))
        assert_int_equal(tested->destroy(table, NULL, NULL), EBUSY);
    if (tested->flags & TABLE_DOMAIN) {
        prudence_domain_read_lock(domain);
        assert_int_equal(tested->destroy(table, dispose, &disposed), EDEADLK);
        prudence_domain_read_unlock(domain);
        assert_int_equal(prudence_domain_destroy(domain), EBUSY);
    }
    for (unsigned i = 0; i < ENTRIES; i++)
        assert_ptr_equal(tested->get(table, i), i < count ? made[i] : NULL);
    assert_int_equal(tested->count(table), count);
    tested->check(table);
    disposed = 0;
    assert_int_equal(tested->destroy(table, dispose, &disposed), 0);
    for (unsigned i = 0; tested->flags & TABLE_KEEPS && i < count; i++)
        dispose(made[i], &disposed);
    assert_int_equal(disposed, count);
    if (domain)
        assert_int_equal(prudence_domain_destroy(domain), 0);
}

static void a_table_goes_with_what_is_in_it(void)
{
    static const unsigned counts[] = {1, 2, 5, 100, ENTRIES};
    uint64_t (*const usual)(uint64_t) = table_hash;
    const uint64_t before = stats_now().objects_live;

    table_hash = few_hashes; /* chains of several */
    for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++)
        destroy_with(counts[i]);
    table_hash = usual;
    assert_int_equal(stats_now().objects_live, before);
}

/* ---------------------------------------------------------------------------------------- walks */

static void erase_two_of_three(unsigned key, struct entry *entry, void *visits)
{
    assert_ptr_equal(entry, &entries[key]);
    assert_false(entry->in);
    entry->in = true;
    ++*(unsigned *)visits;
    if (key % 3)
        assert_int_equal(tested->erase(table, key, NULL), 0);
}

static void a_walk_may_erase_what_it_finds(void)
{
    unsigned visits = 0;

    begin();
    add_entries(0, ENTRIES);
    tested->walk(table, erase_two_of_three, &visits);
    assert_int_equal(visits, ENTRIES);
    for (unsigned i = 0; i < ENTRIES; i++)
        assert_ptr_equal(tested->get(table, i), i % 3 ? NULL : &entries[i]);
    tested->check(table);
    for (unsigned i = 0; i < ENTRIES; i += 3)
        erase_entries(i, i + 1);
    end();
}

/* --------------------------------------------------------------------------- processes, threads */

static void go_on(void)
{
    expect_entries(0, ENTRIES / 4);
    add_entries(ENTRIES / 4, ENTRIES);
    expect_entries(0, ENTRIES);
    erase_entries(0, ENTRIES);
    tested->check(table);
    end();
}

static void a_child_goes_on(void)
{
    pid_t child;

    begin();
    add_entries(0, ENTRIES / 4);
    child = fork();
    go_on();
    if (!child)
        _exit(0);
    assert_int_equal(status_of(child), 0);
}

#define THREADS 4
#define ROUNDS  200
#define SHARED  50 /* keys */

static struct entry contended[THREADS][ROUNDS];
static int won[THREADS];

/* All threads use the same keys: one adds each, and one erases it. Another thread may be reading an
 * object that was in the table, so it does not come back. */
static void *contend(void *argument)
{
    const unsigned number = (unsigned)(uintptr_t)argument;

    for (unsigned round = 0; round < 200; round++) {
        prudence_read_lock();
        for (unsigned i = 0; i < ROUNDS; i++) {
            struct entry *entry = &contended[number][i];

            if (entry->in)
                continue;
            entry->in = !tested->add(table, i % SHARED, entry, NULL);
            won[number] += entry->in;
        }
        for (unsigned i = 0; i < SHARED; i++)
            won[number] -= !tested->erase(table, i, NULL);
        prudence_read_unlock();
    }
    return NULL;
}

static void one_of_several_threads_succeeds(void)
{
    pthread_t threads[THREADS];
    int left = 0;

    begin();
    memset(contended, 0, sizeof contended);
    memset(won, 0, sizeof won);
    threads_start(threads, THREADS, contend);
    threads_join(threads, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        left += won[i];
    assert_int_equal(tested->count(table), left);
    for (unsigned i = 0; i < SHARED; i++)
        left -= !tested->erase(table, i, NULL);
    assert_int_equal(left, 0);
    tested->check(table);
    end();
}

/* Adds one to the value, which is a number, or inserts the first one. */
static void count_up(void)
{
    struct entry *value = NULL;

    while (tested->add(table, 1, (struct entry *)1, &value) &&
           tested->replace(table, 1, value, (struct entry *)((uintptr_t)value + 1)))
        value = NULL;
}

static uintptr_t counted(void)
{
    struct entry *value = NULL;

    tested->erase(table, 1, &value);
    return (uintptr_t)value;
}

/* An insertion of a value by hash meets another one rarely. */
static unsigned counts(void)
{
    return tested->flags & TABLE_ROOM_TO_CHANGE ? 100000 : 5000;
}

static void *count_all(void *sum)
{
    for (unsigned i = 0; i < counts(); i++) {
        count_up();
        if (i % 2)
            *(uintptr_t *)sum += counted();
    }
    return NULL;
}

static void no_count_is_lost(void)
{
    uintptr_t sums[THREADS] = {0}, all;
    struct prudence_domain *domain = prudence_domain_create("test", PRUDENCE_DOMAIN_MEMB, NULL);
    pthread_t threads[THREADS];

    begin_in(domain);
    for (unsigned i = 0; i < THREADS; i++)
        threads[i] = thread_start(count_all, &sums[i]);
    threads_join(threads, THREADS);
    all = counted();
    for (unsigned i = 0; i < THREADS; i++)
        all += sums[i];
    assert_int_equal(all, THREADS * counts());
    end();
    assert_int_equal(prudence_domain_destroy(domain), 0); /* no cache is left, so no entry is */
}

/* -------------------------------------------------------------------------------------- domains */

static void in_each_kind_of_domain(void)
{
    static const enum prudence_domain_kind kinds[] = {PRUDENCE_DOMAIN_MEMB, PRUDENCE_DOMAIN_SRCU,
                                                      PRUDENCE_DOMAIN_QSBR};

    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct prudence_domain *domain = prudence_domain_create("test", kinds[i], NULL);

        begin_in(domain);
        if (kinds[i] == PRUDENCE_DOMAIN_QSBR)
            prudence_qsbr_online(domain);
        add_entries(0, ENTRIES);
        erase_entries(0, ENTRIES);
        if (kinds[i] == PRUDENCE_DOMAIN_QSBR)
            prudence_qsbr_offline(domain);
        end();
        assert_int_equal(prudence_domain_destroy(domain), 0);
    }
}

/* A set has no sections, so updates run inside a section of a member. */
static void in_a_set_of_domains(void)
{
    struct prudence_domain *members[] = {prudence_default_domain()};
    struct prudence_domain *set = prudence_domain_create_set("test", members, 1);

    begin_in(set);
    prudence_read_lock();
    add_entries(0, ENTRIES);
    erase_entries(0, ENTRIES);
    prudence_read_unlock();
    end();
    assert_int_equal(prudence_domain_destroy(set), 0);
}

/* The thread has a hazard pointer to no table's object. The set can be destroyed at once. */
static void in_a_set_with_hazard_pointers(void)
{
    static int of_no_table;
    struct prudence_domain *hazards = prudence_domain_create("h", PRUDENCE_DOMAIN_HAZARD, NULL);
    struct prudence_domain *members[] = {prudence_default_domain(), hazards};
    struct prudence_domain *set = prudence_domain_create_set("test", members, 2);
    struct prudence_hazard *slot = prudence_hazard_acquire_movable();

    prudence_hazard_set(slot, &of_no_table);
    begin_in(set);
    add_entries(0, ENTRIES);
    erase_entries(0, ENTRIES);
    end();
    assert_int_equal(prudence_domain_destroy(set), 0);
    prudence_hazard_release(slot);
    assert_int_equal(prudence_domain_destroy(hazards), 0);
}

/* --------------------------------------------------------------------------------------- memory */

#define LIMIT ((size_t)1 << 20)

/*
 * A reader stays for ever during an update storm. Until an update has waited in vain, latent bytes
 * stay below the limit. They come close to it, so it was the limit that stopped the updates.
 */
static void a_storm_with_a_reader_stays_below_the_limit(void)
{
    struct prudence_domain *domain = manual_domain();
    uint64_t before = load_relaxed(&wait_counts.expiries), most = 0;

    begin_in(domain);
    assert_int_equal(prudence_option_set("latent_limit", "1M"), 0);
    for (unsigned i = 0; load_relaxed(&wait_counts.expiries) == before; i++) {
        most = max_size(most, latent_bytes());
        assert_true(most <= LIMIT && i < 20000);
        add_entries(0, 40);
        erase_entries(0, 40);
    }
    assert_true(most > LIMIT / 2);
    assert_int_equal(prudence_option_set("latent_limit", "0"), 0);
    all_readers_leave(domain);
    assert_int_equal(latent_bytes(), 0);
    tested->check(table);
    end();
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static const struct table_case cases[] = {
    {"an update tells what was there", an_update_tells_what_was_there, 0, 0},
    {"nobody needs to know what was there", nobody_needs_to_know_what_was_there, 0, 0},
    {"an object that was refused is not there", an_object_that_was_refused_is_not_there, 0, 0},
    {"a replacement compares", a_replacement_compares, 0, 0},
    {"no object takes its own place", no_object_takes_its_own_place, 0, 0},
    {"without a table or an object nothing is done", without_a_table_or_an_object_nothing_is_done,
     0, 0},
    {"a table goes with what is in it", a_table_goes_with_what_is_in_it, 0, 0},
    {"a walk may erase what it finds", a_walk_may_erase_what_it_finds, 0, 0},
    {"a child goes on", a_child_goes_on, 0, 0},
    {"one of several threads succeeds", one_of_several_threads_succeeds, 0, TABLE_CHOOSES},
    {"no count is lost", no_count_is_lost, 0, TABLE_OBJECTS | TABLE_CHOOSES | TABLE_KEEPS},
    {"in each kind of domain", in_each_kind_of_domain, TABLE_DOMAIN, 0},
    {"in a set of domains", in_a_set_of_domains, TABLE_DOMAIN, 0},
    {"in a set with hazard pointers", in_a_set_with_hazard_pointers, TABLE_DOMAIN, 0},
    {"a storm with a reader stays below the limit", a_storm_with_a_reader_stays_below_the_limit,
     TABLE_DEFERS, 0},
};

int main(void)
{
    return table_cases_run(cases, sizeof cases / sizeof cases[0]);
}
