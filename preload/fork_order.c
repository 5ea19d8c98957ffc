/* SPDX-License-Identifier: MIT */
/*
 * Registers our fork handlers before all others.
 *
 * Handlers that prepare a fork run in the reverse order of registration, the others in that order.
 * A handler registered before ours would run while our locks are held, so it could neither allocate
 * nor wait for a thread that does. pthread_atfork is a few instructions in every program and
 * library, which call __register_atfork. So every registration passes through here, whichever
 * constructor runs first.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>

#include <prudence/prudence.h>

#include "heap/heap.h"
#include "process/fork.h"

typedef void handler(void);

PRUDENCE_API int __register_atfork(handler *prepare, handler *parent, handler *child, void *object);

int __register_atfork(handler *prepare, handler *parent, handler *child, void *object)
{
    static void *libc_function;
    union {
        void *address;
        __typeof(__register_atfork) *call;
    } real = {.address = load_relaxed(&libc_function)};
    int error;

    process_start(); /* comes here again, for our own handlers */
    if (!real.address) {
        real.address = dlsym(RTLD_NEXT, "__register_atfork");
        store_relaxed(&libc_function, real.address);
    }
    if (!real.address)
        return ENOMEM; /* the only error that pthread_atfork knows */
    fork_registration_begin();
    error = real.call(prepare, parent, child, object);
    fork_registration_end();
    return error;
}
