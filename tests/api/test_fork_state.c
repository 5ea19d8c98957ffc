/* SPDX-License-Identifier: MIT */
/*
 * Walks the table of the process's state (process/fork.h). The test brings each part into a state
 * that involves other threads, then forks; the child finds no trace of them. Every part has a row
 * here.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit beside threads)
 */
#define _GNU_SOURCE

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#include <prudence/call.h>
#include <prudence/hash.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/scm.h>
#include <prudence/stats.h>
#include <prudence/urcu-compat.h>
#include <prudence/urcu-compat/urcu/flavor.h>

#include "gp/user/domain.h"
#include "process/fork.h"
#include "heap/heap.h"
#include "heap/nested.h"
#include "slab/reclaim/limit.h"
#include "tables/writers.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"

/* A thread that runs up to `reach()`, and continues when it is allowed to. */
static sem_t reached, may_go_on;
static pthread_t other;

static void reach(void)
{
    sem_post(&reached);
    while (sem_wait(&may_go_on))
        ;
}

static void other_begin(void *(*run)(void *argument), void *argument)
{
    sem_init(&reached, 0, 0);
    sem_init(&may_go_on, 0, 0);
    assert_int_equal(pthread_create(&other, NULL, run, argument), 0);
    while (sem_wait(&reached))
        ;
}

static void other_end(void)
{
    sem_post(&may_go_on);
    pthread_join(other, NULL);
}

/* ----------------------------------------------------------------------------- liburcu's tables */

static unsigned stopped, went_on, made_anew;

static void stop_tables(void *unused)
{
    stopped++;
}

static void go_on_with_tables(void *unused)
{
    went_on++;
}

static void make_tables_anew(void *unused)
{
    made_anew++;
}

static int tables_go_on(void *unused)
{
    return stopped == 1 && made_anew == 1 && went_on == 0 ? 42 : 1;
}

static void tables(void)
{
    struct urcu_atfork handlers = {stop_tables, go_on_with_tables, make_tables_anew, NULL};

    prudence_urcu_atfork_register(&handlers);
    assert_child(tables_go_on, NULL);
    assert_true(stopped == 1 && went_on == 1 && made_anew == 0);
    prudence_urcu_before_fork(); /* once is enough */
    stopped--;
    went_on = 0;
    assert_child(tables_go_on, NULL);
    assert_true(stopped == 1 && went_on == 0);
    prudence_urcu_after_fork_parent();
    assert_true(went_on == 1 && made_anew == 0);
    prudence_urcu_atfork_unregister(&handlers);
}

/* --------------------------------------------------------------- tables of the program (ADR 67) */

static struct prudence_cache *nodes;
static struct prudence_hash *table;
static bool no_more_updates; /* atomic */

static void update_table(uint64_t key)
{
    struct prudence_hash_node *node = prudence_cache_alloc(nodes);

    prudence_read_lock();
    prudence_hash_add_duplicate(table, key, node);
    assert_int_equal(prudence_hash_remove(table, node), 0);
    prudence_read_unlock();
    prudence_cache_free_deferred(nodes, node);
}

static void *update_often(void *unused)
{
    update_table(1);
    sem_post(&reached);
    while (!load_relaxed(&no_more_updates))
        update_table(1);
    return unused;
}

static int updates_go_on(void *unused)
{
    update_table(1); /* in the other thread's bucket, which its object may be in */
    return load_relaxed(&writers_stopped) == 0 && prudence_hash_count(table) <= 1 ? 42 : 1;
}

static void program_tables(void)
{
    nodes = prudence_cache_create("nodes", sizeof(struct prudence_hash_node), NULL);
    table = prudence_hash_create("table", NULL);
    other_begin(update_often, NULL);
    for (unsigned i = 0; i < 20; i++)
        assert_child(updates_go_on, NULL);
    store_relaxed(&no_more_updates, true);
    other_end();
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
    assert_int_equal(prudence_cache_destroy(nodes), 0);
}

/* ---------------------------------------------------------------------- fork handlers, streams */

static void nothing(void)
{
}

static void *register_often(void *unused)
{
    fork_registration_begin();
    sem_post(&reached);
    pause_ms(5); /* fork waits */
    fork_registration_end();
    return unused;
}

static int registers(void *unused)
{
    fork_registration_begin();
    fork_registration_end();
    return pthread_atfork(nothing, NULL, NULL) ? 1 : 42;
}

static void registrations(void)
{
    other_begin(register_often, NULL);
    assert_child(registers, NULL);
    other_end();
}

static void *hold_stream(void *file)
{
    flockfile(file);
    reach();
    funlockfile(file);
    return NULL;
}

static int uses_streams(void *unused)
{
    FILE *file = tmpfile();

#ifdef __GLIBC__ /* in musl's child, streams that other threads held stay locked */
    fflush(NULL);
#endif
    return file && fputs("x", file) >= 0 && fclose(file) == 0 ? 42 : 1;
}

static void streams(void)
{
    FILE *file = tmpfile();
    struct child_result result;
    int ends[2];
    pid_t child;

    other_begin(hold_stream, file);
    assert_int_equal(pipe(ends), 0); /* child_run would flush, and wait for the holder */
    child = fork();
    if (child == 0) {
        alarm(CHILD_PATIENCE);
        _exit(uses_streams(NULL));
    }
    close(ends[1]);
    child_collect(child, ends[0], &result);
    other_end();
    assert_true(child_exited_with(&result, 42));
    fclose(file);
}

/* -------------------------------------------------------------------------------------- system */

static int has_membarrier(void *unused)
{
    if (os_membarrier_available() &&
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
        return 1;
    if (os_percpu_rseq && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0))
        return 2;
    return 42;
}

static void system_state(void)
{
    assert_child(has_membarrier, NULL);
}

/* ---------------------------------------------------------------- liburcu's workers, callbacks */

static void block(struct prudence_head *head)
{
    reach();
}

static unsigned ran;

static void count(struct prudence_head *head)
{
    __atomic_fetch_add(&ran, 1, __ATOMIC_SEQ_CST);
}

static void *stand_in_barrier(void *unused)
{
    prudence_urcu_barrier(NULL);
    return unused;
}

static int frees_worker(void *worker)
{
    prudence_urcu_free(worker);
    return prudence_barrier() ? 1 : ran == 1 ? 42 : 2;
}

/* A barrier of another thread pins the worker; one callback runs, one is pending. */
static void workers(void)
{
    static struct rcu_head heads[2];
    struct call_rcu_data *worker = prudence_urcu_create(NULL, 0, -1);
    pthread_t barrier;

    sem_init(&reached, 0, 0);
    sem_init(&may_go_on, 0, 0);
    prudence_urcu_set_thread(NULL, worker);
    prudence_urcu_call(NULL, &heads[0], (void (*)(struct rcu_head *))(void (*)(void))block);
    prudence_urcu_call(NULL, &heads[1], (void (*)(struct rcu_head *))(void (*)(void))count);
    prudence_urcu_set_thread(NULL, NULL);
    while (sem_wait(&reached))
        ;
    pthread_create(&barrier, NULL, stand_in_barrier, NULL);
    pause_ms(5); /* by now it is most likely there; if not, this run tests less */
    ran = 0;
    assert_child(frees_worker, worker);
    sem_post(&may_go_on);
    pthread_join(barrier, NULL);
    prudence_urcu_free(worker);
    assert_int_equal(prudence_barrier(), 0);
}

static int runs_callbacks(void *unused)
{
    static struct prudence_head another;

    prudence_call(&another, count);
    return prudence_barrier() ? 1 : ran == 2 ? 42 : 2;
}

static void callbacks(void)
{
    static struct prudence_head heads[2];

    sem_init(&reached, 0, 0);
    sem_init(&may_go_on, 0, 0);
    ran = 0;
    prudence_call(&heads[0], block);
    while (sem_wait(&reached))
        ;
    prudence_call(&heads[1], count);
    assert_child(runs_callbacks, NULL);
    sem_post(&may_go_on);
    assert_int_equal(prudence_barrier(), 0);
}

/* --------------------------------------------------------------------------- short-term memory */

static void *take_part(void *unused)
{
    scm_register_thread();
    scm_global_refresh(scm_malloc(100), 1);
    reach();
    scm_unregister_thread();
    return unused;
}

static int time_goes_on(void *unused)
{
    void *object = scm_malloc(64);
    struct prudence_stats stats;

    scm_register_thread();
    if (scm_global_refresh(object, 1))
        return 1;
    for (unsigned i = 0; i < 10; i++)
        if (scm_global_tick() || scm_collect())
            return 2;
    prudence_stats(&stats);
    return scm_unregister_thread() ? 3 : 42;
}

static void short_term_memory(void)
{
    other_begin(take_part, NULL);
    assert_child(time_goes_on, NULL);
    other_end();
}

/* ---------------------------------------------------------------------------- heap, instruments */

static int uses_the_heap(void *unused)
{
    struct prudence_cache *cache = prudence_cache_create("child's", 72, NULL);

    for (unsigned i = 0; i < 2000; i++) {
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
        prudence_free(prudence_malloc(i * 41));
        prudence_free_deferred(prudence_aligned_alloc(4096, i * 7));
    }
    prudence_synchronize();
    prudence_trim();
    return prudence_cache_destroy(cache) ? 1 : 42;
}

#define SIDE_BLOCK 20000 /* a chunk has room for two */

static void *side_block(void)
{
    bool zeroed;

    return nested_alloc(SIDE_BLOCK, 1, &zeroed);
}

static bool stop_deferring;

static void *defer_side_blocks(void *unused)
{
    sem_post(&reached);
    while (!load_relaxed(&stop_deferring))
        prudence_free_deferred(side_block());
    return unused;
}

/* The child reuses a block that was deferred in it. */
static int finds_deferred_block(void *block)
{
    for (unsigned i = 0; block && i < 1000; i++) {
        prudence_synchronize();
        if (side_block() == block)
            return 42;
    }
    return 1;
}

static int defers_side_block(void *unused)
{
    void *block = side_block();

    prudence_free_deferred(block);
    return finds_deferred_block(block);
}

static void side_area(void)
{
    other_begin(defer_side_blocks, NULL);
    for (unsigned i = 0; i < 20; i++)
        assert_child(defers_side_block, NULL);
    store_relaxed(&stop_deferring, true);
    other_end();
}

static void *hold_heap(void *unused)
{
    os_lock_take(&heap_lock);
    sem_post(&reached);
    pause_ms(5); /* fork waits */
    os_lock_release(&heap_lock);
    return unused;
}

static void heap(void)
{
    other_begin(hold_heap, NULL);
    assert_child(uses_the_heap, NULL);
    other_end();
}

/* ------------------------------------------------------------------------------------- readers */

static struct prudence_domain *domain, *set;

static void *visit(void *unused)
{
    struct prudence_domain *visited[16];
    uint64_t after = 0;
    unsigned count = domains_visit(visited, 16, &after, false);

    reach();
    while (count)
        gp_domain_leave(visited[--count]);
    return unused;
}

static int destroys_domains(void *cache)
{
    if (prudence_domain_synchronize(domain) || prudence_domain_synchronize(set))
        return 1;
    if (prudence_domain_destroy(domain) != EBUSY || prudence_cache_destroy(cache) ||
        prudence_domain_destroy(domain) != EBUSY)
        return 2; /* the cache, and then the set, refer to it */
    if (prudence_domain_destroy(set))
        return 3;
    return prudence_domain_destroy(domain) ? 4 : 42;
}

static int leaves_domains(void *visited)
{
    struct prudence_domain **domains = visited;

    if (domain->visitors != 1)
        return 2;
    gp_domain_leave(domains[1]);
    gp_domain_leave(domains[0]);
    return domain->visitors ? 1 : 42;
}

static void readers(void)
{
    struct prudence_cache_attr attr = {.size = sizeof attr};
    struct prudence_domain *visited[2];
    struct held_reader reader;
    struct prudence_cache *cache;
    uint64_t after = 0;

    domain = prudence_domain_create("forked", PRUDENCE_DOMAIN_SRCU, NULL);
    set = prudence_domain_create_set("set", &domain, 1);
    attr.domain = domain;
    cache = prudence_cache_create("of the domain", 64, &attr);
    reader = (struct held_reader){.domain = domain};
    held_reader_start(&reader);
    other_begin(visit, NULL);
    assert_child(destroys_domains, cache);
    other_end();
    assert_int_equal(domains_visit(visited, 2, &after, true), 2); /* the forking thread's own */
    assert_child(leaves_domains, visited);
    assert_ptr_equal(visited[1], domain);
    gp_domain_leave(visited[1]);
    gp_domain_leave(visited[0]);
    held_reader_end(&reader);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(prudence_domain_destroy(set), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* ---------------------------------------------------------------------------- external domains */

static unsigned foreign_threads; /* atomic */

static void foreign_thread_starts(void *unused)
{
    __atomic_fetch_add(&foreign_threads, 1, __ATOMIC_RELEASE);
}

static void foreign_thread_ends(void *unused)
{
}

static void foreign_synchronize(void *unused)
{
}

static void await_foreign_threads(unsigned count)
{
    while (__atomic_load_n(&foreign_threads, __ATOMIC_ACQUIRE) < count)
        sched_yield();
}

static int has_its_own_foreign_thread(void *unused)
{
    await_foreign_threads(2);
    return 42;
}

static void external_domains(void)
{
    static const struct prudence_domain_ops ops = {.size = sizeof ops,
                                                   .synchronize = foreign_synchronize,
                                                   .thread_starts = foreign_thread_starts,
                                                   .thread_ends = foreign_thread_ends};
    struct prudence_domain *of_others = prudence_domain_create_external("foreign", &ops, NULL);

    assert_non_null(of_others);
    await_foreign_threads(1);
    assert_child(has_its_own_foreign_thread, NULL);
    assert_int_equal(prudence_domain_destroy(of_others), 0);
}

/* -------------------------------------------------------------------------------------- caches */

#define NOBODYS ((size_t)1 << 20)

static bool carrying;

static void *carry(void *unused)
{
    os_in_flight_begin();
    carrying = true;
    sem_post(&reached);
    pause_ms(5); /* fork waits */
    carrying = false;
    os_in_flight_end();
    return unused;
}

static int counts_anew(void *before)
{
    bool free_to_carry = os_in_flight_try();

    if (carrying || !free_to_carry)
        return 1;
    os_in_flight_end();
    return limit_used() <= *(uint64_t *)before ? uses_the_heap(NULL) : 2;
}

/* Memory that other threads reserved, and which is in no ring or slab. */
static void caches(void)
{
    uint64_t before;

    prudence_free_deferred(prudence_malloc(1000));
    before = limit_used();
    other_begin(carry, NULL);
    limit_reserve_past(0, NOBODYS);
    assert_child(counts_anew, &before);
    limit_release(0, NOBODYS);
    other_end();
}

/* --------------------------------------------------------------------------------- destructors */

#define OBJECTS 20

static unsigned destroyed;

static void destroy(void *object, void *unused)
{
    if (__atomic_fetch_add(&destroyed, 1, __ATOMIC_SEQ_CST) == 0)
        reach();
}

static int destroys_the_others(void *cache)
{
    if (prudence_cache_barrier(cache) || destroyed != OBJECTS)
        return 1;
    prudence_cache_shrink(cache);
    return prudence_cache_destroy(cache) ? 2 : 42;
}

static void destructors(void)
{
    struct prudence_cache_attr attr = {
        .size = sizeof attr, .flags = PRUDENCE_CACHE_DESTRUCT_SOON, .destructor = destroy};
    struct prudence_cache *cache = prudence_cache_create("destroyed", 64, &attr);
    void *objects[OBJECTS];

    sem_init(&reached, 0, 0);
    sem_init(&may_go_on, 0, 0);
    prudence_cache_alloc_bulk(cache, OBJECTS, objects);
    prudence_cache_free_deferred_bulk(cache, OBJECTS, objects);
    while (sem_wait(&reached))
        ;
    assert_int_equal(destroyed, 1);
    assert_child(destroys_the_others, cache);
    sem_post(&may_go_on);
    assert_int_equal(prudence_cache_barrier(cache), 0);
    assert_int_equal(destroyed, OBJECTS);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* --------------------------------------------------------------------------------------- pages */

#define MIB ((size_t)1 << 20)

static __thread unsigned questions;

/* Stops at the third question of a large allocation (for slab, pages, huge mapping):
 * the bytes are requested, and no lock is held. */
static bool block_at_third(void)
{
    if (questions && ++questions == 4)
        reach();
    return false;
}

static void *ask_for_much(void *unused)
{
    questions = 1;
    prudence_free(prudence_malloc(200 * MIB));
    return unused;
}

static int has_room(void *unused)
{
    return prudence_malloc(100 * MIB) ? 42 : 1;
}

static void pages(void)
{
    prudence_free(prudence_malloc(40 * MIB)); /* creates the cache */
    prudence_trim();
    prudence_option_set("limit", "256M");
    os_memory_fails = block_at_third;
    other_begin(ask_for_much, NULL);
    assert_child(has_room, NULL);
    other_end();
    os_memory_fails = NULL;
    prudence_option_set("limit", "0");
}

/* ------------------------------------------------------------------------------------- options */

static uint32_t enough_options;

static void *set_options(void *unused)
{
    while (!load_relaxed(&enough_options))
        prudence_option_set("preflush", "1");
    return unused;
}

static int sets_options(void *unused)
{
    return prudence_option_set("preflush", "1") ? 1 : 42;
}

/* test_options_by_threads.c is the one that reliably forks in the middle. */
static void options(void)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, set_options, NULL), 0);
    for (unsigned i = 0; i < 20; i++)
        assert_child(sets_options, NULL);
    store_relaxed(&enough_options, 1u);
    pthread_join(thread, NULL);
}

/* --------------------------------------------------------------------------- the forking thread */

static int is_no_forker(void *unused)
{
    return os_lock_forking || os_busy ? 1 : uses_the_heap(NULL);
}

static void forker(void)
{
    assert_child(is_no_forker, NULL);
    assert_false(os_lock_forking || os_busy);
}

/* ---------------------------------------------------------------------------------- the walk */

static const struct row {
    const char *part;
    void (*walk)(void);
} rows[] = {
    {"liburcu's tables", tables},
    {"fork handlers", registrations},
    {"options", options},
    {"tables", program_tables},
    {"streams", streams},
    {"system", system_state},
    {"liburcu's workers", workers},
    {"short-term memory", short_term_memory},
    {"heap", heap},
    {"readers", readers},
    {"external domains", external_domains},
    {"callbacks", callbacks},
    {"queued heads", callbacks},
    {"caches", caches},
    {"destructors", destructors},
    {"quarantine", heap},
    {"guarded objects", heap},
    {"large blocks that rest", heap},
    {"pages to close or open", heap},
    {"annotations", heap},
    {"side area", side_area},
    {"pages", pages},
    {"the forking thread", forker},
};

TEST(every_part_has_a_row)
{
    (void)state;
    assert_int_equal(FORK_PARTS, sizeof rows / sizeof rows[0]);
    for (unsigned i = 0; i < FORK_PARTS; i++) {
        assert_non_null(fork_parts[i]);
        assert_string_equal(fork_parts[i]->name, rows[i].part);
    }
}

TEST(nothing_of_other_threads_is_in_the_child)
{
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("    %s\n", rows[i].part);
        alarm(patience(60));
        rows[i].walk();
    }
    alarm(0);
}

SUITE()
