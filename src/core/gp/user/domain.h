/* SPDX-License-Identifier: MIT */
/*
 * Private to gp/: the structure of a domain, and the functions of domain.c. Each other file that
 * others call has a header of its name.
 *
 * Sequence values count grace periods in steps of GP_STEP, above the nesting bits of a reader's
 * word. They are compared modulo 2^64, and start near the wrap in debug builds.
 *
 * Invariants: completed <= sequence <= completed + a few. A goal at or below `barrier_goal` has had
 * a barrier. `completed` = g means that every section entered before grace period g was started has
 * ended.
 */
#ifndef GP_USER_DOMAIN_H
#define GP_USER_DOMAIN_H

#include <prudence/rcu.h>

#include "base/list.h"
#include "gp/gp_wait.h"
#include "os/os.h"
#include "race_detector.h"

#define GP_STEP      (PRUDENCE_NESTING_MASK + 1)
#define GP_NAME_SIZE 32
#define DOMAIN_LIVE  UINT32_C(0x6c697665)
#define DOMAIN_DEAD  UINT32_C(0x64656164)

#ifdef PRUDENCE_DEBUG
#define GP_FIRST (UINT64_C(0) - 1000 * GP_STEP)
#else
#define GP_FIRST (16 * GP_STEP)
#endif

struct prudence_kick;
struct reader_slot;
struct srcu;
struct domain_set;
struct external;
struct hazard_round;

/* Pushes started grace periods on, up to `goal`, by gp_drive_complete(). Never waits; any number of
 * threads may call at once. */
typedef void (*drive_function)(struct prudence_domain *domain, uint64_t goal);

/*
 * The functions of a kind of domain. A function is NULL if there is nothing to do. Unless said
 * otherwise, a function may take any lock except readers_lock.
 */
struct gp_scheme {
    const char *name;
    drive_function drive; /* NULL if the library drives nothing */
    /* Drives where the program asks, if `drive` is NULL. NULL: grace periods end otherwise. */
    drive_function drive_for_caller;
    /* For an explicit wait: drives what the library does not drive by itself. NULL: nothing. */
    void (*urge)(struct prudence_domain *domain);
    /* The same without a deadline: blocks. NULL: nothing. */
    void (*block)(struct prudence_domain *domain);
    bool (*is_cheap)(const struct prudence_domain *domain);  /* NULL: yes; see gp_cost */
    void (*tell_over)(const struct prudence_domain *domain); /* drive.h, for further domains */
    /* Returns the slot of the reader that holds up the grace period under way. NULL if the kind
     * does not know it. */
    struct reader_slot *(*held_up_by)(const struct prudence_domain *domain);
    /* Both serve gp_try: at_once the CPU that tries again and again, ask any CPU. at_once is NULL
     * if the kind needs more than a check. */
    bool (*at_once)(struct prudence_domain *domain, gp_cookie cookie);
    enum gp_tried (*ask)(struct prudence_domain *domain, gp_cookie cookie);
    /* gp_poll_objects. NULL: batches become safe as a whole. Takes no lock. */
    unsigned (*poll_objects)(struct prudence_domain *domain, gp_cookie cookie, void **objects,
                             unsigned count, size_t size);
    /* For the last answer of gp_poll_objects(), and gp_wait_for_sections(), which uses it. */
    bool (*only_names_hold)(const struct prudence_domain *domain, gp_cookie cookie);
    bool (*is_busy)(const struct prudence_domain *domain); /* readers inside; under readers_lock */
    /* Cleans up after the thread of `slot`, which ended inside a section. Called by any thread. */
    void (*abandon)(struct prudence_domain *domain, const struct reader_slot *slot);
    /* Enter and leave a section of this thread. NULL: the word of its slot counts sections. */
    void (*enter)(struct prudence_domain *domain);
    void (*leave)(struct prudence_domain *domain, const struct reader_slot *slot);
    /* Returns whether this thread is inside. NULL: the word of its slot says. */
    bool (*is_inside)(const struct prudence_domain *domain);
    /* Returns whether a name of this thread holds up grace periods. NULL: readers have no names. */
    bool (*thread_names)(void);
    /* Of a set: points *members at the domains in it, and returns their number. NULL: no set. */
    unsigned (*members)(const struct prudence_domain *domain,
                        struct prudence_domain *const **members);
    void (*note_expired)(struct prudence_domain *domain); /* NULL: use the readers' slots */
    bool (*worth_waiting)(struct prudence_domain *domain);
    bool (*open)(struct prudence_domain *domain);  /* allocates the kind's own memory */
    void (*close)(struct prudence_domain *domain); /* frees that memory, after unlisting */
    void (*fork_prepare)(struct prudence_domain *domain);
    void (*fork_parent)(struct prudence_domain *domain);
    /* After all domains' slots were forgotten, and who uses the domains. */
    void (*fork_child)(struct prudence_domain *domain);
};

extern const struct gp_scheme gp_memb, gp_memb_by_callers, gp_manual;

/* Schemes by kind, defined by the embedding program (whole/domains.c). NULL: the program has no
 * domains of that kind. */
extern const struct gp_scheme *const gp_schemes[];
extern const unsigned gp_schemes_count;

/* The work of a part other than the schemes for threads and processes. Functions may be NULL. */
struct gp_part {
    void (*follow_options)(void);   /* at the start, and when options were set */
    void (*thread_ends)(bool last); /* in each round of the thread's destructors */
    void (*fork_prepare)(void);
    void (*fork_done)(void);
    void (*fork_child)(bool whole);
    /* Returns whether this thread is inside `only`, or inside any domain if that is NULL, as far as
     * only a foreign function knows. No lock is held. */
    bool (*is_inside)(const struct prudence_domain *only);
};
extern const struct gp_part *const gp_parts[]; /* ends with NULL; defined as the schemes */

/* A thread's slot in one domain. Type-stable: slots are reused, never unmapped. */
struct reader_slot {
    struct prudence_reader reader; /* first: the inline read side points here */
    struct reader_chunk *chunk;    /* the chunk that contains this slot; constant */
    int32_t thread;   /* the owner's kernel thread id; 0: free; claimed by compare-and-swap */
    uint16_t watched; /* whether the thread's end will be noticed; atomic, as the next */
    uint16_t lasting; /* the section outlives its thread (prudence_epoch_outlive) */
    union {
        uint64_t claimed_at; /* boot time, ns; distinguishes threads of one id; the thread's */
        struct reader_chunk *put_away; /* slots.c; while the slot's chunk is free */
    };
    uint64_t entries_seen;   /* value of reader.entries at the last choice of mode */
    uint64_t stall_word;     /* the blocking word at stall_since; drivers */
    uint64_t stall_since;    /* ns */
    uint64_t stall_reported; /* the word that was reported last */
    int32_t index;           /* srcu: the counter of the open section; own thread only */
    /* Atomic, as the next two, which notify the thread that it is blocking (kick.c). */
    uint32_t kicking;                 /* threads that are calling, or are about to */
    const struct prudence_kick *kick; /* the program's; NULL: none */
    uint64_t kicked;                  /* the section that it was notified of */
    uint64_t stall_looked;            /* ns; when a driver last found the section blocking */
};
_Static_assert(sizeof(struct reader_slot) == 128,
               "two cache lines: no false sharing of prefetches");

/* Larger than blocks for which metadata takes a lock, so a signal handler may make a chunk. */
#define SLOTS_IN_CHUNK 127

/* Two bits a slot say which slots scans read (parking.c); atomic read-modify-writes. */
#define SLOT_AWAKE    1u
#define SLOT_TOUCHED  2u
#define SLOTS_IN_WORD 32
#define SLOTS_AWAKE   UINT64_C(0x5555555555555555)
#define AWAKE_WORDS   ((SLOTS_IN_CHUNK + SLOTS_IN_WORD - 1) / SLOTS_IN_WORD)

struct reader_chunk {
    struct reader_chunk *next; /* older chunk of the same domain, or next free one */
    uint64_t used;             /* leading slots that were ever claimed; atomic, only grows */
    uint64_t awake[AWAKE_WORDS];
    unsigned put_away; /* while the chunk is free: number of its slots with a chunk (slots.c) */
    struct reader_slot slots[SLOTS_IN_CHUNK] __attribute__((aligned(CACHE_LINE)));
};

/* How the thread of the blocking reader state_seen at a waiter's last check; hints, atomic. */
struct reader_state {
    /* ns; by compare-and-swap: one thread checks and the others use the answer */
    uint64_t looked_at;
    const struct reader_slot *reader;
    uint64_t section;
    uint64_t had;       /* the thread's CPU time at that check, ns */
    uint64_t had_last;  /* the same at the newest check */
    uint32_t lacks_cpu; /* the thread wants a CPU and has had hardly any since */
    uint32_t state;     /* enum gp_reader_state */
};

/* Each domain has a queue of callbacks, kept by a layer above that the embedding program names
 * (whole/domains.c). */
struct domain_queue {
    struct callback_queue *(*make)(struct prudence_domain *domain); /* NULL: no memory */
    bool (*waits)(const struct callback_queue *queue);         /* a callback is queued or runs */
    void (*release)(struct callback_queue *queue);             /* the queue is empty */
    void (*keep)(struct callback_queue *queue, void *context); /* where tools see the pointer */
    uint64_t (*bytes)(const struct callback_queue *queue);     /* for which its callbacks count */
};
extern const struct domain_queue domain_queue; /* in a program without callbacks all are NULL */

/* What that layer counts, for statistics; atomic. */
extern struct call_counts {
    uint64_t waits, expiries, overruns;
} call_counts;

/* A domain's statistics; atomic adds. A new one is a row here, a member at the end of struct
 * prudence_domain_stats, and the line that counts. */
#define DOMAIN_COUNTERS(COUNTER)                                                                   \
    COUNTER(grace_periods, "Grace periods that have ended.")                                       \
    COUNTER(scans, "Looks at all readers.")                                                        \
    COUNTER(membarriers, "Barriers on all CPUs.")                                                  \
    COUNTER(mode_switches, "Changes between fenced and fence-free readers.")                       \
    COUNTER(stalls, "Readers that were reported for staying longer than stall_timeout.")
#define DOMAIN_COUNTER(name, meaning) uint64_t name;

/* Laid out by cache lines, not by size. NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct prudence_domain {
    struct gp_progress progress __attribute__((aligned(CACHE_LINE)));
    uint64_t barrier_goal; /* grows by compare-and-swap, release, after the goal's barrier */
    /* The CPU that may end grace periods at once (gp_try), plus one; atomic, a hint. */
    uint32_t tried_on;

    /* Read by inline readers, which find this part here (prudence_domain_shared_of). */
    struct prudence_domain_shared shared __attribute__((aligned(CACHE_LINE)));
    const struct gp_scheme *scheme;
    union {
        struct srcu *srcu;
        struct domain_set *set;
        struct external *external;
        struct hazard_round *hazard;
    };
    /* Drivers skip the membarrier. Set after the membarrier that makes every reader see
     * shared.fenced. */
    uint32_t readers_fence_themselves;
    enum prudence_domain_kind kind;
    bool phases;                      /* see phases.c: no thread waits for the grace periods */
    bool is_default;                  /* readers find their slots by reader_self */
    struct reader_chunk *chunks;      /* pushed by compare-and-swap; read by drivers */
    struct callback_queue *callbacks; /* constant (domain_queue) */

    uint64_t scan_began __attribute__((aligned(CACHE_LINE))); /* ns; a hint; phases: last check */
    DOMAIN_COUNTERS(DOMAIN_COUNTER)
    uint64_t at_once;      /* those of grace_periods that gp_try ended; a hint */
    uint64_t entries_then; /* other threads' entries when gp_try checked last; a hint */

    /* Reads slots that were outside, since readers were last parked; a hint. */
    uint64_t looked_in_vain;
    uint64_t park_after; /* the number of such checks that is worth parking; a hint */

    /* the reader furthest behind in the last scan; atomic, a hint */
    struct reader_slot *furthest_behind __attribute__((aligned(CACHE_LINES_APART)));

    /* Parking of readers (parking.c). */
    uint32_t parking; /* taken by compare-and-swap; the holder owns the next line */
    unsigned left_awake, parked, park_rarely;

    /* Asking readers to fence (at_once.c), by `parking`'s holder; others read the first two. */
    uint64_t asked_goal;          /* atomic; nothing is asked for unless above `completed` */
    uint64_t asked_at;            /* ns; atomic */
    struct reader_slot *asked_by; /* the asking thread's slot, or NULL */
    bool asked;                   /* readers were marked for asked_goal */
    /* 1: readers have not answered; plus one for each membarrier since; atomic */
    unsigned unanswered;
    uint64_t parked_ever; /* statistics; one driver writes at a time, tests read any time */

    /* The choice of mode (mode.c), by the holder of `choosing`. */
    uint32_t choosing;           /* by compare-and-swap */
    uint64_t chosen_at;          /* ns */
    uint64_t not_fenced_before;  /* ns; set when the readers' fences were found too expensive */
    uint64_t grace_periods_then; /* number of grace periods at chosen_at */
    uint64_t membarrier_cost;    /* ns, running mean */

    /* The reader that outlasted an implicit wait, and its word then (gp_worth_waiting). */
    struct reader_slot *expired_reader;
    uint64_t expired_word;
    /* No slot stands for the reader; expired while expired_word is the last completed value. */
    uint32_t expired_manually;

    struct reader_state outstays, in_the_way,
        held_back; /* the state of the reader's thread (reader_state.c) */

    /* When a driver last asked whether the thread of a blocking reader still exists, and when one
     * last opened a file to see whether that is the same thread (slots_reap_one). ns; by
     * compare-and-swap, so that only one driver does so. */
    uint64_t gone_asked_at, gone_looked_at;

    unsigned reap_from;   /* the slot where slots_reap() continues; a hint */
    unsigned reap_all_at; /* the number of slots from which all are read; a hint */
    uint32_t users;       /* caches and sets that name this domain; atomic */
    uint32_t visitors;    /* threads that read the domain for a while; destruction waits; atomic */
    unsigned index;       /* in every thread's table of slots; guarded by the readers' lock */
    uint64_t generation;  /* unique among all domains ever made; grows along the list */
    uint32_t life;        /* DOMAIN_LIVE or DOMAIN_DEAD */
    struct list link;     /* in the list of domains; guarded by the readers' lock */
    char name[GP_NAME_SIZE];
};

_Static_assert(offsetof(struct prudence_domain, shared) == PRUDENCE_DOMAIN_SHARED_OFFSET,
               "inline readers look there");

extern struct prudence_domain prudence_default;

static inline bool sequence_before(uint64_t a, uint64_t b)
{
    return (int64_t)(a - b) < 0;
}

/*
 * The files of this folder, from the bottom to the top. Each uses only those before.
 *
 *   reader_exit.c     notices the end of a thread
 *   parking.c         takes readers that stay outside out of the scans
 *   kick.c            notifies a thread that it is blocking
 *   slots.c           slots of readers
 *   thread_memory.c   memory of threads that may end unnoticed
 *   readers.c         finds this thread's slot
 *   mode.c            fence-free or fenced readers
 *   stall.c           readers that stay too long
 *   drive.c           grace periods of any scheme; knows schemes by struct gp_scheme alone
 *   reader_state.c    the state of the thread of the blocking reader
 *   scan.c, at_once.c, memb.c   the scheme of memb and qsbr
 *   domain.c          the default domain, which has that scheme, and the list of all others
 *   overrun.c         garbage past the limit
 *   manual.c          the scheme of tests (others: toolkit/domains)
 *   read_side.c       the read side out of line
 *   may_wait.c        whether a thread would wait for itself
 *   wait_request.c    refuses such a wait, with a report
 *   poll.c            grace periods, for programs
 *   domain_life.c     makes and destroys domains
 *   process_life.c    start, options, fork, end
 */

/* domain.c */

/* Under check=1, stops the process and names the caller's place if `domain` is no live domain. */
void gp_domain_check(const struct prudence_domain *domain, const char *what, const void *caller);

/*
 * Catches use of a domain after destruction, or of a pointer that never was a domain. Under check=1
 * (and in debug builds) the functions that check report the place and stop the process. Destroyed
 * domains are then kept for a while, so that they can be recognized.
 */
extern HIDDEN bool gp_check;
void domain_check_slow(const struct prudence_domain *domain, const char *what, const void *caller);
#define DOMAIN_CHECK(domain)                                                                       \
    (unlikely(load_relaxed(&gp_check))                                                             \
         ? domain_check_slow((domain), __func__, __builtin_return_address(0))                      \
         : (void)0)

/* Of a set: its members. Of another domain: none. */
unsigned domain_members(const struct prudence_domain *domain,
                        struct prudence_domain *const **members);
bool domain_has(const struct prudence_domain *set, const struct prudence_domain *member);
/* Of a set: asks its members, until one is. Of another domain: asks that. */
bool domain_any(const struct prudence_domain *domain,
                bool (*is)(const struct prudence_domain *domain));

bool gp_is_first_from(
    const void *place); /* whether no misuse was reported for this calling place yet */
void domain_unmake(struct prudence_domain *domain); /* before publication */
struct prudence_domain *domain_make(const char *name, enum prudence_domain_kind kind,
                                    const struct gp_scheme *scheme);
void domain_publish(struct prudence_domain *domain);
void domain_unlist(struct prudence_domain *domain);
void domain_bury(struct prudence_domain *domain); /* already off the list; under readers_lock */
unsigned domains_visit(struct prudence_domain **domains, unsigned count, uint64_t *after,
                       bool named);
/* Begins a visit, which gp_domain_leave() ends. The domain must not be able to end during this
 * call. */
void domain_visit(struct prudence_domain *domain);
void domain_visits_fork_child(void); /* keeps the forking thread's visits */

#endif /* GP_USER_DOMAIN_H */
