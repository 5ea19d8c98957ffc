/* SPDX-License-Identifier: MIT */
/* Touches the memory of an object as a program does: one byte in each line. */
#ifndef ACDC_TOUCH_H
#define ACDC_TOUCH_H

#include "group.h"
#include "settings.h"

#define TOUCH_LINE 64

/* The public tool touches only the links of an object that it does not write. */
static inline size_t touch_bytes(const struct settings *settings, const struct object *object)
{
    return settings->original && object->size > TOUCH_LINE ? TOUCH_LINE : object->size;
}

/* Touches all lines of a new object, as a program does, so that they become resident. */
static inline void touch_all(const struct settings *settings, const struct object *object)
{
    size_t size = touch_bytes(settings, object);

    for (size_t at = 0; at < size; at += TOUCH_LINE)
        __atomic_store_n((char *)object->memory + at, 1, __ATOMIC_RELAXED);
}

static inline void touch_read(const struct settings *settings, const struct object *object)
{
    size_t size = touch_bytes(settings, object);

    for (size_t at = 0; at < size; at += TOUCH_LINE)
        (void)__atomic_load_n((char *)object->memory + at, __ATOMIC_RELAXED);
}

static inline void touch_write(const struct object *object, unsigned iterations)
{
    for (size_t at = 0; at < object->size; at += TOUCH_LINE) {
        char *byte = (char *)object->memory + at;

        for (unsigned i = 0; i < iterations; i++)
            __atomic_store_n(byte, (char)(__atomic_load_n(byte, __ATOMIC_RELAXED) + 1),
                             __ATOMIC_RELAXED);
    }
}

#endif /* ACDC_TOUCH_H */
