/* SPDX-License-Identifier: MIT */
/*
 * Readers that stay too long: each section is reported once, with the thread's name and id, and how
 * long it has been in the way of a grace period. Any driver may note or report; races lose nothing
 * but a little of the duration.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gp/domain.h"

uint64_t gp_stall_timeout = UINT64_C(10000000000);

/* After so long in the way, it is worth a system call to see whether the thread is there at all: it
 * may have ended inside a section that it entered after its own end was noticed. */
#define GONE_AFTER_NS 5000000

static void thread_name(int thread, char *name, size_t size)
{
    char path[64];
    ssize_t length = 0;
    int fd;

    snprintf(path, sizeof path, "/proc/self/task/%d/comm", thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        length = read(fd, name, size - 1);
        close(fd);
    }
    name[length > 0 ? length : 0] = '\0';
    name[strcspn(name, "\n")] = '\0';
}

static void report(struct prudence_domain *domain, struct reader_slot *slot, uint64_t stayed)
{
    char name[32];
    int cancelable;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable);
    thread_name(slot->thread, name, sizeof name);
    pthread_setcancelstate(cancelable, NULL);
    os_report(
        "stall: thread '%s' (tid %d) has kept a grace period of domain '%s' from ending for "
        "%llu ms",
        name, (int)slot->thread, domain->name, (unsigned long long)(stayed / 1000000));
    add_relaxed(&domain->stalls, 1);
}

void stall_note(struct prudence_domain *domain, struct reader_slot *slot, uint64_t word)
{
    uint64_t section = word & ~PRUDENCE_NESTING_MASK;
    uint64_t now, reported;
    int64_t stayed;

    now = os_clock_ns();
    if (load_relaxed(&slot->stall_word) != section) {
        store_relaxed(&slot->stall_since, now);
        store_relaxed(&slot->stall_word, section);
        return;
    }
    reported = load_relaxed(&slot->stall_reported);
    stayed = (int64_t)(now - load_relaxed(&slot->stall_since)); /* negative: noted just after now */
    if (stayed > GONE_AFTER_NS && readers_reap_slot(domain, slot))
        return;
    if (!gp_stall_timeout || reported == section || stayed < (int64_t)gp_stall_timeout)
        return;
    if (compare_exchange(&slot->stall_reported, &reported, section))
        report(domain, slot, (uint64_t)stayed);
}
