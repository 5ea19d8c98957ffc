/* SPDX-License-Identifier: MIT */
/* Readers that find only objects that are not deleted, in docs/how-to/structures.md. */
#include <prudence/id_table.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <pthread.h>

struct semaphore {
    pthread_mutex_t lock;
    bool deleted; /* under the lock */
    int value;
};

/* Returns with the lock taken, and inside the section that its caller entered. */
static struct semaphore *lock_semaphore(struct prudence_id_table *table, uint32_t id)
{
    struct semaphore *semaphore = prudence_id_table_lookup(table, id);

    if (!semaphore)
        return NULL;
    pthread_mutex_lock(&semaphore->lock);
    if (!semaphore->deleted)
        return semaphore;
    pthread_mutex_unlock(&semaphore->lock); /* a deleted object counts as not found */
    return NULL;
}

static void delete_semaphore(struct prudence_id_table *table, uint32_t id)
{
    struct semaphore *semaphore;
    void *erased;

    if (prudence_id_table_erase(table, id, &erased))
        return; /* another thread deletes it */
    semaphore = erased;
    pthread_mutex_lock(&semaphore->lock);
    semaphore->deleted = true;
    pthread_mutex_unlock(&semaphore->lock);
    prudence_free_deferred(semaphore); /* readers that wait for the lock are in sections */
}

int main(void)
{
    struct prudence_id_table *table = prudence_id_table_create("semaphores", NULL);
    struct semaphore *semaphore = prudence_malloc(sizeof *semaphore), *found;
    uint32_t id;

    *semaphore = (struct semaphore){.lock = PTHREAD_MUTEX_INITIALIZER, .value = 1};
    if (prudence_id_table_add(table, semaphore, &id))
        return 1;
    prudence_read_lock();
    found = lock_semaphore(table, id);
    if (found)
        pthread_mutex_unlock(&found->lock);
    prudence_read_unlock();
    delete_semaphore(table, id);
    prudence_read_lock();
    if (lock_semaphore(table, id))
        found = NULL;
    prudence_read_unlock();
    return found != semaphore;
}
