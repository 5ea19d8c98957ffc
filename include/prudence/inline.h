/* SPDX-License-Identifier: MIT */
/*
 * Opt-in: inlines the fast paths of caches into the program (docs/how-to/inline.md). After this
 * header
 *
 *     prudence_cache_alloc       prudence_cache_free
 *     prudence_cache_replace     prudence_cache_free_deferred
 *
 * are macros for the inline functions below. These do the same as the functions of the same names,
 * with the same checks, errors and reports, and call the library only where a fast path cannot. A
 * name in parentheses, or not followed by one, is still the library function:
 * (prudence_cache_alloc)(cache), &prudence_cache_alloc. C11 and C++11, gcc and clang.
 *
 *  - Inlining works on x86-64 and AArch64 Linux with glibc 2.35 or newer, not under
 *    AddressSanitizer, ThreadSanitizer and the like. Elsewhere the macros are not defined, so calls
 *    are calls (PRUDENCE_INLINED says which). Per cache and at run time the library closes the
 *    inlined paths along with its own: under check=1 and all other options that search for bugs,
 * with
 *    destructors, for a destroyed cache, and where the system has no restartable sequences or does
 *    not restart them (some kernels for AArch64).
 *  - The program is bound to the layout of the library's structures. The layout's number is part of
 *    the names that the program needs (prudence_inline3_...), and all are bound when the program is
 *    loaded. So the dynamic loader refuses a library with another layout, older or newer
 *    ("undefined symbol"). A program without this header runs with both.
 *  - A shared object that includes this header stays in the process, as if linked with -z nodelete.
 *    A constructor in the object ensures this, because the kernel may read the object's
 *    restartable sequences after dlclose.
 *  - A tool that counts or wraps calls of the functions (LD_PRELOAD, uprobes, gdb) does not see
 *    inlined ones.
 *
 * Threads, signals, fork, waiting and misuse are as in <prudence/prudence.h>. docs/how-to/inline.md
 * has the costs.
 */
#ifndef PRUDENCE_INLINE_H
#define PRUDENCE_INLINE_H

#include <prudence/language.h>
#include <prudence/prudence.h>
#include <prudence/sequences.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_HWADDRESS__)
#define PRUDENCE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) ||                         \
    __has_feature(memory_sanitizer) || __has_feature(hwaddress_sanitizer)
#define PRUDENCE_SANITIZED 1
#endif
#endif

#if defined(PRUDENCE_HAS_SEQUENCES) && !defined(PRUDENCE_SANITIZED) && defined(__GLIBC__) &&       \
    defined(__GLIBC_MINOR__)
#if __GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 35)
#define PRUDENCE_INLINED 1
#endif
#endif

#ifndef PRUDENCE_INLINED
/* 1 if the fast paths are inlined, 0 if all calls are calls. */
#define PRUDENCE_INLINED 0
#endif

#if PRUDENCE_INLINED

#ifdef __cplusplus
extern "C" {
#endif

#define PRUDENCE_INLINE_LEAF_MASK                                                                  \
    ((UINT64_C(1) << (PRUDENCE_INLINE_LEAF_SHIFT - PRUDENCE_INLINE_PAGE_SHIFT)) - 1)

#define PRUDENCE_INLINE_TEXT_(x) #x
#define PRUDENCE_INLINE_TEXT(x)  PRUDENCE_INLINE_TEXT_(x)

/*
 * Loads the address of "prudence_inline3_name" from the global offset table, so that it is bound
 * when the program is loaded, never later, and is not copied.
 */
#define PRUDENCE_INLINE_NAME(name)                                                                 \
    "prudence_inline" PRUDENCE_INLINE_TEXT(PRUDENCE_INLINE_LAYOUT) "_" name
#if defined(__aarch64__)
#define PRUDENCE_INLINE_ADDRESS(name)                                                              \
    "adrp %0, :got:" PRUDENCE_INLINE_NAME(name) "\n\t"                                             \
    "ldr %0, [%0, :got_lo12:" PRUDENCE_INLINE_NAME(name) "]"
#else
#define PRUDENCE_INLINE_ADDRESS(name) "movq " PRUDENCE_INLINE_NAME(name) "@GOTPCREL(%%rip), %0"
#endif

#define PRUDENCE_INLINE_FUNCTION static inline __attribute__((always_inline, unused))

/*
 * Offset of each thread's struct rseq from the thread pointer: glibc's constant, which compilers
 * load once in a function. This declaration has a private name, because <sys/rseq.h> may declare
 * the constant as well. If the struct is not registered, cpu_id is -1 or -2, and no cache has a
 * line for that.
 */
extern const ptrdiff_t prudence_inline_rseq __asm__("__rseq_offset");

PRUDENCE_INLINE_FUNCTION const struct prudence_inline_cache *
prudence_inline_cache_of(const struct prudence_cache *cache)
{
    return PRUDENCE_CAST(const struct prudence_inline_cache *, cache);
}

PRUDENCE_INLINE_FUNCTION void *const *prudence_inline_lines(const struct prudence_cache *cache)
{
    return &prudence_inline_cache_of(cache)->lines;
}

/*
 * Returns the cache, by an address that depends on `object`: x & 0 and x ^ x are 0, but the
 * processor knows that only after loading x. Loads from the cache that depend on nothing run ahead
 * of the stores before them, which costs some processors more than the whole check. On AArch64 this
 * also orders them behind the load of the object (docs/adr/0050).
 */
PRUDENCE_INLINE_FUNCTION const struct prudence_inline_cache *
prudence_inline_cache_after(const struct prudence_cache *cache, uintptr_t object)
{
#if defined(__aarch64__)
    __asm__("eor %0, %0, %0" : "+r"(object));
#else
    __asm__("andl $0, %k0" : "+r"(object) : : "cc");
#endif
    return PRUDENCE_CAST(const struct prudence_inline_cache *,
                         PRUDENCE_CAST(uintptr_t, cache) + object);
}

/*
 * Returns whether an object of `cache` starts there, by the page map, for slabs outside the cache's
 * window.
 */
PRUDENCE_INLINE_FUNCTION bool prudence_inline_is_mapped(const struct prudence_cache *cache,
                                                        uintptr_t number)
{
    const struct prudence_inline_slab *slab;
    void **leaf;

    if (number >> PRUDENCE_INLINE_LEAF_SHIFT >= PRUDENCE_INLINE_LEAVES)
        return false;
    /*
     * Relaxed, because the owner of the pages wrote them before the address could reach another
     * thread, and each address loaded from depends on that one.
     */
    leaf = __atomic_load_n(
        &prudence_inline_cache_of(cache)->leaves[number >> PRUDENCE_INLINE_LEAF_SHIFT],
        __ATOMIC_RELAXED);
    if (!leaf)
        return false;
    slab = PRUDENCE_CAST(
        const struct prudence_inline_slab *,
        __atomic_load_n(&leaf[number >> PRUDENCE_INLINE_PAGE_SHIFT & PRUDENCE_INLINE_LEAF_MASK],
                        __ATOMIC_RELAXED));
    return slab && slab->cache == cache &&
           (number - PRUDENCE_CAST(uintptr_t, slab->base)) * slab->reciprocal < slab->end;
}

/*
 * Returns whether `object` is the start of an object of `cache`; nothing about the pointer is
 * trusted. In the window's extent all slabs are the cache's, and live. Relaxed, because a thread
 * that finds words from before the object's slab was shown asks the page map, where the slab was
 * entered before that address could reach another thread.
 */
PRUDENCE_INLINE_FUNCTION bool prudence_inline_is_of(const struct prudence_cache *cache,
                                                    const void *object)
{
    uintptr_t number = PRUDENCE_CAST(uintptr_t, object);
    const struct prudence_inline_cache *after;

    if (__builtin_expect(!cache, 0))
        return false;
    after = prudence_inline_cache_after(cache, number);
    if (__builtin_expect(number - __atomic_load_n(&after->window, __ATOMIC_RELAXED) <
                             __atomic_load_n(&after->extent, __ATOMIC_RELAXED),
                         1))
        return __builtin_expect((number & after->mask) * after->reciprocal < after->end, 1);
    return prudence_inline_is_mapped(cache, number);
}

/* -------------------------------------------------------------------------------- the functions */

PRUDENCE_INLINE_FUNCTION void *prudence_inline_cache_alloc(struct prudence_cache *cache)
{
    void *(*slow)(struct prudence_cache *);
    void *object;

    if (__builtin_expect(cache != PRUDENCE_NULL, 1)) {
        object = prudence_sequence_pop(prudence_inline_lines(cache),
                                       prudence_inline_cache_of(cache), prudence_inline_rseq);
        if (__builtin_expect(object != PRUDENCE_NULL, 1))
            return object;
    }
    __asm__ __volatile__(PRUDENCE_INLINE_ADDRESS("cache_alloc") : "=r"(slow));
    return slow(cache);
}

PRUDENCE_INLINE_FUNCTION void prudence_inline_cache_free(struct prudence_cache *cache, void *object)
{
    void (*slow)(struct prudence_cache *, void *);

    if (prudence_inline_is_of(cache, object) &&
        __builtin_expect(prudence_sequence_push(prudence_inline_lines(cache),
                                                prudence_inline_cache_of(cache), object,
                                                prudence_inline_rseq),
                         1))
        return;
    __asm__ __volatile__(PRUDENCE_INLINE_ADDRESS("cache_free") : "=r"(slow));
    slow(cache, object);
}

PRUDENCE_INLINE_FUNCTION void prudence_inline_cache_free_deferred(struct prudence_cache *cache,
                                                                  void *object)
{
    void (*slow)(struct prudence_cache *, void *);

    if (prudence_inline_is_of(cache, object) &&
        __builtin_expect(prudence_sequence_append(prudence_inline_lines(cache),
                                                  prudence_inline_cache_of(cache), object,
                                                  prudence_inline_rseq),
                         1))
        return;
    __asm__ __volatile__(PRUDENCE_INLINE_ADDRESS("cache_free_deferred") : "=r"(slow));
    slow(cache, object);
}

PRUDENCE_INLINE_FUNCTION PRUDENCE_KEEP void *
prudence_inline_cache_replace(struct prudence_cache *cache, void *old)
{
    void *(*slow)(struct prudence_cache *, void *), *(*slow_alloc)(struct prudence_cache *);
    void *object;

    if (prudence_inline_is_of(cache, old) &&
        __builtin_expect(prudence_sequence_append(prudence_inline_lines(cache),
                                                  prudence_inline_cache_of(cache), old,
                                                  prudence_inline_rseq),
                         1)) {
        object = prudence_sequence_pop(prudence_inline_lines(cache),
                                       prudence_inline_cache_of(cache), prudence_inline_rseq);
        if (__builtin_expect(object == PRUDENCE_NULL, 0)) {
            __asm__ __volatile__(PRUDENCE_INLINE_ADDRESS("cache_alloc") : "=r"(slow_alloc));
            return slow_alloc(cache);
        }
        if (__builtin_expect(object != old, 1))
            return object;
        /*
         * The old object came back. If that object had been free or deferred before, a second
         * deferral makes the copies meet.
         */
    }
    __asm__ __volatile__(PRUDENCE_INLINE_ADDRESS("cache_replace") : "=r"(slow));
    return slow(cache, old);
}

#define prudence_cache_alloc(cache)        prudence_inline_cache_alloc(cache)
#define prudence_cache_free(cache, object) prudence_inline_cache_free(cache, object)
#define prudence_cache_free_deferred(cache, object)                                                \
    prudence_inline_cache_free_deferred(cache, object)
#define prudence_cache_replace(cache, old) prudence_inline_cache_replace(cache, old)

/* -------------------------------------------------------------- a shared object stays (private) */

/*
 * Code for shared objects. This may also become part of a program, and then does nothing. Each
 * module keeps one copy, and the constructors of the module's other parts find that this copy has
 * run.
 */
#if defined(__PIC__) && !defined(__PIE__)
__attribute__((weak, visibility("hidden"))) char prudence_inline_stays = 0;
__attribute__((weak, visibility("hidden"), constructor)) void prudence_inline_stay_loaded(void);
void prudence_inline_stay_loaded(void)
{
    void (*stay)(const void *);

    if (prudence_inline_stays)
        return;
    prudence_inline_stays = 1;
    __asm__ __volatile__(PRUDENCE_INLINE_ADDRESS("stay_loaded") : "=r"(stay));
    stay(&prudence_inline_stays);
}
#endif

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_INLINED */

#endif /* PRUDENCE_INLINE_H */
