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

static inline void operate(struct work *work, uint64_t random)
{
    uint64_t number = 0;

    if (is_update(work, random))
        replace(random);
    else if (look(&number))
        work->found++;
    else
        subject_refuses("a reader saw an object that was freed");
    work->sum += number;
}

static void run(struct work *work)
{
    run_operations(work, operate);
}

#endif /* BENCH_STRUCTURES_VERSIONS_FAMILY_H */
