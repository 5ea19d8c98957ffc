/* SPDX-License-Identifier: MIT */
/*
 * Start and end of the process.
 *
 * For fork see fork.c. Exit with objects outstanding needs no action, because the system takes the
 * pages; neither does exec. The library is never unloaded (os/posix/stay_loaded.c).
 */
#include <prudence/prudence.h>

#include "gp/user/process_life.h"
#include "gp/user/readers.h"
#include "gp/user/stall.h"
#include "heap/background.h"
#include "heap/harmless.h"
#include "heap/size_class.h"
#include "heap/upcalls.h"
#include "posix.h"
#include "process.h"
#include "process/fork.h"
#include "process/options.h"
#include "process/sandbox.h"
#include "report.h"
#include "rseq_area.h"
#include "slab/double_free.h"
#include "slab/preflush.h"
#include "slab/reclaim/decay.h"
#include "slab/start.h"

static const char version[] = PRUDENCE_VERSION;

const char *prudence_version(void)
{
    return version;
}

/*
 * Returns whether another copy of the library comes first in symbol look-up, so that calls, or the
 * thread-local pointers of inline readers, go to that copy. This copy must then refuse all calls:
 * objects deferred here would be reused while readers that only the other copy sees still hold
 * them. Functions and pointers may belong to different copies, because a linker's -Bsymbolic binds
 * functions to their own module, but not thread-local variables. libprudence-malloc is linked so on
 * purpose: it has no inline readers, and serves malloc wherever it comes in the order.
 */
static bool is_superseded(void)
{
    return prudence_version() != version || (readers_are_superseded() && !process_is_malloc);
}

static void start_the_only_copy(void)
{
    if (is_superseded())
        os_panic(
            "a call came to one copy of the library (%p), but readers of the process use another "
            "one: link one copy only, or all of the static library (--whole-archive) without "
            "-Bsymbolic",
            (const void *)version);
}

static void start_system(void)
{
    posix_report_start();
    posix_rseq_area_start();
    posix_page_size_start();
    posix_cpu_start();
    posix_threads_start();
}

static void start_membarrier(void)
{
    posix_membarrier_start(option_membarrier && !sandbox_is_wanted());
}

static void start_percpu(void)
{
    posix_percpu_start(option_rseq && !sandbox_is_wanted());
    posix_slices_start(option_slices && !sandbox_is_wanted());
}

static void start_caches(void)
{
    if (!slab_start())
        os_panic("no memory to start");
    size_classes_start();
}

static void start_decay(void)
{
    decay_enabled = true;
}

static const struct process_part before_others[] = {
    {"the only copy", .start = start_the_only_copy},
    {"system", .start = start_system},
    {"options", .start = options_read_environment},
    {"membarrier", .start = start_membarrier},
    {"rseq", .start = start_percpu},
    {"grace periods", .start = gp_start, .act = gp_stall_trace_prime},
    {.name = NULL},
};

static const struct process_part after_others[] = {
    {"caches", .start = start_caches, .act = preflush_start_helper},
    {"fork", .start = fork_start},
    {"decay", .start = start_decay, .act = background_start},
    {"system calls", .start = sandbox_start},
    {.name = NULL},
};

const struct process_part *const process_parts[] = {before_others, other_parts, after_others, NULL};

/* Runs early, so that the program's constructors find the library started. */
COLD __attribute__((constructor(101))) static void at_load(void)
{
    if (!is_superseded())
        process_start();
}

/* Runs at the default priority, because a static program's stack cannot be walked earlier: the
 * compiler's constructor of that priority registers the program with the unwinder. */
COLD __attribute__((constructor)) static void when_loaded(void)
{
    if (is_superseded())
        return;
    posix_stay_loaded();
    process_loaded();
}

bool process_is_outside(void)
{
    return !os_busy && !os_lock_forking && !os_copy_is_unnoticed();
}

/* The checks at exit may not run if a signal handler that interrupted the library ends the process,
 * nor in a copy of the process. */
COLD __attribute__((destructor)) static void when_unloaded(void)
{
    background_end();
    if (process_is_outside()) {
        gp_process_ends();
        if (heap_upcalls.flush)
            heap_upcalls.flush(); /* checks the resting objects a last time */
        if (double_free_may_look())
            double_free_look(harmless_goes_on());
    }
    posix_trace_end();
}
