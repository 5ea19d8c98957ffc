/* SPDX-License-Identifier: MIT */
/*
 * Read-copy-update: the read side and grace periods, in the kernel's terms.
 *
 * Readers bracket their use of shared objects with prudence_read_lock/unlock. A grace period is any
 * span of time in which every reader that was inside such a section at its start has left it. A
 * cookie (prudence_gp_t) says which grace period to wait for.
 *
 * The protocol and the argument for it are in docs/explanation/design.md, "Grace periods"; the state below is
 * public only so that the read side can be inlined. Do not touch it.
 */
#ifndef PRUDENCE_RCU_H
#define PRUDENCE_RCU_H

#include <prudence/language.h>
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
 * Inline readers reach no data of the library by a symbol, except thread-local pointers: the thread's
 * word says which domain it is of, and the domain has the shared words at a fixed offset. So a program
 * cannot get a copy of them of its own (a copy relocation), however it is linked (ADR 26).
 */

/*
 * A thread's word in a domain: the sequence it read at entry in the upper 54 bits and its nesting
 * depth in the lower 10; 0 outside. Both live in one word written by one store, or a signal
 * handler that reads would find a moment in which it protects nothing.
 */
struct prudence_reader {
    uint64_t word;    /* written by its thread; read by whoever drives a grace period */
    uint64_t entries; /* fenced entries, for the choice of mode; added to by its thread */
    /* The domain that this is a word of. Written by its thread before the first entry; atomic, because
     * a driver of the domain that had the word before may still look at it. */
    const struct prudence_domain *domain;
    /* The address of its thread's prudence_qsbr_self; NULL: it is nobody's. Atomic. */
    const void *owner;
    /* What its thread has to do after it has published its word; below. Atomic. */
    int32_t attention;
};

#define PRUDENCE_ATTENTION_FENCE  1         /* fence */
#define PRUDENCE_ATTENTION_PARKED INT32_MIN /* nobody looks at the word: prudence_reader_wake */

/* Offset of the following structure in a domain of any kind. */
#define PRUDENCE_DOMAIN_SHARED_OFFSET 64

struct prudence_domain_shared {
    uint64_t sequence; /* grace periods started, << 10 */
    uint32_t fenced; /* readers fence after publishing their word; each is told in its attention */
};

#define PRUDENCE_NESTING_BITS 10
#define PRUDENCE_NESTING_MASK ((UINT64_C(1) << PRUDENCE_NESTING_BITS) - 1)

#ifndef PRUDENCE_THREAD_LOCAL
#define PRUDENCE_THREAD_LOCAL __thread
#endif

/* This thread's word in the default domain; NULL before its first entry. */
#define prudence_reader_self prudence_reader2_self /* the 2: of this layout */
PRUDENCE_API extern PRUDENCE_THREAD_LOCAL struct prudence_reader *prudence_reader_self
    __attribute__((tls_model("initial-exec")));

/* This thread's word in the qsbr domain that it was last in. One pointer, because a signal handler may
 * change it. The domain may be gone since, and the word another thread's: then its owner is another. */
PRUDENCE_API extern PRUDENCE_THREAD_LOCAL struct prudence_reader *prudence_qsbr_self
    __attribute__((tls_model("initial-exec")));
PRUDENCE_API void prudence_read_lock_first(void); /* registers the thread, and enters */
/* Makes grace periods wait for this thread again, and fences. Its word is published. */
PRUDENCE_API void prudence_reader_wake(struct prudence_reader *self);
PRUDENCE_API void prudence_read_lock_too_deep(void) __attribute__((noreturn, cold));
PRUDENCE_API void prudence_read_unlock_unbalanced(void) __attribute__((noreturn, cold));

/*
 * ThreadSanitizer is told that a section of this thread ends, by an address in the domain that is used for
 * nothing else; the library tells it where that counts. (It sees nothing of a library built without it.)
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

/* A full fence that counts the entry; a locked instruction costs a fraction of mfence. */
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
 * A program that defines PRUDENCE_READER_SLICES before it includes this header has readers of the default domain that ask
 * the kernel for some microseconds more of their time slice while they are inside a section (Linux 7.0 with
 * CONFIG_RSEQ_SLICE_EXTENSION, and a C library that registers rseq for it: glibc 2.41 does). So no grace period has to
 * wait until a reader that lost its CPU has another turn. Cost: two stores and a load a section; elsewhere no effect. Sections
 * entered by functions of the library (prudence_domain_read_lock) do not ask. Reasons and figures: docs/adr/0078.
 */
PRUDENCE_API void prudence_slice_yield(void); /* gives up the CPU after a slice was granted */

#ifdef PRUDENCE_READER_SLICES
extern const ptrdiff_t prudence_slice_rseq __asm__("__rseq_offset"); /* of glibc since 2.35 */

/* Of slice_ctrl in this thread's struct rseq: request, granted. */
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

/* ------------------------------------------------------------------------ the default domain */

/*
 * Enters a read-side critical section of the default domain. Sections nest, up to 1,023 deep. Any
 * thread may enter; its first entry registers it. Never blocks, never waits. Async-signal-safe, the
 * first entry as well.
 * Cost, with the unlock: about 1 ns; 1.9 ns while the domain's readers are fenced.
 *
 * Order: the word is published before anything inside the section is read. Fence-free, that is
 * made true by the membarrier of whoever drives a grace period; fenced, by the fence here. The
 * attention is tested after publishing (a reader that tested it before could be missed by a driver
 * that switches the mode, or parks it), in nested sections as well: a signal handler may have come
 * between the two. Sequence and attention are read with acquire, which costs nothing on x86: a
 * reader that sees a new sequence must see what was unlinked before that grace period started, and one
 * that stops fencing what was unlinked before drivers stopped counting on its fence.
 */
static inline void prudence_read_lock(void)
{
    struct prudence_reader *self = prudence_reader_self;
    uint64_t word;
    int32_t attention;

    if (__builtin_expect(!self, 0)) {
        prudence_read_lock_first();
        return;
    }
    word = __atomic_load_n(&self->word, __ATOMIC_RELAXED);
    if (__builtin_expect(word == 0, 1)) {
        /* Relaxed: this thread wrote it. */
        const struct prudence_domain_shared *shared =
            prudence_domain_shared_of(__atomic_load_n(&self->domain, __ATOMIC_RELAXED));

        prudence_slice_ask_();
        word = __atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE);
        __atomic_store_n(&self->word, word | 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        attention = __atomic_load_n(&self->attention, __ATOMIC_ACQUIRE);
        if (__builtin_expect(attention != 0, 0)) { /* out of line: beside a fence that is nothing */
            if (__builtin_expect(attention < 0, 0))
                prudence_reader_wake(self);
            else
                prudence_fence_and_count(self);
        }
        return;
    }
    word++;
    if (__builtin_expect(!(word & PRUDENCE_NESTING_MASK), 0))
        prudence_read_lock_too_deep();
    __atomic_store_n(&self->word, word, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(__atomic_load_n(&self->attention, __ATOMIC_ACQUIRE) < 0, 0))
        prudence_reader_wake(self);
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
        prudence_tell_section_ends(self);
        /* Release: what the section read is read before the word says that it is over. */
        __atomic_store_n(&self->word, 0, __ATOMIC_RELEASE);
        prudence_slice_done_();
    } else if (__builtin_expect(word == 0, 0)) {
        prudence_read_unlock_unbalanced();
    } else {
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        __atomic_store_n(&self->word, word - 1, __ATOMIC_RELAXED);
    }
}

/* Whether this thread is inside a section of the default domain. Async-signal-safe. The second: inlined. */
PRUDENCE_API bool prudence_read_lock_held(void);

static inline bool prudence_is_reading(void)
{
    const struct prudence_reader *self = prudence_reader_self;

    return self && __atomic_load_n(&self->word, __ATOMIC_RELAXED) != 0;
}

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
 * Publishes `v` in the pointer `p`: a reader that finds it there sees everything
 * that was written to *v before.
 * prudence_dereference reads a pointer that a writer may publish at the same time; inside a
 * section, what it finds stays valid until the section ends.
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
 * Reports a reader that nothing protects: an object that is deferred goes when the readers of its cache's
 * domain have left, so a thread that looks at `object` outside of their sections, or inside those of another
 * domain, uses it after its end sooner or later. Looks only under the option check=1, at objects of
 * this allocator, and reports each calling place once; else it does nothing. Compiled with
 * PRUDENCE_CHECK_READERS defined, prudence_dereference calls it. (A writer that holds the lock of its
 * updates may look without a section; it reads the pointer itself.) Async-signal-safe.
 */
PRUDENCE_API void prudence_check_reader(const void *object);

/* -------------------------------------------------------------------------------- domains */

/* How the readers of a domain tell that they are inside. */
enum prudence_domain_kind {
    PRUDENCE_DOMAIN_MEMB, /* as the default domain: read_lock/unlock, threads register themselves */
    PRUDENCE_DOMAIN_QSBR, /* readers cost nothing; threads announce quiescent states */
    PRUDENCE_DOMAIN_MANUAL, /* for tests: a grace period ends when prudence_manual_advance says so */
    PRUDENCE_DOMAIN_SRCU,   /* readers may block; counted per CPU: prudence_srcu_read_lock/unlock */
    PRUDENCE_DOMAIN_SET,    /* of domains: prudence_domain_create_set */
    PRUDENCE_DOMAIN_EXTERNAL, /* somebody else's grace periods: prudence_domain_create_external */
};

/* How a domain is made. */
struct prudence_domain_attr {
    size_t size;       /* sizeof(struct prudence_domain_attr) */
    unsigned flags;    /* 0 */
    unsigned reserved; /* 0 */
};

/*
 * Makes a domain of one of the first four kinds: readers and grace periods of their own. `name` is
 * copied (31 bytes). NULL with errno EINVAL (a message on standard error names the cause) or ENOMEM.
 *
 * Destroy, for domains of all kinds, returns 0, or an error number with the domain as it was: EBUSY while
 * a cache or a set names it, a section is open (or a thread online) there, or callbacks wait (which of
 * these is reported, once for each calling place); EINVAL for NULL and for the default domain (and that
 * of <prudence/urcu-compat.h>), which lives as long as the process. Using a destroyed domain is misuse, which the option check=1 reports
 * with the caller's address before the process aborts.
 */
PRUDENCE_API struct prudence_domain *
prudence_domain_create(const char *name, enum prudence_domain_kind kind,
                       const struct prudence_domain_attr *attr);
PRUDENCE_API int prudence_domain_destroy(struct prudence_domain *domain);
PRUDENCE_API struct prudence_domain *prudence_default_domain(void);

/*
 * As the functions above, for a domain. In a qsbr domain read_lock and read_unlock only check that
 * the thread is online; in an srcu domain they are the functions below, without the index; a set or
 * an external domain has no readers of its own (misuse). read_lock_held of a set: inside one of its
 * members.
 *
 * synchronize returns 0, or at once EDEADLK where it would wait for itself (reported with the
 * caller's address, once for each calling place): inside a section of any memb domain, while online in
 * a qsbr domain other than `domain`, or inside a section of `domain` itself. Inside sections of other
 * srcu and external domains, whose readers may block, it may be called. A thread that is online in
 * `domain` itself, or in a member of that set, is taken offline for the wait, as in liburcu.
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
 * offline before it blocks. On a domain of another kind: reported, no effect. Async-signal-safe.
 * quiescent costs about 1 ns, and a fence once a grace period.
 */
PRUDENCE_API void prudence_qsbr_online(struct prudence_domain *domain);
PRUDENCE_API void prudence_qsbr_offline(struct prudence_domain *domain);

/* What prudence_qsbr_quiescent calls when there is something to announce; the same without it. */
PRUDENCE_API void prudence_qsbr_announce(struct prudence_domain *domain);

static inline void prudence_qsbr_quiescent(struct prudence_domain *domain)
{
    const struct prudence_domain_shared *shared = prudence_domain_shared_of(domain);
    const struct prudence_reader *self = prudence_qsbr_self;

    /* The word says already what it would say: since the last time no grace period began that could
     * wait for this thread. Relaxed: a word is this thread's in this domain only if the thread itself
     * wrote so. */
    if (self && __atomic_load_n(&self->domain, __ATOMIC_RELAXED) == domain &&
        __atomic_load_n(&self->owner, __ATOMIC_RELAXED) == &prudence_qsbr_self &&
        __atomic_load_n(&self->word, __ATOMIC_RELAXED) ==
            (__atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE) | 1))
        return;
    prudence_qsbr_announce(domain);
}

/* As prudence_domain_read_lock_held of a qsbr domain, inlined: whether this thread is online there. */
static inline bool prudence_qsbr_is_online(struct prudence_domain *domain)
{
    const struct prudence_reader *self = prudence_qsbr_self;

    if (__builtin_expect(self && __atomic_load_n(&self->domain, __ATOMIC_RELAXED) == domain &&
                             __atomic_load_n(&self->owner, __ATOMIC_RELAXED) == &prudence_qsbr_self,
                         1))
        return __atomic_load_n(&self->word, __ATOMIC_RELAXED) != 0;
    return prudence_domain_read_lock_held(domain);
}

/*
 * Around a call that may block: begin takes the thread offline in the qsbr domain, and says whether it
 * was online; end, given that, brings it back. So they may stand in functions that do not know their
 * callers, and nest. Between them the thread is outside of any section of the domain: pointers
 * from before must not be used after. errno is kept.
 *
 * PRUDENCE_QSBR_BLOCKING(domain) does the same for the rest of the block that it stands in, however that
 * is left (GCC and Clang; C and C++).
 */
static inline bool prudence_qsbr_blocking_begin(struct prudence_domain *domain)
{
    bool online = prudence_domain_read_lock_held(domain);

    if (online)
        prudence_qsbr_offline(domain);
    return online;
}

static inline void prudence_qsbr_blocking_end(struct prudence_domain *domain, bool was_online)
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
 * srcu: readers may block, sleep, and stay for long; they hold up the grace periods of their own domain
 * only, so let each use have a domain of its own. read_lock gives an index, which read_unlock takes
 * back. Threads register themselves. Async-signal-safe, if a handler leaves what it entered.
 *
 * Which unlock: the same thread's, on any CPU. Sections of a thread in one domain may nest and
 * overlap (1,023 of them); all have one index and count as one section, from the first entry to the
 * last exit. The section of a thread that is gone is ended and reported; a forked child has the forking
 * thread's.
 *
 * down_read and up_read: the same for a section that one thread enters and another leaves (what the
 * request of an asynchronous input or output reads, say). Each is a section by itself; a stall
 * report cannot name its thread, implicit waits inside do not notice it (and end after wait_max), and
 * a forked child has it as well, to be left there, too.
 *
 * Order: the entry is a full fence. Cost: a locked addition at the entry and one at the exit, to a
 * counter of the CPU; none for nested sections. A wrong index is misuse.
 */
PRUDENCE_API int prudence_srcu_read_lock(struct prudence_domain *domain);
PRUDENCE_API void prudence_srcu_read_unlock(struct prudence_domain *domain, int index);
PRUDENCE_API int prudence_srcu_down_read(struct prudence_domain *domain);
PRUDENCE_API void prudence_srcu_up_read(struct prudence_domain *domain, int index);

/*
 * A set: what is deferred under it (caches may name it as their domain) is safe only when it is safe
 * in every one of `domains`. For objects that readers of several kinds see. Its grace periods are those
 * of its members; it has no readers of its own. Members may be sets, of which then the members count,
 * and are kept: destroying one is EBUSY until the set is destroyed. NULL with errno EINVAL (no name, no
 * member, a NULL among them, more than PRUDENCE_DOMAIN_SET_MAX) or ENOMEM.
 */
#define PRUDENCE_DOMAIN_SET_MAX 64
PRUDENCE_API struct prudence_domain *
prudence_domain_create_set(const char *name, struct prudence_domain *const *domains,
                           unsigned count);

/*
 * An external domain: the grace periods of another scheme, which `ops` (copied) asks for; each
 * function is given `context`. <prudence/urcu-domain.h> fills them in for liburcu.
 *  - start_poll and poll_state, both or none: begin a grace period that covers all that happened
 *    before, and say what to ask for; whether it is over. Called by any thread that allocates, defers or
 *    waits, one at a time, also inside sections; they must not wait, may allocate.
 *  - synchronize, if there is no polling: waits for a grace period. Called by a thread of the library,
 *    which is made with the domain (and in a forked child before fork returns); where a child could not
 *    have one, by a thread that waits without a deadline. Never by a thread that allocates or defers.
 *  - thread_starts and thread_ends, or NULL: called by that thread, first and last.
 *  - read_lock_held, or NULL: whether the calling thread is inside a section. Then nothing waits
 *    implicitly there, and what waits for this domain is refused. Called with no lock of ours held.
 * NULL with errno EINVAL (no name; not that size; neither polling nor synchronize; half of polling),
 * ENOMEM or EAGAIN (no thread). Destroying the domain waits for a synchronize that is under way: not inside a section.
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
 * Stalls: a reader that keeps a grace period from ending for longer than the option stall_timeout is
 * reported once, on standard error and to the hook, if there is one (NULL: none). The hook is called by
 * whoever drives the grace period, so perhaps inside an allocation or a deferral, with no lock of ours
 * held; it may use the library, but not wait for a grace period. What it is given ends when it
 * returns.
 */
struct prudence_stall {
    size_t size; /* sizeof(struct prudence_stall) */
    const char *domain;
    const char *thread_name; /* "" where `thread` is 0 */
    int thread;           /* kernel thread id; 0: no thread is known (external domain, down_read) */
    uint64_t nanoseconds; /* how long it has been in the way */
    void *const *frames;  /* return addresses, innermost first, with the option stall_trace=1 */
    unsigned frame_count; /* 0: none; the thread did not answer */
};
typedef void (*prudence_stall_hook)(const struct prudence_stall *stall, void *argument);
PRUDENCE_API void prudence_stall_hook_set(prudence_stall_hook hook, void *argument);

/* Ends one grace period of a manual domain: every cookie taken before is over. */
PRUDENCE_API void prudence_manual_advance(struct prudence_domain *domain);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_RCU_H */
