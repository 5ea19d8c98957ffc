/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "trace.h"

#include <string.h>
#include <sys/mman.h>

#include "measure.h"
#include "run.h"

bool trace_start(struct trace *trace, uint64_t samples, uint64_t duration)
{
    *trace = (struct trace){.room = samples};
    pthread_mutex_init(&trace->lock, NULL);
    if (!samples)
        return true;
    trace->stride = (duration + samples - 1) / samples;
    trace->sample = mmap(NULL, samples * sizeof *trace->sample, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return trace->sample != MAP_FAILED;
}

void trace_end(struct trace *trace)
{
    if (trace->room)
        munmap(trace->sample, trace->room * sizeof *trace->sample);
    pthread_mutex_destroy(&trace->lock);
}

static void take(struct run *run, struct sample *sample, uint64_t time)
{
    sample->time = time;
    sample->ns = now_ns() - run->began_ns;
    run_live(run, &sample->live_objects, &sample->live_bytes);
    sample->held_bytes =
        run->model->held ? run->model->held(sample->live_bytes) : sample->live_bytes;
    sample->resident_bytes = resident_bytes();
}

/* Takes one sample for threads that come at once; a thread that finds another one sampling
 * continues. */
void trace_sample(struct run *run)
{
    struct trace *trace = &run->trace;
    uint64_t time = pace_slowest(&run->pace);

    if (!trace->room || time == NO_TIME || time % trace->stride ||
        pthread_mutex_trylock(&trace->lock))
        return;
    if (trace->count < trace->room &&
        (!trace->count || trace->sample[trace->count - 1].time < time))
        take(run, &trace->sample[trace->count++], time);
    pthread_mutex_unlock(&trace->lock);
}

bool trace_mean(const struct trace *trace, uint64_t from, uint64_t to, size_t offset, double *mean)
{
    uint64_t count = 0;
    double sum = 0;

    for (uint64_t i = 0; i < trace->count; i++) {
        const struct sample *sample = &trace->sample[i];
        uint64_t value;

        memcpy(&value, (const char *)sample + offset, sizeof value);
        if (sample->time < from || sample->time > to)
            continue;
        if (value == HELD_UNKNOWN)
            return false;
        sum += (double)value;
        count++;
    }
    *mean = count ? sum / (double)count : 0;
    return count;
}
