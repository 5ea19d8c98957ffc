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
 *              Figure 12, in `rounds` interleaved rounds; counters of both allocators (Figures 7 to 11).
 *              With `pace` all subjects make their requests at the same times
 *   remote     allocated on one CPU, deferred on the next
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
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
MODULE_PARM_DESC(subject, "of endurance; of pairs and mixes only this (empty: all)");
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
static unsigned int pace;
module_param(pace, uint, 0444);
MODULE_PARM_DESC(pace,
                 "ns from one allocation of a mix to the next of its CPU (0: as fast as it goes)");
static bool watch = true;
module_param(watch, bool, 0444);
MODULE_PARM_DESC(watch, "count what SLUB does in mixes, which slows it down");
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
    u64 ns, done, failed, live;
    bool ended, rests;
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
 * share is deferred when it goes (the paper's Figure 12) and the rest is freed. All subjects get the
 * same requests in the same order on each CPU.
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

/*
 * SLUB's counters, by probes of its slow paths, since Debian builds it without SLUB_STATS. Every one of
 * these functions has the cache as its first argument; or a barn, which is a list of sheaves (from 6.18
 * on) of one cache, and is then called by such a function on the same CPU, without preemption.
 */
enum slub_count {
    SLUB_MISS,   /* the CPU has nothing: its slab is used up, or both its sheaves */
    SLUB_REFILL, /* from slabs of a node, old or new */
    SLUB_FLUSH,  /* to a slab that is not the CPU's (one object), or a sheaf to the barn */
    SLUB_GROW,
    SLUB_SHRINK,
    SLUB_COUNTS,
    SLUB_FILLS, /* about to ask a barn, which then counts */
    SLUB_EMPTIES,
};

static struct slub_probe {
    const char *const names[2]; /* a compiler may have split it */
    enum slub_count what;
    enum slub_count inside; /* of which; SLUB_COUNTS: its argument says whose it is */
    struct kprobe kprobe;
} slub_probes[] = {
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
    {{"__pcs_replace_empty_main"}, SLUB_FILLS, SLUB_COUNTS},
    {{"barn_replace_empty_sheaf"}, SLUB_MISS, SLUB_FILLS},
    {{"refill_objects"}, SLUB_REFILL, SLUB_COUNTS},
    {{"__pcs_replace_full_main"}, SLUB_EMPTIES, SLUB_COUNTS},
    {{"barn_replace_full_sheaf", "barn_replace_full_sheaf.part.0"}, SLUB_FLUSH, SLUB_EMPTIES},
#else
    {{"___slab_alloc"}, SLUB_MISS, SLUB_COUNTS},
    {{"get_partial_node", "get_partial_node.part.0"}, SLUB_REFILL, SLUB_COUNTS},
    {{"__slab_free"}, SLUB_FLUSH, SLUB_COUNTS},
#endif
    {{"allocate_slab"}, SLUB_GROW, SLUB_COUNTS},
    {{"__free_slab"}, SLUB_SHRINK, SLUB_COUNTS},
};

static DEFINE_PER_CPU(u64[SLUB_COUNTS], slub_counts);
static DEFINE_PER_CPU(enum slub_count, slub_inside) = SLUB_COUNTS;
static atomic_long_t slub_slabs, slub_slabs_peak;

static void count_slub_slab(void)
{
    long now = atomic_long_inc_return(&slub_slabs), peak = atomic_long_read(&slub_slabs_peak);

    while (now > peak && !atomic_long_try_cmpxchg(&slub_slabs_peak, &peak, now))
        ;
}

static int count_slub(struct kprobe *kprobe, struct pt_regs *regs)
{
    const struct slub_probe *probe = container_of(kprobe, struct slub_probe, kprobe);
    bool ours = regs_get_kernel_argument(regs, 0) == (unsigned long)READ_ONCE(slub_cache);

    if (probe->what > SLUB_COUNTS) {
        __this_cpu_write(slub_inside, ours ? probe->what : SLUB_COUNTS);
        return 0;
    }
    if (probe->inside != SLUB_COUNTS) {
        ours = __this_cpu_read(slub_inside) == probe->inside;
        __this_cpu_write(slub_inside, SLUB_COUNTS);
    }
    if (!ours)
        return 0;
    __this_cpu_inc(slub_counts[probe->what]);
    if (probe->what == SLUB_GROW)
        count_slub_slab();
    else if (probe->what == SLUB_SHRINK)
        atomic_long_dec(&slub_slabs);
    return 0;
}

static u64 slub_sum(enum slub_count what)
{
    unsigned int cpu;
    u64 sum = 0;

    for_each_possible_cpu(cpu)
        sum += per_cpu(slub_counts, cpu)[what];
    return sum;
}

static void slub_forget_counts(void)
{
    unsigned int cpu;

    for_each_possible_cpu(cpu)
        memset(per_cpu(slub_counts, cpu), 0, sizeof(slub_counts));
    atomic_long_set(&slub_slabs, 0);
    atomic_long_set(&slub_slabs_peak, 0);
}

static void slub_unwatch(unsigned int probes)
{
    while (probes--)
        unregister_kprobe(&slub_probes[probes].kprobe);
}

/* False, with nothing watched, where this kernel's SLUB is another one. */
static bool slub_watch(void)
{
    unsigned int i, j;

    for (i = 0; i < ARRAY_SIZE(slub_probes); i++) {
        struct slub_probe *probe = &slub_probes[i];
        int error = -ENOENT;

        for (j = 0; j < ARRAY_SIZE(probe->names) && probe->names[j] && error; j++) {
            probe->kprobe =
                (struct kprobe){.symbol_name = probe->names[j], .pre_handler = count_slub};
            error = register_kprobe(&probe->kprobe);
        }
        if (error) {
            pr_warn("SLUB is not counted: no %s (%d)\n", probe->names[0], error);
            slub_unwatch(i);
            return false;
        }
    }
    return true;
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
    u64 start = ktime_get_ns();

    while (live && worker->done < pairs) {
        unsigned int target = next_random(&random) % mix->live;

        for (i = 0; i < mix->burst && count < target; i++) {
            void *object = ours ? prudence_cache_alloc(our_cache, GFP_KERNEL)
                                : kmem_cache_alloc(slub_cache, GFP_KERNEL);

            if (!object)
                break;
            live[count++] = object;
            WRITE_ONCE(worker->done, worker->done + 1);
        }
        for (i = 0; i < mix->burst && count > target; i++) {
            unsigned int victim = next_random(&random) % count;

            mix_release(ours, live[victim], next_random(&random) % 100 < mix->deferred);
            live[victim] = live[--count];
        }
        WRITE_ONCE(worker->live, count);
        do
            cond_resched();
        while (ktime_get_ns() - start < worker->done * pace);
    }
    smp_store_release(&worker->rests, true); /* the figures are there */
    while (!READ_ONCE(stop))
        schedule_timeout_interruptible(1);
    while (count)
        mix_release(ours, live[--count], false);
    vfree(live);
    return 0;
}

/* What a run was, apart from counters. */
struct mix_run {
    u64 fragmentation, fragmentation_mean; /* f_t x 1000, at its end and on average */
    u64 ms, grace_periods;
};

/* What a cache looks like at one time. */
struct mix_look {
    u64 slabs, live, latent, cached; /* latent and cached of Prudence alone */
    u64 fragmentation;               /* f_t x 1000 */
};

static size_t mix_slab_bytes; /* of the subject that runs */

static void mix_look(bool ours, struct mix_look *look)
{
    struct prudence_cache_stats stats = {};

    if (ours)
        prudence_cache_stats(our_cache, &stats);
    *look = (struct mix_look){
        .slabs = ours ? stats.slabs_now : (u64)atomic_long_read(&slub_slabs),
        .live = worker_sum(offsetof(struct worker, live)),
        .latent = stats.objects_latent,
        .cached = stats.objects_cached,
    };
    if (look->live)
        look->fragmentation =
            div64_u64(look->slabs * mix_slab_bytes * 1000, look->live * mix->size);
}

static bool workers_rest(void)
{
    unsigned int i;

    for (i = 0; i < worker_count; i++)
        if (!smp_load_acquire(&workers[i].rests)) /* pairs with do_mix */
            return false;
    return true;
}

/* The whole block that an object of SLUB lies in. */
static size_t slub_slab_bytes(void)
{
    void *object = kmem_cache_alloc(slub_cache, GFP_KERNEL);
    size_t bytes = object ? PAGE_SIZE << compound_order(virt_to_head_page(object)) : 0;

    if (object)
        kmem_cache_free(slub_cache, object);
    return bytes;
}

/* Grace periods that began between two snapshots. */
static u64 grace_periods(unsigned long before, unsigned long after)
{
    return (after - before) >> 2; /* the lowest two bits are a state */
}

/* kfree_rcu of 6.1 keeps what it has for five seconds, and has no barrier. */
static void slub_settle(bool counted)
{
    unsigned int tries;

    for (tries = 0; tries < 100; tries++) {
        settle();
        kmem_cache_shrink(slub_cache);
        if (counted && !atomic_long_read(&slub_slabs))
            break;
        msleep(60);
    }
}

/* SLUB's counters in our words. */
static void slub_stats(struct prudence_cache_stats *stats)
{
    u64 misses = slub_sum(SLUB_MISS);

    stats->allocations = worker_sum(offsetof(struct worker, done));
    stats->hits = stats->allocations - min(stats->allocations, misses);
    stats->refills = slub_sum(SLUB_REFILL);
    stats->flushes = slub_sum(SLUB_FLUSH);
    stats->object_cache_churns = min(misses, stats->flushes);
    stats->grows = slub_sum(SLUB_GROW);
    stats->shrinks = slub_sum(SLUB_SHRINK);
    stats->slab_churns = min(stats->grows, stats->shrinks);
    stats->slabs_peak = (u64)atomic_long_read(&slub_slabs_peak);
}

static void mix_print(const char *subject, unsigned int round, bool counted,
                      const struct prudence_cache_stats *stats, const struct mix_look *peak,
                      const struct mix_run *ran)
{
    pr_info(
        "BENCH {\"run\":\"mix\",\"mix\":\"%s\",\"subject\":\"%s\",\"size\":%zu,\"cpus\":%u,"
        "\"pace\":%u,\"round\":%u,\"counted\":%s,\"allocations\":%llu,\"hits\":%llu,"
        "\"hits_after_merge\":%llu,\"refills\":%llu,\"flushes\":%llu,"
        "\"object_cache_churns\":%llu,\"grows\":%llu,\"shrinks\":%llu,\"slab_churns\":%llu,"
        "\"slabs_peak\":%llu,\"slab_bytes\":%zu,\"f_t\":%llu,\"f_t_mean\":%llu,\"ms\":%llu,"
        "\"grace_periods\":%llu}\n",
        mix->name, subject, mix->size, worker_count, pace, round, counted ? "true" : "false",
        stats->allocations, stats->hits, stats->hits_after_merge, stats->refills, stats->flushes,
        stats->object_cache_churns, stats->grows, stats->shrinks, stats->slab_churns,
        stats->slabs_peak, mix_slab_bytes, ran->fragmentation, ran->fragmentation_mean, ran->ms,
        ran->grace_periods);
    pr_info(
        "BENCH {\"run\":\"mix-peak\",\"mix\":\"%s\",\"subject\":\"%s\",\"pace\":%u,"
        "\"round\":%u,\"slabs\":%llu,\"live\":%llu,\"latent\":%llu,\"cached\":%llu,"
        "\"object_cache\":%zu,\"overflowed\":%llu,\"preflushed\":%llu,\"premoved\":%llu}\n",
        mix->name, subject, pace, round, peak->slabs, peak->live, peak->latent, peak->cached,
        stats->object_cache_size, stats->overflowed_objects, stats->preflushed_objects,
        stats->premoved_slabs);
}

static void mix_of(const struct subject *subject, bool counted, unsigned int round)
{
    bool ours = subject->alloc == our_alloc;
    struct prudence_cache_stats stats = {};
    struct mix_look look = {}, peak = {};
    struct mix_run ran = {};
    unsigned long cookie;
    u64 looks = 0, start;

    our_cache = prudence_cache_create("bench_mix", mix->size, 0, 0, NULL);
    /* With a region that may be copied it is merged with no other cache. */
    slub_cache = kmem_cache_create_usercopy("bench_mix_slub", mix->size, 0, SLAB_HWCACHE_ALIGN, 0,
                                            (unsigned int)mix->size, NULL);
    if (!our_cache || !slub_cache)
        return;
    slub_forget_counts();
    prudence_cache_stats(our_cache, &stats);
    mix_slab_bytes = ours ? stats.slab_size : slub_slab_bytes();
    start = ktime_get_ns();
    cookie = get_state_synchronize_rcu();
    if (workers_start(do_mix, subject, mix->size))
        return;
    while (!workers_rest()) {
        mix_look(ours, &look);
        if (look.slabs > peak.slabs)
            peak = look;
        ran.fragmentation_mean += look.fragmentation;
        looks += look.live > 0;
        schedule_timeout_uninterruptible(1);
    }
    mix_look(ours, &look);
    ran.fragmentation = look.fragmentation;
    ran.fragmentation_mean = div64_u64(ran.fragmentation_mean, max(looks, 1ull));
    ran.ms = div64_u64(ktime_get_ns() - start, NSEC_PER_MSEC);
    ran.grace_periods = grace_periods(cookie, get_state_synchronize_rcu());
    if (ours)
        prudence_cache_stats(our_cache, &stats);
    else
        slub_stats(&stats);
    mix_print(subject->name, round, ours || counted, &stats, &peak, &ran);
    WRITE_ONCE(stop, true);
    while (workers_run())
        schedule_timeout_uninterruptible(1);
    workers_end();
    slub_settle(counted);
    kmem_cache_destroy(slub_cache);
    prudence_cache_destroy(our_cache);
    if (atomic_long_read(&slub_slabs))
        pr_warn("BENCH: SLUB's slabs were miscounted: %ld are left\n",
                atomic_long_read(&slub_slabs));
}

static void run_mixes(void)
{
    static const char *const names[] = {"prudence", "kfree_rcu", "call_rcu"};
    const char *only = subject_name;
    bool counted = watch && slub_watch();
    unsigned int round, i, j;

    for (round = 0; round < rounds; round++) {
        for (i = 0; i < ARRAY_SIZE(mixes); i++) {
            mix = &mixes[i];
            for (j = 0; j < ARRAY_SIZE(names); j++) { /* interleaved */
                subject_name = (char *)names[(j + round) % ARRAY_SIZE(names)];
                if ((!only_size || mix->size == only_size) &&
                    (!*only || !strcmp(only, subject_name)))
                    mix_of(subject_of(subject_name), counted, round);
            }
        }
    }
    if (counted)
        slub_unwatch(ARRAY_SIZE(slub_probes));
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
