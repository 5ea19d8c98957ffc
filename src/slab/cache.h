/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Private to slab/: the structures of a slab cache, from the CPU down to the page. One line each:
 *
 *   prudence_cache  all objects of one size: its CPUs' caches and its nodes
 *   cpu_cache       one CPU's object cache (stack) and latent cache (ring of closed batches and an
 *                   open one)
 *   batch           objects deferred together: one cookie
 *   node            one NUMA node's lists of slabs, and their lock
 *   slab            a run of pages cut into equal objects, and its latent slab (two bitmaps)
 *   handful         latent objects on their way from the idle helper to a node
 *
 * Where an object can be: live (with the caller), on a stack, in a ring, in a handful, or in its
 * slab: free, waiting or next. Exactly one of them at any time. To its slab an object is
 * "allocated" unless its free bit is set; "latent" when it is waiting or next.
 */
#ifndef SLAB_CACHE_H
#define SLAB_CACHE_H

#include "base/bits.h"
#include "base/grid.h"
#include "base/list.h"
#include "gp/gp.h"
#include "os/os.h"

#define CACHE_NAME_SIZE 32
#define OBJECT_SIZE_MAX ((size_t)32768)

/* At most this many objects move between a CPU's caches and a node at a time: what is copied on
 * the mover's stack, and what bounds the time that a CPU's caches stay owned. */
#define TRANSFER_MAX OS_TRANSFER_MAX

/* A flush is at most so many of these moves. */
#define FLUSH_MAX ((size_t)4 * TRANSFER_MAX)

/* Where a slab stands in its node. */
enum slab_list {
    SLAB_FULL,     /* nothing free, nothing latent */
    SLAB_PARTIAL,  /* some free or latent, some live; those with free objects stand first */
    SLAB_DRAINING, /* all that is allocated is latent; used last, and only what is truly free */
    SLAB_FREE,     /* everything is free */
    SLAB_RETIRED, /* a lone object's that is free: it goes with the next thread that leaves the node */
    SLAB_LISTS,
};

/* Invariants (under the node's lock): |free| = slab->free; |waiting| + |next| = slab->latent; the
 * three bitmaps are disjoint; list = list_for(slab); in node->waiting exactly when |waiting| > 0;
 * next is empty unless waiting is not. */
struct slab {
    /* What every free looks at; constant except the lines. */
    struct prudence_cache *cache;
    char *base; /* the first object */
    struct grid grid;
    void *fast_lines;  /* the cache's; closed if the slab has extensions that the cache has not */
    uint32_t capacity; /* objects */
    uint16_t node;
    bool alone; /* one object, on pages of the extension that made it: never in CPUs' caches */
    void *pages;
    size_t bytes;
    /* What moving objects between the node and CPUs' caches changes: a line of its own. */
    uint32_t free __attribute__((aligned(CACHE_LINE))); /* objects; the node's lock, as all below */
    uint32_t latent;                                    /* objects in waiting and next */
    uint8_t list;                                       /* enum slab_list */
    uint32_t extensions;                                /* a bit each (extension.h); atomic */
    /* Hints for ranking (node.c); atomic. Live objects that something else is about to free, ... */
    uint32_t leaving;
    int32_t may_leave; /* ... and that it may free; not exact */
    gp_cookie waiting_cookie;
    gp_cookie free_cookie; /* type-safe memory: when the pages may go, once the slab is free */
    struct list link;      /* in a list of its node */
    struct list waiting_link;
    void *side[OS_EXTENSIONS]; /* a word for each extension */
    uint64_t bits[];           /* free, waiting, next: bits_words(capacity) words each */
};

static inline uint64_t *slab_free_bits(struct slab *slab)
{
    return slab->bits;
}

static inline uint64_t *slab_waiting_bits(struct slab *slab)
{
    return slab->bits + bits_words(slab->capacity);
}

static inline uint64_t *slab_next_bits(struct slab *slab)
{
    return slab->bits + (size_t)2 * bits_words(slab->capacity);
}

static inline uint64_t slab_offset(const struct slab *slab, const void *object)
{
    return (uint64_t)((const char *)object - slab->base);
}

/* Whether an address in the slab's pages is that of an object. */
static inline bool slab_has(const struct slab *slab, const void *object)
{
    return grid_has(slab->grid, slab_offset(slab, object));
}

static inline unsigned slab_index(const struct slab *slab, const void *object)
{
    return grid_index(slab->grid, slab_offset(slab, object));
}

static inline void *slab_object(const struct slab *slab, unsigned index, size_t stride)
{
    return slab->base + index * stride;
}

/* Counters of a node; written under its lock. */
struct node_counts {
    uint64_t allocations; /* objects handed out without passing an object cache: misses, bypasses */
    uint64_t frees;       /* objects freed without passing an object cache */
    uint64_t deferred;    /* objects deferred straight into their latent slab */
    uint64_t merges, merged_objects, premoved_slabs, grows, shrinks;
    uint64_t overflowed; /* latent objects put into their latent slabs because the ring was full */
    uint64_t flushes, flushed_objects;
};

struct node {
    struct os_lock lock __attribute__((aligned(CACHE_LINE)));
    struct list lists[SLAB_LISTS];
    unsigned free_slabs; /* on SLAB_FREE */
    unsigned free_noted; /* of them, as the process knows (node_free_bytes) */
    unsigned slabs;      /* on all lists */
    struct list waiting; /* slabs with waiting objects, oldest cookie first */
    unsigned latent;     /* objects in latent slabs */
    uint64_t latent_bytes;
    unsigned used_peak, used_peak_before; /* slabs not free, in this window of decay and the last */
    uint64_t window_end;                  /* ns */
    struct node_counts counts;
    bool kept;                /* a free slab has to stay for an extension */
    struct node *helper;      /* whose pages its last slab got, if not its own; atomic, a hint */
    struct handful *handover; /* pushed without the lock by the idle helper; emptied under it */
};

struct batch {
    uint64_t end; /* the ring's tail when it was closed */
    gp_cookie cookie;
};

/* Counters of a CPU; written by the owner of its caches. */
struct cpu_counts {
    uint64_t stacked;   /* objects that the owner put on the stack: refills, merges */
    uint64_t unstacked; /* objects that the owner took off it: flushes */
    uint64_t refills, refilled_objects;
    uint64_t merges, merged_objects;
    uint64_t hits_after_merge;
};

/*
 * Invariants: objects on the stack <= size; tail - head <= size; closed batches are
 * batches[batch_head .. batch_tail), the last one ends at `closed`, and the open one is
 * [closed, tail). head <= tail <= stop <= reserved, and reserved - head objects are in the account of
 * latent bytes. Everything but head, tail, stop and the stack's word is the owner's.
 */
struct cpu_cache {
    struct os_percpu_line line;
    bool churned;   /* flushed since its last growth: a refill then makes a churn */
    unsigned size;  /* of the object cache, and the limit of the latent cache; follows demand */
    unsigned slots; /* of stack and ring; a power of two, 0: none yet */
    unsigned batch_head, batch_tail; /* ever closed; index & batch_mask */
    unsigned ahead;                  /* objects: reserved - tail, at the owner's last visit */
    unsigned not_at_once;            /* closed batches until latent_end_at_once() tries again */
    unsigned batch_mask;             /* batch_slots() - 1, a power of two less 1 */
    uint64_t closed;
    struct cpu_counts counts;
    uint64_t quiet_word, quiet_tail; /* what drain_quiet_cpus() saw last */
    gp_cookie closed_cookie;         /* of the newest closed batch; written before `closed` */
    uint64_t tidy_word, tidy_tail;   /* what tidying saw last */
    uint32_t preflush_pops, preflush_deferred; /* what the idle helper saw last */
    uint32_t worth_pops, worth_since;          /* since when hits are weighed (give.c); hints */
    uint64_t reserved; /* the tail up to which the account knows of objects; >= tail */
};
_Static_assert(sizeof(struct cpu_cache) <= OS_PERCPU_STRIDE, "lines are a stride apart");

/* Whether a cache's next slab is to be in a window: never (any more), if inlined code asks for an object, or since it has. */
enum window_wish { WINDOW_NEVER, WINDOW_IF_WANTED, WINDOW_WANTED };

struct prudence_cache {
    /* What fast paths look at; constant, but that `fast_lines` may be closed (slab_extend). */
    void *fast_lines; /* = lines, or os_percpu_owned_lines (extensions, no rseq, large blocks) */
    const void *page_map; /* os_page_map_root(), which programs that inline fast paths find here */
    /* Of objects in its window: base and extent, and where in a place they begin; they look here, too. */
    struct os_window_words window_words;
    uint64_t window_mask; /* of an address: where it is in its place */
    struct grid window_grid;
    void *lines; /* the first CPU's cpu_cache; NULL: large blocks, which have none */
    struct prudence_domain *domain;

    size_t object_size, stride, alignment;
    size_t slab_bytes;
    unsigned capacity; /* objects of a slab */
    unsigned colors;   /* different places of the first object, 64 bytes (or alignment) apart */
    unsigned batch;    /* objects that share a cookie */
    unsigned size_min, size_max; /* of an object cache */
    unsigned free_limit;         /* free slabs that a node keeps */
    unsigned flags;
    uint32_t extensions; /* a bit each (extension.h) */
    uint16_t redzone;    /* spare bytes behind each object */
    bool named; /* its users name it when they free, so its own `fast_lines` are looked at */
    uint8_t window_wish; /* enum window_wish; atomic */
    bool sized; /* its creator said what its object caches may hold: they do, whatever the budget */
    void (*constructor)(void *object, void *context);
    void (*destructor)(void *object, void *context); /* an extension's */
    void *context;
    struct node *nodes;
    struct os_window *window;  /* atomic; once made it stays */
    struct list link;          /* in slab_caches; its lock */
    void *side[OS_EXTENSIONS]; /* a word for each extension */

    uint32_t next_color __attribute__((aligned(CACHE_LINE))); /* atomic; what changes begins here */
    uint32_t visitors; /* threads that hold it without the list's lock (cache_hold); atomic */
    uint64_t slabs_now, slabs_peak; /* atomic, as the next */
    uint64_t bypasses, preflushed, pressure_waits, remote_drains;
    uint64_t large_grown, large_shrunk; /* bytes that large blocks ever took, and gave back */
    uint64_t grow_avoided_at;           /* ns; atomic */
    uint64_t quiet_checked_at;          /* ns; atomic */
    char name[CACHE_NAME_SIZE];
};

#define CACHE_TYPESAFE (1u << 0) /* PRUDENCE_CACHE_TYPESAFE */
#define CACHE_DESTRUCT_SOON                                                                        \
    (1u << 1) /* PRUDENCE_CACHE_DESTRUCT_SOON: safe objects go to their slabs */

/* By inlined code: its next slabs go to a window, if it may have one. */
static inline void cache_want_window(struct prudence_cache *cache)
{
    if (load_relaxed(&cache->window_wish) == WINDOW_IF_WANTED)
        store_relaxed(&cache->window_wish, (uint8_t)WINDOW_WANTED);
}

/* Of a destroyed cache only this structure is left, until cache_forget(). */
static inline bool cache_is_destroyed(const struct prudence_cache *cache)
{
    return !load_relaxed(&cache->nodes);
}

static inline struct cpu_cache *cpu_cache_of(const struct prudence_cache *cache, unsigned cpu)
{
    return (struct cpu_cache *)((char *)cache->lines + cpu * OS_PERCPU_STRIDE);
}

/* Whether fast paths would serve the objects of all its slabs, except slabs with an extension of their own. */
static inline bool cache_is_plain(const struct prudence_cache *cache)
{
    return likely(os_percpu_rseq) && likely(!cache->extensions) && likely(cache->lines != NULL);
}

static inline struct node *node_here(const struct prudence_cache *cache)
{
    return &cache->nodes[os_node_of_cpu(os_cpu_current())];
}

/* The slab of an object that is known to be ours. NULL, in a kernel only: it is not, since it was freed twice and its
 * slab has gone meanwhile. */
static inline struct slab *slab_known(const void *object)
{
    struct slab *slab = os_page_owner(object);

    if (unlikely(!slab)) {
        os_report("object %p has lost its slab: was it freed twice?", object);
        os_misuse();
    }
    return slab;
}

static inline struct node *node_of(const struct slab *slab)
{
    return &slab->cache->nodes[slab->node];
}

/* What one object of the slab takes. */
static inline size_t slab_object_bytes(const struct slab *slab)
{
    return slab->cache->lines ? slab->cache->stride : slab->bytes;
}

/* --- all_caches.c: the list --- */
extern struct os_lock slab_caches_lock;
extern struct list slab_caches;
void for_all_caches(void (*visit)(struct prudence_cache *cache));
void cache_wait_for_visitors(const struct prudence_cache *cache);

/* Under that lock: the cache is not destroyed until it is let go. Whoever holds it waits for nothing but the
 * lock of a node and the end of a fork. */
static inline void cache_hold(struct prudence_cache *cache)
{
    add_relaxed(&cache->visitors, 1);
}

/* Release: what was done to the cache is done before its destruction goes on. */
static inline void cache_let_go(struct prudence_cache *cache)
{
    __atomic_fetch_sub(&cache->visitors, 1, __ATOMIC_RELEASE);
}

/* --- cache.c --- */
struct cache_layout {
    size_t object_size, alignment;
    unsigned flags;
    void (*constructor)(void *object, void *context);
    void (*destructor)(void *object, void *context);
    void *context;
    struct prudence_domain *domain;
    size_t object_cache_bytes;
    bool no_cpu_caches; /* large blocks: every block is a slab of its own */
    bool named;
};
struct prudence_cache *cache_create(const char *name, const struct cache_layout *layout);
bool cache_destroy(struct prudence_cache *cache, size_t *live);
void cache_forget(struct prudence_cache *cache);
extern size_t slab_redzone; /* of caches that are made from now on */

/* --- gate.c: where objects come that the fast path (fast_path.h) did not serve ---
 * `size`: what was asked for, 0: a whole object. `what` names the caller in reports. */
void *cache_alloc_slow(struct prudence_cache *cache, size_t size, os_alloc_flags flags);
size_t cache_alloc_bulk(struct prudence_cache *cache, size_t count, void **objects,
                        os_alloc_flags flags);
void cache_free_slow(struct slab *slab, void *object, const char *what);
void cache_free_deferred_slow(struct slab *slab, void *object, const char *what);
/* A freed object that an extension has kept, and lets go now. */
void cache_put_kept(struct slab *slab, void *object);

/* --- alloc.c, free.c, defer.c: an object's way out and in, behind the gate --- */
void *cache_take(struct prudence_cache *cache, os_alloc_flags flags);
size_t cache_take_bulk(struct prudence_cache *cache, size_t count, void **objects,
                       os_alloc_flags flags);
void cache_put(struct slab *slab, void *object);
void cache_defer(struct slab *slab, void *object);

/* --- misuse.c: from a pointer to its slab, or a report and abort. `cache` NULL: any. --- */
struct slab *slab_of_checked(const struct prudence_cache *cache, const void *object,
                             const char *what);
/* Behind the first line of a report: says what else is known (`slab` may be NULL), and ends the process. */
void explain_and_abort(const struct slab *slab, const void *object) __attribute__((noreturn));
void describe_double(const struct slab *slab, const void *object, bool latent, const char *what);
static inline void __attribute__((noreturn))
report_double(const struct slab *slab, const void *object, bool latent, const char *what)
{
    describe_double(slab, object, latent, what);
    os_abort();
}
void describe_not_live(const struct slab *slab, const void *object, bool latent, const char *what);
static inline void __attribute__((noreturn))
report_not_live(const struct slab *slab, const void *object, bool latent, const char *what)
{
    describe_not_live(slab, object, latent, what);
    os_abort();
}
/* Of a bitmap that other threads change meanwhile, under a lock that this one does not have: but the bit of an object
 * that is its own stays as it is. */
__attribute__((no_sanitize("thread"))) static inline bool bit_of_word(const uint64_t *bits,
                                                                      unsigned index)
{
    return *(const volatile uint64_t *)&bits[index / BITS_PER_WORD] >> (index % BITS_PER_WORD) & 1;
}

/* Whether an object of this thread's may be free or deferred, as far as its slab can tell: it is back in it, or an
 * extension other than those that the caller knows may know. Then slab_check_live says so, if it is. The slab may get
 * another extension meanwhile, which knows nothing yet: so a plain read is enough. */
__attribute__((no_sanitize("thread"))) static inline bool
slab_may_be_dead(const struct slab *slab, unsigned index, uint32_t known)
{
    unsigned words = bits_words(slab->capacity);

    return unlikely(slab->extensions & ~known) || unlikely(bit_of_word(slab->bits, index)) ||
           unlikely(bit_of_word(slab->bits + words, index)) ||
           unlikely(bit_of_word(slab->bits + (size_t)2 * words, index));
}

/* Reports an object that is not live, as far as that can be seen. */
void slab_check_live(const struct slab *slab, const void *object, const char *what);

/* The slab of an object of any cache, or NULL for misuse. */
static inline struct slab *slab_of(const void *object)
{
    struct slab *slab = os_page_owner(object);

    return likely(slab && slab_has(slab, object)) ? slab : NULL;
}

/* The slab of an object of `cache`, or NULL for misuse. */
static inline struct slab *slab_of_cache(const struct prudence_cache *cache, const void *object)
{
    struct slab *slab = os_page_owner(object);

    return likely(slab && slab->cache == cache && slab_has(slab, object)) ? slab : NULL;
}

/* --- cpu_cache.c: owning a CPU's caches ---
 * Between take and release the caller makes no system call, takes no lock and does not wait. */
struct cpu_cache *cpu_cache_take(struct prudence_cache *cache, const void *token);
bool cpu_cache_take_remote(struct cpu_cache *cpu, const void *token);
bool cpu_cache_visit_remote(struct cpu_cache *cpu, const void *token,
                            void (*visit)(struct os_percpu_line *line, void *data), void *data);
void cpu_cache_release(struct cpu_cache *cpu);
bool cpu_cache_grow(struct prudence_cache *cache, unsigned size);
struct arrays {
    void *block;
    size_t bytes;
};
struct arrays cpu_cache_arrays_for(const struct prudence_cache *cache, unsigned size);
void cpu_cache_arrays_free(struct arrays arrays);
bool cpu_cache_shrink(struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size,
                      struct arrays *spare);
void cpu_cache_free_arrays(struct prudence_cache *cache, struct cpu_cache *cpu);
void *cpu_cache_detach_arrays(struct prudence_cache *cache, struct cpu_cache *cpu, size_t *bytes);
size_t cpu_cache_array_bytes(const struct prudence_cache *cache, unsigned slots);
/* All CPUs' caches: claim those of one or more slab caches, os_percpu_fence_all(), confirm them. */
void cpu_cache_claim_all(struct prudence_cache *cache, const void *token);
void cpu_cache_confirm_all(struct prudence_cache *cache, const void *token);
void cpu_cache_release_all(struct prudence_cache *cache, const void *token);

/* --- object_cache.c: the stack, owned --- */
void *object_cache_pop(struct cpu_cache *cpu);
unsigned object_cache_push(struct cpu_cache *cpu, void **objects, unsigned count);
unsigned object_cache_take(struct cpu_cache *cpu, void **objects, unsigned count);
unsigned object_cache_take_coldest(struct cpu_cache *cpu, void **objects, unsigned count);
unsigned object_cache_flush_count(const struct cpu_cache *cpu);

/* --- refill.c: slabs -> object cache --- */
void *object_cache_refill(struct prudence_cache *cache, unsigned count, bool may_grow,
                          os_alloc_flags flags);
void *object_cache_bypass(struct prudence_cache *cache, os_alloc_flags flags);

/* --- latent_cache.c: the ring, owned --- */
static inline unsigned latent_count(const struct cpu_cache *cpu)
{
    /* The head first: it never passes a tail read after it, so the difference is never negative. */
    uint64_t head = load_acquire(&cpu->line.ring_head);

    return (unsigned)(load_relaxed(&cpu->line.ring_tail) - head);
}
/* What latent_open() found: none under the limit; room for one object or more; the same, but what
 * other rings of the CPU have reserved leaves no more than that. */
enum latent_room { LATENT_NO_ROOM, LATENT_ROOM, LATENT_ROOM_CROWDED };
bool latent_is_open(const struct prudence_cache *cache, const struct cpu_cache *cpu);
enum latent_room latent_open(struct prudence_cache *cache, struct cpu_cache *cpu);
void latent_open_past_limit(struct prudence_cache *cache, struct cpu_cache *cpu);
void latent_take_back(struct prudence_cache *cache, struct cpu_cache *cpu);
bool latent_is_full(const struct prudence_cache *cache, const struct cpu_cache *cpu);
void latent_close(struct prudence_cache *cache, struct cpu_cache *cpu);
bool latent_append(struct prudence_cache *cache, struct cpu_cache *cpu, void *object);
unsigned latent_take_safe(struct prudence_cache *cache, struct cpu_cache *cpu, void **objects,
                          unsigned count);
unsigned latent_take_oldest(struct prudence_cache *cache, struct cpu_cache *cpu, void **objects,
                            unsigned count, gp_cookie *cookie);
unsigned latent_merge(struct prudence_cache *cache, struct cpu_cache *cpu);
bool latent_newest_cookie(const struct cpu_cache *cpu, gp_cookie *cookie);
bool latent_end_at_once(struct prudence_cache *cache, struct cpu_cache *cpu);
bool latent_oldest_is_safe(const struct prudence_cache *cache, struct cpu_cache *cpu);
void latent_set_stop(struct cpu_cache *cpu, unsigned batch);
/* Objects that share a cookie: less in a small ring. */
static inline unsigned batch_of(const struct prudence_cache *cache, const struct cpu_cache *cpu)
{
    return (unsigned)clamp_size(cpu->size / 2, 1, cache->batch);
}
static inline struct batch *batches_of(const struct cpu_cache *cpu)
{
    return (struct batch *)(cpu->line.ring + cpu->slots); /* behind the ring, in the same block */
}

static inline unsigned batch_slots(const struct prudence_cache *cache, unsigned slots)
{
    return (unsigned)round_up_to_power_of_two(max_size(8, 2 * slots / cache->batch));
}

/* --- node.c: slabs of one node --- */
void node_init(struct node *node);
void node_end(struct node *node, size_t slab_bytes);
uint64_t node_free_bytes(void);
unsigned node_take(struct prudence_cache *cache, struct node *node, void **objects, unsigned count);
void node_put(struct prudence_cache *cache, void **objects, unsigned count);
bool node_put_latent(struct slab *slab, void *object, bool past_limit);
void node_flush(struct prudence_cache *cache, void **objects, unsigned count);
void node_overflow(struct prudence_cache *cache, void **objects, unsigned count, gp_cookie cookie);
void node_add_slab(struct node *node, struct slab *slab);
void node_adopt_live(struct node *node, struct slab *slab);
void node_check_live(struct slab *slab, const char *what);
bool node_shrink_some(struct node *node, unsigned keep, size_t wanted, size_t *bytes);
size_t node_shrink(struct node *node, unsigned keep);
/* Slabs whose waiting objects one visit merges, and free slabs it takes out, at most, so that the lock is
 * not held for long. */
#define NODE_SLABS_A_VISIT 64
bool node_tidy(struct prudence_cache *cache, struct node *node);
void node_try_shrink(struct node *node, unsigned keep);
size_t node_shrink_until(struct node *node, unsigned keep, size_t wanted);
/* Which free objects an extension wants to have. */
struct node_filter {
    bool (*may_have)(const struct slab *slab); /* NULL: any slab may */
    uint64_t (*select)(const struct slab *slab, unsigned word,
                       unsigned data); /* of each word of them */
    unsigned data;
};
unsigned node_take_selected(struct node *node, bool any_slab, const struct node_filter *filter,
                            void **objects, unsigned count);
void *node_take_one(struct node *node, const struct node_filter *filter);
void node_add_slab_and_take(struct node *node, struct slab *slab, void **object);
void node_put_selected(struct prudence_cache *cache, void **objects, unsigned count);
void node_hand_over(struct node *node, struct handful *handful);
unsigned node_latent_objects(struct node *node, uint64_t *bytes);

extern uint64_t slab_decay; /* ns; the option decay */

/* --- slab.c: pages and metadata of one slab --- */
struct slab *slab_make(struct prudence_cache *cache, unsigned node, size_t bytes, size_t alignment,
                       bool *zeroed, os_alloc_flags flags);
void slab_unmake(struct slab *slab);
void slab_count(struct prudence_cache *cache);
struct slab *slab_grow(struct prudence_cache *cache, unsigned node, os_alloc_flags flags);
struct slab *slab_make_on(struct prudence_cache *cache, unsigned node, void *page, void *object,
                          uint32_t extensions);

/* --- large.c: slabs of one object --- */
struct slab *slab_make_large(struct prudence_cache *cache, size_t bytes, size_t alignment,
                             bool *zeroed, os_alloc_flags flags);
bool slab_resize_large(struct slab *slab, size_t bytes);
struct slab *slab_make_lone(struct prudence_cache *cache, void *page, void *object,
                            uint32_t extensions);

/* --- latent_account.c: bytes deferred and not merged, under latent_limit --- */
extern uint64_t slab_latent_limit; /* bytes; 0: none */
extern uint64_t slab_growth_limit; /* latent bytes past which growing waits; 0: none */
extern uint64_t latent_overruns;   /* deferrals past the limit */
bool latent_account_start(void);
void latent_account_stop(void);
void latent_limit_set(uint64_t bytes);
bool latent_reserve(unsigned cpu, size_t bytes);
void latent_reserve_past_limit(unsigned cpu, size_t bytes);
void latent_release(unsigned cpu, size_t bytes);
unsigned latent_ahead_share(unsigned cpu, size_t stride, unsigned ahead, unsigned batch);
void latent_ahead_note(unsigned cpu, int64_t change);
void latent_due_note(unsigned cpu, size_t bytes);
uint64_t latent_due(unsigned cpu);
void latent_due_clear(unsigned cpu);
bool latent_fits(size_t bytes, bool idle);
bool latent_never_fits(size_t bytes);
bool latent_holds_growth(void);
uint64_t latent_bytes(void);
uint64_t latent_bytes_roughly(void);
uint64_t latent_bytes_peak(void);
void latent_account_clear(void);
void latent_account_add(unsigned cpu, size_t bytes, size_t ahead);

/* --- budget.c: what the caches of a CPU may hold together, and of all CPUs --- */
struct cpu_budget {
    int64_t used; /* bytes that object caches and rings of all slab caches may hold; atomic */
    /* Of give.c. */
    struct list *hand;       /* the cache that is asked next; slab_caches_lock */
    uint32_t in_vain, pause; /* hints, as the next */
    uint32_t wishes;         /* ever made; the clock by which hits are weighed */
    char pad[CACHE_LINES_APART - 4 * sizeof(uint64_t)];
};
extern struct cpu_budget *slab_budgets;
extern uint64_t slab_cache_per_cpu, slab_cache_total; /* bytes; options */
bool budget_start(void);
void budget_stop(void);
unsigned budget_least(const struct prudence_cache *cache);
int64_t budget_charge(const struct prudence_cache *cache, const struct cpu_cache *cpu,
                      unsigned size);
void budget_ring_begins(const struct prudence_cache *cache, const struct cpu_cache *cpu);
bool budget_allows(const struct prudence_cache *cache, const struct cpu_cache *cpu, unsigned size);
bool budget_allows_start(const struct prudence_cache *cache, const struct cpu_cache *cpu);
bool budget_grow(const struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size);
void budget_shrink(const struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size);

/* --- give.c: caches of a CPU give to those that are used more --- */
void give_start(void);
void give_to(struct prudence_cache *cache, unsigned size);
void give_half(struct prudence_cache *cache);
void give_forget(const struct prudence_cache *cache);

/* --- drain.c: what CPUs have goes to the nodes --- */
size_t cache_empty(struct prudence_cache *cache, bool free_ones, unsigned keep);
size_t cache_shrink(struct prudence_cache *cache);
size_t cache_shrink_slabs(struct prudence_cache *cache, size_t wanted);
size_t cache_shrink_cpus(struct prudence_cache *cache, size_t wanted);
size_t cache_spare_arrays(const struct prudence_cache *cache);
void cache_settle(struct prudence_cache *cache, bool free_ones);
void cache_settle_here(struct prudence_cache *cache);
void slab_retire_cpu(unsigned cpu);
bool drain_quiet_cpus(struct prudence_cache *cache);
bool drain_to_size(struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size);
/* How far drain_unwanted() has come. */
struct drain_place {
    unsigned cpu;
    unsigned spare; /* objects of that CPU that are still to be taken */
    bool looked;    /* at that CPU */
    bool ring;      /* nothing was deferred there */
    uint64_t left;  /* bytes that stay in object caches */
};
bool drain_unwanted(struct prudence_cache *cache, struct drain_place *place, unsigned *moves);

/* --- tidy.c: what nobody has wanted for long --- */
extern bool slab_tidies;
uint64_t tidy_kept(void);
bool tidy_is_worth_it(void);
uint64_t tidy_rounds(void);
void tidy_forget(struct prudence_cache *cache);
void tidy_fork_child(void);
bool tidy_some(unsigned caches, unsigned moves);
void tidy_come_by(void);
void tidy_drive(void);

/* --- spare.c: free slabs are for all caches --- */
void spare_give(unsigned node, size_t bytes);
void spare_forget(const struct prudence_cache *cache);

/* --- wait.c: waits for grace periods, each of which has an end --- */
extern uint64_t slab_wait_max; /* ns */
struct wait_counts {
    uint64_t waits, expiries, pressure_waits;
};
extern struct wait_counts wait_counts;
void latent_drive_all(void);
bool wait_is_allowed(void);
bool wait_is_worth_it(void);
bool wait_has_outlasted(uint64_t began);
bool wait_give_up(uint64_t began);
bool wait_patiently(struct prudence_domain *domain, gp_cookie cookie, uint64_t began);
bool wait_for_domains(uint64_t began);

/* --- throttle.c: garbage under its limit --- */
void latent_take_back_here(void);
bool latent_throttle(struct prudence_cache *cache, os_alloc_flags flags);
struct throttle {   /* of a thread that is held back */
    uint64_t began; /* ns; 0: not yet */
    uint64_t pause; /* ns: its last nap */
    bool has_turn;  /* to look; the others sleep */
    bool slept;     /* while another looked */
    bool looked;    /* at all CPUs; what it closed there is safe by `cookie` */
    gp_cookie cookie;
};
bool latent_make_room(struct prudence_cache *cache, size_t bytes, struct throttle *throttle);
bool latent_wait(struct prudence_cache *cache);
void throttle_fork_child(void);

/* --- pressure.c: memory is short --- */
struct reclaim {
    uint64_t began, pause; /* ns */
    bool go_on;            /* the last wait ended by a grace period */
};
bool pressure_reclaim(struct prudence_cache *cache, os_alloc_flags flags, struct reclaim *reclaim);
void pressure_relieve(void);

/* --- upkeep.c: what threads on a slow path do for all --- */
void pages_decay(void);
void come_by(void);
#define BYPASSES_A_VISIT 16
bool count_bypass(struct prudence_cache *cache);

/* --- handful.c --- */
#define HANDFULS    32
#define HANDFUL_MAX 15
struct handful {
    struct handful *next;
    gp_cookie cookie;
    unsigned count;
    void *objects[HANDFUL_MAX];
};
struct handful *handful_claim(void);
void handful_return(struct handful *handful);

/* --- preflush.c --- */
extern bool preflush_enabled;
bool preflush_start(void);
void preflush_stop(void);
void preflush_schedule(struct prudence_cache *cache, struct cpu_cache *cpu);
unsigned preflush_cpu(struct prudence_cache *cache, unsigned cpu, unsigned handfuls);
bool preflush_work(void);
void preflush_start_helper(void);
void preflush_forget(struct prudence_cache *cache);
void preflush_fork_prepare(void);
void preflush_fork_child(void);
void preflush_fork_done(void);

/* --- start.c, fork.c: process life --- */
bool slab_start(void);
void slab_stop(void);
void slab_fork_prepare(void);
void slab_fork_child(bool whole);
void slab_fork_done(void);

#endif /* SLAB_CACHE_H */
