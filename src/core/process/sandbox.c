/* SPDX-License-Identifier: MIT */
/*
 * The option sandbox (ADR 123). sandbox_start() decides once, from the kind of library and the
 * options:
 *
 *   auto  a plain program on libprudence-malloc makes few calls until it defers or reads; a program
 *         linked with libprudence, or one that wants a permanent helper (background=1), makes all
 *   0     all
 *   1     few for good. Readers fence themselves and locks protect CPUs' caches, so nothing needs a
 *         membarrier
 *
 * At run time, 1 comes too late for the locks if caches exist, because fast paths are in use. The
 * caches of other CPUs are then drained once more, and stay out of reach while the process has
 * other threads.
 *
 * Locks: the lock of the options. At start there is one thread.
 */
#include "process/sandbox.h"

#include "gp/user/process_life.h"
#include "heap/background.h"
#include "heap/heap.h"
#include "pages/pages.h"
#include "posix.h"
#include "process.h"
#include "slab/all_caches.h"
#include "slab/preflush.h"
#include "slab/reclaim/decay.h"
#include "slab/reclaim/drain.h"

static enum sandbox sandbox_wanted = SANDBOX_AUTO; /* under the lock of the options */
static bool sandbox_started; /* sandbox_start() has run; under the same lock */

/* Returns the bytes that the process has from the system, or 0 if another thread holds a lock of
 * the page source. */
static uint64_t own_bytes(void)
{
    struct os_pages_stats pages;

    return pages_try_stats(&pages) ? pages.used + pages.retained + pages.metadata : 0;
}

static void become_few(enum os_calls calls)
{
    posix_pressure_start(own_bytes);
    posix_calls_set(calls);
}

/* Stops the helpers. A helper that runs finishes its work, and then sleeps or ends. */
static void end_helpers(void)
{
    background_set(false);
    store_relaxed(&decay_helper, false);
    store_relaxed(&preflush_enabled, false);
}

static void drain_now(struct prudence_cache *cache)
{
    drain_cache(cache, true);
}

/* Goes over to few calls at run time. All work that needs other calls is done before the first
 * thread keeps to the few. When this returns, all domains have readers that fence. */
static void sandbox_enter(void)
{
    posix_membarrier_start(false);
    gp_follow_options();
    os_lock_take(&heap_lock);
    os_lock_take(&slab_caches_lock);
    if (list_is_empty(&slab_caches))
        posix_percpu_start(false);
    os_lock_release(&slab_caches_lock);
    os_lock_release(&heap_lock);
    all_caches_visit(drain_now);
    end_helpers();
    become_few(OS_CALLS_FEW);
}

void sandbox_set(uint64_t choice)
{
    sandbox_wanted = (enum sandbox)choice;
    if (!sandbox_started)
        return;
    if (sandbox_wanted == SANDBOX_ALWAYS && load_relaxed(&os_calls) != OS_CALLS_FEW)
        sandbox_enter();
    else if (sandbox_wanted == SANDBOX_NEVER)
        os_calls_widen();
}

bool sandbox_keeps_from(uint64_t choice)
{
    return choice != SANDBOX_ALWAYS && load_relaxed(&os_calls) == OS_CALLS_FEW;
}

bool sandbox_is_wanted(void)
{
    return sandbox_wanted == SANDBOX_ALWAYS;
}

void sandbox_start(void)
{
    sandbox_started = true;
    if (sandbox_wanted == SANDBOX_ALWAYS && load_relaxed(&decay_helper))
        os_report("option 'background': there is no helper with sandbox=1");
    if (sandbox_wanted == SANDBOX_ALWAYS) {
        end_helpers();
        become_few(OS_CALLS_FEW);
    } else if (sandbox_wanted == SANDBOX_AUTO && process_has_our_malloc &&
               !load_relaxed(&decay_helper)) {
        become_few(OS_CALLS_PLAIN);
    } else {
        posix_calls_set(OS_CALLS_ALL);
    }
}
