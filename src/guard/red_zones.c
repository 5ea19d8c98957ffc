/* SPDX-License-Identifier: MIT */
/*
 * Red zones. A pattern fills the bytes from the end of the size asked for to the next object:
 *
 *   | object, as many bytes as asked for | slack, at most SLACK_CHECKED checked | ... | tail |
 *
 * The tail has RED_ZONE bytes or more. It is written once, when the slab is made, and never belongs
 * to an object, so the next object may check the tail too, for underflows. The slack is written
 * when the object is allocated or resized. Both are checked when the object is freed, resized, or
 * safe if deferred; the tail also at the next allocation. A large block has slack up to the end of
 * the last page, and no tail.
 *
 * Each process draws a new pattern, so that no program can write it by chance. No byte is zero, so
 * that the zero at the end of a string is seen.
 *
 * No locks: an object's slack and note belong to its owner, and tails do not change. A guarded
 * object (guard.c) has another pattern. Tools that watch each object (annotate.c) see such writes
 * themselves, so there are no red zones with them.
 */
#include "guard/red_zones.h"

#include <string.h>

#include "guard/annotate.h"
#include "guard/guard.h"
#include "heap/size_class.h"
#include "slab/misuse.h"

#define SLACK_CHECKED ((size_t)32)

static uint64_t pattern;

/* Tools that watch each object see such writes themselves. */
static bool are_wanted(void)
{
    return red_zones_wanted && !annotate_on;
}

COLD void red_zones_start(void)
{
    uint64_t secret[2];

    size_class_spare = are_wanted() ? RED_ZONE : 0;
    if (pattern)
        return;
    os_secret(secret);
    pattern = secret[0] | UINT64_C(0x8181818181818181);
}

COLD static enum extension_wish red_zones_wants(const struct cache_layout *layout)
{
    return extension_wanted_if(are_wanted() && !(layout->flags & CACHE_CLOSED));
}

/* --------------------------------------------------------------------------------- the pattern */

/* Returns the byte of the pattern at an address. */
static unsigned char byte_at(uintptr_t address)
{
    return (unsigned char)(pattern >> (address % 8 * 8));
}

static void write_zone(char *from, const char *end)
{
    for (; from < end && (uintptr_t)from % 8; from++)
        *from = (char)byte_at((uintptr_t)from);
    for (; end - from >= 8; from += 8)
        memcpy(from, &pattern, 8);
    for (; from < end; from++)
        *from = (char)byte_at((uintptr_t)from);
}

/* Returns the first byte that differs from the pattern, or NULL. */
static const char *find_damage(const char *from, const char *end)
{
    uint64_t word;

    while (from < end) {
        if ((uintptr_t)from % 8 == 0 && end - from >= 8) {
            memcpy(&word, from, 8);
            if (word == pattern) {
                from += 8;
                continue;
            }
        }
        if ((unsigned char)*from != byte_at((uintptr_t)from))
            return from;
        from++;
    }
    return NULL;
}

/* --------------------------------------------------------------------------------------- places */

static bool is_large_slab(const struct slab *slab)
{
    return !slab->cache->percpu;
}

static uint32_t *red_zones_note_of(const struct slab *slab, const void *object)
{
    return (uint32_t *)slab->side[RED_ZONES_EXTENSION] + slab_index(slab, object);
}

static size_t red_zones_size_asked(const struct slab *slab, const void *object)
{
    if (slab->alone)
        return 0;
    if (is_large_slab(slab))
        return (uintptr_t)slab->side[RED_ZONES_EXTENSION];
    return *red_zones_note_of(slab, object);
}

/* Returns the end of the slack. For a large block without margins, whose pages may change, the
 * slack ends with the last page of `size` bytes, however many pages the block has by now. */
static char *slack_end(const struct slab *slab, char *object, size_t size)
{
    bool may_change = is_large_slab(slab) && !slab->cache->body->margin;
    size_t room = may_change ? round_up(size, os_page_size) : slab_usable_bytes(slab);

    return object + min_size(room, size + SLACK_CHECKED);
}

static char *tail_of(const struct slab *slab, char *object)
{
    return object + slab_usable_bytes(slab);
}

/* ------------------------------------------------------------------------------------- reports */

static void __attribute__((noreturn))
red_zones_report(const struct slab *slab, const char *object, const char *byte, const char *what)
{
    size_t size = red_zones_size_asked(slab, object);

    if (byte < object)
        os_report_misuse(
            "underflow: the byte %zu before the %zu-byte object %p of cache '%s' was written; "
            "found by: %s",
            (size_t)(object - byte), size, (const void *)object, slab->cache->name, what);
    else
        os_report_misuse(
            "overflow: the byte %zu after the %zu-byte object %p of cache '%s' was written; found "
            "by: %s",
            (size_t)(byte - object) - size, size, (const void *)object, slab->cache->name, what);
    misuse_explain_and_abort(slab, object);
}

static void check_tail(const struct slab *slab, char *object, const char *what)
{
    const char *byte = find_damage(tail_of(slab, object), object + slab_object_bytes(slab));

    if (unlikely(byte != NULL))
        red_zones_report(slab, object, byte, what);
}

/* Checks the bytes right before an object, the tail of the object before. */
static void check_front(const struct slab *slab, char *object, const char *what)
{
    const char *byte =
        object > slab->base ? find_damage(object - RED_ZONE, object) : (const char *)NULL;

    if (unlikely(byte != NULL))
        red_zones_report(slab, object, byte, what);
}

static void check(const struct slab *slab, char *object, const char *what)
{
    size_t size = red_zones_size_asked(slab, object);
    const char *byte;

    if (slab->alone)
        return;
    byte = find_damage(object + size, slack_end(slab, object, size));
    if (unlikely(byte != NULL))
        red_zones_report(slab, object, byte, what);
    if (is_large_slab(slab))
        return;
    check_tail(slab, object, what);
    check_front(slab, object, what);
}

/* ------------------------------------------------------------------------------- a slab's life */

static size_t red_zones_notes_bytes(const struct slab *slab)
{
    return slab->capacity * sizeof(uint32_t);
}

static bool red_zones_made(struct slab *slab)
{
    size_t stride = slab_object_bytes(slab);

    if (slab->alone || is_large_slab(slab))
        return true;
    slab->side[RED_ZONES_EXTENSION] = os_meta_alloc(red_zones_notes_bytes(slab));
    if (!slab->side[RED_ZONES_EXTENSION])
        return false;
    for (unsigned i = 0; i < slab->capacity; i++) {
        char *object = slab_object(slab, i, stride);

        write_zone(tail_of(slab, object), object + stride);
    }
    return true;
}

static void red_zones_going(struct slab *slab)
{
    if (!slab->alone && !is_large_slab(slab))
        os_meta_free(slab->side[RED_ZONES_EXTENSION], red_zones_notes_bytes(slab));
}

/* ---------------------------------------------------------------------------- an object's life */

static void red_zones_resize(struct slab *slab, void *object, size_t size)
{
    if (is_large_slab(slab))
        slab->side[RED_ZONES_EXTENSION] = (void *)(uintptr_t)size;
    else
        *red_zones_note_of(slab, object) = narrow(uint32_t, size);
    write_zone((char *)object + size, slack_end(slab, object, size));
}

static void red_zones_allocated(struct slab *slab, void *object, size_t size, bool zeroed)
{
    (void)zeroed;
    if (slab->alone)
        return;
    if (!is_large_slab(slab))
        check_tail(slab, object, "its next allocation");
    red_zones_resize(slab, object, size);
}

static void red_zones_resized(struct slab *slab, void *object, size_t size)
{
    size_t before = red_zones_size_asked(slab, object), room = slab_usable_bytes(slab);

    if (slab->alone)
        return;
    if (before <= room) /* otherwise the block has lost the pages after `room` */
        check(slab, object, "prudence_realloc");
    before = min_size(before, room);
    if (zero_on_free && size < before)
        memset((char *)object + size, 0, before - size); /* no longer belongs to the object */
    red_zones_resize(slab, object, size);
}

static void red_zones_freed(struct slab *slab, void *object, const char *what)
{
    check(slab, object, what);
}

/* Checks an object whose readers have ended, except the bytes of the object itself. */
static bool red_zones_safe(struct slab *slab, void *object)
{
    check(slab, object, "the end of its grace period");
    return true;
}

const struct slab_extension red_zones_extension = {.wants = red_zones_wants,
                                                   .made = red_zones_made,
                                                   .going = red_zones_going,
                                                   .allocated = red_zones_allocated,
                                                   .resized = red_zones_resized,
                                                   .freed = red_zones_freed,
                                                   .safe = red_zones_safe,
                                                   .size_asked = red_zones_size_asked};
