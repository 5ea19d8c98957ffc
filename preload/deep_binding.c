/* SPDX-License-Identifier: MIT */
/*
 * dlopen and dlmopen without RTLD_DEEPBIND.
 *
 * A library opened with this flag looks symbols up in itself and its dependencies before the
 * program. So it finds the C library's free before ours, and crashes with the first block from the
 * program. No malloc except the C library's can serve such a library, so the flag is dropped, and
 * the first time a message says so (option drop_deepbind). In a separate namespace (dlmopen with
 * anything but LM_ID_BASE) a library has another C library, so the flag stays there.
 *
 * The C library finds the caller's RUNPATH, $ORIGIN and namespace by the return address. A function
 * that calls the real one takes the caller's place, and libraries that only the caller's RUNPATH
 * leads to are no longer found. So these two functions jump. They ask C code for the flags and the
 * function to jump to, keep the arguments, and leave the stack and the return address as they found
 * them.
 *
 * They are weak, so a program that is linked with the archive may define its own. In a static
 * program they take the place of the C library's. These are then linked only if something else
 * names them, as -u,___dlopen does; otherwise the call is refused. The flag means nothing there.
 */
#define _GNU_SOURCE /* RTLD_NEXT, RTLD_DEEPBIND, dlmopen */
#include <dlfcn.h>

#include <prudence/prudence.h>

#include "heap/heap.h"
#include "process/options.h"

/* The C library's, in a static program. They are jumped to, so these types do not matter. */
extern void *deep_binding_static_dlopen(void) __asm__("___dlopen") __attribute__((weak));
extern void *deep_binding_static_dlmopen(void) __asm__("___dlmopen") __attribute__((weak));

/* Fits two registers on both processors. */
struct continuation {
    uintptr_t mode;
    void *real;
};

struct continuation deep_binding_dlopen(const char *file, int mode) HIDDEN;
struct continuation deep_binding_dlmopen(Lmid_t space, const char *file, int mode) HIDDEN;

static void say_once(const char *function, const char *file)
{
    static uint32_t said;

    if (load_relaxed(&said) || exchange_relaxed(&said, 1u))
        return;
    os_report(
        "%s of '%s': RTLD_DEEPBIND is dropped from this call and later ones, because the opened "
        "library would free blocks of this malloc with the C library's free (drop_deepbind=0 keeps "
        "the flag)",
        function, file ? file : "(the program)");
}

static int shallow(const char *function, const char *file, int mode)
{
    if (!(mode & RTLD_DEEPBIND) || deep_binding_static_dlopen)
        return mode;
    process_start();
    if (!load_relaxed(&option_drop_deepbind))
        return mode;
    say_once(function, file);
    return mode & ~RTLD_DEEPBIND;
}

static void *refuse(void)
{
    os_report(
        "dlopen is refused: in a static program with libprudence-malloc.a it needs the linker "
        "option -u,___dlopen, and dlmopen -u,___dlmopen");
    return NULL;
}

/* Returns the function that comes after ours in symbol look-up, or the static program's. Two
 * threads that search at once find the same one. */
static void *real(void **place, const char *name, void *(*in_static_program)(void))
{
    union {
        void *address;
        void *(*call)(void);
    } function = {.address = load_relaxed(place)};

    if (function.address)
        return function.address;
    function.call = in_static_program;
    if (!function.address)
        function.address = dlsym(RTLD_NEXT, name);
    if (!function.address)
        function.call = refuse;
    store_relaxed(place, function.address);
    return function.address;
}

struct continuation deep_binding_dlopen(const char *file, int mode)
{
    static void *function;

    return (struct continuation){(uintptr_t)(unsigned)shallow("dlopen", file, mode),
                                 real(&function, "dlopen", deep_binding_static_dlopen)};
}

struct continuation deep_binding_dlmopen(Lmid_t space, const char *file, int mode)
{
    static void *function;

    if (space == LM_ID_BASE)
        mode = shallow("dlmopen", file, mode);
    return (struct continuation){(uintptr_t)(unsigned)mode,
                                 real(&function, "dlmopen", deep_binding_static_dlmopen)};
}

#if defined(__x86_64__)

__asm__(
    ".pushsection .text\n"
    ".weak dlopen\n"
    ".type dlopen, @function\n"
    "dlopen:\n"
    ".cfi_startproc\n"
    "    endbr64\n"
    "    pushq %rdi\n" /* the file; also aligns the stack */
    ".cfi_adjust_cfa_offset 8\n"
    "    call deep_binding_dlopen\n"
    "    popq %rdi\n"
    ".cfi_adjust_cfa_offset -8\n"
    "    movl %eax, %esi\n"
    "    jmp *%rdx\n"
    ".cfi_endproc\n"
    ".size dlopen, . - dlopen\n"
    ".weak dlmopen\n"
    ".type dlmopen, @function\n"
    "dlmopen:\n"
    ".cfi_startproc\n"
    "    endbr64\n"
    "    pushq %rdi\n"
    ".cfi_adjust_cfa_offset 8\n"
    "    pushq %rsi\n"
    ".cfi_adjust_cfa_offset 8\n"
    "    subq $8, %rsp\n"
    ".cfi_adjust_cfa_offset 8\n"
    "    call deep_binding_dlmopen\n"
    "    addq $8, %rsp\n"
    ".cfi_adjust_cfa_offset -8\n"
    "    popq %rsi\n"
    ".cfi_adjust_cfa_offset -8\n"
    "    popq %rdi\n"
    ".cfi_adjust_cfa_offset -8\n"
    "    movq %rdx, %r11\n"
    "    movl %eax, %edx\n"
    "    jmp *%r11\n"
    ".cfi_endproc\n"
    ".size dlmopen, . - dlmopen\n"
    ".popsection\n");

#elif defined(__aarch64__)

__asm__(
    ".pushsection .text\n"
    ".weak dlopen\n"
    ".type dlopen, %function\n"
    "dlopen:\n"
    ".cfi_startproc\n"
    "    hint 34\n" /* bti c */
    "    stp x29, x30, [sp, -32]!\n"
    ".cfi_def_cfa_offset 32\n"
    ".cfi_offset 29, -32\n"
    ".cfi_offset 30, -24\n"
    "    str x0, [sp, 16]\n"
    "    bl deep_binding_dlopen\n"
    "    mov x16, x1\n"
    "    mov w1, w0\n"
    "    ldr x0, [sp, 16]\n"
    "    ldp x29, x30, [sp], 32\n"
    ".cfi_restore 30\n"
    ".cfi_restore 29\n"
    ".cfi_def_cfa_offset 0\n"
    "    br x16\n"
    ".cfi_endproc\n"
    ".size dlopen, . - dlopen\n"
    ".weak dlmopen\n"
    ".type dlmopen, %function\n"
    "dlmopen:\n"
    ".cfi_startproc\n"
    "    hint 34\n"
    "    stp x29, x30, [sp, -32]!\n"
    ".cfi_def_cfa_offset 32\n"
    ".cfi_offset 29, -32\n"
    ".cfi_offset 30, -24\n"
    "    stp x0, x1, [sp, 16]\n"
    "    bl deep_binding_dlmopen\n"
    "    mov x16, x1\n"
    "    mov w2, w0\n"
    "    ldp x0, x1, [sp, 16]\n"
    "    ldp x29, x30, [sp], 32\n"
    ".cfi_restore 30\n"
    ".cfi_restore 29\n"
    ".cfi_def_cfa_offset 0\n"
    "    br x16\n"
    ".cfi_endproc\n"
    ".size dlmopen, . - dlmopen\n"
    ".popsection\n");

#endif /* on other processors the C library's own functions serve, and the flag stays */
