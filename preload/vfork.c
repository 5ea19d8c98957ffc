/* SPDX-License-Identifier: MIT */
/*
 * vfork, whose child may allocate concurrently with other threads of the parent (os/posix/vfork.c,
 * docs/adr/0160).
 *
 * The child returns from here first, and its calls overwrite everything below the caller's frame.
 * So the return address, and the word that the parent needs, stay in registers during the system
 * call, which keeps them for both. The child leaves by a jump, so it does not pop a shadow stack,
 * which it shares with the parent.
 */
#include <prudence/prudence.h>

#include "vfork.h"

#if defined(__x86_64__) && defined(__LP64__)

/* rdi: the return address; r8: the word */
__asm__(
    ".pushsection .text\n"
    ".globl vfork\n"
    ".type vfork, @function\n"
    ".globl __vfork\n"
    ".type __vfork, @function\n"
    "vfork:\n"
    "__vfork:\n"
    ".cfi_startproc\n"
    "    endbr64\n"
    "    subq $8, %rsp\n"
    ".cfi_adjust_cfa_offset 8\n"
    "    call vfork_prepare\n"
    "    addq $8, %rsp\n"
    ".cfi_adjust_cfa_offset -8\n"
    "    movq %rax, %r8\n"
    "    popq %rdi\n"
    ".cfi_adjust_cfa_offset -8\n"
    ".cfi_register %rip, %rdi\n"
    "    movl $58, %eax\n" /* SYS_vfork */
    "    syscall\n"
    "    pushq %rdi\n"
    ".cfi_adjust_cfa_offset 8\n"
    ".cfi_rel_offset %rip, 0\n"
    "    movq %r8, %rdi\n"
    "    subq $8, %rsp\n"
    ".cfi_adjust_cfa_offset 8\n"
    "    testq %rax, %rax\n"
    "    jz 1f\n"
    "    movq %rax, %rsi\n"
    "    call vfork_parent\n"
    "    addq $8, %rsp\n"
    ".cfi_remember_state\n"
    ".cfi_adjust_cfa_offset -8\n"
    "    ret\n"
    ".cfi_restore_state\n"
    "1:  call vfork_child\n"
    "    xorl %eax, %eax\n"
    "    addq $8, %rsp\n"
    ".cfi_adjust_cfa_offset -8\n"
    "    popq %rdi\n"
    ".cfi_adjust_cfa_offset -8\n"
    ".cfi_register %rip, %rdi\n"
    "    jmp *%rdi\n"
    ".cfi_endproc\n"
    ".size vfork, . - vfork\n"
    ".size __vfork, . - __vfork\n"
    ".popsection\n");

#elif defined(__aarch64__)

/* x30: the return address; x9: the word. vfork is clone(CLONE_VM | CLONE_VFORK | SIGCHLD, 0). */
__asm__(
    ".pushsection .text\n"
    ".globl vfork\n"
    ".type vfork, %function\n"
    ".globl __vfork\n"
    ".type __vfork, %function\n"
    "vfork:\n"
    "__vfork:\n"
    ".cfi_startproc\n"
    "    hint 34\n" /* bti c */
    "    stp x29, x30, [sp, -16]!\n"
    ".cfi_def_cfa_offset 16\n"
    ".cfi_offset 29, -16\n"
    ".cfi_offset 30, -8\n"
    "    bl vfork_prepare\n"
    "    ldp x29, x30, [sp], 16\n"
    ".cfi_restore 30\n"
    ".cfi_restore 29\n"
    ".cfi_def_cfa_offset 0\n"
    "    mov x9, x0\n"
    "    mov x0, #0x4111\n"
    "    mov x1, #0\n"
    "    mov x8, #220\n" /* SYS_clone */
    "    svc #0\n"
    "    stp x29, x30, [sp, -16]!\n"
    ".cfi_def_cfa_offset 16\n"
    ".cfi_offset 29, -16\n"
    ".cfi_offset 30, -8\n"
    "    mov x1, x0\n"
    "    mov x0, x9\n"
    "    cbz x1, 1f\n"
    "    bl vfork_parent\n"
    "    b 2f\n"
    "1:  bl vfork_child\n"
    "    mov x0, #0\n"
    "2:  ldp x29, x30, [sp], 16\n"
    ".cfi_restore 30\n"
    ".cfi_restore 29\n"
    ".cfi_def_cfa_offset 0\n"
    "    ret\n"
    ".cfi_endproc\n"
    ".size vfork, . - vfork\n"
    ".size __vfork, . - __vfork\n"
    ".popsection\n");

#endif /* on other processors the C library's serves, and its child must not allocate */
