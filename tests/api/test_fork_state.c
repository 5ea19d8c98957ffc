/* SPDX-License-Identifier: MIT */
/*
 * Walks the table of the process's state (process/fork.h): a row of the matrix
 * (support/fork_matrix.h) for each part. The test brings the part into a state that involves other
 * threads; the child finds no trace of them.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit with threads)
 */
#define _GNU_SOURCE

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>

#include <prudence/hash.h>
#include <prudence/urcu-compat.h>

#include "gp/user/domain.h"
#include "process/fork.h"
#include "heap/heap.h"
#include "heap/nested.h"
#include "slab/reclaim/limit.h"
#include "tables/writers.h"
#include "support/fork_matrix.h"

/* --------------------------------------------------------------- tables of the program (ADR 67) */

static struct prudence_cache *nodes;
static struct prudence_hash *table;

static void make_table(void)
{
    nodes = prudence_cache_create("nodes", sizeof(struct prudence_hash_node), NULL);
    table = prudence_hash_create("table", NULL);
}

static void update_table(void)
{
    struct prudence_hash_node *node = prudence_cache_alloc(nodes);

    prudence_read_lock();
    prudence_hash_add_duplicate(table, 1, node);
    assert_int_equal(prudence_hash_remove(table, node), 0);
    prudence_read_unlock();
    prudence_cache_free_deferred(nodes, node);
}

static int updates_go_on(void)
{
    update_table(); /* in the other thread's bucket, which its object may be in */
    return load_relaxed(&writers_stopped) || prudence_hash_count(table) > FORK_BUSY;
}

static void destroy_table(void)
{
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
    assert_int_equal(prudence_cache_destroy(nodes), 0);
}

/* ------------------------------------------------------------- fork handlers, options, streams */

static void nothing(void)
{
}

static void *register_handler(void *unused)
{
    fork_registration_begin();
    fork_reach_with_lock();
    fork_registration_end();
    return unused;
}

static int registers(void)
{
    fork_registration_begin();
    fork_registration_end();
    return pthread_atfork(nothing, NULL, NULL);
}

/* test_options_by_threads.c is the one that reliably forks in the middle. */
static void set_option(void)
{
    assert_int_equal(prudence_option_set("preflush", "1"), 0);
}

static int sets_option(void)
{
    set_option();
    return 0;
}

static FILE *file;

static void open_file(void)
{
    file = tmpfile();
}

static void *hold_stream(void *unused)
{
    flockfile(file);
    fork_reach();
    funlockfile(file);
    return unused;
}

static int uses_streams(void)
{
    FILE *other = tmpfile();

#ifdef __GLIBC__ /* in musl's child, streams that other threads held stay locked */
    fflush(NULL);
#endif
    return !other || fputs("x", other) < 0 || fclose(other);
}

static void close_file(void)
{
    fclose(file);
}

/* -------------------------------------------------------------------------------------- system */

static int has_membarrier(void)
{
    if (os_membarrier_available() &&
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
        return 1;
    return os_percpu_rseq && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0);
}

static pid_t worker_process;
static unsigned works_in_child;

static void do_later(void)
{
    if (getpid() == worker_process)
        fork_reach();
    else
        works_in_child++;
}

/* Takes the request, and works. */
static void *work_later(void *unused)
{
    worker_process = getpid();
    os_later(OS_LATER_ADVICE, do_later);
    os_later_run();
    return unused;
}

/* The child has no thread that ends the work, so it is done again. */
static int works_again(void)
{
    os_later_run();
    return works_in_child != 1;
}

/* ---------------------------------------------------------------- liburcu's workers, callbacks */

static void block(struct rcu_head *head)
{
    fork_reach();
}

static unsigned ran;

static void count(struct rcu_head *head)
{
    ran++;
}

static struct call_rcu_data *worker;
static pthread_t barrier;

static void *stand_in_barrier(void *unused)
{
    prudence_urcu_barrier(NULL);
    return unused;
}

/* A barrier of another thread pins the worker; one callback runs, one is pending. */
static void pin_worker(void)
{
    static struct rcu_head heads[2];

    ran = 0;
    worker = prudence_urcu_create(NULL, 0, -1);
    prudence_urcu_set_thread(NULL, worker);
    prudence_urcu_call(NULL, &heads[0], block);
    prudence_urcu_call(NULL, &heads[1], count);
    prudence_urcu_set_thread(NULL, NULL);
    fork_await();
    barrier = thread_start(stand_in_barrier, NULL);
    pause_ms(5); /* by now it is most likely there; if not, this run tests less */
}

static int frees_worker(void)
{
    prudence_urcu_free(worker);
    return prudence_barrier() || ran != 1;
}

static void free_worker(void)
{
    pthread_join(barrier, NULL);
    prudence_urcu_free(worker);
    assert_int_equal(prudence_barrier(), 0);
}

/* ---------------------------------------------------------------------------- heap, side area */

static void *hold_heap(void *unused)
{
    os_lock_take(&heap_lock);
    fork_reach_with_lock();
    os_lock_release(&heap_lock);
    return unused;
}

#define SIDE_BLOCK 20000 /* a chunk has room for two */

static void *side_block(void)
{
    bool zeroed;

    return nested_alloc(SIDE_BLOCK, 1, &zeroed);
}

static void defer_side_block(void)
{
    prudence_free_deferred(side_block());
}

/* The child reuses a block that was deferred in it. */
static int reuses_side_block(void)
{
    void *block = side_block();

    prudence_free_deferred(block);
    for (unsigned i = 0; block && i < 1000; i++) {
        prudence_synchronize();
        if (side_block() == block)
            return 0;
    }
    return 1;
}

/* ------------------------------------------------------------------------------------- readers */

static struct prudence_domain *domain, *set, *visited[2];
static struct prudence_cache *cache;
static struct held_reader reader;

static void make_domains(void)
{
    struct prudence_cache_attr attr = {.size = sizeof attr};

    domain = prudence_domain_create("forked", PRUDENCE_DOMAIN_SRCU, NULL);
    set = prudence_domain_create_set("set", &domain, 1);
    attr.domain = domain;
    cache = prudence_cache_create("of the domain", 64, &attr);
    reader.domain = domain;
    held_reader_start(&reader);
}

static void *visit(void *unused)
{
    struct prudence_domain *found[16];
    uint64_t after = 0;
    unsigned count = domains_visit(found, 16, &after, false);

    fork_reach();
    while (count)
        gp_domain_leave(found[--count]);
    return unused;
}

static int destroys_domains(void)
{
    if (prudence_domain_synchronize(domain) || prudence_domain_synchronize(set))
        return 1;
    if (prudence_domain_destroy(domain) != EBUSY || prudence_cache_destroy(cache) ||
        prudence_domain_destroy(domain) != EBUSY)
        return 2; /* the cache, and then the set, refer to it */
    return prudence_domain_destroy(set) || prudence_domain_destroy(domain);
}

static void destroy_domains(void)
{
    held_reader_end(&reader);
    assert_int_equal(destroys_domains(), 0);
}

/* The forking thread's own visits. */
static void make_and_visit_domains(void)
{
    uint64_t after = 0;

    make_domains();
    assert_int_equal(domains_visit(visited, 2, &after, true), 2);
    assert_ptr_equal(visited[1], domain);
}

static int leaves_domains(void)
{
    if (domain->visitors != 1)
        return 2;
    gp_domain_leave(visited[1]);
    gp_domain_leave(visited[0]);
    return domain->visitors != 0;
}

static void leave_and_destroy_domains(void)
{
    leaves_domains();
    destroy_domains();
}

/* ---------------------------------------------------------------------------- external domains */

static unsigned foreign_threads; /* atomic */

static void foreign_thread_starts(void *unused)
{
    __atomic_fetch_add(&foreign_threads, 1, __ATOMIC_RELEASE);
}

static void ignore(void *unused)
{
}

static int await_foreign_thread(void)
{
    while (__atomic_exchange_n(&foreign_threads, 0, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    return 0;
}

static void make_external_domain(void)
{
    static const struct prudence_domain_ops ops = {.size = sizeof ops,
                                                   .synchronize = ignore,
                                                   .thread_starts = foreign_thread_starts,
                                                   .thread_ends = ignore};

    domain = prudence_domain_create_external("foreign", &ops, NULL);
    await_foreign_thread();
}

static void destroy_domain(void)
{
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* -------------------------------------------------------------------------------------- caches */

#define NOBODYS ((size_t)1 << 20)

static bool carrying;
static uint64_t used_before;

/* Memory that other threads reserved, and which is in no ring or slab. */
static void reserve(void)
{
    prudence_free_deferred(prudence_malloc(1000));
    used_before = limit_used();
    limit_reserve_past(0, NOBODYS);
}

static void *carry(void *unused)
{
    os_in_flight_begin();
    carrying = true;
    fork_reach_with_lock();
    carrying = false;
    os_in_flight_end();
    return unused;
}

static int counts_anew(void)
{
    if (carrying || !os_in_flight_try())
        return 1;
    os_in_flight_end();
    return limit_used() > used_before;
}

static void release(void)
{
    limit_release(0, NOBODYS);
}

/* ----------------------------------------------------------------------------------- the matrix */

/* Each named after its part, before the comma. */
static const struct fork_row rows[] = {
    {"fork handlers", .other = register_handler, .in_child = registers},
    {"options", .busy = set_option, .in_child = sets_option},
    {"tables", make_table, .busy = update_table, .in_child = updates_go_on,
     .tear_down = destroy_table},
    {"streams", open_file, hold_stream, .in_child = uses_streams, .tear_down = close_file},
    {"system", .in_child = has_membarrier},
    {"system, work that another thread has begun", .other = work_later, .in_child = works_again},
    {"liburcu's workers", pin_worker, .in_child = frees_worker, .tear_down = free_worker},
    {"heap", .other = hold_heap},
    {"readers, visits of another thread", make_domains, visit, .in_child = destroys_domains,
     .tear_down = destroy_domains},
    {"readers, own visits", make_and_visit_domains, .in_child = leaves_domains,
     .tear_down = leave_and_destroy_domains},
    {"external domains", make_external_domain, .in_child = await_foreign_thread,
     .tear_down = destroy_domain},
    {"caches", reserve, carry, .in_child = counts_anew, .tear_down = release},
    {"side area", .busy = defer_side_block, .in_child = reuses_side_block},
};
#define ROWS (sizeof rows / sizeof rows[0])

/* Parts that other rows or tests have. */
static const char *const elsewhere[] = {
    "liburcu's tables",  /* test_urcu_atfork.c */
    "short-term memory", /* shortterm/test_fork.c */
    "destructors",       /* test_fork_at_each_step.c */
    "pages",             /* the same */
    "callbacks",         /* test_call_fork.c */
    "queued heads",      /* the same */
    "quarantine",        /* from here on as the heap: locks, which the child takes */
    "guarded objects",
    "large blocks that rest",
    "pages to close or open",
    "annotations",
    "the forking thread", /* all rows */
};

static bool is_tested(const char *part)
{
    for (size_t i = 0; i < ROWS; i++)
        if (!strncmp(rows[i].name, part, strcspn(rows[i].name, ",")) &&
            !part[strcspn(rows[i].name, ",")])
            return true;
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
        if (!strcmp(elsewhere[i], part))
            return true;
    return false;
}

TEST(every_part_has_a_row)
{
    for (unsigned i = 0; i < FORK_PARTS; i++) {
        assert_non_null(fork_parts[i]);
        if (!is_tested(fork_parts[i]->name))
            fail_msg("no row has the part '%s'", fork_parts[i]->name);
    }
}

TEST(nothing_of_other_threads_is_in_the_child)
{
    fork_matrix(rows, ROWS);
}

SUITE()
