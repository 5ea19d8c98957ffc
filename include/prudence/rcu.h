/* SPDX-License-Identifier: MIT */
/*
 * Read-copy-update: the read side and grace periods, in the kernel's terms.
 *
 * Readers bracket their use of shared objects with prudence_read_lock/unlock. A grace period is any
 * span of time in which every reader that was inside such a section at its start has left it. A
 * cookie (prudence_gp_t) says which grace period to wait for.
 *
 * The protocol and the argument for it are in docs/design.md, "Grace periods"; the state below is
 * public only so that the read side can be inlined. Do not touch it.
 */
#ifndef PRUDENCE_RCU_H
#define PRUDENCE_RCU_H

#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which grace period. Copy it by value; compare with prudence_gp_same_state only. */
typedef struct {
    uint64_t private_value;
} prudence_gp_t;

/* ---------------------------------------------------- what the inline read side needs (private) */

/*
 * A thread's word in a domain: the sequence it read at entry in the upper 54 bits and its nesting
 * depth in the lower 10; 0 outside. Both live in one word written by one store, or a signal
 * handler that reads would find a moment in which it protects nothing.
 */
struct prudence_reader {
    uint64_t word;    /* written by its thread; read by whoever drives a grace period */
    uint64_t entries; /* fenced entries, for the choice of mode; written by its thread */
};

struct prudence_domain_shared {
    uint64_t sequence; /* grace periods started, << 10 */
    uint32_t fenced;   /* readers fence after publishing their word */
};

#define PRUDENCE_NESTING_BITS 10
#define PRUDENCE_NESTING_MASK ((UINT64_C(1) << PRUDENCE_NESTING_BITS) - 1)

#ifndef PRUDENCE_THREAD_LOCAL
#define PRUDENCE_THREAD_LOCAL __thread
#endif

PRUDENCE_API extern struct prudence_domain_shared prudence_default_shared;
PRUDENCE_API extern PRUDENCE_THREAD_LOCAL struct prudence_reader *prudence_reader_self
    __attribute__((tls_model("initial-exec")));
PRUDENCE_API void prudence_read_lock_first(void); /* registers the thread, and enters */
PRUDENCE_API void prudence_read_lock_too_deep(void) __attribute__((noreturn, cold));
PRUDENCE_API void prudence_read_unlock_unbalanced(void) __attribute__((noreturn, cold));

/* A full fence; a locked instruction costs a fraction of mfence. */
static inline void prudence_full_fence(void)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    __asm__ __volatile__("lock; addq $0, -8(%%rsp)" ::: "memory", "cc");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* ------------------------------------------------------------------------ the default domain */

/*
 * Enters a read-side critical section of the default domain. Sections nest, up to 1,023 deep. Any
 * thread may enter; its first entry registers it. Never blocks, never waits. Async-signal-safe.
 * Cost, with the unlock: about
 * 1 ns; 1.9 ns while the domain's readers are fenced.
 *
 * Order: the word is published before anything inside the section is read. Fence-free, that is
 * made true by the membarrier of whoever drives a grace period; fenced, by the fence here. The
 * mode is tested after publishing (a reader that tested it before could be missed by a driver
 * that switches). Both are read with acquire, which costs nothing on x86: a reader that sees a new
 * sequence must see what was unlinked before that grace period started, and one that stops fencing
 * what was unlinked before drivers stopped counting on its fence.
 */
static inline void prudence_read_lock(void)
{
    struct prudence_reader *self = prudence_reader_self;
    uint64_t word;

    if (__builtin_expect(!self, 0)) {
        prudence_read_lock_first();
        return;
    }
    word = __atomic_load_n(&self->word, __ATOMIC_RELAXED);
    if (__builtin_expect(word == 0, 1)) {
        word = __atomic_load_n(&prudence_default_shared.sequence, __ATOMIC_ACQUIRE);
        __atomic_store_n(&self->word, word | 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (__atomic_load_n(&prudence_default_shared.fenced, __ATOMIC_ACQUIRE)) {
            prudence_full_fence();
            __atomic_store_n(&self->entries, self->entries + 1, __ATOMIC_RELAXED);
        }
        return;
    }
    if (__builtin_expect((word & PRUDENCE_NESTING_MASK) == PRUDENCE_NESTING_MASK, 0))
        prudence_read_lock_too_deep();
    __atomic_store_n(&self->word, word + 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Leaves a read-side critical section. Async-signal-safe. An unlock too many is misuse. */
static inline void prudence_read_unlock(void)
{
    struct prudence_reader *self = prudence_reader_self;
    uint64_t word;

    if (__builtin_expect(!self, 0))
        prudence_read_unlock_unbalanced();
    word = __atomic_load_n(&self->word, __ATOMIC_RELAXED);
    if (__builtin_expect((word & PRUDENCE_NESTING_MASK) == 1, 1)) {
        /* Release: what the section read is read before the word says that it is over. */
        __atomic_store_n(&self->word, 0, __ATOMIC_RELEASE);
    } else if (__builtin_expect(word == 0, 0)) {
        prudence_read_unlock_unbalanced();
    } else {
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        __atomic_store_n(&self->word, word - 1, __ATOMIC_RELAXED);
    }
}

/* Whether this thread is inside a section of the default domain. Async-signal-safe. */
PRUDENCE_API bool prudence_read_lock_held(void);

/*
 * Waits until a full grace period has passed. Inside a read-side critical section of any domain,
 * or while online in a qsbr domain, that would never end: reported with the caller's address, then
 * the process aborts. Cost: 1 microsecond idle, 10 to 15 with a busy reader, else as long as the
 * longest reader stays. The expedited form spends CPU time to notice the end sooner.
 */
PRUDENCE_API void prudence_synchronize(void);
PRUDENCE_API void prudence_synchronize_expedited(void);

/*
 * The polled interface. get_state: the cookie of a grace period that starts from now on, but does
 * not start it. start_poll: the same, and starts it; polling is then enough for it to end.
 * poll_state: whether it is over; it may drive the grace period on, never waits. cond_synchronize:
 * waits only if it is not over; in a section as prudence_synchronize. Cookies never expire in
 * practice (54 bits of grace periods). poll_state costs one load and a compare once it is over.
 */
PRUDENCE_API prudence_gp_t prudence_gp_get_state(void);
PRUDENCE_API prudence_gp_t prudence_gp_start_poll(void);
PRUDENCE_API bool prudence_gp_poll_state(prudence_gp_t cookie);
PRUDENCE_API void prudence_gp_cond_synchronize(prudence_gp_t cookie);

/* Whether both cookies name the same grace period. */
static inline bool prudence_gp_same_state(prudence_gp_t a, prudence_gp_t b)
{
    return a.private_value == b.private_value;
}

/*
 * Publishes `v` in the pointer `p`: everything written to *v before is seen by who finds it there.
 * prudence_dereference reads a pointer that a writer may publish at the same time; inside a
 * section, what it finds stays valid until the section ends.
 */
#define prudence_assign_pointer(p, v) __atomic_store_n(&(p), (v), __ATOMIC_RELEASE)
#define prudence_dereference(p)       __atomic_load_n(&(p), __ATOMIC_CONSUME)

/* -------------------------------------------------------------------------------- domains */

enum prudence_domain_kind {
    PRUDENCE_DOMAIN_MEMB, /* as the default domain: read_lock/unlock, threads register themselves */
    PRUDENCE_DOMAIN_QSBR, /* readers cost nothing; threads announce quiescent states */
    PRUDENCE_DOMAIN_MANUAL, /* for tests: a grace period ends when prudence_manual_advance says so */
};

struct prudence_domain_attr {
    size_t size;       /* sizeof(struct prudence_domain_attr) */
    unsigned flags;    /* 0 */
    unsigned reserved; /* 0 */
};

/*
 * Makes a domain: readers and grace periods of their own. `name` is copied (31 bytes). NULL with
 * errno EINVAL or ENOMEM. Destroy returns 0, or an error number with the domain as it was: EBUSY
 * while a cache belongs to it or a thread is inside a section (or online) there; EINVAL for NULL
 * and for the default domain, which lives as long as the process.
 */
PRUDENCE_API struct prudence_domain *
prudence_domain_create(const char *name, enum prudence_domain_kind kind,
                       const struct prudence_domain_attr *attr);
PRUDENCE_API int prudence_domain_destroy(struct prudence_domain *domain);
PRUDENCE_API struct prudence_domain *prudence_default_domain(void);

/*
 * As the functions above, for a domain. In a qsbr domain read_lock and read_unlock only check that
 * the thread is online. synchronize returns 0, or at once EDEADLK inside a section of any domain or
 * while online in a qsbr domain other than `domain` (reported with the caller's address, once for
 * each calling place); a thread that is online in `domain` itself is taken offline for the wait, as
 * in liburcu.
 * On a manual domain synchronize waits until another thread advances.
 */
PRUDENCE_API void prudence_domain_read_lock(struct prudence_domain *domain);
PRUDENCE_API void prudence_domain_read_unlock(struct prudence_domain *domain);
PRUDENCE_API bool prudence_domain_read_lock_held(struct prudence_domain *domain);
PRUDENCE_API int prudence_domain_synchronize(struct prudence_domain *domain);
PRUDENCE_API prudence_gp_t prudence_domain_get_state(struct prudence_domain *domain);
PRUDENCE_API prudence_gp_t prudence_domain_start_poll(struct prudence_domain *domain);
PRUDENCE_API bool prudence_domain_poll_state(struct prudence_domain *domain, prudence_gp_t cookie);

/*
 * Quiescent-state-based reading: between online (or the last quiescent) and quiescent (or offline)
 * the thread is inside one long section. An online thread must call quiescent regularly and go
 * offline before it blocks. On a domain of another kind: reported, no effect.
 */
PRUDENCE_API void prudence_qsbr_online(struct prudence_domain *domain);
PRUDENCE_API void prudence_qsbr_offline(struct prudence_domain *domain);
PRUDENCE_API void prudence_qsbr_quiescent(struct prudence_domain *domain);

/* Ends one grace period of a manual domain: every cookie taken before is over. */
PRUDENCE_API void prudence_manual_advance(struct prudence_domain *domain);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_RCU_H */
