/* SPDX-License-Identifier: MIT */
/* The shared library, for tests that load it while the process runs. */
#ifndef TESTS_SUPPORT_LATE_LIBRARY_H
#define TESTS_SUPPORT_LATE_LIBRARY_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds the library of the build that this program is of (next to the folder bin), or next to the
 * program, where a guest has it. A build in a folder of another build must not find the other's. */
static inline bool late_library_find(char *path, size_t size)
{
    static const char *const places[] = {"..", "."};
    char self[300];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

    self[length > 0 ? length : 0] = '\0';
    *strrchr(self, '/') = '\0';
    for (unsigned i = 0; i < 2; i++)
        if (snprintf(path, size, "%s/%s/libprudence.so", self, places[i]) > 0 &&
            access(path, R_OK) == 0)
            return true;
    return false;
}

/* Looks up `name`; `function` points to a pointer to a function. */
static inline void late_library_symbol(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);

    if (!address)
        abort();
    memcpy(function, &address, sizeof address);
}

#endif /* TESTS_SUPPORT_LATE_LIBRARY_H */
