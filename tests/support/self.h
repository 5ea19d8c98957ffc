/* SPDX-License-Identifier: MIT */
/*
 * Lets a test program execute itself anew. Under emulation, executes the emulator with the program
 * (PRUDENCE_EMULATOR, from tools/test/aarch64), because the system cannot run the program itself.
 */
#ifndef TESTS_SUPPORT_SELF_H
#define TESTS_SUPPORT_SELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define SELF_ARGUMENTS 8

/* A command: the file to execute, and its arguments. */
struct self_command {
    const char *file;
    char *arguments[SELF_ARGUMENTS + 2];
    char path[4096];
};

/* Sets *command to this program with at most SELF_ARGUMENTS `arguments`. Returns false on error. */
static inline bool self_command(struct self_command *command, char *const *arguments)
{
    char *emulator = getenv("PRUDENCE_EMULATOR");
    char **to = command->arguments;
    ssize_t length;

    command->file = emulator ? emulator : "/proc/self/exe";
    if (emulator) {
        length = readlink("/proc/self/exe", command->path, sizeof command->path - 1);
        if (length < 0)
            return false;
        command->path[length] = '\0';
        *to++ = emulator;
        *to++ = command->path;
        arguments++;
    }
    for (unsigned i = 0; i < SELF_ARGUMENTS && arguments[i]; i++)
        *to++ = arguments[i];
    *to = NULL;
    return true;
}

/* Executes this program with `arguments`, as execv() does; at most SELF_ARGUMENTS. Returns only on
 * failure. */
static inline void self_exec(char *const *arguments)
{
    struct self_command command;

    if (self_command(&command, arguments))
        execv(command.file, command.arguments);
}

#endif /* TESTS_SUPPORT_SELF_H */
