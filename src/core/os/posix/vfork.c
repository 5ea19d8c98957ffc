/* SPDX-License-Identifier: MIT */
/*
 * What preload/vfork.c does before a vfork, in the child, and afterwards in the parent
 * (docs/adr/0160). The child shares the parent's memory, with its thread-local variables and its
 * struct rseq. The parent does not run until the child has ended or calls exec.
 *
 * The kernel does not restart the child's sequences, so none may commit: the child writes the
 * struct's CPU number as an unregistered thread has it. The kernel writes there for registered
 * threads only, so the number stays. The child also counts as being inside the library, so its
 * calls are nested, wait for nothing, and hold nothing that outlasts the child.
 *
 * The child may end anywhere, so the parent restores what the calling thread counts. If the side
 * area has no room, the child works as other threads do. If it then ends while it holds a lock or a
 * CPU's line, the parent ends with a report, because it would hang later.
 */
#define _GNU_SOURCE /* syscall */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"
#include "rseq_area.h"
#include "vfork.h"

/* The first words of struct rseq. */
struct cpu_words {
    uint32_t cpu_start, cpu;
};
#define UNREGISTERED UINT32_C(0xffffffff)

/* What the parent restores, in one register. The rest of the word is `busy` and `hands`. */
#define ACTIVE         UINT64_C(1) /* the child was marked */
#define WAS_REGISTERED UINT64_C(2) /* the thread had a CPU number */
#define WAS_IN_CHILD   UINT64_C(4)
#define WAS_IN_MAPPING UINT64_C(8)
#define BUSY_SHIFT     16
#define HANDS_SHIFT    32

static struct cpu_words *cpu_words(void)
{
    return (struct cpu_words *)((uintptr_t)os_percpu_thread_pointer() +
                                (uintptr_t)posix_rseq_area.offset);
}

uint64_t vfork_prepare(void)
{
    uint64_t saved = ACTIVE;

    if (os_is_single_threaded())
        return 0;
    if (posix_rseq_area.known && load_relaxed(&cpu_words()->cpu) < UNREGISTERED / 2)
        saved |= WAS_REGISTERED;
    saved |= os_in_vfork_child ? WAS_IN_CHILD : 0;
    saved |= os_in_mapping_call ? WAS_IN_MAPPING : 0;
    return saved | (uint64_t)narrow(uint16_t, os_busy) << BUSY_SHIFT |
           (uint64_t)narrow(uint16_t, os_hands) << HANDS_SHIFT;
}

void vfork_child(uint64_t saved)
{
    if (!saved)
        return;
    if (saved & WAS_REGISTERED) {
        store_relaxed(&cpu_words()->cpu_start, 0u);
        store_relaxed(&cpu_words()->cpu, UNREGISTERED);
    }
    os_in_vfork_child = true;
    os_busy++;
}

/*
 * Restores the CPU number if the kernel has not done so. A kernel that writes only changes will not
 * write the number again until it changes, and may do that just before our store. So this repeats
 * until the stored number is the CPU's: then the kernel has no newer one.
 */
static void restore_cpu(void)
{
    struct cpu_words *words = cpu_words();
    unsigned cpu;

    if (load_relaxed(&words->cpu) != UNREGISTERED)
        return;
    while (!syscall(SYS_getcpu, &cpu, NULL, NULL) && load_relaxed(&words->cpu) != cpu) {
        store_relaxed(&words->cpu_start, cpu);
        store_relaxed(&words->cpu, cpu);
    }
}

/* Only a child that found no room in the side area holds anything. */
static void require_nothing_held(uint64_t saved, long child)
{
    if (unlikely(os_busy != (uint16_t)(saved >> BUSY_SHIFT) + 1u))
        os_panic(
            "child %ld of vfork ended inside the library, and others would wait for what it "
            "held for ever",
            child);
}

long vfork_parent(uint64_t saved, long result)
{
    if (saved && result > 0)
        require_nothing_held(saved, result);
    if (saved) {
        os_busy = (uint16_t)(saved >> BUSY_SHIFT);
        os_hands = (uint16_t)(saved >> HANDS_SHIFT);
        os_in_mapping_call = saved & WAS_IN_MAPPING;
        os_in_vfork_child = saved & WAS_IN_CHILD;
        if (saved & WAS_REGISTERED)
            restore_cpu();
    }
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
}
