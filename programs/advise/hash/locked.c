/* SPDX-License-Identifier: MIT */
/*
 * Mechanisms that lock, by the thesis' names: global, globalrw, bkt, bktcl, bktrw, brlock; and
 * ideal, which does not lock and is for one thread. The reader-writer lock is one word changed by
 * compare-and-swap, as in the thesis; a waiting writer keeps further readers out.
 */
#include "loops.h"

#include <stdlib.h>

#include "operations.h"

/* Each mechanism uses one of these two locks. */
struct line {
    pthread_spinlock_t spin;
    uint32_t word; /* a reader-writer lock */
} __attribute__((aligned(HASH_LINE)));

struct alone {
    struct line lock;
} __attribute__((aligned(APART)));

static struct alone gate,
    *of_threads; /* brlock: `gate` keeps two writers from taking the others crosswise */
static struct line *of_buckets;

/* --------------------------------------------------------------------------- reader-writer lock */

enum { RW_WRITER = 1, RW_WAITING = 2, RW_READER = 4 };

static inline void pause_a_moment(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* Acquire, to see the changes of the last writer. */
static inline void rw_read_lock(uint32_t *word)
{
    for (;;) {
        uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

        if (!(seen & (RW_WRITER | RW_WAITING)) &&
            __atomic_compare_exchange_n(word, &seen, seen + RW_READER, true, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return;
        pause_a_moment();
    }
}

/* Release, so that all reads precede the next writer. */
static inline void rw_read_unlock(uint32_t *word)
{
    __atomic_fetch_sub(word, RW_READER, __ATOMIC_RELEASE);
}

static inline void rw_write_lock(uint32_t *word)
{
    for (;;) {
        uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
        bool is_free = !(seen & ~(uint32_t)RW_WAITING);

        if ((is_free || !(seen & RW_WAITING)) &&
            __atomic_compare_exchange_n(word, &seen, is_free ? RW_WRITER : seen | RW_WAITING, true,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) &&
            is_free)
            return;
        pause_a_moment();
    }
}

/* The mark of a waiting writer stays. */
static inline void rw_write_unlock(uint32_t *word)
{
    __atomic_fetch_sub(word, RW_WRITER, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------------------- each mechanism */

/* A constant in each mechanism's loop, so that the compiler leaves only that mechanism there. */
enum locking { IDEAL, GLOBAL, GLOBALRW, BKT, BKTCL, BKTRW, BRLOCK };

INLINED struct line *line_of(const struct bucket *bucket)
{
    return &of_buckets[bucket - hash_buckets];
}

INLINED bool takes_spin(enum locking locking)
{
    return locking == GLOBAL || locking == BKT || locking == BKTCL || locking == BRLOCK;
}

/* Returns the spin lock for a search in the bucket. Except under brlock, an update takes the
 * same. */
INLINED pthread_spinlock_t *spin_of(enum locking locking, const struct crew_member *self,
                                    struct bucket *bucket)
{
    switch (locking) {
    case BKT:
        return &line_of(bucket)->spin;
    case BKTCL:
        return &bucket->lock;
    case BRLOCK:
        return &of_threads[self->number].lock.spin;
    default:
        return &gate.lock.spin;
    }
}

INLINED bool takes_word(enum locking locking)
{
    return locking == GLOBALRW || locking == BKTRW;
}

/* Returns the reader-writer lock of the bucket. */
INLINED uint32_t *word_of(enum locking locking, const struct bucket *bucket)
{
    return locking == BKTRW ? &line_of(bucket)->word : &gate.lock.word;
}

static inline void brlock_lock_all(void)
{
    pthread_spin_lock(&gate.lock.spin);
    for (uint64_t i = 0; i < hash_load.threads; i++)
        pthread_spin_lock(&of_threads[i].lock.spin);
}

static inline void brlock_unlock_all(void)
{
    for (uint64_t i = 0; i < hash_load.threads; i++)
        pthread_spin_unlock(&of_threads[i].lock.spin);
    pthread_spin_unlock(&gate.lock.spin);
}

INLINED void read_begin(enum locking locking, struct crew_member *self, struct bucket *bucket)
{
    if (takes_spin(locking))
        pthread_spin_lock(spin_of(locking, self, bucket));
    if (takes_word(locking))
        rw_read_lock(word_of(locking, bucket));
}

INLINED void read_end(enum locking locking, struct crew_member *self, struct bucket *bucket)
{
    if (takes_spin(locking))
        pthread_spin_unlock(spin_of(locking, self, bucket));
    if (takes_word(locking))
        rw_read_unlock(word_of(locking, bucket));
}

INLINED void write_begin(enum locking locking, struct crew_member *self, struct bucket *bucket)
{
    if (locking == BRLOCK)
        brlock_lock_all();
    else if (takes_spin(locking))
        pthread_spin_lock(spin_of(locking, self, bucket));
    if (takes_word(locking))
        rw_write_lock(word_of(locking, bucket));
}

INLINED void write_end(enum locking locking, struct crew_member *self, struct bucket *bucket)
{
    if (locking == BRLOCK)
        brlock_unlock_all();
    else if (takes_spin(locking))
        pthread_spin_unlock(spin_of(locking, self, bucket));
    if (takes_word(locking))
        rw_write_unlock(word_of(locking, bucket));
}

/* ------------------------------------------------------------------------------------- the loop */

INLINED void look_up(enum locking locking, struct crew_member *self, uint64_t key, bool checked)
{
    struct bucket *bucket = bucket_of(key);

    read_begin(locking, self, bucket);
    if (checked)
        check_reader_in(self, bucket);
    search(self, bucket, key, checked);
    if (checked)
        check_reader_out(bucket);
    read_end(locking, self, bucket);
    self->done++;
}

INLINED void remove_and_add(enum locking locking, struct crew_member *self, uint64_t key,
                            bool checked)
{
    struct bucket *bucket = bucket_of(key);
    struct element *element;

    write_begin(locking, self, bucket);
    if (checked)
        check_writer_in(self, bucket, true);
    element = take_out(self, bucket, key, checked);
    if (checked)
        check_writer_out(self, bucket);
    write_end(locking, self, bucket);
    self->done++;
    if (!element)
        return;
    put_spare(self, element);
    element = get_spare(self);
    fill_in(self, element, key, checked);
    write_begin(locking, self, bucket);
    if (checked)
        check_writer_in(self, bucket, true);
    prudence_list_add_rcu(&element->link, &bucket->chain);
    if (checked)
        check_writer_out(self, bucket);
    write_end(locking, self, bucket);
    self->done++;
}

INLINED void loop(enum locking locking, struct crew_member *self, uint64_t operations, bool checked)
{
    uint64_t pairs_below = hash_load.pairs_below, mask = hash_load.buckets - 1;
    uint64_t until = self->done + operations;

    while (self->done < until) {
        bool updates = crew_random(self) < pairs_below;
        uint64_t key = crew_random(self) & mask;

        if (updates)
            remove_and_add(locking, self, key, checked);
        else
            look_up(locking, self, key, checked);
    }
}

#define MECHANISM(name, locking)                                                                   \
    void name##_work(struct crew_member *self, uint64_t operations)                                \
    {                                                                                              \
        loop(locking, self, operations, false);                                                    \
    }                                                                                              \
    void name##_work_checked(struct crew_member *self, uint64_t operations)                        \
    {                                                                                              \
        loop(locking, self, operations, true);                                                     \
    }

MECHANISM(ideal, IDEAL)
MECHANISM(global, GLOBAL)
MECHANISM(globalrw, GLOBALRW)
MECHANISM(bkt, BKT)
MECHANISM(bktcl, BKTCL)
MECHANISM(bktrw, BKTRW)
MECHANISM(brlock, BRLOCK)

static void *memory_of(uint64_t count, size_t size)
{
    void *memory = aligned_alloc(APART, (count * size + APART - 1) / APART * APART);

    if (!memory)
        hash_fault("no memory for the locks");
    return memory;
}

static void make_free(struct line *line)
{
    pthread_spin_init(&line->spin, PTHREAD_PROCESS_PRIVATE);
    line->word = 0;
}

void locked_prepare(void)
{
    of_buckets = memory_of(hash_load.buckets, sizeof *of_buckets);
    of_threads = memory_of(hash_load.threads, sizeof *of_threads);
    for (uint64_t i = 0; i < hash_load.buckets; i++)
        make_free(&of_buckets[i]);
    for (uint64_t i = 0; i < hash_load.threads; i++)
        make_free(&of_threads[i].lock);
    make_free(&gate.lock);
    hash_fill(hash_element_of_memory);
}
