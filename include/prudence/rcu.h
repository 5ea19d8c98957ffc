/* SPDX-License-Identifier: MIT */
/*
 * Read-copy-update: the read side and grace periods, in the kernel's terms.
 *
 * Readers bracket their use of shared objects with prudence_read_lock/unlock. A grace period is any
 * span of time in which every reader that was inside a section at the start has ended that section.
 * A cookie (prudence_gp_t) says which grace period to wait for.
 *
 * docs/explanation/design.md, "Grace periods", describes and justifies the protocol. The state
 * below is public only so that the read side can be inlined. Do not touch that state.
 */
#ifndef PRUDENCE_RCU_H
#define PRUDENCE_RCU_H

#include <prudence/language.h>
#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names a grace period. Copied by value; compared only with prudence_gp_same_state. */
typedef struct {
    uint64_t private_value;
} prudence_gp_t;

/* ---------------------------------------------------- what the inline read side needs (private) */

/*
 * Inline readers reach no data of the library by a symbol, except thread-local pointers. The
 * thread's word points to its domain, and the domain has the shared words at a fixed offset. So a
 * program cannot get its own copy of them (a copy relocation), however the program is linked (ADR
 * 26).
 */

/*
 * A thread's word in a domain. The upper 54 bits are the sequence that the thread read at entry,
 * the lower 10 the nesting depth; the word is 0 outside. Both are in one word written by one store.
 * Otherwise a signal handler that reads could interrupt at a moment when the word protects nothing.
 */
struct prudence_reader {
    uint64_t word;    /* written by its thread; read by drivers of grace periods */
    uint64_t entries; /* fenced entries, for the choice of mode; its thread adds to it */
    /*
     * Domain this word belongs to. Written by its thread before the first entry; atomic, because a
     * driver of the word's previous domain may still read it.
     */
    const struct prudence_domain *domain;
    /*
     * Address of the owning thread's prudence_qsbr_self, or NULL if no thread owns the word.
     * Atomic.
     */
    const void *owner;
    /* Action for its thread after publishing the word, one of the values below. Atomic. */
    int32_t attention;
};

#define PRUDENCE_ATTENTION_FENCE  1         /* fence */
#define PRUDENCE_ATTENTION_PARKED INT32_MIN /* drivers skip the word; see prudence_reader_wake */

/* Offset of the next structure within a domain of any kind. */
#define PRUDENCE_DOMAIN_SHARED_OFFSET 64

struct prudence_domain_shared {
    uint64_t sequence; /* grace periods started, << 10 */
    uint32_t fenced; /* readers fence after publishing their word; each one's `attention` says so */
};

#define PRUDENCE_NESTING_BITS 10
#define PRUDENCE_NESTING_MASK ((UINT64_C(1) << PRUDENCE_NESTING_BITS) - 1)

#ifndef PRUDENCE_THREAD_LOCAL
#define PRUDENCE_THREAD_LOCAL __thread
#endif

/* This thread's word in the default domain, or NULL before the first entry. */
#define prudence_reader_self prudence_reader2_self /* 2 is the number of this layout */
PRUDENCE_API extern PRUDENCE_THREAD_LOCAL struct prudence_reader *prudence_reader_self
    __attribute__((tls_model("initial-exec")));

/*
 * This thread's word in the qsbr domain that it used last. There is only one pointer, because a
 * signal handler may change it. The domain may have been destroyed since, and the word may belong
 * to another thread; then `owner` differs.
 */
PRUDENCE_API extern PRUDENCE_THREAD_LOCAL struct prudence_reader *prudence_qsbr_self
    __attribute__((tls_model("initial-exec")));
PRUDENCE_API void prudence_read_lock_first(void); /* registers the thread and enters */
/* Makes grace periods wait for this thread again, and fences. Call it after publishing the word. */
PRUDENCE_API void prudence_reader_wake(struct prudence_reader *self);
PRUDENCE_API void prudence_read_lock_too_deep(void) __attribute__((noreturn, cold));
PRUDENCE_API void prudence_read_unlock_unbalanced(void) __attribute__((noreturn, cold));

/*
 * Informs ThreadSanitizer that a section of this thread ends, by an address in the domain that
 * nothing else uses. The library informs it of the same wherever grace periods rely on that.
 * (ThreadSanitizer sees nothing of a library that is not built with it.)
 */
#define PRUDENCE_DOMAIN_ENDS_OFFSET 1
#ifdef PRUDENCE_THREAD_SANITIZER
void __tsan_release(void *address);
#endif

static inline void prudence_tell_section_ends(const struct prudence_reader *self)
{
#ifdef PRUDENCE_THREAD_SANITIZER
    const struct prudence_domain *domain = __atomic_load_n(&self->domain, __ATOMIC_RELAXED);

    __tsan_release(
        PRUDENCE_CAST(void *, PRUDENCE_CAST(uintptr_t, domain) + PRUDENCE_DOMAIN_ENDS_OFFSET));
#else
    (void)self;
#endif
}

/* Makes a full fence and counts the entry. A locked instruction costs a fraction of mfence. */
static inline void prudence_fence_and_count(struct prudence_reader *self)
{
#if defined(__x86_64__)
    __asm__ __volatile__("lock; addq $1, %0" : "+m"(self->entries)::"memory", "cc");
#else
    __atomic_fetch_add(&self->entries, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * A program that defines PRUDENCE_READER_SLICES before including this header makes readers of the
 * default domain ask the kernel for some microseconds more of their time slice while they are
 * inside a section. This needs Linux 7.0 with CONFIG_RSEQ_SLICE_EXTENSION, and a C library that
 * registers rseq for this (glibc 2.41 does). Then no grace period has to wait until a reader that
 * lost its CPU runs again. Cost: two stores and a load for each section. Elsewhere there is no
 * effect. Sections entered by functions of the library (prudence_domain_read_lock) do not ask.
 * docs/adr/0034 has reasons and figures.
 */
PRUDENCE_API void prudence_slice_yield(void); /* gives up the CPU after a slice was granted */

#ifdef PRUDENCE_READER_SLICES
extern const ptrdiff_t prudence_slice_rseq __asm__("__rseq_offset"); /* glibc has it since 2.35 */

/* Returns slice_ctrl in this thread's struct rseq, whose bytes are request and granted. */
static inline volatile unsigned char *prudence_slice_(void)
{
    return PRUDENCE_CAST(volatile unsigned char *,
                         PRUDENCE_CAST(char *, __builtin_thread_pointer()) + prudence_slice_rseq +
                             28);
}
#endif

static inline void prudence_slice_ask_(void)
{
#ifdef PRUDENCE_READER_SLICES
    prudence_slice_()[0] = 1;
#endif
}

static inline void prudence_slice_done_(void)
{
#ifdef PRUDENCE_READER_SLICES
    volatile unsigned char *slice = prudence_slice_();

    slice[0] = 0;
    if (__builtin_expect(slice[1], 0))
        prudence_slice_yield();
#endif
}

static inline const struct prudence_domain_shared *
prudence_domain_shared_of(const struct prudence_domain *domain)
{
    return PRUDENCE_CAST(const struct prudence_domain_shared *,
                         PRUDENCE_CAST(const void *, PRUDENCE_CAST(const char *, domain) +
                                                         PRUDENCE_DOMAIN_SHARED_OFFSET));
}

/*
 * Enters a section of the domain that `self`, this thread's word, belongs to. Returns false if the
 * thread's sections are nested too deep.
 *
 * Order: the word is published before anything inside the section is read. If fence-free, the
 * membarrier of the thread that drives a grace period guarantees this; if fenced, the fence here.
 * The attention is tested after publishing, because a driver that switches the mode or parks the
 * reader could otherwise miss the reader, and in nested sections as well, because a signal handler
 * may have come between the two. Sequence and attention are read with acquire, which costs nothing
 * on x86. A reader that sees a new sequence must see whatever was unlinked before that grace period
 * started. A reader that stops fencing must see whatever was unlinked before drivers stopped
 * counting on the fence.
 */
static inline bool prudence_reader_enter_(struct prudence_reader *self)
{
    uint64_t word = __atomic_load_n(&self->word, __ATOMIC_RELAXED);
    int32_t attention;

    if (__builtin_expect(word == 0, 1)) {
        /* relaxed, because this thread wrote it */
        const struct prudence_domain_shared *shared =
            prudence_domain_shared_of(__atomic_load_n(&self->domain, __ATOMIC_RELAXED));

        prudence_slice_ask_();
        word = __atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE);
        __atomic_store_n(&self->word, word | 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        attention = __atomic_load_n(&self->attention, __ATOMIC_ACQUIRE);
        if (__builtin_expect(attention != 0, 0)) { /* out of line; negligible next to a fence */
            if (__builtin_expect(attention < 0, 0))
                prudence_reader_wake(self);
            else
                prudence_fence_and_count(self);
        }
        return true;
    }
    word++;
    if (__builtin_expect(!(word & PRUDENCE_NESTING_MASK), 0))
        return false;
    __atomic_store_n(&self->word, word, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(__atomic_load_n(&self->attention, __ATOMIC_ACQUIRE) < 0, 0))
        prudence_reader_wake(self);
    return true;
}

/* Leaves a section. Returns false if the thread is in none. */
static inline bool prudence_reader_leave_(struct prudence_reader *self)
{
    uint64_t word = __atomic_load_n(&self->word, __ATOMIC_RELAXED);

    /* Depth 1. An inner exit stores the difference, so the test needs no copy of the word. */
    if (__builtin_expect(!((word - 1) & PRUDENCE_NESTING_MASK), 1)) {
        prudence_tell_section_ends(self);
        /* Release: the section's reads come before the word says that the section is over. */
        __atomic_store_n(&self->word, 0, __ATOMIC_RELEASE);
        prudence_slice_done_();
        return true;
    }
    if (__builtin_expect(word == 0, 0))
        return false;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&self->word, word - 1, __ATOMIC_RELAXED);
    return true;
}

/* ------------------------------------------------------------------------ the default domain */

/*
 * Enters a read-side critical section of the default domain. Sections nest, up to 1,023 deep. Any
 * thread may enter; the first entry registers the thread. Never blocks and never waits.
 * Async-signal-safe, including the first entry. Costs about 1 ns with the unlock, 1.9 ns while the
 * domain's readers are fenced.
 */
PRUDENCE_INLINE void prudence_read_lock(void)
{
    struct prudence_reader *self = prudence_reader_self;

    if (__builtin_expect(!self, 0))
        prudence_read_lock_first();
    else if (__builtin_expect(!prudence_reader_enter_(self), 0))
        prudence_read_lock_too_deep();
}

/* Leaves a read-side critical section. Async-signal-safe. One unlock too many is misuse. */
PRUDENCE_INLINE void prudence_read_unlock(void)
{
    struct prudence_reader *self = prudence_reader_self;

    if (__builtin_expect(!self || !prudence_reader_leave_(self), 0))
        prudence_read_unlock_unbalanced();
}

/*
 * Return whether this thread is inside a section of the default domain. Async-signal-safe. The
 * second function is inlined.
 */
PRUDENCE_API bool prudence_read_lock_held(void);

PRUDENCE_INLINE bool prudence_is_reading(void)
{
    const struct prudence_reader *self = prudence_reader_self;

    return self && __atomic_load_n(&self->word, __ATOMIC_RELAXED) != 0;
}

/*
 * Waits until a full grace period has passed. Inside a section of any memb or manual domain, or
 * while online in a qsbr domain, the wait could never end, so the caller's address is reported and
 * the process aborts. Sections of srcu and external domains, whose readers may block, are allowed.
 * In a handler of pthread_atfork that runs between the library's own, a reader may wait for the end
 * of the fork. So if a reader stays there for the option wait_max (at least 500 ms), the process
 * aborts in the same way. Takes 1 microsecond idle, 10 to 15 with a busy reader, else as long as
 * the longest reader stays. The expedited form spends CPU time to notice the end sooner.
 */
PRUDENCE_API void prudence_synchronize(void);
PRUDENCE_API void prudence_synchronize_expedited(void);

/*
 * The polled interface. get_state returns the cookie of a grace period that starts from now on, and
 * starts none. start_poll returns the same cookie and starts the grace period; polling is then
 * enough for the grace period to end. poll_state says whether that grace period is over, and may
 * drive grace periods on, but never waits. cond_synchronize waits only if the grace period is not
 * over (same rules as prudence_synchronize about sections). Cookies never expire in practice (54
 * bits of grace periods). Once the grace period is over, poll_state costs one load and a compare.
 */
PRUDENCE_API prudence_gp_t prudence_gp_get_state(void);
PRUDENCE_API prudence_gp_t prudence_gp_start_poll(void);
PRUDENCE_API bool prudence_gp_poll_state(prudence_gp_t cookie);
PRUDENCE_API void prudence_gp_cond_synchronize(prudence_gp_t cookie);

/* Returns whether both cookies name the same grace period. */
PRUDENCE_INLINE bool prudence_gp_same_state(prudence_gp_t a, prudence_gp_t b)
{
    return a.private_value == b.private_value;
}

/*
 * Publishes `v` in the pointer `p`. A reader that finds `v` there sees everything that was written
 * to *v before. prudence_dereference reads a pointer that a writer may publish at the same time.
 * Inside a section the object found stays valid until the section ends.
 */
#define prudence_assign_pointer(p, v) __atomic_store_n(&(p), (v), __ATOMIC_RELEASE)
#if !defined(PRUDENCE_CHECK_READERS) || !defined(__GNUC__)
#define prudence_dereference(p) __atomic_load_n(&(p), __ATOMIC_CONSUME)
#else
#define prudence_dereference(p)                                                                    \
    __extension__({                                                                                \
        __typeof__(p) prudence_found_ = __atomic_load_n(&(p), __ATOMIC_CONSUME);                   \
        prudence_check_reader(prudence_found_);                                                    \
        prudence_found_;                                                                           \
    })
#endif

/*
 * Reports a reader that nothing protects. A deferred object is freed when the readers of the
 * cache's domain have ended. A thread that reads `object` outside such a section, or inside a
 * section of another domain, or without a hazard slot that names the object where the domain is of
 * hazard slots, sooner or later uses `object` after free. Works only under the option
 * check=1, on objects of this allocator, and reports each calling place once; otherwise does
 * nothing. If PRUDENCE_CHECK_READERS is defined at compile time, prudence_dereference calls this.
 * (A writer that holds the lock of its updates may read it without a section, and reads the pointer
 * itself.) Async-signal-safe.
 */
PRUDENCE_API void prudence_check_reader(const void *object);

/* -------------------------------------------------------------------------------- domains */

/* How readers of a domain show that they are inside. */
enum prudence_domain_kind {
    PRUDENCE_DOMAIN_MEMB,     /* like the default domain; threads register themselves */
    PRUDENCE_DOMAIN_QSBR,     /* readers cost nothing; threads announce quiescent states */
    PRUDENCE_DOMAIN_MANUAL,   /* for tests; prudence_manual_advance ends a grace period */
    PRUDENCE_DOMAIN_SRCU,     /* readers may block; prudence_srcu_read_lock/unlock */
    PRUDENCE_DOMAIN_SET,      /* combines domains; see prudence_domain_create_set */
    PRUDENCE_DOMAIN_EXTERNAL, /* grace periods of another scheme; see
                                 prudence_domain_create_external */
    PRUDENCE_DOMAIN_HAZARD,   /* readers name single objects; <prudence/hazard.h> */
};

/* Attributes of a domain. */
struct prudence_domain_attr {
    size_t size;       /* sizeof(struct prudence_domain_attr) */
    unsigned flags;    /* 0, or PRUDENCE_DOMAIN_CALLERS_ADVANCE of <prudence/epoch.h> */
    unsigned reserved; /* 0 */
};

/*
 * Makes a domain of one of the first four kinds, with readers and grace periods of its own, or one
 * of kind PRUDENCE_DOMAIN_HAZARD, whose readers use <prudence/hazard.h>. `name` is copied (31
 * bytes). Returns NULL with errno EINVAL (a message on standard error names the cause) or ENOMEM.
 *
 * prudence_domain_destroy, for domains of all kinds, returns 0, or an error number with the domain
 * as it was. EBUSY means that a cache or a set names the domain, that a section is open (or a
 * thread online) there, or that callbacks wait or run; the cause is reported once for each calling
 * place. EINVAL is returned for NULL and for the default domain (and the domains of
 * <prudence/urcu-compat.h>), which live as long as the process. Using a destroyed domain is misuse.
 * The option check=1 reports that with the caller's address before the process aborts.
 */
PRUDENCE_API struct prudence_domain *
prudence_domain_create(const char *name, enum prudence_domain_kind kind,
                       const struct prudence_domain_attr *attr);
PRUDENCE_API int prudence_domain_destroy(struct prudence_domain *domain);
PRUDENCE_API struct prudence_domain *prudence_default_domain(void);

/*
 * Do for `domain` what the functions above do for the default domain. In a qsbr domain read_lock
 * and read_unlock only check that the thread is online; in an srcu domain they are the functions
 * below, without the index. Sets and external domains have no readers of their own (misuse).
 * read_lock_held of a set says whether the thread is inside one of its members.
 *
 * synchronize returns 0, or at once EDEADLK where the call would wait for itself, reported with the
 * caller's address, once for each calling place. This is so inside a section of any memb or manual
 * domain, while online in a qsbr domain other than `domain`, or inside a section of `domain`
 * itself. It may be called inside sections of other srcu and external domains, whose readers may
 * block. It returns EBUSY in a handler of pthread_atfork that runs between the library's own,
 * because a reader may wait for the end of the fork. A refused call changes nothing. A thread that
 * is online in `domain` itself, or in a member of that set, is taken offline for the wait, as in
 * liburcu. On a manual domain synchronize waits until another thread advances.
 */
PRUDENCE_API void prudence_domain_read_lock(struct prudence_domain *domain);
PRUDENCE_API void prudence_domain_read_unlock(struct prudence_domain *domain);
PRUDENCE_API bool prudence_domain_read_lock_held(struct prudence_domain *domain);
PRUDENCE_API int prudence_domain_synchronize(struct prudence_domain *domain);
PRUDENCE_API prudence_gp_t prudence_domain_get_state(struct prudence_domain *domain);
PRUDENCE_API prudence_gp_t prudence_domain_start_poll(struct prudence_domain *domain);
PRUDENCE_API bool prudence_domain_poll_state(struct prudence_domain *domain, prudence_gp_t cookie);

/*
 * Works like prudence_free_deferred() and returns true, if `object` is the address of an object of
 * this library whose cache belongs to `domain`, or NULL. Otherwise changes nothing and returns
 * false. For bindings, which get pointers of any origin. Cost: one nanosecond more.
 */
PRUDENCE_API bool prudence_domain_free_deferred(struct prudence_domain *domain, void *object);

/*
 * Quiescent-state-based reading. Between online (or the last quiescent) and quiescent (or offline)
 * the thread is inside one long section. An online thread must call quiescent regularly and go
 * offline before blocking. A call on a domain of another kind is reported and otherwise ignored.
 * Async-signal-safe. quiescent costs about 1 ns, and a fence once for each grace period.
 */
PRUDENCE_API void prudence_qsbr_online(struct prudence_domain *domain);
PRUDENCE_API void prudence_qsbr_offline(struct prudence_domain *domain);

/*
 * Announces a quiescent state. prudence_qsbr_quiescent calls this only when there is something to
 * announce.
 */
PRUDENCE_API void prudence_qsbr_announce(struct prudence_domain *domain);

PRUDENCE_INLINE void prudence_qsbr_quiescent(struct prudence_domain *domain)
{
    const struct prudence_domain_shared *shared = prudence_domain_shared_of(domain);
    const struct prudence_reader *self = prudence_qsbr_self;

    /*
     * If the word already has the newest sequence, no grace period that could wait for this thread
     * has begun since the last call. Relaxed: a word is this thread's in this domain only if the
     * thread itself wrote so.
     */
    if (self && __atomic_load_n(&self->domain, __ATOMIC_RELAXED) == domain &&
        __atomic_load_n(&self->owner, __ATOMIC_RELAXED) == &prudence_qsbr_self &&
        __atomic_load_n(&self->word, __ATOMIC_RELAXED) ==
            (__atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE) | 1))
        return;
    prudence_qsbr_announce(domain);
}

/*
 * Returns whether this thread is online in the qsbr domain. Inlined form of
 * prudence_domain_read_lock_held.
 */
PRUDENCE_INLINE bool prudence_qsbr_is_online(struct prudence_domain *domain)
{
    const struct prudence_reader *self = prudence_qsbr_self;

    if (__builtin_expect(self && __atomic_load_n(&self->domain, __ATOMIC_RELAXED) == domain &&
                             __atomic_load_n(&self->owner, __ATOMIC_RELAXED) == &prudence_qsbr_self,
                         1))
        return __atomic_load_n(&self->word, __ATOMIC_RELAXED) != 0;
    return prudence_domain_read_lock_held(domain);
}

/*
 * Bracket a call that may block. begin takes the thread offline in the qsbr domain and returns
 * whether the thread was online; end, given that value, brings the thread back. So they may be used
 * in functions that do not know their callers, and nest. Between them the thread is outside any
 * section of the domain. Pointers from before must not be used after. errno is kept.
 *
 * PRUDENCE_QSBR_BLOCKING(domain) does the same for the rest of the enclosing block, however the
 * block ends (GCC and Clang; C and C++).
 */
PRUDENCE_INLINE bool prudence_qsbr_blocking_begin(struct prudence_domain *domain)
{
    bool online = prudence_domain_read_lock_held(domain);

    if (online)
        prudence_qsbr_offline(domain);
    return online;
}

PRUDENCE_INLINE void prudence_qsbr_blocking_end(struct prudence_domain *domain, bool was_online)
{
    if (was_online)
        prudence_qsbr_online(domain);
}

#if defined(__GNUC__)
static inline struct prudence_domain *prudence_qsbr_blocking_enter(struct prudence_domain *domain)
{
    return prudence_qsbr_blocking_begin(domain) ? domain : PRUDENCE_NULL;
}

static inline void prudence_qsbr_blocking_leave(struct prudence_domain **domain)
{
    prudence_qsbr_blocking_end(*domain, *domain != PRUDENCE_NULL);
}

#define PRUDENCE_QSBR_BLOCKING_NAME_(line) prudence_qsbr_blocking_##line
#define PRUDENCE_QSBR_BLOCKING_NAME(line)  PRUDENCE_QSBR_BLOCKING_NAME_(line)
#define PRUDENCE_QSBR_BLOCKING(domain)                                                             \
    struct prudence_domain *PRUDENCE_QSBR_BLOCKING_NAME(__LINE__)                                  \
        __attribute__((cleanup(prudence_qsbr_blocking_leave), unused)) =                           \
            prudence_qsbr_blocking_enter(domain)
#endif

/*
 * Readers of an srcu domain may block, sleep, and stay for long. They hold up the grace periods of
 * their own domain only, so give each use its own domain. read_lock gives an index, which
 * read_unlock takes back. Threads register themselves. Async-signal-safe, if a handler leaves every
 * section that it enters.
 *
 * read_unlock must be called by the same thread, on any CPU. Sections of a thread in one domain may
 * nest and overlap (1,023 of them); all have one index and count as one section, from the first
 * entry to the last exit. The section of a thread that is gone is ended and reported. A forked
 * child has the forking thread's section.
 *
 * down_read and up_read mark a section that one thread enters and another leaves, for example
 * around an asynchronous I/O request. Each is a section by itself. A stall report cannot name the
 * thread, implicit waits inside do not notice the section (and end after wait_max), and a forked
 * child also has the section and must leave it.
 *
 * The entry is a full fence. The cost is a locked addition to a counter of the CPU at the entry and
 * one at the exit, and none for nested sections. A wrong index is misuse.
 */
PRUDENCE_API int prudence_srcu_read_lock(struct prudence_domain *domain);
PRUDENCE_API void prudence_srcu_read_unlock(struct prudence_domain *domain, int index);
PRUDENCE_API int prudence_srcu_down_read(struct prudence_domain *domain);
PRUDENCE_API void prudence_srcu_up_read(struct prudence_domain *domain, int index);

/*
 * Makes a set of domains. An object deferred under the set (caches may name it as their domain) is
 * safe only when safe in every one of `domains`. Use a set for objects that readers of several
 * kinds see. Its grace periods are the grace periods of the members; the set has no readers. A
 * reader may move from a section to a member of kind hazard (<prudence/hazard.h>): it names what it
 * goes on to use, and then leaves the section. A member that is a set counts as that set's members.
 * Members are kept: destroying one is EBUSY until the set is destroyed. Returns NULL with errno
 * EINVAL (no name, no member, a NULL among them, more than PRUDENCE_DOMAIN_SET_MAX) or ENOMEM.
 */
#define PRUDENCE_DOMAIN_SET_MAX 64
PRUDENCE_API struct prudence_domain *
prudence_domain_create_set(const char *name, struct prudence_domain *const *domains,
                           unsigned count);

/*
 * Makes an external domain, whose grace periods another scheme runs. `ops` is copied, and each
 * function is called with `context`. <prudence/urcu-domain.h>, <prudence/ck-domain.h> and
 * <prudence/dpdk-domain.h> fill them in for liburcu, Concurrency Kit and DPDK.
 *  - start_poll and poll_state, both or neither. start_poll begins a grace period that covers
 *    everything that happened before, and returns a cookie; poll_state says whether that grace
 *    period is over. Any thread that allocates, defers or waits calls them, one at a time, also
 *    inside sections. They must not wait, but may allocate.
 *  - synchronize, if there is no polling, waits for a grace period. A thread of the library calls
 *    it, which is made with the domain (and in a forked child before fork returns). If a child
 *    could not have one, a thread that waits without a deadline makes the call. A thread that
 *    allocates or defers never does.
 *  - thread_starts and thread_ends, or NULL, are called by that thread, first and last.
 *  - read_lock_held, or NULL, says whether the calling thread is inside a section. Then nothing
 *    waits implicitly there, and waits for this domain are refused. Called with no lock of the
 *    library held.
 *
 * The scheme may say that a quiescent state has moved, so that a grace period ends now and not at
 * the next allocation, deferral or wait:
 *
 *     prudence_domain_poll_state(domain, prudence_domain_get_state(domain));
 *
 * This polls the grace period that is under way, and begins the next one if a thread asked for it.
 * If no thread did, no function is called, and the cost is a full fence.
 *
 * Returns NULL with errno EINVAL (no name, wrong size, neither polling nor synchronize, half of
 * polling), ENOMEM or EAGAIN (no thread). Destroying the domain waits for a synchronize that is
 * under way, so do not do that inside a section.
 */
struct prudence_domain_ops {
    size_t size; /* sizeof(struct prudence_domain_ops) */
    uint64_t (*start_poll)(void *context);
    bool (*poll_state)(void *context, uint64_t cookie);
    void (*synchronize)(void *context);
    bool (*read_lock_held)(void *context);
    void (*thread_starts)(void *context);
    void (*thread_ends)(void *context);
};
PRUDENCE_API struct prudence_domain *
prudence_domain_create_external(const char *name, const struct prudence_domain_ops *ops,
                                void *context);

/*
 * A reader that keeps a grace period from ending for longer than the option stall_timeout is
 * reported once, on standard error and to the hook, if there is one (NULL: none). So is a hazard
 * pointer that names one address for that long. The thread that drives the grace period calls the
 * hook, so perhaps inside an allocation or a deferral, with no lock of the library held. The hook
 * may use the library, but not wait for a grace period. `stall` and all that it points to, except
 * `object`, are valid until the hook returns.
 */
struct prudence_stall {
    size_t size; /* sizeof(struct prudence_stall) */
    const char *domain;
    const char *thread_name; /* "" where `thread` is 0 */
    int thread; /* kernel id; 0: unknown (external domain, down_read, a movable hazard pointer) */
    uint64_t nanoseconds; /* how long the reader has been blocking */
    void *const *frames;  /* return addresses, innermost first, under stall_trace=1 */
    unsigned frame_count; /* 0: none, or the thread did not answer */
    const void *object;   /* the address that a hazard pointer names; NULL: a section */
};
typedef void (*prudence_stall_hook)(const struct prudence_stall *stall, void *argument);
PRUDENCE_API void prudence_stall_hook_set(prudence_stall_hook hook, void *argument);

/* Ends one grace period of a manual domain. Every cookie taken before is then over. */
PRUDENCE_API void prudence_manual_advance(struct prudence_domain *domain);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_RCU_H */
