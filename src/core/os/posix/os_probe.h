/* SPDX-License-Identifier: MIT */
/*
 * Probes of the provider "prudence" (USDT), for bpftrace, perf, SystemTap and gdb;
 * docs/man/prudence-probes.7 lists them.
 *
 * A probe is a nop in the code, and a note in the file that locates the nop and the arguments. Each
 * argument has 8 bytes and is in a register, because perf reads neither constants nor operands with
 * a scaled index, and adds no place whose types differ from those of another place of the probe. So
 * a probe takes arguments that the surrounding code has at hand: what is computed for a probe alone
 * is always computed. No probe is on a fast path. Without <sys/sdt.h> (Debian: systemtap-sdt-dev)
 * there are none.
 */
#ifndef OS_POSIX_PROBE_H
#define OS_POSIX_PROBE_H

#ifdef PRUDENCE_PROBES
#define STAP_SDT_ARG_CONSTRAINT r
#include <sys/sdt.h>
#ifdef __clang__ /* the header's macros omit arguments that may be none */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif
/* Gives the function a frame before the probe, or the tracer that follows frame pointers would
 * miss its caller. */
#define OS_PROBE_FRAME() __asm__ volatile("" : : "r"(__builtin_frame_address(0)))
#define os_probe3(word, a, b, c)                                                                   \
    do {                                                                                           \
        OS_PROBE_FRAME();                                                                          \
        DTRACE_PROBE3(prudence, word, (const void *)(a), (const char *)(b), (int64_t)(c));         \
    } while (0)
#define os_probe4(word, a, b, c, d)                                                                \
    do {                                                                                           \
        OS_PROBE_FRAME();                                                                          \
        DTRACE_PROBE4(prudence, word, (const void *)(a), (const char *)(b), (int64_t)(c),          \
                      (int64_t)(d));                                                               \
    } while (0)
#else
#define os_probe3(word, a, b, c)    ((void)(a), (void)(b), (void)(c))
#define os_probe4(word, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

#endif /* OS_POSIX_PROBE_H */
