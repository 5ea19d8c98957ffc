/* SPDX-License-Identifier: MIT */
/*
 * Threads of the tortures of ordered maps. Lasting keys are always found, by walks exactly once,
 * and neither ceiling nor floor skips one. Walks rise. Passing keys come and go between them: an
 * object that is found is live, or was retired in a grace period that is not over.
 *
 * Before including this file, a torture includes torture_updates.h or torture_values.h, and defines
 * `map`, which is a struct prudence_map *, TEXT, the most bytes of a string, and `shift`.
 */
#ifndef TESTS_SUPPORT_TORTURE_MAP_H
#define TESTS_SUPPORT_TORTURE_MAP_H

#define READERS 8
#define WRITERS 6
#define SPACING                                                                                    \
    40 /* of this many keys one is lasting, one contended, and the writers share the others */
#define LASTING   100
#define KEYS      (LASTING * SPACING)
#define CONTENDED 3 /* modulo SPACING: the keys that all writers use */

static struct torture_object *lasting[LASTING];

/* Checks what a reader has just found, inside its section, and returns the object's key. */
static uint64_t look_at(const struct prudence_map_node *node);

/* -------------------------------------------------------------------------------------- readers */

/* Checks that ceiling and floor, which both find something, skip no lasting key. */
static void look_around(uint64_t key)
{
    const uint64_t next = (key + SPACING - 1) / SPACING * SPACING, last = key / SPACING * SPACING;
    const struct prudence_map_node *above, *below;
    char text[TEXT];
    const size_t length = strings ? text_of(text, key) : 0;

    above = strings ? prudence_map_ceiling_bytes(map, text, length)
                    : prudence_map_ceiling(map, key << shift);
    below = strings ? prudence_map_floor_bytes(map, text, length)
                    : prudence_map_floor(map, key << shift);
    if (!above || look_at(above) < key || look_at(above) > next)
        torture_violation("the ceiling of %llu is not before %llu", (unsigned long long)key,
                          (unsigned long long)next);
    if (!below || look_at(below) > key || look_at(below) < last)
        torture_violation("the floor of %llu is not behind %llu", (unsigned long long)key,
                          (unsigned long long)last);
}

static void read_keys(uint64_t *random)
{
    prudence_read_lock();
    for (unsigned i = 0; i < 10; i++) {
        uint64_t key = torture_below(random, KEYS - SPACING);

        if (look_up(key / SPACING * SPACING) != lasting[key / SPACING])
            torture_violation("the lasting key below %llu is not found", (unsigned long long)key);
        look_up(key);
        look_around(key);
    }
    if (readers_stay && torture_below(random, 50) == 0)
        torture_sleep_us(20000);
    prudence_read_unlock();
    __atomic_fetch_add(&lookups, 40, __ATOMIC_RELAXED);
}

/* Walks from a key on, for a while or to the end. */
static void walk(uint64_t *random)
{
    uint64_t from = torture_below(random, KEYS), least = from, most = torture_below(random, 600);
    uint64_t next = (from + SPACING - 1) / SPACING * SPACING; /* the next lasting key */
    struct prudence_map_walk at;
    struct prudence_map_node *node;
    char text[TEXT];

    prudence_read_lock();
    node = strings ? prudence_map_first_from_bytes(&at, map, text, text_of(text, from))
                   : prudence_map_first_from(&at, map, from << shift);
    for (; node && most--; node = prudence_map_next(&at)) {
        uint64_t key = look_at(node);

        if (key < least || key > next)
            torture_violation("a walk finds %llu, not %llu to %llu", (unsigned long long)key,
                              (unsigned long long)least, (unsigned long long)next);
        if (key == next)
            next += SPACING;
        least = key + 1;
    }
    if (!node && next < KEYS)
        torture_violation("a walk ends before %llu", (unsigned long long)next);
    prudence_read_unlock();
    __atomic_fetch_add(&walks, 1, __ATOMIC_RELAXED);
}

static void *reader(void *seed)
{
    uint64_t random = (uintptr_t)seed * 77 + 1;

    while (!torture_stopped()) {
        read_keys(&random);
        if (torture_below(&random, 4) == 0)
            walk(&random);
    }
    return NULL;
}

/* -------------------------------------------------------------------------------------- writers */

/* For a while all keys are used, then the first few of each group, so nodes grow and shrink. */
static void *writer(void *number)
{
    const unsigned own = (unsigned)(uintptr_t)number;
    uint64_t random = own + 4711;
    struct torture_object **mine = calloc(KEYS, sizeof *mine);

    while (!torture_stopped()) {
        bool ebb = __atomic_load_n(&updates, __ATOMIC_RELAXED) / 50000 % 2;

        for (unsigned i = 0; i < 50; i++) {
            uint64_t key = torture_below(&random, KEYS);
            unsigned place = (unsigned)(key % SPACING);

            if (place == 0 || place == CONTENDED || place % WRITERS != own)
                continue;
            if (!ebb || mine[key] || place < 8)
                update_own(&mine[key], key, &random);
        }
        update_contended((uint64_t)torture_below(&random, LASTING) * SPACING + CONTENDED, false,
                         &random);
        __atomic_fetch_add(&updates, 51 / WRITERS + 1, __ATOMIC_RELAXED);
    }
    for (uint64_t key = 0; key < KEYS; key++) {
        if (!mine[key])
            continue;
        TORTURE_CHECK(erase(key) == mine[key]);
        object_retire(mine[key]);
    }
    free(mine);
    return NULL;
}

/* ------------------------------------------------------------------------------------------ run */

static void add_lasting(void)
{
    for (unsigned i = 0; i < LASTING; i++) {
        lasting[i] = make((uint64_t)i * SPACING);
        TORTURE_CHECK(!insert((uint64_t)i * SPACING, lasting[i]));
    }
}

/* Takes out what is left, after which the map has no nodes. */
static void empty(void)
{
    unsigned left = 0;

    for (uint64_t key = 0; key < KEYS; key++) {
        struct torture_object *object = erase(key);

        if (!object)
            continue;
        TORTURE_CHECK(key % SPACING == 0 || key % SPACING == CONTENDED);
        TORTURE_CHECK(!erase(key));
        object_retire(object);
        left++;
    }
    TORTURE_CHECK(left >= LASTING && left <= 2 * LASTING);
    prudence_trim(); /* nodes in quarantine, or resting by shuffle, count until then */
}

#endif /* TESTS_SUPPORT_TORTURE_MAP_H */
