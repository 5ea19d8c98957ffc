/* SPDX-License-Identifier: MIT */
/*
 * Probes of the provider "prudence" (USDT), for bpftrace, perf, SystemTap and gdb;
 * docs/man/prudence-probes.7 lists them.
 *
 * A probe is a nop in the code, and a note in the file that locates the nop and the arguments,
 * which are in registers, memory or the code. So a probe takes arguments that the surrounding code
 * has at hand, because anything computed for a probe alone is computed always. No probe is on a
 * fast path. Without <sys/sdt.h> (Debian: systemtap-sdt-dev) there are none.
 */
#ifndef OS_POSIX_PROBE_H
#define OS_POSIX_PROBE_H

#ifdef PRUDENCE_PROBES
#include <sys/sdt.h>
#ifdef __clang__ /* the header's macros omit arguments that may be none */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif
#define os_probe3(word, a, b, c)    DTRACE_PROBE3(prudence, word, a, b, c)
#define os_probe4(word, a, b, c, d) DTRACE_PROBE4(prudence, word, a, b, c, d)
#else
#define os_probe3(word, a, b, c)    ((void)(a), (void)(b), (void)(c))
#define os_probe4(word, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

#endif /* OS_POSIX_PROBE_H */
