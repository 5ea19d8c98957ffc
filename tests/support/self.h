/* SPDX-License-Identifier: MIT */
/*
 * Lets a test program execute itself anew. Under emulation, executes the emulator with the program
 * (PRUDENCE_EMULATOR, from tools/test/aarch64), because the system cannot run the program itself.
 */
#ifndef TESTS_SUPPORT_SELF_H
#define TESTS_SUPPORT_SELF_H

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define SELF_ARGUMENTS 8

/* Executes this program with `arguments`, as execv() does; at most SELF_ARGUMENTS. Returns only on
 * failure. */
static inline void self_exec(char *const *arguments)
{
    char *emulator = getenv("PRUDENCE_EMULATOR"), path[4096];
    char *all[SELF_ARGUMENTS + 2] = {emulator, path};
    ssize_t length;

    if (!emulator) {
        execv("/proc/self/exe", arguments);
        return;
    }
    length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0)
        return;
    path[length] = '\0';
    for (unsigned i = 1; i < SELF_ARGUMENTS && arguments[i]; i++)
        all[i + 1] = arguments[i];
    execv(emulator, all);
}

#endif /* TESTS_SUPPORT_SELF_H */
