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
 * unmakes the description, the one that has changed `state` from a state at rest; others say what they want (`asked`), and it
 * goes on until that is so.
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
#define EXPORT_MOST                                                                                \
    ((size_t)16384) /* bytes of a description, alone in its mapping, however large pages are */

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

enum export_state { EXPORT_OFF, EXPORT_CHANGES, EXPORT_ON };
static uint32_t state; /* by compare-and-swap */
static void *mapping;  /* of the thread that has changed the state */

/* The signal that switches it on, as options choose it (0: none), and whether it is to be on: one word, so that a signal and
 * a change of the option come one after the other. By compare-and-swap. */
static uint32_t asked;
#define ASKED_ON UINT32_C(256)
_Static_assert(SIGNAL_CHOICES <= ASKED_ON, "both fit a word");

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

/* With sandbox=1 it cannot be made any more. Said once, not by each child. */
static bool may_be_made(void)
{
    static uint32_t said;

    if (load_relaxed(&os_calls) != OS_CALLS_FEW)
        return true;
    if (!exchange_relaxed(&said, 1u))
        os_report("option 'export': with sandbox=1 only a process that had it before is watched");
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
    return load_relaxed(&asked) & ASKED_ON;
}

/* Not asked for any more, because it cannot be: the next one to ask tries again. */
static void give_up(void)
{
    uint32_t word = load_relaxed(&asked);

    while (!compare_exchange(&asked, &word, word & ~ASKED_ON))
        ;
}

/* By the thread that has changed the state; returns the next one. */
static uint32_t change(uint32_t present)
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
 * Makes it as is asked for. A thread that finds another one at it leaves the rest to that one, which looks again at what is
 * asked for when it is done. The fences see to that: either the first thread finds the state at rest, or the other finds
 * what the first has asked for.
 */
static void follow(void)
{
    int saved_errno = errno;
    uint32_t present;

    os_full_fence();
    present = load_acquire(&state);
    while (present != EXPORT_CHANGES && (present == EXPORT_ON) != is_asked()) {
        if (!compare_exchange(&state, &present, EXPORT_CHANGES))
            continue;
        present = change(present);
        store_release(&state, present);
        os_full_fence();
    }
    errno = saved_errno;
}

void export_ask(uint64_t signal, bool on)
{
    uint32_t word = load_relaxed(&asked), wish;

    do
        wish = (uint32_t)signal | (on ? ASKED_ON : signal ? word & ASKED_ON : 0);
    while (!compare_exchange(&asked, &word, wish));
    follow();
}

/* A handler that comes late, when its signal has lost its meaning, does nothing. */
void export_at_signal(uint64_t choice)
{
    uint32_t word = load_relaxed(&asked);

    while ((word & ~ASKED_ON) == choice)
        if (compare_exchange(&asked, &word, word | ASKED_ON)) {
            follow();
            return;
        }
}

/* The child does not have the mapping. If another thread was making it, the child has not asked for less. */
void export_fork_child(bool whole)
{
    (void)whole;
    store_relaxed(&state, (uint32_t)EXPORT_OFF);
    follow();
}
