/* SPDX-License-Identifier: MIT */
/*
 * Numbers of open files under the load of a chat server: each message looks files up, uses them
 * longer than a section should last, and now and then a file is closed. So a lookup takes a
 * reference, unless the last one is gone. docs/how-to/example-fd-table.md
 */
#include "example.h"

#include <prudence/id_table.h>

#define FILES 80 /* 20 users in 4 rooms */

struct file {
    unsigned references; /* the table holds one; atomic */
    bool open;
    unsigned messages; /* atomic */
};

static struct prudence_id_table *table; /* gives the lowest free number, as open() does */
static struct prudence_cache *cache;

static struct file *make(void)
{
    struct file *file = prudence_cache_alloc(cache);

    MUST(file);
    *file = (struct file){.references = 1, .open = true};
    return file;
}

static bool is_last(struct file *file)
{
    return __atomic_sub_fetch(&file->references, 1, __ATOMIC_ACQ_REL) == 0;
}

static long send_message(struct file *file)
{
    return file->open ? (long)__atomic_add_fetch(&file->messages, 1, __ATOMIC_RELAXED) : WRONG;
}

/* --------------------------------------------------------------------------------------- before */

static struct file *files[FILES];
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static long read_before(unsigned random)
{
    struct file *file;
    long sent;

    pthread_rwlock_rdlock(&lock);
    file = files[random % FILES];
    __atomic_add_fetch(&file->references, 1, __ATOMIC_RELAXED); /* the table holds one */
    pthread_rwlock_unlock(&lock);
    sent = send_message(file);
    if (is_last(file))
        prudence_cache_free(cache, file);
    return sent;
}

static void update_before(unsigned random)
{
    struct file *fresh = make(), *old;

    pthread_rwlock_wrlock(&lock);
    old = files[random % FILES];
    files[random % FILES] = fresh;
    pthread_rwlock_unlock(&lock);
    if (is_last(old))
        prudence_cache_free(cache, old);
}

/* ---------------------------------------------------------------------------------------- after */

static void put_file(struct file *file)
{
    if (is_last(file)) {
        file->open = false;
        prudence_cache_free_deferred(cache, file); /* a lookup may still try to take a reference */
    }
}

/* Returns the file with a reference for the caller, or NULL if there is none, or if it is being
 * closed. */
static struct file *get_file(uint32_t number)
{
    struct file *file;
    unsigned references = 0;

    prudence_read_lock();
    file = prudence_id_table_lookup(table, number);
    if (file) {
        meanwhile();
        references = __atomic_load_n(&file->references, __ATOMIC_RELAXED);
        while ((references > 0 || mistake) && /* the mistake: one more is one more? */
               !__atomic_compare_exchange_n(&file->references, &references, references + 1, true,
                                            __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            ;
    }
    prudence_read_unlock();
    return references > 0 || mistake ? file : NULL;
}

static long read_after(unsigned random)
{
    struct file *file = get_file(random % FILES);
    long sent;

    if (!file)
        return 0;
    sent = send_message(file);
    put_file(file);
    return sent;
}

static void update_after(unsigned random)
{
    uint32_t number;
    void *old;

    if (prudence_id_table_erase(table, random % FILES, &old))
        return; /* another thread closes it */
    put_file(old);
    MUST(prudence_id_table_add(table, make(), &number) == 0);
}

/* ---------------------------------------------------------------------------------------- check */

static void close_file(void)
{
    update_after(3);
}

static const char *check(void)
{
    struct file *file;

    example_meanwhile = close_file;
    file = get_file(3);
    return file && send_message(file) == WRONG ? "a file that is closed was given out" : NULL;
}

static void set_up(void)
{
    uint32_t number;

    MUST(cache = prudence_cache_create("files", sizeof(struct file), NULL));
    MUST(table = prudence_id_table_create("files", NULL));
    for (unsigned i = 0; i < FILES; i++) {
        files[i] = make();
        MUST(prudence_id_table_add(table, make(), &number) == 0 && number == i);
    }
}
