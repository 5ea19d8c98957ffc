/* SPDX-License-Identifier: MIT */
/*
 * Register, then wait: a backup of a table that keeps changing. Changes note the cells they touch
 * while a backup is registered. A change that found no backup may still be under way, so the copy
 * begins a grace period later. docs/how-to/example-start-backup.md
 */
#include "example.h"

#define CELLS 64

struct backup {
    bool dirty[CELLS]; /* atomic: changed since the backup was registered */
    long copy[CELLS];
};

static long cells[CELLS]; /* atomic */
static bool lost;         /* atomic: a backup lacks a change and a note of that change */

static void take_copy(struct backup *backup)
{
    for (unsigned i = 0; i < CELLS; i++)
        backup->copy[i] = __atomic_load_n(&cells[i], __ATOMIC_RELAXED);
}

/* Checks that each cell that differs from the copy is noted. Acquire, because the note is stored
 * before the change. */
static void verify(const struct backup *backup)
{
    for (unsigned i = 0; i < CELLS; i++)
        if (__atomic_load_n(&cells[i], __ATOMIC_ACQUIRE) != backup->copy[i] &&
            !__atomic_load_n(&backup->dirty[i], __ATOMIC_RELAXED))
            __atomic_store_n(&lost, true, __ATOMIC_RELAXED);
}

static long change(struct backup *backup, unsigned random)
{
    if (backup)
        __atomic_store_n(&backup->dirty[random % CELLS], true, __ATOMIC_RELAXED);
    meanwhile();
    __atomic_store_n(&cells[random % CELLS], random, __ATOMIC_RELEASE);
    return __atomic_load_n(&lost, __ATOMIC_RELAXED) ? WRONG : 0;
}

/* --------------------------------------------------------------------------------------- before */

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

/* The frequent operation is a change, which reads the registration. */
static long read_before(unsigned random)
{
    long result;

    pthread_rwlock_rdlock(&lock);
    result = change(NULL, random);
    pthread_rwlock_unlock(&lock);
    return result;
}

static void update_before(unsigned random)
{
    struct backup backup = {.copy = {0}};

    pthread_rwlock_wrlock(&lock); /* no change until all is copied */
    take_copy(&backup);
    verify(&backup);
    pthread_rwlock_unlock(&lock);
}

/* ---------------------------------------------------------------------------------------- after */

static struct backup *registered;
static pthread_mutex_t backups = PTHREAD_MUTEX_INITIALIZER; /* taken by no change */

static long read_after(unsigned random)
{
    long result;

    prudence_read_lock();
    result = change(prudence_dereference(registered), random);
    prudence_read_unlock();
    return result;
}

/* Registers a backup for new changes. The cookie shows when the others have ended. */
static prudence_gp_t start(struct backup *backup)
{
    prudence_assign_pointer(registered, backup);
    return prudence_gp_start_poll();
}

static bool all_changes_note(prudence_gp_t cookie)
{
    return mistake || prudence_gp_poll_state(cookie);
}

static void update_after(unsigned random)
{
    struct backup *backup = prudence_calloc(1, sizeof *backup);
    prudence_gp_t cookie;

    MUST(backup);
    pthread_mutex_lock(&backups);
    cookie = start(backup);
    if (!all_changes_note(cookie))
        prudence_gp_cond_synchronize(cookie);
    take_copy(backup);
    verify(backup);
    prudence_assign_pointer(registered, NULL);
    pthread_mutex_unlock(&backups);
    prudence_free_deferred(backup);
}

/* ---------------------------------------------------------------------------------------- check */

static struct backup backup;
static prudence_gp_t began;
static bool copied;

static void begin(void)
{
    began = start(&backup);
    copied = all_changes_note(began);
    if (copied)
        take_copy(&backup);
}

static const char *check(void)
{
    example_meanwhile = begin;
    read_after(CELLS + 3); /* the change finds no backup, and then one begins */
    if (!copied) {
        prudence_gp_cond_synchronize(began);
        take_copy(&backup);
    }
    read_after(4);
    verify(&backup);
    prudence_assign_pointer(registered, NULL);
    prudence_synchronize();
    return lost ? "a backup has missed a change" : backup.dirty[4] ? NULL : "a change is not noted";
}

static void set_up(void)
{
    for (unsigned i = 0; i < CELLS; i++)
        cells[i] = i;
}
