/* SPDX-License-Identifier: MIT */
/*
 * A library opened with RTLD_DEEPBIND. It frees blocks that others have allocated, and opens
 * another copy of itself, by a name that only its own RUNPATH resolves.
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

    return handle; /* no tail call, so that this library is the caller */
}
