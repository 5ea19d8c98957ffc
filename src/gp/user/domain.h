/* SPDX-License-Identifier: MIT */
/*
 * Private to gp/: the structure of a domain.
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
#include "gp/gp.h"
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

struct reader_slot;
struct srcu;
struct domain_set;
struct external;

/*
 * The functions of a kind of domain. A function is NULL if there is nothing to do. Unless said
 * otherwise, a function may take any lock except readers_lock.
 */
struct gp_scheme {
    const char *name;
    /* Pushes started grace periods on, up to `goal`, by gp_complete(). Never waits; any number of
     * threads may call at once. NULL if grace periods end by themselves. */
    void (*drive)(struct prudence_domain *domain, uint64_t goal);
    /* Blocks for a thread that waits without a deadline. NULL if there is nothing to block on. */
    void (*block)(struct prudence_domain *domain);
    bool (*is_cheap)(const struct prudence_domain *domain);  /* NULL: yes; see gp_is_cheap */
    void (*tell_over)(const struct prudence_domain *domain); /* gp_tell_over for further domains */
    /* Returns the slot of the reader that holds up the grace period under way. NULL if the kind
     * cannot tell. */
    struct reader_slot *(*held_up_by)(const struct prudence_domain *domain);
    /* Both serve gp_try: at_once the CPU that tries again and again, ask any CPU. at_once is NULL
     * if the kind needs more than a look. */
    bool (*at_once)(struct prudence_domain *domain, gp_cookie cookie);
    enum gp_tried (*ask)(struct prudence_domain *domain, gp_cookie cookie);
    bool (*is_busy)(const struct prudence_domain *domain); /* readers inside; under readers_lock */
    /* Cleans up after the thread of `slot`, which ended inside a section. Called by any thread. */
    void (*abandon)(struct prudence_domain *domain, const struct reader_slot *slot);
    void (*note_expired)(struct prudence_domain *domain); /* NULL: use the readers' slots */
    bool (*worth_waiting)(struct prudence_domain *domain);
    bool (*open)(struct prudence_domain *domain);  /* allocates the kind's own memory */
    void (*close)(struct prudence_domain *domain); /* frees that memory, after unlisting */
    void (*fork_prepare)(struct prudence_domain *domain);
    void (*fork_parent)(struct prudence_domain *domain);
    void (*fork_child)(struct prudence_domain *domain); /* after slots were forgotten */
};

extern const struct gp_scheme gp_memb, gp_manual, gp_srcu, gp_set, gp_external;

enum reader_mode { READER_MODE_AUTO, READER_MODE_FENCED, READER_MODE_FREE };

/* A thread's slot in one domain. Type-stable: slots are reused, never unmapped. */
struct reader_slot {
    struct prudence_reader reader; /* first: the inline read side points here */
    struct reader_chunk *chunk;    /* the chunk that contains this slot; constant */
    int32_t thread;        /* the owner's kernel thread id; 0: free; claimed by compare-and-swap */
    uint32_t watched;      /* whether the thread's end will be told; atomic, as the next */
    uint64_t claimed_at;   /* boot time, ns; tells apart threads of one id */
    uint64_t entries_seen; /* value of reader.entries at the last choice of mode */
    uint64_t stall_word;   /* the word in the way at stall_since; drivers */
    uint64_t stall_since;  /* ns */
    uint64_t stall_reported; /* the word that was reported last */
    int32_t index;           /* srcu: the counter of the open section; own thread only */
    char pad[128 - 40 - 8 - 8 - 8 - 32 - 4];
};
_Static_assert(sizeof(struct reader_slot) == 128,
               "two cache lines: no false sharing of prefetches");

/* Larger than blocks for which metadata takes a lock, so a signal handler may make a chunk. */
#define SLOTS_IN_CHUNK 127

/* Two bits a slot say which slots scans look at (parking.c); atomic read-modify-writes. */
#define SLOT_AWAKE    1u
#define SLOT_TOUCHED  2u
#define SLOTS_IN_WORD 32
#define SLOTS_AWAKE   UINT64_C(0x5555555555555555)
#define AWAKE_WORDS   ((SLOTS_IN_CHUNK + SLOTS_IN_WORD - 1) / SLOTS_IN_WORD)

struct reader_chunk {
    struct reader_chunk *next; /* older chunk of the same domain, or next free one */
    uint64_t used;             /* leading slots that were ever claimed; atomic, only grows */
    uint64_t awake[AWAKE_WORDS];
    struct reader_slot slots[SLOTS_IN_CHUNK] __attribute__((aligned(CACHE_LINE)));
};

/* How the thread of the reader in the way fared at a waiter's last look; hints, atomic. */
struct reader_fares {
    /* ns; by compare-and-swap: one thread looks and the others use the answer */
    uint64_t looked_at;
    const struct reader_slot *reader;
    uint64_t section;
    uint64_t had;       /* the thread's CPU time at that look, ns */
    uint32_t lacks_cpu; /* the thread wants a CPU and has had hardly any since */
};

/* Each domain has a queue of callbacks, kept by a layer above that the embedding program names
 * (runtime/domains.c). */
struct domain_queue {
    struct callback_queue *(*make)(struct prudence_domain *domain); /* NULL: no memory */
    bool (*waits)(const struct callback_queue *queue);         /* a callback is queued or runs */
    void (*release)(struct callback_queue *queue);             /* the queue is empty */
    void (*keep)(struct callback_queue *queue, void *context); /* where tools see the pointer */
};
extern const struct domain_queue domain_queue;

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
    };
    /* Drivers skip the membarrier. Set after the membarrier that makes every reader see
     * shared.fenced. */
    uint32_t readers_fence_themselves;
    enum prudence_domain_kind kind;
    bool phases;                      /* see phases.c: no thread waits for the grace periods */
    bool is_default;                  /* readers find their slots by reader_self */
    struct reader_chunk *chunks;      /* pushed by compare-and-swap; read by drivers */
    struct callback_queue *callbacks; /* constant (domain_queue) */

    uint64_t scan_began __attribute__((aligned(CACHE_LINE))); /* ns; a hint; phases: last look */
    uint64_t scans, membarriers, grace_periods, mode_switches, stalls; /* statistics, atomic adds */
    uint64_t at_once;      /* those of grace_periods that gp_try ended; a hint */
    uint64_t entries_then; /* other threads' entries when gp_try looked last; a hint */

    /* Looks at slots that were outside, since readers were last parked; a hint. */
    uint64_t looked_in_vain;
    uint64_t park_after; /* the number of such looks that is worth parking; a hint */

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

    struct reader_fares outstays, in_the_way; /* how the reader's thread fares (outstay.c) */

    /* When a driver last asked whether the thread of a reader in the way still exists, and when one
     * last opened a file to see whether that is the same thread (readers_reap_slot). ns; by
     * compare-and-swap, so that only one driver does so. */
    uint64_t gone_asked_at, gone_looked_at;

    unsigned reap_from;   /* the slot where readers_reap() continues; a hint */
    unsigned reap_all_at; /* the number of slots from which all are looked at; a hint */
    uint32_t users;       /* caches and sets that name this domain; atomic */
    uint32_t visitors; /* threads that look at the domain for a while; destruction waits; atomic */
    unsigned index;    /* in every thread's table of slots; guarded by the readers' lock */
    uint64_t generation; /* unique among all domains ever made; grows along the list */
    uint32_t life;       /* DOMAIN_LIVE or DOMAIN_DEAD */
    struct list link;    /* in the list of domains; guarded by the readers' lock */
    char name[GP_NAME_SIZE];
};

_Static_assert(offsetof(struct prudence_domain, shared) == PRUDENCE_DOMAIN_SHARED_OFFSET,
               "inline readers look there");

extern struct prudence_domain prudence_default;

/* Options, set through runtime/options.c. */
extern enum reader_mode gp_reader_mode;
extern uint64_t gp_stall_timeout; /* ns; 0: never report */
/* report with the reader's trace, once gp_stall_trace_prime() was called */
extern bool gp_stall_trace;

static inline bool sequence_before(uint64_t a, uint64_t b)
{
    return (int64_t)(a - b) < 0;
}

/*
 * The files of this folder, from the bottom to the top. Each uses only those before, and includes
 * this header.
 *
 *   reader_exit.c     notices the end of a thread
 *   parking.c         takes readers that stay outside out of the scans
 *   slots.c           slots of readers
 *   thread_memory.c   memory of threads that may end unnoticed
 *   readers.c         finds this thread's slot
 *   mode.c            fence-free or fenced readers
 *   stall.c           readers that stay too long
 *   drive.c           grace periods of any scheme; knows schemes by struct gp_scheme alone
 *   outstay.c         how the thread of the reader in the way fares
 *   scan.c, at_once.c, memb.c   the scheme of memb and qsbr
 *   domain.c          the default domain, which has that scheme, and the list of all others
 *   overrun.c         garbage past the limit
 *   manual.c, phases.c, srcu.c, set.c, external.c   the other schemes
 *   read_side.c       the read side out of line
 *   may_wait.c        whether a thread would wait for itself
 *   poll.c            grace periods, for programs
 *   domain_life.c     makes and destroys domains; the table of all schemes
 *   process_life.c    start, options, fork, end
 */

/* reader_exit.c */
void reader_exit_start(
    void (*ends)(void)); /* called by each thread that ends, in each round of destructors */
bool reader_exit_watch(void);
bool reader_is_gone(int32_t thread, uint64_t claimed_at, bool thoroughly);
extern unsigned reader_keys_without_memory;
extern HIDDEN __thread bool reader_unwatched __attribute__((tls_model("initial-exec")));

/* Called where no signal handler comes, so this may allocate. */
static inline void reader_exit_watch_late(void)
{
    if (unlikely(reader_unwatched))
        reader_exit_watch_slow();
}

/* parking.c: a scan looks only at awake slots. All other readers are outside, or their threads wake
 * the slots, and fence, before they read anything. */
void readers_park(struct prudence_domain *domain, unsigned outside);
void readers_membarrier(struct prudence_domain *domain);
unsigned readers_awake(const struct prudence_domain *domain);
void readers_ask(struct prudence_domain *domain, const struct reader_slot *but);
bool readers_have_answered(const struct prudence_domain *domain, const struct reader_slot *but);
void readers_follow_mode(struct prudence_domain *domain, bool fenced);
void reader_park_first(struct reader_slot *slot);
void reader_fork_child(struct reader_slot *slot);
void reader_wake(struct prudence_domain *domain, struct reader_slot *slot);

/* Called after the word was published, nested or not. */
static inline void reader_mind_parking(struct prudence_domain *domain, struct reader_slot *slot)
{
    compiler_barrier();
    if (unlikely(load_acquire(&slot->reader.attention) < 0))
        reader_wake(domain, slot);
}

struct awake_walk {
    struct reader_chunk *chunk;
    unsigned next_word; /* index in the chunk */
    uint64_t bits;      /* not yet visited bits of the word before */
};

/* Acquire: a thread that cleared a bit saw the slot's sections end; a thread that set a bit has
 * published the word. */
static inline struct reader_slot *awake_next(struct awake_walk *walk)
{
    unsigned bit;

    while (!walk->bits) {
        if (walk->next_word == AWAKE_WORDS) {
            walk->chunk = walk->chunk->next;
            walk->next_word = 0;
        }
        if (!walk->chunk)
            return NULL;
        walk->bits = load_acquire(&walk->chunk->awake[walk->next_word++]) & SLOTS_AWAKE;
    }
    bit = (unsigned)__builtin_ctzll(walk->bits);
    walk->bits &= walk->bits - 1;
    return &walk->chunk->slots[(walk->next_word - 1) * SLOTS_IN_WORD + bit / 2];
}

/* Only for readers of memb and qsbr domains. */
#define for_each_awake(walk, slot, domain)                                                         \
    for (struct awake_walk walk = {.chunk = load_acquire(&(domain)->chunks)};                      \
         ((slot) = awake_next(&(walk)));)

/* slots.c */
extern struct os_lock readers_lock;
struct reader_slot *slot_claim(struct prudence_domain *domain); /* NULL: no memory */
void slot_release(struct prudence_domain *domain, struct reader_slot *slot, int thread);
void slot_forget(struct reader_slot *slot);
bool readers_any_inside(const struct prudence_domain *domain);
bool readers_reap_slot(struct prudence_domain *domain, struct reader_slot *slot, uint64_t now,
                       uint64_t stayed);
#define READERS_A_FEW 64
#define READERS_ALL   UINT32_MAX
unsigned readers_reap(struct prudence_domain *domain, bool thoroughly, unsigned at_most);
void readers_release_chunks(struct prudence_domain *domain); /* under readers_lock */

/* Visits each slot in use, newest chunk first; `slot` is evaluated only while in use. Slots at or
 * past `used` were never claimed, or just now: a registering thread raises `used` before the fence
 * (readers.c). */
#define for_each_slot(chunk, slot, domain)                                                         \
    for ((chunk) = load_acquire(&(domain)->chunks); (chunk); (chunk) = (chunk)->next)              \
        for ((slot) = (chunk)->slots; (slot) < (chunk)->slots + load_acquire(&(chunk)->used);      \
             (slot)++)                                                                             \
            if (load_acquire(&(slot)->thread))

/* thread_memory.c */

/* Heads a block of metadata of one thread, which may end without telling. The thread calls
 * thread_memory_note() when the block is made, and thread_memory_release(). The block of a thread
 * that ended unnoticed is freed later, at the latest when there are twice as many blocks. */
struct thread_memory {
    struct thread_memory *next;
    size_t bytes;
    uint64_t claimed_at; /* boot time, ns */
    int32_t thread;      /* 0: released; atomic */
    int32_t process;     /* differs in a process forked without handlers */
    bool listed;
};
void thread_memory_note(struct thread_memory *memory, size_t bytes);
void thread_memory_release(struct thread_memory *memory);
void thread_memory_list(struct thread_memory *memory); /* the thread's end may go unnoticed */
void thread_memory_reap(void);
void thread_memory_fork_child(struct thread_memory *memory);

/* readers.c */

/* This copy's own thread-local pointers. The exported names, which inline readers use, may belong
 * to another copy of the library (readers_are_superseded, ADR 26). */
extern __thread struct prudence_reader *reader_self __attribute__((tls_model("initial-exec")));
extern __thread struct prudence_reader *reader_qsbr_self __attribute__((tls_model("initial-exec")));
extern __thread struct prudence_reader *reader_lasting_self
    __attribute__((tls_model("initial-exec")));
bool readers_are_superseded(void);
/* Makes `domain` live as long as the process, as the default one does. At most one domain, before
 * any thread knows the domain. Its readers find their words by a pointer of their own,
 * reader_lasting_self. */
void gp_make_lasting(const struct prudence_domain *domain);
bool gp_is_lasting(const struct prudence_domain *domain); /* also true for the default domain */
struct reader_slot *
readers_slot(struct prudence_domain *domain); /* this thread's; NULL: no memory */
struct reader_slot *readers_slot_if_any(const struct prudence_domain *domain);
struct reader_slot *readers_slot_or_panic(struct prudence_domain *domain);
/* of this thread; without one, only the default domain can have a slot of the thread */
bool readers_has_table(void);
void readers_thread_ends(void);
bool readers_left_inside(void); /* a thread may have ended inside since the last call */
void readers_fork_child(void);
/* Frees, in the child of a fork, the slots of threads that only the parent has. */
void readers_forget_others(struct prudence_domain *domain);
extern struct list readers_domains; /* all except the default one; guarded by readers_lock */

/* mode.c */
void mode_start(struct prudence_domain *domain);
void mode_choose(struct prudence_domain *domain);
void mode_follow_options(struct prudence_domain *domain);

/* stall.c */
#define STALL_TRACE_PATIENCE_NS 20000000 /* for a reader's trace: the asking thread may allocate */
void stall_note(struct prudence_domain *domain, struct reader_slot *slot, uint64_t word);
/* ns; when the section was first found in the way */
uint64_t stall_since(const struct reader_slot *slot);
void stall_fork_prepare(void);
void stall_fork_done(void);

/* drive.c */
/* like prudence_tell_section_ends */
void gp_tell_section_ends(const struct prudence_domain *domain);
struct reader_slot *gp_held_up_by(const struct prudence_domain *domain);
uint64_t gp_raise(uint64_t *value, uint64_t to); /* returns the difference; 0 if already there */
void gp_complete(struct prudence_domain *domain, uint64_t upto);

/* outstay.c: returns whether a reader in the way wants a CPU and has had none for a while. Makes
 * some system calls at times. */
bool gp_reader_lacks_cpu(struct prudence_domain *domain);

/* scan.c: memb_scan() returns the least of the goal and all readers' sequences, and stores the
 * number of readers found outside. The caller has made the goal's barrier. memb_look() also
 * completes the result, and notes no stalls. */
uint64_t memb_scan(struct prudence_domain *domain, uint64_t goal, unsigned *outside);
void memb_look(struct prudence_domain *domain, uint64_t goal);

/* at_once.c */
bool memb_at_once(struct prudence_domain *domain, gp_cookie cookie);
enum gp_tried memb_ask(struct prudence_domain *domain, gp_cookie cookie);

/* domain.c */

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

bool gp_is_first_from(
    const void *place); /* whether no misuse was reported for this calling place yet */
void domain_unmake(struct prudence_domain *domain); /* before publication */
struct prudence_domain *domain_make(const char *name, enum prudence_domain_kind kind,
                                    const struct gp_scheme *scheme);
void domain_publish(struct prudence_domain *domain);
void domain_bury(struct prudence_domain *domain); /* already off the list; under readers_lock */
unsigned domains_visit(struct prudence_domain **domains, unsigned count, uint64_t *after,
                       bool named);
/* Begins a visit, which gp_domain_leave() ends. The domain must not be able to end during this
 * call. */
void domain_visit(struct prudence_domain *domain);
void domain_visits_fork_child(void); /* keeps the forking thread's visits */

/* srcu.c: the second half of an entry, for tests */
void srcu_enter_at(struct prudence_domain *domain, int index);

/* set.c */
bool set_has(const struct prudence_domain *set, const struct prudence_domain *domain);
bool set_any(const struct prudence_domain *set, bool (*is)(const struct prudence_domain *member));
unsigned set_members(const struct prudence_domain *domain, struct prudence_domain *const **members);
void set_hold_members(struct prudence_domain *domain); /* no effect unless a set */

/* external.c */
bool external_reader_is_here(const struct prudence_domain *domain); /* this thread is a reader */
bool external_is_inside(const struct prudence_domain *only); /* inside `only`; NULL: inside any */
void external_start_in_child(void);                          /* without any lock held */

/* may_wait.c, for waits that a caller asks for: takes the thread offline in the qsbr domain itself
 * or in members, and returns where the thread was online. */
uint64_t gp_leave_to_wait(struct prudence_domain *domain);
void gp_return_from_wait(struct prudence_domain *domain, uint64_t was_online);

/* process_life.c (runtime/process.c, runtime/fork.c); the trace: stall.c */
void gp_start(void);
void gp_follow_options(void);
void gp_process_ends(void);
void gp_stall_trace_prime(void); /* may allocate */
void gp_fork_prepare(void);
void gp_fork_child(bool whole); /* forgets the state of threads that the child does not have */
void gp_fork_done(void);

#endif /* GP_USER_DOMAIN_H */
