/* SPDX-License-Identifier: MIT */
/*
 * The names of libscm's later header, <libscm.h>, for programs that include it: <stm.h> and
 * <stm-debug.h>, and clocks and regions that are numbers of the calling thread. Number 0 is the
 * thread's local clock. Differences: docs/reference/short-term-memory.md.
 *
 * A function with a number that is not in use does nothing but set errno to EINVAL, and
 * scm_malloc_in_region returns NULL. Signal safety, ownership and cost are as for the functions of
 * <prudence/scm.h>.
 */
#ifndef PRUDENCE_SCM_COMPAT_LIBSCM_H
#define PRUDENCE_SCM_COMPAT_LIBSCM_H

#include <prudence/language.h>
#include <prudence/scm-compat/stm-debug.h>

/* How many of each a thread may have; the same in all files of a program. */
#ifndef SCM_MAX_REGIONS
#define SCM_MAX_REGIONS 10
#endif
#ifndef SCM_MAX_CLOCKS
#define SCM_MAX_CLOCKS 10
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Clocks by the thread's numbers; NULL: the number is free. Weak, so that all files have one. */
struct prudence_libscm {
    struct scm_clock *clocks[SCM_MAX_CLOCKS];
    struct scm_region *regions[SCM_MAX_REGIONS];
};
extern __thread struct prudence_libscm prudence_libscm;
__attribute__((weak)) __thread struct prudence_libscm prudence_libscm;

#ifdef __cplusplus
}
#endif

static inline struct scm_clock *prudence_libscm_clock(unsigned number)
{
    return number < SCM_MAX_CLOCKS ? prudence_libscm.clocks[number] : PRUDENCE_NULL;
}

static inline struct scm_region *prudence_libscm_region(int number)
{
    return number >= 0 && number < SCM_MAX_REGIONS ? prudence_libscm.regions[number]
                                                   : PRUDENCE_NULL;
}

/* --------------------------------------------------------------------------------------- clocks */

/* Returns -1 if all numbers are in use, or with errno of scm_clock_create. */
static inline int scm_register_clock(void)
{
    for (int number = 1; number < SCM_MAX_CLOCKS; number++)
        if (!prudence_libscm.clocks[number]) {
            prudence_libscm.clocks[number] = scm_clock_create();
            return prudence_libscm.clocks[number] ? number : -1;
        }
    errno = ENOSPC;
    return -1;
}

static inline void scm_unregister_clock(int number)
{
    struct scm_clock *clock =
        number > 0 ? prudence_libscm_clock(PRUDENCE_CONVERT(unsigned, number)) : PRUDENCE_NULL;

    prudence_stm_done(clock ? scm_clock_destroy(clock) : EINVAL);
    if (clock)
        prudence_libscm.clocks[number] = PRUDENCE_NULL;
}

static inline void scm_tick_clock(unsigned number)
{
    struct scm_clock *clock = prudence_libscm_clock(number);

    if (!number)
        scm_tick();
    else
        prudence_stm_done(clock ? scm_clock_tick(clock) : EINVAL);
}

static inline void scm_refresh_with_clock(void *object, unsigned extension, unsigned number)
{
    struct scm_clock *clock = prudence_libscm_clock(number);

    if (!number)
        scm_refresh(object, extension);
    else
        prudence_stm_done(clock ? scm_clock_refresh(clock, object, extension) : EINVAL);
}

/* -------------------------------------------------------------------------------------- regions */

/* Returns -1 if all numbers are in use, or with errno of scm_region_create. */
static inline int scm_create_region(void)
{
    for (int number = 0; number < SCM_MAX_REGIONS; number++)
        if (!prudence_libscm.regions[number]) {
            prudence_libscm.regions[number] = scm_region_create();
            return prudence_libscm.regions[number] ? number : -1;
        }
    errno = ENOSPC;
    return -1;
}

static inline void scm_unregister_region(int number)
{
    struct scm_region *region = prudence_libscm_region(number);

    prudence_stm_done(region ? scm_region_unregister(region) : EINVAL);
    if (region)
        prudence_libscm.regions[number] = PRUDENCE_NULL;
}

/* A region that has expired goes on as an empty one under its number, as in libscm. */
static inline void *scm_malloc_in_region(size_t size, int number)
{
    struct scm_region *region = prudence_libscm_region(number), *next;
    void *object;

    if (!region) {
        errno = EINVAL;
        return PRUDENCE_NULL;
    }
    object = scm_region_alloc(region, size);
    if (object || errno != EPERM)
        return object;
    next = scm_region_create();
    if (!next)
        return PRUDENCE_NULL;
    scm_region_unregister(region);
    prudence_libscm.regions[number] = next;
    return scm_region_alloc(next, size);
}

static inline void scm_refresh_region_with_clock(int number, unsigned extension, unsigned clock)
{
    struct scm_region *region = prudence_libscm_region(number);
    struct scm_clock *further = prudence_libscm_clock(clock);

    if (!region || (clock && !further))
        errno = EINVAL;
    else
        prudence_stm_done(clock ? scm_region_clock_refresh(further, region, extension)
                                : scm_region_refresh(region, extension));
}

static inline void scm_refresh_region(int number, unsigned extension)
{
    scm_refresh_region_with_clock(number, extension, 0);
}

static inline void scm_global_refresh_region(int number, unsigned extension)
{
    struct scm_region *region = prudence_libscm_region(number);

    prudence_stm_done(region ? scm_region_global_refresh(region, extension) : EINVAL);
}

#endif /* PRUDENCE_SCM_COMPAT_LIBSCM_H */
