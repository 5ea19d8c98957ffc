/* SPDX-License-Identifier: MIT */
/*
 * Registers our fork handlers before all others.
 *
 * Handlers that prepare a fork run in the reverse order of registration, the others in that order.
 * A handler registered before ours would run while our locks are held, so it could neither allocate
 * nor wait for a thread that does. pthread_atfork is a few instructions in every program and
 * library, which call __register_atfork. So every registration passes through here, whichever
 * constructor runs first.
 *
 * If a library of the program, and not the program, is linked with this one, libc comes first in
 * look-up order. Other registrations then go to libc, and the next function after ours is none.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>

#include <prudence/prudence.h>

#include "heap/heap.h"
#include "process/fork.h"

typedef void handler(void);

PRUDENCE_API int __register_atfork(handler *prepare, handler *parent, handler *child, void *object);

union registration {
    void *address;
    __typeof(__register_atfork) *call;
};

/* Returns the function of libc, or NULL. */
static void *find_libc_function(void)
{
    const union registration ours = {.call = __register_atfork};
    void *found = dlsym(RTLD_NEXT, "__register_atfork");

    if (!found)
        found = dlsym(RTLD_DEFAULT, "__register_atfork");
    return found != ours.address ? found : NULL;
}

int __register_atfork(handler *prepare, handler *parent, handler *child, void *object)
{
    static void *libc_function;
    union registration real = {.address = load_relaxed(&libc_function)};
    int error;

    process_start(); /* comes here again, for our own handlers */
    if (!real.address) {
        real.address = find_libc_function();
        store_relaxed(&libc_function, real.address);
    }
    if (!real.address)
        return ENOMEM; /* the only error that pthread_atfork knows */
    fork_registration_begin();
    error = real.call(prepare, parent, child, object);
    fork_registration_end();
    return error;
}
