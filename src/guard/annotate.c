/* SPDX-License-Identifier: MIT */
/*
 * Annotations for tools. ThreadSanitizer, if present in the process, learns how objects pass from
 * thread to thread. Two tools watch memory: Valgrind's memcheck, if the library was built with the
 * Valgrind header, and AddressSanitizer, if present in the process. Both learn where an object
 * begins and ends, and that no other memory of a slab may be touched. A deferred object ends with
 * the grace period, because readers may read the object until then.
 *
 * Two tools search for leaks: memcheck, and LeakSanitizer, which comes with AddressSanitizer or
 * alone.
 *   - LeakSanitizer knows the C library's blocks. We say where pointers to them may be: in our
 *     slabs, and in the words of our metadata that store the program's pointers
 *     (annotate_root_begins).
 *   - Memcheck also knows our objects, and searches all memory. A block without a pointer there is
 *     reported as lost. So an object's note holds the address while no other word need: while the
 *     object is deferred (a latent slab has only a bit), while the object has an expiration date,
 *     and always if the object belongs to the library (CACHE_OWN).
 *
 * Each object's note also has the number of bytes asked for, because memcheck and AddressSanitizer
 * know bytes, not size classes.
 *
 * Type-safe memory is not annotated, because freed objects may be read there. Objects of a cache
 * with a constructor are accessible before their first allocation, and always defined.
 */
#include "fork_part.h"
#include "gp/gp.h"
#include "gp/user/drive.h"
#include "guard/annotate.h"
#include "guard/instruments.h"
#include "race_detector.h"
#include "slab/cache.h"
#include "slab/slab.h"

#ifdef PRUDENCE_VALGRIND
#include <valgrind/memcheck.h>
#endif

/* Functions of AddressSanitizer and LeakSanitizer; present if some part of the process was built
 * with -fsanitize=address, or for LeakSanitizer's with -fsanitize=leak. */
extern void __asan_poison_memory_region(void const volatile *address, size_t size)
    __attribute__((weak));
extern void __asan_unpoison_memory_region(void const volatile *address, size_t size)
    __attribute__((weak));
extern void __lsan_register_root_region(const void *address, size_t size) __attribute__((weak));
extern void __lsan_unregister_root_region(const void *address, size_t size) __attribute__((weak));

struct note {
    size_t size;
    void *held; /* the object, while memcheck must not call it a leak */
};

static bool valgrind_on, asan_on, lsan_on;

COLD void annotate_start(void)
{
    valgrind_on = asan_on = lsan_on = false;
    if (annotate_wanted) {
#ifdef PRUDENCE_VALGRIND
        valgrind_on = RUNNING_ON_VALGRIND > 0;
#endif
        asan_on = __asan_poison_memory_region && __asan_unpoison_memory_region;
        lsan_on = __lsan_register_root_region && __lsan_unregister_root_region;
    }
    annotate_on = valgrind_on || asan_on || lsan_on;
    race_detector_start(annotate_wanted);
}

/* ----------------------------------------------------------------------- from thread to thread */

/* Returns the address that names an object to ThreadSanitizer. Lone objects are named by their
 * page, because a guarded object may start anywhere there, and the next one elsewhere. */
static const void *annotate_name_of(const struct slab *slab, const void *object)
{
    return slab->alone ? slab->pages : object;
}

void annotate_passes(const struct slab *slab, const void *object)
{
    tell_release(annotate_name_of(slab, object));
}

void annotate_taken(const struct slab *slab, const void *object)
{
    tell_acquire(annotate_name_of(slab, object));
}

void annotate_safe(const struct slab *slab, const void *object)
{
    if (likely(!race_detector_on))
        return;
    gp_drive_tell_over(slab->cache->domain);
    annotate_taken(slab, object);
}

static void tell_all_objects(const struct slab *slab, void (*tell)(const void *object))
{
    const char *object = slab->base;

    for (unsigned i = 0; i < slab->capacity; i++)
        tell(object + i * slab_object_bytes(slab));
}

void annotate_pages_taken(void)
{
    tell_acquire(&race_detector_pages);
}

void annotate_all_pass(const struct slab *slab)
{
    if (unlikely(race_detector_on))
        tell_all_objects(slab, race_detector_release);
}

void annotate_pages_pass(const struct slab *slab)
{
    if (likely(!race_detector_on))
        return;
    tell_all_objects(slab, race_detector_acquire);
    tell_release(&race_detector_pages);
}

static bool has_notes(const struct slab *slab)
{
    return slab->side[INSTRUMENTS_EXTENSION] != NULL;
}

static struct note *annotate_note_of(const struct slab *slab, const void *object)
{
    return (struct note *)slab->side[INSTRUMENTS_EXTENSION] + slab_index(slab, object);
}

/* ----------------------------------------------------------------------------------- the tools */

/* Guards LeakSanitizer's list of regions: the tool's own lock is one that fork does not take. */
static struct os_lock annotate_lock = OS_LOCK_INIT(OS_RANK_DEBUG);

bool annotate_root_begins(const void *place, size_t bytes)
{
    if (likely(!lsan_on))
        return false;
    os_lock_take(&annotate_lock);
    __lsan_register_root_region(place, bytes);
    os_lock_release(&annotate_lock);
    return true;
}

void annotate_root_ends(const void *place, size_t bytes)
{
    if (likely(!lsan_on))
        return;
    os_lock_take(&annotate_lock);
    __lsan_unregister_root_region(place, bytes);
    os_lock_release(&annotate_lock);
}

static void annotate_fork_prepare(void)
{
    os_lock_take_for_fork(&annotate_lock);
}

static void annotate_fork_done(void)
{
    os_lock_release_from_fork(&annotate_lock);
}

/* Announces the pages of a slab. With `closed`, no part may be touched until allocated. */
static void begin_pages(const struct slab *slab, bool closed)
{
    annotate_root_begins(slab->pages, slab->bytes);
    if (asan_on && closed)
        __asan_poison_memory_region(slab->pages, slab->bytes);
#ifdef PRUDENCE_VALGRIND
    if (valgrind_on && closed)
        VALGRIND_MAKE_MEM_NOACCESS(slab->pages, slab->bytes);
    else if (valgrind_on)
        VALGRIND_MAKE_MEM_DEFINED(slab->pages, slab->bytes);
#endif
}

/* Ends the pages of a slab. AddressSanitizer does not notice that pages are unmapped, and would
 * call them poisoned when the program maps others there. Memcheck notices, so for memcheck they
 * stay closed. */
static void end_pages(const struct slab *slab)
{
    annotate_root_ends(slab->pages, slab->bytes);
    if (asan_on)
        __asan_unpoison_memory_region(slab->pages, slab->bytes);
#ifdef PRUDENCE_VALGRIND
    if (valgrind_on)
        VALGRIND_MAKE_MEM_NOACCESS(slab->pages, slab->bytes);
#endif
}

static void annotate_begin(const void *object, size_t size, bool defined)
{
    if (asan_on)
        __asan_unpoison_memory_region(object, size);
#ifdef PRUDENCE_VALGRIND
    if (valgrind_on)
        VALGRIND_MALLOCLIKE_BLOCK(object, size, 0, defined);
#endif
    (void)defined; /* the macro is empty on processors that Valgrind does not know */
}

static void annotate_end(const void *object, size_t room)
{
    if (asan_on)
        __asan_poison_memory_region(object, room);
#ifdef PRUDENCE_VALGRIND
    if (valgrind_on)
        VALGRIND_FREELIKE_BLOCK(object, 0);
#endif
}

/* ---------------------------------------------------------------------------- an object's life */

void annotate_open(const struct slab *slab)
{
    if (asan_on)
        __asan_unpoison_memory_region(slab->pages, slab->bytes);
#ifdef PRUDENCE_VALGRIND
    if (valgrind_on)
        VALGRIND_MAKE_MEM_UNDEFINED(slab->pages, slab->bytes);
#endif
}

bool annotate_made(struct slab *slab)
{
    bool typesafe = slab->cache->flags & CACHE_TYPESAFE;

    if (!annotate_on)
        return true;
    if (!typesafe) {
        slab->side[INSTRUMENTS_EXTENSION] = os_meta_alloc(slab->capacity * sizeof(struct note));
        if (!has_notes(slab))
            return false;
    }
    begin_pages(slab, !typesafe && !slab->cache->body->constructor);
    return true;
}

void annotate_going(struct slab *slab)
{
    if (!annotate_on)
        return;
    end_pages(slab);
    if (has_notes(slab))
        os_meta_free(slab->side[INSTRUMENTS_EXTENSION], slab->capacity * sizeof(struct note));
    slab->side[INSTRUMENTS_EXTENSION] = NULL;
}

void annotate_allocated(struct slab *slab, void *object, size_t size, bool defined)
{
    if (!has_notes(slab))
        return;
    *annotate_note_of(slab, object) =
        (struct note){.size = size, .held = slab->cache->flags & CACHE_OWN ? object : NULL};
    annotate_begin(object, size, defined || slab->cache->body->constructor);
}

void annotate_held(const struct slab *slab, void *object)
{
    if (has_notes(slab))
        annotate_note_of(slab, object)->held = object;
}

void annotate_released(struct slab *slab, void *object)
{
    if (!has_notes(slab))
        return;
    annotate_note_of(slab, object)->held = NULL;
    annotate_end(object, slab_object_bytes(slab));
}

size_t annotate_size(const struct slab *slab, const void *object)
{
    return has_notes(slab) ? annotate_note_of(slab, object)->size : 0;
}

const struct fork_part annotate_fork_part = {.order = FORK_ANNOTATIONS,
                                             .name = "annotations",
                                             .prepare = annotate_fork_prepare,
                                             .done = annotate_fork_done};
