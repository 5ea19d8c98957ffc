/* SPDX-License-Identifier: MIT */
/*
 * Hazard pointers: a reader names the one object that it is about to use, and only that object
 * waits. A reader that stays for ever keeps as many objects from being freed as it has slots; a
 * section of <prudence/rcu.h> would keep all objects that are deferred during it.
 *
 *     struct prudence_hazard *hazard = prudence_hazard_acquire();
 *     struct route *route = prudence_hazard_protect(hazard, &current);
 *     ... use *route ...
 *     prudence_hazard_release(hazard);
 *
 * The objects belong to a cache whose domain is of kind PRUDENCE_DOMAIN_HAZARD (<prudence/rcu.h>
 * makes domains), and writers defer them as ever: unlink, then prudence_cache_free_deferred(). An
 * object of any other domain is not protected. An object waits while a slot of any thread holds an
 * address inside it, so marks in the low bits of a pointer do no harm. An object of another kind
 * is retired with a deleter (prudence_hazard_retire). Tables and logs need sections, so none can be
 * made in such a domain.
 *
 * A slot names one object at a time. Rules for readers:
 *   - An object is protected from a call of protect or try_protect that found it, until the slot
 *     names something else, names nothing, or is released.
 *   - prudence_hazard_set() names an object without a check of where it is linked. That protects an
 *     object that is still linked when the caller checks after the call, or that this thread has
 *     from its allocation. It does not protect an object because another slot does: the two slots
 *     may be read while neither names it. Within a row it does, from a lower slot to a higher
 *     one (prudence_hazard_acquire_row), because a row is read from its lowest slot up.
 *
 * The conventions of <prudence/prudence.h> apply. All functions but prudence_hazard_retire and
 * prudence_hazard_reclaim may be called in signal handlers, if a handler itself releases every slot
 * that it acquires. Inlined ones never wait and make no system call. docs/adr/0152 has the reasons,
 * the figures, and the proof's place.
 */
#ifndef PRUDENCE_HAZARD_H
#define PRUDENCE_HAZARD_H

#include <prudence/language.h>
#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A slot. Its fields are private, and public only so that readers can be inlined. */
struct prudence_hazard {
    const void *name; /* written by the slot's user; read by threads that search for names */
    uint32_t fenced;  /* users fence after they wrote `name`; atomic */
    uint32_t reserved;
};

/* The slots of one record, which fills two cache lines. A thread has one record, or several. */
#define PRUDENCE_HAZARDS 7

struct prudence_hazards {
    uint32_t free;     /* bits of the free slots; its thread and that thread's handlers */
    uint32_t returned; /* bits of slots that other threads have released; atomic */
    int32_t thread;    /* kernel id of the thread; 0: free; atomic */
    uint32_t movable;  /* bits of slots that prudence_hazard_acquire_movable() gave; as `free` */
    struct prudence_hazard slots[PRUDENCE_HAZARDS];
} __attribute__((aligned(128)));

#ifndef PRUDENCE_THREAD_LOCAL
#define PRUDENCE_THREAD_LOCAL __thread
#endif

/* This thread's record, or NULL before the first slot. */
PRUDENCE_API extern PRUDENCE_THREAD_LOCAL struct prudence_hazards *prudence_hazards_self
    __attribute__((tls_model("initial-exec")));

PRUDENCE_API struct prudence_hazard *prudence_hazard_acquire_slow(void);
PRUDENCE_API struct prudence_hazard *prudence_hazard_acquire_movable_slow(void);
PRUDENCE_API void prudence_hazard_release_slow(struct prudence_hazard *hazard);

static inline struct prudence_hazards *prudence_hazard_record_(const struct prudence_hazard *hazard)
{
    return PRUDENCE_CAST(struct prudence_hazards *,
                         PRUDENCE_CAST(uintptr_t, hazard) & ~PRUDENCE_CONVERT(uintptr_t, 127));
}

/*
 * Add bits to `free` or `movable`, and remove bits that are set. Each is one instruction, or begins
 * anew after a signal. A load and a store would undo what a handler between them changes: one that
 * finds no free slot takes back those that other threads have returned. Only the record's thread
 * changes these words, so no lock is needed.
 */
static inline void prudence_hazard_add_bits_(uint32_t *word, uint32_t bits)
{
#if defined(__x86_64__)
    __asm__ __volatile__("orl %1, %0" : "+m"(*word) : "r"(bits) : "cc");
#elif defined(__aarch64__)
    uint32_t changed, failed;

    __asm__ __volatile__("0: ldxr %w0, %2; orr %w0, %w0, %w3; stxr %w1, %w0, %2; cbnz %w1, 0b"
                         : "=&r"(changed), "=&r"(failed), "+Q"(*word)
                         : "r"(bits));
#else
    __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
#endif
}

static inline void prudence_hazard_remove_bits_(uint32_t *word, uint32_t bits)
{
#if defined(__x86_64__)
    __asm__ __volatile__("xorl %1, %0" : "+m"(*word) : "r"(bits) : "cc");
#elif defined(__aarch64__)
    uint32_t changed, failed;

    __asm__ __volatile__("0: ldxr %w0, %2; bic %w0, %w0, %w3; stxr %w1, %w0, %2; cbnz %w1, 0b"
                         : "=&r"(changed), "=&r"(failed), "+Q"(*word)
                         : "r"(bits));
#else
    __atomic_fetch_and(word, ~bits, __ATOMIC_RELAXED);
#endif
}

/* Returns the slot of the lowest bit. (As an index it would cost gcc one instruction more.) */
static inline struct prudence_hazard *prudence_hazard_lowest_(struct prudence_hazards *record,
                                                              uint32_t bits)
{
    return PRUDENCE_CAST(struct prudence_hazard *,
                         PRUDENCE_CAST(char *, record->slots) +
                             PRUDENCE_CONVERT(size_t, __builtin_ctz(bits)) *
                                 sizeof(struct prudence_hazard));
}

#ifdef PRUDENCE_THREAD_SANITIZER
void __tsan_release(void *address);
#endif

/* Returns the address by which ThreadSanitizer knows the slot. */
static inline void *prudence_hazard_mark_(struct prudence_hazard *hazard)
{
    return PRUDENCE_CAST(char *, hazard) + 1;
}

/* Informs ThreadSanitizer that this thread no longer uses the object that the slot named. */
static inline void prudence_hazard_tell_(struct prudence_hazard *hazard)
{
#ifdef PRUDENCE_THREAD_SANITIZER
    __tsan_release(prudence_hazard_mark_(hazard));
#else
    (void)hazard;
#endif
}

/* ---------------------------------------------------------------------------------- slots */

/*
 * Returns a free slot, which names nothing. The slot is the calling thread's until it releases the
 * slot; any number may be held. Returns NULL with errno ENOMEM; the first 7 slots of each of the
 * first 127 threads need no memory. The slots of a thread that is gone are given back; if one still
 * names an object, this is reported, and the protection ends. Destructors of thread-specific data
 * may go on to use the thread's slots. A forked child has the slots of the thread that forked.
 * Costs about 1 ns with the release.
 *
 * A handler that comes between the load and the change of `free` leaves the slot free.
 */
PRUDENCE_INLINE struct prudence_hazard *prudence_hazard_acquire(void)
{
    struct prudence_hazards *self = prudence_hazards_self;
    uint32_t free = self ? __atomic_load_n(&self->free, __ATOMIC_RELAXED) : 0;

    if (__builtin_expect(!free, 0))
        return prudence_hazard_acquire_slow();
    prudence_hazard_remove_bits_(&self->free, free & -free);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return prudence_hazard_lowest_(self, free);
}

/*
 * Returns a slot that any thread may use and release, one at a time, and that stays as it is when
 * the thread ends that acquired it. A forked child has all of these slots; those that a thread
 * acquired which the child does not have, and which had not ended before, name nothing there. A
 * slot that is never released keeps its object for ever. Otherwise as prudence_hazard_acquire().
 */
PRUDENCE_INLINE struct prudence_hazard *prudence_hazard_acquire_movable(void)
{
    struct prudence_hazards *self = prudence_hazards_self;
    uint32_t free = self ? __atomic_load_n(&self->free, __ATOMIC_RELAXED) : 0;

    if (__builtin_expect(!free, 0))
        return prudence_hazard_acquire_movable_slow();
    prudence_hazard_remove_bits_(&self->free, free & -free);
    prudence_hazard_add_bits_(&self->movable, free & -free);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return prudence_hazard_lowest_(self, free);
}

/*
 * Returns the first of `count` movable slots that lie side by side (slot[0] to slot[count - 1]).
 * While slot[i] protects an object, prudence_hazard_set(slot + j, object) protects the object as
 * well, for each j > i, also after slot[i] names something else. So a walk along a list keeps its
 * last nodes: it copies upwards. Each slot is released by prudence_hazard_release(). Returns NULL
 * with errno EINVAL if `count` is 0 or above PRUDENCE_HAZARDS, or ENOMEM. Costs a few system calls,
 * and a check of all records.
 */
PRUDENCE_API struct prudence_hazard *prudence_hazard_acquire_row(unsigned count);

/* Has the slot name nothing, and gives it back. NULL is ignored. A second release, and a use after
 * the release, are reported with check=1, and some of them always. */
PRUDENCE_INLINE void prudence_hazard_release(struct prudence_hazard *hazard)
{
    struct prudence_hazards *self = prudence_hazards_self;
    uint32_t bit;

    if (__builtin_expect(!hazard || prudence_hazard_record_(hazard) != self, 0)) {
        prudence_hazard_release_slow(hazard);
        return;
    }
    bit = UINT32_C(1) << (hazard - self->slots);
    prudence_hazard_tell_(hazard);
    __atomic_store_n(&hazard->name, PRUDENCE_NULL, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&self->movable, __ATOMIC_RELAXED) & bit)
        prudence_hazard_remove_bits_(&self->movable, bit);
    prudence_hazard_add_bits_(&self->free, bit);
}

/* --------------------------------------------------------------------------------- readers */

/*
 * Has the slot name `object`, or nothing if that is NULL. The object that the slot named before is
 * no longer protected; see the rules above for `object`. Costs below 1 ns, some 2 ns more while
 * readers are fenced (the option reader_mode, or a system without membarrier).
 *
 * Order: release, so that uses of the object named before come first. A check of the object's link
 * that follows comes after the name is visible: by the membarrier of a thread that searches for
 * names, or by the fence here. `fenced` is read after the name was written and with acquire, for
 * the reasons given at prudence_read_lock().
 */
PRUDENCE_INLINE void prudence_hazard_set(struct prudence_hazard *hazard, const void *object)
{
    prudence_hazard_tell_(hazard);
    __atomic_store_n(&hazard->name, object, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(__atomic_load_n(&hazard->fenced, __ATOMIC_ACQUIRE) != 0, 0)) {
#if defined(__x86_64__)
        __asm__ __volatile__("lock; addl $0, %0" : "+m"(hazard->reserved)::"memory", "cc");
#else
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
    }
}

/* Has the slot name nothing. */
PRUDENCE_INLINE void prudence_hazard_reset(struct prudence_hazard *hazard)
{
    prudence_hazard_tell_(hazard);
    __atomic_store_n(&hazard->name, PRUDENCE_NULL, __ATOMIC_RELEASE);
}

/*
 * Names *pointer, then reads *source, where writers link objects, and stores what it found in
 * *pointer. Returns true if both were the same: then the object is protected. Otherwise the slot
 * names nothing. `source` must not be in memory that may be freed during the call, unless another
 * slot protects that. Costs 1 ns more than a section of <prudence/rcu.h> at most.
 */
PRUDENCE_INLINE bool prudence_hazard_try_protect(struct prudence_hazard *hazard, void **pointer,
                                                 void *const *source)
{
    void *wanted = *pointer, *found;

    prudence_hazard_set(hazard, wanted);
    found = __atomic_load_n(source, __ATOMIC_ACQUIRE);
    *pointer = found;
    if (__builtin_expect(found == wanted, 1))
        return true;
    prudence_hazard_reset(hazard);
    return false;
}

/* Protects the object that *source links, and returns it, or NULL if there is none. Tries again
 * while writers replace the object at the same time. */
PRUDENCE_INLINE void *prudence_hazard_protect(struct prudence_hazard *hazard, void *const *source)
{
    void *found = __atomic_load_n(source, __ATOMIC_RELAXED);

    while (!prudence_hazard_try_protect(hazard, &found, source))
        ;
    return found;
}

/* ----------------------------------------------------------------- objects that need a deleter */

/* Member of an object, or apart from it. Belongs to the library until `func` is called. */
struct prudence_hazard_head {
    struct prudence_hazard_head *next;
    const void *object;
    size_t size;
    void (*func)(struct prudence_hazard_head *head);
};

/*
 * Calls func(head) once no slot names an address in the `size` bytes at `object` (0 counts as 1).
 * Call it after the object is unlinked; each object is retired once. It never fails. Some of these
 * calls, in any thread, call the deleters of objects that were retired before, with no lock of the
 * library held; a deleter may do whatever the caller may, also retire. About 1,000 objects or 1 MB
 * wait at a time, or twice as many as slots name if that is more, whatever readers do; each thread
 * that calls deleters has taken up to 8 more. Not in signal handlers. A forked child does not
 * call deleters that another thread was about to call. With check=1, a head that waits already is
 * reported, often also without.
 */
PRUDENCE_API void prudence_hazard_retire(struct prudence_hazard_head *head, const void *object,
                                         size_t size,
                                         void (*func)(struct prudence_hazard_head *head));

/*
 * Calls the deleters of all objects that were retired before and that no slot names. Returns the
 * number of those that wait on. Waits for no reader; objects whose deleters run on another thread
 * at this moment count as gone. Not in signal handlers.
 */
PRUDENCE_API size_t prudence_hazard_reclaim(void);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_HAZARD_H */
