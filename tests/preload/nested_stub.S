/* SPDX-License-Identifier: MIT */
/*
 * The stand-in for the function INTERPOSED: keeps the registers that arguments are passed in, calls
 * nested_interposed(), and jumps to what that returns, with the stack as it found it. So it may
 * stand in for a function of any type.
 */
#define STRING_(name) #name
#define STRING(name) STRING_(name)

    .text
#if defined(__x86_64__)
    .globl INTERPOSED
    .type INTERPOSED, @function
INTERPOSED:
    endbr64
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %rcx
    pushq %r8
    pushq %r9
    pushq %rax
    subq $128, %rsp
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    call nested_interposed@PLT
    movq %rax, %r11
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    addq $128, %rsp
    popq %rax
    popq %r9
    popq %r8
    popq %rcx
    popq %rdx
    popq %rsi
    popq %rdi
    jmp *%r11
    .size INTERPOSED, . - INTERPOSED
#elif defined(__aarch64__)
    .globl INTERPOSED
    .type INTERPOSED, %function
INTERPOSED:
    hint 34
    stp x29, x30, [sp, -224]!
    stp x0, x1, [sp, 16]
    stp x2, x3, [sp, 32]
    stp x4, x5, [sp, 48]
    stp x6, x7, [sp, 64]
    str x8, [sp, 80]
    stp q0, q1, [sp, 96]
    stp q2, q3, [sp, 128]
    stp q4, q5, [sp, 160]
    stp q6, q7, [sp, 192]
    bl nested_interposed
    mov x16, x0
    ldp q0, q1, [sp, 96]
    ldp q2, q3, [sp, 128]
    ldp q4, q5, [sp, 160]
    ldp q6, q7, [sp, 192]
    ldr x8, [sp, 80]
    ldp x0, x1, [sp, 16]
    ldp x2, x3, [sp, 32]
    ldp x4, x5, [sp, 48]
    ldp x6, x7, [sp, 64]
    ldp x29, x30, [sp], 224
    br x16
    .size INTERPOSED, . - INTERPOSED
#endif

    .section .rodata
    .globl nested_name
    .type nested_name, %object
nested_name:
    .asciz STRING(INTERPOSED)
    .size nested_name, . - nested_name
    .balign 4
    .globl nested_has_no_memory
    .type nested_has_no_memory, %object
nested_has_no_memory:
    .long 0
    .size nested_has_no_memory, . - nested_has_no_memory
    .section .note.GNU-stack, "", %progbits
