/* SPDX-License-Identifier: MIT */
/*
 * The guest of moves.c, in the place of its firmware: reads a port again and again, which in QEMU
 * takes the big lock, and counts how many ticks of the time-stamp counter each reading took. These
 * counts are in the guest's memory from 0x1000 on; moves.c reads it there.
 *
 *     0x1000  32-bit counters: four to each power of two of ticks, from 4 ticks on
 *     0x2000  the lower 32 bits of the counter at the last reading, then the upper ones
 */
        .code16
start:                                  /* at 0, so nothing has to be linked */
        xorw    %ax, %ax
        movw    %ax, %ds
again:
        rdtsc
        movl    %eax, %esi
        inb     $0x80, %al
        rdtsc
        movl    %eax, 0x2000
        movl    %edx, 0x2004
        subl    %esi, %eax
        bsrl    %eax, %ecx
        movl    %eax, %edx
        subb    $2, %cl
        shrl    %cl, %edx               /* the three highest bits */
        leal    (%edx, %ecx, 4), %edx
        addr32 incl 0x1000 - 16(, %edx, 4)
        jmp     again

        .org    0xfff0                  /* where a processor starts */
        ljmp    $0xf000, $start
        .org    0x10000
