/* SPDX-License-Identifier: MIT */
/*
 * The names of libscm, the implementation of M. Aigner's "Short-term Memory for C" (2012), for
 * programs that include <stm.h>. Compile them with -I.../include/prudence/scm-compat and link them
 * with -lprudence instead of -lscm.
 *
 * The functions of <prudence/scm.h> have the same names. The inline functions below, which become
 * part of the caller, provide the behaviour of libscm where that differs:
 *  - They return nothing, so they can be stored in pointers to such functions. They set errno on an
 *    error, and leave it unchanged otherwise. All errors but ENOMEM are reported on standard error,
 *    too.
 *  - A thread takes part from its first tick, too. In <prudence/scm.h> that is an error.
 *  - libscm shortens an extension above SCM_MAX_EXPIRATION_EXTENSION. Here the extension is kept,
 *    up to the option scm_max_extension (4095), and a longer one is refused and reported (ERANGE).
 *
 * Thread and signal safety, ownership and cost are as for the functions of <prudence/scm.h>. A tick
 * costs one more call.
 */
#ifndef PRUDENCE_SCM_COMPAT_STM_H
#define PRUDENCE_SCM_COMPAT_STM_H

#include <errno.h>

#include <prudence/scm.h>

/* libscm's own value, for programs that choose their extensions by it. */
#ifndef SCM_MAX_EXPIRATION_EXTENSION
#define SCM_MAX_EXPIRATION_EXTENSION 10
#endif

static inline void prudence_stm_done(int error)
{
    if (error)
        errno = error;
}

static inline void prudence_stm_refresh(void *object, unsigned extension)
{
    prudence_stm_done(scm_refresh(object, extension));
}

static inline void prudence_stm_global_refresh(void *object, unsigned extension)
{
    prudence_stm_done(scm_global_refresh(object, extension));
}

/* Registering a thread that takes part already has no effect. */
static inline void prudence_stm_tick(void)
{
    int error = scm_register_thread();

    prudence_stm_done(error ? error : scm_tick());
}

static inline void prudence_stm_global_tick(void)
{
    int error = scm_register_thread();

    prudence_stm_done(error ? error : scm_global_tick());
}

static inline void prudence_stm_collect(void)
{
    int error = scm_register_thread();

    prudence_stm_done(error ? error : scm_collect());
}

static inline void prudence_stm_register_thread(void)
{
    prudence_stm_done(scm_register_thread());
}

static inline void prudence_stm_unregister_thread(void)
{
    prudence_stm_done(scm_unregister_thread());
}

/*
 * Makes a thread that has not taken part yet do so from now on, but blocked, so global time does
 * not wait for it.
 */
static inline void prudence_stm_block_thread(void)
{
    int error = scm_register_thread();

    prudence_stm_done(error ? error : scm_block_thread());
}

static inline void prudence_stm_resume_thread(void)
{
    prudence_stm_done(scm_resume_thread());
}

/* From here on the program's calls, and its pointers to these functions, are libscm's. */
#define scm_refresh           prudence_stm_refresh
#define scm_global_refresh    prudence_stm_global_refresh
#define scm_tick              prudence_stm_tick
#define scm_global_tick       prudence_stm_global_tick
#define scm_collect           prudence_stm_collect
#define scm_register_thread   prudence_stm_register_thread
#define scm_unregister_thread prudence_stm_unregister_thread
#define scm_block_thread      prudence_stm_block_thread
#define scm_resume_thread     prudence_stm_resume_thread

#endif /* PRUDENCE_SCM_COMPAT_STM_H */
