/* SPDX-License-Identifier: MIT */
/*
 * libscm's <stm-debug.h>: finalizers, and figures about memory. scm_register_finalizer, struct
 * scm_mem_info (with more fields after libscm's) and scm_get_mem_info come from <prudence/scm.h>;
 * no option turns them on. An unknown number of a finalizer sets errno to EINVAL, and is reported.
 */
#ifndef PRUDENCE_SCM_COMPAT_STM_DEBUG_H
#define PRUDENCE_SCM_COMPAT_STM_DEBUG_H

#include <prudence/scm-compat/stm.h>

static inline void prudence_stm_set_finalizer(void *object, int number)
{
    prudence_stm_done(scm_set_finalizer(object, number));
}

#define scm_set_finalizer prudence_stm_set_finalizer

#endif /* PRUDENCE_SCM_COMPAT_STM_DEBUG_H */
