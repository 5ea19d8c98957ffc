/* SPDX-License-Identifier: MIT */
/*
 * One object that is read all the time and replaced at times, as a template. It measures the
 * protection of a reader and nothing else. The file that includes this has defined
 *     bool look(&number)        false if the object was freed under the reader, so it is not whole
 *     void replace(number)      a new object; the old one is freed when no reader has it
 */
#ifndef BENCH_STRUCTURES_VERSIONS_FAMILY_H
#define BENCH_STRUCTURES_VERSIONS_FAMILY_H

#include "subject.h"
#include "version.h"

static void fill(uint64_t size)
{
    (void)size;
    replace(1);
}

static void run(struct work *work)
{
    do {
        for (unsigned i = 0; i < 64; i++) {
            uint64_t random = next_random(&work->random), number = 0;

            if ((random >> 8) % 1024 * 100 < (uint64_t)work->updates * 1024)
                replace(random);
            else if (look(&number))
                work->found++;
            else
                subject_refuses("a reader saw an object that was freed");
            work->sum += number;
        }
        work->operations += 64;
    } while (!__atomic_load_n(work->stop, __ATOMIC_RELAXED));
}

#define VERSION_SUBJECT(name, origin, thread_start)                                                \
    {                                                                                              \
        name, origin, start, thread_start, fill, nothing, run, nothing                             \
    }

#endif /* BENCH_STRUCTURES_VERSIONS_FAMILY_H */
