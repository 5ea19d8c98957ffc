/* SPDX-License-Identifier: MIT */
/* Asking the kernel for longer time slices (see slice.h), and giving up the CPU when one is not needed any more. */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <prudence/rcu.h>

#include "os/os.h"
#include "posix.h"

/* Of Linux 7.0; headers may be older. */
#define SLICE_EXTENSION        79 /* PR_RSEQ_SLICE_EXTENSION */
#define SLICE_EXTENSION_SET    2
#define SLICE_EXTENSION_ENABLE 1
#define SYSTEM_CALL_YIELD      471 /* rseq_slice_yield: the number of all architectures */
#define SLICE_OFFSET           28  /* of slice_ctrl in struct rseq */
#define SIZE_WITHOUT_SLICES    32  /* of a struct rseq that the kernel takes for an older one */

struct slice {
    uint8_t request; /* by the thread; the kernel sets it to 0 when it grants one */
    uint8_t granted; /* by the kernel; 0 again when the thread has lost its CPU */
};

bool os_slices READ_MOSTLY = false;
static bool possible; /* the kernel and libc have them, and they are wanted */

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

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

/* Of this thread: the kernel was told that it will ask; what is requested now was requested here, not by a reader. */
static __thread bool enabled, asked;

static volatile struct slice *own_slice(void)
{
#if OS_PERCPU_HAS_RSEQ
    return (volatile struct slice *)((char *)__builtin_thread_pointer() + __rseq_offset +
                                     SLICE_OFFSET);
#else
    return NULL; /* never called: os_slices is false */
#endif
}

void posix_slices_start(bool wanted)
{
    int saved_errno = errno;

    os_slice_done(); /* this thread may be inside a lock, and have asked */
    enabled = wanted && OS_PERCPU_HAS_RSEQ && &__rseq_size && __rseq_size > SIZE_WITHOUT_SLICES &&
              enable();
    store_relaxed(&possible, enabled);
    store_relaxed(&os_slices, enabled && !os_calls_are_few());
    errno = saved_errno;
}

/* A thread that has asked for a longer slice gives its CPU up by a system call. */
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
    store_relaxed(&os_slices, enable_injected && OS_PERCPU_HAS_RSEQ && &__rseq_offset);
}

/* A thread asks once to be allowed to ask. Refused, as by a filter of system calls: then nobody asks any more. */
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

/* What a reader of the program has requested is left to it: it will give up the CPU when its section ends. */
void os_slice_ask(void)
{
    volatile struct slice *slice = own_slice();

    if (!may_ask() || slice->request || slice->granted)
        return;
    asked = true;
    slice->request = 1;
}

void os_slice_done(void)
{
    volatile struct slice *slice = own_slice();

    if (!asked)
        return;
    asked = false;
    slice->request = 0;
    if (slice->granted)
        yield();
}

void prudence_slice_yield(void)
{
    yield();
}
