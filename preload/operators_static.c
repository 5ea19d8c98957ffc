/* SPDX-License-Identifier: MIT */
/*
 * The aligned operator new of a static C++ program. libstdc++'s own rounds the size up to the
 * alignment, and a size that wraps then reaches us as 0, so that operator would return a small
 * object. The other forms are the runtime's: plain ones call malloc anyway, the array and nothrow
 * forms of aligned ones call this.
 *
 * This file is a separate member of the archive. The linker takes it if something before the
 * archive needs this operator, or if asked to (-u), together with the functions of the runtime that
 * it calls. A program that defines this operator does without. Compiled with -fexceptions, because
 * exceptions pass.
 *
 * Without memory the operator calls the new-handler as long as there is one, then asks the plain
 * operator for a size that no malloc has, so that std::bad_alloc is thrown as by the runtime.
 */
#include <stdint.h>

#include <prudence/prudence.h>

#include "base/base.h"

extern void *runtime_operator_new(size_t size) __asm__("_Znwm");
extern void (*runtime_get_new_handler(void))(void) __asm__("_ZSt15get_new_handlerv");

PRUDENCE_API void *operator_new_aligned(size_t size,
                                        size_t alignment) __asm__("_ZnwmSt11align_val_t");

static __attribute__((noinline)) void *new_aligned_slow(size_t size, size_t alignment)
{
    void (*handler)(void);
    void *object = NULL;

    while (!object && (handler = runtime_get_new_handler())) {
        handler();
        object = prudence_aligned_alloc(alignment, size);
    }
    return object ? object : runtime_operator_new(SIZE_MAX);
}

void *operator_new_aligned(size_t size, size_t alignment)
{
    void *object = prudence_aligned_alloc(alignment, size);

    return likely(object) ? object : new_aligned_slow(size, alignment);
}
