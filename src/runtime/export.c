/* SPDX-License-Identifier: MIT */
/*
 * The option export: the process lets itself be watched (prudence-top, prudence-stat), and does nothing for it.
 *
 * It makes a description of where its figures stand, as text (export_layout.c), in a file in memory, which it seals, maps
 * once and closes. A watcher of the same user finds the mapping by its name in /proc/PID/maps, and reads the description and
 * then the figures themselves from the process's memory (ADR 89). So nothing can be written from outside, fast paths are
 * as they were, and there is no thread, no descriptor and no file that could be left behind: the mapping ends with the
 * process, with exec, and with the option. A child of fork gets none of its parent's mapping, and makes its own.
 *
 * Async-signal-safe: system calls of our own, and text that is formatted on the stack. One thread at a time makes or
 * unmakes the description, the one that has changed `state` from a state at rest; any other one finds it as good as done.
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

#define EXPORT_NAME "prudence-export" /* watchers look for it */
#define EXPORT_MOST ((size_t)16384)   /* bytes of a description */

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

enum export_state { EXPORT_OFF, EXPORT_CHANGES, EXPORT_ON };
static uint32_t state; /* by compare-and-swap */
static void *mapping;  /* of the thread that has changed the state */

/* A file that is larger than the process may write would end it by a signal (SIGXFSZ). */
static bool file_may_be_so_large(void)
{
    struct rlimit limit;

    if (syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) || limit.rlim_cur >= EXPORT_MOST)
        return true;
    errno = EFBIG;
    return false;
}

/* Where the system wants to know of a file whether it may be executed, it may not. */
static int file_make(void)
{
    long fd =
        syscall(SYS_memfd_create, EXPORT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

    if (fd < 0 && errno == EINVAL)
        fd = syscall(SYS_memfd_create, EXPORT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return (int)fd;
}

/* Writes the description, after which nobody can, and maps it. Private: a shared mapping of a sealed file is refused
 * before Linux 6.7. NULL: errno says why. */
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
    mapped = (void *)syscall(SYS_mmap, NULL, EXPORT_MOST, PROT_READ, MAP_PRIVATE, fd, 0L);
    if (mapped == MAP_FAILED)
        return NULL;
    if (syscall(SYS_madvise, mapped, EXPORT_MOST, MADV_DONTFORK)) {
        syscall(SYS_munmap, mapped, EXPORT_MOST);
        return NULL;
    }
    return mapped;
}

static void *description_make(void)
{
    int fd = file_make();
    void *mapped = NULL;

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

void export_begin(void)
{
    uint32_t off = EXPORT_OFF;
    int saved_errno = errno;

    if (!compare_exchange(&state, &off, EXPORT_CHANGES))
        return;
    mapping = description_make();
    store_release(&state, (uint32_t)(mapping ? EXPORT_ON : EXPORT_OFF));
    errno = saved_errno;
}

void export_end(void)
{
    uint32_t on = EXPORT_ON;
    int saved_errno = errno;

    if (!compare_exchange(&state, &on, EXPORT_CHANGES))
        return;
    syscall(SYS_munmap, mapping, EXPORT_MOST);
    store_release(&state, (uint32_t)EXPORT_OFF);
    errno = saved_errno;
}

/* The child does not have the mapping. If another thread was making it, the child has not asked for less. */
void export_fork_child(bool whole)
{
    (void)whole;
    if (load_relaxed(&state) == EXPORT_OFF)
        return;
    store_relaxed(&state, (uint32_t)EXPORT_OFF);
    export_begin();
}
