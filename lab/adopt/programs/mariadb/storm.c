/* SPDX-License-Identifier: MIT */
/*
 * Drives MariaDB's lock-free hash as sessions of the server do, first steadily and then in a storm.
 *
 *     storm SECONDS
 *
 * Elements are as large as a metadata lock. IDLE sessions hold pins and do nothing. For SECONDS,
 * WORKERS threads search (half of the time), insert and delete keys at random; deletes are timed.
 * Then the workers sleep, and one thread inserts STORM elements, deletes them, and waits two
 * seconds. Prints one line of JSON.
 */
#include <my_global.h>
#include <my_sys.h>
#include <lf.h>

#include "../driver.h"

#include <pthread.h>

#define ELEMENT 480
#define KEYS    65536
#define WORKERS 4
#define IDLE    2000
#define STORM   400000
#define TIMES   (1 << 20) /* deletes that a worker remembers */

static LF_HASH hash;
static volatile int over;
static pthread_barrier_t worked, ended;

struct worker {
    pthread_t thread;
    uint64_t operations, random;
    uint32_t *times, count; /* ns */
};

static void delete_timed(struct worker *self, LF_PINS *pins, uint64_t key)
{
    uint64_t begun = now_ns(CLOCK_MONOTONIC);

    if (lf_hash_delete(&hash, pins, &key, sizeof key))
        return; /* it was not there */
    self->times[self->count++ % TIMES] = now_ns(CLOCK_MONOTONIC) - begun;
}

static void *work(void *of)
{
    struct worker *self = of;
    LF_PINS *pins = lf_hash_get_pins(&hash);
    char element[ELEMENT] = "";

    while (!over) {
        uint64_t random = next_random(&self->random), key = random >> 8 & (KEYS - 1);

        switch (random & 3) {
        case 0:
            memcpy(element, &key, sizeof key);
            if (lf_hash_insert(&hash, pins, element) < 0)
                abort();
            break;
        case 1:
            delete_timed(self, pins, key);
            break;
        default:
            if (lf_hash_search(&hash, pins, &key, sizeof key))
                lf_hash_search_unpin(pins);
        }
        self->operations++;
    }
    pthread_barrier_wait(&worked);
    pthread_barrier_wait(&ended);
    lf_hash_put_pins(pins);
    return NULL;
}

static double p999_us(struct worker *workers)
{
    size_t count = 0, most = (size_t)WORKERS * TIMES;
    uint32_t *all = malloc(most * sizeof *all);

    for (int i = 0; i < WORKERS; i++)
        for (uint32_t j = 0; j < workers[i].count && j < TIMES; j++)
            all[count++] = workers[i].times[j];
    qsort(all, count, sizeof *all, by_value);
    double found = count ? all[(size_t)(count * 0.999)] / 1e3 : 0;

    free(all);
    for (int i = 0; i < WORKERS; i++)
        free(workers[i].times);
    return found;
}

/* Returns the highest resident memory. */
static double storm(void)
{
    LF_PINS *pins = lf_hash_get_pins(&hash);
    char element[ELEMENT] = "";
    double highest;

    for (uint64_t key = KEYS; key < KEYS + STORM; key++) {
        memcpy(element, &key, sizeof key);
        if (lf_hash_insert(&hash, pins, element))
            abort();
    }
    highest = resident_mb();
    for (uint64_t key = KEYS; key < KEYS + STORM; key++)
        if (lf_hash_delete(&hash, pins, &key, sizeof key))
            abort();
    lf_hash_put_pins(pins);
    return highest;
}

int main(int count, char **words)
{
    static struct worker workers[WORKERS];
    static LF_PINS *idle[IDLE];
    uint64_t operations = 0, wall, cpu;
    double seconds = count == 2 ? atof(words[1]) : 0, tail, peak, after;

    if (seconds <= 0) {
        fprintf(stderr, "usage: storm SECONDS (above 0)\n");
        return 2;
    }
    MY_INIT(words[0]);
    lf_hash_init(&hash, ELEMENT, LF_HASH_UNIQUE, 0, sizeof(uint64_t), NULL, &my_charset_bin);
    for (int i = 0; i < IDLE; i++)
        if (!(idle[i] = lf_hash_get_pins(&hash)))
            abort();
    pthread_barrier_init(&worked, NULL, WORKERS + 1);
    pthread_barrier_init(&ended, NULL, WORKERS + 1);
    wall = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < WORKERS; i++) {
        workers[i].random = 88172645463325252u + i;
        workers[i].times = malloc(TIMES * sizeof *workers[i].times);
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    usleep(seconds * 1e6);
    over = 1;
    pthread_barrier_wait(&worked);
    for (int i = 0; i < WORKERS; i++)
        operations += workers[i].operations;
    wall = now_ns(CLOCK_MONOTONIC) - wall, cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    tail = p999_us(workers);
    peak = storm();
    sleep(2);
    after = resident_mb();
    pthread_barrier_wait(&ended);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < IDLE; i++)
        lf_hash_put_pins(idle[i]);
    lf_hash_destroy(&hash);
    printf(
        "{\"mops\": %.4f, \"cpu_ns\": %.2f, \"delete_p999_us\": %.3f, \"peak_mb\": %.2f, "
        "\"after_mb\": %.2f}\n",
        operations / (wall / 1e3), (double)cpu / operations, tail, peak, after);
    my_end(0);
    return 0;
}
