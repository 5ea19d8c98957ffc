/* SPDX-License-Identifier: MIT */
/* Takes per-CPU lines, and chooses between rseq and the lock fallback (see os_percpu.h). */
#include <sys/syscall.h>
#include <unistd.h>

#include "bias.h"
#include "kernel_numbers.h"
#include "os/os.h"
#include "posix.h"
#include "rseq_area.h"
#include "sequence_test.h"

/* Aligning the first variable aligns the whole section. */
bool os_percpu_rseq READ_MOSTLY __attribute__((aligned(CACHE_LINES_APART))) = false;
ptrdiff_t os_percpu_rseq_offset READ_MOSTLY = 0;
#ifdef os_percpu_cpus
struct prudence_inline_cache os_percpu_words READ_MOSTLY = {.cpus = 1};
#else
uint32_t os_percpu_cpus READ_MOSTLY = 1;
#endif
void *os_percpu_owned_lines READ_MOSTLY = NULL;
const char *os_percpu_why_not READ_MOSTLY = NULL;
void *os_percpu_nothing[OS_PERCPU_STACK_MAX + 1];
_Static_assert(OS_CACHE_OBJECTS_MAX <= OS_PERCPU_STACK_MAX,
               "a closed stack is read as deep as an open one");

#if OS_PERCPU_HAS_RSEQ
/* Stands in for the kernel's struct rseq if glibc has none or it is not used. Each thread's
 * dummy says that the thread runs on CPU 0, forever. */
static _Thread_local struct {
    uint32_t cpu_id_start, cpu_id;
    uint64_t rseq_cs;
} dummy_rseq;
#endif

/*
 * The number of a thread's CPU, where the kernel does not keep it up to date in struct rseq and
 * asking for it is dear: a system call on AArch64. The thread keeps it for some takes. With locks
 * an old number is right for any purpose, and only slower if a thread on that CPU works there.
 */
#define UNKNOWN_NUMBER  UINT32_MAX
#define TAKES_A_LOOK_UP 256
static _Thread_local struct {
    uint32_t number; /* UNKNOWN_NUMBER at first */
    uint32_t takes;  /* remaining before the thread asks again */
} kept_number = {.number = UNKNOWN_NUMBER, .takes = 0};

/* Source of the numbers that takes without sequences use; constant after start. */
static enum number_source {
    NUMBERS_ASKED, /* os_cpu_current() each time, because a test injects them */
    NUMBERS_KEPT,
    NUMBERS_BY_KERNEL /* struct rseq is registered, although sequences are not used */
} number_source READ_MOSTLY = NUMBERS_ASKED;

#if defined(__SANITIZE_THREAD__)
#define RACE_DETECTOR_BUILD true
#else
#define RACE_DETECTOR_BUILD false
#endif

#define LOCAL_TAKES 3 /* tried before a remote take */

static const char KERNEL_IS_BROKEN[] = "the kernel does not restart sequences";

static bool glibc_failed_to_register(void)
{
    return posix_rseq_area.known && posix_rseq_area.size == 0;
}

static bool glibc_registered(void)
{
    return OS_PERCPU_HAS_RSEQ && posix_rseq_area.known && posix_rseq_area.size != 0;
}

static bool membarrier_rseq(unsigned cpu)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, MEMBARRIER_CMD_FLAG_CPU,
                   cpu) == 0;
}

static ptrdiff_t offset_without_rseq(void)
{
#if OS_PERCPU_HAS_RSEQ
    return (char *)&dummy_rseq - os_percpu_thread_pointer();
#else
    return 0;
#endif
}

static void *owned_lines_make(size_t count)
{
    char *lines = os_meta_alloc(count * OS_PERCPU_STRIDE);

    if (!lines)
        os_panic("no memory to start");
    for (size_t i = 0; i < count; i++) {
        struct os_percpu_line *line = (struct os_percpu_line *)(lines + i * OS_PERCPU_STRIDE);

        os_percpu_line_init(line, (unsigned)i);
        line->owner = (uintptr_t)lines;
    }
    return lines;
}

/* Tests the kernel with this thread's struct rseq, if that is registered. */
static const char *why_kernel_is_refused(void)
{
    enum sequence_verdict verdict;

    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0) != 0 ||
        !membarrier_rseq(0))
        return "no membarrier for sequences";
    /* cppcheck-suppress nullPointerArithmetic; not where there are no sequences */
    verdict = posix_sequence_verdict(os_percpu_thread_pointer() + posix_rseq_area.offset);
    if (verdict == SEQUENCES_RESTART)
        return NULL;
    return verdict == SEQUENCES_GO_ON ? KERNEL_IS_BROKEN : "the kernel could not be tested";
}

/* Returns why sequences may not be used, or NULL if they may. */
static const char *why_not(bool wanted)
{
    if (!OS_PERCPU_HAS_RSEQ)
        return "not on this processor";
    if (RACE_DETECTOR_BUILD)
        return "ThreadSanitizer does not see them";
    if (!wanted)
        return "option rseq=0 or sandbox=1";
    if (!posix_rseq_area.known)
        return "the C library has none";
    if (glibc_failed_to_register())
        return "not registered by the C library";
    return why_kernel_is_refused();
}

COLD void posix_percpu_start(bool wanted)
{
    static bool said;

    if (!os_percpu_owned_lines)
        os_percpu_owned_lines = owned_lines_make(os_cpu_count());
    os_percpu_rseq = false;
    os_percpu_rseq_offset = offset_without_rseq();
    os_percpu_why_not = why_not(wanted);
    os_percpu_rseq = !os_percpu_why_not;
    os_percpu_cpus = os_percpu_rseq ? os_cpu_count() : 0;
    number_source = glibc_registered() ? NUMBERS_BY_KERNEL : NUMBERS_KEPT;
    bias_start(!os_percpu_rseq && !RACE_DETECTOR_BUILD);
    if (os_percpu_rseq)
        os_percpu_rseq_offset = posix_rseq_area.offset;
    if (os_percpu_why_not != KERNEL_IS_BROKEN || said)
        return;
    said = true;
    os_report(
        "this kernel does not restart preempted sequences (rseq; Linux 6.19 to 7.0 on AArch64), so "
        "per-CPU caches are protected by locks. Linux 7.1 restarts them");
}

void posix_topology_inject(unsigned cpus, unsigned nodes, unsigned (*current)(void))
{
    posix_cpu_inject(cpus, nodes, current);
    os_percpu_cpus = 0;
    os_percpu_rseq = false;
    os_percpu_why_not = "injected topology";
    posix_threads_injected = cpus;
    number_source = NUMBERS_ASKED;
    bias_start(false);
}

/* Relaxed: the fence that follows orders these stores before any section that begins afterwards.
 * A local take may have committed over the claim by now, and may even have released the line,
 * which then stays closed until the next release. */
static void close_line(struct os_percpu_line *line)
{
    store_relaxed(&line->pop_from, os_percpu_nothing + 1);
    store_relaxed(&line->stack_limit, (uint64_t)0);
    store_relaxed(&line->ring_stop, (uint64_t)0);
}

bool os_percpu_claim(struct os_percpu_line *line, const void *token)
{
    uintptr_t nobody = 0;

    /* Acquire: sees everything the last owner did before it released. */
    if (load_relaxed(&line->owner) != 0 || os_percpu_is_inside(line) ||
        !compare_exchange(&line->owner, &nobody, (uintptr_t)token))
        return false;
    if (os_percpu_rseq && OS_PERCPU_CLOSES)
        close_line(line);
    return true;
}

bool os_percpu_confirm(const struct os_percpu_line *line, const void *token)
{
    return load_acquire(&line->owner) == (uintptr_t)token;
}

void os_percpu_unclaim(struct os_percpu_line *line, const void *token)
{
    uintptr_t ours = (uintptr_t)token;

    /* Release, as in os_percpu_release. */
    if (os_percpu_rseq)
        compare_exchange(&line->owner, &ours, (uintptr_t)0);
    else if (os_percpu_confirm(line, token))
        os_percpu_release(line);
}

/* Returns whether sequences of other threads may be under way. False if the caller is the only
 * thread. */
static bool others_run(void)
{
    return os_percpu_rseq && !os_is_single_threaded();
}

static uint32_t refused; /* set if membarrier and sched_setaffinity failed after start; atomic */

bool os_percpu_reaches_others(void)
{
    return !others_run() || (!os_calls_are_few() && !load_relaxed(&refused));
}

bool os_percpu_fence_all(void)
{
    if (!os_percpu_rseq)
        return bias_all_are_out();
    if (!others_run())
        return true;
    if (os_percpu_reaches_others()) {
        if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0) == 0 ||
            posix_visit_cpus())
            return true;
        store_relaxed(&refused, 1u);
    }
    posix_let_sequences_end();
    return false;
}

static struct os_percpu_line *line_here(void *lines)
{
    return (void *)((char *)lines + os_cpu_current() * OS_PERCPU_STRIDE);
}

/* A single interruption is rare, and several in a row mean that a debugger steps. Then, and if
 * this thread can run no section, takes the line as if from another CPU. */
static struct os_percpu_line *take_with_rseq(void *lines, const void *token)
{
    struct os_percpu_line *line;

    for (unsigned i = 0; i < LOCAL_TAKES; i++) {
        line = os_percpu_take_rseq(&lines, (uintptr_t)token);
        if (likely(line != NULL))
            return line;
        if (load_relaxed(&line_here(lines)->owner) != 0)
            return NULL;
    }
    line = line_here(lines);
    return os_percpu_take_remote(line, token) ? line : NULL;
}

/* Returns the number of this thread's CPU, or an old one. */
static uint32_t number_known(void)
{
    if (likely(number_source == NUMBERS_BY_KERNEL))
        return os_percpu_number_at(posix_rseq_area.offset);
    return number_source == NUMBERS_KEPT && kept_number.takes ? kept_number.number : UNKNOWN_NUMBER;
}

static uint32_t number_look_up(void)
{
    kept_number.number = os_cpu_current();
    kept_number.takes = TAKES_A_LOOK_UP;
    return kept_number.number;
}

static struct os_percpu_line *take_by_number(void *lines, const void *token)
{
    uint32_t number = number_known();
    struct os_percpu_line *line;

    if (unlikely(!kept_number.takes) || unlikely(number >= os_cpu_count())) {
        number = number_look_up();
        if (number_source != NUMBERS_ASKED)
            bias_take(number, true);
    } else {
        kept_number.takes--;
    }
    if (os_percpu_bias)
        return bias_step_in(lines);
    line = (void *)((char *)lines + number * OS_PERCPU_STRIDE);
    if (unlikely(!os_percpu_claim(line, token))) {
        if (number_source == NUMBERS_KEPT)
            number_look_up(); /* perhaps the thread has moved; its next take succeeds */
        return NULL;
    }
    if (likely(bias_is_out(line, false)))
        return line;
    os_percpu_release(line);
    bias_take(number, false); /* for the next take */
    return NULL;
}

struct os_percpu_line *os_percpu_take(void *lines, const void *token)
{
    struct os_percpu_line *line;

    if (os_percpu_rseq)
        return take_with_rseq(lines, token);
    if (likely(os_percpu_bias)) {
        line = bias_step_in(lines);
        if (likely(line) || os_percpu_bias)
            return line;
    }
    return take_by_number(lines, token);
}

bool os_percpu_take_remote(struct os_percpu_line *line, const void *token)
{
    if (!os_percpu_reaches_others() || !os_percpu_claim(line, token))
        return false;
    if (os_percpu_rseq ? others_run() && !membarrier_rseq(line->cpu) && !os_percpu_fence_all()
                       : !bias_is_out(line, true)) {
        os_percpu_unclaim(line, token);
        return false;
    }
    return os_percpu_confirm(line, token);
}
