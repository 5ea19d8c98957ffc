/* SPDX-License-Identifier: MIT */
/*
 * Process life: start, and what needs nothing.
 *
 * Start has two steps:
 *
 *   start()        by whatever function is called first, be it in the dynamic loader or in another
 *                  library's constructor; at the latest by our early constructor. Options are read and
 *                  recorded, structures are made. It may be inside an allocation, and before the C
 *                  runtime is ready: nothing may allocate but from us, make a thread, or walk the stack.
 *   process_act()  what options want beyond that, and what needs the dynamic loader. First by our late
 *                  constructor, then whenever an option is set.
 *
 * Fork: see fork.c. Exit with objects outstanding needs nothing: the system takes the pages. exec
 * neither. The library is never unloaded (os/posix/stay_loaded.c).
 */
#include <pthread.h>

#include <prudence/prudence.h>

#include "gp/callbacks.h"
#include "gp/domain.h"
#include "heap/background.h"
#include "heap/call.h"
#include "heap/destruct.h"
#include "heap/fork.h"
#include "heap/heap.h"
#include "heap/options.h"
#include "heap/watch.h"
#include "posix.h"

uint32_t process_started READ_MOSTLY = 0;
const struct heap_above *heap_above;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char version[] = PRUDENCE_VERSION;

const char *prudence_version(void)
{
    return version;
}

/*
 * Another copy of the library stands first in the order of symbol look-up, so that functions, or the
 * thread-local pointers of inline readers, are that copy's. This one must not serve anybody: objects that
 * it defers would be reused under readers whom only the other copy sees. Functions and pointers may go
 * different ways, since a linker's -Bsymbolic binds functions to their own module, but not thread-local
 * variables. libprudence-malloc is bound so on purpose: there are no inline readers in it, and it serves
 * malloc, wherever it stands.
 */
static bool is_superseded(void)
{
    return prudence_version() != version || (readers_are_superseded() && !process_is_malloc);
}

/* This thread is in start(): what start() calls may allocate, once slab_start() is done. */
static __thread bool starting;

static void start(void)
{
    int cancelable;

    if (is_superseded())
        os_panic(
            "a call came to one copy of the library (%p), but readers of the process use another "
            "one: link one copy only, or the static library without -Bsymbolic",
            (const void *)version);
    starting = true;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable); /* /sys is read */
    posix_cpu_start();
    posix_threads_start();
    options_read_environment();
    posix_membarrier_start(option_membarrier);
    posix_percpu_start(option_rseq);
    gp_start();
    watch_start();
    call_start();
    destruct_start();
    if (!slab_start())
        os_panic("no memory to start");
    fork_start();
    slab_tidies = true;
    store_release(&process_started, 1u);
    pthread_setcancelstate(cancelable, NULL);
    starting = false;
}

void process_start_slow(void)
{
    if (!starting)
        pthread_once(&once, start);
}

/* The late constructor has run. */
static uint32_t loaded;

/* Each part does nothing when it is not wanted, or done. */
void process_act(void)
{
    /* An option is set, then `loaded` is read; the constructor sets `loaded`, then reads options. With a
     * full fence between the two on both sides, one of them at least sees what the other has stored. */
    os_full_fence();
    if (!load_relaxed(&loaded))
        return;
    watch_prime();
    gp_stall_trace_prime();
    preflush_start_helper();
    background_start();
}

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
    store_relaxed(&loaded, 1u);
    process_act();
}

__attribute__((destructor)) static void when_unloaded(void)
{
    background_end();
    posix_trace_end();
}
