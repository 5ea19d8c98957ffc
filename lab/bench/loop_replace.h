/* SPDX-License-Identifier: MIT */
/*
 * Pairs as a table's updates make them: each writer keeps `live` objects in a table of its own, and
 * replaces the object at one place after another. A part of loops.h.
 *
 * The places are written down before the run (struct run, places): a list of 16-bit numbers that
 * the loop reads from start to end. So both orders, all sizes of the table and all subjects pay the
 * same for it, one load of 2 bytes that the processor prefetches. In order, the writer goes through
 * the list, whose end is the table's, and begins again. At random, each slice begins at another
 * point of the list, so objects come back in an order that does not repeat.
 */
#ifndef BENCH_LOOP_REPLACE_H
#define BENCH_LOOP_REPLACE_H

/* Returns the next places of this writer, one for each pair of a slice. */
TEMPLATE const uint16_t *next_places(struct worker *worker, unsigned slice)
{
    const struct run *run = worker->run;
    const uint16_t *places = run->places + worker->place;

    if (run->config.order == ORDER_RANDOM) {
        worker->random = worker->random * UINT64_C(6364136223846793005) + 1442695040888963407;
        worker->place = (unsigned)(worker->random >> 33) % run->place_count;
    } else {
        worker->place = (worker->place + slice) % run->place_count;
    }
    return places;
}

/* Publishes `object`, as a writer of RCU does, and returns the object unlinked from its place. */
TEMPLATE void *exchange(void **place, void *object)
{
    void *old = *place;

    __atomic_store_n(place, object, __ATOMIC_RELEASE);
    return old;
}

TEMPLATE bool replace_slice(struct worker *worker, const struct operations *op, union pool pool)
{
    const uint16_t *places = next_places(worker, SLICE);
    void **live = worker->live;

    for (unsigned i = 0; i < SLICE; i++) {
        void *object = allocate_touched(worker, op, pool);

        if (!object)
            return false;
        op->retire(pool, exchange(&live[places[i]], object));
    }
    worker_did(worker, SLICE, SLICE);
    return true;
}

/* The writer always holds the object of its next update. */
TEMPLATE bool replace_slice_by_hand(struct worker *worker, const struct operations *op,
                                    union pool pool)
{
    const uint16_t *places = next_places(worker, SLICE);
    void **live = worker->live, *hand = worker->hand;

    for (unsigned i = 0; i < SLICE; i++) {
        touch(hand);
        hand = op->replace(pool, exchange(&live[places[i]], hand));
        if (__builtin_expect(!hand, 0))
            return worker_out_of_memory(worker), false;
    }
    worker->hand = hand;
    worker_did(worker, SLICE, SLICE);
    return true;
}

TEMPLATE bool replace_batch(struct worker *worker, const struct operations *op, union pool pool,
                            void **objects, unsigned batch)
{
    const uint16_t *places = next_places(worker, batch);
    void **live = worker->live;

    for (unsigned i = 0; i < batch; i++) {
        if (!(objects[i] = allocate_touched(worker, op, pool)))
            return false;
    }
    for (unsigned i = 0; i < batch; i++)
        op->retire(pool, exchange(&live[places[i]], objects[i]));
    worker_did(worker, batch, batch);
    return true;
}

/* Fills the table in the warm-up phase; later phases find it full. */
TEMPLATE bool table_fill(struct worker *worker, const struct operations *op)
{
    unsigned count = worker->run->config.live;

    if (worker->live)
        return true;
    worker->live = calloc(count, sizeof *worker->live);
    worker->random = worker->index + 1;
    for (unsigned i = 0; i < count; i++) {
        if (!(worker->live[i] = allocate_touched(worker, op, worker->pool)))
            return false;
    }
    return !op->replace || (worker->hand = allocate_touched(worker, op, worker->pool));
}

TEMPLATE void loop_replace(struct worker *worker, const struct operations *op)
{
    const struct config *config = &worker->run->config;
    uint64_t end = config->pairs ? worker->done + config->pairs : UINT64_MAX;
    void **objects = calloc(config->batch, sizeof *objects);
    union pool pool = worker->pool;
    bool memory = table_fill(worker, op);

    while (memory && worker_goes_on(worker) && worker->done < end) {
        if (config->batch > 1)
            memory = replace_batch(worker, op, pool, objects, config->batch);
        else if (op->replace)
            memory = replace_slice_by_hand(worker, op, pool);
        else
            memory = replace_slice(worker, op, pool);
    }
    worker->finished = worker->done >= end;
    free(objects);
}

#endif /* BENCH_LOOP_REPLACE_H */
