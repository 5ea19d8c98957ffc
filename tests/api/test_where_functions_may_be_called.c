/* SPDX-License-Identifier: MIT */
/*
 * Calls every public function in a destructor, in a callback, in a constructor, in sections of
 * every kind and in a fork handler. None may hang. The table below, a copy of the one in
 * docs/reference/rcu.md, gives the result function by function. The test fails if an exported
 * function is missing from it.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include <prudence/bindings.h>
#include <prudence/call.h>
#include <prudence/counter.h>
#include <prudence/epoch.h>
#include <prudence/hash.h>
#include <prudence/hash_rename.h>
#include <prudence/hash_values.h>
#include <prudence/hazard.h>
#include <prudence/heap_walk.h>
#include <prudence/id_table.h>
#include <prudence/log.h>
#include <prudence/lockfree_hash.h>
#include <prudence/map_values.h>
#include <prudence/poll.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/ref.h>
#include <prudence/routes.h>
#include <prudence/scm.h>
#include <prudence/swap.h>
#include <prudence/stats.h>
#include <prudence/structure.h>
#include <prudence/urcu-compat.h>

#include "support/before_constructors.h"
#include "support/gp_child.h"
#include "support/suite.h"
#include "support/updates.h"

/* ---------------------------------------------------------------------------------- the places */

enum place {
    LAZY,        /* a destructor, in an allocation that reuses the memory */
    SOON,        /* ... on the library's thread */
    FREED,       /* ... in prudence_cache_free */
    CALLBACK,    /* of prudence_call */
    CONSTRUCTOR, /* in an allocation that grows the cache */
    MEMB,        /* inside a section of the default domain */
    QSBR,        /* online in some qsbr domain */
    SRCU,        /* inside a section of some srcu domain */
    EXTERNAL,    /* ... of an external domain */
    FORK,        /* in a handler of pthread_atfork that runs between the library's own */
    PLACES,
};

static const char *const place_names[PLACES] = {"a lazy destructor",
                                                "a destructor on the worker",
                                                "a destructor in a free",
                                                "a callback",
                                                "a constructor",
                                                "a section of memb",
                                                "online in qsbr",
                                                "a section of srcu",
                                                "a section of an external domain",
                                                "a fork handler"};

static enum place here; /* where this child calls the functions */

/* Result of the function in each of these places, one letter a place, in that order:
 *
 *   .  the same as elsewhere
 *   E  returns EDEADLK and reports the place
 *   B  returns EBUSY
 *   R  reports the place, and does nothing (functions without a result)
 *   A  reports the place and aborts (such a function cannot say that it did not wait) */
#define EVERYWHERE     ".........."
#define NOT_IN_FORK    ".........B"
#define WAITS_FOR_CODE "EEE..EEEEB"
#define FOR_CALLBACKS  "EEEE.EEEEB"
#define URCU_CALLBACKS "RRRR.R...R"
#define FOR_READERS    ".....EE..B"
#define SYNCHRONIZES   ".....EE..B"
#define OR_ABORTS      ".....AA..."
#define URCU_READERS   ".....A...."

/* ------------------------------------------------------------------------------- what is there */

static struct prudence_cache *plain; /* without a destructor */
/* its destructor waits; some objects are always undone */
static struct prudence_cache *synchronizes;
static struct prudence_domain *memb, *qsbr, *srcu, *external, *manual;

static void wait_in_destructor(void *object, void *unused)
{
    (void)object, (void)unused;
    prudence_synchronize();
}

static void nothing_to_destroy(void *object, void *unused)
{
    (void)object, (void)unused;
}

static struct prudence_cache *cache_with(void (*destructor)(void *object, void *context),
                                         void (*constructor)(void *object, void *context),
                                         unsigned flags)
{
    struct prudence_cache_attr attr = {
        .size = sizeof attr, .flags = flags, .constructor = constructor, .destructor = destructor};
    struct prudence_cache *cache = prudence_cache_create("some", 64, &attr);

    if (!cache)
        abort();
    return cache;
}

static __thread bool inside_external;

static uint64_t start_poll(void *unused)
{
    return 1;
}

static bool poll_state(void *unused, uint64_t cookie)
{
    (void)unused, (void)cookie;
    return true;
}

static bool is_inside(void *unused)
{
    return inside_external;
}

static const struct prudence_domain_ops ops = {.size = sizeof ops,
                                               .start_poll = start_poll,
                                               .poll_state = poll_state,
                                               .read_lock_held = is_inside};

/* Leaves safe and undone objects of `synchronizes` in slabs and on stacks. */
static void leave_some_undone(void)
{
    void *objects[300];

    for (unsigned i = 0; i < 300; i++)
        objects[i] = prudence_cache_alloc(synchronizes);
    for (unsigned i = 0; i < 300; i++)
        prudence_cache_free_deferred(synchronizes, objects[i]);
    prudence_synchronize();
}

static void set_up_places(void)
{
    plain = prudence_cache_create("plain", 64, NULL);
    synchronizes = cache_with(wait_in_destructor, NULL, 0);
    memb = prudence_domain_create("memb", PRUDENCE_DOMAIN_MEMB, NULL);
    qsbr = prudence_domain_create("qsbr", PRUDENCE_DOMAIN_QSBR, NULL);
    srcu = prudence_domain_create("srcu", PRUDENCE_DOMAIN_SRCU, NULL);
    manual = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
    external = prudence_domain_create_external("external", &ops, NULL);
    if (!prudence_cache_create("names it", 64,
                               &(struct prudence_cache_attr){
                                   .size = sizeof(struct prudence_cache_attr), .domain = external}))
        abort();
}

/* ---------------------------------------------------------------------------------- the table */

struct row {
    const char *functions; /* that the body calls; the first is the one that its report names */
    const char *results;
    int (*body)(void); /* returns 0, or an error */
};

extern const struct row *const __start_table[], *const __stop_table[]; /* by the linker */
static const struct row *const *const rows = __start_table;
#define ROWS ((size_t)(__stop_table - __start_table))

/* ROW(functions, results, body) is a row of the table. */
#define ROW(...)          ROW_EXPANDED(__LINE__, __VA_ARGS__)
#define ROW_EXPANDED(...) ROW_AT(__VA_ARGS__)
#define ROW_AT(line, functions, results, ...)                                                      \
    static int body_##line(void)                                                                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }                                                                                              \
    static const struct row row_##line = {functions, results, body_##line};                        \
    __attribute__((section("table"), used)) static const struct row *const row_##line##_at =       \
        &row_##line;

static struct prudence_head *head_of_ours(void)
{
    return prudence_malloc(sizeof(struct rcu_head));
}

static void end_head(struct prudence_head *head)
{
    prudence_free(head);
}

static void end_rcu_head(struct rcu_head *head)
{
    prudence_free(head);
}

static void end_deferred(void *p)
{
    prudence_free(p);
}

static int result_of(bool good)
{
    return good ? 0 : -1;
}

static int free_and(void *object, int result)
{
    prudence_free(object);
    return result;
}

ROW("prudence_aligned_alloc", EVERYWHERE, return free_and(prudence_aligned_alloc(256, 300), 0);)
ROW("prudence_aligned_realloc", EVERYWHERE,
    return free_and(prudence_aligned_realloc(prudence_malloc(10), 64, 100), 0);)
ROW("prudence_barrier", FOR_CALLBACKS, return prudence_barrier();)
ROW(
    "prudence_cache_alloc", EVERYWHERE, for (unsigned i = 0; i < 400; i++) {
        if (!prudence_cache_alloc(
                synchronizes)) /* none of its destructors may run where it would wait */
            return -1;
    } return 0;)
ROW("prudence_cache_alloc_bulk", EVERYWHERE, void *objects[400];
    return result_of(prudence_cache_alloc_bulk(synchronizes, 400, objects) == 400);)
ROW("prudence_barrier_nested", EVERYWHERE, prudence_barrier_nested();
    return 0;) /* refuses without a report */
ROW("prudence_cache_barrier", WAITS_FOR_CODE, return prudence_cache_barrier(synchronizes);)
ROW("prudence_cache_barrier_timed", WAITS_FOR_CODE,
    return prudence_cache_barrier_timed(synchronizes, UINT64_MAX);)
ROW("prudence_cache_barrier", FOR_READERS, return prudence_cache_barrier(plain);)
ROW("prudence_cache_create", EVERYWHERE,
    return result_of(prudence_cache_create("new", 64, NULL) != NULL);)
ROW("prudence_cache_destroy", WAITS_FOR_CODE,
    return prudence_cache_destroy(cache_with(nothing_to_destroy, NULL, 0));)
ROW("prudence_cache_destroy_later", EVERYWHERE,
    prudence_cache_destroy_later(cache_with(nothing_to_destroy, NULL, 0));
    return 0;)
ROW("prudence_cache_destroy", FOR_READERS,
    return prudence_cache_destroy(prudence_cache_create("new", 64, NULL));)
ROW("prudence_cache_free", EVERYWHERE, prudence_cache_free(plain, prudence_cache_alloc(plain));
    return 0;)
ROW("prudence_cache_free_bulk", EVERYWHERE, void *object = prudence_cache_alloc(plain);
    prudence_cache_free_bulk(plain, 1, &object); return 0;)
ROW("prudence_cache_free_deferred", EVERYWHERE,
    prudence_cache_free_deferred(synchronizes, prudence_cache_alloc(synchronizes));
    return 0;)
ROW("prudence_cache_free_deferred_bulk", EVERYWHERE,
    void *object = prudence_cache_alloc(synchronizes);
    prudence_cache_free_deferred_bulk(synchronizes, 1, &object); return 0;)
ROW("prudence_cache_replace", EVERYWHERE,
    return result_of(prudence_cache_replace(synchronizes, prudence_cache_alloc(synchronizes)) !=
                     NULL);)
ROW("prudence_cache_replace_bulk", EVERYWHERE, void *object = prudence_cache_alloc(synchronizes);
    return result_of(prudence_cache_replace_bulk(synchronizes, 1, &object) == 1);)
ROW("prudence_cache_shrink", EVERYWHERE, prudence_cache_shrink(synchronizes); return 0;)
ROW("prudence_cache_alloc_block prudence_cache_create_blocks", EVERYWHERE,
    static struct prudence_cache *blocks;
    blocks = blocks ? blocks : prudence_cache_create_blocks("blocks", NULL);
    void *block = prudence_cache_alloc_block(blocks, 5000, NULL);
    prudence_cache_free(blocks, block); return result_of(block != NULL);)
ROW("prudence_cache_stats_sized", EVERYWHERE, struct prudence_cache_stats stats;
    return prudence_cache_stats(plain, &stats);)
ROW("prudence_call", EVERYWHERE, prudence_call(head_of_ours(), end_head); return 0;)
ROW("prudence_calloc", EVERYWHERE, return free_and(prudence_calloc(3, 5), 0);)
ROW("prudence_check_reader", EVERYWHERE, prudence_check_reader(NULL); return 0;)
ROW("prudence_default_domain", EVERYWHERE, return result_of(prudence_default_domain() != NULL);)
ROW("prudence_domain_barrier", FOR_CALLBACKS, return prudence_domain_barrier(memb);)
ROW("prudence_domain_barrier_timed", FOR_CALLBACKS,
    return prudence_domain_barrier_timed(memb, UINT64_MAX);)
ROW("prudence_domain_call", EVERYWHERE, prudence_domain_call(memb, head_of_ours(), end_head);
    return 0;)
ROW("prudence_domain_call_around", NOT_IN_FORK,
    int error = prudence_domain_call_around(memb, 0, NULL, NULL, NULL);
    return here == FORK ? error : 0;) /* elsewhere, callbacks of other rows may wait */
ROW("prudence_domain_cond_synchronize", SYNCHRONIZES,
    return prudence_domain_cond_synchronize(memb, prudence_domain_get_state(memb));)
ROW("prudence_domain_cond_synchronize_expedited", SYNCHRONIZES,
    return prudence_domain_cond_synchronize_expedited(memb, prudence_domain_get_state(memb));)
ROW("prudence_domain_create", EVERYWHERE,
    return result_of(prudence_domain_create("x", PRUDENCE_DOMAIN_MEMB, NULL) != NULL);)
ROW("prudence_domain_create_external", EVERYWHERE,
    return result_of(prudence_domain_create_external("x", &ops, NULL) != NULL);)
ROW("prudence_domain_create_set", EVERYWHERE,
    return result_of(prudence_domain_create_set("x", &memb, 1) != NULL);)
ROW("prudence_domain_destroy", EVERYWHERE,
    return prudence_domain_destroy(prudence_domain_create("x", PRUDENCE_DOMAIN_MEMB, NULL));)
ROW("prudence_domain_get_completed", EVERYWHERE, prudence_domain_get_completed(memb); return 0;)
ROW("prudence_domain_get_state", EVERYWHERE, prudence_domain_get_state(memb); return 0;)
ROW("prudence_domain_free_deferred", EVERYWHERE,
    return prudence_domain_free_deferred(prudence_default_domain(), prudence_malloc(10)) ? 0 : 1;)
ROW("prudence_domain_poll_state", EVERYWHERE,
    prudence_domain_poll_state(memb, prudence_domain_get_state(memb));
    return 0;)
ROW("prudence_domain_kind_of", EVERYWHERE,
    return result_of(prudence_domain_kind_of(srcu) == PRUDENCE_DOMAIN_SRCU);)
ROW("prudence_domain_may_wait", FOR_READERS,
    return prudence_domain_may_wait(memb, "prudence_domain_may_wait", "of", "x",
                                    __builtin_return_address(0));)
ROW("prudence_domain_read_lock prudence_domain_read_unlock", EVERYWHERE,
    prudence_domain_read_lock(memb);
    prudence_domain_read_unlock(memb); return 0;)
ROW("prudence_domain_read_lock_held", EVERYWHERE,
    return result_of(!prudence_domain_read_lock_held(memb));)
ROW("prudence_domain_start_poll", EVERYWHERE, prudence_domain_start_poll(memb); return 0;)
ROW("prudence_domain_start_poll_expedited", EVERYWHERE, prudence_domain_start_poll_expedited(memb);
    return 0;)
ROW("prudence_domain_stats_sized", EVERYWHERE, struct prudence_domain_stats stats;
    return prudence_domain_stats(memb, &stats);)
ROW("prudence_dump", EVERYWHERE, static int nowhere;
    nowhere = nowhere ? nowhere : open("/dev/null", O_WRONLY); return prudence_dump(nowhere);)
static int skip_objects(const struct prudence_heap_slab *slab,
                        const struct prudence_heap_object *object, void *context)
{
    (void)slab, (void)object, (void)context;
    return PRUDENCE_HEAP_SKIP;
}
ROW("prudence_heap_print", NOT_IN_FORK, static FILE *null;
    null = null ? null : fopen("/dev/null", "w");
    return prudence_heap_print(plain, null, PRUDENCE_STATS_JSON);)
ROW("prudence_heap_walk_sized", NOT_IN_FORK, return prudence_heap_walk(NULL, skip_objects, NULL);)
ROW("prudence_profile_dump", EVERYWHERE, return prudence_profile_dump("/dev/null") != ENODATA;)
ROW("prudence_next_cache_sized", EVERYWHERE, struct prudence_walk walk = PRUDENCE_WALK_INIT;
    struct prudence_cache_stats stats; return prudence_next_cache(&walk, &stats);)
ROW("prudence_next_domain_sized", EVERYWHERE, struct prudence_walk walk = PRUDENCE_WALK_INIT;
    struct prudence_domain_stats stats; return prudence_next_domain(&walk, &stats);)
ROW("prudence_next_reader_sized", EVERYWHERE, struct prudence_walk walk = PRUDENCE_WALK_INIT;
    struct prudence_reader_stats stats; return prudence_next_reader(&walk, &stats);)
ROW("prudence_domain_synchronize", SYNCHRONIZES, return prudence_domain_synchronize(memb);)
ROW("prudence_domain_synchronize_expedited", SYNCHRONIZES,
    return prudence_domain_synchronize_expedited(memb);)
ROW("prudence_epoch_outlive", EVERYWHERE, prudence_epoch_outlive(); return 0;)
ROW("prudence_epoch_record", EVERYWHERE, prudence_epoch_pin(prudence_epoch_record(memb));
    prudence_epoch_unpin(prudence_epoch_record(memb)); return 0;)
ROW("prudence_epoch_try_advance", EVERYWHERE, prudence_epoch_try_advance(memb, NULL); return 0;)
ROW("prudence_free", EVERYWHERE, prudence_free(prudence_malloc(10)); return 0;)
ROW("prudence_free_deferred", EVERYWHERE, prudence_free_deferred(prudence_malloc(10)); return 0;)
ROW("prudence_free_sized", EVERYWHERE, prudence_free_sized(prudence_malloc(10), 10); return 0;)
ROW("prudence_gp_cond_synchronize", OR_ABORTS,
    prudence_gp_cond_synchronize(prudence_gp_get_state());
    return 0;)
ROW("prudence_gp_cond_synchronize_expedited", OR_ABORTS,
    prudence_gp_cond_synchronize_expedited(prudence_gp_get_state());
    return 0;)
ROW("prudence_gp_get_completed", EVERYWHERE, prudence_gp_get_completed(); return 0;)
ROW("prudence_gp_get_state", EVERYWHERE, prudence_gp_get_state(); return 0;)
ROW("prudence_gp_poll_state", EVERYWHERE, prudence_gp_poll_state(prudence_gp_get_state());
    return 0;)
ROW("prudence_gp_start_poll", EVERYWHERE, prudence_gp_start_poll(); return 0;)
ROW("prudence_gp_start_poll_expedited", EVERYWHERE, prudence_gp_start_poll_expedited(); return 0;)
ROW("prudence_hazard_acquire_slow", EVERYWHERE, static char object; static void *link = &object;
    void *wanted = link; struct prudence_hazard *hazard = prudence_hazard_acquire();
    prudence_hazard_protect(hazard, &link); prudence_hazard_set(hazard, NULL);
    prudence_hazard_reset(hazard); prudence_hazard_try_protect(hazard, &wanted, &link);
    prudence_hazard_release(hazard); prudence_hazard_release(prudence_hazard_acquire_movable());
    return 0;)
ROW("prudence_hazard_acquire_row", EVERYWHERE,
    struct prudence_hazard *row = prudence_hazard_acquire_row(2);
    prudence_hazard_release(row); prudence_hazard_release(row + 1); return 0;)
static void hazard_end(struct prudence_hazard_head *head)
{
    free(head);
}
ROW("prudence_hazard_retire prudence_hazard_reclaim", EVERYWHERE,
    struct prudence_hazard_head *head = calloc(1, sizeof *head);
    prudence_hazard_retire(head, head, sizeof *head, hazard_end); prudence_hazard_reclaim();
    return 0;)
static void kick_nobody(void *unused)
{
    (void)unused;
}
ROW("prudence_kick_set", EVERYWHERE,
    static struct prudence_kick kick = {.size = sizeof kick, .function = kick_nobody};
    return prudence_kick_set(memb, &kick) + prudence_kick_set(memb, NULL);)
ROW("prudence_latent_fits", EVERYWHERE, return result_of(prudence_latent_fits(0));)
ROW("prudence_malloc", EVERYWHERE, return free_and(prudence_malloc(10), 0);)
ROW("prudence_manual_advance", EVERYWHERE, prudence_manual_advance(manual); return 0;)
ROW("prudence_option_set", EVERYWHERE, return prudence_option_set("wait_max", "500ms");)
ROW("prudence_qsbr_online prudence_qsbr_announce prudence_qsbr_offline", EVERYWHERE,
    struct prudence_domain *other = prudence_domain_create("x", PRUDENCE_DOMAIN_QSBR, NULL);
    prudence_qsbr_online(other); prudence_qsbr_announce(other); prudence_qsbr_quiescent(other);
    prudence_qsbr_offline(other); return prudence_domain_destroy(other);)
ROW("prudence_read_lock_first", EVERYWHERE, prudence_read_lock_first(); prudence_read_unlock();
    return 0;)
ROW("prudence_read_lock_held", EVERYWHERE, prudence_read_lock_held(); return 0;)
ROW("prudence_realloc", EVERYWHERE,
    return free_and(prudence_realloc(prudence_malloc(10), 10000), 0);)
ROW("prudence_sizes_alloc prudence_sizes_create", EVERYWHERE, static struct prudence_sizes *sizes;
    sizes = sizes ? sizes : prudence_sizes_create("sizes", NULL);
    void *object = prudence_sizes_alloc(sizes, 5000); prudence_free(object);
    return result_of(object != NULL);)
ROW("prudence_sizes_destroy", FOR_READERS,
    return prudence_sizes_destroy(prudence_sizes_create("sizes", NULL));)
ROW("prudence_srcu_down_read prudence_srcu_up_read", EVERYWHERE,
    prudence_srcu_up_read(srcu, prudence_srcu_down_read(srcu));
    return 0;)
ROW("prudence_srcu_read_lock prudence_srcu_read_unlock", EVERYWHERE,
    prudence_srcu_read_unlock(srcu, prudence_srcu_read_lock(srcu));
    return 0;)
ROW("prudence_stall_hook_set", EVERYWHERE, prudence_stall_hook_set(NULL, NULL); return 0;)
ROW("prudence_stats_sized", EVERYWHERE, struct prudence_stats stats; return prudence_stats(&stats);)
ROW("prudence_stats_print", EVERYWHERE, static FILE *null;
    null = null ? null : fopen("/dev/null", "w");
    return prudence_stats_print(null, PRUDENCE_STATS_TEXT);)
ROW("prudence_synchronize", OR_ABORTS, prudence_synchronize(); return 0;)
ROW("prudence_synchronize_expedited", OR_ABORTS, prudence_synchronize_expedited(); return 0;)
ROW("prudence_malloc_deletes", EVERYWHERE, return prudence_malloc_deletes() ? 1 : 0;)
ROW("prudence_trim", EVERYWHERE, prudence_trim(); return 0;)
ROW("prudence_usable_size", EVERYWHERE, void *object = prudence_malloc(10);
    return free_and(object, result_of(prudence_usable_size(object) >= 10));)
ROW("prudence_version", EVERYWHERE, return result_of(prudence_version() != NULL);)

ROW("prudence_dereference_at prudence_assign_pointer_at prudence_sizeof prudence_alignof",
    EVERYWHERE, static void *place;
    void *value = &place; prudence_assign_pointer_at(&place, value);
    return result_of(prudence_dereference_at(&place) == value &&
                     prudence_sizeof("prudence_list") == 2 * prudence_alignof("prudence_list"));)

static struct urcu_atfork *no_handlers;
ROW("prudence_urcu_after_fork_child", EVERYWHERE, prudence_urcu_after_fork_child(NULL); return 0;)
ROW("prudence_urcu_after_fork_parent", EVERYWHERE, prudence_urcu_after_fork_parent(); return 0;)
ROW("prudence_urcu_atfork_register prudence_urcu_atfork_unregister", EVERYWHERE,
    prudence_urcu_atfork_unregister(no_handlers);
    return 0;)
ROW("prudence_urcu_before_fork", EVERYWHERE, prudence_urcu_before_fork(); return 0;)
ROW("prudence_urcu_barrier", URCU_CALLBACKS, prudence_urcu_barrier(NULL); return 0;)
ROW("prudence_urcu_call", EVERYWHERE,
    prudence_urcu_call(NULL, (struct rcu_head *)head_of_ours(), end_rcu_head);
    return 0;)
ROW("prudence_urcu_create", EVERYWHERE,
    return result_of(prudence_urcu_create(NULL, 0, -1) != NULL);)
ROW("prudence_urcu_create_all", EVERYWHERE, return prudence_urcu_create_all(NULL, 0);)
ROW("prudence_urcu_current", EVERYWHERE, return result_of(prudence_urcu_current(NULL) != NULL);)
ROW("prudence_urcu_default", EVERYWHERE, return result_of(prudence_urcu_default(NULL) != NULL);)
ROW("prudence_urcu_defer", EVERYWHERE, prudence_urcu_defer(NULL, end_deferred, prudence_malloc(10));
    return 0;)
ROW("prudence_urcu_defer_barrier", URCU_CALLBACKS, prudence_urcu_defer_barrier(NULL); return 0;)
ROW("prudence_urcu_free", URCU_CALLBACKS, prudence_urcu_free(prudence_urcu_create(NULL, 0, -1));
    return 0;)
ROW("prudence_urcu_free_all", URCU_CALLBACKS, prudence_urcu_free_all(NULL); return 0;)
ROW("prudence_urcu_of_cpu", EVERYWHERE, prudence_urcu_of_cpu(NULL, 0); return 0;)
ROW("prudence_urcu_of_thread", EVERYWHERE, prudence_urcu_of_thread(NULL); return 0;)
ROW("prudence_urcu_qsbr", EVERYWHERE, return result_of(prudence_urcu_qsbr() != NULL);)
ROW("prudence_urcu_set_cpu", EVERYWHERE, return prudence_urcu_set_cpu(NULL, 0, NULL);)
ROW("prudence_urcu_set_thread", EVERYWHERE, prudence_urcu_set_thread(NULL, NULL); return 0;)
ROW("prudence_urcu_synchronize", URCU_READERS, prudence_urcu_synchronize(NULL); return 0;)
ROW("prudence_urcu_thread", EVERYWHERE,
    return result_of(prudence_urcu_thread(prudence_urcu_default(NULL)) != 0);)

/* Short-term memory: this test only checks that each call returns (tests/shortterm/ checks the
 * results). */
static int as_scm_thread(void (*act)(void *object))
{
    void *object;

    scm_register_thread();
    object = scm_malloc(20);
    scm_refresh(object, 1);
    act(object);
    scm_tick();
    scm_tick();
    scm_tick();
    scm_collect();
    scm_unregister_thread();
    return 0;
}

static int finalizer(void *object)
{
    return 0;
}

static void use_clocks(void *object)
{
    struct scm_clock *clock = scm_clock_create(), *real = scm_clock_create_realtime(1000);

    scm_clock_refresh(clock, object, 1);
    scm_clock_tick(clock);
    scm_clock_destroy(clock);
    scm_clock_destroy(real);
}

static void use_the_rest(void *object)
{
    struct scm_mem_info info;

    scm_global_refresh(object, 1);
    scm_block_thread();
    scm_resume_thread();
    scm_global_tick();
    scm_set_finalizer(object, scm_register_finalizer(finalizer));
    scm_get_mem_info(&info);
    scm_free(scm_realloc(scm_calloc(2, 10), 100));
}

static void use_regions(void *object)
{
    struct scm_region *dated = scm_region_create(), *other = scm_region_create();
    struct scm_clock *clock = scm_clock_create();
    struct scm_region_info info;

    for (unsigned i = 0; i < 20; i++)
        memset(scm_region_alloc(i % 2 ? dated : other, i * 3000), 1, i * 3000);
    scm_region_refresh(dated, 1);
    scm_region_global_refresh(dated, 0);
    scm_region_clock_refresh(clock, dated, 0);
    scm_region_unregister(other);
    scm_clock_destroy(clock);
    scm_get_region_info(&info);
}

ROW("scm_clock_create scm_clock_create_realtime scm_clock_refresh scm_clock_tick scm_clock_destroy",
    EVERYWHERE, return as_scm_thread(use_clocks);)
ROW("scm_region_create scm_region_alloc scm_region_refresh scm_region_global_refresh "
    "scm_region_clock_refresh scm_region_unregister scm_get_region_info_sized",
    EVERYWHERE, return as_scm_thread(use_regions);)
ROW("scm_malloc scm_register_thread scm_unregister_thread scm_refresh scm_tick scm_collect "
    "scm_global_refresh scm_block_thread scm_resume_thread scm_global_tick scm_set_finalizer "
    "scm_register_finalizer scm_get_mem_info_sized scm_free scm_realloc scm_calloc",
    EVERYWHERE, return as_scm_thread(use_the_rest);)

static bool any_node(const struct prudence_hash_node *node, const void *unused)
{
    (void)node, (void)unused;
    return true;
}

/* Inserts and removes two objects during a resize, which defers an array. */
static struct prudence_hash *used_hash(void)
{
    struct prudence_hash *table = prudence_hash_create("used", NULL);
    struct prudence_hash_secret secret;
    struct prudence_hash_node nodes[2];
    struct prudence_hash_stats stats;
    struct prudence_hash_walk walk;
    struct prudence_hash_node *node;

    prudence_hash_draw_secret(&secret);
    prudence_hash_add_duplicate(table, 1, &nodes[0]);
    if (hash_add_found(table, 1, any_node, NULL, &nodes[1]) != &nodes[0] ||
        prudence_hash_resize(table, 4096) || prudence_hash_replace(table, &nodes[0], &nodes[1]) ||
        hash_put_found(table, 1, any_node, NULL, &nodes[0]) != &nodes[1] ||
        prudence_hash_lookup(table, 1, any_node, NULL) != &nodes[0] ||
        prudence_hash_lookup_slow(table, 1, any_node, NULL) != &nodes[0] ||
        prudence_hash_stats(table, &stats) || prudence_hash_count(table) != 1)
        abort();
    prudence_hash_for_each(&walk, table, node) if (node != &nodes[0]) abort();
    if (prudence_hash_remove(table, &nodes[0]))
        abort();
    return table;
}

/* Renames one name, replaces one, and exchanges two. */
static int use_names(void)
{
    struct prudence_hash *table = prudence_hash_create("used", NULL);
    struct prudence_hash_name names[6] = {0}, *replaced;

    prudence_hash_add_duplicate(table, 1, &names[0].node);
    prudence_hash_add_duplicate(table, 2, &names[1].node);
    if (prudence_hash_rename(table, &names[0], table, 3, any_node, NULL, &names[2]) ||
        prudence_hash_exchange(table, &names[2], &names[3], table, &names[1], &names[4]) ||
        prudence_hash_rename_replace(table, &names[3], table, 2, any_node, NULL, &names[5],
                                     &replaced) ||
        replaced != &names[4] || prudence_hash_lookup_name(table, 2, any_node, NULL) != &names[5] ||
        prudence_hash_remove(table, &names[5].node))
        abort();
    return 0;
}

static int use_lockfree_hash(void)
{
    struct prudence_lockfree_hash *table = prudence_lockfree_hash_create("used", NULL);
    struct prudence_hash_node nodes[4], *node;
    struct prudence_lockfree_hash_stats stats;
    struct prudence_lockfree_hash_walk walk;

    prudence_lockfree_hash_add_duplicate(table, 1, &nodes[0]);
    if (lockfree_add_found(table, 1, any_node, NULL, &nodes[1]) != &nodes[0] ||
        lockfree_put_found(table, 1, any_node, NULL, &nodes[1]) != &nodes[0] ||
        prudence_lockfree_hash_replace(table, &nodes[1], &nodes[2]) ||
        prudence_lockfree_hash_stats(table, &stats) || stats.objects != 1)
        abort();
    prudence_lockfree_hash_for_each(&walk, table, node) if (node != &nodes[2]) abort();
    if (prudence_lockfree_hash_remove(table, &nodes[2]))
        abort();
    return prudence_lockfree_hash_destroy(table, NULL, NULL);
}

static struct prudence_id_table *used_ids(void)
{
    struct prudence_id_table *table = prudence_id_table_create("used", NULL);
    struct prudence_id_table_stats stats;
    struct prudence_id_table_walk walk;
    uint32_t id;

    for (uint32_t i = 0; i < 100; i++) /* one array is replaced */
        if (prudence_id_table_add(table, table, &id) || id != i)
            abort();
    if (ids_replace_found(table, 7, &walk) != table ||
        ids_replace_found(table, 7, table) != &walk ||
        prudence_id_table_first(&walk, table) != table ||
        prudence_id_table_first_from(&walk, table, 98) != table ||
        prudence_id_table_next(&walk) != table || walk.id != 99 ||
        prudence_id_table_count(table) != 100 || prudence_id_table_stats(table, &stats))
        abort();
    for (uint32_t i = 0; i < 100; i++)
        prudence_id_table_erase(table, i, NULL);
    return table;
}

/* Updates that replace nodes. */
static struct prudence_routes *used_routes(void)
{
    struct prudence_routes *table = prudence_routes_create("used", NULL);
    struct prudence_routes_prefix prefix = {.address = {10}, .length = 8};
    struct prudence_routes_stats stats;
    struct prudence_routes_walk walk;
    uintptr_t old, value;

    if (prudence_routes_add(table, &prefix, 1, NULL) ||
        prudence_routes_replace(table, &prefix, 2, &old) || old != 1 ||
        prudence_routes_get(table, &prefix) != 2 ||
        prudence_routes_lookup_ipv4(table, prefix.address) != 2 ||
        prudence_routes_count(table) != 1 || prudence_routes_stats(table, &stats))
        abort();
    prudence_routes_for_each(&walk, table, NULL, value) if (value != 2) abort();
    prefix.length = 9;
    if (prudence_routes_add(table, &prefix, 3, NULL) || prudence_routes_erase(table, &prefix, &old))
        abort();
    return table;
}

/* Inserts and removes ten objects; nodes grow and shrink, and the old ones are deferred. */
static struct prudence_map *used_map(bool bytes)
{
    struct prudence_map_attr attr = {.size = sizeof attr, .flags = bytes ? PRUDENCE_MAP_BYTES : 0};
    struct prudence_map *map = prudence_map_create("used", &attr);
    struct prudence_map_bytes nodes[10], other;
    struct prudence_map_stats stats;
    struct prudence_map_node *there;

    for (unsigned i = 0; i < 10; i++) {
        nodes[i].node.key = i;
        if (bytes)
            prudence_map_set_bytes(&nodes[i], &"0123456789"[i], 1);
        if (prudence_map_add(map, &nodes[i].node, NULL))
            abort();
    }
    other = nodes[3];
    if (prudence_map_replace(map, &nodes[3].node, &other.node) ||
        prudence_map_put(map, &nodes[3].node, &there) || there != &other.node ||
        prudence_map_stats(map, &stats) || prudence_map_count(map) != 10 ||
        prudence_map_lowest(map) != &nodes[0].node || prudence_map_highest(map) != &nodes[9].node ||
        prudence_map_after(map, &nodes[3].node) != &nodes[4].node ||
        prudence_map_before(map, &nodes[3].node) != &nodes[2].node ||
        prudence_map_remove(map, &nodes[9].node))
        abort();
    for (unsigned i = 0; i < 9; i++)
        if ((bytes ? map_erase_bytes_found(map, &"0123456789"[i], 1) : map_erase_found(map, i)) !=
            &nodes[i].node)
            abort();
    return map;
}

/* Searches find the only object. */
static struct prudence_map *searched_map(bool bytes)
{
    static struct prudence_map_bytes only;
    struct prudence_map *map = used_map(bytes);
    struct prudence_map_walk walk;
    struct prudence_map_node *node = &only.node;

    only.node.key = 5;
    if (bytes)
        prudence_map_set_bytes(&only, "5", 1);
    if (prudence_map_add(map, node, NULL) || prudence_map_first(&walk, map) != node ||
        prudence_map_next_slow(&walk))
        abort();
    if (bytes ? prudence_map_lookup_bytes(map, "5", 1) != node ||
                    prudence_map_ceiling_bytes(map, "4", 1) != node ||
                    prudence_map_floor_bytes(map, "6", 1) != node ||
                    prudence_map_first_from_bytes(&walk, map, "4", 1) != node
              : prudence_map_lookup(map, 5) != node || prudence_map_ceiling(map, 4) != node ||
                    prudence_map_floor(map, 6) != node ||
                    prudence_map_first_from(&walk, map, 4) != node)
        abort();
    if (prudence_map_remove(map, node))
        abort();
    return map;
}

/* Replaces a value twice, and erases it. */
static struct prudence_map_values *used_values(bool bytes)
{
    struct prudence_map_values_attr attr = {.size = sizeof attr,
                                            .flags = bytes ? PRUDENCE_MAP_VALUES_BYTES : 0};
    struct prudence_map_values *map = prudence_map_values_create("used", &attr);
    struct prudence_map_stats stats;
    static char values[3];
    void *old;

    if (bytes ? prudence_map_values_add_bytes(map, "5", 1, &values[0], NULL) ||
                    prudence_map_values_put_bytes(map, "5", 1, &values[1], &old) ||
                    prudence_map_values_replace_bytes(map, "5", 1, &values[1], &values[2]) ||
                    prudence_map_values_get_bytes(map, "5", 1) != &values[2]
              : prudence_map_values_add(map, 5, &values[0], NULL) ||
                    prudence_map_values_put(map, 5, &values[1], &old) ||
                    prudence_map_values_replace(map, 5, &values[1], &values[2]) ||
                    prudence_map_values_get(map, 5) != &values[2])
        abort();
    if (old != &values[0] || prudence_map_values_count(map) != 1 ||
        prudence_map_values_stats(map, &stats) ||
        (bytes ? map_values_erase_bytes_found(map, "5", 1) : map_values_erase_found(map, 5)) !=
            &values[2])
        abort();
    return map;
}

/* Does the same in a hash table, with walks. */
static struct prudence_hash_values *used_hash_values(bool bytes)
{
    struct prudence_hash_values_attr attr = {.size = sizeof attr,
                                             .flags = bytes ? PRUDENCE_HASH_VALUES_BYTES : 0};
    struct prudence_hash_values *table = prudence_hash_values_create("used", &attr);
    struct prudence_hash_values_walk walk;
    struct prudence_hash_stats stats;
    static char values[3];
    void *old;

    if (bytes ? prudence_hash_values_add_bytes(table, "5", 1, &values[0], NULL) ||
                    prudence_hash_values_put_bytes(table, "5", 1, &values[1], &old) ||
                    prudence_hash_values_replace_bytes(table, "5", 1, &values[1], &values[2]) ||
                    prudence_hash_values_get_bytes(table, "5", 1) != &values[2]
              : prudence_hash_values_add(table, 5, &values[0], NULL) ||
                    prudence_hash_values_put(table, 5, &values[1], &old) ||
                    prudence_hash_values_replace(table, 5, &values[1], &values[2]) ||
                    prudence_hash_values_get(table, 5) != &values[2])
        abort();
    if (old != &values[0] || prudence_hash_values_first(&walk, table) != &values[2] ||
        prudence_hash_values_next(&walk) || prudence_hash_values_count(table) != 1 ||
        prudence_hash_values_stats(table, &stats))
        abort();
    if ((bytes ? hash_values_erase_bytes_found(table, "5", 1)
               : hash_values_erase_found(table, 5)) != &values[2])
        abort();
    return table;
}

ROW("prudence_hash_values_create prudence_hash_values_add prudence_hash_values_add_bytes "
    "prudence_hash_values_put prudence_hash_values_put_bytes prudence_hash_values_replace "
    "prudence_hash_values_replace_bytes prudence_hash_values_erase "
    "prudence_hash_values_erase_bytes prudence_hash_values_get prudence_hash_values_get_bytes "
    "prudence_hash_values_first prudence_hash_values_next prudence_hash_values_count "
    "prudence_hash_values_stats_sized",
    EVERYWHERE, return result_of(used_hash_values(false) && used_hash_values(true));)
ROW("prudence_hash_values_destroy", FOR_READERS,
    return prudence_hash_values_destroy(used_hash_values(false), NULL, NULL);)
ROW("prudence_map_create prudence_map_add prudence_map_put prudence_map_replace prudence_map_erase "
    "prudence_map_erase_bytes prudence_map_remove prudence_map_lookup prudence_map_lookup_bytes "
    "prudence_map_ceiling prudence_map_ceiling_bytes prudence_map_floor prudence_map_floor_bytes "
    "prudence_map_after prudence_map_before prudence_map_lowest prudence_map_highest "
    "prudence_map_first prudence_map_first_from prudence_map_first_from_bytes "
    "prudence_map_next_slow prudence_map_count prudence_map_stats_sized",
    EVERYWHERE, return result_of(searched_map(false) && searched_map(true));)
ROW("prudence_map_destroy", FOR_READERS, return prudence_map_destroy(used_map(false), NULL, NULL);)
ROW("prudence_map_values_create prudence_map_values_add prudence_map_values_add_bytes "
    "prudence_map_values_put prudence_map_values_put_bytes prudence_map_values_replace "
    "prudence_map_values_replace_bytes prudence_map_values_erase prudence_map_values_erase_bytes "
    "prudence_map_values_count prudence_map_values_stats_sized",
    EVERYWHERE, return result_of(used_values(false) && used_values(true));)
ROW("prudence_map_values_destroy", FOR_READERS,
    return prudence_map_values_destroy(used_values(false), NULL, NULL);)
ROW("prudence_hash_create prudence_hash_add_duplicate prudence_hash_add prudence_hash_put "
    "prudence_hash_replace prudence_hash_remove prudence_hash_resize prudence_hash_lookup_slow "
    "prudence_hash_first prudence_hash_next prudence_hash_count prudence_hash_stats_sized "
    "prudence_hash_draw_secret",
    EVERYWHERE, return result_of(used_hash() != NULL);)
ROW("prudence_hash_rename prudence_hash_rename_replace prudence_hash_exchange", EVERYWHERE,
    return use_names();)
ROW("prudence_lockfree_hash_create prudence_lockfree_hash_add_duplicate prudence_lockfree_hash_add "
    "prudence_lockfree_hash_put prudence_lockfree_hash_replace prudence_lockfree_hash_remove "
    "prudence_lockfree_hash_first prudence_lockfree_hash_next prudence_lockfree_hash_stats_sized "
    "prudence_lockfree_hash_destroy",
    EVERYWHERE, return use_lockfree_hash();)
ROW("prudence_hash_destroy", FOR_READERS, return prudence_hash_destroy(used_hash(), NULL, NULL);)
ROW("prudence_id_table_create prudence_id_table_add prudence_id_table_replace "
    "prudence_id_table_erase prudence_id_table_first prudence_id_table_first_from "
    "prudence_id_table_next prudence_id_table_count prudence_id_table_stats_sized",
    EVERYWHERE, return result_of(used_ids() != NULL);)
ROW("prudence_routes2_create prudence_routes3_create prudence_routes_add prudence_routes_replace "
    "prudence_routes_erase "
    "prudence_routes_get prudence_routes_first prudence_routes_next prudence_routes_count "
    "prudence_routes_stats_sized",
    EVERYWHERE, return result_of(used_routes() != NULL);)
ROW("prudence_routes_destroy", FOR_READERS, return prudence_routes_destroy(used_routes());)
ROW("prudence_id_table_destroy", FOR_READERS,
    return prudence_id_table_destroy(used_ids(), NULL, NULL);)

static struct prudence_counter *used_counter(void)
{
    struct prudence_counter *counter = prudence_counter_create();

    prudence_counter_add(counter, 7);
    if (prudence_counter_sum(counter) != 7)
        abort();
    prudence_counter_destroy(counter);
    return counter;
}

static void use_faulty_ref(void)
{
    struct prudence_ref ref;

    prudence_ref_init(&ref, PRUDENCE_REF_MAX);
    prudence_ref_get(&ref);
    prudence_ref_saturate_(&ref, "again");
}

static void write_nothing(void *context, const void *entries, size_t bytes)
{
    (void)context, (void)entries, (void)bytes;
}

static struct prudence_log *used_log(void)
{
    struct prudence_log *log = prudence_log_create(64, NULL);

    if (!prudence_log_reserve(log, 8) || prudence_log_dropped(log))
        abort();
    return log;
}

static int flush_log(void)
{
    struct prudence_log *log = used_log();
    int error = prudence_log_flush(log, write_nothing, NULL);

    prudence_log_destroy(log);
    return error;
}

static int transfer_nothing(void *old, void *fresh, void *context)
{
    (void)old, (void)fresh, (void)context;
    return 0;
}

static int swap_with_transfer(void)
{
    static int objects[2];
    struct prudence_swap handle;
    void *old;

    prudence_swap_init(&handle, &objects[0]);
    return prudence_swap_transfer(&handle, &objects[1], &old, transfer_nothing, NULL, NULL);
}

ROW("prudence_counter_create prudence_counter_add prudence_counter_sum prudence_counter_destroy",
    EVERYWHERE, return result_of(used_counter() != NULL);)
ROW("prudence_ref_saturate_", EVERYWHERE, use_faulty_ref(); return 0;)
ROW("prudence_log_create prudence_log_reserve prudence_log_dropped prudence_log_destroy",
    EVERYWHERE, prudence_log_destroy(used_log());
    return 0;)
ROW("prudence_log_flush", FOR_READERS, return flush_log();)
ROW("prudence_swap_transfer", FOR_READERS, return swap_with_transfer();)

/* -------------------------------------------------------------------- the table has them all */

/* Exported functions that no program calls by name. */
static const char *const parts_of_others[] = {
    /* The slow paths of inlined functions: each is part of the function of that name. */
    "prudence_inline3_cache_alloc",
    "prudence_inline3_cache_free",
    "prudence_inline3_cache_free_deferred",
    "prudence_inline3_cache_replace",
    "prudence_hazard_acquire_movable_slow",
    "prudence_hazard_release_slow",
    "prudence_hazards_self",
    "prudence_inline3_stay_loaded", /* of constructors */
    "prudence_qsbr_self",
    "prudence_reader2_self",
    "prudence_reader_wake", /* of a first prudence_read_lock */
    "prudence_slice_yield", /* of prudence_read_unlock */
    "prudence_urcu_qsbr_self",
    /* These end the process. */
    "prudence_epoch_misuse",
    "prudence_read_lock_too_deep",
    "prudence_read_unlock_unbalanced",
};

static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = text; (at = strstr(at, word)); at += length)
        if ((at == text || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

static bool is_in_table(const char *function)
{
    for (size_t i = 0; i < sizeof parts_of_others / sizeof *parts_of_others; i++)
        if (!strcmp(parts_of_others[i], function))
            return true;
    for (size_t i = 0; i < ROWS; i++)
        if (has_word(rows[i]->functions, function))
            return true;
    return false;
}

TEST(every_exported_function_is_in_the_table)
{
    FILE *file = fopen(EXPORTED_SYMBOLS, "r");
    unsigned found = 0;
    char line[256];

    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (strchr(line, ' ')) /* programs inline it, or it is for old ones */
            continue;
        line[strcspn(line, "\n")] = '\0';
        if (!*line || *line == '#')
            continue;
        found++;
        if (!is_in_table(line))
            fail_msg("%s is exported, but not in the table: say where it may be called", line);
    }
    fclose(file);
    assert_true(found >= ROWS);
}

/* -------------------------------------------------------------------------------- going there */

static int (*body)(void);
static int body_result;
static bool body_is_due;
static sem_t body_is_over;

static void run_body(void)
{
    if (!body_is_due)
        return;
    body_is_due = false;
    body_result = body();
    sem_post(&body_is_over);
}

static void run_in_object(void *object, void *unused)
{
    (void)object, (void)unused;
    run_body();
}

static void run_in_callback(struct prudence_head *head)
{
    run_body();
}

static void in_lazy_destructor(void)
{
    struct prudence_cache *cache = cache_with(run_in_object, NULL, 0);

    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    prudence_cache_free(plain, prudence_cache_alloc(plain));
    body_is_due = true;
    while (body_is_due) {
        void *object = prudence_cache_alloc(cache);

        if (!object)
            abort();
        prudence_synchronize();
    }
}

static void in_destructor_on_the_worker(void)
{
    struct prudence_cache *cache = cache_with(run_in_object, NULL, PRUDENCE_CACHE_DESTRUCT_SOON);

    body_is_due = true;
    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
}

static void in_destructor_of_a_free(void)
{
    struct prudence_cache *cache = cache_with(run_in_object, NULL, 0);

    body_is_due = true;
    prudence_cache_free(cache, prudence_cache_alloc(cache));
}

static void in_callback(void)
{
    static struct prudence_head head;

    body_is_due = true;
    prudence_call(&head, run_in_callback);
}

static void in_constructor(void)
{
    struct prudence_cache *cache = cache_with(NULL, run_in_object, 0);

    body_is_due = true;
    if (!prudence_cache_alloc(cache))
        abort();
}

static void in_memb(void)
{
    body_is_due = true;
    prudence_read_lock();
    run_body();
    prudence_read_unlock();
}

static void in_qsbr(void)
{
    body_is_due = true;
    prudence_qsbr_online(qsbr);
    run_body();
    prudence_qsbr_offline(qsbr);
}

static void in_srcu(void)
{
    int index = prudence_srcu_read_lock(srcu);

    body_is_due = true;
    run_body();
    prudence_srcu_read_unlock(srcu, index);
}

static void in_external(void)
{
    body_is_due = true;
    inside_external = true;
    run_body();
    inside_external = false;
}

static bool forking; /* the handler runs the body */

static void run_in_fork_handler(void)
{
    if (forking)
        run_body();
}

static void register_handler(void)
{
    pthread_atfork(run_in_fork_handler, NULL, NULL);
}

/* Runs before any constructor. */
BEFORE_CONSTRUCTORS(register_handler);

static void in_fork_handler(void)
{
    pid_t child;

    body_is_due = true;
    forking = true;
    child = fork();
    if (child == 0)
        _exit(0);
    forking = false;
    if (child < 0 || waitpid(child, NULL, 0) != child)
        abort();
}

static void (*const go_there[PLACES])(void) = {in_lazy_destructor,
                                               in_destructor_on_the_worker,
                                               in_destructor_of_a_free,
                                               in_callback,
                                               in_constructor,
                                               in_memb,
                                               in_qsbr,
                                               in_srcu,
                                               in_external,
                                               in_fork_handler};

static int run_row(const struct row *row, enum place place)
{
    if (!strcmp(row->functions, "prudence_cache_alloc") ||
        !strcmp(row->functions, "prudence_cache_alloc_bulk"))
        leave_some_undone();
    body = row->body;
    go_there[place]();
    while (sem_wait(&body_is_over))
        ;
    return body_result;
}

/* Runs in a child: calls every function that returns, in one place. Prints wrong results. */
static int walk(void *argument)
{
    enum place place = here = *(enum place *)argument;
    int wrong = 0;

    sem_init(&body_is_over, 0, 0);
    set_up_places();
    for (size_t i = 0; i < ROWS; i++) {
        char expected = rows[i]->results[place];
        int result;

        if (expected == 'A')
            continue;
        if (expected != '.' && expected != 'B')
            fprintf(stderr, "<%zu>\n", i);
        result = run_row(rows[i], place);
        if (expected != '.' && expected != 'B')
            fprintf(stderr, "</>\n");
        if (result != (expected == 'E' ? EDEADLK : expected == 'B' ? EBUSY : 0)) {
            fprintf(stderr, "WRONG: %s in %s gave %d\n", rows[i]->functions, place_names[place],
                    result);
            wrong = 1;
        }
    }
    return wrong ? 1 : 42;
}

static const char *said_name(const char *function)
{
    static const char *const compat[][2] = {
        {"prudence_urcu_barrier", "rcu_barrier"},
        {"prudence_urcu_defer_barrier", "rcu_defer_barrier"},
        {"prudence_urcu_free", "call_rcu_data_free"},
        {"prudence_urcu_free_all", "free_all_cpu_call_rcu_data"},
        {"prudence_urcu_synchronize", "synchronize_rcu"},
    };

    for (size_t i = 0; i < sizeof compat / sizeof compat[0]; i++)
        if (!strcmp(compat[i][0], function))
            return compat[i][1];
    return function;
}

/* Checks the report between the marks of a row. */
static void check_report(const char *output, size_t row, enum place place)
{
    const char *why = place == FORK ? "the thread would wait for threads that wait for the fork"
                                    : "the thread would wait for itself";
    char mark[16], *report, *end;

    snprintf(mark, sizeof mark, "<%zu>\n", row);
    report = strstr(output, mark);
    assert_non_null(report);
    end = strstr(report, "</>");
    assert_non_null(end);
    *end = '\0';
    if (!strstr(report, said_name(rows[row]->functions)) || !strstr(report, why))
        fail_msg("%s: does not say why: %s", rows[row]->functions, report);
    *end = '<';
}

TEST(each_returns_with_its_result)
{
    static struct child_result result;

    for (enum place place = 0; place < PLACES; place++) {
        child_run(walk, &place, &result);
        if (!child_exited_with(&result, 42))
            print_error("%s: status %#x: %s\n", place_names[place], (unsigned)result.status,
                        result.output);
        assert_child_result(&result);
        for (size_t i = 0; i < ROWS; i++)
            if (strchr("ER", rows[i]->results[place]))
                check_report(result.output, i, place);
    }
}

/* ------------------------------------------------------------------------------------- aborts */

struct one {
    const struct row *row;
    enum place place;
};

static int run_one(void *argument)
{
    const struct one *one = argument;

    sem_init(&body_is_over, 0, 0);
    set_up_places();
    run_row(one->row, one->place);
    return 42;
}

static void check_abort(const struct row *row, enum place place)
{
    struct child_result result;
    struct one one = {row, place};

    child_run(run_one, &one, &result);
    if (!child_died(&result) || child_exited_with(&result, 42) ||
        !child_said(&result, said_name(row->functions)) ||
        !child_said(&result, "the thread would wait for itself"))
        fail_msg("%s in %s: status %#x: %s", row->functions, place_names[place],
                 (unsigned)result.status, result.output);
}

TEST(what_cannot_refuse_aborts)
{
    for (size_t i = 0; i < ROWS; i++)
        for (enum place place = 0; place < PLACES; place++)
            if (rows[i]->results[place] == 'A')
                check_abort(rows[i], place);
}

/* ------------------------------------------------------------------- what the table leaves out */

static sem_t entered;
static bool synchronized;

static void synchronize_when_told(void *object, void *unused)
{
    (void)object, (void)unused;
    sem_post(&entered);
    prudence_synchronize();
    __atomic_store_n(&synchronized, true, __ATOMIC_SEQ_CST);
}

/* The worker is in a destructor that waits for this thread's section. Shrinking there must not
 * wait for the worker. */
static int shrink_in_a_section(void *unused)
{
    struct prudence_cache *cache =
        cache_with(synchronize_when_told, NULL, PRUDENCE_CACHE_DESTRUCT_SOON);
    void *objects[100];

    sem_init(&entered, 0, 0);
    for (unsigned i = 0; i < 100; i++)
        objects[i] = prudence_cache_alloc(cache);
    for (unsigned i = 0; i < 100; i++)
        prudence_cache_free_deferred(cache, objects[i]);
    while (sem_wait(&entered))
        ;
    prudence_read_lock();
    prudence_cache_shrink(cache);
    prudence_trim();
    if (prudence_cache_barrier(cache) != EDEADLK || prudence_cache_destroy(cache) != EDEADLK)
        return 1;
    prudence_read_unlock();
    return prudence_cache_destroy(cache) == 0 && synchronized ? 42 : 2;
}

TEST(shrinking_in_a_section_waits_for_nobody)
{
    assert_child(shrink_in_a_section, NULL);
}

static struct prudence_cache *nesting;
static __thread unsigned depth; /* the library's thread runs some, too */
static unsigned deepest, allocated;

static void allocate_from_own_cache(void *object, void *unused)
{
    (void)object, (void)unused;
    if (++depth > 1)
        __atomic_store_n(&deepest, depth, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < 3; i++)
        __atomic_fetch_add(&allocated, prudence_cache_alloc(nesting) != NULL, __ATOMIC_SEQ_CST);
    prudence_cache_shrink(nesting);
    depth--;
}

/* Thousands of objects are undone, and each destructor allocates; no destructor runs inside
 * another. */
static int nested(void *unused)
{
    static void *objects[3000];

    nesting = cache_with(allocate_from_own_cache, NULL, 0);
    for (unsigned i = 0; i < 3000; i++)
        objects[i] = prudence_cache_alloc(nesting);
    for (unsigned i = 0; i < 3000; i++)
        prudence_cache_free_deferred(nesting, objects[i]);
    if (prudence_cache_barrier(nesting))
        return 1;
    return deepest == 0 && allocated == 9000 ? 42 : 2;
}

TEST(destructors_do_not_nest)
{
    assert_child(nested, NULL);
}

SUITE()
