/* SPDX-License-Identifier: MIT */
/*
 * Hot swap with a transfer of state (<prudence/swap.h>). The thread that took the old object out is
 * the only one that has it, once the readers that found it before have ended. Until that thread
 * puts an object back, the handle is empty, which shows other threads that a transfer is under way.
 * So no lock is needed, and no thread waits for anything but readers.
 */
#include <prudence/swap.h>

#include <errno.h>

#include <prudence/rcu.h>

#include "base/atomic.h"
#include "os/os.h"
#include "race_detector.h"
#include "tables/own_successor.h"
#include "tables/waiting.h"

/* Puts the object in an empty handle. Release: readers see the transferred state. ThreadSanitizer
 * is notified, because this is not the program's code. */
static bool put_in(struct prudence_swap *handle, void *object)
{
    void *none = NULL;

    tell_release(object);
    return compare_exchange(&handle->object, &none, object);
}

/* Takes the object out, unless there is none (EAGAIN) or it is `fresh` (EINVAL). */
static int swap_take_out(struct prudence_swap *handle, const void *fresh, void **object)
{
    *object = load_relaxed(&handle->object);
    do {
        if (!*object)
            return EAGAIN;
        if (unlikely(*object == fresh))
            return refuse_own_successor("prudence_swap_transfer");
    } while (!compare_exchange(&handle->object, object, NULL));
    return 0;
}

int prudence_swap_transfer(struct prudence_swap *handle, void *fresh, void **old,
                           int (*transfer)(void *old, void *fresh, void *context), void *context,
                           struct prudence_domain *domain)
{
    void *object;
    int error;

    if (!handle || !fresh || !old || !transfer)
        return EINVAL;
    *old = NULL;
    domain = domain ? domain : prudence_default_domain();
    error = waiting_error("prudence_swap_transfer", "of a handle", "", domain,
                          __builtin_return_address(0));
    if (error)
        return error;
    error = swap_take_out(handle, fresh, &object);
    if (error)
        return error;
    tell_acquire(object);
    error = prudence_domain_synchronize(domain);
    if (!error) {
        os_foreign_call("the transfer of a handle's object");
        error = transfer(object, fresh, context);
    }
    if (put_in(handle, error ? object : fresh)) {
        *old = error ? NULL : object;
        return error;
    }
    *old = object;
    return error ? error : EAGAIN;
}
