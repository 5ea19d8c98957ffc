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

/* Times additions that each need the previous one, which take a cycle each. */
double time_instruction(const struct measurement *measurement, uint64_t count)
{
    uint64_t start = now_ns(), value = 0;

    (void)measurement;
    for (uint64_t i = 0; i < count; i += 8)
        for (unsigned step = 0; step < 8; step++) {
            value++;
            __asm__ __volatile__("" : "+r"(value));
        }
    return (double)(now_ns() - start);
}

double time_clock(const struct measurement *measurement, uint64_t count)
{
    uint64_t start = now_ns();

    (void)measurement;
    for (uint64_t i = 0; i < count; i++)
        now_ns();
    return (double)(now_ns() - start);
}

/* --------------------------------------------------------------------------------------- caches */

uint64_t cache_bytes(unsigned level)
{
    uint64_t found = 0;

    for (unsigned index = 0; index < 8; index++) {
        char path[128], type[32] = "";
        unsigned of = 0, size = 0;
        char unit = 0;
        FILE *file;

        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cache/index%u/type", cpus[0],
                 index);
        file = fopen(path, "re");
        if (!file)
            break;
        if (fscanf(file, "%31s", type) != 1)
            type[0] = 0;
        fclose(file);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cache/index%u/level", cpus[0],
                 index);
        file = fopen(path, "re");
        if (file && fscanf(file, "%u", &of) != 1)
            of = 0;
        if (file)
            fclose(file);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cache/index%u/size", cpus[0],
                 index);
        file = fopen(path, "re");
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

double time_atomic_increment(const struct measurement *measurement, uint64_t count)
{
    uint64_t start = now_ns();

    (void)measurement;
    for (uint64_t i = 0; i < count; i++)
        __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
    return (double)(now_ns() - start);
}

double time_cmpxchg_increment(const struct measurement *measurement, uint64_t count)
{
    uint64_t start = now_ns();

    (void)measurement;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t old = __atomic_load_n(&word, __ATOMIC_RELAXED);

        while (!__atomic_compare_exchange_n(&word, &old, old + 1, false, __ATOMIC_SEQ_CST,
                                            __ATOMIC_RELAXED)) {
        }
    }
    return (double)(now_ns() - start);
}

/* Times a store and a full fence, as in a fenced reader. */
double time_fence(const struct measurement *measurement, uint64_t count)
{
    uint64_t start = now_ns();

    (void)measurement;
    for (uint64_t i = 0; i < count; i++) {
        __atomic_store_n(&word, i, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    }
    return (double)(now_ns() - start);
}

double time_membarrier(const struct measurement *measurement, uint64_t count)
{
    static bool registered;
    uint64_t start;

    (void)measurement;
    if (!registered && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
        return -1; /* unavailable */
    registered = true;
    start = now_ns();
    for (uint64_t i = 0; i < count; i++)
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    return (double)(now_ns() - start);
}

static void be_busy(void *unused)
{
    (void)unused;
    while (!partner_over()) {
    }
}

/* Times a membarrier that must interrupt a thread of the process on another CPU. */
double time_membarrier_beside(const struct measurement *measurement, uint64_t count)
{
    double took;

    start_partner(cpus[1], be_busy, NULL);
    took = time_membarrier(measurement, count);
    stop_partner();
    return took;
}
