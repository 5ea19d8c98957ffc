/* SPDX-License-Identifier: MIT */
/*
 * Hot swap with a transfer of state (<prudence/swap.h>). The thread that took the old object out is the only one that has it, once the
 * readers have left that found it before. Until it puts one back the handle is empty, which says to others that a transfer
 * is under way: so there is no lock, and nothing to wait for but readers.
 */
#include <prudence/swap.h>

#include <errno.h>

#include <prudence/rcu.h>

#include "base/atomic.h"
#include "os/os.h"
#include "race_detector.h"
#include "structures/waiting.h"

/* Release: readers see what was transferred. ThreadSanitizer is told, because this is not the program's code. */
static bool put_in(struct prudence_swap *handle, void *object)
{
    void *none = NULL;

    tell_release(object);
    return compare_exchange(&handle->object, &none, object);
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
    object = prudence_swap_exchange(handle, NULL);
    if (!object)
        return EAGAIN;
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
