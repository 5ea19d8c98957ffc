/* SPDX-License-Identifier: MIT */
/*
 * Objects of the tortures of readers: a mark (gp_torture.h), and words that are a function of the
 * birth stamp, constant while the object is live or latent. From its retirement the mark carries
 * the cookie of a grace period that began after the unlink. A reader that finds the object retired
 * takes its age: 0 when no grace period has ended since, 1 when one that was already running has,
 * 2 and more when a whole one has: then a section saw it that should have held it.
 *
 * Before including this file, a torture defines TORTURE_WORDS, the number of words. Objects come
 * from `cache`, and `domain` is the domain of that cache.
 */
#ifndef TESTS_SUPPORT_TORTURE_WORDS_H
#define TESTS_SUPPORT_TORTURE_WORDS_H

#include "support/gp_torture.h"

#define TORTURE_AGES 6

/* Under ThreadSanitizer accesses are plain, so that it checks that the grace period orders
 * writers and readers of the content; a torture whose handlers read defines this as 0. */
#ifndef TORTURE_PLAIN_WORDS
#define TORTURE_PLAIN_WORDS TORTURE_TSAN
#endif
#if TORTURE_PLAIN_WORDS
#define WORD_LOAD(word)         (word)
#define WORD_STORE(word, value) ((word) = (value))
#else
#define WORD_LOAD(word)         __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define WORD_STORE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)
#endif

/* First member of a torture's own objects. */
struct torture_words {
    struct torture_mark mark;
    uint64_t words[TORTURE_WORDS];
};

static struct prudence_cache *cache;
static struct prudence_domain *domain;
static uint64_t births, recognized, ages[TORTURE_AGES];

static uint64_t word_for(uint64_t birth, unsigned i)
{
    return birth * UINT64_C(0x9e3779b97f4a7c15) + i;
}

/* Returns NULL, and reports it, if there is no memory. */
static void *words_make(void)
{
    struct torture_words *object = prudence_cache_alloc(cache);
    uint64_t birth = __atomic_add_fetch(&births, 1, __ATOMIC_RELAXED);

    if (!object) {
        torture_violation("no memory");
        return NULL;
    }
    if (torture_check_reuse(&object->mark, domain))
        __atomic_fetch_add(&recognized, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&object->mark.birth, birth, __ATOMIC_RELAXED);
    torture_mark_set(&object->mark, TORTURE_LIVE, 0);
    for (unsigned i = 0; i < TORTURE_WORDS; i++)
        WORD_STORE(object->words[i], word_for(birth, i));
    return object;
}

/* Marks an object that this thread has unlinked, and returns the cookie. */
static prudence_gp_t words_retire(struct torture_words *object)
{
    prudence_gp_t cookie = prudence_domain_get_state(domain);

    torture_mark_set(&object->mark, TORTURE_RETIRED, cookie.private_value);
    return cookie;
}

static uint64_t words_birth(const struct torture_words *object)
{
    return __atomic_load_n(&object->mark.birth, __ATOMIC_RELAXED);
}

/* Checks, in the section in which the object had this birth stamp, one word of each `stride`. */
static void words_check(const struct torture_words *object, uint64_t birth, unsigned from,
                        unsigned stride)
{
    if (words_birth(object) != birth)
        torture_violation("object %p was born again inside a section", (const void *)object);
    for (unsigned i = from; i < TORTURE_WORDS; i += stride)
        if (WORD_LOAD(object->words[i]) != word_for(birth, i))
            torture_violation("word %u of object %p changed inside a section", i,
                              (const void *)object);
}

TORTURE_UNUSED static void words_note_age(const struct torture_words *object)
{
    uint64_t state = __atomic_load_n(&object->mark.state, __ATOMIC_ACQUIRE);
    uint64_t cookie = __atomic_load_n(&object->mark.cookie, __ATOMIC_ACQUIRE);
    uint64_t completed = load_acquire(&domain->progress.completed);
    uint64_t age = 0;

    if (state != TORTURE_RETIRED)
        return;
    if (!sequence_before(completed, cookie))
        age = 2 + (completed - cookie) / GP_STEP;
    else if (cookie - completed <= GP_STEP)
        age = 1;
    __atomic_fetch_add(&ages[age < TORTURE_AGES ? age : TORTURE_AGES - 1], 1, __ATOMIC_RELAXED);
    if (age >= 2)
        torture_violation("a reader sees object %p %llu grace periods after it was retired",
                          (const void *)object, (unsigned long long)(age - 1));
}

TORTURE_UNUSED static void words_say_ages(void)
{
    printf(" ages");
    for (unsigned i = 0; i < TORTURE_AGES; i++)
        printf(" %u:%llu", i, (unsigned long long)ages[i]);
}

#endif /* TESTS_SUPPORT_TORTURE_WORDS_H */
