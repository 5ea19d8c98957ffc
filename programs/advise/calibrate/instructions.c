/* SPDX-License-Identifier: MIT */
/* Operations of a single CPU: instructions, clocks, loads from each cache, atomic operations,
 * fences, membarriers. */
#define _GNU_SOURCE
#include "calibrate.h"

#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "measure.h"

#define LINE 64

static uint64_t word __attribute__((aligned(LINES_APART)));

/* Makes additions that each need the previous one, which take a cycle each. */
void instructions(uint64_t count)
{
    uint64_t value = 0;

    for (uint64_t i = 0; i < count; i += 8)
        for (unsigned step = 0; step < 8; step++) {
            value++;
            __asm__ __volatile__("" : "+r"(value));
        }
}

void clock_reads(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        now_ns();
}

/* --------------------------------------------------------------------------------------- caches */

/* Opens a file that describes a cache of the first CPU. Returns NULL if there is none. */
static FILE *cache_file(unsigned index, const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cache/index%u/%s", cpus[0], index,
             name);
    return fopen(path, "re");
}

uint64_t cache_bytes(unsigned level)
{
    uint64_t found = 0;

    for (unsigned index = 0; index < 8; index++) {
        char type[32] = "";
        unsigned of = 0, size = 0;
        char unit = 0;
        FILE *file = cache_file(index, "type");

        if (!file)
            break;
        if (fscanf(file, "%31s", type) != 1)
            type[0] = 0;
        fclose(file);
        file = cache_file(index, "level");
        if (file && fscanf(file, "%u", &of) != 1)
            of = 0;
        if (file)
            fclose(file);
        file = cache_file(index, "size");
        if (file && fscanf(file, "%u%c", &size, &unit) < 1)
            size = 0;
        if (file)
            fclose(file);
        if (of == level && strcmp(type, "Instruction"))
            found = (uint64_t)size << (unit == 'M' ? 20 : unit == 'K' ? 10 : 0);
    }
    return found;
}

/* Links the lines of `bytes` bytes to one random cycle, so that each load needs the previous one
 * and no prefetcher can guess the next. */
static void **make_cycle(uint64_t bytes)
{
    uint64_t lines = bytes / LINE, random = 88172645463325252;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        fail("memory for a chase");
    madvise(memory, bytes, MADV_HUGEPAGE); /* if refused, TLB misses are included */
    for (uint64_t i = 0; i < lines; i++)
        *(void **)(memory + i * LINE) = memory + i * LINE;
    for (uint64_t i = lines - 1; i > 0; i--) { /* Sattolo's algorithm, for one cycle */
        uint64_t j;
        void *next;

        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        j = random % i;
        next = *(void **)(memory + i * LINE);
        *(void **)(memory + i * LINE) = *(void **)(memory + j * LINE);
        *(void **)(memory + j * LINE) = next;
    }
    return (void **)memory;
}

#define CHASES 8

double time_chase(const struct measurement *measurement, uint64_t count)
{
    static struct {
        uint64_t bytes;
        void **at;
    } cycles[CHASES];
    unsigned i = 0;
    uint64_t start;
    void **at;

    while (cycles[i].bytes && cycles[i].bytes != measurement->bytes)
        i++;
    if (!cycles[i].bytes) {
        cycles[i].at = make_cycle(measurement->bytes);
        cycles[i].bytes = measurement->bytes;
    }
    at = cycles[i].at;
    /* Fills the cache if the memory fits; otherwise the chase goes on where it stopped. */
    for (uint64_t line = 0; line < measurement->bytes / LINE && line < 1 << 16; line++)
        at = *at;
    start = now_ns();
    for (uint64_t step = 0; step < count; step++) {
        at = *at;
        __asm__ __volatile__("" : "+r"(at));
    }
    cycles[i].at = at;
    return (double)(now_ns() - start);
}

/* -------------------------------------------------------------------------------------- atomics */

void atomic_increments(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
}

void cmpxchg_increments(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t old = __atomic_load_n(&word, __ATOMIC_RELAXED);

        while (!__atomic_compare_exchange_n(&word, &old, old + 1, false, __ATOMIC_SEQ_CST,
                                            __ATOMIC_RELAXED)) {
        }
    }
}

/* Makes a store and a full fence, as in a fenced reader. */
void fences(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        __atomic_store_n(&word, i, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    }
}

static void membarriers(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

double time_membarrier(const struct measurement *measurement, uint64_t count)
{
    static bool registered;

    (void)measurement;
    if (!registered && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
        return -1; /* unavailable */
    registered = true;
    return time_of(membarriers, count);
}

static void be_busy(void *unused)
{
    (void)unused;
    while (!partner_over()) {
    }
}

/* Times a membarrier that must interrupt a thread of the process on another CPU. */
double time_membarrier_shared(const struct measurement *measurement, uint64_t count)
{
    double took;

    start_partner(cpus[1], be_busy, NULL);
    took = time_membarrier(measurement, count);
    stop_partner();
    return took;
}
