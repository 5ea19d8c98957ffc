/* SPDX-License-Identifier: MIT */
/*
 * Biased ownership of lines, without restartable sequences: the thread that uses a line most
 * owns it without an atomic operation (docs/adr/0146).
 *
 * A thread may *hold* a number: one CPU's line of each cache. It steps into a line by a store
 * in a record, and then checks that it still holds the number and that the owner word is 0.
 * No fence stands between the store and the loads. All other threads claim the line by
 * compare-and-swap of the owner word, then read the number:
 *
 *   no thread   no thread has stepped in, so the line is theirs.
 *   a record The claim, a membarrier, a check of the record's `inside`: the holder has either seen
 *            the claim, or the store is visible now.
 *   shared   The same without a membarrier. The thread that ended the hold made one after it had
 *            changed the word, so the holder before has either noticed, or the store is visible.
 *   changing Another thread does that now; the line counts as owned.
 *
 * A thread that becomes the holder stores its record, and fences before it steps in. So it sees all
 * claims of threads that found the number shared, or no thread's. Explored by
 * tests/model/source/bias_cases.c, and with the orders of C11 by tests/model/c11/src/bias.rs.
 *
 * A thread holds at most one number, at first that of its CPU. It keeps the number when it moves,
 * until a thread that finds the number held takes it away. That thread holds the number next if the
 * holder before is not inside a line. Else, and for BIAS_AFTER takes after a thread lost a number,
 * the number is shared.
 *
 * A signal handler that finds its thread's record inside, or `changing_one` set, goes to the node.
 * Otherwise it does what any code of the thread does: bias_step_in() may find that the number was
 * lost, and bias_take() may take another one, or the same again. That may happen when the thread is
 * about to step in, but has not made the store in its record. os_percpu_step_in_of() says why the
 * thread then owns no line of a number that it does not hold.
 *
 * A thread takes a number only while `os_percpu_bias` is NULL, and bias_step_in() sets that to NULL
 * only when the number is lost. So a thread that is inside a line finds its record there.
 */
#include "bias.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel_numbers.h"
#include "posix.h"

#define SHARED   ((struct os_percpu_bias *)1)
#define CHANGING ((struct os_percpu_bias *)2)

/* One for each line; NULL: none may be held. `holder` may also be SHARED, when `before` is the last
 * holder, or CHANGING. */
static struct os_percpu_number *numbers READ_MOSTLY = NULL;
static struct os_percpu_bias *records;      /* atomic */
static uint32_t record_count, free_records; /* atomic */
static uint32_t sweep_at; /* count of records at which those of ended threads are searched for */

__thread struct os_percpu_bias *os_percpu_bias __attribute__((tls_model("initial-exec")));
static __thread struct os_percpu_bias *own; /* kept when the thread loses its number */
static __thread bool changing_one;          /* this thread is in bias_take() */

static bool bias_register(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
           syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static struct os_percpu_number *numbers_make(void)
{
    struct os_percpu_number *made = os_meta_alloc(os_cpu_count() * sizeof *made);

    for (unsigned i = 0; made && i < os_cpu_count(); i++)
        made[i].offset = i * OS_PERCPU_STRIDE;
    return made;
}

COLD void bias_start(bool may)
{
    static struct os_percpu_number *made;

    /* Once made they stay, because threads hold some, also if membarrier is refused by now. Then
     * nobody takes a number away. */
    if (may && !made && bias_register())
        made = numbers_make();
    numbers = may ? made : NULL;
    os_percpu_bias = NULL;
}

/* ------------------------------------------------------------------------------------- records */

#define CHUNK 128 /* records; such a block of metadata takes no lock (os.h) */
_Static_assert(CHUNK * sizeof(struct os_percpu_bias) > OS_META_LOCK_FREE,
               "signal handlers come here");

static bool record_adopt(struct os_percpu_bias *record)
{
    int nobody = 0;

    if (load_relaxed(&record->thread) || !compare_exchange(&record->thread, &nobody, -1))
        return false;
    sub_relaxed(&free_records, 1);
    store_relaxed(&record->inside, (struct os_percpu_line *)NULL);
    store_relaxed(&record->process, os_process_id());
    store_release(&record->thread, os_thread_id());
    return true;
}

/* Frees the records of threads that have ended. They ended inside no line. */
static void records_sweep(void)
{
    uint32_t live = 0;

    for (struct os_percpu_bias *at = load_acquire(&records); at; at = at->next) {
        int thread = load_acquire(&at->thread);

        if (thread <= 0)
            continue;
        if (load_relaxed(&at->process) != os_process_id() || os_thread_exists(thread))
            live++;
        else if (compare_exchange(&at->thread, &thread, 0))
            add_relaxed(&free_records, 1);
    }
    store_relaxed(&sweep_at, 2 * live + CHUNK);
}

static bool records_make(void)
{
    struct os_percpu_bias *chunk = os_meta_alloc(CHUNK * sizeof *chunk);

    if (!chunk)
        return false;
    for (unsigned i = 0; i + 1 < CHUNK; i++)
        chunk[i].next = &chunk[i + 1];
    add_relaxed(&free_records, CHUNK);
    add_relaxed(&record_count, CHUNK);
    chunk[CHUNK - 1].next = load_relaxed(&records);
    while (!compare_exchange(&records, &chunk[CHUNK - 1].next, chunk))
        ;
    return true;
}

/* Returns a record for the calling thread. Returns NULL if there is no memory. */
static struct os_percpu_bias *record_get(void)
{
    if (!load_relaxed(&free_records) && load_relaxed(&record_count) >= load_relaxed(&sweep_at))
        records_sweep();
    if (!load_relaxed(&free_records) && !records_make())
        return NULL;
    for (struct os_percpu_bias *at = load_acquire(&records); at; at = at->next)
        if (record_adopt(at))
            return at;
    return NULL;
}

/* ----------------------------------------------------------------------------------- the holder */

struct os_percpu_line *bias_step_in(void *lines)
{
    struct os_percpu_bias *hold = os_percpu_bias;
    const struct os_percpu_number *number;
    const struct os_percpu_bias *holder;
    struct os_percpu_line *line;

    if (unlikely(!hold))
        return NULL; /* since the caller looked, a signal handler has found the number lost */
    if (unlikely(load_relaxed(&hold->inside) != NULL))
        return NULL; /* in a signal handler */
    /* Loaded once, because of signal handlers; os_percpu_step_in_of() has the proof. */
    number = load_relaxed(&hold->number);
    line = (void *)((char *)lines + number->offset);
    store_relaxed(&hold->inside, line);
    /* The membarrier of a thread that claims the line is the fence here. */
    compiler_barrier();
    holder = load_relaxed(&number->holder);
    /* Acquire: sees all that the last owner did. */
    if (likely(holder == hold) && likely(load_acquire(&line->owner) == 0))
        return line;
    /* While CHANGING, perhaps the fence will fail, and the thread stays the holder. If the record
     * has another number, a handler took that after the load above, and the thread holds it. */
    if (holder != hold && holder != CHANGING && load_relaxed(&hold->number) == number)
        os_percpu_bias = NULL;
    /* Comes last, because then a handler may take a number. */
    store_release(&hold->inside, (struct os_percpu_line *)NULL);
    return NULL;
}

/* Fences all threads, and keeps errno, because free does. Returns false if calls are few or the
 * system refuses. The process is registered. */
static bool bias_fence(void)
{
    int saved_errno = errno;
    bool fenced = os_is_single_threaded() ||
                  (!os_calls_are_few() &&
                   syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);

    errno = saved_errno;
    return fenced;
}

/* Makes this thread the holder of a number that it has set to CHANGING. */
static void bias_begin(unsigned number)
{
    store_relaxed(&own->number, &numbers[number]);
    /* Release: a thread that shares the number, and finds no holder before, sees what that one did
     * inside. It has left, as bias_end() has acquired. */
    store_release(&numbers[number].before, (struct os_percpu_bias *)NULL);
    store_release(&numbers[number].holder, own);
    os_full_fence(); /* before this thread checks whether a line is claimed */
    os_percpu_bias = own;
}

static bool bias_is_empty(const struct os_percpu_bias *hold)
{
    return !hold || !load_acquire(&hold->inside);
}

/* Ends the hold of the thread that had the number before it was set to CHANGING. */
static void bias_end(struct os_percpu_number *number, struct os_percpu_bias *before, bool may_hold)
{
    if (before == SHARED)
        before = load_relaxed(&number->before);
    else if (before && before != own && !bias_fence()) {
        store_release(&number->holder, before);
        return;
    }
    if (may_hold && bias_is_empty(before)) {
        bias_begin((unsigned)(number - numbers));
        return;
    }
    store_relaxed(&number->before, before);
    store_release(&number->holder, SHARED);
}

void bias_take(unsigned number, bool may_hold)
{
    struct os_percpu_bias *holder;

    if (!numbers || changing_one || os_calls_are_few())
        return;
    holder = load_acquire(&numbers[number].holder);
    if (holder == CHANGING || (!may_hold && (!holder || holder == SHARED)))
        return;
    changing_one = true;
    compiler_barrier();
    if (!own)
        own = record_get();
    /* A handler may have taken a number before `changing_one` was set. */
    if (own && !os_percpu_bias && compare_exchange(&numbers[number].holder, &holder, CHANGING))
        bias_end(&numbers[number], holder, may_hold);
    compiler_barrier();
    changing_one = false;
}

/* ---------------------------------------------------------------------------- all other threads */

bool bias_is_out(const struct os_percpu_line *line, bool may_fence)
{
    const struct os_percpu_number *number = numbers ? &numbers[line->cpu] : NULL;
    const struct os_percpu_bias *holder;

    if (!number)
        return true;
    /* Sequentially consistent, after the claim, which is too: see bias_begin(). */
    holder = __atomic_load_n(&number->holder, __ATOMIC_SEQ_CST);
    if (!holder)
        return true;
    if (holder == CHANGING)
        return false;
    if (holder == SHARED)
        holder = load_acquire(&number->before); /* pairs with bias_begin */
    else if (holder != own && !(may_fence && bias_fence()))
        return false;
    return !holder || load_acquire(&holder->inside) != line;
}

static void wait_until_out(const struct os_percpu_bias *hold)
{
    const struct os_percpu_line *line = load_acquire(&hold->inside);

    while (line && load_acquire(&hold->inside) == line)
        os_sleep_ns(1000);
}

bool bias_all_are_out(void)
{
    bool fenced;

    if (!numbers || os_is_single_threaded())
        return !own || bias_is_empty(own);
    if (own && !bias_is_empty(own))
        return false;
    fenced = bias_fence();
    if (!fenced)
        posix_let_sequences_end(); /* long enough for a store to become visible */
    for (const struct os_percpu_bias *at = load_acquire(&records); at; at = at->next)
        wait_until_out(at);
    return fenced;
}

/* Returns whether the number's holder, or a thread that shares it and may be inside a line, is in
 * the child. A thread that changes it now may be there. */
static bool bias_lives_on(const struct os_percpu_number *number, bool whole)
{
    const struct os_percpu_bias *holder = load_acquire(&number->holder);

    if (holder == SHARED)
        holder = load_acquire(&number->before);
    else if (holder && holder == os_percpu_bias)
        return true;
    if (holder == CHANGING)
        return !whole;
    return holder && os_thread_lives_in_child(holder->thread, whole);
}

/* The calling thread remains, and its id is new. Others remain if the child was noticed late. */
void posix_bias_fork_child(bool whole)
{
    if (numbers && !os_calls_are_few())
        bias_register();
    for (unsigned i = 0; numbers && i < os_cpu_count(); i++)
        if (!bias_lives_on(&numbers[i], whole))
            numbers[i].holder = numbers[i].before = NULL;
    for (struct os_percpu_bias *at = records; at; at = at->next) {
        if (at == own) {
            at->thread = os_thread_id();
            at->process = os_process_id();
            continue;
        }
        if (os_thread_lives_in_child(at->thread, whole))
            continue;
        if (at->thread)
            add_relaxed(&free_records, 1);
        at->inside = NULL;
        at->thread = 0;
    }
}
