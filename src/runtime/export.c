/* SPDX-License-Identifier: MIT */
/*
 * The option export lets prudence-top and prudence-stat watch the process, at no cost to its fast
 * paths.
 *
 * The library describes where its figures are, as text (export_layout.c), in a memory file, which
 * it seals, maps once and closes. A watcher of the same user finds the mapping by name in
 * /proc/PID/maps, reads the description, and then reads the figures from the process's memory (ADR
 * 89). So nothing can be written from outside, and no thread, descriptor or file can be left over:
 * the mapping ends with the process, with exec, and with the option. A child of fork does not
 * inherit the mapping and makes another one.
 *
 * Everything here is async-signal-safe: direct system calls, and text formatted on the stack. The
 * thread that moves `export_state` to EXPORT_CHANGES makes or unmaps the description; other threads
 * only change `export_asked`, and that thread continues until `export_state` agrees with it.
 */
#define _GNU_SOURCE /* F_ADD_SEALS, syscall */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"
#include "runtime/export.h"
#include "runtime/signals.h"
#include "system_call.h"

/* Name that watchers look for. */
#define EXPORT_NAME "prudence-export"

#define EXPORT_MOST                                                                                \
    ((size_t)16384) /* bytes of a description, alone in its pages however large these are */

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

enum export_state { EXPORT_OFF, EXPORT_CHANGES, EXPORT_ON };
static uint32_t export_state; /* changed by compare-and-swap */
static void *mapping;         /* owned by the thread that set EXPORT_CHANGES */

/* The signal that switches the export on (0 if none; a number of signals.h), and ASKED_ON if the
 * export is wanted. One word, changed by compare-and-swap, so that a signal and a change of the
 * option take effect one after the other. */
static uint32_t export_asked;
#define ASKED_ON UINT32_C(256)
_Static_assert(SIGNAL_CHOICES <= ASKED_ON, "both fit a word");

/* Returns whether RLIMIT_FSIZE allows the file. A larger file would end the process by SIGXFSZ. */
static bool file_may_be_so_large(void)
{
    struct rlimit limit;

    if (syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) || limit.rlim_cur >= EXPORT_MOST)
        return true;
    errno = EFBIG;
    return false;
}

/* Makes the memory file, marked as not executable where the kernel supports the mark (some systems
 * require it). */
static int file_make(void)
{
    long fd =
        syscall(SYS_memfd_create, EXPORT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

    if (fd < 0 && errno == EINVAL)
        fd = syscall(SYS_memfd_create, EXPORT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return (int)fd;
}

/* Writes the description, seals the file and maps it. The mapping is private because Linux before
 * 6.7 refuses a shared mapping of a sealed file. Returns NULL with errno set on failure. */
static void *file_fill_and_map(int fd)
{
    struct output output = {.fd = fd};
    void *mapped;

    if (!file_may_be_so_large() || syscall(SYS_ftruncate, fd, EXPORT_MOST))
        return NULL;
    export_layout_print(&output);
    errno = output_end(&output);
    if (errno || fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
        return NULL;
    mapped = (void *)system_call(SYS_mmap, 0, EXPORT_MOST, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    if (syscall(SYS_madvise, mapped, EXPORT_MOST, MADV_DONTFORK)) {
        syscall(SYS_munmap, mapped, EXPORT_MOST);
        return NULL;
    }
    return mapped;
}

/* Returns false with sandbox=1, which forbids the system calls. Reports this once, not in each
 * child. */
static bool may_be_made(void)
{
    static uint32_t said;

    if (load_relaxed(&os_calls) != OS_CALLS_FEW)
        return true;
    if (!exchange_relaxed(&said, 1u))
        os_report(
            "option 'export': with sandbox=1 the process can no longer begin to be watched; set it "
            "earlier");
    return false;
}

static void *description_make(void)
{
    void *mapped = NULL;
    int fd;

    if (!may_be_made())
        return NULL;
    fd = file_make();

    if (fd >= 0) {
        mapped = file_fill_and_map(fd);
        if (!mapped)
            os_report("option 'export': the process cannot be watched (error %d)", errno);
        syscall(SYS_close, fd);
    } else {
        os_report("option 'export': the process cannot be watched, memfd_create failed (error %d)",
                  errno);
    }
    return mapped;
}

static bool is_asked(void)
{
    return load_relaxed(&export_asked) & ASKED_ON;
}

/* Withdraws the request after a failure, so that the next request tries again. */
static void give_up(void)
{
    uint32_t word = load_relaxed(&export_asked);

    while (!compare_exchange(&export_asked, &word, word & ~ASKED_ON))
        ;
}

/* Called by the thread that set EXPORT_CHANGES. Returns the next state. */
static uint32_t export_change(uint32_t present)
{
    if (present == EXPORT_ON) {
        syscall(SYS_munmap, mapping, EXPORT_MOST);
        return EXPORT_OFF;
    }
    mapping = description_make();
    if (!mapping)
        give_up();
    return mapping ? EXPORT_ON : EXPORT_OFF;
}

/*
 * Makes `export_state` agree with `export_asked`. A thread that finds EXPORT_CHANGES leaves the
 * work to the thread that set it, which reads `export_asked` again when done. The fences make this
 * safe: either the first thread finds the state at rest, or the other thread finds the first one's
 * request.
 */
static void export_follow(void)
{
    int saved_errno = errno;
    uint32_t present;

    os_full_fence();
    present = load_acquire(&export_state);
    while (present != EXPORT_CHANGES && (present == EXPORT_ON) != is_asked()) {
        if (!compare_exchange(&export_state, &present, EXPORT_CHANGES))
            continue;
        present = export_change(present);
        store_release(&export_state, present);
        os_full_fence();
    }
    errno = saved_errno;
}

void export_ask(uint64_t signal, bool on)
{
    uint32_t word = load_relaxed(&export_asked), wish;

    do
        wish = (uint32_t)signal | (on ? ASKED_ON : signal ? word & ASKED_ON : 0);
    while (!compare_exchange(&export_asked, &word, wish));
    export_follow();
}

/* Does nothing if the handler comes late and the option no longer names the signal. */
void export_at_signal(uint64_t choice)
{
    uint32_t word = load_relaxed(&export_asked);

    while ((word & ~ASKED_ON) == choice)
        if (compare_exchange(&export_asked, &word, word | ASKED_ON)) {
            export_follow();
            return;
        }
}

/* Starts over in the child, which lacks the mapping. `export_asked` is valid even if another thread
 * of the parent was making the description. */
void export_fork_child(bool whole)
{
    (void)whole;
    store_relaxed(&export_state, (uint32_t)EXPORT_OFF);
    export_follow();
}
