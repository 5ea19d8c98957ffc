/* SPDX-License-Identifier: MIT */
/* Calls that a debugger makes in this process (call_stub.c). */
#ifndef OS_POSIX_CALL_STUB_H
#define OS_POSIX_CALL_STUB_H

#include "base/base.h"

#if defined(__x86_64__) && defined(__LP64__)
#define HAS_CALL_STUB 1

/* XSAVE's area for all that x86-64 has so far: 8 KiB are the tiles of AMX. */
#define CALL_ROOM 11200

enum call_phase { CALL_NONE, CALL_SIGNALS_BLOCKED, CALL_STATE_SAVED };
enum call_refusal { CALL_BEGUN, CALL_NO_ROOM, CALL_SIGNALS_OPEN };

/* The stub knows the offsets. A debugger reads `phase`, `refusal` and `back`, and writes
 * nothing. */
struct call_state {
    uint64_t phase;
    uint64_t function;
    uint64_t back;    /* address from which the stub takes back what it did, after a fault */
    uint64_t mask;    /* signals that the thread had blocked */
    uint64_t blocked; /* signals that the stub blocks */
    uint64_t refusal;
    uint64_t has_xsave;
    _Alignas(64) unsigned char area[CALL_ROOM];
};

extern HIDDEN struct call_state posix_call_state;

/* Entered by a debugger alone, never called. */
void posix_call_stub(void);
#endif

#endif /* OS_POSIX_CALL_STUB_H */
