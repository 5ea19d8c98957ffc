/* SPDX-License-Identifier: MIT */
/*
 * The system below the explored sources: the used part of os.h, and everything that shim.h
 * redirects. There are two CPUs and one node; time passes when all threads sleep; memory always
 * suffices, and is never freed.
 */
#include <linux/membarrier.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "explorer.h"
#include "shim.h"

#define HERE __builtin_return_address(0)

#include "guard/annotate.h"
#include "os/os.h"
#include "posix.h"
#include "slab/extension.h"
#include "slab/reuse.h"

size_t os_page_size = OS_PAGE_SIZE;

/* No thread asks for longer time slices: these change when threads run, which is explored
 * anyway. */
bool os_slices;
uint32_t os_later_wanted;

/* All system calls are allowed, unless a case says otherwise; other threads exist. */
uint32_t os_calls;

/* No other process asks for anything. */
uint64_t os_asked;

void os_asked_act(void)
{
}

bool os_is_single_threaded(void)
{
    return false;
}

bool os_calls_widen_slow(void)
{
    return true;
}

int os_thread_id(void)
{
    return explore_gettid();
}

int posix_thread_id_known(void)
{
    return explore_gettid();
}

int os_process_id(void)
{
    return 1;
}

void posix_process_note(void)
{
}

/* Options of src/guard, which is not explored. */
bool check_wanted, annotate_on;

/* No tool is attached. */
bool annotate_root_begins(const void *place, size_t bytes)
{
    (void)place, (void)bytes;
    return false;
}

void annotate_root_ends(const void *place, size_t bytes)
{
    (void)place, (void)bytes;
}

/* The embedding program defines these, src/runtime in the library. Here there are no extensions. */
const struct slab_extension *const slab_extensions[OS_EXTENSIONS]; /* none */
const struct reuse_upcalls reuse_upcalls;                          /* none */

static bool to_one(uint64_t *value, uint64_t operand, uint64_t expected)
{
    if (*value != expected)
        return false;
    *value = operand;
    return true;
}

static bool to_zero(uint64_t *value, uint64_t operand, uint64_t expected)
{
    (void)operand, (void)expected;
    *value = 0;
    return true;
}

int explore_mutex_trylock(pthread_mutex_t *mutex)
{
    return explore_update(mutex, 4, to_one, 1, 0, EXPLORE_ACQUIRE, EXPLORE_ACQUIRE, HERE) != 0;
}

int explore_mutex_lock(pthread_mutex_t *mutex)
{
    while (explore_mutex_trylock(mutex))
        explore_block(mutex, 4, 1, false);
    return 0;
}

int explore_mutex_unlock(pthread_mutex_t *mutex)
{
    explore_update(mutex, 4, to_zero, 0, 0, EXPLORE_RELEASE, EXPLORE_RELAXED, HERE);
    explore_wake(mutex);
    return 0;
}

/* Values of *once: 0 not begun, 1 running, 2 done. */
int explore_once(pthread_once_t *once, void (*body)(void))
{
    uint64_t before = explore_update(once, 4, to_one, 1, 0, EXPLORE_ACQUIRE, EXPLORE_ACQUIRE, HERE);

    if (before == 0) {
        body();
        explore_store(once, 4, 2, EXPLORE_SEQ_CST, HERE);
        explore_wake(once);
    }
    while (before == 1) {
        explore_block(once, 4, 1, false);
        before = explore_load(once, 4, EXPLORE_ACQUIRE, HERE);
    }
    return 0;
}

/* Ignores the destructor, because the exit of threads is not explored. */
int explore_key_create(pthread_key_t *key, void (*destroy)(void *))
{
    (void)destroy;
    *key = 0;
    return 0;
}

int explore_setspecific(pthread_key_t key, const void *value)
{
    (void)key, (void)value;
    return 0;
}

/* There are no signals. */
int explore_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    (void)how, (void)set, (void)old;
    return 0;
}

pthread_t explore_pthread_self(void)
{
    return explore_self() + 1;
}

pid_t explore_gettid(void)
{
    return (pid_t)(explore_self() + 100);
}

void explore_pause(void)
{
    explore_yield(1);
}

/* Implements membarrier; every thread that is asked about exists. */
long explore_syscall(long number, ...)
{
    va_list arguments;
    int command;

    if (number != SYS_membarrier)
        return 0;
    va_start(arguments, number);
    command = va_arg(arguments, int);
    va_end(arguments);
    if (command != MEMBARRIER_CMD_PRIVATE_EXPEDITED &&
        command != MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ)
        return 0;
    explore_remote_fence(command == MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, HERE);
    return 0;
}

/* ----------------------------------------------------------------------------------------- os.h */

unsigned os_cpu_count(void)
{
    return 2;
}

/* Maps CPUs without a line to the first one's or the second's. */
unsigned os_cpu_current(void)
{
    return explore_cpu() % 2;
}

unsigned os_thread_count(void)
{
    return 0;
}

unsigned os_node_count(void)
{
    return 1;
}

unsigned os_node_of_cpu(unsigned cpu)
{
    (void)cpu;
    return 0;
}

/* Does not wait, because nothing may rely on the wait. */
void posix_let_sequences_end(void)
{
}

bool posix_visit_cpus(void)
{
    return false;
}

uint64_t os_clock_ns(void)
{
    return explore_clock();
}

uint64_t os_clock_coarse_ns(void)
{
    return explore_clock();
}

uint64_t os_clock_boot_ns(void)
{
    return explore_clock();
}

bool os_thread_exists(int thread)
{
    (void)thread;
    return true;
}

bool os_thread_wants_cpu(int thread, bool *wants, uint64_t *had)
{
    (void)thread, (void)wants, (void)had;
    return false;
}

bool os_thread_is_newer(int thread, uint64_t boot_ns)
{
    (void)thread, (void)boot_ns;
    return false;
}

void os_sleep_ns(uint64_t nanoseconds)
{
    explore_yield(nanoseconds);
}

bool os_thread_start(const char *name, int cpu, size_t stack, void (*body)(void *argument),
                     void *argument)
{
    (void)name, (void)cpu, (void)stack;
    explore_daemon(body, argument);
    return true;
}

static uint64_t update(uint32_t *word, uint64_t value, uint64_t expected)
{
    return explore_update(word, 4, to_one, value, expected, EXPLORE_SEQ_CST, EXPLORE_SEQ_CST, HERE);
}

uint32_t explore_waited;

void posix_word_wait(uint32_t *word, uint32_t value, uint64_t nanoseconds)
{
    explore_block(word, 4, value, nanoseconds != 0);
    explore_wake(&explore_waited);
}

void os_word_wait(uint32_t *word, uint32_t value, uint64_t nanoseconds)
{
    posix_word_wait(word, value, nanoseconds);
}

void os_word_wake(uint32_t *word)
{
    explore_wake(word);
}

/* Wakes all of them, because a block may end without a reason. */
void posix_word_wake(uint32_t *word, unsigned count)
{
    (void)count;
    explore_wake(word);
}

void os_word_wake_some(uint32_t *word, unsigned count)
{
    posix_word_wake(word, count);
}

/* Without a timeout, so that a word that is not passed on is a thread that waits for ever. */
int posix_word_lock(uint32_t *word, uint64_t nanoseconds)
{
    uint64_t self = (uint64_t)explore_gettid(), before;

    (void)nanoseconds;
    while ((before = update(word, self, 0)) != 0) {
        uint64_t awaited = before | POSIX_WORD_AWAITED;

        if (before == awaited || update(word, awaited, before) == before)
            explore_block(word, 4, awaited, false);
    }
    return 0;
}

void posix_word_pass_on(uint32_t *word)
{
    uint64_t self = (uint64_t)explore_gettid();

    if (update(word, 0, self) != self)
        update(word, 0, self | POSIX_WORD_AWAITED);
    explore_wake(word);
}

bool (*os_memory_fails)(void);

void *os_meta_alloc(size_t bytes)
{
    return explore_alloc(bytes);
}

void *os_meta_alloc_as(size_t bytes, os_alloc_flags flags)
{
    (void)flags;
    return explore_alloc(bytes);
}

void os_meta_free(void *meta, size_t bytes)
{
    explore_free(meta, bytes);
}

bool os_meta_purge(void *meta, size_t bytes)
{
    (void)meta, (void)bytes;
    return false;
}

void os_meta_note_untouched(int64_t bytes)
{
    (void)bytes;
}

void *os_arrays_alloc(size_t bytes)
{
    return explore_alloc(bytes);
}

void os_arrays_free(void *arrays, size_t bytes)
{
    explore_free(arrays, bytes);
}

void os_report(const char *format, ...)
{
    (void)format;
}

void os_report_misuse(const char *format, ...)
{
    (void)format;
}

void os_panic(const char *format, ...)
{
    char text[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    explore_fail("panic: %s", text);
}

void os_abort(void)
{
    explore_fail("the library aborts");
}

void os_thread_trace_start(void)
{
}

void os_thread_name(int thread, char name[OS_THREAD_NAME_MAX])
{
    (void)thread;
    name[0] = '\0';
}

unsigned os_thread_trace(int thread, void **frames, unsigned count, uint64_t patience)
{
    (void)thread, (void)frames, (void)count, (void)patience;
    return 0;
}

void os_trace_print(void *const *frames, unsigned count)
{
    (void)frames, (void)count;
}

/* -------------------------------------------------------------------- pages, and who owns them */

void **os_page_map[PAGE_MAP_LEAVES];
static void
    *arena_owners[EXPLORE_ARENA_BYTES / OS_PAGE_SIZE]; /* the beginning of the arena's leaf */

void *os_page_owner_by_chunk(const void *address)
{
    return os_page_owner_of_object(address);
}

void system_start(void)
{
    os_page_map[EXPLORE_ARENA >> PAGE_MAP_LEAF_SHIFT] = arena_owners;
    explore_keep(os_page_map, sizeof os_page_map);
}

bool os_page_owner_prepare(const void *pages, size_t bytes)
{
    (void)pages, (void)bytes;
    return true;
}

bool os_page_owner_set(void *pages, size_t bytes, void *owner)
{
    for (size_t at = 0; at < bytes; at += OS_PAGE_SIZE)
        arena_owners[((uintptr_t)pages - EXPLORE_ARENA + at) / OS_PAGE_SIZE] = owner;
    return true;
}

void os_page_owner_resize(void *pages, size_t bytes, void *new_pages, size_t new_bytes, void *owner)
{
    (void)pages, (void)bytes, (void)new_pages, (void)new_bytes, (void)owner;
}

void *os_pages_alloc_as(size_t bytes, size_t alignment, unsigned node, bool *zeroed,
                        os_alloc_flags flags)
{
    (void)node, (void)flags;
    if (zeroed)
        *zeroed = true;
    return explore_alloc_aligned(bytes, alignment);
}

void *os_pages_alloc(size_t bytes, size_t alignment, unsigned node, bool *zeroed)
{
    return os_pages_alloc_as(bytes, alignment, node, zeroed, OS_ALLOC_DEFAULT);
}

void *os_pages_resize(void *pages, size_t bytes, size_t wanted, void *owner)
{
    (void)pages, (void)bytes, (void)wanted, (void)owner;
    return NULL;
}

/* No block has margins here. */
bool os_pages_protect(void *pages, size_t bytes, bool closed)
{
    (void)pages, (void)bytes, (void)closed;
    return false;
}

bool os_pages_cut(void *pages, size_t bytes)
{
    (void)pages, (void)bytes;
    return false;
}

void os_pages_free(void *pages, size_t bytes)
{
    explore_free(pages, bytes);
}

/* There are no windows here, because they serve inlined code, which is not explored. */
struct os_window *os_window_make(size_t bytes, struct os_window_words *words)
{
    (void)bytes, (void)words;
    return NULL;
}

void os_window_unmake(struct os_window *window)
{
    (void)window;
}

void *os_window_take(struct os_window *window, bool *zeroed)
{
    (void)window, (void)zeroed;
    return NULL;
}

void os_window_note(struct os_window *window, const void *pages, bool live, uint64_t slabs)
{
    (void)window, (void)pages, (void)live, (void)slabs;
}

bool os_window_has(const struct os_window *window, const void *pages)
{
    (void)window, (void)pages;
    return false;
}

__thread bool os_in_mapping_call;

uint64_t os_pages_spare(void)
{
    return UINT64_MAX;
}

uint64_t os_pages_kept(void)
{
    return 0;
}

bool os_pages_decay(void)
{
    return false;
}

bool os_pages_decaying(void)
{
    return false;
}

size_t os_pages_trim(void)
{
    return 0;
}

uint64_t os_memory_allowed(void)
{
    return 0;
}

bool os_memory_is_short(void)
{
    return false;
}

/* ------------------------------------------------------------------------------------ idle work */

void os_idle_start(bool (*work)(void))
{
    (void)work;
}

void os_idle_kick(void)
{
}

bool os_idle_seen(unsigned cpu)
{
    (void)cpu;
    return true;
}

bool os_idle_move_to(unsigned cpu)
{
    return cpu == os_cpu_current();
}

/* --------------------------------------------------------------------------- restartable sequences
 * As in os_percpu_x86_64.h, operation for operation. Interrupted sequences give up. A thread stays
 * on the same CPU. */

/* Returns NULL if that CPU has no line. */
static struct os_percpu_line *begin_section(void *const *lines)
{
    explore_interrupted();
    if (explore_cpu() >= os_cpu_count())
        return NULL;
    return (void *)((char *)*lines + os_cpu_current() * OS_PERCPU_STRIDE);
}

static uint64_t look(const void *word)
{
    return explore_load(word, 8, EXPLORE_RELAXED, HERE);
}

/* Loads with acquire, because x86-64 makes no later load earlier. */
static uint64_t look_first(const void *word)
{
    return explore_load(word, 8, EXPLORE_ACQUIRE, HERE);
}

void *os_percpu_pop(void *const *lines)
{
    struct os_percpu_line *line = begin_section(lines);
    void **from, *object;
    uint64_t word;

    if (!line)
        return NULL;
    from = (void **)look_first(&line->pop_from);
    word = look(&line->stack_word);
    object = (void *)look(&from[(int64_t)(word & STACK_COUNT_MASK) - 1]);
    return object && explore_commit(&line->stack_word, 8, word + STACK_POP, HERE) ? object : NULL;
}

bool os_percpu_push(void *const *lines, void *object)
{
    struct os_percpu_line *line = begin_section(lines);
    uint64_t limit, word;
    void **slot;

    if (!line)
        return false;
    limit = look_first(&line->stack_limit);
    word = look(&line->stack_word);
    if ((word & STACK_COUNT_MASK) >= limit)
        return false;
    slot = (void **)look(&line->stack) + (word & STACK_COUNT_MASK);
    if (look(slot - 1) == (uintptr_t)object)
        return false;
    return explore_commit(slot, 8, (uintptr_t)object, HERE) &&
           explore_commit(&line->stack_word, 8, word + 1, HERE);
}

bool os_percpu_append(void *const *lines, void *object)
{
    struct os_percpu_line *line = begin_section(lines);
    uint64_t stop, tail;

    if (!line)
        return false;
    stop = look_first(&line->ring_stop);
    tail = look(&line->ring_tail);
    if (tail >= stop)
        return false;
    return explore_commit((void *)(look(&line->ring_turn) + 8 * tail), 8, (uintptr_t)object,
                          HERE) &&
           explore_commit(&line->ring_tail, 8, tail + 1, HERE);
}

uint32_t os_percpu_number_at(ptrdiff_t rseq)
{
    (void)rseq;
    return os_cpu_current();
}

struct os_percpu_line *os_percpu_take_rseq(void *const *lines, uintptr_t token)
{
    struct os_percpu_line *line = begin_section(lines);

    if (!line || look_first(&line->owner))
        return NULL;
    if (explore_commit(&line->pop_from, 8, (uintptr_t)(os_percpu_nothing + 1), HERE) &&
        explore_commit(&line->stack_limit, 8, 0, HERE) &&
        explore_commit(&line->ring_stop, 8, 0, HERE) &&
        explore_commit(&line->owner, 8, token, HERE))
        return line;
    return NULL;
}

void *os_percpu_remove(void *const *lines, unsigned cpu, uint64_t expected_head)
{
    struct os_percpu_line *line = begin_section(lines);
    void *object;

    if (!line || cpu != explore_cpu() || look_first(&line->owner) ||
        look(&line->ring_head) != expected_head)
        return NULL;
    object = (void *)look(&((void **)look(
        &line->ring))[expected_head & explore_load(&line->ring_mask, 4, EXPLORE_RELAXED, HERE)]);
    return explore_commit(&line->ring_head, 8, expected_head + 1, HERE) ? object : NULL;
}
