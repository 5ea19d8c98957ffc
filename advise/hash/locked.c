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

#define UNUSED __attribute__((unused))

INLINED void ideal_begin(UNUSED struct crew_member *self, UNUSED struct bucket *bucket)
{
}

INLINED void ideal_end(UNUSED struct crew_member *self, UNUSED struct bucket *bucket)
{
}

INLINED void global_begin(UNUSED struct crew_member *self, UNUSED struct bucket *bucket)
{
    pthread_spin_lock(&gate.lock.spin);
}

INLINED void global_end(UNUSED struct crew_member *self, UNUSED struct bucket *bucket)
{
    pthread_spin_unlock(&gate.lock.spin);
}

INLINED void globalrw_read_begin(UNUSED struct crew_member *self, UNUSED struct bucket *bucket)
{
    rw_read_lock(&gate.lock.word);
}

INLINED void globalrw_read_end(UNUSED struct crew_member *self, UNUSED struct bucket *bucket)
{
    rw_read_unlock(&gate.lock.word);
}

INLINED void globalrw_write_begin(UNUSED struct crew_member *self, UNUSED struct bucket *bucket)
{
    rw_write_lock(&gate.lock.word);
}

INLINED void globalrw_write_end(UNUSED struct crew_member *self, UNUSED struct bucket *bucket)
{
    rw_write_unlock(&gate.lock.word);
}

INLINED struct line *line_of(const struct bucket *bucket)
{
    return &of_buckets[bucket - hash_buckets];
}

INLINED void bkt_begin(UNUSED struct crew_member *self, struct bucket *bucket)
{
    pthread_spin_lock(&line_of(bucket)->spin);
}

INLINED void bkt_end(UNUSED struct crew_member *self, struct bucket *bucket)
{
    pthread_spin_unlock(&line_of(bucket)->spin);
}

INLINED void bktcl_begin(UNUSED struct crew_member *self, struct bucket *bucket)
{
    pthread_spin_lock(&bucket->lock);
}

INLINED void bktcl_end(UNUSED struct crew_member *self, struct bucket *bucket)
{
    pthread_spin_unlock(&bucket->lock);
}

INLINED void bktrw_read_begin(UNUSED struct crew_member *self, struct bucket *bucket)
{
    rw_read_lock(&line_of(bucket)->word);
}

INLINED void bktrw_read_end(UNUSED struct crew_member *self, struct bucket *bucket)
{
    rw_read_unlock(&line_of(bucket)->word);
}

INLINED void bktrw_write_begin(UNUSED struct crew_member *self, struct bucket *bucket)
{
    rw_write_lock(&line_of(bucket)->word);
}

INLINED void bktrw_write_end(UNUSED struct crew_member *self, struct bucket *bucket)
{
    rw_write_unlock(&line_of(bucket)->word);
}

INLINED void brlock_read_begin(struct crew_member *self, UNUSED struct bucket *bucket)
{
    pthread_spin_lock(&of_threads[self->number].lock.spin);
}

INLINED void brlock_read_end(struct crew_member *self, UNUSED struct bucket *bucket)
{
    pthread_spin_unlock(&of_threads[self->number].lock.spin);
}

INLINED void brlock_write_begin(UNUSED struct crew_member *self, UNUSED struct bucket *bucket)
{
    pthread_spin_lock(&gate.lock.spin);
    for (uint64_t i = 0; i < hash_load.threads; i++)
        pthread_spin_lock(&of_threads[i].lock.spin);
}

INLINED void brlock_write_end(UNUSED struct crew_member *self, UNUSED struct bucket *bucket)
{
    for (uint64_t i = 0; i < hash_load.threads; i++)
        pthread_spin_unlock(&of_threads[i].lock.spin);
    pthread_spin_unlock(&gate.lock.spin);
}

/* ------------------------------------------------------------------------------------- the loop */

typedef void step_function(struct crew_member *self, struct bucket *bucket);

INLINED void look_up(struct crew_member *self, uint64_t key, step_function *begin,
                     step_function *end, bool checked)
{
    struct bucket *bucket = bucket_of(key);

    begin(self, bucket);
    if (checked)
        check_reader_in(self, bucket);
    search(self, bucket, key, checked);
    if (checked)
        check_reader_out(bucket);
    end(self, bucket);
    self->done++;
}

INLINED void remove_and_add(struct crew_member *self, uint64_t key, step_function *begin,
                            step_function *end, bool checked)
{
    struct bucket *bucket = bucket_of(key);
    struct element *element;

    begin(self, bucket);
    if (checked)
        check_writer_in(self, bucket, true);
    element = take_out(self, bucket, key, checked);
    if (checked)
        check_writer_out(self, bucket);
    end(self, bucket);
    self->done++;
    if (!element)
        return;
    put_spare(self, element);
    element = get_spare(self);
    fill_in(self, element, key, checked);
    begin(self, bucket);
    if (checked)
        check_writer_in(self, bucket, true);
    prudence_list_add_rcu(&element->link, &bucket->chain);
    if (checked)
        check_writer_out(self, bucket);
    end(self, bucket);
    self->done++;
}

INLINED void loop(struct crew_member *self, uint64_t operations, step_function *read_begin,
                  step_function *read_end, step_function *write_begin, step_function *write_end,
                  bool checked)
{
    uint64_t pairs_below = hash_load.pairs_below, mask = hash_load.buckets - 1;
    uint64_t until = self->done + operations;

    while (self->done < until) {
        bool updates = crew_random(self) < pairs_below;
        uint64_t key = crew_random(self) & mask;

        if (updates)
            remove_and_add(self, key, write_begin, write_end, checked);
        else
            look_up(self, key, read_begin, read_end, checked);
    }
}

#define MECHANISM(name, read_begin, read_end, write_begin, write_end)                              \
    void name##_work(struct crew_member *self, uint64_t operations)                                \
    {                                                                                              \
        loop(self, operations, read_begin, read_end, write_begin, write_end, false);               \
    }                                                                                              \
    void name##_work_checked(struct crew_member *self, uint64_t operations)                        \
    {                                                                                              \
        loop(self, operations, read_begin, read_end, write_begin, write_end, true);                \
    }

MECHANISM(ideal, ideal_begin, ideal_end, ideal_begin, ideal_end)
MECHANISM(global, global_begin, global_end, global_begin, global_end)
MECHANISM(globalrw, globalrw_read_begin, globalrw_read_end, globalrw_write_begin,
          globalrw_write_end)
MECHANISM(bkt, bkt_begin, bkt_end, bkt_begin, bkt_end)
MECHANISM(bktcl, bktcl_begin, bktcl_end, bktcl_begin, bktcl_end)
MECHANISM(bktrw, bktrw_read_begin, bktrw_read_end, bktrw_write_begin, bktrw_write_end)
MECHANISM(brlock, brlock_read_begin, brlock_read_end, brlock_write_begin, brlock_write_end)

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
