/* SPDX-License-Identifier: MIT */
/*
 * Lines that CPUs share (docs/explanation/scaling.md): the number of stores to lines that other
 * CPUs use, and of lines that travel, for each pair, batch, slab and grace period. The counts are
 * for the library as built, including restartable sequences. One thread plays 64 CPUs on 4 nodes,
 * one after the other, and announces its CPU in its own struct rseq. Nothing else runs, so no
 * sequence restarts. Each CPU has its own reader slot, registered by a thread that then sleeps.
 * Turns advance time.
 *
 * The counts are exact, and equal on each machine. When a count changes, something that all CPUs
 * use has changed. If that is intended, change the table below, and docs/explanation/scaling.md
 * with the reason.
 *
 * heap_test_shared_lines [CPUS NODES] prints the counts, for another machine too, and the shared
 * places
 *
 * ctest: cost 20
 * ctest: small-pages (counts lines)
 */
#define _GNU_SOURCE /* gettid */
#include <linux/membarrier.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gp/user/domain.h"
#include "gp/user/mode.h"
#include "posix.h"
#include "slab/all_caches.h"
#include "slab/start.h"
#include "support/line_travel.h"
#include "support/slab_test.h"

#if MEMORY_TRACE_POSSIBLE

#define CPUS_MAX  TRAVEL_CPUS_MAX
#define MANY      64 /* objects that a CPU allocates and frees in a row */
#define SKEW      37 /* turns that each CPU is ahead of the next, modulo SKEW_MAX */
#define SKEW_MAX  1024
#define TURN_NS   10
#define START_NS  1000000000
#define STACK     ((size_t)32768)
#define LINE      6 /* shift; 64 bytes */
#define LINE_PAIR 7 /* the unit that some CPUs fetch */

/* State that the turns themselves change, on untraced pages. */
static struct own {
    unsigned cpus, nodes, current;
    uint64_t now;
    struct prudence_reader *readers[CPUS_MAX];
    struct prudence_cache *cache;
    void *held[CPUS_MAX * MANY];
    unsigned counts[CPUS_MAX];
    bool down[CPUS_MAX];
    size_t size;
    char stacks[CPUS_MAX][STACK]; /* of threads that sleep */
} __attribute__((aligned(4096))) own = {.cpus = 64, .nodes = 4, .now = START_NS};

static __thread struct {
    uint32_t cpu_id_start, cpu_id;
    uint64_t rseq_cs;
} own_rseq __attribute__((tls_model("initial-exec"), aligned(32)));

/* ---------------------------------------------------------------------------------- the machine */

/* Also serves the library. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
    time->tv_sec = (time_t)(own.now / 1000000000);
    time->tv_nsec = (long)(own.now % 1000000000);
    return 0;
}

static unsigned current_cpu(void)
{
    return own.current;
}

static void *reader(void *slot)
{
    static sem_t never;

    prudence_read_lock();
    prudence_read_unlock();
    __atomic_store_n((struct prudence_reader **)slot, prudence_reader_self, __ATOMIC_RELEASE);
    while (sem_wait(&never))
        ;
    return NULL;
}

static void register_readers(void)
{
    for (unsigned cpu = 0; cpu < own.cpus; cpu++) {
        pthread_attr_t attributes;
        pthread_t thread;

        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, own.stacks[cpu], STACK);
        assert_int_equal(pthread_create(&thread, &attributes, reader, &own.readers[cpu]), 0);
        while (!__atomic_load_n(&own.readers[cpu], __ATOMIC_ACQUIRE))
            usleep(100);
    }
}

static void machine_make(void)
{
    char *owned;

    /* Later threads are pinned, too. Otherwise each change of a page's protection would
     * interrupt other CPUs. */
    pin_thread();
    posix_topology_inject(own.cpus, own.nodes, current_cpu);
    assert_true(slab_start());
    owned = os_meta_alloc(own.cpus * OS_PERCPU_STRIDE);
    for (unsigned cpu = 0; cpu < own.cpus; cpu++)
        ((struct os_percpu_line *)(owned + cpu * OS_PERCPU_STRIDE))->owner = 1;
    os_percpu_owned_lines = owned;
    os_percpu_rseq_offset = (char *)&own_rseq - (char *)__builtin_thread_pointer();
    os_percpu_rseq = true;
    os_percpu_cpus = own.cpus;
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0);
    register_readers();
}

static void run_on(unsigned cpu)
{
    own.current = own_rseq.cpu_id = own_rseq.cpu_id_start = cpu;
    prudence_reader_self = own.readers[cpu];
    memory_trace_turn(cpu);
}

/* ---------------------------------------------------------------------------------------- turns */

/* Replaces the CPU's object by a new one, which is a pair. */
static void replace_own(unsigned cpu)
{
    void *new = prudence_cache_alloc(own.cache);

    prudence_cache_free_deferred(own.cache, own.held[cpu]);
    own.held[cpu] = new;
}

/* Does the same, but the next CPU, perhaps on another node, allocated the old object. */
static void replace_neighbours(unsigned cpu)
{
    void **old = &own.held[(cpu + 1) % own.cpus], *new = prudence_cache_alloc(own.cache);

    prudence_cache_free_deferred(own.cache, *old);
    *old = own.held[cpu];
    own.held[cpu] = new;
}

/* Uses the functions that take no cache. */
static void replace_unnamed(unsigned cpu)
{
    void *new = prudence_malloc(own.size);

    prudence_free_deferred(own.held[cpu]);
    own.held[cpu] = new;
}

/* Makes each CPU read once, and CPU 0 wait for a grace period, so that each round has one. */
static void read_section(unsigned cpu)
{
    prudence_read_lock();
    prudence_read_unlock();
    if (cpu == 0)
        prudence_synchronize();
}

/* Allocates objects and then frees them, so that slabs come and go. */
static void grow_and_shrink(unsigned cpu)
{
    if (own.down[cpu])
        prudence_cache_free(own.cache, own.held[MANY * cpu + --own.counts[cpu]]);
    else
        own.held[MANY * cpu + own.counts[cpu]++] = prudence_cache_alloc(own.cache);
    if (own.counts[cpu] == 0 || own.counts[cpu] == MANY)
        own.down[cpu] = own.counts[cpu] > 0;
}

/* Return whether the turn will leave the fast paths. */
static bool replace_is_slow(const struct os_percpu_line *line, unsigned cpu)
{
    return stack_count(line) == 0 || line->ring_tail == line->ring_stop;
}

static bool grow_is_slow(const struct os_percpu_line *line, unsigned cpu)
{
    return own.down[cpu] ? stack_count(line) >= line->stack_limit : stack_count(line) == 0;
}

/* ------------------------------------------------------------------------------------ scenarios */

struct counts {
    unsigned turns, shared_stores, travels, for_nothing, for_nothing_in_pairs;
};

static const struct scenario {
    const char *name;
    void (*turn)(unsigned cpu);
    bool (*is_slow)(const struct os_percpu_line *line,
                    unsigned cpu); /* NULL: all turns are traced */
    size_t size;
    unsigned warm_up, rounds; /* rounds to learn who has which lines, and as many to count */
    struct counts fast, slow; /* expected with 64 CPUs and 4 nodes */
    size_t object_cache;
    bool free, unnamed, empty; /* `free`: readers make no fences */
    const char *latent_limit;  /* NULL: the default, which is enough */
} scenarios[] = {
    /* Pairs on the CPU's own objects. A slow turn closes a batch of 256, and one of these turns
     * drives a grace period. */
    {"own",
     replace_own,
     replace_is_slow,
     64,
     8000,
     128,
     {64, 0, 0, 0, 0},
     .slow = {46, 2, 66, 0, 0}},
    {"free",
     replace_own,
     replace_is_slow,
     64,
     8000,
     48,
     {64, 0, 0, 0, 0},
     {17, 3, 27, 0, 1},
     .free = true},
    {"unnamed",
     replace_unnamed,
     replace_is_slow,
     64,
     8000,
     48,
     {64, 0, 0, 0, 0},
     {17, 0, 30, 0, 0},
     .unnamed = true},
    {"neighbours",
     replace_neighbours,
     replace_is_slow,
     64,
     8000,
     48,
     {64, 0, 0, 0, 0},
     .slow = {16, 0, 0, 0, 0}},
    /* Batches exceed a CPU's credit, so the account of latent bytes is written. The objects that 64
     * CPUs defer before a grace period is worth its cost exceed the default limit. With that limit,
     * credits are collected now and then, by 60 stores, and a count of few rounds would only show
     * whether that happened in them. */
    {"large",
     replace_own,
     replace_is_slow,
     4096,
     2000,
     8,
     {61, 0, 0, 0, 0},
     {48, 30, 73, 0, 0},
     .latent_limit = "64M"},
    /* Two sections on each CPU, and two grace periods. */
    {"readers", read_section, NULL, 64, 10, 2, {0}, .slow = {128, 380, 380, 0, 0}},
    /* Refills and flushes of 16 objects; slabs of 15. */
    {"slabs",
     grow_and_shrink,
     grow_is_slow,
     4096,
     512,
     6,
     {60, 0, 0, 0, 0},
     {33, 1335, 896, 45, 52},
     .object_cache = 16 * 4096,
     .empty = true},
};

static void turn_traced(const struct scenario *scenario, unsigned cpu)
{
    memory_trace_on();
    scenario->turn(cpu);
    memory_trace_off();
}

enum which { NONE, FAST, SLOW };

/* Returns the number of traced turns. */
static unsigned run(const struct scenario *scenario, unsigned rounds, enum which which)
{
    unsigned traced = 0;

    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned cpu = 0; cpu < own.cpus; cpu++) {
            const struct cpu_cache *cache = cpu_cache_of(own.cache, cpu);
            bool slow = !scenario->is_slow || scenario->is_slow(&cache->line, cpu);

            run_on(cpu);
            if (which != NONE && slow == (which == SLOW)) {
                turn_traced(scenario, cpu);
                traced++;
            } else {
                scenario->turn(cpu);
            }
        }
        own.now += TURN_NS;
    }
    return traced;
}

/* Keeps CPUs from doing the same at the same time. */
static void skew(const struct scenario *scenario)
{
    for (unsigned cpu = 0; cpu < own.cpus; cpu++)
        for (unsigned turn = 0; turn < cpu * SKEW % SKEW_MAX; turn++) {
            run_on(cpu);
            scenario->turn(cpu);
        }
}

static void prepare(const struct scenario *scenario)
{
    struct prudence_cache_attr attr = {.size = sizeof attr,
                                       .object_cache_bytes = scenario->object_cache};

    gp_reader_mode = scenario->free ? READER_MODE_FREE : READER_MODE_FENCED;
    mode_follow_options(&prudence_default);
    prudence_option_set("latent_limit", scenario->latent_limit ? scenario->latent_limit : "32M");
    own.size = scenario->size;
    own.cache = prudence_cache_create(scenario->name, scenario->size, &attr);
    assert_non_null(own.cache);
    memset(own.held, 0, sizeof own.held);
    for (unsigned cpu = 0; cpu < own.cpus && !scenario->empty; cpu++) {
        run_on(cpu);
        own.held[cpu] =
            scenario->unnamed ? prudence_malloc(own.size) : prudence_cache_alloc(own.cache);
    }
    if (scenario->unnamed)
        own.cache = slab_of(own.held[0])->cache;
    skew(scenario);
    run(scenario, scenario->warm_up, NONE);
}

/* ------------------------------------------------------------------------------- names of
 * places */

struct place {
    uintptr_t first, end, period;
    const char *name;
};

static struct place *places;
static size_t place_count;

/* Offsets count modulo `period`, the size of equal parts. */
static void place_add(const char *name, const void *at, size_t bytes, size_t period)
{
    places = realloc(places, (place_count + 1) * sizeof *places);
    places[place_count++] = (struct place){(uintptr_t)at, (uintptr_t)at + bytes, period, name};
}

static void places_of_node(const struct slab_node *node)
{
    const struct list *item;

    for (unsigned list = 0; list < SLAB_LISTS; list++)
        list_for_each(item, &node->lists[list])
        {
            const struct slab *slab = list_entry(item, struct slab, link);
            size_t bits = 3 * bits_words(slab->capacity) * sizeof slab->bits[0];

            place_add("struct slab", slab, offsetof(struct slab, bits) + bits, ~(size_t)0);
        }
}

static void places_of_cache(const struct prudence_cache *cache)
{
    place_add("struct prudence_cache", cache, sizeof *cache, ~(size_t)0);
    for (unsigned node = 0; node < own.nodes; node++) {
        place_add("struct slab_node", &cache->body->nodes[node], sizeof *cache->body->nodes,
                  ~(size_t)0);
        places_of_node(&cache->body->nodes[node]);
    }
    if (!cache->percpu)
        return;
    place_add("a CPU's caches", cache->percpu, own.cpus * OS_PERCPU_STRIDE, OS_PERCPU_STRIDE);
    for (unsigned cpu = 0; cpu < own.cpus; cpu++)
        if (cpu_cache_of(cache, cpu)->slots)
            place_add("a CPU's arrays", cpu_cache_of(cache, cpu)->line.stack - 1,
                      cpu_cache_array_bytes(cache, cpu_cache_of(cache, cpu)->slots), 1);
}

/* Adds the program's variables, as nm prints them, moved to the load address. */
static void places_of_program(void)
{
    char command[64], line[512], name[256], kind;
    unsigned long first, bytes;
    uintptr_t moved = 0;
    FILE *nm;

    snprintf(command, sizeof command, "nm -S /proc/%d/exe", (int)getpid());
    nm = popen(command, "r");
    while (nm && fgets(line, sizeof line, nm)) {
        if (sscanf(line, "%lx %lx %c %255s", &first, &bytes, &kind, name) != 4 ||
            !strchr("bBdD", kind))
            continue;
        if (strcmp(name, "prudence_default") == 0)
            moved = (uintptr_t)&prudence_default - first;
        place_add(strdup(name), (void *)first, bytes, ~(size_t)0);
    }
    for (size_t i = 0; i < place_count; i++) {
        places[i].first += moved;
        places[i].end += moved;
    }
    if (nm)
        pclose(nm);
}

static void places_find(void)
{
    const struct list *item;

    place_count = 0;
    places_of_program();
    list_for_each(item, &slab_caches)
    {
        places_of_cache(list_entry(item, struct prudence_cache, link));
    }
    for (unsigned cpu = 0; cpu < own.cpus; cpu++)
        place_add("a reader's slot", own.readers[cpu], sizeof(struct reader_slot), ~(size_t)0);
}

static void name_of(uintptr_t address, char *name, size_t size)
{
    for (size_t i = place_count; i-- > 0;) {
        const struct place *place = &places[i];

        if (address >= place->first && address < place->end) {
            snprintf(name, size, "%s+%zu", place->name, (address - place->first) % place->period);
            return;
        }
    }
    snprintf(name, size, "metadata, or pages");
}

/* ------------------------------------------------------------------------------------- counting */

#define ROWS_MAX 1024

/* Counts by place, for people. */
static struct row {
    char name[64];
    struct counts counts;
} rows[ROWS_MAX];
static unsigned row_count;
static bool rows_wanted;

static struct counts *row_of(uintptr_t address)
{
    char name[64];
    unsigned i = 0;

    name_of(address, name, sizeof name);
    while (i < row_count && strcmp(rows[i].name, name) != 0)
        i++;
    assert_true(i < ROWS_MAX);
    if (i == row_count)
        memcpy(rows[row_count++].name, name, sizeof name);
    return &rows[i].counts;
}

static void count_step(struct counts *counts, const struct travel *travel)
{
    counts->travels += travel->travels;
    counts->shared_stores += travel->shared;
}

static void count_for_nothing(struct counts *counts, unsigned shift)
{
    counts->for_nothing += shift == LINE;
    counts->for_nothing_in_pairs += shift == LINE_PAIR;
}

static void note_for_nothing(const struct memory_access *accesses, size_t from, size_t step,
                             unsigned shift, struct counts *counts)
{
    if (step == 0 || step - 1 < from)
        return;
    count_for_nothing(counts, shift);
    if (rows_wanted)
        count_for_nothing(row_of(accesses[step - 1].address), shift);
}

/* Counts accesses from `from` on. The earlier ones show which thread has which lines. */
static void count_lines(const struct memory_access *accesses, size_t from, size_t end,
                        unsigned shift, struct counts *counts)
{
    size_t step;

    travel_begin(shift);
    for (size_t i = 0; i < end; i++) {
        struct travel travel = travel_step(&accesses[i]);

        note_for_nothing(accesses, from, travel.for_nothing, shift, counts);
        if (i < from || shift != LINE)
            continue;
        count_step(counts, &travel);
        if (rows_wanted && (travel.travels || travel.shared))
            count_step(row_of(accesses[i].address), &travel);
    }
    while ((step = travel_for_nothing()))
        note_for_nothing(accesses, from, step, shift, counts);
    travel_end();
}

static struct counts count(const struct scenario *scenario, unsigned rounds, enum which which)
{
    struct counts counts = {.turns = 0};
    const struct memory_access *accesses;
    size_t from, end;

    memory_trace_begin(&own, sizeof own);
    run(scenario, rounds, which);
    from = memory_trace_count();
    counts.turns = run(scenario, rounds, which);
    accesses = memory_trace_end(&end);
    row_count = 0;
    memset(rows, 0, sizeof rows);
    if (rows_wanted)
        places_find();
    count_lines(accesses, from, end, LINE, &counts);
    count_lines(accesses, from, end, LINE_PAIR, &counts);
    return counts;
}

static void print(const struct scenario *scenario, const char *which, const struct counts *counts)
{
    printf("%-12s %s: {%u, %u, %u, %u, %u}\n", scenario->name, which, counts->turns,
           counts->shared_stores, counts->travels, counts->for_nothing,
           counts->for_nothing_in_pairs);
    for (unsigned i = 0; rows_wanted && i < row_count; i++)
        printf("    %-40s shared stores %5u travels %5u for nothing %5u in pairs %5u\n",
               rows[i].name, rows[i].counts.shared_stores, rows[i].counts.travels,
               rows[i].counts.for_nothing, rows[i].counts.for_nothing_in_pairs);
}

/* ---------------------------------------------------------------------------------------- tests */

static bool is_right(const struct scenario *scenario, const char *which, const struct counts *is,
                     const struct counts *should)
{
    struct counts wanted = *should;
    bool right;

#ifdef PRUDENCE_DEBUG
    wanted.shared_stores = is->shared_stores; /* checks write more, under the same locks */
#endif
    right = memcmp(is, &wanted, sizeof *is) == 0;

    if (!right || rows_wanted)
        print(scenario, which, is);
    return right;
}

static bool check(const struct scenario *scenario)
{
    struct counts counts;
    bool right = true;

    prepare(scenario);
    if (scenario->is_slow) {
        counts = count(scenario, 1, FAST);
        right = is_right(scenario, "fast", &counts, &scenario->fast);
    }
    counts = count(scenario, scenario->rounds * (unsigned)max_size(1, 64 / own.cpus), SLOW);
    return is_right(scenario, "slow", &counts, &scenario->slow) && right;
}

TEST(counts_are_those_of_the_table)
{
    bool right = true;

    machine_make();
    for (unsigned i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        right = check(&scenarios[i]) && right;
    assert_true(right || rows_wanted);
}

int main(int count, char **arguments)
{
    if (count == 3) {
        own.cpus = (unsigned)atoi(arguments[1]);
        own.nodes = (unsigned)atoi(arguments[2]);
        rows_wanted = true;
    }
    return suite_run(NULL, NULL);
}

#else

int main(void)
{
    return 0;
}

#endif
