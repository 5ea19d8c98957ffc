/* SPDX-License-Identifier: MIT */
/* Asks the kernel for longer time slices (see slice.h), and gives up the CPU when one is no
 * longer needed. */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <prudence/rcu.h>

#include "os/os.h"
#include "posix.h"
#include "rseq_area.h"

/* Constants of Linux 7.0; headers may be older. */
#define SLICE_EXTENSION        79 /* PR_RSEQ_SLICE_EXTENSION */
#define SLICE_EXTENSION_SET    2
#define SLICE_EXTENSION_ENABLE 1
#define SYSTEM_CALL_YIELD      471 /* rseq_slice_yield, on all architectures */
#define SLICE_OFFSET           28  /* of slice_ctrl in struct rseq */
#define SIZE_WITHOUT_SLICES    32  /* largest struct rseq that the kernel takes for an old one */

struct slice {
    uint8_t request; /* set by the thread; the kernel resets it when it grants a slice */
    uint8_t granted; /* set by the kernel; 0 again when the thread has lost the CPU */
};

bool os_slices READ_MOSTLY = false;
static bool possible; /* kernel and libc have slices, and they are wanted */

static bool enable_by_kernel(void)
{
    return prctl(SLICE_EXTENSION, SLICE_EXTENSION_SET, SLICE_EXTENSION_ENABLE, 0, 0) == 0;
}

static void yield_to_kernel(void)
{
    syscall(SYSTEM_CALL_YIELD);
}

static bool (*enable)(void) = enable_by_kernel;
static void (*yield)(void) = yield_to_kernel;

/* For this thread: whether the kernel has allowed requests, and whether the present request was
 * made here and not by a reader. */
static __thread bool enabled, slice_asked;

/* Only with slices enabled, because the offset is missing where glibc does not register rseq. */
static volatile struct slice *own_slice(void)
{
#if OS_PERCPU_HAS_RSEQ
    return (volatile struct slice *)(os_percpu_thread_pointer() + posix_rseq_area.offset +
                                     SLICE_OFFSET);
#else
    __builtin_unreachable(); /* because os_slices is false */
#endif
}

COLD void posix_slices_start(bool wanted)
{
    int saved_errno = errno;

    os_slice_done(); /* this thread may hold a lock and have asked */
    enabled = wanted && OS_PERCPU_HAS_RSEQ && posix_rseq_area.known &&
              posix_rseq_area.size > SIZE_WITHOUT_SLICES && enable();
    store_relaxed(&possible, enabled);
    store_relaxed(&os_slices, enabled && !os_calls_are_few());
    errno = saved_errno;
}

/* Stops asking when calls are few, because a thread ends a longer slice by a system call. */
void posix_slices_few(void)
{
    store_relaxed(&os_slices, false);
}

void posix_slices_widen(void)
{
    store_relaxed(&os_slices, load_relaxed(&possible));
}

void posix_slices_inject(bool (*enable_injected)(void), void (*yield_injected)(void))
{
    enable = enable_injected ? enable_injected : enable_by_kernel;
    yield = yield_injected ? yield_injected : yield_to_kernel;
    enabled = false;
    store_relaxed(&os_slices, enable_injected && OS_PERCPU_HAS_RSEQ && posix_rseq_area.known);
}

/* Asks, once per thread, to be allowed to ask. If that is refused, as by a filter of system
 * calls, no thread asks any more. */
static bool may_ask(void)
{
    int saved_errno = errno;

    if (likely(enabled))
        return true;
    enabled = enable();
    if (!enabled)
        store_relaxed(&os_slices, false);
    errno = saved_errno;
    return enabled;
}

/* Leaves alone the request of a reader of the program, which gives up the CPU itself when its
 * section ends. */
void os_slice_ask(void)
{
    volatile struct slice *slice;

    if (!may_ask())
        return;
    slice = own_slice();
    if (slice->request || slice->granted)
        return;
    slice_asked = true;
    slice->request = 1;
}

void os_slice_done(void)
{
    volatile struct slice *slice;

    if (!slice_asked)
        return;
    slice_asked = false;
    slice = own_slice();
    slice->request = 0;
    if (slice->granted)
        yield();
}

void prudence_slice_yield(void)
{
    yield();
}
