/* SPDX-License-Identifier: MIT */
/* Counts threads inside an update of an ordered map, and the map's objects (map_writers.h). */
#include "tables/map_writers.h"

#include "os/os.h"
#include "tables/writers.h"

/* A thread that moves to another CPU later leaves by the same word. */
struct map_writers *map_writers_enter(struct prudence_map *map)
{
    struct map_writers *writers = &map->writers[os_cpu_current() & map->writers_mask];

    os_busy_enter();
    for (;;) {
        __atomic_fetch_add(&writers->word, 1, __ATOMIC_SEQ_CST);
        if (likely(!writers_must_wait()))
            return writers;
        __atomic_fetch_sub(&writers->word, 1, __ATOMIC_RELAXED); /* nothing has changed yet */
        writers_wait();
    }
}

/* Release: when fork finds no thread inside, fork sees all that this thread did. */
void map_writers_leave(struct map_writers *writers, int64_t objects)
{
    __atomic_fetch_add(&writers->word, ((uint64_t)objects << MAP_WRITERS_BITS) - 1,
                       __ATOMIC_RELEASE);
    os_busy_leave();
}

void map_writers_wait(struct prudence_map *map)
{
    for (unsigned i = 0; i <= map->writers_mask; i++)
        while (load_acquire(&map->writers[i].word) & MAP_WRITERS_MASK)
            os_sleep_ns(1000);
}

void map_writers_forget(struct prudence_map *map)
{
    for (unsigned i = 0; i <= map->writers_mask; i++)
        store_relaxed(&map->writers[i].word, map->writers[i].word & ~MAP_WRITERS_MASK);
}

/* Sums the words, but not at one moment. The sum may be below 0 if it includes a removal but not
 * the addition; the function then returns 0. */
uint64_t prudence_map_count(const struct prudence_map *map)
{
    uint64_t sum = 0;
    int64_t objects;

    if (!map)
        return 0;
    for (unsigned i = 0; i <= map->writers_mask; i++)
        sum += load_relaxed(&map->writers[i].word) & ~MAP_WRITERS_MASK;
    objects = (int64_t)sum >> MAP_WRITERS_BITS;
    return objects > 0 ? (uint64_t)objects : 0;
}
