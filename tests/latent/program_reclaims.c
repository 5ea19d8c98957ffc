/* SPDX-License-Identifier: MIT */
/*
 * A program on Concurrency Kit that defers OBJECTS objects and frees them all, by the call that its
 * word names; "hp" defers them to hazard pointers.
 */
#include <ck_epoch.h>
#include <ck_hp.h>
#include <stdlib.h>
#include <string.h>

#define OBJECTS 100

struct object {
    ck_epoch_entry_t entry;
    ck_hp_hazard_t hazard;
    char rest[1000];
};

CK_STACK_CONTAINER(ck_epoch_entry_t, stack_entry, entry_of)

static ck_epoch_t epoch;
static ck_epoch_record_t record;

static void end(ck_epoch_entry_t *entry)
{
    free(entry);
}

static void wait_for_readers(ck_epoch_t *global, ck_epoch_record_t *reader, void *data)
{
    (void)global;
    (void)reader;
    (void)data;
}

static struct object *object_make(void)
{
    struct object *object = malloc(sizeof *object);

    if (!object)
        abort();
    return object;
}

/* Each advances the epoch by one; entries are free after two or three. */
static void poll_deferred(void)
{
    ck_stack_t deferred;
    ck_stack_entry_t *entry, *next;

    ck_stack_init(&deferred);
    for (int i = 0; i < 4; i++)
        ck_epoch_poll_deferred(&record, &deferred);
    CK_STACK_FOREACH_SAFE(&deferred, entry, next)
    end(entry_of(entry));
}

static void hp(void)
{
    static ck_hp_t hazards;
    static ck_hp_record_t mine;
    static void *names[1];

    ck_hp_init(&hazards, 1, 10, free);
    ck_hp_register(&hazards, &mine, names);
    for (int i = 0; i < OBJECTS / 2; i++) {
        struct object *object = object_make();

        ck_hp_free(&mine, &object->hazard, object, object);
    }
    for (int i = 0; i < OBJECTS / 2; i++) {
        struct object *object = object_make();

        ck_hp_retire(&mine, &object->hazard, object, object);
    }
    ck_hp_reclaim(&mine);
    ck_hp_purge(&mine);
}

int main(int count, char **words)
{
    const char *word = count == 2 ? words[1] : "";

    if (!strcmp(word, "hp")) {
        hp();
        return 0;
    }
    ck_epoch_init(&epoch);
    ck_epoch_register(&epoch, &record, NULL);
    for (int i = 0; i < OBJECTS; i++)
        ck_epoch_call(&record, &object_make()->entry, end);
    if (!strcmp(word, "barrier")) {
        ck_epoch_barrier(&record);
    } else if (!strcmp(word, "barrier_wait")) {
        ck_epoch_barrier_wait(&record, wait_for_readers, NULL);
    } else if (!strcmp(word, "synchronize")) {
        ck_epoch_synchronize(&record);
        ck_epoch_reclaim(&record);
    } else if (!strcmp(word, "synchronize_wait")) {
        ck_epoch_synchronize_wait(&epoch, wait_for_readers, NULL);
        ck_epoch_reclaim(&record);
    } else if (!strcmp(word, "poll")) {
        for (int i = 0; i < 4; i++)
            ck_epoch_poll(&record);
    } else if (!strcmp(word, "poll_deferred")) {
        poll_deferred();
    } else {
        return 1;
    }
    return 0;
}
