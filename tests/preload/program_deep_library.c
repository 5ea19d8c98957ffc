/* SPDX-License-Identifier: MIT */
/*
 * A library that is opened with RTLD_DEEPBIND: it frees what others have allocated, and opens another
 * copy of itself, by a name that only its own RUNPATH leads to.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

void deep_free(void *object);
void *deep_alloc(void);
void *deep_open(const char *name, int flags);

void deep_free(void *object)
{
    free(object);
}

void *deep_alloc(void)
{
    return malloc(100);
}

void *deep_open(const char *name, int flags)
{
    void *handle = dlopen(name, flags);

    return handle; /* no tail call: this library is the caller */
}
