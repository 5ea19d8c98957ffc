/* SPDX-License-Identifier: MIT */
/* A program on the epochs of Concurrency Kit, whose barrier synchronizes: it frees 100 objects. */
#include <ck_epoch.h>
#include <stdlib.h>

struct object {
    ck_epoch_entry_t entry;
    char rest[1000];
};

static void end(ck_epoch_entry_t *entry)
{
    free(entry);
}

int main(void)
{
    static ck_epoch_t epoch;
    static ck_epoch_record_t record;

    ck_epoch_init(&epoch);
    ck_epoch_register(&epoch, &record, NULL);
    for (int i = 0; i < 100; i++) {
        struct object *object = malloc(sizeof *object);

        if (!object)
            abort();
        ck_epoch_call(&record, &object->entry, end);
    }
    ck_epoch_barrier(&record);
    return 0;
}
