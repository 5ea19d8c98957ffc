/* SPDX-License-Identifier: MIT */
/* Starts the process's parts at first use. The embedding program defines the parts and their
 * order. */
#include <pthread.h>

#include "os/os.h"
#include "process.h"

uint32_t process_started READ_MOSTLY = 0;
static pthread_once_t once = PTHREAD_ONCE_INIT;

__thread bool process_starting;

/* Set when the library has been loaded. */
static uint32_t loaded;

/* Calls a function of all parts that have it. */
#define CALL_PARTS(function)                                                                       \
    do {                                                                                           \
        for (const struct process_part *const *table_ = process_parts; *table_; table_++)          \
            for (const struct process_part *part_ = *table_; part_->name; part_++)                 \
                if (part_->function)                                                               \
                    part_->function();                                                             \
    } while (0)

COLD static void process_start_parts(void)
{
    int cancelable;

    process_starting = true;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable); /* reads /sys */
    CALL_PARTS(start);
    store_release(&process_started, 1u);
    pthread_setcancelstate(cancelable, NULL);
    process_starting = false;
}

COLD void process_start_slow(void)
{
    if (!process_starting)
        pthread_once(&once, process_start_parts);
}

void process_act(void)
{
    /* The setter of an option stores the option, then reads `loaded`. process_loaded() stores
     * `loaded`, then reads options. Both fence in between, so at least one sees the other's
     * store. */
    os_full_fence();
    if (!load_relaxed(&loaded))
        return;
    CALL_PARTS(act);
}

uint64_t os_asked;

__thread bool os_obeying;

/* A part may allocate, and come here again. */
void os_asked_act(void)
{
    bool outer = os_obeying;

    os_obeying = true;
    CALL_PARTS(obey);
    os_obeying = outer;
}

void process_loaded(void)
{
    store_relaxed(&loaded, 1u);
    process_act();
}
