/* SPDX-License-Identifier: MIT */
/*
 * Every kind of table (tables/kinds.h) under many more threads than CPUs. Lasting keys always lead
 * to their object, and replaced ones to some object; walks find the former once. Other keys come
 * and go, so tables grow and shrink: an object that is found is live, or was retired in a grace
 * period that is not over. A writer finds the object of its own key until it takes that out; of
 * several threads that put, replace or erase one object, one gets it. A search next to a key of a
 * map skips no lasting one, and an address has the route of its longest lasting prefix or a longer
 * one.
 *
 * A variant is a kind and words: a thread resizes the table; keys share hashes; the first index is
 * wide; signals interrupt all threads anywhere, and handlers read, and update a table without
 * locks; children use the table; and readers stay while latent memory has a low limit, where no
 * wait reaches wait_max, and nothing excuses a byte above the limit.
 */
#define _GNU_SOURCE
#define TORTURE_TIMES 6
#include "tables/kinds.h"

#include "support/routes_test.h"
#include "support/torture_objects.h"
#include "tables/keys.h"

#define READERS   7
#define WRITERS   5
#define SPACING   10 /* of this many keys one is lasting, one replaced, and one is every writer's */
#define REPLACED  3
#define CONTENDED 5
#define LASTING   (KEYS_MOST / SPACING + 1)
#define STASH     16

struct object {
    struct torture_object head;
    struct entry entry;
};

/* Objects for one thread's handlers, which neither allocate nor defer: they take fresh objects from
 * here, and leave removed ones here. */
struct stash {
    struct entry *fresh[STASH], *removed[STASH]; /* NULL: none */
    uint64_t random;
    bool busy; /* the thread itself is using the stash */
};

static struct table_kind kind;
static void *table;
static unsigned keys;
static struct entry *lasting[LASTING];
static bool readers_stay;
static uint64_t won, handled, forks, resizes;
static __thread struct stash *stash_self;

static struct torture_object *head_of(const struct entry *entry)
{
    return entry ? (struct torture_object *)((uintptr_t)entry - offsetof(struct object, entry))
                 : NULL;
}

static struct entry *make(unsigned key)
{
    return &((struct object *)object_make(key))->entry;
}

static void retire(struct entry *entry)
{
    object_retire(head_of(entry));
}

/* -------------------------------------------------------------------------------------- readers */

static struct entry *look_up(unsigned key)
{
    struct entry *found = kind.get(table, key);

    object_of_key(head_of(found), key);
    return found;
}

/* Checks that a map finds, next to a key, one of these. */
static void check_near(const struct entry *found, unsigned least, unsigned most)
{
    const uint64_t key = found ? object_seen(head_of(found)) : UINT64_MAX;

    if (key < least || key > most)
        torture_violation("key %llu is found, not %u to %u", (unsigned long long)key, least, most);
}

/* Searches next to a key of a map, which skip no lasting one. */
static void look_around(unsigned key)
{
    const unsigned last = key / SPACING * SPACING, next = last + (key > last ? SPACING : 0);
    struct prudence_map_walk walk;

    check_near(kind.at(table_floor(table, key)), last, key);
    if (next >= keys)
        return;
    check_near(kind.at(table_ceiling(table, key)), key, next);
    check_near(kind.at(table_first_from(&walk, table, key)), key, next);
}

/* Checks that the route has a prefix of this address at least as long as the key's. */
static void check_route(unsigned key, uintptr_t route)
{
    const struct prudence_routes_prefix *prefixes = key_prefixes[is_ipv6(table)];
    uint64_t found = route ? object_seen(head_of((struct entry *)route)) : 0;

    if (!route || !prefix_matches(&prefixes[found], prefixes[key].address) ||
        prefixes[found].length < prefixes[key].length)
        torture_violation("for key %u the route of key %u is found", key, (unsigned)found);
}

static void look_up_routes(unsigned key)
{
    const unsigned two[] = {key, key / (2 * SPACING) * SPACING};
    const struct prudence_routes_prefix *prefixes = key_prefixes[is_ipv6(table)];
    struct address address;
    unsigned char packed[8];
    uintptr_t values[2];

    memcpy(address.bytes, prefixes[key].address, sizeof address.bytes);
    check_route(key, route_to(table, &address));
    if (is_ipv6(table))
        return;
    for (unsigned i = 0; i < 2; i++)
        memcpy(packed + 4 * i, prefixes[two[i]].address, 4);
    prudence_routes_lookup_many_ipv4(table, packed, 2, values);
    for (unsigned i = 0; i < 2; i++)
        check_route(two[i], values[i]);
}

static void read_keys(uint64_t *random)
{
    for (unsigned i = 0; i < 20; i++) {
        const unsigned key = torture_below(random, keys), near = key / SPACING * SPACING;

        if (look_up(near) != lasting[near / SPACING])
            torture_violation("lasting key %u is not found", near);
        if (near + REPLACED < keys && !look_up(near + REPLACED))
            torture_violation("replaced key %u is not found", near + REPLACED);
        look_up(key);
        if (kind.at)
            look_around(key);
        if (kind.flags & TABLE_KEEPS)
            look_up_routes(near);
    }
    __atomic_fetch_add(&lookups, 60, __ATOMIC_RELAXED);
}

struct visits {
    unsigned char seen[KEYS_MOST];
    unsigned least; /* the next key of a sorted table */
};

static void visit(unsigned key, struct entry *entry, void *argument)
{
    struct visits *visits = argument;

    object_of_key(head_of(entry), key);
    if (kind.flags & TABLE_SORTED && key < visits->least)
        torture_violation("a walk finds key %u, not %u or more", key, visits->least);
    if (visits->seen[key]++ && key % SPACING == 0)
        torture_violation("a walk finds key %u twice", key);
    visits->least = key + 1;
}

static void walk(void)
{
    struct visits visits = {.least = 0};

    kind.walk(table, visit, &visits);
    for (unsigned key = 0; key < keys; key++)
        if ((key % SPACING == 0 || key % SPACING == REPLACED) && !visits.seen[key])
            torture_violation("a walk does not find key %u", key);
    __atomic_fetch_add(&walks, 1, __ATOMIC_RELAXED);
}

/* -------------------------------------------------------------------------------------- updates */

/* Objects are found and updated in one section. (Whoever is in a section may not wait.) */
static void begin_update(void)
{
    if (kind.flags & TABLE_OBJECTS)
        prudence_read_lock();
}

static void end_update(void)
{
    if (kind.flags & TABLE_OBJECTS)
        prudence_read_unlock();
}

/* Returns the entry that is there now, by its address only unless the caller is in a section. */
static struct entry *there_now(unsigned key)
{
    struct entry *found;

    prudence_read_lock();
    found = look_up(key);
    prudence_read_unlock();
    return found;
}

/* Puts `fresh` in the place of the entry that is there, and returns that one. */
static struct entry *put(unsigned key, struct entry *fresh)
{
    struct entry *old = NULL;

    TORTURE_CHECK(!(kind.put ? kind.put : kind.swap)(table, key, fresh, &old));
    return old;
}

/* Replaces `old`, and no other, and returns whether it was there. */
static bool replace(unsigned key, struct entry *old, struct entry *fresh)
{
    int error = kind.replace(table, key, old, fresh);

    TORTURE_CHECK(!error || error == ENOENT);
    return !error;
}

/* Updates a key that all writers want, so one thread takes out each object. Neither allocates nor
 * defers. Returns the entry that was taken out; *fresh is NULL if it is in the table now. */
static struct entry *update_shared(struct entry **fresh, unsigned key, bool stays, uint64_t *random)
{
    struct entry *old = NULL, *const given = *fresh;
    bool placed = false;

    begin_update();
    __atomic_store_n(&head_of(given)->key, key, __ATOMIC_RELAXED);
    switch (torture_below(random, stays ? 2 : 4)) {
    case 0:
        if (kind.put || stays) {
            old = put(key, given);
            placed = true;
            break;
        }
        /* fall through */
    case 1:
        old = kind.replace ? there_now(key) : NULL;
        if (old)
            placed = replace(key, old, given);
        else
            placed = !kind.add(table, key, given, NULL);
        old = placed ? old : NULL;
        break;
    case 2:
        placed = !kind.add(table, key, given, NULL);
        break;
    default:
        kind.erase(table, key, &old);
    }
    end_update();
    if (placed)
        *fresh = NULL;
    return old;
}

static struct entry *update_any(struct entry **fresh, uint64_t *random)
{
    const unsigned key = torture_below(random, keys / SPACING) * SPACING;

    if (kind.flags & TABLE_CHOOSES || torture_below(random, 2))
        return update_shared(fresh, key + REPLACED, true, random);
    return update_shared(fresh, key + CONTENDED, false, random);
}

/* Updates a key that no other thread updates, so the thread knows what is there. */
static void update_own(struct entry **mine, unsigned key, bool erases, uint64_t *random)
{
    struct entry *old = *mine, *fresh = make(key), *found = NULL;

    if (there_now(key) != old)
        torture_violation("key %u is not in the state that this thread made", key);
    begin_update();
    switch (erases ? 3 : torture_below(random, 4)) {
    case 0:
        TORTURE_CHECK(!old || put(key, fresh) == old);
        TORTURE_CHECK(old || !(kind.put ? kind.put : kind.add)(table, key, fresh, NULL));
        break;
    case 1:
        TORTURE_CHECK(kind.add(table, key, fresh, &found) == (old ? EEXIST : 0) && found == old);
        TORTURE_CHECK(!old || (kind.replace ? replace(key, old, fresh) : put(key, fresh) == old));
        break;
    case 2:
        if (!old && kind.add_duplicate) {
            kind.add_duplicate(table, key, fresh);
            break;
        }
        /* fall through */
    default:
        TORTURE_CHECK(kind.erase(table, key, &found) == (old ? 0 : ENOENT) && found == old);
        object_unmake(head_of(fresh));
        fresh = NULL;
    }
    end_update();
    *mine = fresh;
    retire(old);
}

/* ------------------------------------------------------------------------------------- handlers */

static void handle(int number)
{
    struct stash *stash = stash_self;

    if (!stash || __atomic_load_n(&stash->busy, __ATOMIC_RELAXED))
        return;
    prudence_read_lock();
    read_keys(&stash->random);
    for (unsigned i = 0; !(kind.flags & TABLE_DOMAIN) && i < STASH; i++)
        if (stash->fresh[i] && !stash->removed[i])
            stash->removed[i] = update_any(&stash->fresh[i], &stash->random);
    if (torture_below(&stash->random, 8) == 0)
        walk();
    prudence_read_unlock();
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

/* Keeps handlers from the stash, or lets them use it. */
static void stash_busy(struct stash *stash, bool busy)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&stash->busy, busy, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* The thread defers objects that its handlers have removed, and supplies fresh ones. */
static void serve(struct stash *stash)
{
    stash_busy(stash, true);
    for (unsigned i = 0; i < STASH; i++) {
        retire(stash->removed[i]);
        stash->removed[i] = NULL;
        if (!stash->fresh[i])
            stash->fresh[i] = make(0);
    }
    stash_busy(stash, false);
}

static void empty_stash(struct stash *stash)
{
    stash_self = NULL;
    serve(stash);
    for (unsigned i = 0; i < STASH; i++)
        object_unmake(head_of(stash->fresh[i]));
}

static void interrupt(uint64_t end)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};

    sigaction(SIGUSR1, &action, NULL);
    while (torture_now() < end || !__atomic_load_n(&handled, __ATOMIC_RELAXED)) {
        for (unsigned i = 0; i < torture_crew.count; i++)
            pthread_kill(torture_crew.threads[i], SIGUSR1);
        torture_sleep_us(20);
    }
}

/* -------------------------------------------------------------------------------------- threads */

static void *reader(void *seed)
{
    struct stash stash = {.random = (uintptr_t)seed * 31 + 5};
    uint64_t random = (uintptr_t)seed * 77 + 1;

    stash_self = &stash;
    while (!torture_stopped()) {
        serve(&stash);
        prudence_read_lock();
        read_keys(&random);
        if (torture_below(&random, 30) == 0)
            walk();
        if (readers_stay && torture_below(&random, 50) == 0)
            torture_sleep_us(20000);
        prudence_read_unlock();
    }
    empty_stash(&stash);
    return NULL;
}

/* For a while all keys are used, and then one of ten, so the table grows and shrinks. */
static void update_some(struct entry **mine, unsigned own, uint64_t *random)
{
    const bool ebb = __atomic_load_n(&updates, __ATOMIC_RELAXED) / 50000 % 2;
    const unsigned key = torture_below(random, keys), place = key % SPACING;

    if (place == 0 || place == REPLACED || place == CONTENDED || key / SPACING % WRITERS != own)
        return;
    if (!ebb || mine[key] || place == 1)
        update_own(&mine[key], key, ebb && place != 1, random);
}

static void *writer(void *number)
{
    const unsigned own = (unsigned)(uintptr_t)number;
    uint64_t random = own + 4711;
    struct stash stash = {.random = own * UINT64_C(131) + 7};
    struct entry **mine = calloc(keys, sizeof *mine), *fresh, *old;

    stash_self = &stash;
    while (!torture_stopped()) {
        serve(&stash);
        for (unsigned i = 0; i < 50; i++)
            update_some(mine, own, &random);
        fresh = make(0);
        old = update_any(&fresh, &random);
        retire(old);
        object_unmake(head_of(fresh));
        __atomic_fetch_add(&won, old != NULL, __ATOMIC_RELAXED);
        __atomic_fetch_add(&updates, 50 / WRITERS + 1, __ATOMIC_RELAXED);
    }
    for (unsigned key = 0; key < keys; key++)
        if (mine[key])
            update_own(&mine[key], key, true, &random);
    free(mine);
    empty_stash(&stash);
    return NULL;
}

static void *resizer(void *unused)
{
    uint64_t random = 99;

    while (!torture_stopped()) {
        int error = prudence_hash_resize(table, UINT64_C(64) << torture_below(&random, 7));

        TORTURE_CHECK(error == 0 || error == EAGAIN); /* replaced arrays may fill latent_limit */
        __atomic_fetch_add(&resizes, 1, __ATOMIC_RELAXED);
        if (torture_below(&random, 4) == 0)
            sched_yield();
    }
    return unused;
}

/* The child's only thread finds the lasting keys, and can take out each entry and put it back. */
static int be_child(void)
{
    for (unsigned key = 0; key < keys; key++) {
        struct entry *there = there_now(key), *erased = NULL;

        if (key % SPACING == 0 && there != lasting[key / SPACING])
            torture_violation("a child does not find lasting key %u", key);
        kind.erase(table, key, &erased);
        if (erased != there || (there && kind.add(table, key, there, NULL)))
            torture_violation("a child cannot change key %u", key);
    }
    return torture_violations ? 4 : 0;
}

static void fork_until(uint64_t end)
{
    while (torture_now() < end || !forks) {
        pid_t child = fork();
        int status;

        if (child == 0)
            _exit(be_child());
        status = torture_wait(child, 100);
        if (status)
            torture_violation("child %d ended with status %#x", (int)child, (unsigned)status);
        forks++;
    }
}

/* ------------------------------------------------------------------------------------------ run */

static const char *const names[TABLE_KINDS] = {
    [TABLE_HASH] = "hash",
    [TABLE_LOCKFREE_HASH] = "lockfree",
    [TABLE_MAP] = "map",
    [TABLE_MAP_BYTES] = "map-strings",
    [TABLE_HASH_VALUES] = "hash-values",
    [TABLE_HASH_VALUES_BYTES] = "hash-values-strings",
    [TABLE_MAP_VALUES] = "map-values",
    [TABLE_MAP_VALUES_BYTES] = "map-values-strings",
    [TABLE_IDS] = "ids",
    [TABLE_ROUTES_IPV4] = "ipv4",
    [TABLE_ROUTES_IPV6] = "ipv6",
    [TABLE_ROUTES_AREAS] = "areas",
};

static uint64_t few_hashes(uint64_t number)
{
    return prudence_hash_mix(number) & 0x3f;
}

static void set_up(const char *variant)
{
    static const struct prudence_hash_attr fixed = {.size = sizeof fixed,
                                                    .flags = PRUDENCE_HASH_FIXED};
    static const struct prudence_routes_attr wide = {.size = sizeof wide, .prefixes = 1 << 17};
    const size_t length = strcspn(variant, " ");
    unsigned number = 0;

    while (strlen(names[number]) != length || strncmp(names[number], variant, length))
        number++;
    kind = table_kinds[number];
    if (strstr(variant, "resized"))
        kind.attr = &fixed;
    if (strstr(variant, "wide"))
        kind.attr = &wide;
    if (strstr(variant, "crowded"))
        table_hash = few_hashes;
    readers_stay = strstr(variant, "limit");
    tables_are_shared = true;
    table = table_make(&kind, NULL);
    keys = *kind.keys;
    cache = prudence_cache_create("torture", sizeof(struct object), NULL);
    for (unsigned key = 0; key < keys; key++)
        if (key % SPACING == 0 || key % SPACING == REPLACED) {
            struct entry *entry = make(key);

            TORTURE_CHECK(!kind.add(table, key, entry, NULL));
            if (key % SPACING == 0)
                lasting[key / SPACING] = entry;
        }
}

static void tear_down(void)
{
    prudence_read_lock();
    walk();
    prudence_read_unlock();
    for (unsigned key = 0; key < keys; key++) {
        const unsigned place = key % SPACING;
        struct entry *left = NULL;

        begin_update();
        kind.erase(table, key, &left);
        end_update();
        TORTURE_CHECK(left ? place == 0 || place == REPLACED || place == CONTENDED
                           : place != 0 && place != REPLACED);
        retire(left);
    }
    TORTURE_CHECK(kind.count(table) == 0);
    prudence_trim(); /* nodes in quarantine, or resting by shuffle, count until then */
    kind.check(table);
    TORTURE_CHECK(kind.destroy(table, NULL, NULL) == 0);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
}

static int torture(const char *variant, double seconds)
{
    uint64_t end = torture_end_of(seconds);

    set_up(variant);
    torture_start(reader, READERS, 1);
    torture_start(writer, WRITERS, 0);
    if (strstr(variant, "resized"))
        torture_start(resizer, 1, 0);
    if (strstr(variant, "signals"))
        interrupt(end);
    if (strstr(variant, "fork"))
        fork_until(end);
    torture_sleep_until(end);
    torture_wait_for(&walks);
    torture_wait_for(&won);
    torture_join();
    tear_down();
    if (readers_stay)
        torture_check_limit();
    TORTURE_SAY({"updates", updates}, {"won", won}, {"lookups", lookups}, {"walks", walks},
                {"retired", torture_found_retired}, {"handled", handled}, {"forks", forks},
                {"resizes", resizes});
    return torture_end(variant);
}

TORTURE(torture, {"hash", ""}, {"hash resized", ""}, {"hash crowded", ""}, {"hash lock", "rseq=0"},
        {"lockfree", ""}, {"lockfree crowded", ""}, {"lockfree signals", ""},
        {"lockfree crowded signals", ""}, {"lockfree fenced signals", "reader_mode=fenced"},
        {"map", ""}, {"map fenced", "reader_mode=fenced"}, {"map-strings signals", ""},
        {"hash-values fork", ""}, {"hash-values-strings lock", "rseq=0"},
        {"hash-values-strings limit", "latent_limit=1M,wait_max=60s"}, {"map-values", ""},
        {"map-values-strings", ""}, {"map-values-strings fork", ""},
        {"map-values-strings limit", "latent_limit=2M,wait_max=60s"}, {"ids", ""},
        {"ids fenced", "reader_mode=fenced"}, {"ipv4", ""}, {"ipv4 wide", ""}, {"ipv6", ""},
        {"areas", ""}, {"ipv6 lock", "rseq=0"}, {"ipv4 limit", "latent_limit=2M,wait_max=60s"})
