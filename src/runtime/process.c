/* SPDX-License-Identifier: MIT */
/*
 * What starts with the process, and what needs no action.
 *
 * Fork: see fork.c. Exit with objects outstanding needs no action: the system takes the pages. Nor does exec. The
 * library is never unloaded (os/posix/stay_loaded.c).
 */
#include <prudence/prudence.h>

#include "debug/instruments.h"
#include "debug/quarantine.h"
#include "debug/shuffle.h"
#include "gp/user/domain.h"
#include "heap/background.h"
#include "heap/size_class.h"
#include "posix.h"
#include "process.h"
#include "rcu/call.h"
#include "rcu/destruct.h"
#include "runtime/fork.h"
#include "runtime/options.h"
#include "runtime/sandbox.h"
#include "slab/doubles.h"
#include "slab/preflush.h"
#include "slab/start.h"
#include "slab/tidy.h"

static const char version[] = PRUDENCE_VERSION;

const char *prudence_version(void)
{
    return version;
}

/*
 * Another copy of the library stands first in the order of symbol look-up, so functions, or the thread-local pointers
 * of inline readers, are that copy's. This one must not serve any call: objects that it defers would be reused while
 * readers that only the other copy sees still hold them. Functions and pointers may be of different copies, because a
 * linker's -Bsymbolic binds functions to their own module, but not thread-local variables. libprudence-malloc is
 * bound so on purpose: there are no inline readers in it, and it serves malloc, wherever it stands.
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
            "one: link one copy only, or the static library without -Bsymbolic",
            (const void *)version);
}

static void start_system(void)
{
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

static void start_tidying(void)
{
    slab_tidies = true;
}

const struct process_part process_parts[] = {
    {"the only copy", .start = start_the_only_copy},
    {"system", .start = start_system},
    {"options", .start = options_read_environment},
    {"membarrier", .start = start_membarrier},
    {"rseq", .start = start_percpu},
    {"grace periods", .start = gp_start, .act = gp_stall_trace_prime},
    {"instruments", .start = instruments_start, .act = instruments_prime},
    {"callbacks", .start = call_start},
    {"destructors", .start = destruct_start},
    {"caches", .start = start_caches, .act = preflush_start_helper},
    {"fork", .start = fork_start},
    {"tidying", .start = start_tidying, .act = background_start},
    {"system calls", .start = sandbox_start},
};
const unsigned process_parts_count = sizeof process_parts / sizeof process_parts[0];

/* Early, so that programs' own constructors find it done. */
__attribute__((constructor(101))) static void at_load(void)
{
    if (!is_superseded())
        process_start();
}

/* Of the default priority: in a static program the stack cannot be walked before, since the compiler's
 * own constructor of that priority tells the unwinder about the program. */
__attribute__((constructor)) static void when_loaded(void)
{
    if (is_superseded())
        return;
    posix_stay_loaded();
    process_loaded();
}

/* Not when a signal handler that has interrupted the library ends the process: this thread may hold what is needed here. Nor
 * in a copy of the process, where nobody may ever release it. */
static bool may_look(void)
{
    return !os_busy && !os_lock_forking && !os_copy_is_unnoticed();
}

__attribute__((destructor)) static void when_unloaded(void)
{
    background_end();
    if (may_look()) {
        gp_process_ends();
        quarantine_flush(); /* what rests is looked at for the last time */
        shuffle_flush_all();
        if (doubles_may_look())
            doubles_look();
    }
    posix_trace_end();
}
