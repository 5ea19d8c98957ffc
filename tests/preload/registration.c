/* SPDX-License-Identifier: MIT */
/* Replaces __register_atfork(), and calls `registration_hook` where libc's list of handlers may
 * grow. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stddef.h>

typedef void handler(void);

int __register_atfork(handler *prepare, handler *parent, handler *child, void *object);

void (*registration_hook)(void);

int __register_atfork(handler *prepare, handler *parent, handler *child, void *object)
{
    union {
        void *address;
        __typeof(__register_atfork) *call;
    } real = {.address = dlsym(RTLD_NEXT, "__register_atfork")};

    if (registration_hook)
        registration_hook();
    return real.call(prepare, parent, child, object);
}
