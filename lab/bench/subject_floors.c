/* SPDX-License-Identifier: MIT */
/*
 * What a pair cannot be faster than: the loop alone, an array of the thread, and restartable
 * sequences that only count. None of them is an allocator; each hands out one object again and
 * again, and defers nothing.
 *
 * Sequences are x86-64's, with the frame of <prudence/sequences.h>. Without them, and where the C
 * library has registered none, these floors are skipped (floors_have_sequences).
 */
#include <stdlib.h>
#include <unistd.h>

#include <prudence/sequences.h>

#include "floors.h"
#include "sized_pool.h"

#define ARRAY_SLOTS 64 /* a few, so that a pop finds an object and a push has room */
#define RING_MASK   255
#define TURN        0x10000 /* adds one to the tail in a packed word */

static __thread char *own_object; /* the object of the bare loop and of the sequences */

static __thread struct {
    unsigned count;
    void *slot[ARRAY_SLOTS];
} array;

static void *object_make(void)
{
    void *object = aligned_alloc(CACHE_LINE, MAX_SIZE);

    if (!object)
        abort();
    return object;
}

static void start_object(void)
{
    own_object = object_make();
}

static void start_array(void)
{
    while (array.count < ARRAY_SLOTS / 2)
        array.slot[array.count++] = object_make();
}

static void pool_destroy(union pool pool)
{
    (void)pool;
}

static inline void read_nothing(void)
{
}

static inline void *own_object_of(union pool pool)
{
    (void)pool;
    return own_object;
}

static inline void retire_nothing(union pool pool, void *object)
{
    (void)pool;
    (void)object;
}

/* Only the loops of the scenario pairs, tight; choice.c offers no others. */
#define FLOOR_FAMILY(name, prepare, thread, sequences, take, give, both)                           \
    static const struct operations name##_operations = {                                           \
        .pool_create = pool_create,                                                                \
        .pool_destroy = pool_destroy,                                                              \
        .allocate = (take),                                                                        \
        .retire = (give),                                                                          \
        .replace = (both),                                                                         \
        .read_lock = read_nothing,                                                                 \
        .read_unlock = read_nothing,                                                               \
    };                                                                                             \
    FAMILY_LOOP(name, pairs)                                                                       \
    FAMILY_LOOP(name, read)                                                                        \
    const struct family name##_family = {                                                          \
        .library = "floor",                                                                        \
        .version = "",                                                                             \
        .floor = true,                                                                             \
        .needs_sequences = (sequences),                                                            \
        .start = (prepare),                                                                        \
        .thread_start = (thread),                                                                  \
        .operations = &name##_operations,                                                          \
        .loops = {[LOOP_PAIRS] = name##_pairs, [LOOP_READ] = name##_read},                         \
    };

FLOOR_FAMILY(floor_loop, NULL, start_object, false, own_object_of, retire_nothing, NULL)

/* -------------------------------------------------------------------------- the thread's array */

static inline void *pop(union pool pool)
{
    (void)pool;
    return array.count ? array.slot[--array.count] : NULL;
}

static inline void push(union pool pool, void *object)
{
    (void)pool;
    if (array.count < ARRAY_SLOTS)
        array.slot[array.count++] = object;
}

FLOOR_FAMILY(floor_array, NULL, start_array, false, pop, push, NULL)

/* noipa: the caller knows nothing of the function, as of one in a shared library. */
#if defined(__clang__)
#define CALLED __attribute__((noinline, optnone))
#else
#define CALLED __attribute__((noipa))
#endif

static CALLED void *pop_called(union pool pool)
{
    return pop(pool);
}

static CALLED void push_called(union pool pool, void *object)
{
    push(pool, object);
}

FLOOR_FAMILY(floor_array_called, NULL, start_array, false, pop_called, push_called, NULL)

/* ------------------------------------------------------------------------------- the sequences */

#if defined(PRUDENCE_HAS_SEQUENCES) && defined(__x86_64__)

extern const ptrdiff_t __rseq_offset __attribute__((weak)); /* glibc has both since 2.35 */
extern const unsigned int __rseq_size __attribute__((weak));

/* A CPU's line, 256 bytes. A counter, or with `packed` both ends: tail << 16 | objects on the
 * stack. */
struct line {
    uint64_t word;
    void **stack, **ring;
} __attribute__((aligned(PRUDENCE_LINE_STRIDE)));

#define LINES 4096 /* CPUs; on another one a sequence gives up, so then there is no such floor */

static struct line lines[LINES];

bool floors_have_sequences(void)
{
    return &__rseq_size && &__rseq_offset && __rseq_size && sysconf(_SC_NPROCESSORS_CONF) <= LINES;
}

/* Adds one to the counter of this CPU's line: what each sequence has to do at least. */
static inline __attribute__((always_inline)) void count_here(ptrdiff_t rseq)
{
    __asm__ __volatile__(PRUDENCE_RSEQ_BEGIN("jmp 2f\n\t")
                         "cmpl %[cpus], %%ecx\n\t"
                         "jae 2f\n\t"
                         "shlq $8, %%rcx\n\t"
                         "addq %[lines], %%rcx\n\t"
                         "movq (%%rcx), %%rdx\n\t"
                         "incq %%rdx\n\t"
                         "movq %%rdx, (%%rcx)\n"
                         "2:"
                         :
                         : [lines] "r"(lines), [cpus] "i"(LINES), [rseq] "r"(rseq)
                         : "memory", "cc", "rcx", "rdx");
}

/*
 * Takes the object on top of this CPU's stack and appends `old` to the ring, and commits both by
 * one store. The stack keeps the object, because no thread brings one back.
 */
static inline __attribute__((always_inline)) void *swap_here(void *old, ptrdiff_t rseq)
{
    void *object;

    __asm__ __volatile__(PRUDENCE_RSEQ_BEGIN(PRUDENCE_RSEQ_NO_RESULT(
        "object")) "cmpl %[cpus], %%ecx\n\t"
                   "jae 4b\n\t"
                   "shlq $8, %%rcx\n\t"
                   "addq %[lines], %%rcx\n\t"
                   "movq (%%rcx), %%rdx\n\t"
                   "movq 8(%%rcx), %[object]\n\t"
                   "movzwl %%dx, %%esi\n\t"
                   "movq -8(%[object],%%rsi,8), %[object]\n\t"
                   "movq %%rdx, %%rsi\n\t"
                   "shrq $16, %%rsi\n\t"
                   "andl %[mask], %%esi\n\t"
                   "movq 16(%%rcx), %%r8\n\t"
                   "movq %[old], (%%r8,%%rsi,8)\n\t"
                   "addq %[turn], %%rdx\n\t"
                   "movq %%rdx, (%%rcx)\n"
                   "2:"
                         : [object] "=&r"(object)
                         : [lines] "r"(lines), [cpus] "i"(LINES), [mask] "i"(RING_MASK),
                           [turn] "i"(TURN), [old] "r"(old), [rseq] "r"(rseq)
                         : "memory", "cc", "rcx", "rdx", "rsi", "r8");
    return object;
}

/* Each line has an object of its own, so that two writers share none. */
static void start_packed(struct run *run)
{
    static char objects[LINES][2 * CACHE_LINE];
    static void *stacks[LINES][1], *rings[LINES][RING_MASK + 1];

    (void)run;
    for (long i = 0; i < sysconf(_SC_NPROCESSORS_CONF); i++) {
        stacks[i][0] = objects[i];
        lines[i] = (struct line){.word = 1, .stack = stacks[i], .ring = rings[i]};
    }
}

static inline void *count_and_take(union pool pool)
{
    count_here(__rseq_offset);
    return own_object_of(pool);
}

static inline void count_and_give(union pool pool, void *object)
{
    (void)pool;
    (void)object;
    count_here(__rseq_offset);
}

/* A sequence that was interrupted gave up; then the slow path would serve the pair. */
static inline void *swap_pair(union pool pool, void *old)
{
    void *object = swap_here(old, __rseq_offset);

    return __builtin_expect(!object, 0) ? own_object_of(pool) : object;
}

FLOOR_FAMILY(floor_rseq, NULL, start_object, true, count_and_take, retire_nothing, NULL)
FLOOR_FAMILY(floor_two_rseqs, NULL, start_object, true, count_and_take, count_and_give, NULL)
FLOOR_FAMILY(floor_packed_rseq, start_packed, start_object, true, own_object_of, retire_nothing,
             swap_pair)

#else

bool floors_have_sequences(void)
{
    return false;
}

FLOOR_FAMILY(floor_rseq, NULL, start_object, true, own_object_of, retire_nothing, NULL)
FLOOR_FAMILY(floor_two_rseqs, NULL, start_object, true, own_object_of, retire_nothing, NULL)
FLOOR_FAMILY(floor_packed_rseq, NULL, start_object, true, own_object_of, retire_nothing, NULL)

#endif
