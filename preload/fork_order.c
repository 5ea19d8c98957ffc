/* SPDX-License-Identifier: MIT */
/*
 * Our fork handlers before anybody else's.
 *
 * Handlers that prepare a fork run in the reverse order of registration, the others in that order.
 * What registered before us would run its handlers while our locks are held: it could not allocate,
 * nor wait for a thread that does. pthread_atfork is a few instructions in every program and
 * library, which call __register_atfork; so that is where everybody passes, whatever constructor
 * runs first.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>

#include <prudence/prudence.h>

#include "heap/heap.h"
#include "runtime/fork.h"

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
        return ENOMEM; /* the one error that pthread_atfork knows */
    fork_registration_begin();
    error = real.call(prepare, parent, child, object);
    fork_registration_end();
    return error;
}
