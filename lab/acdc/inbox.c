/* SPDX-License-Identifier: MIT */
#include "inbox.h"

#include "group.h"

void inbox_open(struct inbox *inbox)
{
    pthread_mutex_init(&inbox->lock, NULL);
    inbox->first = NULL;
    inbox->closed = false;
}

void inbox_end(struct inbox *inbox)
{
    pthread_mutex_destroy(&inbox->lock);
}

bool inbox_put(struct inbox *inbox, struct holding *holding)
{
    bool open;

    pthread_mutex_lock(&inbox->lock);
    open = !inbox->closed;
    if (open) {
        holding->next = inbox->first;
        __atomic_store_n(&inbox->first, holding, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&inbox->lock);
    return open;
}

static struct holding *reversed(struct holding *list)
{
    struct holding *result = NULL;

    while (list) {
        struct holding *next = list->next;

        list->next = result;
        result = list;
        list = next;
    }
    return result;
}

/* Called with the lock held. */
static struct holding *take_all(struct inbox *inbox)
{
    struct holding *list = inbox->first;

    __atomic_store_n(&inbox->first, NULL, __ATOMIC_RELAXED);
    return reversed(list);
}

struct holding *inbox_take(struct inbox *inbox, bool close)
{
    struct holding *list;

    if (!close && !__atomic_load_n(&inbox->first, __ATOMIC_RELAXED))
        return NULL;
    pthread_mutex_lock(&inbox->lock);
    list = take_all(inbox);
    inbox->closed |= close;
    pthread_mutex_unlock(&inbox->lock);
    return list;
}

struct holding *inbox_take_or_hold(struct inbox *inbox)
{
    struct holding *list;

    pthread_mutex_lock(&inbox->lock);
    list = take_all(inbox);
    if (list)
        pthread_mutex_unlock(&inbox->lock);
    return list;
}

void inbox_release(struct inbox *inbox)
{
    pthread_mutex_unlock(&inbox->lock);
}
