/* SPDX-License-Identifier: MIT */
/*
 * A process with a heap forks, as a server does to save state. Measures the allocator's fork
 * handlers, and the pages that its bookkeeping makes both sides copy.
 */
#define _GNU_SOURCE
#include "load.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAP  100000 /* blocks, about 25 MB */
#define FORKS 80
#define TURNS 1000 /* blocks that each side replaces */

static void replace(struct member *member, struct block *heap)
{
    for (unsigned i = 0; i < TURNS; i++) {
        struct block *any = &heap[random_below(&member->random, HEAP)];

        block_end(any);
        *any = block_new(member, random_size(&member->random, 6, 9));
    }
}

static void fork_once(struct member *member, struct block *heap)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        replace(member, heap);
        _exit(EXIT_SUCCESS);
    }
    if (child > 0)
        replace(member, heap);
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        load_fail("fork failed, or its child (status %d)", status);
}

static void fork_work(struct member *member)
{
    uint64_t forks = load_scaled(member->load, FORKS);
    struct block *heap = own_memory(HEAP * sizeof *heap);

    for (unsigned i = 0; i < HEAP; i++)
        heap[i] = block_new(member, random_size(&member->random, 6, 9));
    while (forks--)
        fork_once(member, heap);
    for (unsigned i = 0; i < HEAP; i++)
        block_end(&heap[i]);
    own_memory_end(heap, HEAP * sizeof *heap);
}

const struct pattern pattern_fork = {
    "fork", "forks with 100,000 live blocks; both sides replace 1,000 of them", 1, 1,
    .work = fork_work};
