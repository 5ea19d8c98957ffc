// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * prudence_bench.ko: Prudence beside SLUB with kfree_rcu and call_rcu, in one boot. Loading it runs what
 * `run` names; each result is a line of JSON behind the word BENCH in the kernel's log, for
 * tools/kernel-bench.
 *
 *   pairs      allocate and defer at once, on all CPUs (the paper's Figure 6), for each size and subject,
 *              in `rounds` interleaved rounds
 *   endurance  replacing the entries of a list on each CPU, `seconds` for one subject, with the memory
 *              in use every 10 ms (Figure 3)
 *   mix        file-like, socket-like and tree-rebalancing use with the shares of deferred frees of
 *              Figure 12; counters (Figures 7 to 11)
 *   remote     allocated on one CPU, deferred on the next
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/prudence.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/vmalloc.h>

static char *run = "pairs";
module_param(run, charp, 0444);
static char *subject_name = "";
module_param_named(subject, subject_name, charp, 0444);
MODULE_PARM_DESC(subject, "of endurance; of pairs only this (empty: all)");
static unsigned int pairs = 100000;
module_param(pairs, uint, 0444);
MODULE_PARM_DESC(pairs, "pairs of a CPU in a round");
static unsigned int rounds = 3;
module_param(rounds, uint, 0444);
static unsigned int seconds = 10;
module_param(seconds, uint, 0444);
static unsigned int cpus;
module_param(cpus, uint, 0444);
MODULE_PARM_DESC(cpus, "that take part (0: all)");
static unsigned int tasks = 1;
module_param(tasks, uint, 0444);
MODULE_PARM_DESC(tasks, "of each CPU that update lists in endurance");
static bool until_killed;
module_param(until_killed, bool, 0444);
MODULE_PARM_DESC(until_killed, "allocations go as far as the OOM killer, rather than fail before");
static unsigned int only_size;
module_param_named(size, only_size, uint, 0444);

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
#define headless_free(object) kfree_rcu_mightsleep(object)
#else
#define headless_free(object) kfree_rcu(object)
#endif

/* What reclaimers that need a head write into the old object. */
struct headed {
    struct rcu_head rcu;
};

struct subject {
    const char *name;
    void *(*alloc)(size_t size);
    void (*release)(void *object);
    size_t least; /* object size that it can do with */
    bool defers;
};

static gfp_t flags = GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN;

static void *slub_alloc(size_t size)
{
    return kmalloc(size, flags);
}

static void *our_alloc(size_t size)
{
    return prudence_kmalloc(size, flags);
}

static void our_defer(void *object)
{
    prudence_kfree_deferred(object);
}

static void our_free(void *object)
{
    prudence_kfree(object);
}

static void head_free(void *object)
{
    struct headed *headed = object;

    kfree_rcu(headed, rcu);
}

static void no_head_free(void *object)
{
    headless_free(object);
}

static void free_in_callback(struct rcu_head *head)
{
    kfree(container_of(head, struct headed, rcu));
}

static void callback_free(void *object)
{
    struct headed *headed = object;

    call_rcu(&headed->rcu, free_in_callback);
}

static void plain_free(void *object)
{
    kfree(object);
}

static const struct subject subjects[] = {
    {"prudence", our_alloc, our_defer, 1, true},
    {"kfree_rcu", slub_alloc, head_free, sizeof(struct headed), true},
    {"kfree_rcu-headless", slub_alloc, no_head_free, 1, true},
    {"call_rcu", slub_alloc, callback_free, sizeof(struct headed), true},
    {"kmalloc-kfree", slub_alloc, plain_free, 1, false},
    {"prudence-free", our_alloc, our_free, 1, false},
};

static const struct subject *subject_of(const char *name)
{
    unsigned int i;

    for (i = 0; i < ARRAY_SIZE(subjects); i++)
        if (!strcmp(subjects[i].name, name))
            return &subjects[i];
    return NULL;
}

/* All that was deferred is free: the next subject begins with the same memory. */
static void settle(void)
{
    synchronize_rcu();
    rcu_barrier();
    msleep(20);
    synchronize_rcu();
}

/* ------------------------------------------------------------------------- one function, all CPUs */

struct worker {
    struct task_struct *task;
    unsigned int cpu;
    u64 ns, done, failed;
    bool ended;
    const struct subject *subject;
    size_t size;
    int (*body)(struct worker *worker);
};

static struct worker *workers;
static int do_endurance(struct worker *worker);
static unsigned int worker_count;
static atomic_t waiting;
static bool go, stop;

/* Every worker begins when all have arrived. */
static void wait_for_start(void)
{
    atomic_inc(&waiting);
    while (!READ_ONCE(go))
        cond_resched();
}

static int work_main(void *data)
{
    struct worker *worker = data;
    u64 start;

    wait_for_start();
    start = ktime_get_ns();
    worker->body(worker);
    worker->ns = ktime_get_ns() - start;
    smp_store_release(&worker->ended, true); /* the figures are there */
    while (!kthread_should_stop())
        schedule_timeout_interruptible(1);
    return 0;
}

static int workers_start(int (*body)(struct worker *worker), const struct subject *subject,
                         size_t size)
{
    unsigned int cpu = cpumask_first(cpu_online_mask), most = cpus ? cpus : num_online_cpus();

    if (body == do_endurance)
        most *= tasks;
    worker_count = 0;
    atomic_set(&waiting, 0);
    WRITE_ONCE(go, false);
    WRITE_ONCE(stop, false);
    while (worker_count < most) {
        struct worker *worker = &workers[worker_count];

        memset(worker, 0, sizeof(*worker));
        worker->cpu = worker_count;
        worker->subject = subject;
        worker->size = size;
        worker->body = body;
        worker->task = kthread_create(work_main, worker, "prudence_bench");
        if (IS_ERR(worker->task))
            return PTR_ERR(worker->task);
        kthread_bind(worker->task, cpu);
        wake_up_process(worker->task);
        worker_count++;
        cpu = cpumask_next(cpu, cpu_online_mask);
        if (cpu >= nr_cpu_ids) /* once round: another task each */
            cpu = cpumask_first(cpu_online_mask);
    }
    while (atomic_read(&waiting) < (int)worker_count)
        schedule_timeout_uninterruptible(1);
    WRITE_ONCE(go, true);
    return 0;
}

static bool workers_run(void)
{
    unsigned int i;

    for (i = 0; i < worker_count; i++)
        if (!smp_load_acquire(&workers[i].ended)) /* pairs with work_main */
            return true;
    return false;
}

static void workers_end(void)
{
    unsigned int i;

    for (i = 0; i < worker_count; i++)
        kthread_stop(workers[i].task);
}

static u64 worker_sum(size_t offset)
{
    u64 sum = 0;
    unsigned int i;

    for (i = 0; i < worker_count; i++)
        sum += *(u64 *)((char *)&workers[i] + offset);
    return sum;
}

static u64 used_kb(void)
{
    struct sysinfo info;

    si_meminfo(&info);
    return ((u64)(info.totalram - info.freeram) << PAGE_SHIFT) >> 10;
}

/* ------------------------------------------------------------------------------------------ pairs */

static int do_pairs(struct worker *worker)
{
    const struct subject *subject = worker->subject;
    unsigned int i;

    for (i = 0; i < pairs; i++) {
        char *object = subject->alloc(worker->size);

        if (!object) {
            worker->failed++;
            cond_resched();
            continue;
        }
        WRITE_ONCE(*object, (char)i);
        subject->release(object);
        if (i % 64 == 0)
            cond_resched();
    }
    worker->done = pairs;
    return 0;
}

static void pairs_of(const struct subject *subject, size_t size, unsigned int round)
{
    u64 before = used_kb(), after;

    if (workers_start(do_pairs, subject, max(size, subject->least)))
        return;
    while (workers_run())
        schedule_timeout_uninterruptible(1);
    after = used_kb();
    pr_info(
        "BENCH "
        "{\"run\":\"pairs\",\"subject\":\"%s\",\"size\":%zu,\"object\":%zu,\"cpus\":%u,\"round\":%"
        "u,\"pairs\":%u,\"ns_per_pair\":%llu,\"failed\":%llu,\"grown_kb\":%lld}\n",
        subject->name, size, max(size, subject->least), worker_count, round, pairs,
        div64_u64(worker_sum(offsetof(struct worker, ns)), (u64)pairs * worker_count),
        worker_sum(offsetof(struct worker, failed)), (s64)(after - before));
    workers_end();
    settle();
}

static void run_pairs(void)
{
    static const size_t sizes[] = {8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
    unsigned int round, i, j;

    for (i = 0; i < ARRAY_SIZE(sizes); i++)
        for (round = 0; round < rounds && (!only_size || sizes[i] == only_size); round++)
            for (j = 0; j < ARRAY_SIZE(subjects); j++) { /* interleaved */
                const struct subject *subject = &subjects[(j + round) % ARRAY_SIZE(subjects)];

                if (!*subject_name || subject == subject_of(subject_name))
                    pairs_of(subject, sizes[i], round);
            }
}

/* ----------------------------------------------------------------------------------------- remote */

/* A ring from each CPU to the next: one writes, one reads. */
#define HAND 64

struct hand {
    void *slots[HAND];
    u64 put ____cacheline_aligned;
    u64 taken ____cacheline_aligned;
};

static struct hand *hands;

static int do_remote(struct worker *worker)
{
    const struct subject *subject = worker->subject;
    unsigned int to = (worker->cpu + 1) % worker_count, from = worker->cpu;
    unsigned int made = 0, released = 0;

    while (made < pairs || released < pairs) {
        if (made < pairs && hands[to].put - READ_ONCE(hands[to].taken) < HAND) {
            void *object = subject->alloc(worker->size);

            if (!object)
                worker->failed++;
            hands[to].slots[hands[to].put % HAND] = object;
            /* Pairs with the acquire below: the slot is written. */
            smp_store_release(&hands[to].put, hands[to].put + 1);
            made++;
        }
        /* Pairs with the release above. */
        if (released < pairs && hands[from].taken != smp_load_acquire(&hands[from].put)) {
            void *object = hands[from].slots[hands[from].taken % HAND];

            /* The slot has been read: it may be written again. */
            smp_store_release(&hands[from].taken, hands[from].taken + 1);
            if (object)
                subject->release(object);
            released++;
        } else {
            cond_resched();
        }
        if (released % 64 == 0)
            cond_resched();
    }
    worker->done = released;
    return 0;
}

static void run_remote(void)
{
    unsigned int round, i;
    size_t size = only_size ? only_size : 256;

    for (round = 0; round < rounds; round++) {
        for (i = 0; i < ARRAY_SIZE(subjects); i++) {
            const struct subject *subject = &subjects[(i + round) % ARRAY_SIZE(subjects)];
            u64 before = used_kb();

            memset(hands, 0, array_size(nr_cpu_ids, sizeof(*hands)));
            if (workers_start(do_remote, subject, size))
                return;
            while (workers_run())
                schedule_timeout_uninterruptible(1);
            pr_info(
                "BENCH "
                "{\"run\":\"remote\",\"subject\":\"%s\",\"size\":%zu,\"cpus\":%u,\"nodes\":%u,"
                "\"round\":%u,\"ns_per_pair\":%llu,\"failed\":%llu,\"grown_kb\":%lld}\n",
                subject->name, size, worker_count, num_online_nodes(), round,
                div64_u64(worker_sum(offsetof(struct worker, ns)), (u64)pairs * worker_count),
                worker_sum(offsetof(struct worker, failed)), (s64)(used_kb() - before));
            workers_end();
            settle();
        }
    }
}

/* -------------------------------------------------------------------------------------- endurance */

#define ENTRIES 256

/* Each CPU replaces entries of its own list, and never gives up: as the paper's updaters. */
static int do_endurance(struct worker *worker)
{
    const struct subject *subject = worker->subject;
    void **list = kvcalloc(ENTRIES, sizeof(*list), GFP_KERNEL);
    unsigned int i;

    while (list && !READ_ONCE(stop)) {
        for (i = 0; i < ENTRIES; i++) {
            char *new = subject->alloc(worker->size);

            if (!new) {
                WRITE_ONCE(worker->failed, worker->failed + 1);
                continue;
            }
            WRITE_ONCE(*new, (char)i);
            if (list[i])
                subject->release(list[i]);
            list[i] = new;
            WRITE_ONCE(worker->done, worker->done + 1);
        }
        cond_resched();
    }
    for (i = 0; list && i < ENTRIES; i++)
        if (list[i])
            subject->release(list[i]);
    kvfree(list);
    return 0;
}

struct sample {
    u32 ms;
    u32 used_kb;
    u64 done;
};

static void endurance_of(const struct subject *subject)
{
    unsigned int most = seconds * 100 + 100, count = 0, i, step;
    struct sample *samples = vmalloc(array_size(most, sizeof(*samples)));
    u64 start, before = used_kb(), peak = 0;
    bool out_of_memory = false;

    if (!samples || workers_start(do_endurance, subject, only_size ? only_size : 512))
        return;
    start = ktime_get_ns();
    while (count < most && ktime_get_ns() - start < (u64)seconds * NSEC_PER_SEC && !out_of_memory) {
        struct sample *sample = &samples[count++];

        sample->ms = (u32)div_u64(ktime_get_ns() - start, NSEC_PER_MSEC);
        sample->used_kb = (u32)used_kb();
        sample->done = worker_sum(offsetof(struct worker, done));
        peak = max_t(u64, peak, sample->used_kb);
        out_of_memory = worker_sum(offsetof(struct worker, failed)) > 0;
        usleep_range(9000, 11000);
    }
    WRITE_ONCE(stop, true);
    while (workers_run())
        schedule_timeout_uninterruptible(1);
    workers_end();
    settle();
    step = max(count / 200, 1u);
    for (i = 0; i < count; i += step)
        pr_info(
            "BENCH "
            "{\"run\":\"sample\",\"subject\":\"%s\",\"ms\":%u,\"used_kb\":%u,\"updates\":%llu}\n",
            subject->name, samples[i].ms, samples[i].used_kb, samples[i].done);
    pr_info(
        "BENCH "
        "{\"run\":\"endurance\",\"subject\":\"%s\",\"cpus\":%u,\"tasks\":%u,\"ms\":%u,\"updates\":%"
        "llu,\"before_"
        "kb\":%llu,\"peak_kb\":%llu,\"after_kb\":%llu,\"out_of_memory\":%s,\"total_kb\":%lu}\n",
        subject->name, worker_count / max(tasks, 1u), tasks, samples[count - 1].ms,
        worker_sum(offsetof(struct worker, done)), before, peak, used_kb(),
        out_of_memory ? "true" : "false", totalram_pages() << (PAGE_SHIFT - 10));
    vfree(samples);
}

/* -------------------------------------------------------------------------------------------- mix */

/*
 * What a workload does to one of its caches: batches of live objects that grow and shrink, of which a
 * share is deferred when it goes (the paper's Figure 12) and the rest is freed.
 */
static const struct mix {
    const char *name;
    size_t size;
    unsigned int live;     /* objects of a CPU that live at a time, at most */
    unsigned int burst;    /* made or let go in one go */
    unsigned int deferred; /* of 100 that go */
} mixes[] = {
    {"file", 256, 4000, 200, 24}, /* inodes, dentries, files opened and closed in bunches */
    {"socket", 192, 1000, 8, 14}, /* one connection after the other */
    {"tree", 64, 6000, 60, 45},   /* nodes replaced when a tree is balanced */
};

static const struct mix *mix;
static struct prudence_cache *our_cache;
static struct kmem_cache *slub_cache;
static atomic64_t slub_constructed;

static void slub_construct(void *object)
{
    memset(object, 0, sizeof(struct headed)); /* as ours is */
    atomic64_inc(&slub_constructed);
}

static void our_construct(void *object)
{
    memset(object, 0, sizeof(struct headed));
}

static void slub_mix_free(struct rcu_head *head)
{
    kmem_cache_free(slub_cache, container_of(head, struct headed, rcu));
}

static void mix_release(bool ours, void *object, bool deferred)
{
    if (ours && deferred)
        prudence_cache_free_deferred(our_cache, object);
    else if (ours)
        prudence_cache_free(our_cache, object);
    else if (deferred && !strcmp(subject_name, "call_rcu"))
        call_rcu(&((struct headed *)object)->rcu, slub_mix_free);
    else if (deferred)
        head_free(object); /* kfree of what kmem_cache_alloc gave is allowed */
    else
        kmem_cache_free(slub_cache, object);
}

static u32 next_random(u32 *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static int do_mix(struct worker *worker)
{
    bool ours = worker->subject->alloc == our_alloc;
    void **live = vmalloc(array_size(mix->live, sizeof(*live)));
    u32 random = worker->cpu + 1;
    unsigned int count = 0, i;

    while (live && worker->done < pairs) {
        unsigned int target = next_random(&random) % mix->live;

        for (i = 0; i < mix->burst && count < target; i++) {
            void *object = ours ? prudence_cache_alloc(our_cache, GFP_KERNEL)
                                : kmem_cache_alloc(slub_cache, GFP_KERNEL);

            if (!object)
                break;
            live[count++] = object;
            worker->done++;
        }
        for (i = 0; i < mix->burst && count > target; i++) {
            unsigned int victim = next_random(&random) % count;

            mix_release(ours, live[victim], next_random(&random) % 100 < mix->deferred);
            live[victim] = live[--count];
        }
        cond_resched();
    }
    while (count)
        mix_release(ours, live[--count], false);
    vfree(live);
    return 0;
}

static void mix_of(const struct subject *subject)
{
    bool ours = subject->alloc == our_alloc;
    struct prudence_cache_stats stats = {};
    u64 before = used_kb();
    u64 peak = before;

    atomic64_set(&slub_constructed, 0);
    our_cache = prudence_cache_create("bench_mix", mix->size, 0, 0, our_construct);
    slub_cache =
        kmem_cache_create("bench_mix_slub", mix->size, 0, SLAB_HWCACHE_ALIGN, slub_construct);
    if (!our_cache || !slub_cache || workers_start(do_mix, subject, mix->size))
        return;
    while (workers_run()) {
        peak = max(peak, used_kb());
        if (ours) {
            struct prudence_cache_stats now;

            prudence_cache_stats(our_cache, &now);
            if (now.fragmentation_permille)
                stats.fragmentation_permille = now.fragmentation_permille;
        }
        schedule_timeout_uninterruptible(1);
    }
    if (ours) {
        u64 fragmentation = stats.fragmentation_permille;

        prudence_cache_stats(our_cache, &stats);
        stats.fragmentation_permille = fragmentation;
    }
    pr_info(
        "BENCH "
        "{\"run\":\"mix\",\"mix\":\"%s\",\"subject\":\"%s\",\"size\":%zu,\"cpus\":%u,"
        "\"allocations\":%llu,\"ns_per_pair\":%llu,\"grown_kb\":%lld,\"slub_constructed\":%lld,"
        "\"hits\":%llu,\"hits_after_merge\":%llu,\"object_cache_churns\":%llu,\"slab_churns\":%llu,"
        "\"grows\":%llu,\"slabs_peak\":%llu,\"slab_bytes\":%zu,\"overflowed\":%llu,\"preflushed\":%"
        "llu,\"premoved\":%llu,\"f_t\":%llu}\n",
        mix->name, subject->name, mix->size, worker_count,
        worker_sum(offsetof(struct worker, done)),
        div64_u64(worker_sum(offsetof(struct worker, ns)),
                  max(worker_sum(offsetof(struct worker, done)), 1ull)),
        (s64)(peak - before), atomic64_read(&slub_constructed), stats.hits, stats.hits_after_merge,
        stats.object_cache_churns, stats.slab_churns, stats.grows, stats.slabs_peak,
        stats.slab_size, stats.overflowed_objects, stats.preflushed_objects, stats.premoved_slabs,
        stats.fragmentation_permille);
    workers_end();
    settle();
    kmem_cache_destroy(slub_cache);
    prudence_cache_destroy(our_cache);
    settle();
}

static void run_mixes(void)
{
    unsigned int i;

    for (i = 0; i < ARRAY_SIZE(mixes); i++) {
        mix = &mixes[i];
        subject_name = "prudence";
        mix_of(subject_of(subject_name));
        subject_name = "kfree_rcu";
        mix_of(subject_of(subject_name));
        subject_name = "call_rcu";
        mix_of(subject_of(subject_name));
    }
}

static int measure(void)
{
    const struct subject *subject = subject_of(subject_name);

    if (!strcmp(run, "pairs"))
        run_pairs();
    else if (!strcmp(run, "remote"))
        run_remote();
    else if (!strcmp(run, "mix"))
        run_mixes();
    else if (!strcmp(run, "endurance") && subject)
        endurance_of(subject);
    else
        return -EINVAL;
    return 0;
}

static int __init bench_start(void)
{
    int error = -ENOMEM;

    if (until_killed)
        flags = GFP_KERNEL;
    workers = kvcalloc(array_size(nr_cpu_ids, max(tasks, 1u)), sizeof(*workers), GFP_KERNEL);
    hands = kvcalloc(nr_cpu_ids, sizeof(*hands), GFP_KERNEL);
    if (workers && hands)
        error = measure();
    kvfree(hands);
    kvfree(workers);
    return error;
}

static void __exit bench_stop(void)
{
    rcu_barrier(); /* callbacks of ours */
}

module_init(bench_start);
module_exit(bench_stop);
MODULE_DESCRIPTION("Measurements of prudence.ko beside SLUB");
MODULE_LICENSE("Dual MIT/GPL");
